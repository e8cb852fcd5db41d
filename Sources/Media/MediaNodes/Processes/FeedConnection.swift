import Dispatch
import ChildProcesses
import FrameSocket
import GStreamerKit
import MediaGraph
import Synchronization

/// One feeder's connection. On one queue; only slots return from other threads.
final class FeedConnection: Sendable {
    enum End: Sendable {
        /// The feeder said bye, or nothing at all: another graph may only have checked for a listener.
        case bye
        case gone
        case refused(FrameSocketError)
    }

    private struct State {
        var intake: FrameIntake
        var memory: MappedMemory?
        /// Releases that the feeder has not received yet, in order, at most one per slot.
        var untold: [FrameMessage] = []
        var isHeldBack: Bool
        var isGreeted = false
        var hasFrame = false
        var lastSlot: UInt32?
        var isEnded = false
        var isStarted = false
        /// Polls since the connection began, until the hello.
        var polls = 0
        var readSource: ReadSource?
    }

    private static let pollInterval = 0.25
    /// With fewer slots, and for a feeder that uses one only, frames are copied: the graph keeps the last one.
    private static let fewSlots = 3
    /// Messages to read before other work on the queue gets its turn.
    private static let batch = 16
    /// How many messages besides releases a feeder may leave unread.
    private static let mostUntold = 16

    private let socket: MessageSocket
    /// Refers to this connection until it ends.
    private let hub: FeedHub
    private let state: Mutex<State>

    private var output: FeedOutput { hub.output }

    init(_ socket: MessageSocket, of hub: FeedHub, isHeldBack: Bool) {
        (self.socket, self.hub) = (socket, hub)
        let intake = FrameIntake(wanted: hub.output.format, convertsFrames: hub.convertsFrames, now: FrameFeed.now)
        state = Mutex(State(intake: intake, isHeldBack: isHeldBack))
    }

    /// Sends the greeting and begins to read. Called on the queue.
    func open() {
        output.beginAnew()
        socket.send(.greeting(output.format))
        let readSource = ReadSource(socket.number, of: socket, on: hub.queue) { [weak self] in self?.read() }
        state.withLock { $0.readSource = readSource }
        pollLater()
    }

    var counts: FeedCounts { state.withLock { $0.intake.counts } }

    /// Whether the feeder has sent messages that are not read yet, or has closed the connection.
    var hasUnread: Bool { socket.waitUntilReadable(seconds: 0) }

    /// Whether a frame has arrived.
    var hasGivenPictures: Bool { state.withLock { $0.hasFrame } }

    // MARK: Messages to the feeder

    func hold(back isHeldBack: Bool) {
        let isNews = state.withLock { state in
            defer { state.isHeldBack = isHeldBack }
            return state.isHeldBack != isHeldBack && state.isGreeted
        }
        if isNews { tell(isHeldBack ? .pause : .resume) }
        if isNews, !isHeldBack { output.beginAnew() }
        if isNews { output.rests(isResting) }
    }

    func wantKeyframe() { tell(.keyframeWanted) }

    /// Asks the feeder to end, with a bye.
    func stop(_ reason: StopReason) { tell(.stop(reason)) }

    /// Ends the connection. Called on the queue.
    func close() { end(nil) }

    private func end(_ end: End?) {
        let readSource = state.withLock { state -> ReadSource? in
            guard !state.isEnded else { return nil }
            state.isEnded = true
            defer { state.readSource = nil }
            // Frames that are still held retain their memory.
            state.memory = nil
            return state.readSource
        }
        guard let readSource else { return }
        readSource.cancel()
        if case .refused(let error)? = end { socket.send(.failure(error)) }
        // The feeder learns the end immediately, even if other code still retains the value.
        socket.shutDown()
        if let end { hub.ended(self, end) }
    }

    // MARK: Messages from the feeder

    private func read() {
        tellRest()
        for _ in 0..<Self.batch {
            if state.withLock({ $0.isEnded }) { return }
            if let seconds = output.delay() {
                state.withLock { $0.readSource }?.hold(seconds: seconds)
                return
            }
            switch socket.receive() {
            case .nothing: return
            case .end: return end(state.withLock { $0.isGreeted } ? .gone : .bye)
            case .message(let bytes, let descriptors, let isCut):
                do throws(FrameSocketError) {
                    try take(bytes, descriptors, isCut)
                } catch {
                    return end(.refused(error))
                }
            }
        }
    }

    private func take(_ bytes: [UInt8], _ descriptors: [Descriptor], _ isCut: Bool) throws(FrameSocketError) {
        let now = FrameFeed.now
        let memory = descriptors.map(\.sealedBytes)
        output.tookOne()
        let event = try state.withLock { (state) throws(FrameSocketError) in
            let event = try state.intake.receive(bytes, memory: memory, isCut: isCut, now: now)
            switch event {
            // Releases of replaced slots are not needed.
            case .memory:
                state.untold.removeAll { if case .release = $0 { true } else { false } }
            case .frame, .paused, .resumed, .statusAsked, .bye: break
            }
            return event
        }
        switch event {
        case .memory(_, let bytes, let name, let isFirst): try map(descriptors, bytes, name, isFirst)
        case .frame(let picture): try take(picture)
        case .paused, .resumed: output.rests(isResting)
        case .statusAsked: tell(.statusAnswer(counts))
        case .bye: end(.bye)
        }
    }

    private func map(
        _ descriptors: [Descriptor], _ bytes: Int, _ name: String, _ isFirst: Bool
    ) throws(FrameSocketError) {
        guard let memory = descriptors.first.flatMap({ MappedMemory(descriptor: $0.number, count: bytes) }) else {
            throw FrameSocketError(code: "feed.memory", "The feeder's memory cannot be mapped.")
        }
        state.withLock { state in
            state.memory = memory
            state.isGreeted = true
        }
        if isFirst { hub.accepted(name) }
    }

    /// Lets a feeder that has said hello send frames. Returns false if it has not. Called on the queue.
    func start() -> Bool {
        let (isGreeted, isFirst, isHeldBack) = state.withLock { state in
            defer { state.isStarted = state.isStarted || state.isGreeted }
            return (state.isGreeted && !state.isEnded, !state.isStarted, state.isHeldBack)
        }
        guard isGreeted else { return false }
        if isFirst { tell(.start) }
        if isFirst, isHeldBack { tell(.pause) }
        output.rests(isResting)
        return true
    }

    /// Whether the feeder sends nothing on purpose.
    private var isResting: Bool { state.withLock { $0.intake.counts.isPaused || $0.isHeldBack } }

    private func take(_ picture: FrameIntake.Picture) throws(FrameSocketError) {
        if let remark = picture.remark { hub.report(remark) }
        let (memory, isHeldBack, isFirst, isScarce) = state.withLock { state in
            defer { (state.hasFrame, state.lastSlot) = (true, picture.slot) }
            let isScarce = state.intake.slots < Self.fewSlots || state.lastSlot == picture.slot
            return (state.memory, state.isHeldBack, !state.hasFrame, isScarce)
        }
        if isFirst { hub.set(.started) }
        guard let memory, !isHeldBack, hub.delivers() else { return release(picture.pool, picture.slot) }
        let isTaken: Bool
        if picture.format.encoding.isRaw {
            isTaken = output.push(memory, picture, isCopied: isScarce) { [weak self] in
                self?.release(picture.pool, picture.slot)
            }
        } else {
            // A decoder reads data more than once, so it must not change meanwhile.
            let bytes = memory.copy(picture.range)
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

    /// The graph released a slot. Called on any thread.
    private func release(_ pool: UInt32, _ slot: UInt32) {
        if state.withLock({ $0.intake.release(pool: pool, slot: slot) }) { tell(.release(pool: pool, slot: slot)) }
    }

    /// Sends a message now, or when the feeder reads again. A feeder that leaves too many unread is disconnected.
    /// Called on any thread.
    private func tell(_ message: FrameMessage) {
        let isTooMuch = state.withLock { state in
            guard !state.isEnded else { return false }
            if state.untold.isEmpty, socket.send(message) { return false }
            // A feeder has at most as many releases pending as it has slots.
            guard state.untold.count < state.intake.slots + Self.mostUntold else { return true }
            // One keyframe request is enough.
            if message != .keyframeWanted || !state.untold.contains(message) { state.untold.append(message) }
            return false
        }
        if isTooMuch { hub.queue.async { [weak self] in self?.end(.refused(Self.deaf)) } }
    }

    /// Sends the waiting messages to a feeder that reads again.
    private func tellRest() {
        state.withLock { state in
            while let message = state.untold.first, socket.send(message) { state.untold.removeFirst() }
        }
    }

    // MARK: Hello

    private static let mute = FrameSocketError(
        code: "feed.silent", "A feeder connected but sent no hello in time. Send hello within the timeout.")

    private func pollLater() {
        hub.queue.asyncAfter(deadline: .now() + Self.pollInterval) { [weak self] in self?.poll() }
    }

    /// Counts polls, so that a stalled process gives its feeder more time.
    private func poll() {
        tellRest()
        let (isEnded, polls, isGreeted) = state.withLock { state in
            state.polls += 1
            return (state.isEnded, state.polls, state.isGreeted)
        }
        if isEnded { return }
        // A connection without hello keeps other feeders out.
        if !isGreeted, polls >= Int(hub.timeout / Self.pollInterval) { return end(.refused(Self.mute)) }
        pollLater()
    }
}
