internal import RoomProtocol
internal import Synchronization

/// The profile, the priority and the pause of a remote video, which the server is told while the video is subscribed.
final class ViewSettings: Sendable {
    /// Tells the server, and calls the second argument with its reply.
    typealias Tell = @Sendable (StreamView, _ then: @escaping @Sendable (Result<Void, RoomError>) -> Void) -> Void

    private struct Shown: Equatable {
        var profile = VideoProfileType.empty
        var priority = 1.0
        var isPaused = false

        var view: StreamView {
            var view = StreamView(priority: priority == 1 ? nil : priority, isPaused: isPaused)
            view.profile =
                switch profile {
                case .empty: nil
                case .low: .low
                case .mid: .mid
                case .high: .high
                }
            return view
        }
    }

    private struct Subscription {
        let number: Int
        let tell: Tell
        /// The newest, which the server may not have yet.
        var shown = Shown()
        /// The last that the server has accepted.
        var accepted = Shown()
        /// How many changes wait for the server's reply.
        var waiting = 0

        var isUnchanged: Bool { shown == Shown() && waiting == 0 }

        /// The server has replied, in the order of the changes. If it refuses the last one, the one before stays.
        mutating func replied(to shown: Shown, _ result: Result<Void, RoomError>) {
            waiting -= 1
            if case .success = result { accepted = shown }
            if waiting == 0 { self.shown = accepted }
        }
    }

    private struct State {
        var current: Subscription?
        /// Those whose ends are on their way to the server.
        var ending: [Subscription] = []
        /// How many subscriptions have begun.
        var begun = 0
        var hasEnded = false
    }

    private let id: Int
    private let hasLayers: Bool
    private let reportError: @Sendable (RoomError) -> Void
    private let state = Mutex(State())
    /// Held while a change is posted, so that the server gets changes of several threads in their order.
    private let order = Mutex(())

    /// - Parameter report: called with failures of calls that do not wait
    init(of info: StreamInfo, report: @escaping @Sendable (RoomError) -> Void) {
        (id, hasLayers, reportError) = (info.id, info.layers > 1, report)
    }

    private var shown: Shown { state.withLock { $0.current?.shown ?? Shown() } }

    var isPaused: Bool { shown.isPaused }

    var priority: Double { shown.priority }

    var profile: VideoProfileType {
        let type = shown.profile
        return type == .empty && hasLayers ? .high : type
    }

    /// Sets how the server is told, if no subscription has. Returns the number of the subscription then, for `reset`.
    func begin(_ tell: @escaping Tell) -> Int? {
        state.withLock { state in
            guard state.current == nil else { return nil }
            state.begun += 1
            state.current = Subscription(number: state.begun, tell: tell)
            return state.begun
        }
    }

    /// Ends the telling. The next subscription begins with the defaults.
    ///
    /// - Parameter number: of a subscription that failed, after which another one may have begun. Nil for any.
    func reset(_ number: Int? = nil) {
        state.withLock { state in
            if number ?? state.current?.number == state.current?.number { state.current = nil }
        }
    }

    /// Ends the telling, as `reset`, unless the subscription goes on after all. Returns its number, for `ended`.
    func end() -> Int? {
        state.withLock { state in
            guard let ending = state.current else { return nil }
            state.current = nil
            state.ending.append(ending)
            return ending.number
        }
    }

    /// The end of a subscription has reached the server. Otherwise it goes on with its settings. One that was to follow it has been
    /// refused then, and its changes have reached the former.
    func ended(_ number: Int, goesOn: Bool) {
        state.withLock { state in
            guard let index = state.ending.firstIndex(where: { $0.number == number }) else { return }
            let former = state.ending.remove(at: index)
            if goesOn, state.current?.isUnchanged ?? true { state.current = former }
        }
    }

    func roomEnded() { state.withLock { $0 = State(hasEnded: true) } }

    /// - Parameter then: called with the server's reply. By default, a failure is reported
    func setPaused(_ isPaused: Bool, then: (@Sendable (Result<Void, RoomError>) -> Void)? = nil) throws {
        try change(.pauseFailed, then) { $0.isPaused = isPaused }
    }

    func setProfile(_ type: VideoProfileType, then: (@Sendable (Result<Void, RoomError>) -> Void)? = nil) throws {
        guard hasLayers || type == .empty else {
            throw ConnectLiveError(
                RoomError(.profileUnsupported, "Video \(id) has one layer, so it has no other profile than 'empty'."))
        }
        try change(.profileFailed, then) { $0.profile = type }
    }

    func setPriority(_ priority: Double, then: (@Sendable (Result<Void, RoomError>) -> Void)? = nil) throws {
        guard StreamView.priorities.contains(priority) else {
            throw ConnectLiveError(
                RoomError(.profileFailed, "Priority \(priority) of video \(id) is out of range. Set 0.01 to 100."))
        }
        try change(.profileFailed, then) { $0.priority = priority }
    }

    /// Reports the error of a call that does not throw.
    func report(_ body: () throws -> Void) {
        do {
            try body()
        } catch let error as ConnectLiveError {
            reportError(RoomError(.init(error.code), error.localizedDescription))
        } catch {
            preconditionFailure("an error of another type")
        }
    }

    /// Waits for the reply to a call.
    func run(_ call: (@escaping @Sendable (Result<Void, RoomError>) -> Void) throws -> Void) async throws {
        let result = await withCheckedContinuation {
            (continuation: CheckedContinuation<Result<Void, any Error>, Never>) in
            do {
                try call { continuation.resume(returning: $0.sdkResult) }
            } catch {
                continuation.resume(returning: .failure(error))
            }
        }
        try result.get()
    }

    private func change(
        _ code: RoomError.Code, _ then: (@Sendable (Result<Void, RoomError>) -> Void)?, _ edit: (inout Shown) -> Void
    ) throws {
        let then = then ?? { [reportError] in if case .failure(let error) = $0 { reportError(error) } }
        let isOther = try order.withLock { _ throws(ConnectLiveError) in try tell(code, then, edit) }
        if !isOther { then(.success(())) }
    }

    /// Returns false if nothing has changed.
    private func tell(
        _ code: RoomError.Code, _ then: @escaping @Sendable (Result<Void, RoomError>) -> Void,
        _ edit: (inout Shown) -> Void
    ) throws(ConnectLiveError) -> Bool {
        let (subscription, isOther) = try state.withLock { state throws(ConnectLiveError) in
            guard !state.hasEnded else {
                throw ConnectLiveError(RoomError(.videoReleased, "The room of video \(id) has ended."))
            }
            guard var subscription = state.current else {
                throw ConnectLiveError(
                    RoomError(.notSubscribed, "Video \(id) is not subscribed. Subscribe before you change it."))
            }
            let before = subscription.shown
            edit(&subscription.shown)
            guard subscription.shown != before else { return (subscription, false) }
            subscription.waiting += 1
            state.current = subscription
            return (subscription, true)
        }
        guard isOther else { return false }
        let (number, shown) = (subscription.number, subscription.shown)
        subscription.tell(shown.view) { [self] result in
            replied(to: shown, of: number, result)
            then(
                result.mapError { error in
                    switch error.code {
                    case .roomReleased: RoomError(.videoReleased, error.message)
                    case .viewReplyInvalid: error
                    default: RoomError(code, "\(error)")
                    }
                })
        }
        return true
    }

    /// - Parameter number: of the subscription, which may have ended
    private func replied(to shown: Shown, of number: Int, _ result: Result<Void, RoomError>) {
        state.withLock { state in
            if state.current?.number == number { state.current?.replied(to: shown, result) }
            for index in state.ending.indices where state.ending[index].number == number {
                state.ending[index].replied(to: shown, result)
            }
        }
    }
}
