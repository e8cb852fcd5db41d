internal import CGLib
internal import CNice
internal import COpenSSL
internal import Glibc
package import ICELite
package import PeerLoop
package import RTP

/// A trial of a TURN server: an allocation that ends at once.
package enum RelayTest {
    /// The relayed address that a server gave.
    package struct Outcome: Sendable {
        package var relay: TransportAddress
        /// Whether the server is on the Internet, but its relayed address is not.
        package var isHidden: Bool

        package init(relay: TransportAddress, isHidden: Bool) { (self.relay, self.isHidden) = (relay, isHidden) }
    }

    /// Blocks, up to a few times `seconds`, and 10 s at most.
    ///
    /// Throws `turn.unauthorized`, `turn.unreachable`, `turn.certificate` or `turn.refused`, with the fix.
    package static func run(_ server: ICEServer, seconds: UInt32 = 3) throws(TransportError) -> Outcome {
        try run(server, seconds: seconds, during: RelayWork())
    }

    /// - Parameter work: its end ends the trial, as if the server did not respond.
    static func run(
        _ server: ICEServer, seconds: UInt32, during work: RelayWork
    ) throws(TransportError) -> Outcome {
        guard let transport = server.relayTransport else {
            throw TransportError(code: "turn.refused", message: "\(server.url) is no TURN server. Name one.")
        }
        let addresses = try RelayAccess.addresses(of: server, during: work)
        let relay: TransportAddress
        switch transport {
        case .udp:
            let tried = RelayAccess.firstOfEachFamily(addresses)
            relay = try allocate(at: server, byDatagramsTo: tried, seconds: seconds, during: work)
        case .tcp, .tls:
            let stream = try RelayAccess.connect(to: server, seconds: seconds, during: work)
            relay = try allocate(at: server, over: StreamExchange(stream: stream, work: work))
        }
        let isPublic = addresses.allSatisfy { AddressScope($0) == .global }
        return Outcome(relay: relay, isHidden: isPublic && AddressScope(relay.host) != .global)
    }

    /// Asks one address after another, until one answers: a network may drop what is for those of one family.
    static func allocate(
        at server: ICEServer, byDatagramsTo addresses: [String], seconds: UInt32, during work: RelayWork
    ) throws(TransportError) -> TransportAddress {
        var last = RelayAccess.problem(
            "turn.unreachable", server, "this machine has no route to it. Check the network", .noRoute)
        for address in addresses {
            guard let exchange = DatagramExchange(to: address, server.port, seconds: seconds, during: work) else {
                continue
            }
            do throws(TransportError) {
                return try allocate(at: server, over: exchange)
            } catch {
                guard error.code == "turn.unreachable" else { throw error }
                last = error
            }
        }
        throw last
    }

    /// Closes the exchange.
    private static func allocate(
        at server: ICEServer, over exchange: any Exchange
    ) throws(TransportError) -> TransportAddress {
        defer { exchange.close() }
        let none: (user: [UInt8], challenge: TURN.Challenge, key: OpenSSLSTUNKey)? = nil
        let first = exchange.ask(TURN.allocate) { TURN.allocate($0, none) }
        guard let first else { throw silence(of: server, over: exchange) }
        guard case .refused(_, let challenge?) = first else { throw refusal(first, by: server) }
        let key = OpenSSLSTUNKey(password: longTermKey(server, challenge.realm))
        let credentials = (user: Array(server.username.utf8), challenge: challenge, key: key)
        guard let second = exchange.ask(TURN.allocate, { TURN.allocate($0, credentials) }) else {
            throw silence(of: server, over: exchange)
        }
        guard case .allocated(let address) = second else { throw refusal(second, by: server) }
        _ = exchange.ask(TURN.refresh) { TURN.release($0, credentials) }
        return address
    }

    private static func silence(of server: ICEServer, over exchange: any Exchange) -> TransportError {
        let reason =
            exchange.isRefused
            ? "it refuses UDP: no program listens at its port, or a firewall rejects it" : "it does not answer"
        return RelayAccess.problem("turn.unreachable", server, "\(reason). Check its port and the firewall")
    }

    private static func refusal(_ response: TURN.Response, by server: ICEServer) -> TransportError {
        guard case .refused(let code, _) = response else {
            return RelayAccess.problem(
                "turn.refused", server, "its response is not that of a TURN server. Check the port")
        }
        switch code {
        case 401, 441:
            return RelayAccess.problem(
                "turn.unauthorized", server,
                "it rejects the user \"\(server.username)\" and the password. Correct both; those of a room server expire"
            )
        case 486, 508:
            return RelayAccess.problem(
                "turn.refused", server, "it has no free relay (error \(code)). Raise its limits, or try later")
        default:
            return RelayAccess.problem(
                "turn.refused", server, "it refuses the allocation with error \(code). Check its log and settings")
        }
    }

    /// MD5 of user, realm and password (RFC 8489, section 9.2.2).
    private static func longTermKey(_ server: ICEServer, _ realm: [UInt8]) -> [UInt8] {
        let text = Array("\(server.username):".utf8) + realm + Array(":\(server.credential)".utf8)
        var sum = [UInt8](repeating: 0, count: 16)
        EVP_Digest(text, text.count, &sum, nil, EVP_md5(), nil)
        return sum
    }
}

/// Requests and their responses on one connection to a TURN server.
private protocol Exchange {
    /// Sends a request, and returns its response. Nil if none arrives in time.
    func ask(_ method: UInt16, _ request: (STUNTransaction) -> [UInt8]) -> TURN.Response?
    /// Whether a report said that the server's port is closed (ICMP).
    var isRefused: Bool { get }
    func close()
}

extension Exchange {
    fileprivate func newTransaction() -> STUNTransaction {
        STUNTransaction(high: .random(in: .min ... .max), low: .random(in: .min ... .max))
    }
}

private struct StreamExchange: Exchange {
    let stream: RelayStream
    let work: RelayWork
    /// A closed port refuses the connection.
    let isRefused = false

    func ask(_ method: UInt16, _ request: (STUNTransaction) -> [UInt8]) -> TURN.Response? {
        let transaction = newTransaction()
        guard stream.send(request(transaction), during: work) else { return nil }
        var bytes: [UInt8] = []
        // A response has a header of 20 bytes, with the length of the rest, and ends where it says (RFC 8489, section 6.2.2).
        while true {
            let total = bytes.count < 20 ? 20 : 20 + Int(bytes[2]) << 8 + Int(bytes[3])
            if bytes.count == total {
                if let response = TURN.response(bytes, to: transaction, method: method) { return response }
                bytes = []
                continue
            }
            guard let more = stream.receive(atMost: total - bytes.count, during: work) else { return nil }
            bytes += more
        }
    }

    func close() { stream.close() }
}

private final class DatagramExchange: Exchange {
    private let socket: Int32
    private let milliseconds: Int
    private let work: RelayWork
    /// Readable at the end of the work. -1 if there is no descriptor left.
    private let end: Int32
    private(set) var isRefused = false

    /// Nil if this machine has no route to the address.
    init?(to address: String, _ port: UInt16, seconds: UInt32, during work: RelayWork) {
        let opened = Self.open(to: address, port)
        guard opened >= 0 else { return nil }
        socket = opened
        milliseconds = Int(seconds) * 1000
        self.work = work
        end = g_cancellable_get_fd(work.cancellable)
    }

    deinit {
        if end >= 0 { g_cancellable_release_fd(work.cancellable) }
    }

    private static func open(to address: String, _ port: UInt16) -> Int32 {
        let place = g_inet_socket_address_new_from_string(address, guint(port))
        defer { g_object_unref(place) }
        var name = sockaddr_storage()
        let size = MemoryLayout<sockaddr_storage>.size
        let length = g_socket_address_get_native_size(place)
        guard length > 0, g_socket_address_to_native(place, &name, gsize(size), nil) != 0 else { return -1 }
        let socket = Glibc.socket(Int32(name.ss_family), Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        let isConnected = withUnsafePointer(to: &name) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(socket, $0, socklen_t(length)) == 0 }
        }
        guard isConnected else {
            Glibc.close(socket)
            return -1
        }
        return socket
    }

    /// Repeats the request after 250 ms, then twice as long, and so on (RFC 8489, section 6.2.1).
    func ask(_ method: UInt16, _ request: (STUNTransaction) -> [UInt8]) -> TURN.Response? {
        let transaction = newTransaction()
        let bytes = request(transaction)
        var (pause, left) = (250, milliseconds)
        var datagram = [UInt8](repeating: 0, count: PacketBuffer.capacity)
        while left > 0, !work.isOver {
            // A port that is closed reports itself at the next call.
            _ = Glibc.send(socket, bytes, bytes.count, 0)
            let next = EventLoop.now + .milliseconds(Int64(min(pause, left)))
            while true {
                let rest = (next - EventLoop.now).nanoseconds / 1_000_000
                var entries = [socket, end].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
                guard rest > 0, poll(&entries, 2, Int32(rest)) > 0, entries[1].revents == 0 else { break }
                let length = recv(socket, &datagram, datagram.count, 0)
                guard length > 0 else {
                    isRefused = length < 0 && errno == ECONNREFUSED
                    break
                }
                if let response = TURN.response(Array(datagram[..<length]), to: transaction, method: method) {
                    return response
                }
            }
            left -= pause
            pause *= 2
        }
        return nil
    }

    func close() { Glibc.close(socket) }
}
