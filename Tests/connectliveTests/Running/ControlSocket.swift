import Foundation
import Glibc
import Testing

/// A client of a control socket that can send anything.
final class ControlSocket {
    private let descriptor: Int32
    private var received: [UInt8] = []

    init(_ path: String) throws {
        descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = Array(path.utf8)
        try #require(bytes.count < MemoryLayout.size(ofValue: address.sun_path))
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        let length = socklen_t(MemoryLayout<sockaddr_un>.size)
        let isConnected = withUnsafePointer(to: address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(descriptor, $0, length) == 0 }
        }
        try #require(isConnected, "\(path): \(String(cString: strerror(errno)))")
        var timeout = timeval(tv_sec: 10, tv_usec: 0)
        for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
            setsockopt(descriptor, SOL_SOCKET, option, &timeout, socklen_t(MemoryLayout<timeval>.size))
        }
    }

    deinit { close(descriptor) }

    func send(_ bytes: [UInt8]) {
        var sent = 0
        while sent < bytes.count {
            let count = Glibc.send(descriptor, Array(bytes[sent...]), bytes.count - sent, Int32(MSG_NOSIGNAL))
            if count < 0, errno == EINTR { continue }
            // A client that has closed does not want further data.
            guard count > 0 else { return }
            sent += count
        }
    }

    func send(_ line: String) { send(Array((line + "\n").utf8)) }

    /// The next line as an object; nil at the end of the connection.
    func receive() throws -> [String: Any]? {
        while true {
            if let end = received.firstIndex(of: 10) {
                let line = Data(received[..<end])
                received.removeFirst(end + 1)
                return try #require(
                    try JSONSerialization.jsonObject(with: line) as? [String: Any],
                    "\(String(decoding: line, as: UTF8.self))")
            }
            var part = [UInt8](repeating: 0, count: 65536)
            let count = recv(descriptor, &part, part.count, 0)
            // When a stopped process continues, its calls are interrupted.
            if count < 0, errno == EINTR { continue }
            // The program closed the connection without reading all of it.
            if count < 0, errno == ECONNRESET { return nil }
            try #require(count >= 0, "nothing came in time")
            if count == 0 { return nil }
            received += part[..<count]
        }
    }

    /// Sends a line and returns the response.
    func ask(_ line: String) throws -> [String: Any] {
        send(line)
        while true {
            let answer = try #require(try receive(), "the connection was closed")
            if answer["event"] == nil { return answer }
        }
    }

    /// The error code in the response to a line.
    func refusal(of line: String) throws -> String? { (try ask(line)["error"] as? [String: Any])?["code"] as? String }
}
