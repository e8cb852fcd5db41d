import Glibc
import MediaGraph

/// A file that a running node reads or writes. The kernel keeps claims apart by inode, in this process and in others, and
/// drops a claim when its process ends.
final class FileClaim: Sendable {
    private struct Taken: Error {}

    private let descriptor: Int32

    private init(_ descriptor: Int32) {
        self.descriptor = descriptor
    }

    deinit {
        close(descriptor)
    }

    /// Claims a file for a node that reads it: no node can begin to write it then. Nil where the file system keeps no
    /// claims, and for a recording under way, which may be read.
    static func reading(_ path: String) -> FileClaim? {
        try? make(path, LOCK_SH)
    }

    /// Claims a file that exists for a node that writes it. Nil where the file system keeps no claims, or the path leads
    /// to no regular file.
    ///
    /// Throws `file.conflict` where a node reads or writes the file already, in this process or another.
    static func writing(_ path: String, by node: String) throws(MediaError) -> FileClaim? {
        do throws(Taken) {
            return try make(path, LOCK_EX)
        } catch {
            throw MediaError(
                code: MediaError.Code.fileConflict,
                message: "\"\(node)\" cannot write \(path): another node or program reads or writes the file. Choose "
                    + "another file, or end the other use first.",
                node: node)
        }
    }

    private static func make(_ path: String, _ kind: Int32) throws(Taken) -> FileClaim? {
        guard FileAccess.identity(path) != nil else { return nil }
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        if flock(descriptor, kind | LOCK_NB) == 0 { return FileClaim(descriptor) }
        let reason = errno
        close(descriptor)
        if reason == EWOULDBLOCK { throw Taken() }
        return nil
    }
}
