import RTP
import Testing
import TestSupport

private let origin = MonotonicTime(nanoseconds: 5_000_000_000)

private func at(_ milliseconds: Int64) -> MonotonicTime { origin + .milliseconds(milliseconds) }

/// Another machine's clock, which is ahead of the local one.
private func other(_ time: MonotonicTime, ahead: TimeInterval = .seconds(7200)) -> NTPTime {
    NTPTime(unixNanoseconds: 1_763_697_600_000_000_000 + time.nanoseconds).advanced(by: ahead)
}

private func error(_ clock: RemoteClock, at time: MonotonicTime, ahead: TimeInterval = .seconds(7200)) throws -> Double
{
    abs(try #require(clock.time(at: time)).interval(since: other(time, ahead: ahead)).milliseconds)
}

@Suite struct RemoteClockTests {
    @Test func `another machine's clock is known by reports and half of the round trip`() throws {
        var clock = RemoteClock()
        #expect(clock.time(at: at(0)) == nil)
        clock.add(other(at(-40)), arrival: at(0), roundTrip: .milliseconds(80))
        #expect(try error(clock, at: at(500)) < 0.001)
    }

    @Test func `reports that waited in queues do not spoil it`() throws {
        var clock = RemoteClock()
        var random = Seeded(3)
        for second in 0..<60 {
            let queued = second % 5 == 0 ? 0 : Int64.random(in: 0...200, using: &random)
            let arrival = at(Int64(second) * 1000)
            clock.add(
                other(arrival + .milliseconds(-20 - queued)), arrival: arrival, roundTrip: .milliseconds(40 + queued))
            #expect(try error(clock, at: arrival) < 0.001)
        }
    }

    @Test func `a clock that is set is followed at once`() throws {
        var clock = RemoteClock()
        for second in 0..<8 {
            clock.add(
                other(at(Int64(second) * 1000 - 5)), arrival: at(Int64(second) * 1000), roundTrip: .milliseconds(10))
        }
        // With a longer way than before.
        let arrival = at(8000)
        clock.add(other(arrival + .milliseconds(-30), ahead: .zero), arrival: arrival, roundTrip: .milliseconds(60))
        #expect(try error(clock, at: arrival, ahead: .zero) < 0.001)
    }
}

@Suite struct StreamClockTests {
    /// The local wall clock is right, and the other machine's is 2 h ahead.
    private func age(
        _ clock: StreamClock, _ rtp: UInt32, at time: MonotonicTime, ahead: TimeInterval = .zero
    ) -> StreamClock.Age? {
        clock.age(of: RTPTimestamp(rtp), at: time) { other($0, ahead: ahead) }
    }

    private func milliseconds(_ age: StreamClock.Age?) throws -> Double { try #require(age).time.milliseconds }

    @Test func `the capture time of a frame comes from that of another, and far from it from a report`() throws {
        var clock = StreamClock(clockRate: 90000)
        #expect(clock.captureTime(of: RTPTimestamp(0)) == nil)
        clock.capture(AbsoluteCaptureTime(other(at(0)), clockOffset: 0), rtp: RTPTimestamp(1000))
        let near = try #require(clock.captureTime(of: RTPTimestamp(1000 + 9000)))
        #expect(near.source == .captureTime)
        #expect(abs(near.time.interval(since: other(at(100))).milliseconds) < 0.001)
        clock.report(other(at(200)), rtp: RTPTimestamp(1000), arrival: at(150), roundTrip: nil)
        let far = try #require(clock.captureTime(of: RTPTimestamp(1000 + 900_000)))
        #expect(far.source == .senderReport)
        #expect(abs(far.time.interval(since: other(at(10_200))).milliseconds) < 0.001)
    }

    @Test func `the age of a frame comes from the capture time of another, by the clock of the reports`() throws {
        var clock = StreamClock(clockRate: 90000)
        #expect(age(clock, 0, at: at(0)) == nil)
        // Captured at 0, when the stream was at 1000.
        clock.capture(AbsoluteCaptureTime(other(at(0)), clockOffset: 0), rtp: RTPTimestamp(1000))
        // Without a round trip, the wall clocks of the two machines are compared, if that is possible.
        #expect(age(clock, 1000, at: at(150)) == nil)
        let guess = try #require(age(clock, 1000, at: at(150), ahead: .seconds(7200)))
        #expect(guess.source == .captureTime && guess.comparison == .wallClocks)
        #expect(abs(guess.time.milliseconds - 150) < 0.001)
        clock.report(other(at(130)), rtp: RTPTimestamp(0), arrival: at(150), roundTrip: .milliseconds(40))
        let known = try #require(age(clock, 1000 + 9000, at: at(250)))
        #expect(known.source == .captureTime && known.comparison == .roundTrips)
        #expect(abs(known.time.milliseconds - 150) < 0.001)
    }

    @Test func `a capture time whose offset to the reports is unknown is an estimate`() throws {
        var clock = StreamClock(clockRate: 90000)
        clock.capture(AbsoluteCaptureTime(other(at(0)), clockOffset: nil), rtp: RTPTimestamp(1000))
        clock.report(other(at(130)), rtp: RTPTimestamp(0), arrival: at(150), roundTrip: .milliseconds(40))
        #expect(age(clock, 1000, at: at(250))?.comparison == .nearRoundTrip)
    }

    /// Reports of aiortc tell when it sent a packet, and it sends some later after their capture than others.
    @Test func `a frame that is shown at once has no age, although its clocks date it later`() throws {
        var clock = StreamClock(clockRate: 90000)
        clock.report(other(at(0)), rtp: RTPTimestamp(0), arrival: at(33), roundTrip: .zero)
        clock.capture(AbsoluteCaptureTime(other(at(1000)), clockOffset: nil), rtp: RTPTimestamp(90_000))
        let shown = try #require(age(clock, 90_000, at: at(1010)))
        #expect(shown.source == .captureTime && shown.time == .zero)
    }

    @Test(arguments: [-7200, -0.3, 60.001, 3600, 2_000_000_000] as [Double])
    func `a frame is neither captured after it is shown nor a minute before`(seconds: Double) throws {
        let wrong = TimeInterval(nanoseconds: Int64(seconds * 1e9))
        var clock = StreamClock(clockRate: 90000)
        clock.report(other(at(80)), rtp: RTPTimestamp(0), arrival: at(100), roundTrip: .milliseconds(40))
        clock.report(other(at(80)).advanced(by: .zero - wrong), rtp: RTPTimestamp(0), arrival: at(100), roundTrip: nil)
        #expect(age(clock, 0, at: at(80)) == nil)
        clock.capture(
            AbsoluteCaptureTime(other(at(80)).advanced(by: .zero - wrong), clockOffset: 0), rtp: RTPTimestamp(0))
        #expect(age(clock, 0, at: at(80)) == nil)
        // The reports still serve.
        clock.report(other(at(80)), rtp: RTPTimestamp(0), arrival: at(100), roundTrip: .milliseconds(40))
        #expect(abs(try milliseconds(age(clock, 0, at: at(180))) - 100) < 0.001)
    }

    @Test func `no capture time and no report causes an impossible age`() {
        var random = Seeded(11)
        var impossible: [TimeInterval] = []
        for _ in 0..<20_000 {
            var clock = StreamClock(clockRate: [0, 1, 48000, 90000].randomElement(using: &random) ?? 0)
            for _ in 0..<4 {
                let (ntp, rtp) = (
                    NTPTime(rawValue: random.next()), RTPTimestamp(.random(in: 0 ... .max, using: &random))
                )
                let offset = Bool.random(using: &random) ? nil : Int64(bitPattern: random.next())
                if Bool.random(using: &random) {
                    clock.capture(AbsoluteCaptureTime(ntp, clockOffset: offset), rtp: rtp)
                } else {
                    let roundTrip = TimeInterval(nanoseconds: .random(in: 0...3_000_000_000, using: &random))
                    clock.report(ntp, rtp: rtp, arrival: at(0), roundTrip: offset == nil ? nil : roundTrip)
                }
            }
            guard let age = age(clock, .random(in: 0 ... .max, using: &random), at: at(500)) else { continue }
            if !(0...60_000).contains(age.time.milliseconds) { impossible.append(age.time) }
        }
        #expect(impossible.isEmpty)
    }

    @Test func `the capture time of a late packet does not replace a newer one`() throws {
        var clock = StreamClock(clockRate: 90000)
        clock.report(other(at(2000)), rtp: RTPTimestamp(0), arrival: at(2010), roundTrip: .milliseconds(20))
        clock.capture(AbsoluteCaptureTime(other(at(1000)), clockOffset: 0), rtp: RTPTimestamp(90_000))
        // The encoder's timestamps and the captures drifted apart by 50 ms meanwhile.
        clock.capture(AbsoluteCaptureTime(other(at(50)), clockOffset: 0), rtp: RTPTimestamp(9000))
        #expect(abs(try milliseconds(age(clock, 90_000, at: at(2100))) - 1100) < 0.001)
        // Timestamps that went back far belong to another beginning.
        clock.capture(AbsoluteCaptureTime(other(at(2050)), clockOffset: 0), rtp: RTPTimestamp(3_000_000_000))
        #expect(abs(try milliseconds(age(clock, 3_000_000_000, at: at(2100))) - 50) < 0.001)
    }

    @Test func `the clock offset of a mixer counts`() throws {
        var clock = StreamClock(clockRate: 48000)
        // The camera's clock is a quarter of an hour behind that of the mixer, which sends the reports.
        let offset = -(900 << 32) as Int64
        let captured = other(at(0)).advanced(by: .seconds(-900))
        clock.capture(AbsoluteCaptureTime(captured, clockOffset: offset), rtp: RTPTimestamp(5))
        clock.report(other(at(90)), rtp: RTPTimestamp(0), arrival: at(100), roundTrip: .milliseconds(20))
        #expect(abs(try #require(age(clock, 5, at: at(300))).time.milliseconds - 300) < 0.001)
    }

    @Test func `sender reports serve without capture times, and when those have stopped`() throws {
        var clock = StreamClock(clockRate: 90000)
        clock.report(other(at(0)), rtp: RTPTimestamp(90_000), arrival: at(10), roundTrip: .milliseconds(20))
        let first = try #require(age(clock, 90_000 + 9000, at: at(180)))
        #expect(first.source == .senderReport && abs(first.time.milliseconds - 80) < 0.001)
        // The reports do not tell whether their sender knows the capturing clock.
        #expect(first.comparison == .nearRoundTrip)
        clock.capture(AbsoluteCaptureTime(other(at(1000)), clockOffset: 0), rtp: RTPTimestamp(180_000))
        #expect(age(clock, 180_000, at: at(1100))?.source == .captureTime)
        // Six seconds later.
        #expect(age(clock, 180_000 + 540_000, at: at(7100))?.source == .senderReport)
    }
}
