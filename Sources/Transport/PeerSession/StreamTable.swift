internal import CongestionControl
import RTP

/// The senders and receivers of a session, and their SSRCs. Independent of DTLS and SRTP, so that the path of a packet
/// through it is not generic.
final class StreamTable {
    /// The stream of an SSRC.
    private struct Source {
        var ssrc: UInt32
        var slot: Int
        var isRetransmission: Bool
        /// Whether a packet of it has been decrypted.
        var isOpened = false
    }

    /// The receiver of a packet.
    struct Route {
        fileprivate var slot: Int
        fileprivate var isRetransmission: Bool
        /// The SSRC's position in the sources. Nil if this packet binds it.
        fileprivate var source: Int?
    }

    let configuration: PeerSessionConfiguration
    @exclusivity(unchecked) private(set) var senders: [OutgoingStream?] = []
    @exclusivity(unchecked) private(set) var receivers: [IncomingStream?] = []
    @exclusivity(unchecked) private var sources: [Source] = []
    @exclusivity(unchecked) private var opened = OpenedSources()
    private var generation = 0
    private var nextFailureReport = MonotonicTime.zero
    private var lookups = LookupBudget.repairs
    var random: RandomSource
    @exclusivity(unchecked) var dropped = DroppedDatagrams()
    @exclusivity(unchecked) var events = EventQueue()
    /// The path by the peer's receiver reports.
    @exclusivity(unchecked) var pathReports = ReportEstimate()
    /// Measured by sender reports, else by NACKs and their responses.
    @exclusivity(unchecked) var reportedRoundTrip = RoundTripEstimate()
    @exclusivity(unchecked) private var repairRoundTrip = RepairRoundTrip()
    @exclusivity(unchecked) private var referenceTimes = ReferenceTimes()
    /// The copies in the packet of RED that is being read.
    private var copies: [Redundancy.Copy] = []
    /// The missing packets of which the last packet of RED had copies, and their stream.
    private var recovered = DatagramBatch()
    private var recoveredOf: ReceiverID?
    private var nextRecovered = 0

    init(configuration: PeerSessionConfiguration) {
        self.configuration = configuration
        random = RandomSource(seed: configuration.seed)
    }

    var roundTrip: TimeInterval? { reportedRoundTrip.smoothed ?? repairRoundTrip.estimate.smoothed }

    /// For NACKs and their responses.
    ///
    /// The variation counts up to `nackSlack` only: one late response must not stretch the interval until two tries
    /// fill the jitter buffer's delay. A needless request costs little, because the sender holds repetitions back.
    var repairTiming: RepairTiming {
        guard let smoothed = reportedRoundTrip.smoothed ?? repairRoundTrip.estimate.smoothed,
            let timeout = reportedRoundTrip.timeout ?? repairRoundTrip.estimate.timeout
        else { return .unknown }
        return RepairTiming(roundTrip: smoothed, response: min(timeout, smoothed + Self.nackSlack))
    }

    private static let nackSlack = TimeInterval.milliseconds(20)

    // MARK: Adding and finding streams

    func addSender(_ configuration: SenderConfiguration) -> SenderID {
        let slot = senders.firstIndex { $0 == nil } ?? senders.count
        generation += 1
        let id = SenderID(slot: slot, generation: generation)
        let stream = OutgoingStream(
            id: id, configuration: configuration, maximumLength: self.configuration.maximumPacketLength,
            random: &random)
        if slot == senders.count { senders.append(stream) } else { senders[slot] = stream }
        return id
    }

    func addReceiver(_ configuration: ReceiverConfiguration) -> ReceiverID {
        let slot = receivers.firstIndex { $0 == nil } ?? receivers.count
        generation += 1
        let id = ReceiverID(slot: slot, generation: generation)
        let stream = IncomingStream(id: id, configuration: configuration)
        if slot == receivers.count { receivers.append(stream) } else { receivers[slot] = stream }
        if let ssrc = configuration.ssrc { claim(ssrc, slot, isRetransmission: false) }
        if let ssrc = configuration.retransmissionSSRC { claim(ssrc, slot, isRetransmission: true) }
        return id
    }

    func sender(_ id: SenderID) -> OutgoingStream? {
        guard senders.indices.contains(id.slot), let stream = senders[id.slot], stream.id == id else { return nil }
        return stream
    }

    func receiver(_ id: ReceiverID) -> IncomingStream? {
        guard receivers.indices.contains(id.slot), let stream = receivers[id.slot], stream.id == id else { return nil }
        return stream
    }

    func removeSender(_ id: SenderID) -> OutgoingStream? {
        guard let stream = sender(id) else { return nil }
        senders[id.slot] = nil
        return stream
    }

    func removeReceiver(_ id: ReceiverID) {
        guard receiver(id) != nil else { return }
        receivers[id.slot] = nil
        if recoveredOf == id { forgetRecovered() }
        sources.removeAll { $0.slot == id.slot }
    }

    /// The first sender with this media SSRC.
    func sender(_ ssrc: SSRC) -> OutgoingStream? {
        for sender in senders {
            if let sender, sender.configuration.ssrc == ssrc { return sender }
        }
        return nil
    }

    private func claim(_ ssrc: SSRC, _ slot: Int, isRetransmission: Bool) {
        sources.removeAll {
            $0.ssrc == ssrc.rawValue || ($0.slot == slot && $0.isRetransmission == isRetransmission)
        }
        sources.append(Source(ssrc: ssrc.rawValue, slot: slot, isRetransmission: isRetransmission))
    }

    private func position(of ssrc: SSRC) -> Int? {
        for index in sources.indices where sources[index].ssrc == ssrc.rawValue { return index }
        return nil
    }

    /// The receiver of a media SSRC.
    func receiver(_ ssrc: SSRC) -> IncomingStream? {
        guard let index = position(of: ssrc), !sources[index].isRetransmission else { return nil }
        return receivers[sources[index].slot]
    }

    // MARK: Receiving packets

    /// Finds the receiver of a packet that may be encrypted, by the fields that SRTP leaves readable. Returns nil, and
    /// counts it, if there is none: a stranger's packet must cost neither decryption nor a context of the SRTP engine.
    func route(_ header: RTPHeader, _ packet: borrowing PacketBuffer) -> Route? {
        let found: Route?
        if let index = position(of: header.ssrc) {
            found = Route(slot: sources[index].slot, isRetransmission: sources[index].isRetransmission, source: index)
        } else {
            found = unboundRoute(header, packet)
        }
        guard let route = found, let stream = receivers[route.slot], isOpened(route) || admits(header.ssrc) else {
            dropped.unknownSSRC += 1
            return nil
        }
        let isTaken =
            route.isRetransmission
            ? stream.original(of: header.payloadType) != nil : stream.accepts(header.payloadType)
        guard isTaken else {
            dropped.unknownPayloadType += 1
            return nil
        }
        return route
    }

    /// The id of transport-wide numbers in packets of the route. Nil if its stream has none.
    func transportNumber(of route: Route) -> UInt8? { receivers[route.slot]?.extensions.transportNumber }

    /// Likewise of the time of sending.
    func sendTime(of route: Route) -> UInt8? { receivers[route.slot]?.extensions.sendTime }

    func takesEstimates(_ route: Route) -> Bool { receivers[route.slot]?.configuration.takesEstimates ?? false }

    /// The known SSRCs of the streams whose sender takes estimates.
    var estimatedSources: [SSRC] {
        receivers.compactMap { $0.flatMap { $0.configuration.takesEstimates ? $0.ssrc : nil } }
    }

    /// The SSRCs of the senders that are among these, each once.
    func sentSources(of listed: [SSRC]) -> [SSRC] {
        var found: [SSRC] = []
        for case let sender? in senders {
            let (media, repeats) = (sender.configuration.ssrc, sender.configuration.retransmissionSSRC)
            if listed.contains(media) { found.append(media) }
            if let repeats, listed.contains(repeats) { found.append(repeats) }
        }
        return found
    }

    /// The rate of audio in bits per second, if there is some that is not of these sources.
    func audioRate(without sources: [SSRC]) -> Double {
        let isOther = senders.contains { sender in
            guard let sender, sender.configuration.isAudio, sender.hasSent else { return false }
            return !sources.contains(sender.configuration.ssrc)
        }
        return isOther ? 64_000 : 0
    }

    /// Whether a stream is sent with transport-wide numbers, and whether one is with the times of sending.
    var hasNumbers: Bool { senders.contains { $0?.extensions.transportNumber != nil } }
    var hasSendTimes: Bool { senders.contains { $0?.extensions.sendTime != nil } }

    /// The first stream that can send padding, of those that have packets to repeat if there are any.
    var paddingSender: OutgoingStream? {
        var first: OutgoingStream?
        for case let sender? in senders where sender.canPad {
            if sender.hasSent { return sender }
            first = first ?? sender
        }
        return first
    }

    /// Handles a decrypted packet: binds a new SSRC, unwraps RTX, drops duplicates.
    func receive(
        _ packet: inout PacketBuffer, _ header: RTPHeader, by route: Route, now: MonotonicTime
    ) -> Received {
        guard let stream = receivers[route.slot] else { return .nothing }
        if route.source == nil, !route.isRetransmission, stream.isLate(header.ssrc) {
            dropped.tooOld += 1
            return .nothing
        }
        if route.source == nil { bind(header.ssrc, to: stream, isRetransmission: route.isRetransmission) }
        stream.countArrival(header, length: packet.count, isRetransmission: route.isRetransmission, now: now)
        let isRetransmission = route.isRetransmission
        var header = header
        if isRetransmission {
            guard header.payloadLength > 0 else {
                dropped.padding += 1
                return .nothing
            }
            guard let ssrc = stream.ssrc else {
                dropped.unknownSSRC += 1
                return .nothing
            }
            guard let type = stream.original(of: header.payloadType),
                let original = Retransmission.unwrap(&packet, header: header, payloadType: type, ssrc: ssrc)
            else {
                dropped.malformed += 1
                return .nothing
            }
            header = original
        }
        if let type = stream.primary(of: header.payloadType) {
            guard let primary = unwrap(&packet, header, payloadType: type, of: stream) else {
                dropped.malformed += 1
                return .nothing
            }
            header = primary
        }
        switch stream.receive(header, isRetransmission: isRetransmission, now: now, roundTrip: &repairRoundTrip) {
        case .new(let number), .restarted(let number):
            header.resolveExtensions(stream.extensions, in: packet)
            return .media(stream.id, header, StreamPosition(epoch: stream.epoch, number: number))
        case .duplicate:
            dropped.duplicates += 1
        case .tooOld:
            dropped.tooOld += 1
        }
        // It may still have copies of packets that are missing.
        guard hasRecovered else { return .nothing }
        return takeRecovered(&packet, now: now) ?? .nothing
    }

    // MARK: Redundancy

    /// Makes a packet of RED an ordinary one, and keeps the missing packets of which it has copies.
    private func unwrap(
        _ packet: inout PacketBuffer, _ header: RTPHeader, payloadType: UInt8, of stream: IncomingStream
    ) -> RTPHeader? {
        copies.removeAll(keepingCapacity: true)
        forgetRecovered()
        defer { copies.removeAll(keepingCapacity: true) }
        guard let primary = Redundancy.read(packet, header: header, payloadType: payloadType, copies: &copies) else {
            return nil
        }
        for copy in copies.reversed() where stream.lacks(copy.sequenceNumber) {
            recovered.append(upTo: RTPHeader.minimumLength + copy.payload.count) { place in
                let fields = RTPFields(
                    payloadType: payloadType, marker: false, sequenceNumber: copy.sequenceNumber,
                    timestamp: copy.timestamp, ssrc: header.ssrc)
                fields.write(to: &place)
                for index in 0..<copy.payload.count {
                    place[RTPHeader.minimumLength + index] = packet.bytes[copy.payload.lowerBound + index]
                }
                return RTPHeader.minimumLength + copy.payload.count
            }
            recoveredOf = stream.id
        }
        return Redundancy.unwrap(&packet, header: header, payload: primary, payloadType: payloadType)
    }

    /// Whether the last packet had copies of missing ones.
    @inline(__always)
    var hasRecovered: Bool { !recovered.isEmpty }

    /// The next missing packet of which the last one had a copy, the oldest first. Nil after the last.
    func takeRecovered(_ packet: inout PacketBuffer, now: MonotonicTime) -> Received? {
        while nextRecovered < recovered.count {
            let bytes = recovered[nextRecovered]
            nextRecovered += 1
            guard let stream = recoveredOf.flatMap({ receiver($0) }), packet.assign(recovered.bytes, bytes.indices),
                let header = RTPHeader(parsing: packet), header.ssrc == stream.ssrc,
                case .new(let number) = stream.receive(
                    header, isRetransmission: true, now: now, roundTrip: &repairRoundTrip)
            else { continue }
            stream.countRecoveredFromCopy()
            return .media(stream.id, header, StreamPosition(epoch: stream.epoch, number: number))
        }
        forgetRecovered()
        return nil
    }

    private func forgetRecovered() {
        recovered.removeAll()
        nextRecovered = 0
    }

    /// Counts a packet with a bad tag or a repeated number, and reports the total.
    func failedAuthentication(now: MonotonicTime) {
        dropped.authenticationFailures += 1
        guard now >= nextFailureReport else { return }
        nextFailureReport = now + .seconds(1)
        events.push(.unauthenticated(packets: dropped.authenticationFailures))
    }

    /// Counts a packet that SRTP refused. Reports a stream whose packets are all refused.
    func refused(_ header: RTPHeader, now: MonotonicTime) {
        failedAuthentication(now: now)
        guard let stream = receiver(header.ssrc), stream.isNewlyRefused(now: now) else { return }
        events.push(.refused(stream.id, packets: stream.refusedPackets))
    }

    /// The most bytes of header extensions of a packet whose SSRC is not known yet. A MID and a RID have 16 each at most.
    private static let longestUnboundExtension = 256

    /// Finds the receiver of an unknown SSRC by its MID extension, or by a payload type that only one receiver without
    /// an SSRC accepts (RFC 9143, section 9.2).
    private func unboundRoute(_ header: RTPHeader, _ packet: borrowing PacketBuffer) -> Route? {
        // Nothing has authenticated the packet, and each search walks through all elements.
        guard header.extensionRange.count <= Self.longestUnboundExtension else { return nil }
        var found: IncomingStream?
        var hasMid = false
        var mid: (id: UInt8, range: Range<Int>?)?
        for case let stream? in receivers {
            guard let id = stream.extensions.mid else { continue }
            if mid?.id != id { mid = (id, header.headerExtension(id: id, in: packet)) }
            guard let range = mid?.range else { continue }
            hasMid = true
            if packet.bytes[range].elementsEqual(stream.configuration.mid.utf8), hasRid(header, packet, of: stream) {
                found = stream
                break
            }
        }
        if found == nil, !hasMid { found = onlyReceiver(of: header.payloadType) }
        guard let stream = found else { return nil }
        let isRetransmission = stream.original(of: header.payloadType) != nil
        guard isRetransmission || stream.accepts(header.payloadType) else { return nil }
        return Route(slot: stream.id.slot, isRetransmission: isRetransmission, source: nil)
    }

    /// Whether a packet of the m-line belongs to the receiver's layer. Without simulcast, all of them do.
    private func hasRid(_ header: RTPHeader, _ packet: borrowing PacketBuffer, of stream: IncomingStream) -> Bool {
        guard let rid = stream.configuration.rid else { return true }
        let isRepeat = stream.original(of: header.payloadType) != nil
        guard let id = isRepeat ? stream.extensions.repairedStreamID : stream.extensions.streamID,
            let range = header.headerExtension(id: id, in: packet)
        else { return false }
        return packet.bytes[range].elementsEqual(rid.utf8)
    }

    private func bind(_ ssrc: SSRC, to stream: IncomingStream, isRetransmission: Bool) {
        if isRetransmission { stream.retransmissionSSRC = ssrc } else { stream.bind(ssrc) }
        if !isRetransmission, recoveredOf == stream.id { forgetRecovered() }
        claim(ssrc, stream.id.slot, isRetransmission: isRetransmission)
    }

    private func onlyReceiver(of payloadType: UInt8) -> IncomingStream? {
        var found: IncomingStream?
        for case let stream? in receivers {
            let isOriginal = stream.accepts(payloadType)
            guard isOriginal || stream.original(of: payloadType) != nil else { continue }
            if found != nil { return nil }
            found = stream
        }
        guard let stream = found else { return nil }
        let known = stream.accepts(payloadType) ? stream.ssrc : stream.retransmissionSSRC
        return known == nil ? stream : nil
    }

    // MARK: The SRTP engine's contexts

    /// Whether the engine may decrypt a packet of this SSRC. Each SSRC needs a context.
    func admits(_ ssrc: SSRC) -> Bool { opened.admits(ssrc) { position(of: $0) != nil } }

    private func isOpened(_ route: Route) -> Bool { route.source.map { sources[$0].isOpened } ?? false }

    /// Records a decrypted media packet. Returns the SSRC whose context has to be freed.
    func opened(_ ssrc: SSRC, by route: Route) -> SSRC? {
        guard !isOpened(route) else { return nil }
        if let source = route.source { sources[source].isOpened = true }
        return opened(ssrc)
    }

    /// Records a decrypted packet of this SSRC. Returns the SSRC whose context has to be freed.
    func opened(_ ssrc: SSRC) -> SSRC? { opened.insert(ssrc) { position(of: $0) != nil } }

    // MARK: Receiving feedback

    /// Handles an RTCP compound except its NACKs, which it returns because responding to them sends packets.
    func receive(
        _ packets: [RTCPPacket], now: MonotonicTime, repairs: (OutgoingStream, [SequenceNumber]) -> Void
    ) {
        // The sender reports of the compound came the same way.
        let roundTrip = roundTrip(by: packets, now: now)
        for packet in packets {
            switch packet {
            case .senderReport(let information, let blocks):
                receive(information, roundTrip: roundTrip, now: now)
                receive(blocks, now: now)
            case .receiverReport(_, let blocks):
                receive(blocks, now: now)
            case .nack(_, let media, let lost):
                guard let stream = sender(media) else { continue }
                stream.countNack(lost.count)
                repairs(stream, Array(lost.prefix(lookups.take(lost.count, now: now))))
            case .pictureLoss(_, let media):
                if let stream = sender(media) { keyframeRequested(stream, isFullIntra: false) }
            case .fullIntraRequest(_, let requests):
                for request in requests {
                    guard let stream = sender(request.ssrc), stream.isNew(command: request.command) else { continue }
                    keyframeRequested(stream, isFullIntra: true)
                }
            case .bye(let gone):
                for ssrc in gone {
                    if let stream = receiver(ssrc) { events.push(.bye(stream.id)) }
                }
            case .cname, .extendedReport, .transportFeedback, .receiverEstimate, .unknown:
                continue
            }
        }
    }

    private func keyframeRequested(_ stream: OutgoingStream, isFullIntra: Bool) {
        stream.countKeyframeRequest(isFullIntra: isFullIntra)
        events.push(.keyframeRequested(stream.id))
    }

    /// The round trip by the extended report of a compound.
    private func roundTrip(by packets: [RTCPPacket], now: MonotonicTime) -> TimeInterval? {
        for case .extendedReport(let report) in packets {
            guard let sample = referenceTimes.receive(report, now: now) else { continue }
            measured(sample)
            return sample
        }
        return nil
    }

    private func measured(_ roundTrip: TimeInterval) {
        reportedRoundTrip.addDespiteStalls(roundTrip)
        events.push(.roundTrip(roundTrip))
    }

    /// See `PeerSession.lastAnswered`.
    var lastAnswered: MonotonicTime { referenceTimes.answered }

    /// Takes no round trip from the reports so far.
    func forgetReports() {
        referenceTimes.forgetSent()
        for case let sender? in senders { sender.forgetReports() }
    }

    private func receive(_ information: SenderInformation, roundTrip: TimeInterval?, now: MonotonicTime) {
        guard let stream = receiver(information.ssrc) else { return }
        stream.receive(information, now: now)
        // The sender has no clock (RFC 3550, section 6.4.1).
        guard information.ntp.rawValue != 0 else { return }
        // Some senders, such as aiortc, write when they sent their last packet.
        let arrival = stream.arrival(of: information.rtp) ?? now
        let report = SenderReport(
            ntp: information.ntp, rtp: information.rtp, arrival: arrival, roundTrip: roundTrip, after: stream.newest)
        events.push(.senderReport(stream.id, report))
    }

    private func receive(_ blocks: [ReportBlock], now: MonotonicTime) {
        for block in blocks {
            guard let stream = sender(block.ssrc) else { continue }
            if let sample = stream.receive(block, now: now) { measured(sample) }
            pathReports.reported(lost: Double(block.fractionLost) / 256, of: stream.newlyReported)
        }
        pathReports.judge(roundTrip: roundTrip, now: now)
    }

    // MARK: Sending reports and feedback

    /// The SSRC of this end's reports.
    var ownSSRC: SSRC {
        for case let sender? in senders { return sender.configuration.ssrc }
        return configuration.reportSSRC
    }

    /// The beginning of every compound: a report, possibly empty, and the CNAME (RFC 3550, section 6.1).
    var preamble: [RTCPPacket] {
        let own = ownSSRC
        return [.receiverReport(own, []), .cname(own, configuration.cname)]
    }

    /// Sender reports on all sent streams, receiver reports on all received ones, and an extended report.
    func reports(now: MonotonicTime) -> [RTCPPacket] {
        var blocks: [ReportBlock] = []
        for case let receiver? in receivers {
            if let block = receiver.reportBlock(now: now) { blocks.append(block) }
        }
        var packets: [RTCPPacket] = []
        for case let sender? in senders {
            guard let information = sender.senderInformation(now: now) else { continue }
            packets.append(.senderReport(information, []))
        }
        let own = ownSSRC
        let extended = referenceTimes.report(from: own, asks: !blocks.isEmpty, now: now)
        // 20 blocks leave room for the rest of a compound of 1200 bytes.
        while !blocks.isEmpty {
            packets.append(.receiverReport(own, Array(blocks.prefix(20))))
            blocks.removeFirst(min(20, blocks.count))
        }
        // An end that sends nothing still answers, or its peer would take the way to it for dead.
        if packets.isEmpty { packets = [.receiverReport(own, [])] }
        packets.insert(.cname(own, configuration.cname), at: 1)
        if let extended { packets.insert(.extendedReport(extended), at: 2) }
        return packets
    }

    /// The NACKs and keyframe requests that are due.
    func feedback(now: MonotonicTime) -> [RTCPPacket] {
        guard !receivers.isEmpty else { return [] }
        var packets: [RTCPPacket] = []
        let own = ownSSRC
        let timing = repairTiming
        for case let receiver? in receivers {
            guard let ssrc = receiver.ssrc else { continue }
            if receiver.nackTimeout(timing) <= now {
                var lost: [SequenceNumber] = []
                if !receiver.collectNacks(into: &lost, now: now, timing) {
                    events.push(.lossBeyondRepair(receiver.id))
                }
                // In the worst case, each number needs four bytes; a hundred always fit.
                for start in stride(from: 0, to: lost.count, by: 100) {
                    let part = Array(lost[start..<min(start + 100, lost.count)])
                    packets.append(.nack(sender: own, media: ssrc, lost: part))
                    receiver.countNack()
                }
            }
            if receiver.takeKeyframeRequest(now: now) {
                packets.append(.pictureLoss(sender: own, media: ssrc))
            }
        }
        return packets
    }

    /// When `feedback` is due next.
    var nextFeedback: MonotonicTime {
        guard !receivers.isEmpty else { return .never }
        var next = MonotonicTime.never
        let timing = repairTiming
        for case let receiver? in receivers { next = min(next, receiver.nextRequest(timing)) }
        return next
    }

    var hasStreams: Bool { senders.contains { $0 != nil } || receivers.contains { $0 != nil } }
}
