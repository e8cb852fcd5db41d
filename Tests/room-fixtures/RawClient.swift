internal import Foundation
internal import Glibc
package import RoomProtocol

/// A failed operation of a `RawClient`.
package struct RawClientError: Error, CustomStringConvertible {
    package let description: String
}

/// A TCP client that sends exactly a test's bytes, well-formed or not. Blocking, with a deadline for each read.
package final class RawClient {
    private let descriptor: Int32
    private var received: [UInt8] = []

    package init(port: Int) throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        guard descriptor >= 0 else { throw RawClientError(description: "no socket: errno \(errno)") }
        var timeout = timeval(tv_sec: 12, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size))
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(port).bigEndian
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        let result = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard result == 0 else { throw RawClientError(description: "no connection: errno \(errno)") }
    }

    deinit { close(descriptor) }

    /// Returns false if the server has closed.
    @discardableResult
    package func send(_ bytes: [UInt8]) -> Bool {
        var sent = 0
        while sent < bytes.count {
            let count = bytes[sent...].withUnsafeBytes { bytes in
                again { Glibc.send(descriptor, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL)) }
            }
            guard count > 0 else { return false }
            sent += count
        }
        return true
    }

    /// Shuts down the sending side. The connection stays open for the server's data.
    package func endSending() { shutdown(descriptor, Int32(SHUT_WR)) }

    /// A call with a deadline is not restarted by itself after the process was stopped.
    private func again(_ call: () -> Int) -> Int {
        while true {
            let count = call()
            if count >= 0 || errno != EINTR { return count }
        }
    }

    /// Reads more. Returns false at the end of the connection or after the deadline.
    private func fill() -> Bool {
        var buffer = [UInt8](repeating: 0, count: 65536)
        let count = again { recv(descriptor, &buffer, buffer.count, 0) }
        guard count > 0 else { return false }
        received += buffer[..<count]
        return true
    }

    /// Whether the server closes the connection within 20 s.
    package func isClosedByServer() -> Bool {
        var buffer = [UInt8](repeating: 0, count: 65536)
        let deadline = ContinuousClock.now + .seconds(20)
        while ContinuousClock.now < deadline {
            let count = again { recv(descriptor, &buffer, buffer.count, 0) }
            if count == 0 { return true }
            if count < 0 { return errno == ECONNRESET || errno == EPIPE }
        }
        return false
    }

    // MARK: - HTTP

    package func request(_ text: String, body: String = "") throws -> (status: Int, body: String) {
        var head = text
        if !body.isEmpty { head += "content-length: \(body.utf8.count)\r\n" }
        send(Array((head + "\r\n" + body).utf8))
        let response = try readHead()
        let status = try Self.status(of: response)
        let lines = response.lowercased().split(separator: "\r\n")
        let length = lines.first { $0.hasPrefix("content-length:") }.flatMap {
            Int($0.dropFirst(15).drop { $0 == " " })
        }
        while received.count < length ?? 0, fill() {}
        let data = received.prefix(length ?? 0)
        received.removeFirst(data.count)
        return (status, String(decoding: data, as: UTF8.self))
    }

    private static func status(of head: String) throws -> Int {
        let words = head.split(separator: " ")
        guard words.count > 1, let status = Int(words[1]) else {
            throw RawClientError(description: "no HTTP status in: \(head)")
        }
        return status
    }

    private func readHead() throws -> String {
        let end: [UInt8] = [13, 10, 13, 10]
        while true {
            if let range = received.firstRange(of: end) {
                let head = String(decoding: received[..<range.lowerBound], as: UTF8.self)
                received.removeSubrange(..<range.upperBound)
                return head
            }
            guard fill() else { throw RawClientError(description: "the server sent no answer") }
        }
    }

    /// The status of the WebSocket handshake; 101 means open.
    package func openWebSocket(port: Int, headers: String = "") throws -> Int {
        send(
            Array(
                ("GET /v1/room HTTP/1.1\r\nhost: 127.0.0.1:\(port)\r\nupgrade: websocket\r\nconnection: Upgrade\r\n"
                    + "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: 13\r\n\(headers)\r\n").utf8
            ))
        return try Self.status(of: readHead())
    }

    // MARK: - WebSocket

    @discardableResult
    package func sendText(_ text: String) -> Bool { send(frame(Array(text.utf8))) }

    package func frame(_ payload: [UInt8]) -> [UInt8] {
        var frame: [UInt8] = [0x81]
        switch payload.count {
        case ..<126: frame.append(0x80 | UInt8(payload.count))
        case ..<65536: frame += [0x80 | 126, UInt8(payload.count >> 8), UInt8(payload.count & 0xff)]
        default: frame += [0x80 | 127] + (0..<8).reversed().map { UInt8(truncatingIfNeeded: payload.count >> ($0 * 8)) }
        }
        return frame + [0, 0, 0, 0] + payload
    }

    package func sendMessage(_ message: ClientMessage, id: Int? = nil) { sendText(Envelope(id: id, message).json()) }

    /// Returns the next message for which the condition holds, and skips others. Answers pings. Throws after 20 s
    /// without such a message: the server's pings would keep each single read within its deadline.
    package func message(where condition: (Envelope<ServerMessage>) -> Bool) throws -> Envelope<ServerMessage> {
        let deadline = ContinuousClock.now + .seconds(20)
        while true {
            guard ContinuousClock.now < deadline else { throw RawClientError(description: "the message does not come") }
            let (opcode, payload) = try readFrame()
            if opcode == 9 {
                send([0x8a, 0x80 | UInt8(payload.count), 0, 0, 0, 0] + payload)
            } else if opcode == 1 {
                let envelope = try Envelope<ServerMessage>(json: Data(payload))
                if condition(envelope) { return envelope }
            }
        }
    }

    private func readFrame() throws -> (UInt8, [UInt8]) {
        func need(_ count: Int) throws {
            while received.count < count {
                guard fill() else { throw RawClientError(description: "the server closed") }
            }
        }
        try need(2)
        let opcode = received[0] & 0x0f
        var length = Int(received[1] & 0x7f)
        var head = 2
        if length >= 126 {
            let bytes = length == 126 ? 2 : 8
            try need(2 + bytes)
            length = received[2..<(2 + bytes)].reduce(0) { $0 << 8 | Int($1) }
            head += bytes
        }
        try need(head + length)
        let payload = Array(received[head..<(head + length)])
        received.removeFirst(head + length)
        return (opcode, payload)
    }
}
