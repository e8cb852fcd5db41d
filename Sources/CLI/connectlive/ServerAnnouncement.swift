internal import Foundation
internal import RoomProtocol
internal import RoomServer
internal import RoomTLS
internal import Synchronization

/// The file through which other commands of this user find a server while it runs.
final class ServerAnnouncement: Sendable {
    private let file: Mutex<ServerFile>
    private let path = ServerFile.defaultPath()
    /// The server that the file named before, if it still runs.
    private let previous: ServerFile?

    /// Writes the file.
    init(of server: RoomServer) throws(RoomError) {
        let key = server.configuration.service
        let content = ServerFile(
            server: server.url, serviceId: key.id, serviceSecret: key.secret, process: getpid(),
            certificate: server.certificate?.pem)
        // In a container, an earlier server that was killed had the same process number.
        previous = (try? ServerFile.read(from: path)).flatMap { $0.isRunning && $0.process != getpid() ? $0 : nil }
        try content.write(to: path)
        file = Mutex(content)
    }

    /// Writes the file with another certificate, unless another server has replaced it. Blocks.
    func replace(_ certificate: ServerCertificate) {
        file.withLock { file in
            let former = file
            file.certificate = certificate.pem
            guard (try? ServerFile.read(from: path)) == former else { return }
            try? file.write(to: path)
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
