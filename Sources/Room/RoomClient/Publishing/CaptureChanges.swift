internal import RoomProtocol

/// The changes of local media in their order. Those that arrive while one is applied become one. If that fails, each is
/// tried alone.
///
/// A value without a pipeline, thread or lock. Its owner takes attempts with `next`, one at a time, and finishes each.
struct CaptureChanges {
    typealias Edit = @Sendable (inout MediaRequest) -> Void

    struct Change: Sendable {
        enum Purpose: Sendable {
            case edit
            case start
            /// A start for one more room.
            case publish
            /// Follows the views of the preview and the choices of the process. Does not start media that has ended or failed,
            /// and waits for devices that are away.
            case refresh
            case stop
        }

        var purpose: Purpose
        var edit: Edit = { _ in }
        /// Called once.
        let done: @Sendable (Result<Void, RoomError>) -> Void

        fileprivate var isStart: Bool { purpose == .start || purpose == .publish }
    }

    /// Changes that are applied together. A stop is always alone.
    struct Attempt {
        let changes: [Change]
        /// The request that the edits change.
        let base: MediaRequest
        /// Whether media is captured afterwards.
        let isCapturing: Bool

        /// Whether nobody has asked for a change of the request.
        var isRefresh: Bool { changes.allSatisfy { $0.purpose == .refresh } }
        /// Whether media that has ended or failed starts again.
        var mayLaunch: Bool { !isRefresh }
        var publishes: Bool { changes.contains { $0.purpose == .publish } }
        var edits: [Edit] { changes.map(\.edit) }
    }

    enum Outcome {
        case fulfilled
        /// A stop has ended the attempt. Its edits stay, as those of media that is not captured.
        case interrupted
        /// Nothing has changed.
        case refused(RoomError)
    }

    /// The newest request that was fulfilled.
    private(set) var request: MediaRequest
    private(set) var isCapturing = false
    /// Whether a stop ends the attempt in progress.
    private(set) var isCancelled = false
    private(set) var isBusy = false
    private var current: Attempt?
    /// The changes of an attempt that was refused as a whole.
    private var alone: [Change] = []
    private var waiting: [Change] = []

    static let stopped = RoomError(.outOfOrder, "This local media was stopped meanwhile. Start it again.")

    init(_ request: MediaRequest) { self.request = request }

    /// The edits that `request` does not include yet.
    var pending: [Edit] { ((current?.changes ?? []) + alone + waiting).map(\.edit) }

    /// Adds a change. Returns whether the owner has to begin to take attempts.
    mutating func add(_ change: Change) -> Bool {
        waiting.append(change)
        defer { isBusy = true }
        return !isBusy
    }

    /// Adds a stop, which ends the attempt in progress and comes before all that wait.
    ///
    /// - Returns: the starts that it refuses, and whether the owner has to begin to take attempts.
    mutating func stop(_ stop: Change) -> (refused: [Change], mustWork: Bool) {
        let refused = waiting.filter(\.isStart)
        waiting = [stop] + waiting.filter { !$0.isStart }
        isCancelled = true
        defer { isBusy = true }
        return (refused, !isBusy)
    }

    /// The next attempt. Nil if there is no more work; then the owner stops taking attempts.
    mutating func next() -> Attempt? {
        precondition(current == nil, "one attempt at a time")
        let changes: [Change]
        if !alone.isEmpty {
            changes = [alone.removeFirst()]
        } else if let first = waiting.first {
            changes = first.purpose == .stop ? [first] : Array(waiting.prefix { $0.purpose != .stop })
            waiting.removeFirst(changes.count)
            // A stop that arrives from now on ends this attempt.
            isCancelled = false
        } else {
            isBusy = false
            return nil
        }
        let isStop = changes.contains { $0.purpose == .stop }
        let attempt = Attempt(
            changes: changes, base: request,
            isCapturing: !isStop && (isCapturing || changes.contains(where: \.isStart)))
        current = attempt
        return attempt
    }

    /// Ends the attempt in progress.
    ///
    /// - Parameter request: the base with the edits of the attempt.
    /// - Returns: the changes that are done, whose `done` is to be called with the result.
    mutating func finish(
        _ outcome: Outcome, _ request: MediaRequest
    ) -> [(change: Change, result: Result<Void, RoomError>)] {
        guard let attempt = current else { preconditionFailure("no attempt is in progress") }
        current = nil
        switch outcome {
        case .fulfilled:
            (self.request, isCapturing) = (request, attempt.isCapturing)
            return attempt.changes.map { ($0, .success(())) }
        case .interrupted:
            self.request = request
            return attempt.changes.map { ($0, $0.isStart ? .failure(Self.stopped) : .success(())) }
        case .refused(let error):
            guard attempt.changes.count > 1 else { return attempt.changes.map { ($0, .failure(error)) } }
            // One of them may be impossible, and the others not.
            alone = attempt.changes
            return []
        }
    }
}
