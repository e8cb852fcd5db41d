import Dispatch
import FrameSocket
import GStreamerKit
import MediaGraph
import Synchronization

/// One feeder, from when it is let in until it goes. Lives on one queue; only slots come back from other threads.
final class FeedConnection: Sendable {
    enum Event: Sendable {
        case accepted(name: String)
        case firstFrame
        case pausing(Bool)
        /// Something is not as it should be and goes on.
        case remark(FrameSocketError)
        /// Nothing has come for as long as the node has patience.
        case silent
        case ended(End)
    }

    enum End: Sendable {
        case bye(String)
        case gone
        /// Gone before it said anything: another graph that looks whether somebody listens, for one.
        case unheard
        case refused(FrameSocketError)
    }

    private struct State {
        var intake: FrameIntake
        var memory: MappedMemory?
        var rate: RateGuard
        /// Releases that the feeder could not be told yet, in order; no more than there are slots.
        var untold: [FrameMessage] = []
        var isHeldBack: Bool
        var isGreeted = false
        var hasFrame = false
        var isEnded = false
        var isTooFastSaid = false
        /// Looks since the feeder introduced itself, gave a picture or spoke of its pause.
        var looks = 0
        var readiness: Readiness?
    }

    private static let lookInterval = 0.25
    /// Messages that are read before others on the queue get their turn.
    private static let batch = 16
    /// Messages besides releases that a feeder may leave unread.
    private static let mostUntold = 16

    private let socket: MessageSocket
    private let output: FeedOutput
    private let takesAnySize: Bool
    private let patience: Double
    private let queue: DispatchQueue
    private let onEvent: @Sendable (FeedConnection, Event) -> Void
    private let state: Mutex<State>

    init(
        _ socket: MessageSocket, _ output: FeedOutput, takesAnySize: Bool, patience: Double, isHeldBack: Bool,
        queue: DispatchQueue, onEvent: @escaping @Sendable (FeedConnection, Event) -> Void
    ) {
        self.socket = socket
        self.output = output
        self.takesAnySize = takesAnySize
        self.patience = patience
        self.queue = queue
        self.onEvent = onEvent
        let now = FrameFeed.now
        let rate = output.picture.framesPerSecond
        state = Mutex(
            State(
                intake: FrameIntake(wanted: output.picture.wanted, takesAnySize: takesAnySize, now: now),
                rate: RateGuard(perSecond: rate * 2, burst: max(rate, 10), now: now), isHeldBack: isHeldBack))
    }

    /// Says what is wanted and listens. Called on the queue.
    func open() {
        output.beginAnew()
        socket.send(.greeting(version: FrameMessage.version, output.picture.wanted))
        let readiness = Readiness(socket.number, of: socket, on: queue) { [weak self] in self?.read() }
        state.withLock { $0.readiness = readiness }
        lookLater()
    }

    var counts: FeedCounts { state.withLock { $0.intake.counts } }

    /// Whether a picture has come.
    var hasGivenPictures: Bool { state.withLock { $0.hasFrame } }

    // MARK: What the graph says

    func hold(back isHeldBack: Bool) {
        let isNews = state.withLock { state in
            defer { state.isHeldBack = isHeldBack }
            return state.isHeldBack != isHeldBack && state.isGreeted
        }
        if isNews { tell(isHeldBack ? .pause : .resume) }
        if isNews, !isHeldBack { output.beginAnew() }
    }

    func wantKeyframe() { tell(.keyframeWanted) }

    /// Asks the feeder to end; it is to say good-bye.
    func stop(_ reason: StopReason) { tell(.stop(reason)) }

    /// Ends the connection. Called on the queue.
    func close() { end(nil) }

    private func end(_ end: End?) {
        let readiness = state.withLock { state -> Readiness? in
            guard !state.isEnded else { return nil }
            state.isEnded = true
            defer { state.readiness = nil }
            // What is still held keeps its memory itself.
            state.memory = nil
            return state.readiness
        }
        guard let readiness else { return }
        readiness.cancel()
        if case .refused(let error)? = end { socket.send(.failure(error)) }
        // The feeder learns at once that nobody is there any more, whoever still holds the value.
        socket.shutDown()
        if let end { onEvent(self, .ended(end)) }
    }

    // MARK: What the feeder says

    private func read() {
        tellRest()
        for _ in 0..<Self.batch {
            if state.withLock({ $0.isEnded }) { return }
            let wait = state.withLock { $0.rate.delay(now: FrameFeed.now) }
            guard wait <= 0 else { return slowDown(wait) }
            switch socket.receive() {
            case .nothing: return
            case .end: return end(state.withLock { $0.isGreeted } ? .gone : .unheard)
            case .message(let bytes, let descriptors, let isCut):
                do throws(FrameSocketError) {
                    try take(bytes, descriptors, isCut)
                } catch {
                    return end(.refused(error))
                }
            }
        }
    }

    /// The feeder sends more than it may: it has to wait, and soon runs out of slots.
    private func slowDown(_ wait: Double) {
        let (readiness, isNews) = state.withLock { state in
            defer { state.isTooFastSaid = true }
            return (state.readiness, !state.isTooFastSaid)
        }
        // Several at a time, not one by one.
        readiness?.hold(seconds: max(wait, 0.02))
        if isNews { onEvent(self, .remark(Self.tooFast(output.picture))) }
    }

    static func tooFast(_ picture: FeedPicture) -> FrameSocketError {
        FrameSocketError(
            code: "feed.too-fast",
            "More than twice as many pictures come as the \(Int(picture.framesPerSecond)) a second that the node is set to; "
                + "some wait. Raise fps, or send fewer.")
    }

    private func take(_ bytes: [UInt8], _ descriptors: [Descriptor], _ isCut: Bool) throws(FrameSocketError) {
        let now = FrameFeed.now
        let memory = descriptors.map(\.sealedBytes)
        let event = try state.withLock { (state) throws(FrameSocketError) in
            state.rate.take()
            let event = try state.intake.receive(bytes, memory: memory, isCut: isCut, now: now)
            switch event {
            // Nobody waits for the releases of slots that are no more.
            case .memory:
                state.untold.removeAll { if case .release = $0 { true } else { false } }
                state.looks = 0
            case .frame, .paused, .resumed: state.looks = 0
            // Whoever only asks gives nothing.
            case .statusAsked, .bye: break
            }
            return event
        }
        switch event {
        case .memory(_, let bytes, let name, let isFirst): try map(descriptors, bytes, name, isFirst)
        case .frame(let picture): try take(picture)
        case .paused: onEvent(self, .pausing(true))
        case .resumed: onEvent(self, .pausing(false))
        case .statusAsked: tell(.statusAnswer(counts))
        case .bye(let reason): end(.bye(reason))
        }
    }

    private func map(
        _ descriptors: [Descriptor], _ bytes: Int, _ name: String, _ isFirst: Bool
    ) throws(FrameSocketError) {
        guard let memory = descriptors.first.flatMap({ MappedMemory(descriptor: $0.number, count: bytes) }) else {
            throw FrameSocketError(code: "feed.memory", "The feeder's memory cannot be mapped.")
        }
        let (format, isHeldBack) = state.withLock { state in
            state.memory = memory
            state.isGreeted = true
            return (state.intake.format, state.isHeldBack)
        }
        if let format, takesAnySize { output.setSize(width: format.width, height: format.height) }
        guard isFirst else { return }
        tell(.start)
        if isHeldBack { tell(.pause) }
        onEvent(self, .accepted(name: name))
    }

    private func take(_ picture: FrameIntake.Picture) throws(FrameSocketError) {
        if let remark = picture.remark { onEvent(self, .remark(remark)) }
        let (memory, isHeldBack, isFirst) = state.withLock { state in
            defer { state.hasFrame = true }
            return (state.memory, state.isHeldBack, !state.hasFrame)
        }
        if isFirst { onEvent(self, .firstFrame) }
        guard let memory, !isHeldBack else { return release(picture.pool, picture.slot) }
        let range = picture.offset..<picture.offset + picture.length
        let isTaken: Bool
        if picture.format.encoding.isRaw {
            let layout = PictureLayout(
                pixelFormat: picture.format.encoding.rawValue, width: picture.format.width,
                height: picture.format.height, offsets: picture.planes.map(\.offset),
                strides: picture.planes.map(\.stride))
            isTaken = output.push(memory, range, layout, at: picture.captureTime) { [weak self] in
                self?.release(picture.pool, picture.slot)
            }
        } else {
            // What a decoder reads more than once must not change meanwhile.
            let bytes = memory.copy(range)
            release(picture.pool, picture.slot)
            if let fault = picture.format.fault(of: bytes) {
                throw FrameSocketError(
                    code: "feed.format", "The feeder does not send \(picture.format) as stated: \(fault).")
            }
            isTaken = output.push(bytes, at: picture.captureTime)
        }
        if isTaken { state.withLock { $0.intake.taken() } }
    }

    private static let deaf = FrameSocketError.closed("the feeder does not read its messages")

    /// The graph has let go of a slot. May come from any thread.
    private func release(_ pool: UInt32, _ slot: UInt32) {
        if state.withLock({ $0.intake.release(pool: pool, slot: slot) }) { tell(.release(pool: pool, slot: slot)) }
    }

    /// Says something in its turn: now, or when the feeder reads again. Who leaves too much unread is let go of. May come
    /// from any thread.
    private func tell(_ message: FrameMessage) {
        let isTooMuch = state.withLock { state in
            guard !state.isEnded else { return false }
            if state.untold.isEmpty, socket.send(message) { return false }
            // Whoever waits for its slots has no more of them under way than it has.
            guard state.untold.count < state.intake.slots + Self.mostUntold else { return true }
            // One wish for a keyframe is as good as many.
            if message != .keyframeWanted || !state.untold.contains(message) { state.untold.append(message) }
            return false
        }
        if isTooMuch { queue.async { [weak self] in self?.end(.refused(Self.deaf)) } }
    }

    /// A feeder that did not read may do so now.
    private func tellRest() {
        state.withLock { state in
            while let message = state.untold.first, socket.send(message) { state.untold.removeFirst() }
        }
    }

    // MARK: Silence

    private static let mute = FrameSocketError(
        code: "feed.silent", "A feeder connected and did not say in time what it gives.")

    private func lookLater() {
        queue.asyncAfter(deadline: .now() + Self.lookInterval) { [weak self] in self?.look() }
    }

    /// Silence is counted in looks, as a `Watchdog` does: who was held up as a whole looks no more often.
    private func look() {
        tellRest()
        let (isEnded, looks, isGreeted) = state.withLock { state in
            let isQuiet = state.intake.counts.isPaused || state.isHeldBack || output.isPaused
            state.looks = isQuiet && state.isGreeted ? 0 : state.looks + 1
            return (state.isEnded, state.looks, state.isGreeted)
        }
        if isEnded { return }
        if looks == Int(patience / Self.lookInterval) {
            // Whoever does not even say hello keeps others out.
            if !isGreeted { return end(.refused(Self.mute)) }
            onEvent(self, .silent)
        }
        lookLater()
    }
}
