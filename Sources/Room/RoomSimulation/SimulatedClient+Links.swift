internal import ClientCore
internal import ICELite
internal import RTP
internal import RoomProtocol

/// The signalling connections of a client.
extension SimulatedClient {
    func link(to server: ServerConnection) -> SignallingLink {
        self.server = server
        let number = server.number
        return SignallingLink(
            remoteAddress: SimulatedServer.address(of: 0).host, localAddress: network,
            send: { [unowned self] text in deliverUp(.text(text), of: number) },
            close: { [unowned self] in deliverUp(.closed, of: number) },
            abandon: { [unowned self] in
                deliverUp(.broken, of: number)
                if self.server?.number == number { self.server = nil }
            })
    }

    /// Another TCP connection, whose SYN is sent at 0, 1 and 3 s, and its WebSocket.
    func openLink(_ then: @escaping (Result<OpenedLink, RoomError>) -> Void) {
        if let error = signInError { return then(.failure(error)) }
        tryLink([.seconds(1), .seconds(2), .seconds(2)], of: connections, then)
    }

    private func tryLink(
        _ pauses: [TimeInterval], of number: Int, _ then: @escaping (Result<OpenedLink, RoomError>) -> Void
    ) {
        guard !isDead, connections == number else { return }
        let unreachable = RoomError(.serverUnreachable, "The simulated server cannot be reached.")
        guard signallingUp.cutSince == nil, signallingDown.cutSince == nil else {
            guard let pause = pauses.first else { return then(.failure(unreachable)) }
            return simulation.after(pause) { [weak self] in self?.tryLink(Array(pauses.dropFirst()), of: number, then) }
        }
        simulation.after((signallingUp.delay + signallingDown.delay) * 2) { [weak self] in
            guard let self, !isDead, connections == number else { return }
            guard let server = simulation.server.process?.connect(self) else { return then(.failure(unreachable)) }
            for wire in [\SimulatedClient.signallingUp, \.signallingDown] { self[keyPath: wire].beginAnew() }
            guard let address = try? ServerAddress(SimulatedServer.address(of: 0).description) else { return }
            then(.success(OpenedLink(link: link(to: server), token: "simulated", address: address)))
        }
    }

    /// A message of the server without the lines of its description that offer feedback about the path.
    static func withoutPathFeedback(_ text: String) -> String {
        let lineEnd = "\\r\\n"
        let feedback = ["transport-cc", "transport-wide-cc", "goog-remb", "abs-send-time"]
        let lines = text.split(separator: lineEnd, omittingEmptySubsequences: false)
        return lines.filter { line in !feedback.contains { line.contains($0) } }.joined(separator: lineEnd)
    }
}

/// An error of an application's call.
public struct SimulatedClientError: Error, CustomStringConvertible {
    public let description: String

    init(_ description: String) { self.description = description }
}

extension Suspension {
    func finish(_ result: Result<Void, RoomError>) {
        switch result {
        case .success: resume()
        case .failure(let error): fail(SimulatedClientError(error.message))
        }
    }
}

extension SimulatedClient.RemoteStream {
    init(_ info: StreamInfo, of participant: String) {
        self.init(
            id: info.id, participant: participant, isVideo: info.media == .video, attributes: info.attributes)
        if case .waiting(let reason) = info.state { waiting = reason }
    }
}

extension NTPTime {
    /// The loop's time, from an arbitrary day on.
    init(simulatedAt time: MonotonicTime) {
        self.init(unixNanoseconds: 1_700_000_000_000_000_000 + time.nanoseconds)
    }
}
