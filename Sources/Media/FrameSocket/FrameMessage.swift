/// The messages of a frame socket. docs/frame-socket.md specifies them.
///
/// Each message is one packet of a SOCK_SEQPACKET socket. It consists of little-endian 32-bit numbers; the first is the
/// message's kind. Bytes after the known fields are ignored, so that later versions can add fields.
package enum FrameMessage: Sendable, Hashable {
    // From the graph.
    case greeting(version: UInt32, FrameFormat)
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

    package static let version: UInt32 = 1
    /// The bytes after the kind of either side's first message.
    package static let magic: [UInt8] = Array("CLFS".utf8)
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
    package var version: UInt32
    /// Its frame rate is that of the greeting.
    package var format: FrameFormat
    package var slots: UInt32
    package var slotBytes: UInt32
    /// The feeder's name, for people.
    package var name: String

    package init(
        version: UInt32 = FrameMessage.version, format: FrameFormat, slots: UInt32, slotBytes: UInt32, name: String
    ) {
        self.version = version
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
    package var isKeyframe: Bool
    /// Of the first byte, from the start of the slot.
    package var offset: UInt32
    package var length: UInt32
    /// The place of each plane, from the start of the frame; empty for planes without gaps.
    package var planes: [PlanePlace]

    package init(
        slot: UInt32, captureTime: UInt64, isKeyframe: Bool = true, offset: UInt32 = 0, length: UInt32,
        planes: [PlanePlace] = []
    ) {
        self.slot = slot
        self.captureTime = captureTime
        self.isKeyframe = isKeyframe
        self.offset = offset
        self.length = length
        self.planes = planes
    }
}

/// The place of a plane according to the feeder.
package struct PlanePlace: Sendable, Hashable {
    package var offset: UInt32
    package var stride: UInt32

    package init(offset: UInt32, stride: UInt32) {
        self.offset = offset
        self.stride = stride
    }
}

/// Statistics of a feeder's frames.
public struct FeedCounts: Sendable, Hashable {
    /// Frames that were announced.
    public var received: UInt64 = 0
    /// Frames that entered the graph.
    public var taken: UInt64 = 0
    /// Slots that the graph holds.
    public var held: UInt32 = 0
    public var isPaused = false

    package init() {}
}

extension FrameMessage {
    /// The kinds of messages.
    enum Kind: UInt32 {
        case hello = 0x01
        case frame = 0x02
        case paused = 0x03
        case resumed = 0x04
        case statusQuestion = 0x05
        case bye = 0x06
        case greeting = 0x10
        case start = 0x11
        case release = 0x12
        case keyframeWanted = 0x13
        case pause = 0x14
        case resume = 0x15
        case stop = 0x16
        case statusAnswer = 0x17
        case failure = 0x18
    }

    private static let keyframeFlag: UInt32 = 1
    private static let mostPlanes = 4

    // MARK: Writing

    package var bytes: [UInt8] {
        var writer = MessageWriter()
        switch self {
        case .greeting(let version, let format):
            writer.put(.greeting, magic: true)
            writer.put(version)
            writer.put(format)
            writer.put(UInt32(clamping: format.rateNumerator), UInt32(clamping: format.rateDenominator))
        case .start: writer.put(.start)
        case .release(let pool, let slot):
            writer.put(.release)
            writer.put(pool, slot)
        case .keyframeWanted: writer.put(.keyframeWanted)
        case .pause: writer.put(.pause)
        case .resume: writer.put(.resume)
        case .stop(let reason):
            writer.put(.stop)
            writer.put(reason.rawValue)
        case .statusAnswer(let counts):
            writer.put(.statusAnswer)
            writer.put(counts.received)
            writer.put(counts.taken)
            writer.put(counts.held, counts.isPaused ? 1 : 0)
        case .failure(let error):
            writer.put(.failure)
            writer.put("\(error.code) \(error.message)")
        case .hello(let hello):
            writer.put(.hello, magic: true)
            writer.put(hello.version)
            writer.put(hello.format)
            writer.put(hello.slots, hello.slotBytes)
            writer.put(hello.name)
        case .frame(let frame):
            writer.put(.frame)
            writer.put(frame.slot)
            writer.put(frame.captureTime)
            writer.put(frame.isKeyframe ? Self.keyframeFlag : 0, frame.offset, frame.length)
            for plane in frame.planes { writer.put(plane.offset, plane.stride) }
        case .paused: writer.put(.paused)
        case .resumed: writer.put(.resumed)
        case .statusQuestion: writer.put(.statusQuestion)
        case .bye(let reason):
            writer.put(.bye)
            writer.put(reason)
        }
        return writer.bytes
    }

    // MARK: Reading

    package init(_ bytes: some Collection<UInt8>) throws(FrameSocketError) {
        var reader = MessageReader(bytes)
        let number = try reader.number("its kind")
        guard let kind = Kind(rawValue: number) else {
            throw .malformed("no message has the number \(number)")
        }
        switch kind {
        case .hello:
            try reader.magic()
            let version = try reader.version()
            let format = try reader.format()
            self = .hello(
                FeedHello(
                    version: version, format: format, slots: try reader.number("slots"),
                    slotBytes: try reader.number("the slots' size"), name: reader.text()))
        case .frame:
            var frame = FrameNotice(slot: try reader.number("the slot"), captureTime: 0, length: 0)
            frame.captureTime = try reader.wideNumber("the time")
            frame.isKeyframe = try reader.number("flags") & Self.keyframeFlag != 0
            frame.offset = try reader.number("the offset")
            frame.length = try reader.number("the length")
            while frame.planes.count < Self.mostPlanes, reader.remaining >= 8 {
                let offset = try reader.number("a plane")
                frame.planes.append(PlanePlace(offset: offset, stride: try reader.number("a stride")))
            }
            self = .frame(frame)
        case .paused: self = .paused
        case .resumed: self = .resumed
        case .statusQuestion: self = .statusQuestion
        case .bye: self = .bye(reader.text())
        case .greeting:
            try reader.magic()
            let version = try reader.version()
            var format = try reader.format()
            format.rateNumerator = Int(try reader.number("the rate"))
            format.rateDenominator = Int(try reader.number("the rate"))
            self = .greeting(version: version, format)
        case .start: self = .start
        case .release: self = .release(pool: try reader.number("the pool"), slot: try reader.number("the slot"))
        case .keyframeWanted: self = .keyframeWanted
        case .pause: self = .pause
        case .resume: self = .resume
        case .stop: self = .stop(StopReason(rawValue: try reader.number("the reason")) ?? .ended)
        case .statusAnswer:
            var counts = FeedCounts()
            counts.received = try reader.wideNumber("the count")
            counts.taken = try reader.wideNumber("the count")
            counts.held = try reader.number("the count")
            counts.isPaused = try reader.number("the pause") != 0
            self = .statusAnswer(counts)
        case .failure:
            let words = reader.text().split(separator: " ", maxSplits: 1)
            self = .failure(
                FrameSocketError(code: String(words.first ?? "feed.closed"), words.count > 1 ? String(words[1]) : ""))
        }
    }
}

private struct MessageWriter {
    private(set) var bytes: [UInt8] = []

    mutating func put(_ kind: FrameMessage.Kind, magic: Bool = false) {
        put(kind.rawValue)
        if magic { bytes += FrameMessage.magic }
    }

    mutating func put(_ numbers: UInt32...) {
        for number in numbers {
            for shift in stride(from: UInt32(0), to: 32, by: 8) {
                bytes.append(UInt8(truncatingIfNeeded: number >> shift))
            }
        }
    }

    mutating func put(_ number: UInt64) {
        put(UInt32(truncatingIfNeeded: number), UInt32(truncatingIfNeeded: number >> 32))
    }

    mutating func put(_ format: FrameFormat) {
        bytes += Array(format.encoding.rawValue.utf8)
        put(UInt32(clamping: format.width), UInt32(clamping: format.height))
    }

    /// Writes as much of the text as the message can hold.
    mutating func put(_ text: String) {
        for character in text {
            let more = Array(String(character).utf8)
            if bytes.count + more.count > FrameMessage.limit { return }
            bytes += more
        }
    }
}

private struct MessageReader {
    private let bytes: [UInt8]
    private var index = 0

    init(_ bytes: some Collection<UInt8>) { self.bytes = Array(bytes) }

    var remaining: Int { bytes.count - index }

    mutating func number(_ what: String) throws(FrameSocketError) -> UInt32 {
        guard remaining >= 4 else { throw .malformed("it ends before \(what)") }
        defer { index += 4 }
        return (0..<4).reduce(0) { $0 | UInt32(bytes[index + $1]) << UInt32(8 * $1) }
    }

    mutating func wideNumber(_ what: String) throws(FrameSocketError) -> UInt64 {
        let low = try number(what)
        return UInt64(low) | UInt64(try number(what)) << 32
    }

    mutating func magic() throws(FrameSocketError) {
        guard remaining >= 4, Array(bytes[index..<index + 4]) == FrameMessage.magic else {
            throw FrameSocketError(
                code: "feed.version",
                "The other end does not use the frame protocol of docs/frame-socket.md.")
        }
        index += 4
    }

    mutating func version() throws(FrameSocketError) -> UInt32 {
        let version = try number("the version")
        guard version == FrameMessage.version else {
            throw FrameSocketError(
                code: "feed.version",
                "The other end uses version \(version) of the frame protocol, not version \(FrameMessage.version). "
                    + "Use the same release on both ends.")
        }
        return version
    }

    mutating func format() throws(FrameSocketError) -> FrameFormat {
        guard remaining >= 4 else { throw .malformed("it ends before the format") }
        let name = String(decoding: bytes[index..<index + 4], as: UTF8.self)
        index += 4
        guard let encoding = FrameFormat.Encoding(rawValue: name) else {
            let known = FrameFormat.Encoding.allCases.map(\.rawValue).joined(separator: ", ")
            throw FrameSocketError(
                code: "feed.format", "Unknown format \"\(name.filter(\.isPrintable))\". Use one of \(known).")
        }
        let width = try number("the width")
        return FrameFormat(encoding, width: Int(width), height: Int(try number("the height")))
    }

    /// The rest of the message as text for people, without characters that could control a terminal.
    mutating func text() -> String {
        defer { index = bytes.count }
        return String(decoding: bytes[index...], as: UTF8.self).filter(\.isPrintable)
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
