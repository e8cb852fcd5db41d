import RTP

/// One sender: writes the heads of packets, remembers what it sent, and resends it within the budget.
final class OutgoingStream {
    /// Repeats that serve as padding are those of so many newest packets.
    private static let paddingReach = 16
    /// Bytes of the original number in a repeat.
    private static let numberLength = 2

    let id: SenderID
    let configuration: SenderConfiguration
    @exclusivity(unchecked) private(set) var statistics = SenderStatistics()
    @exclusivity(unchecked) private var history: SentHistory
    private var repeats = RepeatTimes()
    @exclusivity(unchecked) private var times = SendTimes()
    /// Where the payloads of the sent packets are.
    @exclusivity(unchecked) private var store: PacketStore?
    /// The store before, with the packets that were sent from it: another layer of the same video.
    private var former: (history: SentHistory, store: PacketStore)?
    /// Packets since the change of stores.
    private var sinceChange = 0
    private var own: PacketStore?
    @exclusivity(unchecked) private var budget = RepairBudget()
    private var repeatSequence: SequenceNumber
    private var paddingStep = 0
    @exclusivity(unchecked) private var newestTimestamp = RTPTimestamp(0)
    @exclusivity(unchecked) private let mid: [UInt8]
    @exclusivity(unchecked) private let rid: [UInt8]
    /// Ids of the header extensions that the peer accepts.
    @exclusivity(unchecked) var extensions: HeaderExtensionIDs
    /// Whether the peer has reported on this SSRC and no longer needs the mid.
    @exclusivity(unchecked) private var isKnownToPeer = false
    private(set) var clock: SenderClock?
    private var reports = SentReports()
    /// The number of packets at the session's last two reports.
    private var packetsAtReports = (before: 0, last: 0)
    /// The extended sequence number of the peer's last report.
    private var reportedNumber: UInt32?
    /// How many packets the peer's last report covers, by its numbers.
    private(set) var newlyReported = 0
    private var lastCommand: UInt8?
    /// The payload types of RED that the peer accepts, by those of the stream.
    var redundancyTypes: [UInt8: UInt8]
    /// How many of the packets before each packet carries again.
    @exclusivity(unchecked) private var copies = 0
    @exclusivity(unchecked) private var recent = RecentlySent()
    /// Whether the peer has reported since `chooseCopies`.
    private(set) var hasNewReport = false
    /// The longest RTP packet, without mid and SRTP's tag.
    private let maximumLength: Int

    init(id: SenderID, configuration: SenderConfiguration, maximumLength: Int, random: inout RandomSource) {
        self.id = id
        self.maximumLength = maximumLength
        redundancyTypes = configuration.redundancyPayloadTypes
        self.configuration = configuration
        let repeats = configuration.retransmissionSSRC != nil && !configuration.retransmissionPayloadTypes.isEmpty
        history = SentHistory(capacity: repeats ? configuration.history : 0)
        // Well below the wrap, so that SRTP's rollover counter starts unambiguously (RFC 3711, section 3.3.1).
        repeatSequence = SequenceNumber(UInt16.random(in: 0..<0x8000, using: &random))
        let mid = Array((configuration.mid ?? "").utf8)
        self.mid = mid.count > 16 ? [] : mid
        let rid = Array((configuration.rid ?? "").utf8)
        self.rid = rid.count > Simulcast.maximumLength ? [] : rid
        extensions = configuration.extensions
    }

    /// Without a store of others.
    var memory: PacketMemory {
        var memory = history.memory
        if let former { memory += former.history.memory }
        if let own { memory += own.memory }
        return memory
    }

    var hasSent: Bool { statistics.packets > 0 }

    /// Notes a packet that is to be sent, with its payload in `store`. Returns what `write` needs, and the packet's length
    /// without SRTP's tag.
    func note(
        _ payload: Int?, of store: PacketStore, _ rewrite: Rewrite, now: MonotonicTime
    ) -> (packet: SentPacket, length: Int) {
        if !sends(from: store) { change(to: store) }
        if former != nil { countSinceChange() }
        let packet = SentPacket(payload: payload, rewrite)
        history.insert(packet, of: store)
        if history.capacity > 0 { times.sent(packet.number, at: now) }
        newestTimestamp = packet.timestamp
        let redundant = redundantLength(of: packet)
        if redundant > 0 {
            statistics.redundantPackets += 1
            statistics.redundantBytes += redundant
        }
        if !redundancyTypes.isEmpty { recent.insert(packet) }
        let size = payload.map { store.length(of: $0) } ?? 0
        let head = headLength(of: packet, in: store, hasMid: !isKnownToPeer, isRepeat: false)
        let length = head + redundant + size
        statistics.packets += 1
        statistics.bytes += length
        statistics.headerBytes += head
        budget.sent(length)
        return (packet, length)
    }

    func sends(from store: PacketStore) -> Bool { self.store === store }

    /// Goes on with the payloads of another store. Those sent from the last one can still be sent again.
    private func change(to new: PacketStore) {
        recent.removeAll()
        former = store.map { (history, $0) }
        sinceChange = 0
        history = SentHistory(capacity: history.capacity)
        store = new
    }

    /// The former packets are too old after as many as the history has. Later, their numbers are those of others.
    private func countSinceChange() {
        sinceChange += 1
        if sinceChange > history.capacity { former = nil }
    }

    private func store(of packet: SentPacket) -> PacketStore? { packet.isFormer ? former?.store : store }

    /// A sent packet whose payload is still there.
    private func sentPacket(_ number: SequenceNumber) -> SentPacket? {
        if let packet = store.flatMap({ history.packet(number, of: $0) }) { return packet }
        guard let former, var packet = former.history.packet(number, of: former.store) else { return nil }
        packet.isFormer = true
        return packet
    }

    /// The store of packets that the stream does not forward from elsewhere.
    func ownStore() -> PacketStore {
        let own = own ?? PacketStore()
        self.own = own
        return own
    }

    /// Writes the head of a packet into `scratch`: header, extensions, and the bytes of the payload that a patch changes.
    /// Passes the rest of the payload. Nil if the payload is no longer in the store.
    func write<Result>(
        _ packet: SentPacket, stamp: SendingStamp? = nil, in scratch: inout PacketBuffer,
        _ body: (inout PacketBuffer, Span<UInt8>) -> Result
    ) -> Result? {
        write(
            packet, type: packet.payloadType, number: packet.number, as: nil, hasMid: !isKnownToPeer,
            stamp: stamp, &scratch, body)
    }

    /// The length of a planned packet, without SRTP's tag.
    func length(of packet: SentPacket, isRepeat: Bool = false) -> Int {
        headLength(of: packet, in: store(of: packet), hasMid: isRepeat || !isKnownToPeer, isRepeat: isRepeat)
            + (isRepeat ? 0 : redundantLength(of: packet)) + payloadLength(of: packet)
    }

    /// A sent packet to send again. Nil, and counted, if it must not be sent.
    ///
    /// - Parameter hasRoom: whether a packet of this length may be sent.
    func planRepeat(
        of number: SequenceNumber, roundTrip: TimeInterval?, now: MonotonicTime, hasRoom: (Int) -> Bool = { _ in true }
    ) -> SentPacket? {
        guard configuration.retransmissionSSRC != nil,
            let packet = sentPacket(number),
            configuration.retransmissionPayloadTypes[packet.payloadType] != nil, !times.isOld(number, now: now)
        else {
            statistics.retransmissionsMissed += 1
            return nil
        }
        let last = repeats.last(number, now: now)
        if let last, last.isOnItsWay(now: now, roundTrip: roundTrip) {
            statistics.retransmissionsHeldBack += 1
            return nil
        }
        let length = length(of: packet, isRepeat: true)
        // The first repeats of other packets matter more than a further one.
        let isSpare = last?.count ?? 0 > 1
        guard hasRoom(length), budget.take(length, isSpare: isSpare, now: now) else {
            statistics.retransmissionsOverBudget += 1
            return nil
        }
        repeats.repeated(number, at: now)
        statistics.retransmittedPackets += 1
        statistics.retransmittedBytes += length
        // The original number is payload (RFC 4588, section 4).
        statistics.retransmittedHeaderBytes += length - payloadLength(of: packet) - Self.numberLength
        return packet
    }

    /// Writes the head of the RTX packet of a sent packet, likewise.
    func writeRepeat<Result>(
        of packet: SentPacket, stamp: SendingStamp? = nil, in scratch: inout PacketBuffer,
        _ body: (inout PacketBuffer, Span<UInt8>) -> Result
    ) -> Result? {
        guard let ssrc = configuration.retransmissionSSRC,
            let type = configuration.retransmissionPayloadTypes[packet.payloadType], hasPayload(of: packet)
        else { return nil }
        // The peer reports only on the original stream, so whether it knows this SSRC is unknown: always send the mid.
        return write(
            packet, type: type, number: nextRepeatNumber(), as: ssrc, hasMid: true, stamp: stamp,
            &scratch, body)
    }

    private func nextRepeatNumber() -> SequenceNumber {
        defer { repeatSequence = repeatSequence.advanced(by: 1) }
        return repeatSequence
    }

    // MARK: Padding

    /// Whether it may send padding: on its RTX stream, and to a peer that measures the path by it.
    var canPad: Bool {
        configuration.retransmissionSSRC != nil && (extensions.transportNumber ?? extensions.sendTime) != nil
            && !configuration.retransmissionPayloadTypes.isEmpty
    }

    /// A recently sent packet whose repeat serves as padding. It may also mend a loss that nobody knows of yet.
    func paddingRepeat() -> SentPacket? {
        guard let store, hasSent else { return nil }
        paddingStep = (paddingStep + 1) % Self.paddingReach
        let packet = history.newest(paddingStep, of: store) ?? history.newest(0, of: store)
        guard let packet, configuration.retransmissionPayloadTypes[packet.payloadType] != nil, packet.payload != nil
        else { return nil }
        return packet
    }

    /// - Parameter packet: the packet that is repeated.
    func countPadding(_ length: Int, repeating packet: SentPacket? = nil) {
        statistics.paddingPackets += 1
        statistics.paddingBytes += length
        statistics.paddingPayloadBytes += packet.map { payloadLength(of: $0) + Self.numberLength } ?? 0
    }

    /// A packet of padding alone, of at most 255 bytes.
    func emptyPadding() -> SentPacket {
        let type = configuration.retransmissionPayloadTypes.values.min() ?? 0
        return SentPacket(
            payload: nil,
            Rewrite(
                payloadType: type, sequenceNumber: SequenceNumber(0), timestamp: newestTimestamp, marker: false))
    }

    /// Writes an RTX packet with so many bytes of padding (RFC 3550, section 5.1).
    func writePadding<Result>(
        _ packet: SentPacket, bytes: UInt8, stamp: SendingStamp?, in scratch: inout PacketBuffer,
        _ body: (inout PacketBuffer, Span<UInt8>) -> Result
    ) -> Result? {
        guard let ssrc = configuration.retransmissionSSRC, bytes > 0 else { return nil }
        let fields = RTPFields(
            payloadType: packet.payloadType, marker: false, sequenceNumber: nextRepeatNumber(),
            timestamp: packet.timestamp, ssrc: ssrc)
        let offset = writeHead(
            fields, of: packet, from: nil, hasMid: true, isRepeat: true, stamp: stamp, to: &scratch)
        scratch.bytes[0] |= 0x20
        for index in 0..<Int(bytes) { scratch.bytes[offset + index] = 0 }
        scratch.bytes[offset + Int(bytes) - 1] = bytes
        scratch.count = offset + Int(bytes)
        let nothing: [UInt8] = []
        return body(&scratch, nothing.span)
    }

    // MARK: Writing

    private func hasPayload(of packet: SentPacket) -> Bool {
        packet.payload.map { store(of: packet)?.contains($0) ?? false } ?? true
    }

    private func payloadLength(of packet: SentPacket) -> Int {
        packet.payload.flatMap { store(of: packet)?.length(of: $0) } ?? 0
    }

    /// The length of a packet without its payload.
    private func headLength(of packet: SentPacket, in store: PacketStore?, hasMid: Bool, isRepeat: Bool) -> Int {
        var elements = hasMid && extensions.mid != nil && !mid.isEmpty ? 1 + mid.count : 0
        if hasMid, !rid.isEmpty, (isRepeat ? extensions.repairedStreamID : extensions.streamID) != nil {
            elements += 1 + rid.count
        }
        if extensions.transportNumber != nil { elements += 1 + TransportSequence.length }
        if extensions.sendTime != nil { elements += 1 + AbsoluteSendTime.length }
        if extensions.captureTime != nil, let payload = packet.payload, let store {
            let length = store.captureTimeLength(of: payload)
            if length > 0 { elements += 1 + length }
        }
        if extensions.audioLevel != nil, let payload = packet.payload, store?.hasLevel(of: payload) == true {
            elements += 2
        }
        return RTPHeader.minimumLength + HeaderExtensionWriter.length(ofElements: elements) + (isRepeat ? 2 : 0)
    }

    /// Writes the header with the extensions that the peer accepts. Returns its length.
    @inline(__always)
    private func writeHead(
        _ fields: RTPFields, of packet: SentPacket, from store: PacketStore?, hasMid: Bool, isRepeat: Bool,
        stamp: SendingStamp?, to packetBuffer: inout PacketBuffer
    ) -> Int {
        var scratch = packetBuffer.bytes.mutableSpan
        fields.write(to: &scratch)
        var writer = HeaderExtensionWriter()
        if hasMid, let id = extensions.mid, !mid.isEmpty {
            let place = writer.element(id, length: mid.count, in: &scratch)
            for index in mid.indices { scratch[place + index] = mid[index] }
        }
        if hasMid, !rid.isEmpty, let id = isRepeat ? extensions.repairedStreamID : extensions.streamID {
            let place = writer.element(id, length: rid.count, in: &scratch)
            for index in rid.indices { scratch[place + index] = rid[index] }
        }
        if let stamp, let id = extensions.transportNumber { writer.write(stamp.number, as: id, to: &scratch) }
        if let stamp, let id = extensions.sendTime {
            writer.write(AbsoluteSendTime(stamp.time), as: id, to: &scratch)
        }
        if let id = extensions.captureTime, let payload = packet.payload, let time = store?.captureTime(of: payload) {
            writer.write(time, as: id, to: &scratch)
        }
        if let id = extensions.audioLevel, let payload = packet.payload, let level = store?.level(of: payload) {
            writer.write(level, as: id, to: &scratch)
        }
        return writer.finish(in: &scratch)
    }

    /// Writes header, extensions and, with the SSRC of RTX, the original number. Then passes the payload, its patched bytes
    /// already in `scratch`.
    private func write<Result>(
        _ packet: SentPacket, type: UInt8, number: SequenceNumber, as repeated: SSRC?, hasMid: Bool,
        stamp: SendingStamp?, _ scratch: inout PacketBuffer,
        _ body: (inout PacketBuffer, Span<UInt8>) -> Result
    ) -> Result? {
        guard hasPayload(of: packet), let store = store(of: packet) else { return nil }
        let fields = RTPFields(
            payloadType: type, marker: packet.marker, sequenceNumber: number, timestamp: packet.timestamp,
            ssrc: repeated ?? configuration.ssrc)
        var offset = writeHead(
            fields, of: packet, from: store, hasMid: hasMid, isRepeat: repeated != nil,
            stamp: stamp, to: &scratch)
        if repeated != nil {
            scratch.setUInt16(packet.number.rawValue, at: offset)
            offset += 2
        }
        scratch.count = offset
        if copies > 0, repeated == nil { writeCopies(before: packet, from: store, to: &scratch) }
        return store.withPayload(packet.payload ?? -1) { payload in
            guard let patch = packet.patch else { return body(&scratch, payload) }
            let patched = min(PayloadPatch.reach, payload.count)
            scratch.append(payload.extracting(0..<patched))
            patch.apply(to: &scratch, payload: offset..<(offset + patched))
            return body(&scratch, payload.extracting(patched..<payload.count))
        }
    }

    // MARK: Redundancy

    /// How many copies the packet can carry, and their length with the headers of RED. Zero without any.
    private func redundancy(of packet: SentPacket) -> (copies: Int, length: Int) {
        guard copies > 0, packet.patch == nil, let payload = packet.payload, let store, !packet.isFormer,
            redundancyTypes[packet.payloadType] != nil
        else { return (0, 0) }
        var (count, length) = (0, Redundancy.primaryHeader)
        let room = maximumLength - RTPHeader.minimumLength - store.length(of: payload)
        while count < copies, let copy = recent.packet(packet.number.advanced(by: -count - 1)), let index = copy.payload
        {
            let distance = packet.timestamp.rawValue &- copy.timestamp.rawValue
            let size = store.length(of: index)
            guard copy.payloadType == packet.payloadType, (1...Redundancy.longestCopy).contains(size),
                (1...UInt32(Redundancy.longestDistance)).contains(distance),
                length + Redundancy.copyHeader + size <= room
            else { break }
            count += 1
            length += Redundancy.copyHeader + size
        }
        return count > 0 ? (count, length) : (0, 0)
    }

    private func redundantLength(of packet: SentPacket) -> Int { copies > 0 ? redundancy(of: packet).length : 0 }

    /// Makes the packet in `scratch` one of RED, with everything before its primary payload (RFC 2198, section 3).
    private func writeCopies(before packet: SentPacket, from store: PacketStore, to scratch: inout PacketBuffer) {
        let (count, length) = redundancy(of: packet)
        guard count > 0, let type = redundancyTypes[packet.payloadType] else { return }
        scratch.bytes[1] = scratch.bytes[1] & 0x80 | type & 0x7f
        var head = scratch.count
        scratch.count += count * Redundancy.copyHeader + Redundancy.primaryHeader
        let end = head + length
        for back in stride(from: count, through: 1, by: -1) {
            guard let copy = recent.packet(packet.number.advanced(by: -back)), let index = copy.payload else {
                continue
            }
            let distance = packet.timestamp.rawValue &- copy.timestamp.rawValue
            scratch.bytes[head] = 0x80 | packet.payloadType
            let fields = distance << 10 | UInt32(store.length(of: index))
            scratch.bytes[head + 1] = UInt8(truncatingIfNeeded: fields >> 16)
            scratch.setUInt16(UInt16(truncatingIfNeeded: fields), at: head + 2)
            head += Redundancy.copyHeader
            store.withPayload(index) { scratch.append($0) }
        }
        scratch.bytes[head] = packet.payloadType & 0x7f
        assert(scratch.count == end)
    }

    /// Chooses how many copies packets carry, by the last report.
    func chooseCopies(most: Int) {
        hasNewReport = false
        copies = redundancyTypes.isEmpty ? 0 : min(statistics.expectedLoss.copies, most)
    }

    func setClock(_ clock: SenderClock) { self.clock = clock }

    /// Stops sender reports until the next `setClock`.
    func clearClock() { clock = nil }

    /// Forgets the sent packets, so that none is resent, and releases their stores.
    func forgetSent() {
        former = nil
        history.removeAll()
        repeats.removeAll()
        recent.removeAll()
        times = SendTimes()
        store = nil
    }

    /// Requests for the packets that were sent so far get empty ones.
    func withholdSent() {
        if let store { history.removePayloads(of: store) }
        if let store = former?.store { former?.history.removePayloads(of: store) }
    }

    /// The sender's part of the next report. Nil without a clock, and if the stream has sent nothing since the report
    /// before the last (RFC 3550, section 6.4).
    func senderInformation(now: MonotonicTime) -> SenderInformation? {
        guard let clock else { return nil }
        let isActive = statistics.packets > packetsAtReports.before
        packetsAtReports = (packetsAtReports.last, statistics.packets)
        guard isActive else { return nil }
        let current = clock.extrapolated(to: now)
        reports.sent(current.ntp, at: now)
        let headers = statistics.packets * RTPHeader.minimumLength
        return SenderInformation(
            ssrc: configuration.ssrc, ntp: current.ntp, rtp: current.rtp,
            packetCount: UInt32(truncatingIfNeeded: statistics.packets),
            // Payload bytes. Header extensions count as payload, which has no consequence.
            octetCount: UInt32(truncatingIfNeeded: statistics.bytes - headers))
    }

    func forgetReports() { reports = SentReports() }

    /// Handles the peer's report. Returns the round trip if the report refers to a sender report of ours.
    func receive(_ block: ReportBlock, now: MonotonicTime) -> TimeInterval? {
        isKnownToPeer = true
        statistics.isKnownToPeer = true
        statistics.reportedAt = now
        statistics.remoteFractionLost = Double(block.fractionLost) / 256
        let step = reportedNumber.map { Int(Int32(bitPattern: block.extendedHighestSequence &- $0)) }
        let covered = step ?? statistics.packets
        statistics.expectedLoss.report(statistics.remoteFractionLost, packets: covered)
        newlyReported = min(max(covered, 0), statistics.packets)
        reportedNumber = block.extendedHighestSequence
        hasNewReport = true
        statistics.remoteLost = block.cumulativeLost
        let rate = Int64(max(configuration.clockRate, 1))
        statistics.remoteJitter = TimeInterval(nanoseconds: Int64(block.jitter) * 1_000_000_000 / rate)
        let roundTrip = reports.roundTrip(
            last: block.lastSenderReport, delay: block.delaySinceLastSenderReport, now: now)
        if let roundTrip {
            statistics.roundTrip = roundTrip
            statistics.totalRoundTrip = statistics.totalRoundTrip + roundTrip
            statistics.roundTrips += 1
        }
        return roundTrip
    }

    func countNack(_ lost: Int) {
        statistics.nacks += 1
        statistics.nackedPackets += lost
    }

    func countKeyframeRequest(isFullIntra: Bool) {
        statistics.keyframeRequests += 1
        statistics.fullIntraRequests += isFullIntra ? 1 : 0
    }

    /// Whether an FIR is new. A repeated command number repeats the same request (RFC 5104, section 4.3.1.2).
    func isNew(command: UInt8) -> Bool {
        defer { lastCommand = command }
        return lastCommand != command
    }
}

/// The values of a packet's header extensions that its sending decides.
struct SendingStamp {
    var number: SequenceNumber
    var time: MonotonicTime
}

/// The RTP header fields that are written for each packet.
struct RTPFields {
    var payloadType: UInt8
    var marker: Bool
    var sequenceNumber: SequenceNumber
    var timestamp: RTPTimestamp
    var ssrc: SSRC

    /// Without CSRCs, extension and padding.
    @inline(__always)
    func write(to place: inout MutableSpan<UInt8>) {
        place[0] = 0x80
        place[1] = (marker ? 0x80 : 0) | (payloadType & 0x7f)
        place.setUInt16(sequenceNumber.rawValue, at: 2)
        place.setUInt32(timestamp.rawValue, at: 4)
        place.setUInt32(ssrc.rawValue, at: 8)
    }
}
