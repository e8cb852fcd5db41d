import Glibc
import Testing
import TestSupport

/// The socket of a service manager, at which a program reports its state.
final class NotificationSocket {
    let path: String
    private let descriptor: Int32
    private var received: [String] = []

    init(in folder: TemporaryFolder) throws {
        path = folder.path + "/notify"
        descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = Array(path.utf8)
        try #require(bytes.count < MemoryLayout.size(ofValue: address.sun_path))
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        let result = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        try #require(result == 0)
    }

    deinit { close(descriptor) }

    /// All messages so far.
    var messages: [String] {
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            let length = recv(descriptor, &buffer, buffer.count, Int32(MSG_DONTWAIT))
            guard length >= 0 else { return received }
            received.append(String(decoding: buffer[..<length], as: UTF8.self))
        }
    }
}
