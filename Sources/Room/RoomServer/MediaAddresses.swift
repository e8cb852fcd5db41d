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

    /// Opens the port of all media.
    static func openMediaPort(
        _ configuration: Configuration, at address: String, on loop: EventLoop
    ) async throws(RoomError) -> (port: LoopBound<MediaPort>, addresses: MediaAddresses)? {
        guard configuration.ice == .lite else { return nil }
        // Another server may have the number that signalling uses here.
        let numbers: [UInt16] = configuration.mediaPort.map { [$0] } ?? [UInt16(clamping: configuration.port), 0]
        let opened = await withCheckedContinuation { continuation in
            let isAccepted = loop.execute {
                continuation.resume(returning: Self.open(numbers, at: address, configuration, on: loop))
            }
            precondition(isAccepted, "a new loop accepts work")
        }
        switch opened {
        case .success(let port): return port
        case .failure(let error):
            loop.shutdown()
            throw RoomError(.listenFailed, error.message)
        }
    }

    /// Opens the first of these ports that is free. On the loop.
    private static func open(
        _ numbers: [UInt16], at address: String, _ configuration: Configuration, on loop: EventLoop
    ) -> Result<(port: LoopBound<MediaPort>, addresses: MediaAddresses), TransportError> {
        var failure: TransportError?
        for number in numbers {
            do throws(TransportError) {
                let port = try MediaPort(
                    loop: loop, address: address, port: number,
                    publicAddresses: configuration.publicAddresses)
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
