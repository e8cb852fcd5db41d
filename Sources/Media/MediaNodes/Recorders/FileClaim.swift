import Glibc
import MediaGraph

/// A lock on a file that a running node reads or writes. The kernel separates claims by inode, in all processes, and
/// drops a claim when its process ends.
final class FileClaim: Sendable {
    private let descriptor: Int32

    private init(_ descriptor: Int32) {
        self.descriptor = descriptor
    }

    deinit {
        close(descriptor)
    }

    /// Claims a file for a reading node, so that no node can begin to write it. Nil if the file system has no claims,
    /// and for a recording in progress, which may be read.
    static func reading(_ path: String) -> FileClaim? {
        try? make(path, LOCK_SH, for: "")
    }

    /// Claims an existing file for a writing node. Nil if the file system has no claims, or the path is not a regular
    /// file.
    ///
    /// Throws `file.conflict` if a node reads or writes the file already, in this process or another.
    static func writing(_ path: String, by node: String) throws(MediaError) -> FileClaim? {
        try make(path, LOCK_EX, for: node)
    }

    private static func make(_ path: String, _ kind: Int32, for node: String) throws(MediaError) -> FileClaim? {
        guard FileAccess.identity(path) != nil else { return nil }
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        if flock(descriptor, kind | LOCK_NB) == 0 { return FileClaim(descriptor) }
        let reason = errno
        close(descriptor)
        guard reason == EWOULDBLOCK else { return nil }
        throw MediaError(
            code: MediaError.Code.fileConflict,
            message: "\"\(node)\" cannot write \(path): another node or program reads or writes the file. Choose "
                + "another file, or end the other use first.",
            node: node)
    }
}
