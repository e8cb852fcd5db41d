import MediaGraph
import Testing

/// The times that a program states for its frames. No clock runs.
@Suite struct ProgramTimesTests {
    private func time(_ milliseconds: Int) -> MediaTime { MediaTime(nanoseconds: UInt64(milliseconds) * 1_000_000) }

    /// Settles frames that arrive at these milliseconds with these times.
    private func settle(_ frames: [(arrival: Int, time: Int?)]) -> [Double] {
        var times = ProgramTimes()
        return frames.map { frame in
            Double(times.settle(frame.time.map(time), now: time(frame.arrival)).nanoseconds) / 1e6
        }
    }

    @Test func `times of the monotonic clock stay as they are`() {
        #expect(settle([(10_000, 9_990), (10_050, 10_033), (10_060, 10_060)]) == [9_990, 10_033, 10_060])
    }

    @Test func `a time slightly ahead becomes that of the arrival`() {
        #expect(settle([(10_000, 10_040)]) == [10_000])
    }

    @Test func `frames without a time are captured when they arrive`() {
        #expect(settle([(10_000, nil), (10_050, nil)]) == [10_000, 10_050])
    }

    @Test func `times that begin at zero keep their distances, however unevenly the frames arrive`() {
        let settled = settle([(50_000, 0), (50_100, 100), (50_230, 200), (50_300, 300)])
        #expect(settled[0] == 50_000 && settled[1] == 50_100)
        #expect(abs(settled[2] - 50_200) < 1 && abs(settled[3] - 50_300) < 1)
        #expect(zip(settled, [50_000, 50_100, 50_230, 50_300]).allSatisfy { $0 <= $1 })
    }

    @Test func `a frame that arrives early moves all others, so that none lies in the future`() {
        #expect(settle([(50_000, 0), (50_050, 100), (50_150, 200)]) == [50_000, 50_050, 50_150])
    }

    @Test func `a clock that was set or stood still begins anew`() {
        #expect(settle([(50_000, 0), (55_000, 100), (55_100, 200)]) == [50_000, 55_000, 55_100])
        #expect(settle([(50_000, 90_000_000), (50_100, 5), (50_200, 105)]) == [50_000, 50_100, 50_200])
    }

    @Test func `times only rise`() {
        var times = ProgramTimes()
        let settled = [5_000, 4_000, 4_000, 4_990].map { times.settle(time($0), now: time(5_000)) }
        #expect(zip(settled, settled.dropFirst()).allSatisfy { $0 < $1 })
    }

    @Test func `no time is too large`() {
        var times = ProgramTimes()
        for nanoseconds in [UInt64.max, 0, UInt64.max - 1, 1 << 63] {
            let settled = times.settle(MediaTime(nanoseconds: nanoseconds), now: time(5_000))
            #expect(settled >= time(5_000) && settled < time(5_001))
        }
    }

    @Test func `a drifting clock is followed`() {
        var times = ProgramTimes()
        // An hour of 20 frames a second, whose clock is late by a second in the end.
        var last = 0.0
        for index in 0..<72_000 {
            let arrival = 100_000 + index * 50
            let stated = MediaTime(nanoseconds: UInt64(index) * UInt64(50_000_000 - 13_889))
            let settled = times.settle(stated, now: time(arrival))
            last = Double(arrival) - Double(settled.nanoseconds) / 1e6
        }
        #expect(last < 5)
    }
}
