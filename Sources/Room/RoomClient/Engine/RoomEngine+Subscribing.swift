package import RoomProtocol

extension RoomEngine {
    /// Asks for a video stream; its pictures go to the fanout. `then` is called on the loop.
    package nonisolated func subscribe(
        _ id: Int, to fanout: FrameFanout, then: @escaping @Sendable (Result<Void, RoomError>) -> Void
    ) {
        subscribe(id, to: .frames(fanout), then: then)
    }

    /// Asks for a video stream, for decoding by the engine or its packets. `then` is called on the loop.
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
            // This runs before the next message is looked at: the first packets find their pipeline.
            engine.request(.subscribe(StreamReference(stream: id))) { result in
                let outcome = engine.assumeIsolated { $0.subscribed(id, result) }
                then(outcome)
            }
        }
        if !isTaken { then(.failure(Self.overloaded)) }
    }

    /// Ends a subscription. `then` is called on the loop.
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
        .roomReleased, "The process is so far behind with its rooms that it takes no more requests.")

    private static func notConnected(_ id: Int) -> RoomError {
        RoomError(
            .downSessionReleased, "There is no connection to a room in which video \(id) could be subscribed or not.")
    }

    func requireSubscribable(_ id: Int) throws(RoomError) {
        guard state == .connected else { throw Self.notConnected(id) }
        guard let (_, info) = stream(id), info.media == .video else {
            throw RoomError(.noSuchStream, "Nobody in the room publishes a video \(id).")
        }
        guard Codec(rawValue: info.codec) != nil else {
            throw RoomError(.noSuchStream, "Video \(id) is coded as \(info.codec), which this version does not decode.")
        }
        guard subscriptions[id] == nil else {
            throw RoomError(.alreadySubscribed, "Video \(id) is subscribed already.")
        }
    }

    func subscribed(_ id: Int, _ result: Result<ServerMessage, RoomError>) -> Result<Void, RoomError> {
        let problem: RoomError
        switch result {
        case .success(.subscribed(let body)):
            if assignVideo(id, to: body.mid, from: body.firstSequenceNumber) { return .success(()) }
            problem =
                stream(id) == nil
                ? RoomError(.noSuchStream, "Nobody in the room publishes the video \(id) any more.")
                : RoomError(.receiversExhausted, "The server chose receiver '\(body.mid)', which there is not.")
        case .success:
            problem = RoomError(.enterResponseInvalid, "The server answered 'subscribe' with something else.")
        case .failure(let error): problem = error
        }
        subscriptions[id] = nil
        return .failure(problem)
    }
}
