import Dispatch
import MediaGraph
import PeerLoop
import RoomProtocol
import Synchronization

@testable import ConnectLiveSDK
@testable import RoomClient

/// The connection of a room, without a server: a test answers the calls, and sends the events.
final class ScriptedLink: RoomLink {
    enum Call: Sendable, Equatable {
        case connect(String)
        case disconnect
        case publish
        case setStream(Int, StreamChange)
        case unpublish([Int])
        case subscribe(Int, StreamView)
        case setView(Int, StreamView)
        case unsubscribe(Int)
        case send(SendMessage)
        case restartICE
        case setMuted(Bool)
        case setVolume(Double, isMuted: Bool, Int)
    }

    enum Answer: Sendable {
        case success
        case failure(RoomError)
        /// When the test calls `answerNext`.
        case later
    }

    private struct State {
        var calls: [Call] = []
        var onEvent: @Sendable (RoomEvent) -> Void = { _ in }
        var answers: @Sendable (Call) -> Answer = { _ in .success }
        var waiting: [@Sendable (Result<Void, RoomError>) -> Void] = []
        var published = 0
        var statistics = RoomStatistics()
        var attributes: [(video: StreamAttributes, audio: StreamAttributes)] = []
        var recorded: [Bool] = []
    }

    private let state = Mutex(State())

    /// In order, without those for statistics.
    var calls: [Call] { state.withLock { $0.calls } }

    /// Whether the media is to be recorded, in each call of `publish`.
    var recorded: [Bool] { state.withLock { $0.recorded } }
    /// The attributes of the media in each call of `publish`.
    var publishedAttributes: [(video: StreamAttributes, audio: StreamAttributes)] { state.withLock { $0.attributes } }

    /// How the calls from now on are answered. All succeed at once by default.
    func answer(_ answers: @escaping @Sendable (Call) -> Answer) { state.withLock { $0.answers = answers } }

    /// Answers the call that has waited longest.
    func answerNext(with result: Result<Void, RoomError> = .success(())) {
        let then = state.withLock { $0.waiting.removeFirst() }
        then(result)
    }

    /// Answers the newest call that waits.
    func answerLast(with result: Result<Void, RoomError>) {
        let then = state.withLock { $0.waiting.removeLast() }
        then(result)
    }

    /// Reports an event to the room.
    func send(_ event: RoomEvent) { state.withLock { $0.onEvent }(event) }

    func setReceiver(_ onEvent: @escaping @Sendable (RoomEvent) -> Void) { state.withLock { $0.onEvent = onEvent } }

    private func add(_ call: Call, _ then: (@Sendable (Result<Void, RoomError>) -> Void)? = nil) {
        let result = state.withLock { state -> Result<Void, RoomError>? in
            state.calls.append(call)
            switch state.answers(call) {
            case .success: return .success(())
            case .failure(let error): return .failure(error)
            case .later:
                if let then { state.waiting.append(then) }
                return nil
            }
        }
        if let result { then?(result) }
    }

    // MARK: - RoomLink

    func connect(to room: RoomName, token: @escaping RoomEngine.TokenSource) { add(.connect("\(room)")) }

    func disconnect() { add(.disconnect) }

    /// Without starting the capture. Each media gets a video and an audio, numbered from 1.
    func publish(
        _ capture: LocalCapture, video: StreamAttributes, audio: StreamAttributes, isRecorded: Bool,
        isWanted: @escaping @Sendable () -> Bool
    ) async throws(RoomError) -> [PublishedStream] {
        state.withLock { state in
            state.attributes.append((video, audio))
            state.recorded.append(isRecorded)
        }
        let result = await withCheckedContinuation { continuation in
            add(.publish) { continuation.resume(returning: $0) }
        }
        try result.get()
        guard isWanted() else { throw RoomError(.outOfOrder, "The local media was unpublished while it started.") }
        let first = state.withLock { state in
            state.published += 2
            return state.published - 1
        }
        return [PublishedStream(id: first, isVideo: true), PublishedStream(id: first + 1, isVideo: false)]
    }

    func setStream(_ id: Int, _ change: StreamChange) -> Bool {
        add(.setStream(id, change))
        if case .failure = state.withLock({ $0.answers })(.setStream(id, change)) { return false }
        return true
    }

    func unpublish(_ streams: [Int], then: @escaping @Sendable (Result<Void, RoomError>) -> Void) {
        add(.unpublish(streams), then)
    }

    func subscribe(
        _ id: Int, view: StreamView, to fanout: FrameFanout,
        then: @escaping @Sendable (Result<Void, RoomError>) -> Void
    ) {
        add(.subscribe(id, view), then)
    }

    func setView(_ view: StreamView, of id: Int, then: @escaping @Sendable (Result<Void, RoomError>) -> Void) {
        add(.setView(id, view), then)
    }

    func unsubscribe(_ id: Int, then: @escaping @Sendable (Result<Void, RoomError>) -> Void) {
        add(.unsubscribe(id), then)
    }

    func send(_ message: SendMessage, then: @escaping @Sendable (Result<Void, RoomError>) -> Void) {
        add(.send(message), then)
    }

    func restartICE() { add(.restartICE) }

    func setMuted(_ isMuted: Bool) { add(.setMuted(isMuted)) }

    func setVolume(_ factor: Double, isMuted: Bool, of stream: Int) {
        add(.setVolume(factor, isMuted: isMuted, stream))
    }

    /// Events of this link are over when `send` returns.
    func afterEvents(_ body: @escaping @Sendable () -> Void) { body() }

    var relays: [ICEServer] { [] }

    var statistics: RoomStatistics {
        get { state.withLock { $0.statistics } }
        set { state.withLock { $0.statistics = newValue } }
    }
}

/// A room on a scripted link. Its callbacks run on a queue of the test.
final class ScriptedRoom: Sendable {
    let link = ScriptedLink()
    let listener = Listener()
    let room: any Room
    private let queue = DispatchQueue(label: "callbacks")

    init(authentication: Authentication = .shared, screenShare: ScreenShareOptions = ScreenShareOptions()) {
        room = RoomSession(
            delegate: listener, callbacks: CallbackQueue(main: queue) { _ in }, authentication: authentication,
            screenShare: screenShare
        ) { [link] onEvent in
            link.setReceiver(onEvent)
            return link
        }
    }

    /// The names of the events so far. Waits for those that are queued.
    var heard: [String] {
        queue.sync {}
        return listener.names
    }

    /// The codes of the errors so far that did not end the room.
    var errors: [Int] { codes(isCritical: false) }
    /// Those that did.
    var criticalErrors: [Int] { codes(isCritical: true) }

    private func codes(isCritical: Bool) -> [Int] {
        queue.sync {}
        return listener.events.compactMap { if case .error(let code, _, isCritical) = $0 { code } else { nil } }
    }

    /// Joins a room with these participants. `onConnected` has been called when it returns.
    func join(with others: [ParticipantInfo] = []) {
        room.connect(roomId: "scripted")
        link.send(.connected(participant: "me", others: others))
        queue.sync {}
    }

    /// Whether the room has the media as published, so that it tells changes.
    func isPublished(_ media: any LocalMedia) -> Bool {
        guard let session = room as? RoomSession else { return false }
        return session.state.withLock { state in
            state.publications.contains {
                guard $0.media === media, case .published = $0.phase else { return false }
                return true
            }
        }
    }

    /// Lets callbacks wait until the function returns.
    func holdingCallbacks<Value>(_ body: () throws -> Value) rethrows -> Value {
        queue.suspend()
        defer { queue.resume() }
        return try body()
    }
}
