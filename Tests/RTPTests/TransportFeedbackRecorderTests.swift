import RTP
import TestSupport
import Testing

@Suite struct TransportFeedbackRecorderTests {
    private let start = MonotonicTime(nanoseconds: 10_000_000_000)

    private func at(_ milliseconds: Int64) -> MonotonicTime { start + .milliseconds(milliseconds) }

    /// The numbers that arrived, by the report.
    private func arrived(_ report: TransportFeedback) -> [UInt16] {
        report.arrivals.map { report.base.rawValue &+ $0.offset }
    }

    private func times(_ report: TransportFeedback) -> [Int64] {
        var time = Int64(report.referenceTime) * TransportFeedback.referenceUnit.nanoseconds
        return report.arrivals.map {
            time += Int64($0.ticks) * TransportFeedback.tick.nanoseconds
            return time / 1_000_000
        }
    }

    @Test("A report is due after the interval, and none without arrivals")
    func interval() throws {
        var recorder = TransportFeedbackRecorder(sender: SSRC(1))
        #expect(recorder.nextTimeout == .never)
        recorder.received(SequenceNumber(65535), media: SSRC(5), at: at(0))
        recorder.received(SequenceNumber(1), media: SSRC(5), at: at(7))
        #expect(recorder.nextTimeout == at(100))
        #expect(recorder.report(now: at(99)) == nil)
        let report = try value(recorder.report(now: at(100)))
        #expect(report.base == SequenceNumber(65535))
        #expect(report.count == 3)
        #expect(arrived(report) == [65535, 1])
        #expect(times(report) == [10000, 10007])
        #expect(report.media == SSRC(5))
        #expect(recorder.report(now: at(500)) == nil)
        #expect(recorder.nextTimeout == .never)
    }

    @Test("A report after a pause is due immediately, and the next one after the interval")
    func pause() throws {
        var recorder = TransportFeedbackRecorder(sender: SSRC(1))
        recorder.received(SequenceNumber(0), media: SSRC(5), at: at(0))
        _ = try value(recorder.report(now: at(100)))
        recorder.received(SequenceNumber(1), media: SSRC(5), at: at(900))
        let report = try value(recorder.report(now: at(900)))
        #expect(report.number == 1)
        recorder.received(SequenceNumber(2), media: SSRC(5), at: at(910))
        #expect(recorder.nextTimeout == at(1000))
    }

    @Test(
        "The interval follows the bandwidth from 50 to 250 ms", arguments: [(10_000, 250), (100_000, 108), (1e7, 50)])
    func bandwidth(rate: Double, milliseconds: Int64) {
        var recorder = TransportFeedbackRecorder(sender: SSRC(1))
        recorder.setBandwidth(rate)
        recorder.received(SequenceNumber(0), media: SSRC(5), at: at(0))
        #expect(recorder.nextTimeout <= at(milliseconds + 1))
        #expect(recorder.nextTimeout > at(milliseconds - 1))
    }

    @Test("A packet that others overtook is reported with them, and duplicates once")
    func reordering() throws {
        var recorder = TransportFeedbackRecorder(sender: SSRC(1))
        for number: UInt16 in [10, 12, 12, 13] {
            recorder.received(SequenceNumber(number), media: SSRC(5), at: at(Int64(number)))
        }
        #expect(arrived(try value(recorder.report(now: at(110)))) == [10, 12, 13])
        recorder.received(SequenceNumber(11), media: SSRC(5), at: at(150))
        let report = try value(recorder.report(now: at(300)))
        #expect(arrived(report) == [11, 12, 13])
        #expect(times(report) == [10150, 10012, 10013])
        recorder.received(SequenceNumber(12), media: SSRC(5), at: at(301))
        #expect(recorder.nextTimeout == .never)
    }

    @Test func `the report of a packet that is a second late shows no losses after it`() throws {
        var recorder = TransportFeedbackRecorder(sender: SSRC(1))
        for number: UInt16 in [10, 12] { recorder.received(SequenceNumber(number), media: SSRC(5), at: at(0)) }
        #expect(arrived(try value(recorder.report(now: at(110)))) == [10, 12])
        recorder.received(SequenceNumber(13), media: SSRC(5), at: at(1000))
        recorder.received(SequenceNumber(11), media: SSRC(5), at: at(1050))
        let report = try value(recorder.report(now: at(1100)))
        #expect(arrived(report) == [11, 12, 13])
        #expect(times(report) == [11_050, 10_000, 11_000])
    }

    @Test("Many packets and long gaps between their times take several reports")
    func several() throws {
        var recorder = TransportFeedbackRecorder(sender: SSRC(1))
        for number in 0..<UInt16(2000) {
            recorder.received(SequenceNumber(number), media: SSRC(5), at: at(Int64(number) / 10))
        }
        recorder.received(SequenceNumber(2001), media: SSRC(5), at: at(20_000))
        var numbers: [UInt16] = []
        var next: UInt16 = 0
        while let report = recorder.report(now: at(20_000)) {
            #expect(report.base.rawValue == next)
            next = report.base.rawValue + report.count
            numbers += arrived(report)
            var compound = PacketBuffer()
            check(RTCPPacket.transportFeedback(report).append(to: &compound, limit: 1010))
        }
        #expect(numbers == Array(0..<2000) + [2001])
    }

    @Test("Every packet is reported as it arrived, with random loss, reordering and wraps")
    func random() throws {
        var random = Seeded(11)
        var recorder = TransportFeedbackRecorder(sender: SSRC(1))
        var expected: [UInt16: Int64] = [:]
        var reported: [UInt16: Int64] = [:]
        for number in 0..<20_000 {
            let wrapped = UInt16(truncatingIfNeeded: number + 60_000)
            if Int.random(in: 0..<5, using: &random) > 0 {
                let late = Int.random(in: 0..<9, using: &random) == 0 ? Int64.random(in: 0..<40, using: &random) : 0
                expected[wrapped] = 10_000 + Int64(number) + late
                recorder.received(SequenceNumber(wrapped), media: SSRC(5), at: at(Int64(number) + late))
            }
            guard number % 64 == 63 else { continue }
            while let report = recorder.report(now: at(Int64(number) + 100)) {
                for (wrapped, time) in zip(arrived(report), times(report)) { reported[wrapped] = time }
            }
        }
        while let report = recorder.report(now: at(30_000)) {
            for (wrapped, time) in zip(arrived(report), times(report)) { reported[wrapped] = time }
        }
        #expect(reported == expected)
    }

    @Test("Numbers that jump about cost a bounded window")
    func jumps() {
        var random = Seeded(5)
        var recorder = TransportFeedbackRecorder(sender: SSRC(1))
        for step in 0..<500 {
            recorder.received(
                SequenceNumber(UInt16.random(in: 0 ... .max, using: &random)), media: SSRC(5), at: at(Int64(step)))
            while recorder.report(now: at(Int64(step))) != nil {}
        }
        #expect(recorder.nextTimeout == .never || recorder.nextTimeout > at(499))
    }

    @Test(arguments: [8191, 8192, 16_384, 32_767])
    func `numbers that jump by a window or more report nothing but arrivals`(step: Int) {
        var recorder = TransportFeedbackRecorder(sender: SSRC(1))
        var (received, reported): ([UInt16], [UInt16]) = ([], [])
        for index in 0..<40 {
            let number = UInt16(truncatingIfNeeded: index * step)
            received.append(number)
            recorder.received(SequenceNumber(number), media: SSRC(5), at: at(Int64(index) * 200))
            while let report = recorder.report(now: at(Int64(index) * 200 + 100)) { reported += arrived(report) }
        }
        #expect(reported == received)
    }
}
