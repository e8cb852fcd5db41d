/// One reception report block of an SR or RR (RFC 3550 section 6.4.1).
public struct ReportBlock: Sendable, Equatable {
    public var ssrc: SSRC
    /// Lost share of the packets expected since the last report, in 256ths.
    public var fractionLost: UInt8
    /// Total number of lost packets, -8388608...8388607. Duplicates can make it negative.
    public var cumulativeLost: Int
    public var extendedHighestSequence: UInt32
    /// Interarrival jitter in units of the stream's clock.
    public var jitter: UInt32
    /// Middle 32 bits of the last SR's NTP time, 0 without one.
    public var lastSenderReport: UInt32
    /// Time since that SR was received, in 65536ths of a second.
    public var delaySinceLastSenderReport: UInt32

    public init(
        ssrc: SSRC, fractionLost: UInt8, cumulativeLost: Int, extendedHighestSequence: UInt32, jitter: UInt32,
        lastSenderReport: UInt32, delaySinceLastSenderReport: UInt32
    ) {
        self.ssrc = ssrc
        self.fractionLost = fractionLost
        self.cumulativeLost = cumulativeLost
        self.extendedHighestSequence = extendedHighestSequence
        self.jitter = jitter
        self.lastSenderReport = lastSenderReport
        self.delaySinceLastSenderReport = delaySinceLastSenderReport
    }
}

/// The sender's part of an SR (RFC 3550 section 6.4.1).
public struct SenderInformation: Sendable, Equatable {
    public var ssrc: SSRC
    public var ntp: NTPTime
    public var rtp: RTPTimestamp
    public var packetCount: UInt32
    public var octetCount: UInt32

    public init(ssrc: SSRC, ntp: NTPTime, rtp: RTPTimestamp, packetCount: UInt32, octetCount: UInt32) {
        self.ssrc = ssrc
        self.ntp = ntp
        self.rtp = rtp
        self.packetCount = packetCount
        self.octetCount = octetCount
    }
}

/// One packet of an RTCP compound.
public enum RTCPPacket: Sendable, Equatable {
    /// RFC 3550 section 6.4.1.
    case senderReport(SenderInformation, [ReportBlock])
    /// RFC 3550 section 6.4.2.
    case receiverReport(SSRC, [ReportBlock])
    /// SDES with the CNAME of one source; other items are skipped (RFC 3550 section 6.5.1).
    case cname(SSRC, String)
    /// RFC 3550 section 6.6; the reason is skipped.
    case bye([SSRC])
    /// Generic NACK (RFC 4585 section 6.2.1).
    case nack(sender: SSRC, media: SSRC, lost: [SequenceNumber])
    /// Picture loss indication (RFC 4585 section 6.3.1).
    case pictureLoss(sender: SSRC, media: SSRC)
    /// Full intra request, with one command number for each requested source (RFC 5104, section 4.3.1).
    case fullIntraRequest(sender: SSRC, requests: [FullIntraRequest])
    /// Extended report (RFC 3611, section 2) with the blocks that measure round trips; others are skipped.
    case extendedReport(ExtendedReport)
    /// Transport-wide feedback (draft-holmer-rmcat-transport-wide-cc-extensions-01, section 3.1).
    case transportFeedback(TransportFeedback)
    /// The receiver's estimate of the bandwidth, REMB (draft-alvestrand-rmcat-remb-03, section 2.2).
    case receiverEstimate(ReceiverEstimate)
    /// A packet of another type, skipped.
    case unknown(packetType: UInt8, format: UInt8)

    public struct FullIntraRequest: Sendable, Equatable {
        public var ssrc: SSRC
        public var command: UInt8

        public init(ssrc: SSRC, command: UInt8) {
            self.ssrc = ssrc
            self.command = command
        }
    }

    enum Kind {
        static let senderReport: UInt8 = 200
        static let receiverReport: UInt8 = 201
        static let sourceDescription: UInt8 = 202
        static let bye: UInt8 = 203
        static let transportFeedback: UInt8 = 205
        static let payloadFeedback: UInt8 = 206
        static let extendedReport: UInt8 = 207
        static let genericNack: UInt8 = 1
        static let pictureLoss: UInt8 = 1
        static let fullIntraRequest: UInt8 = 4
        static let applicationLayer: UInt8 = 15
    }
}

extension RTCPPacket {
    /// The most sequence numbers to read from one NACK packet, which is what a sender's cache may contain.
    public static let maximumLost = 1024

    /// Reads a decrypted compound. Nil if any length in it overruns: then all of it is refused (RFC 3550, A.2). A
    /// reduced-size packet (RFC 5506) is a compound of one. Feedback about the bandwidth that is malformed inside its
    /// packet is skipped as unknown.
    public static func parse(_ packet: borrowing PacketBuffer) -> [RTCPPacket]? {
        var packets: [RTCPPacket] = []
        packets.reserveCapacity(usualCompound)
        return parse(packet, into: &packets) ? packets : nil
    }

    /// Likewise, at the end of an array whose memory is used again. Returns false, with some of the packets appended, if all
    /// of it is refused.
    public static func parse(_ packet: borrowing PacketBuffer, into packets: inout [RTCPPacket]) -> Bool {
        guard packet.count >= 4, packet.count <= packet.bytes.count else { return false }
        var offset = 0
        while offset < packet.count {
            guard offset + 4 <= packet.count, packet.bytes[offset] >> 6 == 2 else { return false }
            let end = offset + 4 + 4 * Int(packet.uint16(at: offset + 2))
            guard end <= packet.count else { return false }
            var contentEnd = end
            if packet.bytes[offset] & 0x20 != 0 {
                let padding = Int(packet.bytes[end - 1])
                guard padding >= 1, end - offset >= 4 + padding else { return false }
                contentEnd -= padding
            }
            guard let one = parseOne(packet, offset, contentEnd) else { return false }
            packets.append(one)
            offset = end
        }
        return true
    }

    /// A report, a description and one more packet.
    private static let usualCompound = 3

    private static func parseOne(_ packet: borrowing PacketBuffer, _ start: Int, _ end: Int) -> RTCPPacket? {
        let count = Int(packet.bytes[start] & 0x1f)
        let type = packet.bytes[start + 1]
        let body = start + 4
        switch type {
        case Kind.senderReport:
            guard body + 24 + 24 * count <= end else { return nil }
            let information = SenderInformation(
                ssrc: SSRC(packet.uint32(at: body)), ntp: NTPTime(rawValue: packet.uint64(at: body + 4)),
                rtp: RTPTimestamp(packet.uint32(at: body + 12)), packetCount: packet.uint32(at: body + 16),
                octetCount: packet.uint32(at: body + 20))
            return .senderReport(information, reportBlocks(packet, body + 24, count))
        case Kind.receiverReport:
            guard body + 4 + 24 * count <= end else { return nil }
            return .receiverReport(SSRC(packet.uint32(at: body)), reportBlocks(packet, body + 4, count))
        case Kind.sourceDescription:
            return sourceDescription(packet, body, end, chunks: count)
        case Kind.bye:
            guard body + 4 * count <= end else { return nil }
            return .bye((0..<count).map { SSRC(packet.uint32(at: body + 4 * $0)) })
        case Kind.transportFeedback where count == Kind.genericNack:
            guard body + 8 <= end else { return nil }
            return nack(packet, body, end)
        case Kind.payloadFeedback where count == Kind.pictureLoss:
            guard body + 8 <= end else { return nil }
            return .pictureLoss(sender: SSRC(packet.uint32(at: body)), media: SSRC(packet.uint32(at: body + 4)))
        case Kind.payloadFeedback where count == Kind.fullIntraRequest:
            guard body + 8 <= end else { return nil }
            let requests = stride(from: body + 8, through: end - 8, by: 8).map {
                FullIntraRequest(ssrc: SSRC(packet.uint32(at: $0)), command: packet.bytes[$0 + 4])
            }
            return .fullIntraRequest(sender: SSRC(packet.uint32(at: body)), requests: requests)
        case Kind.extendedReport:
            return ExtendedReport(parsing: packet, body, end).map { .extendedReport($0) }
        case Kind.transportFeedback where count == TransportFeedback.format:
            return TransportFeedback(reading: packet, body: body, end: end).map(RTCPPacket.transportFeedback)
                ?? .unknown(packetType: type, format: UInt8(count))
        case Kind.payloadFeedback where count == Kind.applicationLayer && ReceiverEstimate.isNamed(packet, body, end):
            return ReceiverEstimate(reading: packet, body: body, end: end).map(RTCPPacket.receiverEstimate)
                ?? .unknown(packetType: type, format: UInt8(count))
        default:
            return .unknown(packetType: type, format: UInt8(count))
        }
    }

    private static func reportBlocks(_ packet: borrowing PacketBuffer, _ start: Int, _ count: Int) -> [ReportBlock] {
        var blocks: [ReportBlock] = []
        for index in 0..<count {
            let offset = start + 24 * index
            // 24 bits, signed.
            let lost = Int32(bitPattern: packet.uint24(at: offset + 5) << 8) >> 8
            blocks.append(
                ReportBlock(
                    ssrc: SSRC(packet.uint32(at: offset)), fractionLost: packet.bytes[offset + 4],
                    cumulativeLost: Int(lost), extendedHighestSequence: packet.uint32(at: offset + 8),
                    jitter: packet.uint32(at: offset + 12), lastSenderReport: packet.uint32(at: offset + 16),
                    delaySinceLastSenderReport: packet.uint32(at: offset + 20)))
        }
        return blocks
    }

    private static func sourceDescription(
        _ packet: borrowing PacketBuffer, _ start: Int, _ end: Int, chunks: Int
    ) -> RTCPPacket? {
        // WebRTC sends one chunk. Further ones are skipped with the packet's length.
        guard chunks >= 1 else { return .unknown(packetType: Kind.sourceDescription, format: 0) }
        guard start + 4 <= end else { return nil }
        let ssrc = SSRC(packet.uint32(at: start))
        var offset = start + 4
        while offset < end, packet.bytes[offset] != 0 {
            guard offset + 2 <= end else { return nil }
            let item = packet.bytes[offset]
            let length = Int(packet.bytes[offset + 1])
            guard offset + 2 + length <= end else { return nil }
            if item == 1 {
                let text = packet.bytes[(offset + 2)..<(offset + 2 + length)]
                return .cname(ssrc, String(decoding: text, as: UTF8.self))
            }
            offset += 2 + length
        }
        return .unknown(packetType: Kind.sourceDescription, format: UInt8(chunks))
    }

    private static func nack(_ packet: borrowing PacketBuffer, _ body: Int, _ end: Int) -> RTCPPacket {
        var lost: [SequenceNumber] = []
        var offset = body + 8
        while offset + 4 <= end, lost.count < maximumLost {
            let first = SequenceNumber(packet.uint16(at: offset))
            var mask = packet.uint16(at: offset + 2)
            lost.append(first)
            var step = 1
            while mask != 0 {
                if mask & 1 != 0 { lost.append(first.advanced(by: step)) }
                mask >>= 1
                step += 1
            }
            offset += 4
        }
        if lost.count > maximumLost { lost.removeLast(lost.count - maximumLost) }
        return .nack(sender: SSRC(packet.uint32(at: body)), media: SSRC(packet.uint32(at: body + 4)), lost: lost)
    }
}

extension RTCPPacket {
    /// Appends the packet to a compound. Returns false, and appends nothing, if it exceeds `limit` bytes.
    ///
    /// One packet has at most 31 report blocks or BYE sources; further ones are cut off. `.unknown` appends nothing.
    public func append(to compound: inout PacketBuffer, limit: Int = 1200) -> Bool {
        let start = compound.count
        let length = serializedLength
        guard length > 0 else { return true }
        guard start + length <= min(limit, PacketBuffer.capacity) else { return false }
        var writer = RTCPWriter(offset: start + 4)
        let (type, format) = writeBody(&writer, &compound)
        compound.bytes[start] = 0x80 | format
        compound.bytes[start + 1] = type
        compound.setUInt16(UInt16(length / 4 - 1), at: start + 2)
        compound.count = start + length
        return true
    }

    private var serializedLength: Int {
        switch self {
        case .senderReport(_, let blocks): 28 + 24 * min(blocks.count, 31)
        case .receiverReport(_, let blocks): 8 + 24 * min(blocks.count, 31)
        // Items end with at least one zero byte and are padded to 32 bits.
        case .cname(_, let name): 8 + (2 + min(name.utf8.count, 255) + 4) / 4 * 4
        case .bye(let sources): 4 + 4 * min(sources.count, 31)
        case .nack(_, _, let lost): 12 + 4 * Self.nackItems(lost).count
        case .pictureLoss: 12
        case .fullIntraRequest(_, let requests): 12 + 8 * requests.count
        case .extendedReport(let report): 4 + report.serializedLength
        case .transportFeedback(let feedback): feedback.serializedLength
        case .receiverEstimate(let estimate): estimate.serializedLength
        case .unknown: 0
        }
    }

    private func writeBody(_ writer: inout RTCPWriter, _ compound: inout PacketBuffer) -> (UInt8, UInt8) {
        switch self {
        case .senderReport(let information, let blocks):
            writer.write(information.ssrc.rawValue, &compound)
            writer.write(UInt32(truncatingIfNeeded: information.ntp.rawValue >> 32), &compound)
            writer.write(UInt32(truncatingIfNeeded: information.ntp.rawValue), &compound)
            writer.write(information.rtp.rawValue, &compound)
            writer.write(information.packetCount, &compound)
            writer.write(information.octetCount, &compound)
            for block in blocks.prefix(31) { writer.write(block, &compound) }
            return (Kind.senderReport, UInt8(min(blocks.count, 31)))
        case .receiverReport(let ssrc, let blocks):
            writer.write(ssrc.rawValue, &compound)
            for block in blocks.prefix(31) { writer.write(block, &compound) }
            return (Kind.receiverReport, UInt8(min(blocks.count, 31)))
        case .cname(let ssrc, let name):
            writer.write(ssrc.rawValue, &compound)
            writer.write(cname: name, end: writer.offset - 8 + serializedLength, &compound)
            return (Kind.sourceDescription, 1)
        case .bye(let sources):
            for source in sources.prefix(31) { writer.write(source.rawValue, &compound) }
            return (Kind.bye, UInt8(min(sources.count, 31)))
        case .nack(let sender, let media, let lost):
            writer.write(sender.rawValue, &compound)
            writer.write(media.rawValue, &compound)
            for item in Self.nackItems(lost) { writer.write(item, &compound) }
            return (Kind.transportFeedback, Kind.genericNack)
        case .pictureLoss(let sender, let media):
            writer.write(sender.rawValue, &compound)
            writer.write(media.rawValue, &compound)
            return (Kind.payloadFeedback, Kind.pictureLoss)
        case .fullIntraRequest(let sender, let requests):
            writer.write(sender.rawValue, &compound)
            writer.write(0, &compound)
            for request in requests {
                writer.write(request.ssrc.rawValue, &compound)
                writer.write(UInt32(request.command) << 24, &compound)
            }
            return (Kind.payloadFeedback, Kind.fullIntraRequest)
        case .extendedReport(let report):
            report.write(&writer, &compound)
            return (Kind.extendedReport, 0)
        case .transportFeedback(let feedback):
            feedback.write(at: writer.offset, to: &compound)
            return (Kind.transportFeedback, TransportFeedback.format)
        case .receiverEstimate(let estimate):
            estimate.write(at: writer.offset, to: &compound)
            return (Kind.payloadFeedback, Kind.applicationLayer)
        case .unknown(let type, let format):
            return (type, format)
        }
    }

    /// Packs ascending lost numbers into pairs of a number and a mask of the following 16.
    private static func nackItems(_ lost: [SequenceNumber]) -> [UInt32] {
        var items: [UInt32] = []
        var first: SequenceNumber?
        var mask: UInt32 = 0
        for number in lost {
            if let current = first {
                let step = number.distance(from: current)
                if step == 0 { continue }
                if step > 0, step <= 16 {
                    mask |= 1 << UInt32(step - 1)
                    continue
                }
                items.append(UInt32(current.rawValue) << 16 | mask)
            }
            first = number
            mask = 0
        }
        if let first { items.append(UInt32(first.rawValue) << 16 | mask) }
        return items
    }
}

/// Writes successive 32-bit words.
struct RTCPWriter {
    var offset: Int

    mutating func write(_ word: UInt32, _ packet: inout PacketBuffer) {
        packet.setUInt32(word, at: offset)
        offset += 4
    }

    mutating func write(_ block: ReportBlock, _ packet: inout PacketBuffer) {
        let lost = UInt32(bitPattern: Int32(min(max(block.cumulativeLost, -0x80_0000), 0x7f_ffff))) & 0xff_ffff
        write(block.ssrc.rawValue, &packet)
        write(UInt32(block.fractionLost) << 24 | lost, &packet)
        write(block.extendedHighestSequence, &packet)
        write(block.jitter, &packet)
        write(block.lastSenderReport, &packet)
        write(block.delaySinceLastSenderReport, &packet)
    }

    mutating func write(cname: String, end: Int, _ packet: inout PacketBuffer) {
        let text = cname.utf8.prefix(255)
        packet.bytes[offset] = 1
        packet.bytes[offset + 1] = UInt8(text.count)
        offset += 2
        for byte in text {
            packet.bytes[offset] = byte
            offset += 1
        }
        while offset < end {
            packet.bytes[offset] = 0
            offset += 1
        }
    }
}
