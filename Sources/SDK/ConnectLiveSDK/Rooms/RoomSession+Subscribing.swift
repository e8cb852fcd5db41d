internal import MediaGraph
internal import RoomClient
internal import RoomProtocol

extension RoomSession {
    func subscribe(videoId: Int, completion: @escaping (Result<Void, any Error>) -> Void) {
        let callback = Callback(completion, among: delegate)
        subscribe(videoId) { callback($0.sdkResult) }
    }

    func subscribe(videoId: Int) async -> Result<Void, any Error> {
        await withCheckedContinuation { continuation in
            subscribe(videoId) { continuation.resume(returning: $0.sdkResult) }
        }
    }

    func subscribe(videoIds: [Int]) {
        guard !videoIds.isEmpty else {
            return problem(
                RoomError(.nothingToSubscribe, "The list of videos to subscribe to is empty. Pass their ids."))
        }
        for id in videoIds { subscribe(id) { [weak self] in self?.reportFailure($0) } }
    }

    private func subscribe(_ id: Int, then: @escaping @Sendable (Result<Void, RoomError>) -> Void) {
        guard isConnected else { return then(.failure(Self.notConnected(id))) }
        guard let video = video(id) else { return then(.failure(Self.missing(id))) }
        // A profile that is set from now on reaches the server behind the subscription.
        let number = video.beginView { [weak self] view, then in
            guard let self else { return then(.failure(RoomError(.roomReleased, "The room was released."))) }
            link.setView(view, of: id, then: then)
        }
        link.subscribe(id, view: StreamView(), to: video.outlet.fanout) { result in
            switch result {
            case .success: video.setSubscribed(true)
            // An earlier subscription, or one that another thread began at the same time, goes on.
            case .failure(let error):
                if let number, error.code != .alreadySubscribed { video.resetView(number) }
            }
            then(result.mapError { $0.failing(.subscribe) })
        }
    }

    private static func notConnected(_ id: Int) -> RoomError {
        RoomError(.downSessionReleased, "The room is not connected, so it has no video \(id). Connect first.")
    }

    private static func missing(_ id: Int) -> RoomError {
        RoomError(.noSuchStream, "No participant publishes video \(id).")
    }

    func unsubscribe(videoId: Int, completion: @escaping (Result<Void, any Error>) -> Void) {
        let callback = Callback(completion, among: delegate)
        unsubscribe(videoId) { callback($0.sdkResult) }
    }

    func unsubscribe(videoId: Int) async -> Result<Void, any Error> {
        await withCheckedContinuation { continuation in
            unsubscribe(videoId) { continuation.resume(returning: $0.sdkResult) }
        }
    }

    func unsubscribe(videoIds: [Int]) {
        guard !videoIds.isEmpty else {
            return problem(RoomError(.nothingToUnsubscribe, "The list of videos to end is empty. Pass their ids."))
        }
        for id in videoIds { unsubscribe(id) { [weak self] in self?.reportFailure($0) } }
    }

    private func unsubscribe(_ id: Int, then: @escaping @Sendable (Result<Void, RoomError>) -> Void) {
        guard isConnected else { return then(.failure(Self.notConnected(id))) }
        guard let video = video(id) else { return then(.failure(Self.missing(id))) }
        let number = video.endView()
        link.unsubscribe(id) { result in
            let goesOn =
                switch result {
                case .success: false
                case .failure(let error): error.code != .notSubscribed
                }
            if case .success = result { video.setSubscribed(false) }
            if let number { video.viewEnded(number, goesOn: goesOn) }
            then(result.mapError { $0.failing(.unsubscribe) })
        }
    }

    /// The server did not grant it again, when the room was joined again.
    func subscriptionEnded(_ id: Int, of participant: String, _ error: RoomError) {
        if let video = remotes[participant]?.videoStreams[id] {
            video.setSubscribed(false)
            video.resetView()
        }
        problem(error.failing(.subscribe))
    }

    private func reportFailure(_ result: Result<Void, RoomError>) {
        if case .failure(let error) = result { problem(error) }
    }

    private func video(_ id: Int) -> RemoteVideoStream? {
        remotes.all.values.firstNonNil { $0.videoStreams[id] }
    }
}

extension Result<Void, RoomError> {
    var sdkResult: Result<Void, any Error> { mapError(ConnectLiveError.init) }
}
