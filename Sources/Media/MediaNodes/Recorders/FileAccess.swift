import Glibc

/// Questions about files that are about to be written.
enum FileAccess {
    enum Obstacle: Equatable {
        case full
        case other(String)

        fileprivate init(_ code: Int32) {
            self = code == ENOSPC || code == EDQUOT ? .full : .other(String(cString: strerror(code)))
        }
    }

    /// Why a file cannot be written, asked by opening it; nil when it can. It is there afterwards, and empty if it was
    /// not there before.
    static func obstacle(_ path: String) -> Obstacle? {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o666)
        guard descriptor >= 0 else { return Obstacle(errno) }
        close(descriptor)
        return nil
    }

    /// Why a file cannot be written, as far as that can be seen without touching anything.
    static func expectedObstacle(_ path: String) -> String? {
        if access(path, F_OK) == 0 { return access(path, W_OK) == 0 ? nil : String(cString: strerror(errno)) }
        let folder = path.lastIndex(of: "/").map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
        return access(folder, W_OK | X_OK) == 0 ? nil : String(cString: strerror(errno))
    }

    /// Whether the last line of a short text file is `line`.
    static func ends(_ path: String, with line: String) -> Bool {
        guard let file = fopen(path, "r") else { return false }
        defer { fclose(file) }
        let wanted = Array(line.utf8)
        fseek(file, -(wanted.count + 1), SEEK_END)
        var tail = [UInt8](repeating: 0, count: wanted.count + 1)
        let count = fread(&tail, 1, tail.count, file)
        return String(decoding: tail.prefix(count), as: UTF8.self).contains(line)
    }
}
