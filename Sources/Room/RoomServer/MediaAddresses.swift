internal import PeerIO
internal import RTP
internal import RoomProtocol

extension RoomServer {
    /// Where clients send media.
    package struct MediaAddresses: Sendable {
        package let port: Int
        package let addresses: [String]
        /// Whether clients of other networks may reach one of the addresses.
        package let isPublic: Bool
        /// The smaller of the socket's two buffers, and the size that a busy server needs, in bytes.
        package let buffer: (allowed: Int, wanted: Int)
    }

    /// Opens the port of all media, with a socket for each loop.
    static func openMediaPorts(
        _ configuration: Configuration, at address: String, on loops: [EventLoop]
    ) async throws(RoomError) -> (ports: [LoopBound<MediaPort>], addresses: MediaAddresses)? {
        guard configuration.ice == .lite else { return nil }
        let group = PortGroup(loops.count)
        // Another server may have the number that signalling uses here.
        var numbers: [UInt16] = configuration.mediaPort.map { [$0] } ?? [UInt16(clamping: configuration.port), 0]
        var ports: [LoopBound<MediaPort>] = []
        var addresses: MediaAddresses?
        for (place, loop) in loops.enumerated() {
            let opened = await perform(on: loop) { [numbers] in
                open(numbers, at: address, configuration, on: loop, group, place)
            }
            switch opened {
            case .success(let port):
                ports.append(port.port)
                addresses = addresses ?? port.addresses
                // The other loops share what the first one found.
                numbers = [UInt16(port.addresses.port)]
            case .failure(let error):
                for port in ports { await perform(on: port.loop) { port.value.close() } }
                for loop in loops { loop.shutdown() }
                throw RoomError(.listenFailed, error.message)
            }
        }
        return addresses.map { (ports, $0) }
    }

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
        _ numbers: [UInt16], at address: String, _ configuration: Configuration, on loop: EventLoop,
        _ group: PortGroup, _ place: Int
    ) -> Result<(port: LoopBound<MediaPort>, addresses: MediaAddresses), TransportError> {
        var failure: TransportError?
        for number in numbers {
            do throws(TransportError) {
                let port = try MediaPort(
                    loop: loop, address: address, port: number,
                    publicAddresses: configuration.publicAddresses, group: group, place: place)
                let isLoopback = address.hasPrefix("127.")
                let buffers = port.buffers
                return .success(
                    (
                        LoopBound(port, loop: loop),
                        MediaAddresses(
                            port: Int(port.number), addresses: port.addresses(within: .anyButLoopback),
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
