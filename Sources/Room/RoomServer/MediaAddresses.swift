internal import Glibc
internal import PeerIO
internal import PeerLoop
internal import RTP
internal import RoomProtocol

extension RoomServer {
    /// The buffer that a media port asks the kernel for in each direction, in bytes.
    package static let wantedBuffer = MediaPort.wantedBuffer

    /// Where clients send media.
    package struct MediaAddresses: Sendable {
        /// One for all threads, or one for each.
        package fileprivate(set) var ports: ClosedRange<Int>
        /// The port that another program uses, so that any free one was taken instead.
        package fileprivate(set) var busyPort: Int?
        package let addresses: [String]
        /// The TCP port for clients whose network blocks UDP. Nil without one.
        package let tcpPort: Int?
        /// Whether clients of other networks may reach one of the addresses.
        package let isPublic: Bool
        /// The smaller of the socket's two buffers, and the size that a busy server needs, in bytes.
        package let buffer: (allowed: Int, wanted: Int)
    }

    /// Opens the ports of all media, one for each loop: sockets at one number, or numbers of their own.
    static func openMediaPorts(
        _ configuration: Configuration, at address: String, on loops: [EventLoop]
    ) async throws(RoomError) -> (ports: [LoopBound<MediaPort>], addresses: MediaAddresses)? {
        guard configuration.ice == .lite else { return nil }
        let chosen = configuration.mediaPorts
        let group = chosen.map { $0.count > 1 } == true ? nil : PortGroup(loops.count)
        guard configuration.tcpPort == nil || group != nil else {
            throw RoomError(.listenFailed, "A TCP port for media needs one UDP port for all threads. Give one of each.")
        }
        var opened: [OpenedPort] = []
        for (place, loop) in loops.enumerated() {
            let numbers: [UInt16] =
                if let first = opened.first, group != nil {
                    // The other loops share the number that the first one found.
                    [UInt16(first.addresses.ports.lowerBound)]
                } else if let chosen {
                    [chosen.lowerBound + UInt16(place)]
                } else {
                    // Another server may have the number that signalling uses here.
                    [UInt16(clamping: configuration.port), 0]
                }
            // The other loops tell clients the port at which the first one listens.
            let tcpPort = opened.first?.addresses.tcpPort.map { UInt16($0) } ?? configuration.tcpPort
            let result = await perform(on: loop) {
                open(
                    numbers, at: address, configuration, tcpPort: tcpPort, on: loop, group, group == nil ? 0 : place)
            }
            switch result {
            case .success(let port): opened.append(port)
            case .failure(let error):
                for other in opened { await perform(on: other.port.loop) { other.port.value.close() } }
                for loop in loops { loop.shutdown() }
                if let port = numbers.first, error.message.contains(String(cString: strerror(EACCES))) {
                    throw HTTPListener.privileged(port: Int(port))
                }
                throw RoomError(error.code == "transport.port-busy" ? .portInUse : .listenFailed, error.message)
            }
        }
        guard var addresses = opened.first?.addresses, let last = opened.last else { return nil }
        addresses.ports = addresses.ports.lowerBound...last.addresses.ports.lowerBound
        return (opened.map(\.port), addresses)
    }

    private typealias OpenedPort = (port: LoopBound<MediaPort>, addresses: MediaAddresses)

    private static func perform<Value: Sendable>(
        on loop: EventLoop, _ work: @escaping @Sendable () -> Value
    ) async -> Value {
        await withCheckedContinuation { continuation in
            let isAccepted = loop.execute { continuation.resume(returning: work()) }
            precondition(isAccepted, "a new loop accepts work")
        }
    }

    /// Opens the first of these ports that is free. On the loop.
    private static func open(
        _ numbers: [UInt16], at address: String, _ configuration: Configuration, tcpPort: UInt16?, on loop: EventLoop,
        _ group: PortGroup?, _ place: Int
    ) -> Result<OpenedPort, TransportError> {
        var failure: TransportError?
        for number in numbers {
            if let failure, failure.code != "transport.port-busy" { break }
            do throws(TransportError) {
                let port = try MediaPort(
                    loop: loop, address: address, port: number, tcpPort: tcpPort,
                    publicAddresses: configuration.publicAddresses, group: group, place: place)
                let isLoopback = isLoopback(address)
                let buffers = port.buffers
                return .success(
                    (
                        LoopBound(port, loop: loop),
                        MediaAddresses(
                            ports: Int(port.number)...Int(port.number),
                            busyPort: failure == nil ? nil : numbers.first.map { Int($0) },
                            addresses: port.addresses(within: .anyButLoopback), tcpPort: port.tcpNumber.map { Int($0) },
                            isPublic: isLoopback || port.isPublic,
                            buffer: (min(buffers.receive, buffers.send), buffers.wanted))
                    ))
            } catch {
                failure = error
            }
        }
        return .failure(failure ?? TransportError(code: "transport.no-address", message: "No UDP port is given."))
    }
}
