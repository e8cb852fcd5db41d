package import RoomProtocol

extension RoomConnection {
    /// Subscribes to a video stream, and passes its packets to the sinks. Calls `then` when the server has replied, also after
    /// another `join`, or when the stream or the connection has ended.
    ///
    /// - Parameter view: what the server chooses the stream's layer by.
    package func subscribe(
        _ id: Int, view: StreamView = StreamView(), to makeSink: @escaping SinkSource,
        then: @escaping (Result<Void, RoomError>) -> Void
    ) {
        do throws(RoomError) {
            try requireSubscribable(id)
            try view.validate()
        } catch {
            return then(.failure(error))
        }
        subscriptionsBegun += 1
        let subscription = Subscription(number: subscriptionsBegun, makeSink: makeSink, view: view)
        subscriptions[id] = subscription
        request(subscription, of: id, then: then)
    }

    /// Asks the server for a subscription.
    ///
    /// - Parameter then: of the application's call. Nil if that has succeeded; then an event reports a failure.
    private func request(_ subscription: Subscription, of id: Int, then: ((Result<Void, RoomError>) -> Void)?) {
        // The reply is handled before the next message, so the first packets find their sink.
        request(.subscribe(ViewOfStream(stream: id, view: subscription.view))) { [weak self] result in
            guard let self else { return }
            let isWanted = state == .connected && subscriptions[id]?.number == subscription.number
            // The client asks again when it has joined again.
            if isWanted, isBetweenJoins, case .failure(let error) = result, error.code == .connectionLost {
                subscriptions[id]?.waiting = then
                return
            }
            let outcome = subscribed(id, subscription.number, result)
            if let then { return then(outcome) }
            guard isWanted, case .failure(let error) = outcome, let (participant, _) = stream(id) else { return }
            onEvent(.subscriptionEnded(participant: participant, stream: id, error))
        }
    }

    /// Asks for a subscription of the former participation.
    func subscribeAgain(_ id: Int) {
        guard let subscription = subscriptions[id] else { return }
        // The server tells it again.
        qualityChanged(StreamQuality(stream: id))
        subscriptions[id]?.waiting = nil
        request(subscription, of: id, then: subscription.waiting)
    }

    /// - Parameter result: for a call that waits until the client has joined again
    func removeSubscription(_ id: Int, _ result: Result<Void, RoomError>) {
        subscriptions.removeValue(forKey: id)?.waiting?(result)
    }

    /// Fails the calls that wait until the client has joined again.
    func failWaitingSubscriptions(_ error: RoomError) {
        for id in subscriptions.keys.sorted() where subscriptions[id]?.waiting != nil {
            removeSubscription(id, .failure(error))
        }
    }

    /// Sets what the server chooses the layer of a subscribed stream by. Calls `then` when the server has replied.
    package func setView(_ view: StreamView, of id: Int, then: @escaping (Result<Void, RoomError>) -> Void) {
        guard state == .connected else { return then(.failure(Self.notConnected(id))) }
        guard let number = subscriptions[id]?.number else {
            return then(.failure(RoomError(.notSubscribed, "Video \(id) is not subscribed.")))
        }
        do throws(RoomError) {
            try view.validate()
        } catch {
            return then(.failure(error))
        }
        subscriptions[id]?.request(view)
        // The server says nothing about a video that is paused, and begins again afterwards.
        if view.isPaused { qualityChanged(StreamQuality(stream: id)) }
        request(.setView(ViewOfStream(stream: id, view: view))) { [weak self] result in
            guard let self else { return then(result.map { _ in }) }
            let outcome = viewSet(result)
            if subscriptions[id]?.number == number { subscriptions[id]?.replied(to: view, outcome) }
            then(outcome)
        }
    }

    private func viewSet(_ result: Result<ServerMessage, RoomError>) -> Result<Void, RoomError> {
        switch result {
        case .success(.viewSet), .failure: settled(result)
        case .success:
            .failure(
                RoomError(
                    .viewReplyInvalid, "The server's reply to 'setView' has the wrong type. Check its version."))
        }
    }

    /// Ends a subscription. Calls `then` when the server has replied.
    package func unsubscribe(_ id: Int, then: @escaping (Result<Void, RoomError>) -> Void) {
        guard state == .connected else { return then(.failure(Self.notConnected(id))) }
        guard subscriptions[id] != nil else {
            return then(.failure(RoomError(.notSubscribed, "Video \(id) is not subscribed.")))
        }
        // The client does not subscribe again when it has joined.
        if isBetweenJoins {
            removeSubscription(id, .success(()))
            return then(.success(()))
        }
        let request = request(.unsubscribe(StreamReference(stream: id))) { [weak self] result in
            then(self?.settled(result) ?? result.map { _ in })
        }
        // Otherwise the server goes on, and counts the receiver.
        guard request != nil else { return }
        removeSubscription(id, .success(()))
        down?.release(stream: id)
    }

    /// Requests a keyframe of a stream that a receiver carries. Does nothing for other streams.
    package func requestKeyframe(of stream: Int) { down?.requestKeyframe(of: stream) }

    private static func notConnected(_ id: Int) -> RoomError {
        RoomError(
            .downSessionReleased, "No room is connected. Join a room before you subscribe to video \(id).")
    }

    static func streamEnded(_ id: Int) -> RoomError {
        RoomError(.noSuchStream, "The publisher of video \(id) ended it.")
    }

    private func requireSubscribable(_ id: Int) throws(RoomError) {
        guard state == .connected else { throw Self.notConnected(id) }
        guard let (_, info) = stream(id), info.media == .video else {
            throw RoomError(.noSuchStream, "No participant publishes video \(id).")
        }
        guard Codec(rawValue: info.codec) != nil else {
            throw RoomError(
                .receiverUnavailable,
                "Video \(id) uses the codec \(info.codec), which this version cannot decode.")
        }
        guard subscriptions[id] == nil else {
            throw RoomError(.alreadySubscribed, "Video \(id) is already subscribed.")
        }
        if let maximumReceivers, subscriptions.count >= maximumReceivers {
            throw RoomError(
                .receiversExhausted,
                "All \(maximumReceivers) video receivers are in use. Unsubscribe from another video first.")
        }
    }

    /// Reports that the server grants fewer receivers than this client has asked for, unless it has granted as many before.
    func reportFewerReceivers() {
        defer { reportedReceivers = maximumReceivers }
        guard let maximumReceivers, maximumReceivers < options.receivers.maximum,
            maximumReceivers != reportedReceivers
        else { return }
        onEvent(
            .problem(
                RoomError(
                    .settingInvalid,
                    "The server lets this client receive \(maximumReceivers) videos at a time, and it asks for "
                        + "\(options.receivers.maximum). Ask for \(maximumReceivers) at most.")))
    }

    /// - Parameter number: of the subscription, which an unsubscription may have ended meanwhile, and another one followed
    private func subscribed(
        _ id: Int, _ number: Int, _ result: Result<ServerMessage, RoomError>
    ) -> Result<Void, RoomError> {
        let problem: RoomError
        switch result {
        case .success(.subscribed(let body)):
            if stream(id) != nil, subscriptions[id]?.number != number { return .success(()) }
            if assignVideo(id, to: body.mid, from: body.firstSequenceNumber) { return .success(()) }
            // The server counts it, and would refuse another subscription.
            if stream(id) != nil { request(.unsubscribe(StreamReference(stream: id))) { _ in } }
            problem =
                stream(id) == nil
                ? Self.streamEnded(id)
                : RoomError(
                    .receiverUnavailable,
                    "The server chose the receiver '\(body.mid.prefix(32))' for video \(id), which does not exist or cannot carry "
                        + "its codec.")
        case .success:
            problem = RoomError(
                .enterResponseInvalid,
                "The server's reply to 'subscribe' has the wrong type. Check its version.")
        case .failure(let error): problem = error
        }
        if subscriptions[id]?.number == number { subscriptions[id] = nil }
        return .failure(problem)
    }
}

/// A video that the application wants, for as long as it wants it. It outlasts the connections to the server.
struct Subscription {
    /// Unique in the connection.
    let number: Int
    let makeSink: SinkSource
    /// The newest one. The server may not have it yet.
    private(set) var view: StreamView
    /// The last one that the server has accepted.
    private var accepted: StreamView
    private var pendingViews = 0
    /// The application's call, which waits until the client has joined again.
    var waiting: ((Result<Void, RoomError>) -> Void)?
    /// Why it arrives worse than it could be, as the server says.
    var limitation: RoomStatistics.Received.Limitation?

    init(number: Int, makeSink: @escaping SinkSource, view: StreamView) {
        (self.number, self.makeSink, self.view, accepted) = (number, makeSink, view, view)
    }

    /// The server is asked for another view.
    mutating func request(_ view: StreamView) {
        self.view = view
        pendingViews += 1
    }

    /// The server has replied, in the order of the requests. If it refuses the last view, the one before stays.
    mutating func replied(to view: StreamView, _ result: Result<Void, RoomError>) {
        pendingViews -= 1
        if case .success = result { accepted = view }
        if pendingViews == 0 { self.view = accepted }
    }
}
