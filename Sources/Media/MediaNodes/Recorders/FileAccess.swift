import Foundation

/// Checks of files before they are written.
enum FileAccess {
    enum Obstacle: Equatable {
        case full
        case other(String)

        fileprivate init(_ code: Int32) {
            self = code == ENOSPC || code == EDQUOT ? .full : .other(String(cString: strerror(code)))
        }
    }

    /// Why a file cannot be written, found by opening it. Nil if it can. Creates the file, empty, if it did not exist.
    ///
    /// A named pipe is not opened: that would wait for its reader, and closing it again would end the reader.
    static func obstacle(_ path: String) -> Obstacle? {
        var status = stat()
        if stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFIFO { return nil }
        let descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o666)
        guard descriptor >= 0 else { return Obstacle(errno) }
        close(descriptor)
        return nil
    }

    /// Why a file cannot be written, as far as can be seen without a change to the file system.
    static func expectedObstacle(_ path: String) -> String? {
        if access(path, F_OK) == 0 { return access(path, W_OK) == 0 ? nil : String(cString: strerror(errno)) }
        let folder = path.lastIndex(of: "/").map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
        if access(folder, F_OK) != 0 { return "the folder \(folder) does not exist" }
        return access(folder, W_OK | X_OK) == 0 ? nil : String(cString: strerror(errno))
    }

    /// Why a file cannot be read, found without opening it. Nil if it seems that it can.
    static func obstacleToReading(_ path: String) -> String? {
        guard access(path, F_OK) == 0 else { return "it does not exist" }
        var status = stat()
        // Anything but a regular file, such as a named pipe, could block its reader.
        guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return "it is not a file" }
        return access(path, R_OK) == 0 ? nil : "you may not read it"
    }

    /// Why a file is not a PNG or JPEG image, found by its first bytes. Nil if it seems to be one.
    static func obstacleToShowing(_ path: String) -> String? {
        if let obstacle = obstacleToReading(path) { return obstacle }
        let file = FileHandle(forReadingAtPath: path)
        defer { try? file?.close() }
        let beginning = Array((try? file?.read(upToCount: 8)) ?? Data())
        let isImage = beginning.starts(with: [0x89, 0x50, 0x4e, 0x47]) || beginning.starts(with: [0xff, 0xd8, 0xff])
        return isImage ? nil : "it is neither a PNG nor a JPEG image"
    }

    /// Device and inode of a regular file. Of a file that does not exist yet, those of its folder and its name. Nil for
    /// devices, pipes and sockets, and if they cannot be determined.
    static func identity(_ path: String) -> String? {
        var path = path
        // As many symbolic links as Linux follows, to files that do not exist yet.
        for _ in 0..<40 {
            var status = stat()
            if stat(path, &status) == 0 {
                return status.st_mode & S_IFMT == S_IFREG ? "\(status.st_dev):\(status.st_ino)" : nil
            }
            let slash = path.lastIndex(of: "/")
            let folder = slash.map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
            if let target = try? FileManager.default.destinationOfSymbolicLink(atPath: path) {
                path = target.hasPrefix("/") ? target : folder + "/" + target
                continue
            }
            guard stat(folder, &status) == 0 else { return nil }
            let name = slash.map { path[path.index(after: $0)...] } ?? path[...]
            return "\(status.st_dev):\(status.st_ino)/\(name)"
        }
        return nil
    }

    /// Removes what a file contains.
    static func empty(_ path: String) { truncate(path, 0) }

    /// Returns false if there is no such file, or it cannot be removed.
    static func remove(_ path: String) -> Bool { unlink(path) == 0 }

    /// Whether a file exists and is not empty.
    static func hasData(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_size > 0
    }

    /// A short text file; nil when it cannot be read.
    static func text(of path: String) -> String? { try? String(contentsOfFile: path, encoding: .utf8) }

    /// Replaces an existing text file atomically: a reader sees the old text or the new one. If the new one cannot be
    /// written, the old one is unchanged.
    static func replace(_ path: String, with text: String) {
        // A symbolic link stays one.
        let file = URL(filePath: path).resolvingSymlinksInPath()
        try? Data(text.utf8).write(to: file, options: .atomic)
    }
}
