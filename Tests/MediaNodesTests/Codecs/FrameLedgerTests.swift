import MediaGraph
import Synchronization
import Testing
import TestSupport

@testable import MediaNodes

/// The counts of frames before and after an encoder, and its silence.
@Suite struct FrameLedgerTests {
    private final class Encoder: Sendable {
        private let milliseconds = Mutex<UInt64>(0)
        private let silences = Collected<Int>()
        private let made = Mutex<FrameLedger?>(nil)

        var ledger: FrameLedger {
            made.withLock { made in
                let ledger =
                    made
                    ?? FrameLedger(now: { [self] in time }, onSilence: { [silences] in silences.append($0) })
                made = ledger
                return ledger
            }
        }

        private var time: MediaTime { MediaTime(nanoseconds: milliseconds.withLock { $0 } * 1_000_000) }
        var reports: [Int] { silences.all }

        /// Frames of 30 per second.
        func capture(_ frames: Range<Int>, leave: Bool = false, encode: Bool = false) {
            for frame in frames {
                milliseconds.withLock { $0 = UInt64(frame) * 1000 / 30 }
                _ = ledger.captured(UInt64(frame))
                if leave { _ = ledger.left(UInt64(frame)) }
                if encode { ledger.encoded(bytes: 1, isKeyframe: false) }
            }
        }
    }

    @Test func `an encoder that takes no frame keeps few of them in the books, and is reported once`() {
        let encoder = Encoder()
        encoder.capture(0..<10, leave: true, encode: true)
        encoder.capture(10..<11, leave: true)
        encoder.capture(11..<1000)
        #expect(encoder.ledger.statistics.inFlight <= 17)
        #expect(encoder.ledger.statistics.droppedBeforeEncoder >= 970)
        #expect(!encoder.ledger.statistics.encoderKeepsUp)
        #expect(encoder.reports.count == 1)
        // It goes on with a frame of the queue.
        encoder.ledger.encoded(bytes: 1, isKeyframe: false)
        _ = encoder.ledger.left(998)
        _ = encoder.ledger.left(999)
        #expect(encoder.ledger.statistics.droppedBeforeEncoder == 987)
        #expect(encoder.ledger.statistics.inFlight == 2)
    }

    @Test func `an encoder that takes frames and gives none is reported once`() {
        let encoder = Encoder()
        encoder.capture(0..<1000, leave: true)
        #expect(encoder.reports.count == 1)
    }

    @Test func `an encoder that is late is not reported`() {
        let encoder = Encoder()
        for second in 0..<60 {
            encoder.capture(second * 30..<second * 30 + 29, leave: true)
            encoder.capture(second * 30 + 29..<second * 30 + 30, leave: true, encode: true)
        }
        #expect(encoder.reports.isEmpty)
    }

    @Test func `an encoder is not reported for a pause between two frames`() {
        let encoder = Encoder()
        encoder.capture(0..<30, leave: true)
        encoder.capture(9000..<9029, leave: true)
        #expect(encoder.reports.isEmpty)
    }

    @Test func `an encoder keeps up although one frame is dropped, and does not if one in ten is`() {
        let encoder = Encoder()
        encoder.capture(0..<40, leave: true, encode: true)
        encoder.capture(40..<41)
        encoder.capture(41..<86, leave: true, encode: true)
        #expect(encoder.ledger.statistics.droppedBeforeEncoder == 1)
        #expect(encoder.ledger.statistics.encoderKeepsUp)
        for first in stride(from: 86, to: 146, by: 10) {
            encoder.capture(first..<first + 1)
            encoder.capture(first + 1..<first + 10, leave: true, encode: true)
        }
        #expect(encoder.ledger.statistics.droppedBeforeEncoder == 7)
        #expect(!encoder.ledger.statistics.encoderKeepsUp)
        // Two seconds without a drop.
        encoder.capture(146..<220, leave: true, encode: true)
        #expect(encoder.ledger.statistics.encoderKeepsUp)
    }
}
