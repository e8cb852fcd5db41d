/// The header of an RTP packet (RFC 3550, section 5.1) as numbers and offsets into the packet, without own memory.
///
/// Parsing checks every length against the packet: 12 <= `payloadOffset` <= `payloadEnd` <= `packet.count`. The offsets
/// are valid until the packet is rewritten.
public struct RTPHeader: Sendable, Equatable {
    public static let minimumLength = 12

    public var payloadType: UInt8
    public var marker: Bool
    public var sequenceNumber: SequenceNumber
    public var timestamp: RTPTimestamp
    public var ssrc: SSRC
    /// The 16 bits before the extension's length: 0xBEDE for one-byte elements, 0x1000...0x100F for two-byte ones
    /// (RFC 8285), 0 without an extension.
    public var extensionProfile: UInt16
    /// The header extension's elements, without its four bytes of profile and length. Empty without an extension.
    public var extensionRange: Range<Int>
    public var hasExtension: Bool
    public var hasPadding: Bool
    public var payloadOffset: Int
    /// The end of the payload. Padding follows.
    public var payloadEnd: Int
    /// The value of the header extension, once `resolveExtensions` has read it.
    public var captureTime: AbsoluteCaptureTime?
    /// Likewise.
    public var audioLevel: AudioLevel?

    public var payloadLength: Int { payloadEnd - payloadOffset }

    /// Parses the header of a decrypted packet. Nil if it is not RTP, or if a length in it overruns.
    public init?(parsing packet: borrowing PacketBuffer) {
        self.init(parsingProtected: packet)
        guard resolvePadding(in: packet) else { return nil }
    }

    /// Parses the fields that SRTP leaves readable: all but the padding, so that `payloadEnd` is the packet's end.
    /// After decryption, `resolvePadding(in:)` completes it.
    public init?(parsingProtected packet: borrowing PacketBuffer) {
        let count = packet.count
        guard count >= Self.minimumLength, count <= packet.bytes.count else { return nil }
        let first = packet.bytes[0]
        guard first >> 6 == 2 else { return nil }
        hasExtension = first & 0x10 != 0
        hasPadding = first & 0x20 != 0
        marker = packet.bytes[1] & 0x80 != 0
        payloadType = packet.bytes[1] & 0x7f
        sequenceNumber = SequenceNumber(packet.uint16(at: 2))
        timestamp = RTPTimestamp(packet.uint32(at: 4))
        ssrc = SSRC(packet.uint32(at: 8))
        var offset = Self.minimumLength + 4 * Int(first & 0x0f)
        extensionProfile = 0
        extensionRange = offset..<offset
        if hasExtension {
            guard offset + 4 <= count else { return nil }
            extensionProfile = packet.uint16(at: offset)
            let length = 4 * Int(packet.uint16(at: offset + 2))
            offset += 4
            extensionRange = offset..<(offset + length)
            offset += length
        }
        // CSRCs and the extension.
        guard offset <= count else { return nil }
        payloadOffset = offset
        payloadEnd = count
    }

    /// Removes the padding from the payload. Returns false if it exceeds the payload (RFC 3550, section 5.1: the last
    /// byte counts the padding including itself).
    public mutating func resolvePadding(in packet: borrowing PacketBuffer) -> Bool {
        payloadEnd = packet.count
        guard payloadEnd >= payloadOffset else { return false }
        guard hasPadding else { return true }
        guard payloadEnd > payloadOffset else { return false }
        let padding = Int(packet.bytes[payloadEnd - 1])
        guard padding >= 1, padding <= payloadEnd - payloadOffset else { return false }
        payloadEnd -= padding
        return true
    }

    /// Reads the values of the negotiated extensions that others than the session need, so that ids matter only to it.
    public mutating func resolveExtensions(_ ids: HeaderExtensionIDs, in packet: borrowing PacketBuffer) {
        guard hasExtension else { return }
        if let id = ids.captureTime, let range = headerExtension(id: id, in: packet) {
            captureTime = AbsoluteCaptureTime(packet.bytes, range)
        }
        if let id = ids.audioLevel, let range = headerExtension(id: id, in: packet), range.count == AudioLevel.length {
            audioLevel = AudioLevel(byte: packet.bytes[range.lowerBound])
        }
    }

    /// The range of a header extension element's value. Nil if it is absent or if earlier elements overrun (RFC 8285,
    /// sections 4.2 and 4.3).
    public func headerExtension(id: UInt8, in packet: borrowing PacketBuffer) -> Range<Int>? {
        if extensionProfile == 0xBEDE { return oneByteElement(id: id, in: packet) }
        if extensionProfile & 0xfff0 == 0x1000 { return twoByteElement(id: id, in: packet) }
        return nil
    }

    private func oneByteElement(id: UInt8, in packet: borrowing PacketBuffer) -> Range<Int>? {
        var offset = extensionRange.lowerBound
        while offset < extensionRange.upperBound {
            let byte = packet.bytes[offset]
            offset += 1
            let element = byte >> 4
            // Padding is a zero byte. An id of 0 with a length is skipped too; 15 ends the elements.
            if byte == 0 { continue }
            if element == 15 { return nil }
            let length = Int(byte & 0x0f) + 1
            guard offset + length <= extensionRange.upperBound else { return nil }
            if element == id, element != 0 { return offset..<(offset + length) }
            offset += length
        }
        return nil
    }

    private func twoByteElement(id: UInt8, in packet: borrowing PacketBuffer) -> Range<Int>? {
        var offset = extensionRange.lowerBound
        while offset < extensionRange.upperBound {
            let element = packet.bytes[offset]
            offset += 1
            if element == 0 { continue }
            guard offset < extensionRange.upperBound else { return nil }
            let length = Int(packet.bytes[offset])
            offset += 1
            guard offset + length <= extensionRange.upperBound else { return nil }
            if element == id { return offset..<(offset + length) }
            offset += length
        }
        return nil
    }

    /// Writes marker, payload type, sequence number, timestamp and SSRC over the packet's own, and changes nothing
    /// else. Writing parsed values changes nothing.
    public func write(into packet: inout PacketBuffer) {
        precondition(packet.count >= Self.minimumLength)
        packet.bytes[1] = (marker ? 0x80 : 0) | (payloadType & 0x7f)
        packet.setUInt16(sequenceNumber.rawValue, at: 2)
        packet.setUInt32(timestamp.rawValue, at: 4)
        packet.setUInt32(ssrc.rawValue, at: 8)
    }
}

extension PacketBuffer {
    /// Makes this an RTP packet without CSRCs, extension or padding. Returns false if the payload is too long.
    public mutating func assignRTP(
        payloadType: UInt8, sequenceNumber: SequenceNumber, timestamp: RTPTimestamp, ssrc: SSRC, marker: Bool = false,
        payload: some Collection<UInt8>
    ) -> Bool {
        guard RTPHeader.minimumLength + payload.count <= Self.capacity else { return false }
        bytes[0] = 0x80
        bytes[1] = (marker ? 0x80 : 0) | (payloadType & 0x7f)
        setUInt16(sequenceNumber.rawValue, at: 2)
        setUInt32(timestamp.rawValue, at: 4)
        setUInt32(ssrc.rawValue, at: 8)
        var offset = RTPHeader.minimumLength
        for byte in payload {
            bytes[offset] = byte
            offset += 1
        }
        count = offset
        return true
    }
}
