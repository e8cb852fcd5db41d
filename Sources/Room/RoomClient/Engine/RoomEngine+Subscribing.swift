package import RoomProtocol

extension RoomEngine {
    /// Subscribes to a video stream and passes its frames to the fanout. Calls `then` on the loop.
    package nonisolated func subscribe(
        _ id: Int, to fanout: FrameFanout, then: @escaping @Sendable (Result<Void, RoomError>) -> Void
    ) {
        subscribe(id, to: .frames(fanout), then: then)
    }

    /// Subscribes to a video stream, as decoded frames or packets. Calls `then` on the loop.
    package nonisolated func subscribe(
        _ id: Int, to destination: StreamDestination, then: @escaping @Sendable (Result<Void, RoomError>) -> Void
    ) {
        let isTaken = post { engine in
            do throws(RoomError) {
                try engine.requireSubscribable(id)
            } catch {
                return then(.failure(error))
            }
            engine.subscriptions[id] = destination
            // The reply is handled before the next message, so the first packets find their pipeline.
            engine.request(.subscribe(StreamReference(stream: id))) { result in
                let outcome = engine.assumeIsolated { $0.subscribed(id, result) }
                then(outcome)
            }
        }
        if !isTaken { then(.failure(Self.overloaded)) }
    }

    /// Ends a subscription. Calls `then` on the loop.
    package nonisolated func unsubscribe(_ id: Int, then: @escaping @Sendable (Result<Void, RoomError>) -> Void) {
        let isTaken = post { engine in
            guard engine.state == .connected else { return then(.failure(Self.notConnected(id))) }
            guard engine.subscriptions.removeValue(forKey: id) != nil else {
                return then(.failure(RoomError(.notSubscribed, "Video \(id) is not subscribed.")))
            }
            engine.down?.release(stream: id)
            engine.request(.unsubscribe(StreamReference(stream: id))) { then($0.map { _ in }) }
        }
        if !isTaken { then(.failure(Self.overloaded)) }
    }

    private static let overloaded = RoomError(
        .roomReleased, "The process is overloaded: too many room requests wait. Send fewer requests at a time.")

    private static func notConnected(_ id: Int) -> RoomError {
        RoomError(
            .downSessionReleased, "No room is connected. Join a room before you subscribe to video \(id).")
    }

    func requireSubscribable(_ id: Int) throws(RoomError) {
        guard state == .connected else { throw Self.notConnected(id) }
        guard let (_, info) = stream(id), info.media == .video else {
            throw RoomError(.noSuchStream, "No participant publishes video \(id).")
        }
        guard Codec(rawValue: info.codec) != nil else {
            throw RoomError(
                .noSuchStream,
                "Video \(id) uses the codec \(info.codec), which this version cannot decode.")
        }
        guard subscriptions[id] == nil else {
            throw RoomError(.alreadySubscribed, "Video \(id) is already subscribed.")
        }
    }

    func subscribed(_ id: Int, _ result: Result<ServerMessage, RoomError>) -> Result<Void, RoomError> {
        let problem: RoomError
        switch result {
        case .success(.subscribed(let body)):
            if assignVideo(id, to: body.mid, from: body.firstSequenceNumber) { return .success(()) }
            problem =
                stream(id) == nil
                ? RoomError(.noSuchStream, "The publisher of video \(id) ended it.")
                : RoomError(.receiversExhausted, "The server chose the receiver '\(body.mid)', which does not exist.")
        case .success:
            problem = RoomError(
                .enterResponseInvalid,
                "The server's reply to 'subscribe' has the wrong type. Check its version.")
        case .failure(let error): problem = error
        }
        subscriptions[id] = nil
        return .failure(problem)
    }
}
