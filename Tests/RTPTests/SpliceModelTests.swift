import Testing
import TestSupport

@testable import RTP

/// Publishers on a bad network, a splice, and an oracle that counts in 64 bits and knows every packet.
private struct SpliceModel {
    /// A packet on the network. `line` is the publisher's number without wrap.
    struct Sent {
        var line: Int
        var timestamp: RTPTimestamp
        var isKeyframe: Bool
        var isLeftOut: Bool
        var source: Int
    }

    static let restarts = [1, 1000, 5000, 30000, 40000, -1, -1000, -5000, -30000, -40000]

    var random: Seeded
    var splice: Splice
    // The publisher.
    var line = 0
    var timestamp: UInt32 = 0
    var source = 0
    var delayed: [(due: Int, packet: Sent)] = []
    // The server's view of it.
    var reception = ReceptionStatistics(clockRate: 90000)
    var epoch = 0
    var newest = Int.min
    /// From the last sender report of the epoch.
    var clock: SenderClock?
    // The oracle: where the current stretch starts, and the numbers that were skipped before any later packet came.
    var isJoined = false
    var startLine = 0
    var startOut = 0
    var highestLine = 0
    var leftOut: [Int] = []
    var nextOut: Int
    var skips = Splice.maximumSkips
    var timestampOffset: UInt32?
    // The subscriber.
    var subscriber = ReceptionStatistics(clockRate: 90000)
    var subscriberBase: Int?
    var descriptors: [PayloadDescriptor]

    var sent = 0
    var forwarded = 0
    var joins = 0
    var closedGaps = 0
    var longGaps = 0
    /// Packets whose clock was compared.
    var reports = 0

    init(seed: UInt64) throws {
        random = Seeded(seed)
        let first = Splice.randomStart(using: &random)
        splice = Splice(firstSequenceNumber: first)
        splice.begin(clockRate: 90000, clock: nil)
        nextOut = Int(first.rawValue)
        descriptors = try [false, true].map { try vp8(0, timestamp: 0, keyframe: $0).payload }
        line = Int.random(in: 100_000..<200_000, using: &random)
    }

    mutating func step(_ index: Int) -> String? {
        let dice = random.next()
        sent += 1
        if dice & 0x3ff == 0 { beginAnew(dice >> 20) }
        line += 1
        timestamp &+= 3000
        let packet = Sent(
            line: line, timestamp: RTPTimestamp(timestamp), isKeyframe: (dice >> 10) & 63 == 0,
            isLeftOut: (dice >> 16) & 31 == 0, source: source)
        // Of 128: 6 are lost, 8 delayed, 2 duplicated.
        switch (dice >> 32) & 127 {
        case 0..<6: break
        case 6..<14: delayed.append((index + Int((dice >> 40) & 15) + 1, packet))
        case 14..<16:
            delayed.append((index + Int((dice >> 40) & 15) + 1, packet))
            if let fault = arrive(packet, index) { return fault }
        default: if let fault = arrive(packet, index) { return fault }
        }
        while let place = delayed.firstIndex(where: { $0.due <= index }) {
            if let fault = arrive(delayed.remove(at: place).packet, index) { return fault }
        }
        return nil
    }

    /// The same SSRC with other numbers, another SSRC, another publisher, or the same stream subscribed again.
    private mutating func beginAnew(_ dice: UInt64) {
        switch dice & 7 {
        case 0...2: changeNumbers(dice)
        case 3, 4: changeSource()
        case 5:
            changeSource()
            splice.end()
            splice.begin(clockRate: 90000, clock: nil)
            isJoined = false
        default:
            splice.end()
            splice.begin(clockRate: 90000, clock: clock, epoch: newest == .min ? nil : epoch)
            isJoined = false
            // The stream may restart before its first packet.
            switch (dice >> 4) & 3 {
            case 0: changeNumbers(dice)
            case 1: changeSource()
            default: break
            }
        }
    }

    private mutating func changeNumbers(_ dice: UInt64) {
        timestamp = UInt32(truncatingIfNeeded: random.next())
        line += Self.restarts[Int(dice >> 8) % Self.restarts.count]
    }

    private mutating func changeSource() {
        timestamp = UInt32(truncatingIfNeeded: random.next())
        source += 1
        line = Int.random(in: 100_000..<200_000, using: &random)
        reception = ReceptionStatistics(clockRate: 90000)
        epoch += 1
        newest = .min
        clock = nil
        isJoined = false
    }

    /// Handles a packet at the server, and sometimes a sender report after it.
    private mutating func arrive(_ packet: Sent, _ index: Int) -> String? {
        guard packet.source == source else { return nil }
        let now = MonotonicTime.zero + .milliseconds(Int64(index) * 33)
        if let fault = forward(packet, now) { return fault }
        if random.next() & 31 == 0 {
            let wall = NTPTime(unixNanoseconds: 1_700_000_000_000_000_000 + UInt64(index) * 33_000_000)
            let report = SenderClock(ntp: wall, rtp: packet.timestamp, at: now, clockRate: 90000)
            clock = report
            splice.setClock(report)
        }
        guard isJoined, let clock, let timestampOffset else {
            return splice.clock == nil ? nil : "a clock of another epoch is in use"
        }
        reports += 1
        let sent = RTPTimestamp(clock.rtp.rawValue &+ timestampOffset)
        return splice.clock?.ntp == clock.ntp && splice.clock?.rtp == sent ? nil : "the clock is wrong"
    }

    private mutating func forward(_ packet: Sent, _ now: MonotonicTime) -> String? {
        let number: Int
        switch reception.receive(
            SequenceNumber(UInt16(truncatingIfNeeded: packet.line)), timestamp: packet.timestamp, now: now)
        {
        case .new(let new): number = new
        case .restarted(let new):
            number = new
            epoch += 1
            newest = .min
            clock = nil
            isJoined = false
        case .duplicate, .tooOld: return nil
        }
        let isNewest = number > newest
        newest = max(newest, number)
        let position = StreamPosition(epoch: epoch, number: number)
        if packet.isLeftOut {
            let numbers = splice.leaveOut(position, timestamp: packet.timestamp)
            guard isJoined, packet.line >= startLine else {
                return numbers == nil ? nil : "a packet outside of its stretch was sent"
            }
            if packet.line > highestLine {
                advance(to: packet.line)
                leftOut.append(packet.line)
                closedGaps += 1
                return numbers == nil ? nil : "a packet that leaves no gap was sent"
            }
            guard let numbers else { return "a gap that can be seen stays open" }
            return receive(numbers, of: packet, now)
        }
        let numbers = splice.take(
            Splice.Packet(
                position: position, timestamp: packet.timestamp, isNewest: isNewest,
                payload: descriptors[packet.isKeyframe ? 1 : 0]), now: now)
        if !isJoined, packet.isKeyframe, isNewest {
            isJoined = true
            joins += 1
            startLine = packet.line
            startOut = nextOut
            highestLine = packet.line - 1
            leftOut.removeAll(keepingCapacity: true)
            timestampOffset = nil
        }
        guard isJoined, packet.line >= startLine else {
            return numbers == nil ? nil : "a packet outside of its stretch was sent"
        }
        if packet.line > highestLine { advance(to: packet.line) }
        guard let numbers else { return "a packet was not sent" }
        return receive(numbers, of: packet, now)
    }

    /// A gap that is longer than may be skipped is closed except for one number, and another stretch starts.
    private mutating func advance(to line: Int) {
        let gap = line - highestLine - 1
        highestLine = line
        guard gap > skips else {
            skips = min(Splice.maximumSkips, skips - gap + 1)
            return
        }
        startLine = line
        startOut = nextOut + 1
        leftOut.removeAll(keepingCapacity: true)
        longGaps += 1
    }

    /// Handles a packet at the subscriber.
    private mutating func receive(_ numbers: Splice.Numbers, of packet: Sent, _ now: MonotonicTime) -> String? {
        forwarded += 1
        var place = leftOut.count
        while place > 0, leftOut[place - 1] > packet.line { place -= 1 }
        let out = startOut + packet.line - startLine - place
        guard numbers.sequenceNumber.rawValue == UInt16(truncatingIfNeeded: out) else {
            return "number \(numbers.sequenceNumber) where the oracle has \(out)"
        }
        let offset = numbers.timestamp.rawValue &- packet.timestamp.rawValue
        guard timestampOffset ?? offset == offset else { return "the timestamp jumped within a stretch" }
        timestampOffset = offset
        nextOut = max(nextOut, out + 1)
        let arrival = subscriber.receive(numbers.sequenceNumber, timestamp: numbers.timestamp, now: now)
        guard case .new(let extended) = arrival else { return "the subscriber had \(out) before" }
        // SRTP's rollover counter follows from the same arithmetic.
        subscriberBase = subscriberBase ?? extended - out
        return extended - out == subscriberBase ? nil : "the subscriber lost count of the wraps"
    }
}

@Suite struct SpliceModelTests {
    @Test("A million packets over loss, reordering, duplicates, restarts and switches agree with a 64-bit count")
    func model() throws {
        var model = try SpliceModel(seed: 20_261_122)
        for index in 0..<1_000_000 {
            if let fault = model.step(index) {
                Issue.record("packet \(index): \(fault)")
                return
            }
        }
        #expect(model.forwarded > 500_000)
        #expect(model.joins > 500)
        #expect(model.closedGaps > 10_000)
        #expect(model.longGaps > 20)
        #expect(model.reports > 100_000)
    }
}
