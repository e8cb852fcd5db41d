import Foundation
import Glibc
import RoomServer
import Testing

/// A TCP relay on loopback in front of a server. It can hold back the server's bytes, as a slow server would.
final class Relay: @unchecked Sendable {
    private let listener: Int32
    private let target: UInt16
    private let condition = NSCondition()
    // Under the condition's lock.
    private var isHolding = false
    private var sockets: [Int32] = []

    /// The port that clients connect to.
    let port: UInt16

    /// Relays to the server of a stage.
    init(to stage: RoomStage) throws {
        target = UInt16(try #require(URLComponents(string: stage.server.url)?.port))
        listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = Self.loopback(0)
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) { [listener] pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, length) == 0 && getsockname(listener, $0, &length) == 0
            }
        }
        try #require(isBound && listen(listener, 16) == 0)
        port = UInt16(bigEndian: address.sin_port)
        Thread.detachNewThread { self.acceptAll() }
    }

    /// Holds back all bytes of the server from now on, or passes them on.
    func hold(_ isHolding: Bool) {
        condition.withLock {
            self.isHolding = isHolding
            condition.broadcast()
        }
    }

    /// Ends all connections. The relay is then of no use.
    func stop() {
        hold(false)
        shutdown(listener, Int32(SHUT_RDWR))
        for socket in condition.withLock({ sockets }) { shutdown(socket, Int32(SHUT_RDWR)) }
    }

    private static func loopback(_ port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        return address
    }

    private func acceptAll() {
        while true {
            let client = accept(listener, nil, nil)
            guard client >= 0 else { break }
            let server = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            var address = Self.loopback(target)
            let isConnected = withUnsafePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    connect(server, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
                }
            }
            if !isConnected { shutdown(client, Int32(SHUT_RDWR)) }
            // They stay open, so that no number is used again.
            condition.withLock { sockets += [client, server] }
            Thread.detachNewThread { self.pass(from: client, to: server, mayHold: false) }
            Thread.detachNewThread { self.pass(from: server, to: client, mayHold: true) }
        }
    }

    private func pass(from source: Int32, to target: Int32, mayHold: Bool) {
        var bytes = [UInt8](repeating: 0, count: 65536)
        while true {
            let count = recv(source, &bytes, bytes.count, 0)
            guard count > 0 else { break }
            if mayHold { condition.withLock { while isHolding { condition.wait() } } }
            var sent = 0
            while sent < count {
                let part = bytes[sent..<count].withUnsafeBytes {
                    send(target, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
                }
                guard part > 0 else { return }
                sent += part
            }
        }
        shutdown(target, Int32(SHUT_WR))
    }
}
