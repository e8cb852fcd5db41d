internal import Glibc
import Synchronization

/// Gives pictures to a graph that runs in another process, without copying them: they are drawn into memory that both
/// processes share.
///
///     let feed = try FrameFeed.fromEnvironment(name: "clock")
///     while try !feed.isStopped {
///         try feed.send { picture in draw(into: &picture) }
///     }
///
/// docs/frame-socket.md describes the protocol. All calls may come from any thread; only those that are given a time wait.
public final class FrameFeed: Sendable {
    /// What the other end has said.
    public enum Event: Sendable, Hashable {
        /// Pictures are awaited from now on.
        case started
        /// No pictures are wanted until `resume`; `send` then draws nothing.
        case pause
        case resume
        /// The next picture should be one that decoding can begin with. Only encoders need to care.
        case keyframeWanted
        /// The feeder should end.
        case stop(StopReason)
        case status(FeedCounts)
    }

    /// The environment variable that names the socket: the number of an inherited descriptor, or a path.
    public static let environmentVariable = "CONNECTLIVE_FRAME_SOCKET"

    /// Seconds that the other end has to let the feeder in, and then for its greeting.
    private static let patience = 5.0
    /// Seconds after which a waiting thread looks whether another one has taken in what it waits for.
    private static let glance = 0.02

    private struct State {
        var format: FrameFormat
        var pool: SharedPool
        var poolNumber: UInt32 = 1
        /// Slots that may be drawn into, the one first that was free for longest.
        var free: [UInt32]
        /// Slots that the other end has been told of and has not given back. One that is being drawn into is in neither.
        var away: Set<UInt32> = []
        /// Events that nobody has asked for yet.
        var events: [Event] = []
        var hasStarted = false
        var isHeldBack = false
        var stop: StopReason?
        var failure: FrameSocketError?
        var skipped = 0
    }

    /// What the other end asked for: size, encoding, and how many pictures a second at most.
    public let wanted: FrameFormat
    private let socket: MessageSocket
    private let name: String
    private let state: Mutex<State>

    /// Connects to the socket of a feed node. `format` is what will be given, nil for what is wanted; `slots` pictures may be
    /// under way at a time.
    public convenience init(
        socket path: String, name: String = "", format: FrameFormat? = nil, slots: Int = 6
    ) throws(FrameSocketError) {
        try self.init(
            try MessageSocket.connect(to: path, patience: Self.patience), name: name, format: format, slots: slots)
    }

    /// Speaks over a socket that was inherited; the feed owns the descriptor from then on.
    public convenience init(
        descriptor: Int32, name: String = "", format: FrameFormat? = nil, slots: Int = 6
    ) throws(FrameSocketError) {
        try self.init(MessageSocket(Descriptor(taking: descriptor)), name: name, format: format, slots: slots)
    }

    /// The feed of a program that a graph has started, or that was given a path in the same variable.
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
        let (pool, free) = try Self.memory(for: settled, slots)
        self.wanted = wanted
        self.socket = socket
        self.name = name
        state = Mutex(State(format: settled, pool: pool, free: free))
        guard introduce(settled, pool, free.count) else { throw Self.gone }
    }

    private static func memory(
        for format: FrameFormat, _ slots: Int
    ) throws(FrameSocketError) -> (SharedPool, free: [UInt32]) {
        guard format.hasUsableSize else {
            throw FrameSocketError(
                code: "feed.format",
                "A feed cannot send \(format). Each side must have 16 to 8192 pixels.")
        }
        let slots = max(1, min(slots, Int(FrameIntake.mostSlots)))
        let pool = try SharedPool(slots: slots, slotBytes: format.bytesPerFrame)
        return (pool, (0..<slots).map(UInt32.init))
    }

    private static func greeting(from socket: MessageSocket) throws(FrameSocketError) -> FrameFormat {
        guard socket.waitUntilReadable(seconds: patience) else {
            throw .closed(
                "the other end sent no greeting in time")
        }
        guard case .message(let bytes, _, _) = socket.receive() else { throw gone }
        switch try FrameMessage(bytes) {
        case .greeting(_, let format):
            guard format.hasUsableSize else {
                throw FrameSocketError(
                    code: "feed.format", "The other end requests \(format). Each side must have 16 to 8192 pixels.")
            }
            return format
        // Another feeder is there already.
        case .failure(let error): throw error
        default: throw .malformed("the first message must be the greeting")
        }
    }

    private func introduce(_ format: FrameFormat, _ pool: SharedPool, _ slots: Int) -> Bool {
        let hello = FeedHello(
            format: format, slots: UInt32(slots), slotBytes: UInt32(format.bytesPerFrame), name: name)
        return socket.send(.hello(hello), pool.descriptor)
    }

    private static let gone = FrameSocketError.closed("the other end closed it")
    private static let deaf = FrameSocketError.closed("the other end does not read")

    // MARK: Pictures

    /// What is given.
    public var format: FrameFormat { state.withLock { $0.format } }

    /// Draws a picture and sends it, if there is room for one: false when the graph is slower than the feeder, or does not
    /// want pictures now. `draw` is given the memory of one picture, planes one after the other, with whatever was drawn
    /// there before; it is not called when there is no room. `time` is the picture's on CLOCK_MONOTONIC in nanoseconds, nil
    /// for now. Waits up to `seconds` for room. Where another thread changes the format meanwhile, the picture is of no use, and
    /// the answer false, too.
    @discardableResult
    public func send(
        at time: UInt64? = nil, waiting seconds: Double = 0, _ draw: (inout MutableRawSpan) -> Void
    ) throws(FrameSocketError) -> Bool {
        try send(at: time, isKeyframe: true, waiting: seconds) { picture in
            draw(&picture)
            return picture.byteCount
        }
    }

    /// Sends an encoded picture: `write` puts it into the memory it is given and answers how many bytes it has, 0 for
    /// none. False as above; pictures up to the next keyframe are of no use then.
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
            // A picture does not name its memory: it is in that of the last hello.
            guard state.pool === pool else { return nil }
            if length > 0 {
                let notice = FrameNotice(
                    slot: slot, captureTime: time ?? Self.now, isKeyframe: isKeyframe, length: UInt32(clamping: length))
                // What the other end does not read waits in the socket, which holds more than there are slots.
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

    /// Pictures that were not drawn because there was no room for them, or nobody wanted them.
    public var skipped: Int { state.withLock { $0.skipped } }

    private func takeSlot(_ seconds: Double) throws(FrameSocketError) -> (UInt32, SharedPool)? {
        try wait(seconds) { state in
            guard state.hasStarted, !state.isHeldBack, !state.free.isEmpty else { return nil }
            return (state.free.removeFirst(), state.pool)
        }
    }

    /// Takes in what comes until there is what is looked for, the other end has asked for the end, or the time is over.
    private func wait<Found>(
        _ seconds: Double, for find: (inout State) -> Found?
    ) throws(FrameSocketError) -> Found? {
        // A year is as good as for ever, and can be counted in nanoseconds.
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
            try listen(min(Double(deadline - now) / 1e9, Self.glance))
        }
    }

    /// Nanoseconds on CLOCK_MONOTONIC, on which capture times are.
    public static var now: UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }

    // MARK: What the other end says

    /// What the other end has said since this was asked last. Waits up to `seconds` for something.
    public func events(waiting seconds: Double = 0) throws(FrameSocketError) -> [Event] {
        let isThere = state.withLock { !$0.events.isEmpty }
        if !isThere { _ = try wait(seconds) { $0.events.isEmpty ? nil : true } }
        return state.withLock { state in
            defer { state.events = [] }
            return state.events
        }
    }

    /// Whether the other end has asked the feeder to end.
    public var isStopped: Bool {
        get throws(FrameSocketError) {
            try listen(0)
            return state.withLock { $0.stop != nil }
        }
    }

    /// Takes in what came. Throws when the other end refuses or has gone, unless it had asked for the end.
    private func listen(_ seconds: Double) throws(FrameSocketError) {
        if seconds > 0, state.withLock({ $0.failure == nil }) { _ = socket.waitUntilReadable(seconds: seconds) }
        // In one go: what two threads read must be noted in the order in which it came.
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
            state.hasStarted = true
            state.events.append(.started)
        case .pause:
            state.isHeldBack = true
            state.events.append(.pause)
        case .resume:
            state.isHeldBack = false
            state.events.append(.resume)
        case .keyframeWanted: state.events.append(.keyframeWanted)
        case .stop(let reason):
            state.stop = reason
            state.events.append(.stop(reason))
        case .statusAnswer(let counts): state.events.append(.status(counts))
        case .failure(let error): state.failure = error
        default: break
        }
        // Who never asks is not to be kept events for without end.
        if state.events.count > 64 { state.events.removeFirst() }
    }

    // MARK: What this end says

    /// Gives pictures of another size from now on, where the node takes any.
    public func change(to format: FrameFormat, slots: Int = 6) throws(FrameSocketError) {
        let (pool, free) = try Self.memory(for: format, slots)
        try state.withLock { (state) throws(FrameSocketError) in
            guard introduce(format, pool, free.count) else { throw Self.gone }
            (state.format, state.pool, state.free, state.away) = (format, pool, free, [])
            state.poolNumber += 1
        }
    }

    /// Tells that no pictures come until `resume`, so that nobody takes it for a fault.
    public func pause() throws(FrameSocketError) { try say(.paused) }

    public func resume() throws(FrameSocketError) { try say(.resumed) }

    /// Asks what has become of the pictures; the answer is the event `status`.
    public func askStatus() throws(FrameSocketError) { try say(.statusQuestion) }

    /// Tells that the feeder ends, and why.
    public func finish(_ reason: String = "") {
        socket.send(.bye(reason))
    }

    private func say(_ message: FrameMessage) throws(FrameSocketError) {
        try listen(0)
        guard socket.send(message) else { throw Self.deaf }
    }
}
