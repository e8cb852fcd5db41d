/// The receiving end of a frame socket without the socket: takes messages and the time, and returns their meaning.
///
/// It never traps on a feeder's messages. A violation of the protocol throws one sentence; the caller then closes the
/// connection.
package struct FrameIntake: Sendable {
    /// The largest number of slots in a pool.
    package static let mostSlots: UInt32 = 64
    /// The largest size of a pool in bytes: four raw frames of 8192x8192.
    package static let mostBytes = 1 << 30

    /// The meaning of a message.
    package enum Event: Sendable, Hashable {
        /// The feeder is accepted, or has new memory. The message's descriptor belongs to `pool`.
        case memory(pool: UInt32, bytes: Int, name: String, isFirst: Bool)
        case frame(Picture)
        case paused
        case resumed
        case statusAsked
        case bye(String)
    }

    /// A frame whose place has been checked.
    package struct Picture: Sendable, Hashable {
        package var pool: UInt32
        package var slot: UInt32
        /// In the pool's memory.
        package var range: Range<Int>
        package var format: FrameFormat
        /// From the start of the frame; empty for an encoded one.
        package var planes: [FramePlane]
        package var captureTime: UInt64
        package var isKeyframe: Bool
        /// Why the feeder's capture time was replaced, the first time this happens.
        package var remark: FrameSocketError?
    }

    private let wanted: FrameFormat
    /// Whether raw frames may have another size and raw format than requested.
    private let convertsFrames: Bool
    private var hello: FeedHello?
    private var pool: UInt32 = 0
    /// The slots that the graph holds.
    private var held: Set<UInt32> = [] {
        didSet { counts.held = UInt32(held.count) }
    }
    private var times: CaptureTimes
    package private(set) var counts = FeedCounts()

    package init(wanted: FrameFormat, convertsFrames: Bool = false, now: UInt64) {
        self.wanted = wanted
        self.convertsFrames = convertsFrames
        times = CaptureTimes(connectedAt: now)
    }

    /// The number of the feeder's slots; 0 before its hello.
    package var slots: Int { hello.map { Int($0.slots) } ?? 0 }

    /// Returns the meaning of a message.
    ///
    /// - Parameters:
    ///   - memory: for each descriptor of the message, its size in bytes; nil for one that is not memory or can shrink.
    ///   - isCut: whether the message was longer, or had more descriptors, than the limits.
    ///   - now: nanoseconds on CLOCK_MONOTONIC.
    /// - Throws: the violation of the protocol. The connection must then be closed.
    package mutating func receive(
        _ bytes: some Collection<UInt8>, memory: [Int?] = [], isCut: Bool = false, now: UInt64
    ) throws(FrameSocketError) -> Event {
        guard !isCut else {
            throw .malformed("it exceeds \(FrameMessage.limit) bytes, or has too many descriptors")
        }
        let message = try FrameMessage(bytes)
        if case .hello(let hello) = message { return try greet(hello, memory) }
        guard memory.isEmpty else {
            throw FrameSocketError(
                code: "feed.descriptors", "A descriptor came with another message than hello. Send it with hello only.")
        }
        guard hello != nil else { throw .malformed("the first message must be hello") }
        switch message {
        case .frame(let notice): return .frame(try picture(notice, now))
        case .paused:
            counts.isPaused = true
            return .paused
        case .resumed:
            counts.isPaused = false
            return .resumed
        case .statusQuestion: return .statusAsked
        case .bye(let reason): return .bye(reason)
        default: throw .malformed("only the other end may send this message")
        }
    }

    /// Notes that the graph released a slot. Returns false if the slot belongs to an earlier pool; the feeder is then
    /// not notified.
    package mutating func release(pool: UInt32, slot: UInt32) -> Bool {
        pool == self.pool && held.remove(slot) != nil
    }

    /// Notes that a frame entered the graph.
    package mutating func taken() { counts.taken += 1 }

    private mutating func greet(_ hello: FeedHello, _ memory: [Int?]) throws(FrameSocketError) -> Event {
        let feeder = hello.name.isEmpty ? "The feeder " : "The feeder \"\(hello.name)\" "
        // Feeders do not state a rate.
        let stated = hello.format
        let isConverted = convertsFrames && wanted.encoding.isRaw && stated.encoding.isRaw
        guard
            isConverted
                || (stated.encoding, stated.width, stated.height) == (wanted.encoding, wanted.width, wanted.height)
        else {
            throw FrameSocketError(
                code: "feed.format",
                "\(feeder)sends \(hello.format) instead of \(wanted). Change the node's "
                    + "settings or the feeder.")
        }
        try hello.format.checkSize("\(feeder)sends")
        guard (1...Self.mostSlots).contains(hello.slots) else {
            throw Self.memoryError("it has \(hello.slots) slots instead of 1 to \(Self.mostSlots)")
        }
        let smallest = hello.format.encoding.isRaw ? hello.format.bytesPerFrame : 1
        guard Int(hello.slotBytes) >= smallest else {
            throw Self.memoryError("its slots of \(hello.slotBytes) bytes are too small for \(hello.format)")
        }
        let bytes = Int(hello.slots) * Int(hello.slotBytes)
        guard bytes <= Self.mostBytes else {
            throw Self.memoryError("it has \(bytes) bytes; the limit is \(Self.mostBytes)")
        }
        guard memory.count == 1, let first = memory.first else {
            throw Self.memoryError("hello has \(memory.count) descriptors instead of one")
        }
        guard let there = first else {
            throw Self.memoryError("its descriptor is not one of memfd_create, sealed with F_SEAL_SHRINK")
        }
        guard there >= bytes else {
            throw Self.memoryError("it has \(there) bytes, but its slots need \(bytes)")
        }
        let isFirst = self.hello == nil
        self.hello = hello
        pool += 1
        held = []
        return .memory(pool: pool, bytes: bytes, name: hello.name, isFirst: isFirst)
    }

    private static func memoryError(_ why: String) -> FrameSocketError {
        FrameSocketError(code: "feed.memory", "The feeder's memory is unusable: \(why).")
    }

    private mutating func picture(_ notice: FrameNotice, _ now: UInt64) throws(FrameSocketError) -> Picture {
        guard let hello else { preconditionFailure("frames come after hello") }
        counts.received += 1
        guard notice.slot < hello.slots else {
            throw Self.badFrame("it has slot \(notice.slot) of \(hello.slots)")
        }
        guard !held.contains(notice.slot) else {
            throw FrameSocketError(
                code: "feed.no-credit",
                "A frame arrived in slot \(notice.slot), which the graph still holds. Wait for the slot's release.")
        }
        let (offset, length) = (Int(notice.offset), Int(notice.length))
        guard length > 0, offset + length <= Int(hello.slotBytes) else {
            throw Self.badFrame("bytes \(offset) to \(offset + length) are outside of a slot of \(hello.slotBytes)")
        }
        let planes = try planes(of: notice, hello.format)
        if let last = planes.map(\.end).max(), last > length {
            throw Self.badFrame("its planes end at byte \(last) of \(length)")
        }
        held.insert(notice.slot)
        let (time, remark) = times.check(notice.captureTime, now: now)
        let start = Int(notice.slot) * Int(hello.slotBytes) + offset
        return Picture(
            pool: pool, slot: notice.slot, range: start..<start + length, format: hello.format, planes: planes,
            captureTime: time, isKeyframe: notice.isKeyframe, remark: remark)
    }

    private func planes(of notice: FrameNotice, _ format: FrameFormat) throws(FrameSocketError) -> [FramePlane] {
        var planes = format.planes
        guard !notice.planes.isEmpty, !planes.isEmpty else { return planes }
        guard notice.planes.count == planes.count else {
            throw Self.badFrame(
                "it has \(notice.planes.count) planes instead of \(planes.count) for \(format.encoding.rawValue)")
        }
        for index in planes.indices {
            planes[index].offset = Int(notice.planes[index].offset)
            planes[index].stride = Int(notice.planes[index].stride)
            // Longer rows than four times the pixels would be a mistake, and elements store strides in 32 bits.
            guard (planes[index].rowBytes...planes[index].rowBytes * 4 + 4096).contains(planes[index].stride) else {
                throw Self.badFrame(
                    "the stride of plane \(index) is \(planes[index].stride) bytes for rows of "
                        + "\(planes[index].rowBytes)"
                )
            }
        }
        return planes
    }

    private static func badFrame(_ why: String) -> FrameSocketError {
        FrameSocketError(code: "feed.bad-frame", "The feeder sent a frame with an invalid place: \(why).")
    }
}

/// Checks a feeder's capture times against this machine's clock.
struct CaptureTimes: Sendable {
    /// How many nanoseconds a time may be in the future. Both ends read the same clock, so this only allows for
    /// rounding.
    private static let mostAhead: UInt64 = 50_000_000
    /// How many nanoseconds before the connection a frame may have been captured.
    private static let mostBefore: UInt64 = 1_000_000_000

    private let earliest: UInt64
    private var last: UInt64 = 0
    private var isReported = false

    init(connectedAt now: UInt64) {
        earliest = now > Self.mostBefore ? now - Self.mostBefore : 0
    }

    /// Returns the capture time of a frame: the feeder's, or the arrival time if that is 0 or impossible. The first
    /// impossible time also returns an error.
    mutating func check(_ time: UInt64, now: UInt64) -> (UInt64, FrameSocketError?) {
        let problem: String? =
            if time == 0 {
                nil
            } else if time > now, time - now > Self.mostAhead {
                "it is \((time - now) / 1_000_000) ms in the future"
            } else if time < earliest {
                "it is before the feeder's connection"
            } else if time <= last {
                "it is not later than the previous one"
            } else {
                nil
            }
        let isOwn = time != 0 && problem == nil
        let settled = isOwn ? time : max(now, last + 1)
        last = settled
        guard let problem, !isReported else { return (settled, nil) }
        isReported = true
        return (
            settled,
            FrameSocketError(
                code: "feed.bad-time",
                "The feeder sent an impossible capture time: \(problem). The arrival time replaces such times. Send "
                    + "nanoseconds on CLOCK_MONOTONIC.")
        )
    }
}
