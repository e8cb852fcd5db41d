public import Foundation
internal import Glibc

/// The address and the key of this user's server. `serve` writes the file; the other commands read it, and so does the
/// SDK with an empty endpoint.
///
/// The file contains a secret. It has mode 0600. A file of another user, or one that others may read or write, is
/// refused.
public struct ServerFile: Codable, Sendable, Equatable {
    /// `ws://host:port`, or `https://host:port`.
    public var server: String
    /// The certificate of a server with TLS, in PEM. Its clients here accept it alone, whatever names it has.
    public var certificate: String?
    public var serviceId: String
    public var serviceSecret: String
    /// The server's process. Nil in a file of an earlier version.
    public var process: Int32?

    public init(
        server: String, serviceId: String, serviceSecret: String, process: Int32? = nil, certificate: String? = nil
    ) {
        self.server = server
        self.certificate = certificate
        self.serviceId = serviceId
        self.serviceSecret = serviceSecret
        self.process = process
    }

    /// Whether the server's process has not ended.
    public var isRunning: Bool { process.map { $0 > 0 && kill($0, 0) == 0 } ?? false }

    /// A server file has some hundred bytes; a longer file is not a server file.
    private static let maximumLength = 16 * 1024

    /// `$XDG_RUNTIME_DIR/connectlive/server.json`, or `/tmp/connectlive-<uid>/server.json` if that folder does not
    /// exist.
    public static func defaultPath(environment: [String: String] = ProcessInfo.processInfo.environment) -> String {
        if let folder = environment["XDG_RUNTIME_DIR"], folder.hasPrefix("/"),
            FileManager.default.fileExists(atPath: folder)
        {
            return "\(folder)/connectlive/server.json"
        }
        return "/tmp/connectlive-\(getuid())/server.json"
    }

    /// Returns nil if the file does not exist. Throws if it cannot be trusted or parsed.
    public static func read(from path: String) throws(RoomError) -> ServerFile? {
        let descriptor = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else {
            if errno == ENOENT || errno == ENOTDIR { return nil }
            throw refusal(path, "cannot be opened: \(reason(errno))")
        }
        let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw refusal(path, "is not a plain file")
        }
        guard status.st_uid == getuid() else { throw refusal(path, "belongs to another user") }
        guard status.st_mode & 0o077 == 0 else {
            throw refusal(path, "can be read or changed by other users (it must have mode 0600)")
        }
        guard status.st_size <= maximumLength, let data = try? file.read(upToCount: maximumLength),
            let decoded = try? JSONDecoder().decode(ServerFile.self, from: data)
        else { throw refusal(path, "is not a server file") }
        return decoded
    }

    /// Writes the file with mode 0600 in one step, so that a reader sees the old or the new contents. Creates its
    /// folder with mode 0700. Throws if the folder belongs to another user.
    public func write(to path: String) throws(RoomError) {
        let folder = URL(fileURLWithPath: path).deletingLastPathComponent().path
        try Self.makeFolder(folder)
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        guard var data = try? encoder.encode(self) else { preconditionFailure("a server file did not encode") }
        data.append(UInt8(ascii: "\n"))
        let draft = "\(path).\(getpid())-\(UInt32.random(in: 0 ... .max))"
        let descriptor = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw Self.unwritable(path, Self.reason(errno)) }
        let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        do {
            try file.write(contentsOf: data)
            try file.close()
        } catch {
            unlink(draft)
            throw Self.unwritable(path, "\(error)")
        }
        guard rename(draft, path) == 0 else {
            let problem = Self.reason(errno)
            unlink(draft)
            throw Self.unwritable(path, problem)
        }
    }

    /// Whether both are of one server, maybe with different certificates.
    public func isOfSameServer(as other: ServerFile) -> Bool { server == other.server && process == other.process }

    /// Removes the file if it still names the server of `self`. Another server may have replaced it.
    ///
    /// - Parameter previous: the server that `self` replaced. If it still runs, the file contains it again.
    public func remove(from path: String, restoring previous: ServerFile? = nil) {
        guard let written = try? Self.read(from: path), written.isOfSameServer(as: self) else { return }
        if let previous, previous.isRunning, (try? previous.write(to: path)) != nil { return }
        unlink(path)
    }

    private static func makeFolder(_ folder: String) throws(RoomError) {
        if mkdir(folder, 0o700) != 0, errno != EEXIST {
            throw unwritable(folder, reason(errno))
        }
        var status = stat()
        guard lstat(folder, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else {
            throw unwritable(folder, "it is not a folder")
        }
        guard status.st_uid == getuid(), status.st_mode & 0o022 == 0 else {
            throw unwritable(folder, "other users may write to it")
        }
    }

    private static func reason(_ number: Int32) -> String {
        String(cString: strerror(number)).lowercased()
    }

    private static func refusal(_ path: String, _ problem: String) -> RoomError {
        RoomError(
            .serviceMissing,
            "The server file \(path) \(problem), so it is ignored. Start the room server again, or name the "
                + "server and its service in another way.")
    }

    private static func unwritable(_ path: String, _ problem: String) -> RoomError {
        RoomError(
            .settingInvalid,
            "Cannot write the server file \(path): \(problem). Set XDG_RUNTIME_DIR to a folder of your own.")
    }
}
