internal import MediaGraph
internal import RTP
internal import RoomProtocol

/// A datagram's contents that a link can see.
enum Contents {
    struct Media {
        var ssrc: UInt32
        var number: UInt16
        var isRepair = false
        /// Nil with real encryption, and for a packet in place of one that was omitted.
        var source: UInt32?
        var isKeyframe = false
    }

    case media(Media)
    /// RTCP that requests packets or a keyframe (RFC 4585, sections 6.2.1 and 6.3.1).
    case request
    case other

    init(of datagram: Span<UInt8>) {
        guard datagram.count >= RTPHeader.minimumLength, (128...191).contains(datagram[0]) else {
            self = .other
            return
        }
        if (192...223).contains(datagram[1]) {
            self = Self.hasRequest(datagram) ? .request : .other
            return
        }
        var start = Self.payloadStart(of: datagram)
        let type = datagram[1] & 0x7f
        let isRepair =
            type == Codec.vp8.retransmissionPayloadType || type == Codec.vp9.retransmissionPayloadType
        if isRepair { start += 2 }
        var ssrc: UInt32 = 0
        for index in 8..<12 { ssrc = ssrc << 8 | UInt32(datagram[index]) }
        var media = Media(ssrc: ssrc, number: UInt16(datagram[2]) << 8 | UInt16(datagram[3]), isRepair: isRepair)
        let payload = datagram.extracting(min(start, datagram.count)..<datagram.count)
        if type == Codec.opus.redundancyPayloadType {
            if let own = Self.ownStart(ofRedundant: payload) {
                media.source = AudioSource.contents(of: payload.extracting(own..<payload.count))?.source
            }
        } else if type == Codec.opus.payloadType {
            media.source = AudioSource.contents(of: payload)?.source
        } else if datagram[0] & 0x20 == 0, !Self.isVP9(type), let part = FramePart(payload: payload) {
            media.source = part.source
            media.isKeyframe = part.isKeyframe
        }
        self = .media(media)
    }

    /// Whether a packet is one of VP9 or its repair, whose contents are those of tests.
    private static func isVP9(_ type: UInt8) -> Bool {
        type == Codec.vp9.payloadType || type == Codec.vp9.retransmissionPayloadType
    }

    /// Where the own payload of a packet of RED begins, behind the copies (RFC 2198, section 3).
    static func ownStart(ofRedundant payload: Span<UInt8>) -> Int? {
        var (place, copies) = (0, 0)
        while place < payload.count, payload[place] & 0x80 != 0 {
            guard place + 4 <= payload.count else { return nil }
            copies += Int(payload[place + 2] & 3) << 8 | Int(payload[place + 3])
            place += 4
        }
        let start = place + 1 + copies
        return start <= payload.count ? start : nil
    }

    /// Where the payload of an RTP packet begins (RFC 3550, section 5.1).
    static func payloadStart(of packet: Span<UInt8>) -> Int {
        var start = RTPHeader.minimumLength + 4 * Int(packet[0] & 0x0f)
        if packet[0] & 0x10 != 0, start + 4 <= packet.count {
            start += 4 + 4 * (Int(packet[start + 2]) << 8 | Int(packet[start + 3]))
        }
        return min(start, packet.count)
    }

    private static func hasRequest(_ compound: Span<UInt8>) -> Bool {
        var place = 0
        while place + 4 <= compound.count {
            let (type, format) = (compound[place + 1], compound[place] & 0x1f)
            if type == 205 && format == 1 || type == 206 && (format == 1 || format == 4) { return true }
            place += 4 + 4 * (Int(compound[place + 2]) << 8 | Int(compound[place + 3]))
        }
        return false
    }
}
