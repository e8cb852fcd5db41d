internal import Foundation
internal import Glibc

/// Writes a text to a path. A regular file is replaced at once, so that readers never see half of it; a link keeps leading
/// to it. A device or pipe gets the text.
///
/// - Throws: an error of Foundation.
package func write(_ text: String, toFile path: String) throws {
    var status = stat()
    if stat(path, &status) == 0, status.st_mode & S_IFMT != S_IFREG {
        let file = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
        defer { try? file.close() }
        try file.write(contentsOf: Data(text.utf8))
    } else {
        try text.write(toFile: target(of: path), atomically: true, encoding: .utf8)
    }
}

/// The path to which links lead, also if nothing is there yet.
private func target(of path: String) -> String {
    var path = path
    // As many as the kernel follows.
    for _ in 0..<40 {
        guard let link = try? FileManager.default.destinationOfSymbolicLink(atPath: path) else { break }
        path = link.hasPrefix("/") ? link : (path as NSString).deletingLastPathComponent + "/" + link
    }
    return path
}

/// Runs `body` while no other process or thread holds the lock of a file. Blocks while one does.
///
/// The lock is a file beside it, because the file itself is replaced.
func withLock<Result>(of file: String, _ body: () throws -> Result) throws -> Result {
    let descriptor = open(file + ".lock", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw CocoaError(.fileWriteNoPermission) }
    // Closing it ends the lock.
    defer { close(descriptor) }
    while flock(descriptor, LOCK_EX) != 0 {
        guard errno == EINTR else { throw CocoaError(.fileLocking) }
    }
    return try body()
}
