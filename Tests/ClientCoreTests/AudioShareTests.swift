import CongestionControl
import RTP
import TestSupport
import Testing

@testable import ClientCore

@Suite struct AudioShareTests {
    /// A microphone of 64 kbit/s on a path whose room changes, on virtual time.
    private struct Microphone {
        var share = AudioShare()
        private var now = MonotonicTime.zero + .seconds(100)
        private(set) var bitrate = 64_000
        /// The bitrates one after another.
        private(set) var changes: [Int] = []

        /// - Parameter room: the rate of the path for a bitrate
        mutating func run(seconds: Int, _ room: (Int) -> Double) {
            for _ in 0..<seconds * 10 {
                let next = share.bitrate(within: room(bitrate), wish: 64_000, now: now)
                if next != bitrate { changes.append(next) }
                bitrate = next
                now = now + .milliseconds(100)
            }
        }
    }

    private func path(_ bitrate: Double) -> Double { PathRate.ofAudio(bitrate) }

    @Test func `with enough room, the bitrate stays`() {
        var microphone = Microphone()
        microphone.run(seconds: 60) { _ in path(64_000) }
        #expect(microphone.changes.isEmpty)
    }

    @Test func `the bitrate falls at once to the best step that fits, and to the least one if none does`() {
        var microphone = Microphone()
        microphone.run(seconds: 1) { _ in path(30_000) }
        #expect(microphone.changes == [27_000])
        microphone.run(seconds: 1) { _ in 10_000 }
        #expect(microphone.bitrate == AudioShare.least)
    }

    @Test func `it rises by steps that the estimate of a session without padding allows`() {
        var microphone = Microphone()
        microphone.run(seconds: 1) { _ in 10_000 }
        // An estimate exceeds the rate that arrives by half and 10 kbit/s at most.
        microphone.run(seconds: 30) { path(Double($0)) * 1.5 + 10_000 }
        #expect(microphone.bitrate == 64_000)
        #expect(microphone.changes == microphone.changes.sorted())
        #expect(microphone.changes.count > 5)
    }

    @Test func `on a link that carries less than the next step, that is tried seldom`() {
        var microphone = Microphone()
        let link = path(24_000)
        // More than the link carries becomes a queue, and the estimate backs off.
        let room = { (bitrate: Int) in
            path(Double(bitrate)) > link ? link * 0.85 - 5000 : path(Double(bitrate)) * 1.5 + 10_000
        }
        microphone.run(seconds: 120, room)
        var times: [Int: Int] = [:]
        for _ in 0..<240 {
            microphone.run(seconds: 1, room)
            times[microphone.bitrate, default: 0] += 1
        }
        // The best step that the link carries.
        #expect(times[20_250, default: 0] > 190, "\(times)")
        #expect(microphone.changes.suffix(30).count { $0 == 27_000 } <= 6, "\(microphone.changes)")
    }

    @Test func `after an outage, the bitrate before it returns as soon as the estimate allows`() {
        var microphone = Microphone()
        microphone.run(seconds: 3) { _ in 200_000 }
        microphone.run(seconds: 2) { _ in 0 }
        #expect(microphone.changes.isEmpty)
        // The estimate begins again with half.
        microphone.run(seconds: 2) { _ in path(20_000) }
        microphone.run(seconds: 2) { _ in path(50_000) }
        microphone.run(seconds: 2) { _ in path(64_000) }
        #expect(microphone.changes == [15_187, 48_000, 64_000])
    }

    @Test func `a bitrate that fails after an outage waits as usual`() {
        var microphone = Microphone()
        microphone.run(seconds: 2) { _ in 0 }
        microphone.run(seconds: 6) { _ in path(64_000) }
        microphone.run(seconds: 1) { _ in path(50_000) }
        #expect(microphone.changes == [48_000])
        microphone.run(seconds: 4) { _ in 200_000 }
        #expect(microphone.bitrate == 48_000)
        microphone.run(seconds: 2) { _ in 200_000 }
        #expect(microphone.bitrate == 64_000)
    }
}
