/// An `extmap` line (RFC 8285, section 5) whose id fits the one-byte form. Parsing drops others: our packets have no
/// other form, so nothing else may be negotiated.
public struct HeaderExtension: Sendable, Hashable {
    /// The header extensions that sessions write and read. Another one needs a case here, an id in `HeaderExtensionIDs`, and
    /// its value in `RTPHeader.resolveExtensions` or `OutgoingStream`.
    public enum Kind: String, Sendable, CaseIterable {
        /// RFC 9143, section 15.
        case mid = "urn:ietf:params:rtp-hdrext:sdes:mid"
        /// The rid of a layer of simulcast (RFC 8852, section 3.1).
        case streamID = "urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id"
        /// The rid of the layer that an RTX packet repeats (RFC 8852, section 3.2).
        case repairedStreamID = "urn:ietf:params:rtp-hdrext:sdes:repaired-rtp-stream-id"
        /// See `AbsoluteCaptureTime`.
        case captureTime = "http://www.webrtc.org/experiments/rtp-hdrext/abs-capture-time"
        /// See `AudioLevel`.
        case audioLevel = "urn:ietf:params:rtp-hdrext:ssrc-audio-level"
        /// See `AbsoluteSendTime`.
        case sendTime = "http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time"
        /// See `TransportSequence`.
        case transportNumber = "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01"
    }

    public static let ids: ClosedRange<UInt8> = 1...14

    /// One of `ids`.
    public var id: UInt8
    public var uri: String
    /// Whether the end with this description sends and receives it.
    public var direction: MediaDirection

    public init(id: UInt8, uri: String, _ direction: MediaDirection = .sendrecv) {
        self.id = id
        self.uri = uri
        self.direction = direction
    }

    public init(id: UInt8, _ kind: Kind, _ direction: MediaDirection = .sendrecv) {
        self.init(id: id, uri: kind.rawValue, direction)
    }

    /// Nil for an extension that sessions do not know.
    public var kind: Kind? { Kind(rawValue: uri) }
}

extension [HeaderExtension] {
    /// Those of an offer that an answer accepts, in the answer's direction (RFC 8285, section 7): each known extension once,
    /// under an id of its own.
    public var acceptable: [HeaderExtension] {
        var accepted: [HeaderExtension] = []
        for one in self where one.kind != nil && one.direction != .inactive {
            guard !accepted.contains(where: { $0.id == one.id || $0.uri == one.uri }) else { continue }
            accepted.append(HeaderExtension(id: one.id, uri: one.uri, one.direction.reversed))
        }
        return accepted
    }

    /// Those that the end with this description sends.
    public var sent: [HeaderExtension] { filter { $0.direction == .sendrecv || $0.direction == .sendonly } }

    /// Those that the end with this description receives.
    public var received: [HeaderExtension] { filter { $0.direction == .sendrecv || $0.direction == .recvonly } }
}

/// The negotiated ids of one m-line's header extensions. Nil for one that was not negotiated.
public struct HeaderExtensionIDs: Sendable, Hashable {
    public var mid: UInt8?
    public var streamID: UInt8?
    public var repairedStreamID: UInt8?
    public var captureTime: UInt8?
    public var transportNumber: UInt8?
    public var audioLevel: UInt8?
    public var sendTime: UInt8?

    public init(
        mid: UInt8? = nil, streamID: UInt8? = nil, repairedStreamID: UInt8? = nil, captureTime: UInt8? = nil,
        transportNumber: UInt8? = nil, audioLevel: UInt8? = nil, sendTime: UInt8? = nil
    ) {
        self.mid = mid
        self.streamID = streamID
        self.repairedStreamID = repairedStreamID
        self.captureTime = captureTime
        self.transportNumber = transportNumber
        self.audioLevel = audioLevel
        self.sendTime = sendTime
    }

    public init(_ extensions: [HeaderExtension]) {
        for one in extensions.acceptable {
            switch one.kind {
            case .mid: mid = one.id
            case .streamID: streamID = one.id
            case .repairedStreamID: repairedStreamID = one.id
            case .captureTime: captureTime = one.id
            case .transportNumber: transportNumber = one.id
            case .sendTime: sendTime = one.id
            case .audioLevel: audioLevel = one.id
            case nil: break
            }
        }
    }
}

/// Writes a header extension after the fixed part of an RTP header, element by element, in the one-byte form (RFC 8285,
/// section 4.2), into the bytes of a packet. Allocates nothing.
public struct HeaderExtensionWriter {
    @usableFromInline static var start: Int { RTPHeader.minimumLength + 4 }
    @usableFromInline var end: Int

    @inlinable
    public init() { end = Self.start }

    /// The length of a header extension whose elements have so many bytes, their ids included. 0 without elements.
    public static func length(ofElements bytes: Int) -> Int { bytes == 0 ? 0 : 4 + (bytes + 3) & ~3 }

    /// Begins an element with a value of 1...16 bytes. Returns the place for the value.
    @inlinable
    public mutating func element(_ id: UInt8, length: Int, in packet: inout MutableSpan<UInt8>) -> Int {
        packet[end] = id << 4 | UInt8(length - 1)
        let place = end + 1
        end = place + length
        return place
    }

    public mutating func write(_ time: AbsoluteCaptureTime, as id: UInt8, to packet: inout MutableSpan<UInt8>) {
        let place = element(id, length: time.length, in: &packet)
        time.write(to: &packet, at: place)
    }

    public mutating func write(_ level: AudioLevel, as id: UInt8, to packet: inout MutableSpan<UInt8>) {
        packet[element(id, length: AudioLevel.length, in: &packet)] = level.byte
    }

    public mutating func write(_ time: AbsoluteSendTime, as id: UInt8, to packet: inout MutableSpan<UInt8>) {
        let place = element(id, length: AbsoluteSendTime.length, in: &packet)
        packet[place] = UInt8(truncatingIfNeeded: time.ticks >> 16)
        packet.setUInt16(UInt16(truncatingIfNeeded: time.ticks), at: place + 1)
    }

    @inlinable
    public mutating func write(_ number: SequenceNumber, as id: UInt8, to packet: inout MutableSpan<UInt8>) {
        let place = element(id, length: TransportSequence.length, in: &packet)
        packet.setUInt16(number.rawValue, at: place)
    }

    /// Ends the header, and returns its length. Without elements, it has no extension.
    @inlinable
    public mutating func finish(in packet: inout MutableSpan<UInt8>) -> Int {
        guard end > Self.start else { return RTPHeader.minimumLength }
        while end & 3 != 0 {
            packet[end] = 0
            end += 1
        }
        packet[0] |= 0x10
        packet.setUInt16(0xBEDE, at: RTPHeader.minimumLength)
        packet.setUInt16(UInt16((end - Self.start) / 4), at: RTPHeader.minimumLength + 2)
        return end
    }
}
