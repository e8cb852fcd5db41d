internal import Glibc
import Synchronization

/// Sends frames to a graph in another process without copying them. The feeder draws them into memory that both
/// processes share.
///
///     let feed = try FrameFeed.fromEnvironment(name: "clock")
///     while try !feed.isStopped {
///         try feed.send { frame in draw(into: &frame) }
///     }
///
/// docs/frame-socket.md describes the protocol. All calls may come from any thread. Only those with a `waiting`
/// parameter wait for the graph.
public final class FrameFeed: Sendable {
    /// A message from the graph.
    public enum Event: Sendable, Hashable {
        /// The graph accepts frames from now on.
        case started
        /// The graph accepts no frames until `resume`. Meanwhile `send` draws nothing.
        case pause
        /// The graph accepts frames again.
        case resume
        /// The next frame should be a keyframe. Feeders of raw frames can ignore this.
        case keyframeWanted
        /// The feeder should end.
        case stop(StopReason)
        /// The statistics for which `askStatus` has asked.
        case status(FeedCounts)
    }

    /// The environment variable that names the socket: the number of an inherited descriptor, or a path.
    public static let environmentVariable = "CONNECTLIVE_FRAME_SOCKET"

    /// Timeout in seconds for the connection, and then for the graph's greeting.
    private static let timeout = 5.0
    /// The poll interval of a waiting thread in seconds: another thread may have read the awaited message.
    private static let pollInterval = 0.02

    private struct State {
        var format: FrameFormat
        var pool: SharedPool
        var poolNumber: UInt32 = 1
        /// Slots that the feeder may draw into, the one that was released first in front.
        var free: [UInt32]
        /// Slots that the graph holds. A slot that is being drawn into is neither here nor in `free`.
        var away: Set<UInt32> = []
        /// Events that `events(waiting:)` has not returned yet.
        var events: [Event] = []
        /// Whether the graph accepts frames.
        var isOpen = false
        var stop: StopReason?
        var failure: FrameSocketError?
        var skipped = 0
    }

    /// The format that the graph requested, with the highest frame rate.
    public let wanted: FrameFormat
    private let socket: MessageSocket
    private let name: String
    private let state: Mutex<State>

    /// Connects to the socket of a feed node and waits up to 5 s for the connection and up to 5 s for the greeting.
    ///
    /// - Parameters:
    ///   - path: the path of the socket.
    ///   - name: a name for the graph's messages about this feeder.
    ///   - format: the format of the frames; nil for the requested one.
    ///   - slots: how many frames the graph may hold at a time, 1 to 64.
    /// - Throws: `feed.unavailable`, `feed.closed`, or the reason why the graph rejects the feeder.
    public convenience init(
        socket path: String, name: String = "", format: FrameFormat? = nil, slots: Int = 6
    ) throws(FrameSocketError) {
        try self.init(
            try MessageSocket.connect(to: path, timeout: Self.timeout), name: name, format: format, slots: slots)
    }

    /// Uses an inherited socket. The feed owns the descriptor from then on.
    ///
    /// - Throws: like `init(socket:name:format:slots:)`.
    public convenience init(
        descriptor: Int32, name: String = "", format: FrameFormat? = nil, slots: Int = 6
    ) throws(FrameSocketError) {
        try self.init(MessageSocket(Descriptor(taking: descriptor)), name: name, format: format, slots: slots)
    }

    /// Returns the feed of a program that a graph started. The environment variable may also hold the path of a feed
    /// node's socket.
    ///
    /// - Throws: `feed.closed` if `CONNECTLIVE_FRAME_SOCKET` is not set; else as the initializers do.
    public static func fromEnvironment(
        name: String = "", format: FrameFormat? = nil, slots: Int = 6
    ) throws(FrameSocketError) -> FrameFeed {
        guard let value = getenv(environmentVariable).map({ String(cString: $0) }), !value.isEmpty else {
            throw .closed("\(environmentVariable) is not set; start the program from a graph, or pass a path")
        }
        if let number = Int32(value) {
            return try FrameFeed(descriptor: number, name: name, format: format, slots: slots)
        }
        return try FrameFeed(socket: value, name: name, format: format, slots: slots)
    }

    private init(_ socket: MessageSocket, name: String, format: FrameFormat?, slots: Int) throws(FrameSocketError) {
        let wanted = try Self.greeting(from: socket)
        var settled = format ?? wanted
        settled.rateNumerator = wanted.rateNumerator
        settled.rateDenominator = wanted.rateDenominator
        let pool = try SharedPool(settled, slots: slots)
        self.wanted = wanted
        self.socket = socket
        self.name = name
        state = Mutex(State(format: settled, pool: pool, free: pool.allSlots))
        guard introduce(settled, pool) else { throw Self.gone }
    }

    private static func greeting(from socket: MessageSocket) throws(FrameSocketError) -> FrameFormat {
        guard socket.waitUntilReadable(seconds: timeout) else {
            throw .closed("the other end sent no greeting in time")
        }
        guard case .message(let bytes, _, _) = socket.receive() else { throw gone }
        switch try FrameMessage(bytes) {
        case .greeting(let format):
            try format.checkSize("The other end requests")
            return format
        // Another feeder is connected.
        case .failure(let error): throw error
        default: throw .malformed("the first message must be the greeting")
        }
    }

    private func introduce(_ format: FrameFormat, _ pool: SharedPool) -> Bool {
        let hello = FeedHello(
            format: format, slots: pool.slots, slotBytes: UInt32(format.bytesPerFrame), name: name)
        return socket.send(.hello(hello), pool.descriptor)
    }

    private static let gone = FrameSocketError.closed("the other end closed it")
    private static let deaf = FrameSocketError.closed("the other end does not read")

    // MARK: Frames

    /// The format of the frames that are sent.
    public var format: FrameFormat { state.withLock { $0.format } }

    /// Draws a raw frame and sends it, if a slot is free.
    ///
    /// - Parameters:
    ///   - time: the capture time in nanoseconds on CLOCK_MONOTONIC; nil for now.
    ///   - seconds: how long to wait for a free slot.
    ///   - draw: draws into the memory of a frame, one plane after the other. The memory still holds an older frame.
    ///     Not called without a free slot.
    /// - Returns: false if the frame was dropped: no slot is free, because the graph is slower than the feeder; the
    ///   graph accepts no frames now; or another thread changed the format meanwhile.
    /// - Throws: `feed.closed` if the graph closed the connection or does not read, or the graph's reason for closing
    ///   it.
    @discardableResult
    public func send(
        at time: UInt64? = nil, waiting seconds: Double = 0, _ draw: (inout MutableRawSpan) -> Void
    ) throws(FrameSocketError) -> Bool {
        try send(at: time, isKeyframe: true, waiting: seconds) { frame in
            draw(&frame)
            return frame.byteCount
        }
    }

    /// Writes an encoded frame and sends it, if a slot is free.
    ///
    /// - Parameters:
    ///   - time: the capture time in nanoseconds on CLOCK_MONOTONIC; nil for now.
    ///   - isKeyframe: whether decoding can begin with this frame.
    ///   - seconds: how long to wait for a free slot.
    ///   - write: writes into the memory of a frame and returns the number of bytes; 0 sends nothing.
    /// - Returns: false if the frame was dropped. Frames up to the next keyframe are then useless.
    /// - Throws: `feed.closed` if the connection to the graph has ended.
    @discardableResult
    public func send(
        at time: UInt64? = nil, isKeyframe: Bool, waiting seconds: Double = 0, _ write: (inout MutableRawSpan) -> Int
    ) throws(FrameSocketError) -> Bool {
        guard let (slot, pool) = try takeSlot(seconds) else {
            state.withLock { $0.skipped += 1 }
            return false
        }
        let length = pool.withSlot(Int(slot)) { write(&$0) }
        let isSent = state.withLock { state -> Bool? in
            // A frame does not name its memory: it uses the memory of the last hello.
            guard state.pool === pool else { return nil }
            if length > 0 {
                let notice = FrameNotice(
                    slot: slot, captureTime: time ?? Self.now, isKeyframe: isKeyframe, length: UInt32(clamping: length))
                // Unread messages wait in the socket, which holds more of them than there are slots.
                if socket.send(.frame(notice)) {
                    state.away.insert(slot)
                    return true
                }
            }
            state.free.insert(slot, at: 0)
            return length > 0 ? false : nil
        }
        guard let isSent else { return false }
        if !isSent {
            try listen(0)
            throw Self.deaf
        }
        return true
    }

    /// Frames that were not drawn, because no slot was free or the graph accepted none.
    public var skipped: Int { state.withLock { $0.skipped } }

    private func takeSlot(_ seconds: Double) throws(FrameSocketError) -> (UInt32, SharedPool)? {
        try wait(seconds) { state in
            guard state.isOpen, !state.free.isEmpty else { return nil }
            return (state.free.removeFirst(), state.pool)
        }
    }

    /// Reads messages until `find` returns a value, the graph ends the feed, or the timeout expires.
    private func wait<Found>(
        _ seconds: Double, for find: (inout State) -> Found?
    ) throws(FrameSocketError) -> Found? {
        // A year is as good as forever, and fits into nanoseconds.
        let nanoseconds = seconds > 0 ? UInt64(min(seconds, 31_536_000) * 1e9) : 0
        let deadline = Self.now + nanoseconds
        try listen(0)
        while true {
            let (found, isOver) = state.withLock { state in
                (state.stop == nil ? find(&state) : nil, state.stop != nil)
            }
            if let found { return found }
            let now = Self.now
            guard now < deadline, !isOver else { return nil }
            try listen(min(Double(deadline - now) / 1e9, Self.pollInterval))
        }
    }

    /// The current time in nanoseconds on CLOCK_MONOTONIC, the clock of capture times.
    public static var now: UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }

    // MARK: Events from the graph

    /// Returns the events since the last call. Waits up to `seconds` if there are none.
    ///
    /// - Throws: `feed.closed` if the connection to the graph has ended.
    public func events(waiting seconds: Double = 0) throws(FrameSocketError) -> [Event] {
        let isThere = state.withLock { !$0.events.isEmpty }
        if !isThere { _ = try wait(seconds) { $0.events.isEmpty ? nil : true } }
        return state.withLock { state in
            defer { state.events = [] }
            return state.events
        }
    }

    /// Whether the graph asked the feeder to end.
    ///
    /// - Throws: `feed.closed` if the connection to the graph has ended.
    public var isStopped: Bool {
        get throws(FrameSocketError) {
            try listen(0)
            return state.withLock { $0.stop != nil }
        }
    }

    /// Reads messages. Throws if the graph rejects the feeder or closes the connection without asking it to end.
    private func listen(_ seconds: Double) throws(FrameSocketError) {
        if seconds > 0, state.withLock({ $0.failure == nil }) { _ = socket.waitUntilReadable(seconds: seconds) }
        // Reads and notes under one lock, so that messages read by two threads are noted in the order of their arrival.
        try state.withLock { (state) throws(FrameSocketError) in
            while true {
                if let failure = state.failure { throw failure }
                switch socket.receive() {
                case .nothing: return
                case .message(let bytes, _, _):
                    do throws(FrameSocketError) {
                        Self.note(try FrameMessage(bytes), &state)
                    } catch {
                        state.failure = error
                    }
                case .end:
                    if state.stop != nil { return }
                    state.failure = Self.gone
                }
            }
        }
    }

    private static func note(_ message: FrameMessage, _ state: inout State) {
        switch message {
        case .release(let pool, let slot):
            if pool == state.poolNumber, state.away.remove(slot) != nil { state.free.append(slot) }
        case .start:
            state.isOpen = true
            state.events.append(.started)
        case .pause:
            state.isOpen = false
            state.events.append(.pause)
        case .resume:
            state.isOpen = true
            state.events.append(.resume)
        case .keyframeWanted: state.events.append(.keyframeWanted)
        case .stop(let reason):
            state.stop = reason
            state.events.append(.stop(reason))
        case .statusAnswer(let counts): state.events.append(.status(counts))
        case .failure(let error): state.failure = error
        default: break
        }
        // A feeder that never reads its events must not accumulate them.
        if state.events.count > 64 { state.events.removeFirst() }
    }

    // MARK: Messages to the graph

    /// Sends frames in another format from now on. The graph accepts another size only for nodes without a fixed one.
    ///
    /// - Throws: `feed.memory` if the memory cannot be created; `feed.closed` if the connection to the graph has ended.
    public func change(to format: FrameFormat, slots: Int = 6) throws(FrameSocketError) {
        let pool = try SharedPool(format, slots: slots)
        try state.withLock { (state) throws(FrameSocketError) in
            guard introduce(format, pool) else { throw Self.gone }
            (state.format, state.pool, state.free, state.away) = (format, pool, pool.allSlots, [])
            state.poolNumber += 1
        }
    }

    /// Announces that no frames follow until `resume`, so that the graph does not report a stall.
    ///
    /// - Throws: `feed.closed` if the connection to the graph has ended.
    public func pause() throws(FrameSocketError) { try say(.paused) }

    /// Announces that frames follow again. Throws if the connection to the graph has ended.
    public func resume() throws(FrameSocketError) { try say(.resumed) }

    /// Requests statistics. They arrive as the event `status`.
    ///
    /// - Throws: `feed.closed` if the connection to the graph has ended.
    public func askStatus() throws(FrameSocketError) { try say(.statusQuestion) }

    /// Announces that the feeder ends.
    ///
    /// - Parameter reason: one sentence for people.
    public func finish(_ reason: String = "") {
        socket.send(.bye(reason))
    }

    private func say(_ message: FrameMessage) throws(FrameSocketError) {
        try listen(0)
        guard socket.send(message) else { throw Self.deaf }
    }
}
