/// The payloads of a stream's newest packets with their timestamps, markers, capture times and audio levels, for everyone
/// who sends the stream. On one thread.
///
/// A ring of bytes in one slab. Holders keep the index of a packet. Indexes count from 0 and are never used again; the
/// payload of an overwritten packet is gone for all holders. The ring grows, up to its limits, instead of overwriting
/// packets that receivers may still request. Storing allocates nothing else.
public final class PacketStore {
    public struct Limits: Sendable {
        /// Rounded up to a power of two.
        public var packets = 4096
        public var bytes = 1024 * 1024
        /// Younger packets are overwritten only at a limit. Receivers request a lost packet within a few round trips.
        public var age = TimeInterval.seconds(2)

        public init() {}
    }

    @usableFromInline
    struct Entry {
        /// The position of the capture time, the audio level and the payload after them in all bytes written so far.
        @usableFromInline var position = 0
        var time = MonotonicTime.zero
        @usableFromInline var timestamp = RTPTimestamp(0)
        @usableFromInline var length: UInt16 = 0
        @usableFromInline var marker = false
        /// The bytes before the payload: those of the capture time, an even number, and one of the audio level. An entry
        /// has 24 bytes, and no room for another field.
        @usableFromInline var prefixLength: UInt8 = 0
        @usableFromInline var captureTimeLength: Int { Int(prefixLength & ~1) }
        var hasLevel: Bool { prefixLength & 1 != 0 }
        var totalLength: Int { Int(prefixLength) + Int(length) }
    }

    /// The sizes of a store's first packet.
    private static let firstPackets = 64
    private static let firstBytes = 64 * 1024
    /// The longest payload with a capture time and an audio level.
    private static let longestEntry = PacketBuffer.capacity + AbsoluteCaptureTime.maximumLength + AudioLevel.length

    private let limits: Limits
    @exclusivity(unchecked) @usableFromInline var entries: [Entry] = []
    @exclusivity(unchecked) @usableFromInline var slab: [UInt8] = []
    /// All bytes written so far, including those skipped at the slab's end.
    @exclusivity(unchecked) private var head = 0
    /// The index of the oldest packet.
    @exclusivity(unchecked) @usableFromInline private(set) var oldest = 0
    /// The index of the next packet.
    @exclusivity(unchecked) public private(set) var next = 0

    public init(limits: Limits = Limits()) { self.limits = limits }

    /// The bytes of memory for payloads.
    public var capacity: Int { slab.count }

    package var memory: PacketMemory {
        let entry = MemoryLayout<Entry>.stride
        return PacketMemory(
            held: slab.count + entries.count * entry,
            limit: max(limits.bytes, Self.longestEntry) + Self.rounded(limits.packets) * entry)
    }

    /// Stores the payload of a packet. Returns its index.
    public func add(
        _ packet: borrowing PacketBuffer, _ payload: Range<Int>, timestamp: RTPTimestamp, marker: Bool,
        captureTime: AbsoluteCaptureTime? = nil, level: AudioLevel? = nil, now: MonotonicTime
    ) -> Int {
        if entries.isEmpty {
            entries = [Entry](repeating: Entry(), count: min(Self.firstPackets, Self.rounded(limits.packets)))
            slab = [UInt8](repeating: 0, count: max(Self.longestEntry, min(Self.firstBytes, limits.bytes)))
        }
        let timeLength = captureTime?.length ?? 0
        let prefix = timeLength + (level == nil ? 0 : AudioLevel.length)
        let start = makeRoom(for: prefix + payload.count, now)
        let offset = start % slab.count
        if let captureTime { Self.write(captureTime, to: &slab, at: offset) }
        if let level { slab[offset + timeLength] = level.byte }
        slab.copyBytes(from: packet.bytes, payload, to: offset + prefix)
        entries[next & (entries.count - 1)] = Entry(
            position: start, time: now, timestamp: timestamp, length: UInt16(payload.count), marker: marker,
            prefixLength: UInt8(prefix))
        head = start + prefix + payload.count
        next += 1
        return next - 1
    }

    private static func write(_ time: AbsoluteCaptureTime, to slab: inout [UInt8], at offset: Int) {
        var bytes = slab.mutableSpan
        time.write(to: &bytes, at: offset)
    }

    /// Whether the payload of this index is still here.
    @inlinable
    public func contains(_ index: Int) -> Bool { index >= oldest && index < next }

    /// The length of a payload, 0 if it is gone.
    @inlinable
    public func length(of index: Int) -> Int {
        contains(index) ? Int(entries[index & (entries.count - 1)].length) : 0
    }

    /// The packet's timestamp, 0 if it is gone.
    @inlinable
    public func timestamp(of index: Int) -> RTPTimestamp {
        contains(index) ? entries[index & (entries.count - 1)].timestamp : RTPTimestamp(0)
    }

    /// The packet's marker, false if it is gone.
    @inlinable
    public func marker(of index: Int) -> Bool {
        contains(index) && entries[index & (entries.count - 1)].marker
    }

    /// The bytes of the packet's capture time, 0 without one or if it is gone.
    @inlinable
    public func captureTimeLength(of index: Int) -> Int {
        contains(index) ? entries[index & (entries.count - 1)].captureTimeLength : 0
    }

    /// The packet's capture time, nil without one or if it is gone.
    public func captureTime(of index: Int) -> AbsoluteCaptureTime? {
        let length = captureTimeLength(of: index)
        guard length > 0 else { return nil }
        let offset = entry(index).position % slab.count
        return AbsoluteCaptureTime(slab, offset..<(offset + length))
    }

    /// Whether the packet has an audio level. False if it is gone.
    public func hasLevel(of index: Int) -> Bool { contains(index) && entry(index).hasLevel }

    /// The packet's audio level, nil without one or if it is gone.
    public func level(of index: Int) -> AudioLevel? {
        guard hasLevel(of: index) else { return nil }
        let entry = entry(index)
        return AudioLevel(byte: slab[entry.position % slab.count + entry.captureTimeLength])
    }

    /// Passes the payload of an index, empty if it is gone.
    @inlinable
    public func withPayload<Result>(_ index: Int, _ body: (Span<UInt8>) -> Result) -> Result {
        let slab = slab
        let bytes = slab.span
        guard contains(index) else { return body(bytes.extracting(0..<0)) }
        let entry = entries[index & (entries.count - 1)]
        let offset = entry.position % slab.count + Int(entry.prefixLength)
        return body(bytes.extracting(offset..<(offset + Int(entry.length))))
    }

    // MARK: The ring

    /// Removes or moves what is in the way of a payload of this length. Returns its position.
    private func makeRoom(for length: Int, _ now: MonotonicTime) -> Int {
        while true {
            var start = head
            let offset = head % slab.count
            if offset + length > slab.count { start += slab.count - offset }
            let isFull = next - oldest == entries.count
            guard oldest < next, isFull || entry(oldest).position < start + length - slab.count else { return start }
            let isYoung = now - entry(oldest).time < limits.age
            if isYoung, isFull, entries.count < Self.rounded(limits.packets) {
                growEntries()
            } else if isYoung, !isFull, slab.count < limits.bytes {
                growSlab()
            } else {
                oldest += 1
            }
        }
    }

    private func entry(_ index: Int) -> Entry { entries[index & (entries.count - 1)] }

    private func growEntries() {
        var larger = [Entry](repeating: Entry(), count: entries.count * 2)
        for index in oldest..<next { larger[index & (larger.count - 1)] = entry(index) }
        entries = larger
    }

    private func growSlab() {
        var larger = [UInt8](repeating: 0, count: min(slab.count * 2, limits.bytes))
        head = 0
        for index in oldest..<next {
            let moved = entry(index)
            let offset = moved.position % slab.count
            larger.copyBytes(from: slab, offset..<(offset + moved.totalLength), to: head)
            entries[index & (entries.count - 1)].position = head
            head += moved.totalLength
        }
        slab = larger
    }

    private static func rounded(_ packets: Int) -> Int {
        var rounded = 1
        while rounded < packets { rounded *= 2 }
        return rounded
    }
}
