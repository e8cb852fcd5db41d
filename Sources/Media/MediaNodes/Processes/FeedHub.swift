import Dispatch
import FrameSocket
import GStreamerKit
import MediaGraph
import Synchronization

/// A node's feeder: one at a time, and any number one after another.
final class FeedHub: Sendable {
    private struct State {
        weak var owner: (any FedNode)?
        var connection: FeedConnection?
        var status = FrameFeedControl.Status.notAvailable
        var feeder = ""
        var isHeldBack = false
        var counts = FeedCounts()
        var listeners: [@Sendable (FrameFeedControl.Status) -> Void] = []
        /// Limits the log of a feeder that reconnects repeatedly.
        var reports = LogLimit(perSecond: 1, burst: 20, now: FrameFeed.now)
    }

    let queue: DispatchQueue
    let output: FeedOutput
    let convertsFrames: Bool
    let timeout: Double
    private let state = Mutex(State())

    init(_ instance: NodeInstance, queue: DispatchQueue) {
        self.queue = queue
        output = FeedOutput(instance, FrameFormat(instance))
        convertsFrames = instance.flag("scale")
        timeout = instance.number("timeout")
        if instance.has("parser") { watch(instance.element("format")) }
    }

    func set(owner: any FedNode) {
        state.withLock { $0.owner = owner }
    }

    /// Compares a parser's findings about encoded frames with the stated format.
    private func watch(_ format: Element) {
        format.source.watchEvents { [weak self] event in
            guard case .caps(let caps) = event, let self, let found = caps.structures.first,
                let width = found.integer("width"), let height = found.integer("height")
            else { return }
            let stated = output.format
            if (width, height) != (stated.width, stated.height) {
                report(
                    FrameSocketError(
                        code: "feed.format",
                        "The feeder does not send the stated format: frames of \(width)x\(height) arrive instead of "
                            + "\(stated)."))
            }
        }
    }

    private var connection: FeedConnection? { state.withLock { $0.connection } }

    var isTaken: Bool { connection != nil }

    /// Whether the feeder has sent messages that are not read yet. False without a feeder.
    var hasUnread: Bool { connection?.hasUnread == true }

    /// Accepts a feeder. Called on the queue, if there is none.
    func attach(_ socket: MessageSocket) {
        let made = state.withLock { state in
            let made = FeedConnection(socket, of: self, isHeldBack: state.isHeldBack)
            state.connection = made
            return made
        }
        made.open()
    }

    /// Disconnects the feeder. Called on the queue.
    func detach(_ reason: StopReason? = nil) {
        guard let connection else { return }
        if let reason { connection.stop(reason) }
        drop(connection)
        connection.close()
    }

    private func drop(_ connection: FeedConnection) {
        let counts = connection.counts
        state.withLock { state in
            guard state.connection === connection else { return }
            state.connection = nil
            state.counts.received += counts.received
            state.counts.taken += counts.taken
        }
        set(.closed)
    }

    /// Starts the feeder that has said hello. Returns false if there is none. Called on the queue.
    @discardableResult
    func start() -> Bool { connection?.start() ?? false }

    /// Asks the feeder for a keyframe.
    func wantKeyframe() { connection?.wantKeyframe() }

    // MARK: Events of the connection, on the queue

    func accepted(_ feeder: String) {
        state.withLock { $0.feeder = feeder }
        set(.ready)
        state.withLock { $0.owner }?.feedAccepted()
    }

    /// A frame came. Returns whether the node takes frames now.
    func delivers() -> Bool { state.withLock { $0.owner }?.feedDelivers() ?? false }

    func ended(_ connection: FeedConnection, _ end: FeedConnection.End) {
        drop(connection)
        if case .refused(let error) = end { reportWithConsequence(error) }
        state.withLock { $0.owner }?.feedEnded(end, hasGivenPictures: connection.hasGivenPictures)
    }

    private func reportWithConsequence(_ error: FrameSocketError) {
        let consequence = state.withLock { $0.owner }?.consequence
        report(consequence.map { FrameSocketError(code: error.code, "\(error.message) \($0)") } ?? error)
    }

    /// The feeder's name for messages.
    var feeder: String {
        let name = state.withLock { $0.feeder }
        return name.isEmpty ? "" : "\"\(name)\" "
    }

    func report(_ error: FrameSocketError) {
        guard let leftOut = state.withLock({ $0.reports.admit(now: FrameFeed.now) }) else { return }
        if leftOut > 0 { output.warn("(\(leftOut) warnings omitted)") }
        output.warn(error.description)
    }

    func set(_ status: FrameFeedControl.Status) {
        let listeners = state.withLock { state in
            defer { state.status = status }
            return state.status == status ? [] : state.listeners
        }
        for listener in listeners { listener(status) }
    }

    // MARK: Control by the application

    func hold(back isHeldBack: Bool) {
        state.withLock { $0.isHeldBack = isHeldBack }
        queue.async { self.connection?.hold(back: isHeldBack) }
    }

    func stop(_ reason: StopReason) {
        queue.async { self.connection?.stop(reason) }
    }

    func onStatus(_ body: @escaping @Sendable (FrameFeedControl.Status) -> Void) {
        state.withLock { $0.listeners.append(body) }
    }

    var summary: FrameFeedControl.State {
        let state = self.state.withLock { $0 }
        let now = state.connection?.counts
        return FrameFeedControl.State(
            status: state.status, feeder: state.feeder, isHeldBack: state.isHeldBack,
            isFeederPausing: now?.isPaused ?? false, received: Int(state.counts.received + (now?.received ?? 0)),
            taken: Int(state.counts.taken + (now?.taken ?? 0)), held: Int(now?.held ?? 0))
    }
}
