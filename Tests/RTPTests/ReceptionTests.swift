import RTP
import Testing
import TestSupport

private func milliseconds(_ value: Int64) -> MonotonicTime { MonotonicTime.zero + .milliseconds(value) }

@Suite struct NackGeneratorTests {
    private func timing(_ roundTrip: Int64, slack: Int64 = 0) -> RepairTiming {
        RepairTiming(roundTrip: .milliseconds(roundTrip), response: .milliseconds(roundTrip + slack))
    }

    private func ask(_ nacks: inout NackGenerator, at time: Int64, roundTrip: Int64 = 50) -> [UInt16] {
        var lost: [SequenceNumber] = []
        _ = nacks.collect(into: &lost, now: milliseconds(time), timing(roundTrip))
        return lost.map(\.rawValue)
    }

    @Test(arguments: [false, true])
    func `the first packets of a stream are requested, whether its first number is known before or after others arrive`(
        isKnownBefore: Bool
    ) {
        var nacks = NackGenerator()
        if isKnownBefore { nacks.begin(at: 100, now: milliseconds(0)) }
        _ = nacks.receive(103, now: milliseconds(0))
        if !isKnownBefore { nacks.begin(at: 100, now: milliseconds(0)) }
        _ = nacks.receive(101, now: milliseconds(1))
        #expect(ask(&nacks, at: 20) == [100, 102])
        // A number that is absurdly far away does not cause hundreds of requests.
        nacks.begin(at: -5000, now: milliseconds(20))
        #expect(nacks.missingCount == 2)
    }

    @Test("A stream in order requests nothing")
    func inOrder() {
        var nacks = NackGenerator()
        for number in 65000..<67000 { #expect(nacks.receive(number, now: .zero) == .inOrder) }
        #expect(nacks.nextTimeout(timing(0)) == .never)
    }

    @Test("A swap of two packets requests nothing")
    func reordering() {
        var nacks = NackGenerator()
        for number in [10, 12, 11, 13] { _ = nacks.receive(number, now: milliseconds(0)) }
        #expect(nacks.nextTimeout(timing(0)) == .never)
        #expect(ask(&nacks, at: 100).isEmpty)
    }

    @Test("A gap is requested after 10 ms, or immediately after three later packets")
    func gap() {
        var nacks = NackGenerator()
        for number in [10, 12] { _ = nacks.receive(number, now: milliseconds(0)) }
        #expect(nacks.nextTimeout(timing(0)) == milliseconds(10))
        #expect(ask(&nacks, at: 9).isEmpty)
        _ = nacks.receive(13, now: milliseconds(9))
        #expect(ask(&nacks, at: 9).isEmpty)
        _ = nacks.receive(14, now: milliseconds(9))
        #expect(ask(&nacks, at: 9) == [11])
    }

    /// When a single missing packet is requested, in milliseconds after the gap.
    private func requests(roundTrip: Int64, slack: Int64 = 0) -> [Int64] {
        var nacks = NackGenerator()
        for number in [10, 12] { _ = nacks.receive(number, now: milliseconds(0)) }
        var times: [Int64] = []
        while let next = Optional(nacks.nextTimeout(timing(roundTrip, slack: slack))), next != .never {
            var lost: [SequenceNumber] = []
            _ = nacks.collect(into: &lost, now: next, timing(roundTrip, slack: slack))
            if !lost.isEmpty { times.append((next - .zero).nanoseconds / 1_000_000) }
        }
        return times
    }

    @Test func `a second request follows a response that does not come, and later ones each third of a round trip`() {
        #expect(requests(roundTrip: 120) == [10, 130, 170, 210, 250, 270])
        #expect(requests(roundTrip: 120, slack: 10) == [10, 140, 180, 220, 260])
        // Not more often than each 20 ms.
        #expect(requests(roundTrip: 20).prefix(4) == [10, 30, 50, 70])
    }

    @Test
    func `a request whose response would be too late leaves earlier, but not long before the last response is due`() {
        #expect(requests(roundTrip: 200) == [10, 110, 176])
        // Without the time for that, the third one leaves soon after the second.
        #expect(requests(roundTrip: 200, slack: 30) == [10, 110, 135, 160])
        #expect(requests(roundTrip: 260) == [10, 140])
        // No response would be in time, but the measured round trip may be too long.
        #expect(requests(roundTrip: 280) == [10])
        #expect(requests(roundTrip: 500) == [10])
    }

    @Test func `the deadline counts from the packet before the gap, unless the stream paused`() {
        for (before, deadline) in [(Int64(0), Int64(400)), (-30, 370), (-5000, 300)] {
            var nacks = NackGenerator()
            let start = milliseconds(6000)
            func at(_ time: Int64) -> MonotonicTime { start + .milliseconds(time) }
            _ = nacks.receive(10, now: at(before))
            _ = nacks.receive(12, now: at(0))
            var lost: [SequenceNumber] = []
            #expect(nacks.collect(into: &lost, now: at(deadline - 1), timing(20)))
            #expect(!nacks.collect(into: &lost, now: at(deadline), timing(20)))
            #expect(nacks.missingCount == 0)
        }
    }

    @Test("A packet that arrived is not requested again; its arrival reports how often and since when it was requested")
    func recovery() {
        var nacks = NackGenerator()
        for number in [10, 13] { _ = nacks.receive(number, now: milliseconds(0)) }
        #expect(ask(&nacks, at: 10) == [11, 12])
        #expect(nacks.receive(11, now: milliseconds(40)) == .recovered(tries: 1, firstAsked: milliseconds(10)))
        #expect(ask(&nacks, at: 60) == [12])
        #expect(nacks.receive(12, now: milliseconds(90)) == .recovered(tries: 2, firstAsked: milliseconds(10)))
        #expect(nacks.nextTimeout(timing(0)) == .never)
        #expect(nacks.abandoned == 0)
    }

    @Test func `after the playout delay a packet is given up and reported once`() {
        var nacks = NackGenerator()
        for number in [10, 12] { _ = nacks.receive(number, now: milliseconds(0)) }
        var asked = 0
        var told: [Int64] = []
        for time in Int64(0)..<3000 {
            var lost: [SequenceNumber] = []
            if !nacks.collect(into: &lost, now: milliseconds(time), timing(20)) { told.append(time) }
            asked += lost.count
        }
        #expect(asked == 16)
        #expect(told == [400])
        #expect(nacks.abandoned == 1)
        #expect(nacks.nextTimeout(timing(0)) == .never)
    }

    @Test
    func `on a long path, a packet is given up 100 ms after the response was due, and after a second at the latest`() {
        for (roundTrip, end) in [(Int64(200), Int64(400)), (350, 450), (500, 600), (2000, 1000)] {
            var nacks = NackGenerator()
            for number in [10, 12] { _ = nacks.receive(number, now: milliseconds(0)) }
            var lost: [SequenceNumber] = []
            #expect(nacks.collect(into: &lost, now: milliseconds(end - 1), timing(roundTrip)))
            #expect(nacks.nextTimeout(timing(roundTrip)) == milliseconds(end))
            #expect(!nacks.collect(into: &lost, now: milliseconds(end), timing(roundTrip)))
        }
    }

    @Test func `the response to a request for a packet that was given up tells the round trip`() {
        var nacks = NackGenerator()
        for number in [10, 12] { _ = nacks.receive(number, now: milliseconds(0)) }
        var roundTrip = RepairRoundTrip()
        for time in Int64(0)..<520 {
            var lost: [SequenceNumber] = []
            _ = nacks.collect(into: &lost, now: milliseconds(time), .unknown)
        }
        #expect(nacks.missingCount == 0)
        let arrival = nacks.receive(11, now: milliseconds(520))
        #expect(arrival == .givenUp(tries: 4, firstAsked: milliseconds(10)))
        if case .givenUp(let tries, let firstAsked) = arrival {
            roundTrip.answered(tries: tries, firstAsked: firstAsked, now: milliseconds(520), wasGivenUp: true)
        }
        #expect(roundTrip.estimate.smoothed == .milliseconds(510))
        #expect(nacks.receive(9, now: milliseconds(520)) == .other)
        #expect(nacks.receive(11, now: milliseconds(530)) == .other, "one packet is one response")
    }

    @Test func `a packet that was given up is no response when it comes as padding much later`() {
        for (delay, isResponse) in [(Int64(1400), true), (1600, false), (30_000, false)] {
            var nacks = NackGenerator()
            for number in [10, 12] { _ = nacks.receive(number, now: milliseconds(0)) }
            for time in Int64(0)..<520 {
                var lost: [SequenceNumber] = []
                _ = nacks.collect(into: &lost, now: milliseconds(time), .unknown)
            }
            let arrival = nacks.receive(11, now: milliseconds(delay))
            #expect((arrival != .other) == isResponse, "after \(delay) ms")
        }
    }

    @Test func `the response for a packet that was given up lengthens a known round trip by little`() {
        var roundTrip = RepairRoundTrip()
        for _ in 0..<50 { roundTrip.answered(tries: 1, firstAsked: milliseconds(0), now: milliseconds(30)) }
        roundTrip.answered(tries: 1, firstAsked: milliseconds(0), now: milliseconds(1400), wasGivenUp: true)
        #expect(roundTrip.estimate.smoothed.map { $0 < .milliseconds(50) } == true)
        // A path that became longer is found soon.
        for _ in 0..<40 {
            roundTrip.answered(tries: 1, firstAsked: milliseconds(0), now: milliseconds(800), wasGivenUp: true)
        }
        #expect(roundTrip.estimate.timeout.map { $0 > .milliseconds(800) } == true)
    }

    @Test("More than 500 missing packets are given up together, without a request")
    func tooMany() {
        var nacks = NackGenerator()
        _ = nacks.receive(10, now: .zero)
        _ = nacks.receive(600, now: .zero)
        #expect(nacks.missingCount == 0)
        #expect(nacks.abandoned == 589)
        #expect(nacks.nextTimeout(timing(0)) == .zero)
        var lost: [SequenceNumber] = []
        #expect(!nacks.collect(into: &lost, now: .zero, timing(0)))
        #expect(nacks.collect(into: &lost, now: .zero, timing(0)))
        #expect(lost.isEmpty)
    }
}

@Suite struct ReceptionStatisticsTests {
    @Test("A loss of one tenth is reported as 25 or 26 256ths, and the total adds up")
    func loss() throws {
        var reception = ReceptionStatistics(clockRate: 90000)
        for number in 0..<1000 where number % 10 != 5 {
            _ = reception.receive(
                SequenceNumber(65500).advanced(by: number), timestamp: RTPTimestamp(0), now: milliseconds(Int64(number))
            )
        }
        let block = try value(reception.reportBlock(ssrc: SSRC(1), now: milliseconds(1000)))
        #expect(block.cumulativeLost == 100)
        #expect((25...26).contains(block.fractionLost))
        #expect(block.extendedHighestSequence == 65500 + 999)
        for number in 1000..<1100 {
            _ = reception.receive(
                SequenceNumber(65500).advanced(by: number), timestamp: RTPTimestamp(0), now: milliseconds(Int64(number))
            )
        }
        let second = try value(reception.reportBlock(ssrc: SSRC(1), now: milliseconds(1100)))
        #expect(second.fractionLost == 0)
        #expect(second.cumulativeLost == 100)
    }

    @Test("A repaired packet fills its gap but counts as lost in the report, which describes the network")
    func repairs() {
        var reception = ReceptionStatistics(clockRate: 90000)
        for number: UInt16 in [1, 2, 4] {
            _ = reception.receive(SequenceNumber(number), timestamp: RTPTimestamp(0), now: .zero)
        }
        let repaired = reception.receive(
            SequenceNumber(3), timestamp: RTPTimestamp(0), isRetransmission: true, now: .zero)
        #expect(repaired == .new(65539))
        #expect(reception.lost == 1)
        #expect(reception.receive(SequenceNumber(3), timestamp: RTPTimestamp(0), now: .zero) == .duplicate)
    }

    @Test func `a packet that comes after its repair counts as received, once`() {
        var reception = ReceptionStatistics(clockRate: 90000)
        func receive(_ number: UInt16, isRetransmission: Bool = false) -> ReceptionStatistics.Arrival {
            reception.receive(
                SequenceNumber(number), timestamp: RTPTimestamp(0), isRetransmission: isRetransmission, now: .zero)
        }
        for number: UInt16 in [1, 2, 5] { _ = receive(number) }
        for number: UInt16 in [3, 4] { _ = receive(number, isRetransmission: true) }
        #expect(reception.lost == 2)
        #expect(receive(3, isRetransmission: true) == .duplicate && reception.lost == 2)
        #expect(receive(3) == .duplicate && reception.lost == 1)
        #expect(receive(3) == .duplicate && receive(5) == .duplicate && reception.lost == 1)
        // The same place in the window, later.
        for number: UInt16 in 6...2100 { _ = receive(number) }
        #expect(receive(2052) == .duplicate && reception.lost == 1)
    }

    @Test("Duplicates are distinguished from late packets within the window, across wraps")
    func duplicates() {
        var reception = ReceptionStatistics(clockRate: 90000)
        var random = Seeded(5)
        var seen: Set<Int> = []
        var highest = 0
        for step in 0..<200_000 {
            let number = max(0, step - Int.random(in: 0...1500, using: &random))
            if highest - number >= ReceptionStatistics.window { continue }
            highest = max(highest, number)
            let arrival = reception.receive(
                SequenceNumber(60000).advanced(by: number), timestamp: RTPTimestamp(0), now: .zero)
            let isNew = seen.insert(number).inserted
            if isNew != (arrival == .new(60000 + 65536 + number)) { Issue.record("\(number): \(arrival)") }
            if !isNew, arrival != .duplicate { Issue.record("\(number): \(arrival)") }
        }
    }

    @Test("Even spacing has no jitter; spacing off by 4 ms converges to 4 ms")
    func jitter() {
        var even = ReceptionStatistics(clockRate: 90000)
        var uneven = ReceptionStatistics(clockRate: 90000)
        for step in 0..<500 {
            let number = SequenceNumber(UInt16(step))
            let timestamp = RTPTimestamp(UInt32(step * 1800))
            let time = Int64(step * 20)
            _ = even.receive(number, timestamp: timestamp, now: milliseconds(time))
            _ = uneven.receive(number, timestamp: timestamp, now: milliseconds(step % 2 == 0 ? time : time + 4))
        }
        #expect(even.jitter == .zero)
        #expect(abs(uneven.jitter.milliseconds - 4) < 0.3)
    }

    @Test("A report names the last sender report and its age")
    func senderReport() throws {
        var reception = ReceptionStatistics(clockRate: 90000)
        _ = reception.receive(SequenceNumber(1), timestamp: RTPTimestamp(0), now: .zero)
        reception.receiveSenderReport(NTPTime(rawValue: 0x1111_2222_3333_4444), now: milliseconds(100))
        let block = try value(reception.reportBlock(ssrc: SSRC(1), now: milliseconds(1600)))
        #expect(block.lastSenderReport == 0x2222_3333)
        #expect(block.delaySinceLastSenderReport == 65536 * 3 / 2)
    }

    @Test("One stray packet is dropped; two in order restart the stream", arguments: [20_000, 50_000])
    func restart(jump: Int) {
        var reception = ReceptionStatistics(clockRate: 90000)
        func number(_ value: Int) -> SequenceNumber { SequenceNumber(UInt16(truncatingIfNeeded: value)) }
        let time = RTPTimestamp(0)
        for value in 100..<200 { _ = reception.receive(number(value), timestamp: time, now: .zero) }
        #expect(reception.receive(number(jump), timestamp: time, now: .zero) == .tooOld)
        #expect(reception.receive(number(200), timestamp: time, now: .zero) == .new(65736))
        #expect(reception.receive(number(jump), timestamp: time, now: .zero) == .tooOld)
        #expect(reception.receive(number(jump + 1), timestamp: time, now: .zero) == .restarted(jump + 1 + 65536))
        #expect(reception.receive(number(jump + 2), timestamp: time, now: .zero) == .new(jump + 2 + 65536))
        #expect(reception.lost == 0)
    }

    @Test("Without a packet there is no report; a repair alone begins no stream")
    func nothing() {
        var reception = ReceptionStatistics(clockRate: 90000)
        #expect(
            reception.receive(SequenceNumber(1), timestamp: RTPTimestamp(0), isRetransmission: true, now: .zero)
                == .tooOld)
        #expect(reception.reportBlock(ssrc: SSRC(1), now: .zero) == nil)
    }
}

@Suite struct RoundTripTests {
    @Test("Even if everything was requested twice, the round trip is found")
    func ambiguity() {
        var roundTrip = RepairRoundTrip()
        roundTrip.answered(tries: 2, firstAsked: milliseconds(0), now: milliseconds(70))
        #expect(roundTrip.estimate.smoothed == .milliseconds(70))
        for _ in 0..<100 { roundTrip.answered(tries: 1, firstAsked: milliseconds(0), now: milliseconds(30)) }
        for _ in 0..<4 { roundTrip.answered(tries: 2, firstAsked: milliseconds(0), now: milliseconds(200)) }
        #expect(roundTrip.estimate.smoothed.map { abs($0.milliseconds - 30) < 1 } == true)
        for _ in 0..<40 { roundTrip.answered(tries: 2, firstAsked: milliseconds(0), now: milliseconds(200)) }
        #expect(roundTrip.estimate.smoothed.map { abs($0.milliseconds - 200) < 5 } == true)
        #expect(roundTrip.estimate.timeout.map { $0 > .milliseconds(200) } == true)
    }

    @Test func `a stall of seconds lengthens the round trip by little`() {
        var roundTrip = RoundTripEstimate()
        for _ in 0..<20 { roundTrip.addDespiteStalls(.milliseconds(40)) }
        roundTrip.addDespiteStalls(.seconds(3))
        #expect(roundTrip.smoothed.map { $0 < .milliseconds(50) } == true)
    }

    @Test func `an estimate that began with a stall begins again`() {
        var roundTrip = RoundTripEstimate()
        roundTrip.addDespiteStalls(.seconds(3))
        roundTrip.addDespiteStalls(.milliseconds(40))
        #expect(roundTrip.smoothed == .milliseconds(40))
    }

    @Test func `a path that became longer is followed within some reports`() {
        var roundTrip = RoundTripEstimate()
        for _ in 0..<20 { roundTrip.addDespiteStalls(.milliseconds(40)) }
        for _ in 0..<12 { roundTrip.addDespiteStalls(.milliseconds(400)) }
        #expect(roundTrip.timeout.map { $0 >= .milliseconds(400) } == true)
        for _ in 0..<12 { roundTrip.addDespiteStalls(.milliseconds(400)) }
        #expect(roundTrip.smoothed.map { $0 >= .milliseconds(350) } == true)
    }
}
