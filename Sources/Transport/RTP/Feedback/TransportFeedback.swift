/// Which packets of a peer arrived, and when: transport-wide congestion control feedback
/// (draft-holmer-rmcat-transport-wide-cc-extensions-01, section 3.1).
///
/// It covers `count` packets, `base` and its successors. Packets without an arrival are lost, or not there yet. Only
/// arrivals take memory, so that a datagram cannot describe more than its length allows.
public struct TransportFeedback: Sendable, Equatable {
    /// The arrival of one packet.
    public struct Arrival: Sendable, Equatable {
        /// The packet's number minus `base`.
        public var offset: UInt16
        /// The time since the arrival before, or since the reference time, in units of 250 µs.
        public var ticks: Int16

        public init(offset: UInt16, ticks: Int16) {
            self.offset = offset
            self.ticks = ticks
        }
    }

    /// The unit of arrival times.
    public static let tick = TimeInterval.microseconds(250)
    /// The unit of the reference time.
    public static let referenceUnit = TimeInterval.milliseconds(64)

    public var sender: SSRC
    public var media: SSRC
    public var base: SequenceNumber
    /// How many packets are covered. At least 1.
    public var count: UInt16
    /// The time before the first arrival, on the receiver's clock, in units of 64 ms. 24 bits, which wrap.
    public var referenceTime: UInt32
    /// The number of the feedback itself, which wraps.
    public var number: UInt8
    /// In ascending order of offsets.
    public var arrivals: [Arrival]

    public init(
        sender: SSRC, media: SSRC, base: SequenceNumber, count: UInt16, referenceTime: UInt32, number: UInt8,
        arrivals: [Arrival]
    ) {
        self.sender = sender
        self.media = media
        self.base = base
        self.count = count
        self.referenceTime = referenceTime
        self.number = number
        self.arrivals = arrivals
    }
}

/// The status of a packet: two bits (section 3.1.1). The fourth value is reserved.
private enum Status {
    static let missing: UInt16 = 0
    static let small: UInt16 = 1
    static let large: UInt16 = 2
}

extension TransportFeedback {
    /// Format 15 of transport-layer feedback.
    static let format: UInt8 = 15
    private static let headLength = 16

    /// Reads the body of a packet: all after its first four bytes. Nil if a length in it overruns, or if it uses the
    /// reserved status.
    init?(reading packet: borrowing PacketBuffer, body: Int, end: Int) {
        guard body + Self.headLength <= end else { return nil }
        sender = SSRC(packet.uint32(at: body))
        media = SSRC(packet.uint32(at: body + 4))
        base = SequenceNumber(packet.uint16(at: body + 8))
        count = packet.uint16(at: body + 10)
        referenceTime = packet.uint24(at: body + 12)
        number = packet.bytes[body + 15]
        arrivals = []
        guard count > 0 else { return nil }
        let chunks = body + Self.headLength
        guard let deltas = Self.skipChunks(packet, chunks, end, Int(count)), deltas <= end else { return nil }
        arrivals.reserveCapacity(min(Int(count), end - deltas))
        var reader = ChunkReader(offset: chunks, left: Int(count))
        var offset = deltas
        while let run = reader.next(packet) {
            guard run.status != Status.missing else { continue }
            for place in run.range {
                let length = run.status == Status.small ? 1 : 2
                guard run.status <= Status.large, offset + length <= end else { return nil }
                let ticks =
                    length == 1 ? Int16(packet.bytes[offset]) : Int16(bitPattern: packet.uint16(at: offset))
                arrivals.append(Arrival(offset: UInt16(place), ticks: ticks))
                offset += length
            }
        }
    }

    /// The end of the chunks that cover `count` packets. Nil if they overrun.
    private static func skipChunks(_ packet: borrowing PacketBuffer, _ start: Int, _ end: Int, _ count: Int) -> Int? {
        var offset = start
        var covered = 0
        while covered < count {
            guard offset + 2 <= end else { return nil }
            covered += Chunk(packet.uint16(at: offset)).length
            offset += 2
            // A run of nothing covers nothing. More of them than packets are not needed.
            guard offset - start <= 2 * count + 2 else { return nil }
        }
        return offset
    }
}

/// A chunk of statuses (sections 3.1.3 and 3.1.4).
private struct Chunk {
    let value: UInt16

    init(_ value: UInt16) { self.value = value }

    var isRun: Bool { value & 0x8000 == 0 }
    private var hasTwoBits: Bool { value & 0x4000 != 0 }

    /// How many packets it covers.
    var length: Int { isRun ? Int(value & 0x1fff) : hasTwoBits ? 7 : 14 }

    func status(_ index: Int) -> UInt16 {
        if isRun { return (value >> 13) & 3 }
        return hasTwoBits ? (value >> UInt16(2 * (6 - index))) & 3 : (value >> UInt16(13 - index)) & 1
    }
}

/// Reads chunks as runs of one status. The chunks were checked against the packet's length.
private struct ChunkReader {
    var offset: Int
    /// Packets that are not covered yet.
    var left: Int
    private var chunk: Chunk?
    private var index = 0
    private var place = 0

    init(offset: Int, left: Int) {
        self.offset = offset
        self.left = left
    }

    mutating func next(_ packet: borrowing PacketBuffer) -> (range: Range<Int>, status: UInt16)? {
        while left > 0 {
            guard let current = chunk, index < current.length else {
                chunk = Chunk(packet.uint16(at: offset))
                offset += 2
                index = 0
                continue
            }
            let length = current.isRun ? min(current.length, left) : 1
            let run = (range: place..<(place + length), status: current.status(index))
            index += length
            place += length
            left -= length
            return run
        }
        return nil
    }
}

extension TransportFeedback {
    /// The length of the written packet in bytes, with its header of four bytes.
    var serializedLength: Int { (4 + Self.headLength + 2 * chunks().count + deltaBytes + 3) / 4 * 4 }

    private var deltaBytes: Int { arrivals.reduce(0) { $0 + (Self.isSmall($1.ticks) ? 1 : 2) } }

    private static func isSmall(_ ticks: Int16) -> Bool { (0...255).contains(ticks) }

    /// Writes the packet's body at `offset`, with zero bytes up to a multiple of four.
    func write(at start: Int, to packet: inout PacketBuffer) {
        packet.setUInt32(sender.rawValue, at: start)
        packet.setUInt32(media.rawValue, at: start + 4)
        packet.setUInt16(base.rawValue, at: start + 8)
        packet.setUInt16(count, at: start + 10)
        packet.setUInt32(referenceTime << 8 | UInt32(number), at: start + 12)
        var offset = start + Self.headLength
        for chunk in chunks() {
            packet.setUInt16(chunk, at: offset)
            offset += 2
        }
        for arrival in arrivals {
            if Self.isSmall(arrival.ticks) {
                packet.bytes[offset] = UInt8(arrival.ticks)
                offset += 1
            } else {
                packet.setUInt16(UInt16(bitPattern: arrival.ticks), at: offset)
                offset += 2
            }
        }
        while (offset - start) % 4 != 0 {
            packet.bytes[offset] = 0
            offset += 1
        }
    }

    /// The chunks of all statuses: the longest run first, otherwise the denser vector.
    private func chunks() -> [UInt16] {
        var chunks: [UInt16] = []
        var place = 0
        var next = 0
        while place < Int(count) {
            let status = self.status(at: place, next)
            let run = runLength(of: status, from: place, next)
            let taken: Int
            if run >= 14 || place + run == Int(count) {
                taken = min(run, 0x1fff)
                chunks.append(status << 13 | UInt16(taken))
            } else {
                let (chunk, length) = vector(from: place, next)
                taken = min(length, Int(count) - place)
                chunks.append(chunk)
            }
            place += taken
            while next < arrivals.count, Int(arrivals[next].offset) < place { next += 1 }
        }
        return chunks
    }

    /// The status of a packet. `next` is the index of the first arrival from `place` on, or an earlier one.
    private func status(at place: Int, _ next: Int) -> UInt16 {
        guard next < arrivals.count, Int(arrivals[next].offset) == place else { return Status.missing }
        return Self.isSmall(arrivals[next].ticks) ? Status.small : Status.large
    }

    private func runLength(of status: UInt16, from place: Int, _ next: Int) -> Int {
        if status == Status.missing {
            return (next < arrivals.count ? Int(arrivals[next].offset) : Int(count)) - place
        }
        var length = 1
        while next + length < arrivals.count, self.status(at: place + length, next + length) == status { length += 1 }
        return length
    }

    /// One chunk with a status for each of the next packets: 14 of one bit, or 7 of two bits.
    private func vector(from place: Int, _ next: Int) -> (chunk: UInt16, length: Int) {
        var narrow: UInt16 = 0x8000
        var wide: UInt16 = 0xc000
        var isNarrow = true
        var index = next
        while index < arrivals.count, Int(arrivals[index].offset) < place + 14 {
            let offset = Int(arrivals[index].offset) - place
            let status = Self.isSmall(arrivals[index].ticks) ? Status.small : Status.large
            if status == Status.large { isNarrow = false }
            narrow |= 1 << UInt16(13 - offset)
            if offset < 7 { wide |= status << UInt16(2 * (6 - offset)) }
            index += 1
        }
        return isNarrow ? (narrow, 14) : (wide, 7)
    }
}
