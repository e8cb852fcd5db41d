import RTP

/// One receiver: drops duplicates, detects losses, and requests lost packets.
final class IncomingStream {
    /// Shortest interval between keyframe requests.
    private static let keyframeRequestInterval = TimeInterval.milliseconds(200)
    /// A stream is refused after this many invalid packets in a row, over this time.
    private static let refusedPackets = 20
    private static let refusedTime = TimeInterval.milliseconds(500)

    /// This many packets of a former SSRC in a row, without one of the current SSRC, show that the stream returned to it.
    private static let returningPackets = 100
    /// The most former SSRCs remembered.
    private static let formerLimit = 4

    let id: ReceiverID
    let configuration: ReceiverConfiguration
    /// Ids of the header extensions that the peer sends.
    var extensions: HeaderExtensionIDs
    var ssrc: SSRC?
    var retransmissionSSRC: SSRC?
    /// The stream's former SSRCs, the latest one last.
    private var former: [SSRC] = []
    /// Packets of former SSRCs since the last packet of the current one.
    private var latePackets = 0
    /// How often the stream has restarted.
    private(set) var epoch = 0
    /// The first packet of the current assignment, by position and before any packet by sequence number.
    private var first: Int?
    private var expectedFirst: SequenceNumber?
    private var reception: ReceptionStatistics
    private var nacks = NackGenerator()
    private var counters = ReceiverStatistics()
    private var acceptedTypes = [Bool](repeating: false, count: 128)
    /// The original payload type by RTX payload type. 0xff means none.
    private var originalType = [UInt8](repeating: 0xff, count: 128)
    /// The payload type of the packets in one of RED. 0xff means none.
    private var primaryType = [UInt8](repeating: 0xff, count: 128)
    private var keyframeRequestedAt: MonotonicTime?
    private var wantsKeyframe = false
    /// False if nothing is to be requested. Each change of `nacks`, `ssrc` and `wantsKeyframe` that may cause a request sets
    /// it, so that a session asks only few of its streams after each packet.
    private var mayRequest = true
    /// Packets refused by SRTP since the last valid one.
    private(set) var refusedPackets = 0
    private var refusedSince = MonotonicTime.zero
    private var isRefusalKnown = false

    init(id: ReceiverID, configuration: ReceiverConfiguration) {
        self.id = id
        self.configuration = configuration
        extensions = configuration.extensions
        ssrc = configuration.ssrc
        retransmissionSSRC = configuration.retransmissionSSRC
        reception = ReceptionStatistics(clockRate: configuration.clockRate)
        for type in configuration.payloadTypes where type < 128 { acceptedTypes[Int(type)] = true }
        for (type, repeated) in configuration.retransmissionPayloadTypes where type < 128 && repeated < 128 {
            originalType[Int(repeated)] = type
        }
        for (type, redundant) in configuration.redundancyPayloadTypes where type < 128 && redundant < 128 {
            acceptedTypes[Int(redundant)] = true
            primaryType[Int(redundant)] = type
        }
    }

    func accepts(_ payloadType: UInt8) -> Bool { acceptedTypes[Int(payloadType & 0x7f)] }

    func original(of payloadType: UInt8) -> UInt8? {
        let type = originalType[Int(payloadType & 0x7f)]
        return type == 0xff ? nil : type
    }

    /// The type of the packets in one of RED. Nil if the type is not that of RED.
    func primary(of payloadType: UInt8) -> UInt8? {
        let type = primaryType[Int(payloadType & 0x7f)]
        return type == 0xff ? nil : type
    }

    /// Whether a packet near the newest one has not arrived.
    func lacks(_ number: SequenceNumber) -> Bool { reception.lacks(number) }

    func countRecoveredFromCopy() {
        counters.recovered += configuration.nack ? 0 : 1
        counters.recoveredFromCopies += 1
    }

    /// Binds the stream to a new source and resets its counters.
    func bind(_ newSSRC: SSRC) {
        former.removeAll { $0 == newSSRC }
        if let ssrc { former.append(ssrc) }
        if former.count > Self.formerLimit { former.removeFirst() }
        latePackets = 0
        ssrc = newSSRC
        epoch += 1
        first = nil
        counters.lost += reception.lost
        reception = ReceptionStatistics(clockRate: configuration.clockRate)
        nacks.reset()
        mayRequest = true
    }

    /// Whether a packet that the stream could bind to is a late packet of a former SSRC.
    ///
    /// The current SSRC's packets may carry no MID any longer (RFC 8843, section 9.2.4), so a binding to a late packet would
    /// lose them all.
    func isLate(_ ssrc: SSRC) -> Bool {
        guard former.contains(ssrc) else { return false }
        latePackets += 1
        return latePackets <= Self.returningPackets
    }

    /// Drops packets before this number, which belong to the previous assignment, and stops requesting them. Returns
    /// the number without wrap, or nil before the first packet of the stream.
    func discard(before number: SequenceNumber, now: MonotonicTime) -> Int? {
        first = reception.extended(number)
        expectedFirst = first == nil ? number : nil
        if let first {
            nacks.forget(before: first)
            if configuration.nack { nacks.begin(at: first, now: now) }
            mayRequest = true
        }
        return first
    }

    /// Counts a packet that SRTP refused. Returns true once each time the stream stops by it.
    func isNewlyRefused(now: MonotonicTime) -> Bool {
        if refusedPackets == 0 { refusedSince = now }
        refusedPackets += 1
        guard !isRefusalKnown, refusedPackets >= Self.refusedPackets, now - refusedSince >= Self.refusedTime else {
            return false
        }
        isRefusalKnown = true
        return true
    }

    /// Accepts a packet with its original header. Updates `roundTrip` if the packet is a response to a NACK.
    func receive(
        _ header: RTPHeader, isRetransmission: Bool, now: MonotonicTime, roundTrip: inout RepairRoundTrip
    ) -> ReceptionStatistics.Arrival {
        if !isRetransmission {
            latePackets = 0
            refusedPackets = 0
            isRefusalKnown = false
        }
        let arrival = reception.receive(
            header.sequenceNumber, timestamp: header.timestamp, isRetransmission: isRetransmission, now: now)
        switch arrival {
        case .new(let number):
            if let expectedFirst {
                let begin = number + expectedFirst.distance(from: header.sequenceNumber)
                first = begin
                if configuration.nack { nacks.begin(at: begin, now: now) }
                mayRequest = true
                self.expectedFirst = nil
            }
            if let first, number < first { return .tooOld }
            count(header)
            guard configuration.nack else { return arrival }
            switch nacks.receive(number, now: now) {
            case .inOrder: break
            case .recovered(let tries, let firstAsked):
                counters.recovered += 1
                if isRetransmission { roundTrip.answered(tries: tries, firstAsked: firstAsked, now: now) }
            case .givenUp(let tries, let firstAsked):
                if isRetransmission {
                    roundTrip.answered(tries: tries, firstAsked: firstAsked, now: now, wasGivenUp: true)
                }
                mayRequest = true
            case .other: mayRequest = true
            }
        case .restarted(let number):
            epoch += 1
            first = nil
            count(header)
            nacks.reset()
            if configuration.nack { _ = nacks.receive(number, now: now) }
            mayRequest = true
        case .duplicate:
            counters.duplicates += 1
        case .tooOld:
            break
        }
        return arrival
    }

    /// Counts a packet that belongs to the stream, before anything of it is unwrapped or dropped.
    ///
    /// - Parameter length: of the packet, without SRTP's tag.
    func countArrival(_ header: RTPHeader, length: Int, isRetransmission: Bool, now: MonotonicTime) {
        counters.arrivals.add(header.payloadLength, of: length, isRetransmission: isRetransmission, now: now)
    }

    private func count(_ header: RTPHeader) {
        counters.packets += 1
        counters.bytes += header.payloadEnd
    }

    /// Nil before the first packet.
    var newest: StreamPosition? { reception.highest.map { StreamPosition(epoch: epoch, number: $0) } }

    /// When the last packet arrived, if it has this timestamp.
    func arrival(of timestamp: RTPTimestamp) -> MonotonicTime? { reception.arrival(of: timestamp) }

    func receive(_ information: SenderInformation, now: MonotonicTime) {
        reception.receiveSenderReport(information.ntp, now: now)
        if counters.sent == nil {
            counters.sent = ReportedPackets(information, now: now)
        } else {
            counters.sent?.receive(information, now: now)
        }
    }

    func reportBlock(now: MonotonicTime) -> ReportBlock? {
        guard let ssrc else { return nil }
        return reception.reportBlock(ssrc: ssrc, now: now)
    }

    // MARK: Requesting packets and keyframes

    /// When the next request is due.
    func nextRequest(_ timing: RepairTiming) -> MonotonicTime {
        guard mayRequest else { return .never }
        let next = min(nackTimeout(timing), keyframeRequestTimeout)
        if next == .never { mayRequest = false }
        return next
    }

    func nackTimeout(_ timing: RepairTiming) -> MonotonicTime { nacks.nextTimeout(timing) }

    /// Appends the numbers to request. Returns false if some were given up.
    func collectNacks(into lost: inout [SequenceNumber], now: MonotonicTime, _ timing: RepairTiming) -> Bool {
        let before = lost.count
        let isWhole = nacks.collect(into: &lost, now: now, timing)
        counters.nackedPackets += lost.count - before
        return isWhole
    }

    private var keyframeRequestTimeout: MonotonicTime {
        guard wantsKeyframe, ssrc != nil else { return .never }
        return keyframeRequestedAt.map { $0 + Self.keyframeRequestInterval } ?? .zero
    }

    func wantKeyframe() {
        wantsKeyframe = true
        mayRequest = true
    }

    /// A packet with numbers to request is sent.
    func countNack() { counters.nacks += 1 }

    /// Whether to request a keyframe now. Records the request.
    func takeKeyframeRequest(now: MonotonicTime) -> Bool {
        guard keyframeRequestTimeout <= now else { return false }
        wantsKeyframe = false
        keyframeRequestedAt = now
        counters.keyframeRequests += 1
        return true
    }

    var statistics: ReceiverStatistics {
        var result = counters
        result.ssrc = ssrc
        result.retransmissionSSRC = retransmissionSSRC
        result.lost += reception.lost
        result.jitter = reception.jitter
        result.unrecovered = nacks.abandoned
        return result
    }
}
