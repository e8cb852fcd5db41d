import RTP
import TestSupport
import Testing

@testable import CongestionControl

@Suite struct ArrivalEstimateTests {
    @Test("Times of sending stay right to a microsecond for 25 hours, and 24 bits wrap")
    func day() throws {
        let ticksPerSecond = UInt64(AbsoluteSendTime.ticksPerSecond)
        func sent(_ ticks: UInt64) -> AbsoluteSendTime {
            AbsoluteSendTime(ticks: UInt32(truncatingIfNeeded: ticks) & 0xff_ffff)
        }
        let start = at(0)
        var clock = SendTimeClock(first: sent(77), at: start)
        var worst = 0.0
        // Not whole seconds, and packets wait for up to 50 ms on their way.
        let interval = ticksPerSecond + 12_345
        for packet in 1...UInt64(25 * 3600) {
            let truth = Double(packet * interval) * 1e9 / Double(ticksPerSecond)
            let wait = Double(packet % 6) * 10e6
            let arrival = start + TimeInterval(nanoseconds: Int64(truth + wait))
            let unwrapped = clock.advance(to: sent(77 + packet * interval), at: arrival)
            let time = try #require(unwrapped)
            worst = max(worst, abs(Double((time - start).nanoseconds) - truth))
        }
        #expect(worst < 1000, "\(worst) ns")
    }

    @Test("A peer whose stream with times of sending ends gets estimates by its other packets")
    func withoutTimes() {
        var estimate = ArrivalEstimate()
        var told: [Double] = []
        /// 1 Mbit/s.
        func send(from first: Double, to last: Double, hasTimes: Bool) {
            for time in stride(from: first, to: last, by: 10) {
                let sent = hasTimes ? AbsoluteSendTime(at(time)) : nil
                if estimate.received(bytes: 1250, sent: sent, at: at(time + 40)) != nil { told.append(time) }
            }
        }
        send(from: 0, to: 5000, hasTimes: true)
        #expect(told.count > 5)
        told = []
        send(from: 5000, to: 20_000, hasTimes: false)
        // They may be of a stream beside it.
        #expect(told.isEmpty)
        send(from: 20_000, to: 25_000, hasTimes: false)
        #expect(told.count > 5)
        told = []
        send(from: 25_000, to: 30_000, hasTimes: true)
        #expect(told.count > 5)
    }

    @Test("Packets that waited for this process show no queue of the path")
    func stall() {
        var estimate = ArrivalEstimate()
        var told: [Double] = []
        /// 1 Mbit/s.
        func send(from first: Double, to last: Double, readAt read: Double? = nil) {
            for time in stride(from: first, to: last, by: 10) {
                let rate = estimate.received(bytes: 1250, sent: AbsoluteSendTime(at(time)), at: at(read ?? time + 40))
                if let rate { told.append(rate.kilobits) }
            }
        }
        send(from: 0, to: 10_000)
        let before = told.last ?? 0
        #expect(before > 900)
        told = []
        estimate.stalled(now: at(10_540))
        send(from: 10_000, to: 10_500, readAt: 10_540)
        send(from: 10_500, to: 15_000)
        #expect(told.count > 5)
        #expect(told.min() ?? 0 > before * 0.97, "\(told)")
    }
}
