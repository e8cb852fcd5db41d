import Glibc
import PeerIO
import PeerLoop
import Synchronization

/// A plain UDP socket on 127.0.0.1.
final class Attacker: Sendable {
    let descriptor: Int32
    let port: UInt16

    init() {
        let descriptor = socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
        self.descriptor = descriptor
        var address = loopbackAddress(port: 0)
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        port = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                guard bind(descriptor, address, length) == 0, getsockname(descriptor, address, &length) == 0 else {
                    return 0
                }
                return UInt16(bigEndian: pointer.pointee.sin_port)
            }
        }
        var size: Int32 = 4 << 20
        setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &size, 4)
    }

    deinit { Glibc.close(descriptor) }

    func send(_ bytes: some Collection<UInt8>, to port: UInt16) {
        var address = loopbackAddress(port: port)
        let bytes = Array(bytes)
        _ = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                sendto(descriptor, bytes, bytes.count, 0, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
    }

    /// The next datagram, if there is one, and its source port.
    func receive() -> (bytes: [UInt8], port: UInt16)? {
        var buffer = [UInt8](repeating: 0, count: 4096)
        var address = sockaddr_in()
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let count = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                recvfrom(descriptor, &buffer, buffer.count, Int32(MSG_DONTWAIT), $0, &length)
            }
        }
        guard count >= 0 else { return nil }
        return (Array(buffer[..<count]), UInt16(bigEndian: address.sin_port))
    }
}

func loopbackAddress(port: UInt16) -> sockaddr_in {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    return address
}

/// A path between two peers that can read, forge and stop packets. Each end knows only the path's address, so injected
/// packets come from an address that ICE has validated.
final class Path: Sendable {
    /// The two addresses of the path towards the offerer, and those towards the answerer.
    private let atOfferer = Attacker()
    private let atAnswerer = Attacker()
    private let state = Mutex(State())
    private let thread = EventLoop(name: "path")

    private struct State {
        var offererPort: UInt16 = 0
        var answererPort: UInt16 = 0
        var isCut = false
        var withholdsAnswersFromOfferer = false
        var isStopped = false
        var fromOfferer: [[UInt8]] = []
        var handshakes = 0
    }

    init() {
        thread.execute { [self] in
            while !state.withLock({ $0.isStopped }) {
                var descriptors = [
                    pollfd(fd: atOfferer.descriptor, events: Int16(POLLIN), revents: 0),
                    pollfd(fd: atAnswerer.descriptor, events: Int16(POLLIN), revents: 0),
                ]
                poll(&descriptors, 2, 20)
                carry(from: atOfferer, to: atAnswerer, isOffererSide: true)
                carry(from: atAnswerer, to: atOfferer, isOffererSide: false)
            }
        }
    }

    /// Replaces the address in a candidate by the path's.
    func route(_ candidate: String, ofOfferer: Bool) -> String {
        var parts = candidate.split(separator: " ").map(String.init)
        state.withLock { state in
            if ofOfferer {
                state.offererPort = UInt16(parts[5]) ?? 0
            } else {
                state.answererPort = UInt16(parts[5]) ?? 0
            }
        }
        parts[5] = String(ofOfferer ? atAnswerer.port : atOfferer.port)
        return parts.joined(separator: " ")
    }

    var isCut: Bool {
        get { state.withLock { $0.isCut } }
        set { state.withLock { $0.isCut = newValue } }
    }

    /// Withholds the answers to the offerer's connectivity checks (STUN success responses).
    var withholdsAnswersFromOfferer: Bool {
        get { state.withLock { $0.withholdsAnswersFromOfferer } }
        set { state.withLock { $0.withholdsAnswersFromOfferer = newValue } }
    }

    /// Encrypted RTP that the offerer sent.
    var captured: [[UInt8]] { state.withLock { $0.fromOfferer } }

    /// DTLS datagrams carried to the offerer.
    var handshakesToOfferer: Int { state.withLock { $0.handshakes } }

    /// Sends to the answerer as if it came from the offerer.
    func inject(_ bytes: [UInt8]) {
        atAnswerer.send(bytes, to: state.withLock { $0.answererPort })
    }

    func stop() {
        state.withLock { $0.isStopped = true }
        thread.shutdown()
    }

    private func carry(from: Attacker, to: Attacker, isOffererSide: Bool) {
        while let (bytes, _) = from.receive() {
            let port = state.withLock { state -> UInt16 in
                if isOffererSide, bytes.count > 1, bytes[0] >> 6 == 2, !(192...223).contains(bytes[1]) {
                    state.fromOfferer.append(bytes)
                }
                guard !state.isCut else { return 0 }
                if !isOffererSide, state.withholdsAnswersFromOfferer, bytes.starts(with: [0x01, 0x01]) { return 0 }
                if !isOffererSide, let first = bytes.first, (20...63).contains(first) { state.handshakes += 1 }
                return isOffererSide ? state.answererPort : state.offererPort
            }
            if port != 0 { to.send(bytes, to: port) }
        }
    }
}
