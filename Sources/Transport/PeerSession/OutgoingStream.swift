import RTP

/// One sender: builds packets, caches them, and resends them within the budget.
final class OutgoingStream {
    /// How many sender reports to remember for measuring the round trip by LSR.
    private static let rememberedReports = 8
    /// Shortest interval between two resends of a packet, whatever the round trip.
    private static let minimumRepeatInterval = TimeInterval.milliseconds(10)

    let id: SenderID
    let configuration: SenderConfiguration
    private(set) var statistics = SenderStatistics()
    private var cache: RetransmissionCache
    private var budget = RepairBudget()
    private var repeatSequence: SequenceNumber
    /// RTX payload type by payload type. 0xff means none.
    private var repeatType = [UInt8](repeating: 0xff, count: 128)
    private var mid: [UInt8]
    private var midID: UInt8
    /// Whether the peer has reported on this SSRC and no longer needs the mid.
    private var isKnownToPeer = false
    private(set) var clock: SenderClock?
    private var reports: [(compact: UInt32, at: MonotonicTime)] = []
    /// The number of packets at the session's last two reports.
    private var packetsAtReports = (before: 0, last: 0)
    private var lastCommand: UInt8?

    init(id: SenderID, configuration: SenderConfiguration, random: inout RandomSource) {
        self.id = id
        self.configuration = configuration
        let repeats = configuration.retransmissionSSRC != nil && !configuration.retransmissionPayloadTypes.isEmpty
        cache = RetransmissionCache(
            packets: repeats ? configuration.cacheCapacity : 0, bytes: configuration.cacheBytes)
        // Well below the wrap, so that SRTP's rollover counter starts unambiguously (RFC 3711, section 3.3.1).
        repeatSequence = SequenceNumber(UInt16.random(in: 0..<0x8000, using: &random))
        for (type, repeated) in configuration.retransmissionPayloadTypes where type < 128 && repeated < 128 {
            repeatType[Int(type)] = repeated
        }
        mid = Array((configuration.mid ?? "").utf8)
        midID = configuration.midExtensionID ?? 0
        if !(1...14).contains(midID) || !(1...16).contains(mid.count) { mid = [] }
    }

    var hasSent: Bool { statistics.packets > 0 }

    /// Builds a packet in `scratch` and caches it. Returns false if it exceeds `limit`.
    func prepare(
        _ packet: borrowing PacketBuffer, header: RTPHeader, rewrite: Rewrite, limit: Int,
        in scratch: inout PacketBuffer
    ) -> Bool {
        let fields = RTPFields(
            payloadType: rewrite.payloadType, marker: rewrite.marker, sequenceNumber: rewrite.sequenceNumber,
            timestamp: rewrite.timestamp, ssrc: configuration.ssrc)
        let payload = header.payloadOffset..<header.payloadEnd
        guard assemble(fields, original: nil, packet, payload, stampMid: !isKnownToPeer, limit, in: &scratch) else {
            return false
        }
        rewrite.patch?.apply(to: &scratch, payload: (scratch.count - payload.count)..<scratch.count)
        cache.store(scratch, sequenceNumber: rewrite.sequenceNumber)
        statistics.packets += 1
        statistics.bytes += scratch.count
        budget.sent(scratch.count)
        return true
    }

    /// Builds the RTX packet of a cached packet in `scratch`. Returns false, and counts it, if it must not be sent.
    func prepareRepeat(
        of number: SequenceNumber, roundTrip: TimeInterval?, limit: Int, now: MonotonicTime,
        stored: inout PacketBuffer, in scratch: inout PacketBuffer
    ) -> Bool {
        guard let ssrc = configuration.retransmissionSSRC, cache.contains(number) else {
            statistics.retransmissionsMissed += 1
            return false
        }
        let interval = max(Self.minimumRepeatInterval, (roundTrip ?? .zero) / 2)
        if let last = cache.lastRepeated(number), now - last < interval {
            statistics.retransmissionsHeldBack += 1
            return false
        }
        guard budget.take(cache.length(number) + 2, now: now) else {
            statistics.retransmissionsOverBudget += 1
            return false
        }
        guard cache.load(number, into: &stored, now: now), let header = RTPHeader(parsing: stored),
            repeatType[Int(header.payloadType)] != 0xff
        else {
            statistics.retransmissionsMissed += 1
            return false
        }
        let fields = RTPFields(
            payloadType: repeatType[Int(header.payloadType)], marker: header.marker, sequenceNumber: repeatSequence,
            timestamp: header.timestamp, ssrc: ssrc)
        let payload = header.payloadOffset..<header.payloadEnd
        // The peer reports only on the original stream, so whether it knows this SSRC is unknown: always send the mid.
        guard assemble(fields, original: number, stored, payload, stampMid: true, limit, in: &scratch) else {
            return false
        }
        repeatSequence = repeatSequence.advanced(by: 1)
        statistics.retransmittedPackets += 1
        statistics.retransmittedBytes += scratch.count
        return true
    }

    /// Writes header, mid extension (RFC 8285 one-byte form), original sequence number for RTX, and payload.
    private func assemble(
        _ fields: RTPFields, original: SequenceNumber?, _ source: borrowing PacketBuffer, _ payload: Range<Int>,
        stampMid: Bool, _ limit: Int, in scratch: inout PacketBuffer
    ) -> Bool {
        let stamps = stampMid && !mid.isEmpty
        let words = stamps ? (1 + mid.count + 3) / 4 : 0
        let start = RTPHeader.minimumLength + (stamps ? 4 + 4 * words : 0) + (original == nil ? 0 : 2)
        guard RTPHeader.minimumLength + payload.count <= limit,
            start + payload.count <= PacketBuffer.capacity - SRTPTrailer.reserve
        else { return false }
        fields.write(to: &scratch, hasExtension: stamps)
        var offset = RTPHeader.minimumLength
        if stamps {
            scratch.setUInt16(0xBEDE, at: offset)
            scratch.setUInt16(UInt16(words), at: offset + 2)
            offset += 4
            for index in 0..<(4 * words) { scratch.bytes[offset + index] = 0 }
            scratch.bytes[offset] = midID << 4 | UInt8(mid.count - 1)
            for index in mid.indices { scratch.bytes[offset + 1 + index] = mid[index] }
            offset += 4 * words
        }
        if let original {
            scratch.setUInt16(original.rawValue, at: offset)
            offset += 2
        }
        scratch.copyBytes(from: source, payload, to: offset)
        scratch.count = offset + payload.count
        return true
    }

    func setClock(_ clock: SenderClock) { self.clock = clock }

    /// Stops sender reports until the next `setClock`.
    func clearClock() { clock = nil }

    /// Forgets the sent packets, so that none is resent.
    func forgetSent() { cache.removeAll() }

    /// The sender's part of the next report. Nil without a clock, and if the stream has sent nothing since the report
    /// before the last (RFC 3550, section 6.4).
    func senderInformation(now: MonotonicTime) -> SenderInformation? {
        guard let clock else { return nil }
        let isActive = statistics.packets > packetsAtReports.before
        packetsAtReports = (packetsAtReports.last, statistics.packets)
        guard isActive else { return nil }
        let current = clock.extrapolated(to: now)
        if reports.count == Self.rememberedReports { reports.removeFirst() }
        reports.append((current.ntp.compact, now))
        let headers = statistics.packets * RTPHeader.minimumLength
        return SenderInformation(
            ssrc: configuration.ssrc, ntp: current.ntp, rtp: current.rtp,
            packetCount: UInt32(truncatingIfNeeded: statistics.packets),
            // Payload bytes. Mid extensions of the first packets count as payload, which has no consequence.
            octetCount: UInt32(truncatingIfNeeded: statistics.bytes - headers))
    }

    /// Handles the peer's report. Returns the round trip if the report refers to a sender report of ours.
    func receive(_ block: ReportBlock, now: MonotonicTime) -> TimeInterval? {
        isKnownToPeer = true
        statistics.isKnownToPeer = true
        statistics.remoteFractionLost = Double(block.fractionLost) / 256
        statistics.remoteLost = block.cumulativeLost
        let rate = Int64(max(configuration.clockRate, 1))
        statistics.remoteJitter = TimeInterval(nanoseconds: Int64(block.jitter) * 1_000_000_000 / rate)
        guard block.lastSenderReport != 0, let report = reports.last(where: { $0.compact == block.lastSenderReport })
        else { return nil }
        let held = TimeInterval(nanoseconds: Int64(block.delaySinceLastSenderReport) * 1_000_000_000 / 65536)
        // DLSR is rounded, which can make it negative by 15 µs.
        return max(.zero, now - report.at - held)
    }

    func countNack(_ lost: Int) {
        statistics.nacks += 1
        statistics.nackedPackets += lost
    }

    func countKeyframeRequest() { statistics.keyframeRequests += 1 }

    /// Whether an FIR is new. A repeated command number repeats the same request (RFC 5104, section 4.3.1.2).
    func isNew(command: UInt8) -> Bool {
        defer { lastCommand = command }
        return lastCommand != command
    }
}

/// The RTP header fields that are written for each packet.
struct RTPFields {
    var payloadType: UInt8
    var marker: Bool
    var sequenceNumber: SequenceNumber
    var timestamp: RTPTimestamp
    var ssrc: SSRC

    func write(to packet: inout PacketBuffer, hasExtension: Bool) {
        packet.bytes[0] = hasExtension ? 0x90 : 0x80
        packet.bytes[1] = (marker ? 0x80 : 0) | (payloadType & 0x7f)
        packet.setUInt16(sequenceNumber.rawValue, at: 2)
        packet.setUInt32(timestamp.rawValue, at: 4)
        packet.setUInt32(ssrc.rawValue, at: 8)
    }
}

enum SRTPTrailer {
    /// Bytes reserved for SRTP and SRTCP: a tag of 16 bytes and an index of 4 would do, but libsrtp requires
    /// SRTP_MAX_TRAILER_LEN, 144.
    static let reserve = 144
}
