internal import Dispatch
internal import Foundation
internal import RoomProtocol
internal import RoomServer
internal import RoomTLS
internal import Synchronization

/// The file through which other commands of this user find a server while it runs.
final class ServerAnnouncement: Sendable {
    private let file: Mutex<ServerFile>
    private let path: String
    /// The server that the file named before, if it still runs.
    private let previous: ServerFile?
    private let queue = DispatchQueue(label: "connectlive.server-file", qos: .utility)

    /// The time between two checks of the file.
    private static let interval = Duration.seconds(5)

    /// Writes the file.
    convenience init(of server: RoomServer) throws(RoomError) {
        let key = server.configuration.service
        try self.init(
            ServerFile(
                server: server.url, serviceId: key.id, serviceSecret: key.secret, process: getpid(),
                certificate: server.certificate?.pem),
            at: ServerFile.defaultPath())
        if server.certificate != nil { watch() }
    }

    /// Writes the file.
    init(_ content: ServerFile, at path: String) throws(RoomError) {
        self.path = path
        // In a container, an earlier server that was killed had the same process number.
        previous = (try? ServerFile.read(from: path)).flatMap {
            $0.isRunning && $0.process != content.process ? $0 : nil
        }
        try content.write(to: path)
        file = Mutex(content)
    }

    /// Writes the file with another certificate, unless another server has replaced it. Blocks.
    func replace(_ certificate: ServerCertificate) { replace(certificate.pem) }

    /// Writes the file with another certificate, in PEM, unless another server has replaced it. Blocks.
    func replace(_ certificate: String) {
        file.withLock { $0.certificate = certificate }
        correct()
    }

    /// Writes the file if it names this server with another certificate: a server that replaced the file has ended, and has
    /// written the certificate that it had found. Blocks.
    func correct() {
        file.withLock { file in
            guard let written = try? ServerFile.read(from: path), written.isOfSameServer(as: file), written != file
            else { return }
            try? file.write(to: path)
        }
    }

    /// Checks the file from now on.
    private func watch() {
        queue.asyncAfter(deadline: .now() + Self.interval / .seconds(1)) { [weak self] in
            guard let self else { return }
            correct()
            watch()
        }
    }

    var lines: [String] {
        let found = "Other commands of this user find it through \(path)"
        guard let previous else { return [found] }
        return [found, "Until it ends, they need --server and the service for the server at \(previous.server)."]
    }

    /// Removes the file, or names the previous server in it again.
    func end() { file.withLock { $0.remove(from: path, restoring: previous) } }
}
