package import RTP
package import RoomProtocol

/// A stream that its publisher wants to be recorded.
package struct RecordedStream: Sendable, Equatable {
    package var room: RoomName
    package var participant: String
    /// Unique in the server's lifetime.
    package var stream: Int
    package var codec: Codec

    package init(room: RoomName, participant: String, stream: Int, codec: Codec) {
        self.room = room
        self.participant = participant
        self.stream = stream
        self.codec = codec
    }
}

/// Packets of one stream, in order, as RTP packets of one source whose clock never jumps.
package struct RecordedPackets: Sendable, Equatable {
    package struct Packet: Sendable, Equatable {
        /// Since the capture of the recording's first packet. Never less than that of the packet before.
        package var time: TimeInterval
        /// Of the RTP packet, in bytes.
        package var length: Int
    }

    package private(set) var packets: [Packet] = []
    /// The RTP packets, one after the other.
    package private(set) var bytes: [UInt8] = []
    /// When the recording's first packet was captured, by the clock of the loop.
    package var start = MonotonicTime.zero

    package init() {}

    package var isEmpty: Bool { packets.isEmpty }

    /// The memory that a packet takes beside its bytes, about: that of its buffer.
    package static let packetOverhead = 512

    /// The memory that they take, in bytes.
    package var cost: Int { bytes.count + packets.count * Self.packetOverhead }

    mutating func append(
        _ payload: ArraySlice<UInt8>, _ numbers: Splice.Numbers, payloadType: UInt8, marker: Bool, at time: TimeInterval
    ) {
        let (number, timestamp) = (numbers.sequenceNumber.rawValue, numbers.timestamp.rawValue)
        bytes.append(0x80)
        bytes.append((marker ? 0x80 : 0) | payloadType)
        bytes.append(UInt8(number >> 8))
        bytes.append(UInt8(number & 0xff))
        for shift in [24, 16, 8, 0] as [UInt32] { bytes.append(UInt8(truncatingIfNeeded: timestamp >> shift)) }
        bytes += [0, 0, 0, 1]
        bytes += payload
        packets.append(Packet(time: time, length: RTPHeader.minimumLength + payload.count))
    }
}

/// The end of a recording.
package struct RecordingEnd: Sendable, Equatable {
    /// When the recording's first packet was captured, by the clock of the loop. Nil if it has none.
    package var start: MonotonicTime?
    /// Packets that never came.
    package var missing = 0
    /// Packets for which the sink had no room.
    package var dropped = 0
    /// The last `sort` of a video. Nil for audio.
    package var sort: String?

    package init(start: MonotonicTime? = nil, missing: Int = 0, dropped: Int = 0, sort: String? = nil) {
        (self.start, self.missing, self.dropped, self.sort) = (start, missing, dropped, sort)
    }
}

/// Where the packets of one stream go. Used on the loop of its publisher; no call waits.
package protocol RecordingSink: AnyObject {
    /// Takes packets. Returns false if it has no room for them, and takes none.
    func write(_ packets: RecordedPackets) -> Bool
    /// Whether at least half of its room is free, so that going on is of use.
    var isHalfEmpty: Bool { get }
    /// No packet follows. Called once, after a failure, too.
    func end(_ end: RecordingEnd)
}

/// Makes the recordings of a server. Callable on any thread; no call waits.
package protocol StreamRecorder: Sendable {
    /// - Parameter failed: called at most once, on any thread, if the recording cannot go on. It takes its end alone.
    /// - Throws: if the server cannot record another stream now.
    func begin(
        _ stream: RecordedStream, failed: @escaping @Sendable (RoomError) -> Void
    ) throws(RoomError) -> any RecordingSink
}
