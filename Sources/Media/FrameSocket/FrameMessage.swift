/// The messages of a frame socket. docs/frame-socket.md specifies them.
///
/// Each message is one packet of a SOCK_SEQPACKET socket. It consists of little-endian 32-bit numbers; the first is the
/// message's kind. Bytes after the known fields are ignored, so that later versions can add fields.
package enum FrameMessage: Sendable, Hashable {
    // From the graph.
    case greeting(FrameFormat)
    /// The feeder is accepted and may send frames.
    case start
    case release(pool: UInt32, slot: UInt32)
    case keyframeWanted
    case pause
    case resume
    case stop(StopReason)
    case statusAnswer(FeedCounts)
    case failure(FrameSocketError)
    // From the feeder. `hello` has the descriptor of the memory attached.
    case hello(FeedHello)
    case frame(FrameNotice)
    case paused
    case resumed
    case statusQuestion
    case bye(String)

    static let version: UInt32 = 1
    /// The number after the kind of either side's first message: the letters CLFS.
    static let magic: UInt32 = 0x5346_4c43
    /// The longest message, in bytes.
    package static let limit = 512
}

/// Why the graph asks a feeder to end.
public enum StopReason: UInt32, Sendable, Hashable {
    /// The graph or the node ends.
    case ended = 1
    /// The program that runs the graph needs no more frames.
    case finished = 2
    /// The meeting that the frames were for is over.
    case meetingFinished = 3
}

/// The feeder's first message.
package struct FeedHello: Sendable, Hashable {
    /// Its frame rate is that of the greeting.
    package var format: FrameFormat
    package var slots: UInt32
    package var slotBytes: UInt32
    /// The feeder's name, for people.
    package var name: String

    package init(format: FrameFormat, slots: UInt32, slotBytes: UInt32, name: String) {
        self.format = format
        self.slots = slots
        self.slotBytes = slotBytes
        self.name = name
    }
}

/// A frame in the shared memory.
package struct FrameNotice: Sendable, Hashable {
    package var slot: UInt32
    /// Nanoseconds on CLOCK_MONOTONIC; 0 for the arrival time.
    package var captureTime: UInt64
    package var isKeyframe = true
    /// Of the first byte, from the start of the slot.
    package var offset: UInt32 = 0
    package var length: UInt32
    /// The place of each plane, from the start of the frame, at most `mostPlanes`; empty for planes without gaps.
    package var planes: [PlanePlace] = []

    static let mostPlanes = 4
}

/// The place of a plane according to the feeder.
package struct PlanePlace: Sendable, Hashable {
    package var offset: UInt32
    package var stride: UInt32
}

/// Statistics of a feeder's frames.
public struct FeedCounts: Sendable, Hashable {
    /// Frames that were announced.
    public var received: UInt64 = 0
    /// Frames that entered the graph.
    public var taken: UInt64 = 0
    /// Slots that the graph holds.
    public var held: UInt32 = 0
    /// Whether the graph accepts no frames at present.
    public var isPaused = false

    package init() {}
}

extension FrameMessage {
    /// A message of each kind, to read into.
    private static let blanks: [FrameMessage] = {
        let format = FrameFormat(.i420, width: 0, height: 0)
        return [
            .hello(FeedHello(format: format, slots: 0, slotBytes: 0, name: "")),
            .frame(FrameNotice(slot: 0, captureTime: 0, length: 0)), .paused, .resumed, .statusQuestion, .bye(""),
            .greeting(format), .start, .release(pool: 0, slot: 0), .keyframeWanted, .pause, .resume, .stop(.ended),
            .statusAnswer(FeedCounts()), .failure(.malformed("")),
        ]
    }()

    private var kind: UInt32 {
        switch self {
        case .hello: 0x01
        case .frame: 0x02
        case .paused: 0x03
        case .resumed: 0x04
        case .statusQuestion: 0x05
        case .bye: 0x06
        case .greeting: 0x10
        case .start: 0x11
        case .release: 0x12
        case .keyframeWanted: 0x13
        case .pause: 0x14
        case .resume: 0x15
        case .stop: 0x16
        case .statusAnswer: 0x17
        case .failure: 0x18
        }
    }

    package var bytes: [UInt8] {
        var (fields, message, kind) = (MessageFields(), self, kind)
        // Only reading throws.
        try? fields.pass(&kind, "")
        try? message.pass(&fields)
        return fields.bytes
    }

    package init(_ bytes: some Collection<UInt8>) throws(FrameSocketError) {
        var (fields, number) = (MessageFields(reading: bytes), UInt32(0))
        try fields.pass(&number, "its kind")
        guard let blank = Self.blanks.first(where: { $0.kind == number }) else {
            throw .malformed("no message has the number \(number)")
        }
        self = blank
        try pass(&fields)
    }

    /// Writes the fields after the kind, or replaces them by those read.
    private mutating func pass(_ fields: inout MessageFields) throws(FrameSocketError) {
        switch self {
        case .hello(var hello):
            try fields.passVersion()
            try fields.pass(&hello.format)
            try fields.pass(&hello.slots, "slots")
            try fields.pass(&hello.slotBytes, "the slots' size")
            fields.pass(&hello.name)
            self = .hello(hello)
        case .frame(var frame):
            try fields.pass(&frame)
            self = .frame(frame)
        case .bye(var reason):
            fields.pass(&reason)
            self = .bye(reason)
        case .greeting(var format):
            try fields.passVersion()
            try fields.pass(&format)
            try fields.pass(&format.rateNumerator, "the rate")
            try fields.pass(&format.rateDenominator, "the rate")
            self = .greeting(format)
        case .release(var pool, var slot):
            try fields.pass(&pool, "the pool")
            try fields.pass(&slot, "the slot")
            self = .release(pool: pool, slot: slot)
        case .stop(let reason):
            var number = reason.rawValue
            try fields.pass(&number, "the reason")
            self = .stop(StopReason(rawValue: number) ?? .ended)
        case .statusAnswer(var counts):
            try fields.pass(&counts.received, "the count")
            try fields.pass(&counts.taken, "the count")
            try fields.pass(&counts.held, "the count")
            try fields.pass(&counts.isPaused, "the pause")
            self = .statusAnswer(counts)
        case .failure(let error):
            var text = "\(error.code) \(error.message)"
            fields.pass(&text)
            let words = text.split(separator: " ", maxSplits: 1)
            self = .failure(
                FrameSocketError(code: String(words.first ?? "feed.closed"), words.count > 1 ? String(words[1]) : ""))
        case .start, .keyframeWanted, .pause, .resume, .paused, .resumed, .statusQuestion: break
        }
    }
}

/// The fields of a message. `pass` writes a value, or replaces it by the next one read, so that both have one order.
private struct MessageFields {
    private(set) var bytes: [UInt8] = []
    /// Where the next field to read begins; nil while writing.
    private var index: Int?

    init() {}

    init(reading bytes: some Collection<UInt8>) {
        (self.bytes, index) = (Array(bytes), 0)
    }

    mutating func pass<Number: FixedWidthInteger & UnsignedInteger>(
        _ number: inout Number, _ what: String
    ) throws(FrameSocketError) {
        let shifts = stride(from: 0, to: Number.bitWidth, by: 8)
        guard let index else {
            for shift in shifts { bytes.append(UInt8(truncatingIfNeeded: number >> shift)) }
            return
        }
        let end = index + Number.bitWidth / 8
        guard end <= bytes.count else { throw .malformed("it ends before \(what)") }
        number = zip(bytes[index..<end], shifts).reduce(0) { $0 | Number($1.0) << $1.1 }
        self.index = end
    }

    mutating func pass(_ number: inout Int, _ what: String) throws(FrameSocketError) {
        var short = UInt32(clamping: number)
        try pass(&short, what)
        number = Int(short)
    }

    mutating func pass(_ flag: inout Bool, _ what: String) throws(FrameSocketError) {
        var number: UInt32 = flag ? 1 : 0
        try pass(&number, what)
        flag = number & 1 != 0
    }

    mutating func passVersion() throws(FrameSocketError) {
        var (magic, version) = (FrameMessage.magic, FrameMessage.version)
        guard (try? pass(&magic, "")) != nil, magic == FrameMessage.magic else {
            throw FrameSocketError(
                code: "feed.version",
                "The other end does not use the frame protocol of docs/frame-socket.md.")
        }
        try pass(&version, "the version")
        guard version == FrameMessage.version else {
            throw FrameSocketError(
                code: "feed.version",
                "The other end uses version \(version) of the frame protocol, not version \(FrameMessage.version). "
                    + "Use the same release on both ends.")
        }
    }

    /// Encoding and size.
    mutating func pass(_ format: inout FrameFormat) throws(FrameSocketError) {
        if let index {
            guard index + 4 <= bytes.count else { throw .malformed("it ends before the format") }
            let name = String(decoding: bytes[index..<index + 4], as: UTF8.self)
            guard let encoding = FrameFormat.Encoding(rawValue: name) else {
                let known = FrameFormat.Encoding.allCases.map(\.rawValue).joined(separator: ", ")
                throw FrameSocketError(
                    code: "feed.format", "Unknown format \"\(name.filter(\.isPrintable))\". Use one of \(known).")
            }
            (format.encoding, self.index) = (encoding, index + 4)
        } else {
            bytes += format.encoding.rawValue.utf8
        }
        try pass(&format.width, "the width")
        try pass(&format.height, "the height")
    }

    mutating func pass(_ frame: inout FrameNotice) throws(FrameSocketError) {
        try pass(&frame.slot, "the slot")
        try pass(&frame.captureTime, "the time")
        try pass(&frame.isKeyframe, "flags")
        try pass(&frame.offset, "the offset")
        try pass(&frame.length, "the length")
        if let index {
            let count = min((bytes.count - index) / 8, FrameNotice.mostPlanes)
            frame.planes = Array(repeating: PlanePlace(offset: 0, stride: 0), count: count)
        }
        for plane in frame.planes.indices {
            try pass(&frame.planes[plane].offset, "a plane")
            try pass(&frame.planes[plane].stride, "a stride")
        }
    }

    /// The rest of the message. Writes as much of the text as the message can hold; reads it without characters that
    /// could control a terminal.
    mutating func pass(_ text: inout String) {
        if let index {
            text = String(decoding: bytes[index...], as: UTF8.self).filter(\.isPrintable)
            return
        }
        for character in text {
            if bytes.count + character.utf8.count > FrameMessage.limit { return }
            bytes += character.utf8
        }
    }
}

extension Character {
    /// Whether a terminal shows it without reacting to it.
    fileprivate var isPrintable: Bool {
        unicodeScalars.allSatisfy { scalar in
            switch scalar.properties.generalCategory {
            case .control, .format, .surrogate, .privateUse, .unassigned, .lineSeparator, .paragraphSeparator: false
            default: true
            }
        }
    }
}
