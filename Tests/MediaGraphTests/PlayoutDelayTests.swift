import MediaGraph
import TestSupport
import Testing

struct PlayoutDelayTests {
    /// A video at 25 frames/s that arrives by a path of 30 ms.
    private struct Video {
        var delay = PlayoutDelay(clockRate: 90_000)
        var frame = 0
        /// Near the wrap of timestamps.
        var firstTimestamp = UInt32.max - 90_000
        private var packets: [(time: Double, timestamp: UInt32)] = []

        mutating func run(seconds: Double, lateness: (Int) -> Double) -> [Double] {
            var targets: [Double] = []
            let end = frame + Int(seconds * 25)
            while frame < end {
                let sent = Double(frame) / 25
                packets.append((100 + sent + 0.03 + lateness(frame), timestamp))
                let due = packets.filter { $0.time <= 100 + sent + 0.03 }.sorted { $0.time < $1.time }
                packets.removeAll { $0.time <= 100 + sent + 0.03 }
                for packet in due { arrive(packet.timestamp, at: packet.time) }
                targets.append(delay.target)
                frame += 1
            }
            return targets
        }

        var timestamp: UInt32 { firstTimestamp &+ UInt32(frame) * 3600 }

        mutating func arrive(_ timestamp: UInt32, at seconds: Double) {
            delay.arrived(timestamp, at: MediaTime(nanoseconds: UInt64(seconds * 1e9)))
        }
    }

    @Test func `a stream that arrives evenly is not delayed`() {
        var video = Video()
        let targets = video.run(seconds: 60) { _ in 0 }
        #expect(targets.allSatisfy { $0 == 0 })
    }

    @Test func `one frame in two hundred that is late does not count, and one in twenty does`() throws {
        var rare = Video()
        #expect(try #require(rare.run(seconds: 120) { $0 % 200 == 199 ? 0.2 : 0 }.last) == 0)
        var frequent = Video()
        let target = try #require(frequent.run(seconds: 120) { $0 % 20 == 19 ? 0.2 : 0 }.last)
        #expect((0.2...0.21).contains(target))
    }

    @Test func `the delay rises within half a second, and sinks slowly`() throws {
        var video = Video()
        _ = video.run(seconds: 60) { _ in 0 }
        let rising = video.run(seconds: 2) { _ in 0.15 }
        #expect(try #require(rising.firstIndex { $0 >= 0.15 }) < 25)
        let sinking = video.run(seconds: 120) { _ in 0 }
        for (before, after) in zip(sinking, sinking.dropFirst()) { #expect(before - after < 0.002) }
        #expect(try #require(sinking.last) == 0)
    }

    @Test func `late frames at the beginning are forgotten soon`() throws {
        var video = Video()
        let targets = video.run(seconds: 15) { $0 < 15 ? 0.3 - Double(14 - $0) * 0.02 : 0 }
        #expect(try #require(targets.max()) >= 0.2)
        #expect(try #require(targets.last) <= 0.1)
    }

    @Test func `the delay has a bound`() throws {
        var video = Video()
        let targets = video.run(seconds: 60) { $0 % 5 == 4 ? 0.399 : 0 }
        #expect(try #require(targets.max()) == PlayoutDelay.maximum)
    }

    @Test func `frames that no delay would have helped do not count`() throws {
        var video = Video()
        let targets = video.run(seconds: 60) { $0 % 5 == 4 ? 0.5 : 0 }
        #expect(try #require(targets.max()) == 0)
    }

    @Test func `clocks that drift apart add nothing`() throws {
        var video = Video()
        // 100 millionths.
        let targets = video.run(seconds: 1200) { Double($0) / 25 * 0.0001 }
        #expect(try #require(targets.max()) <= 0.01)
    }

    @Test func `a frame is due when it would have arrived, and the delay later`() throws {
        var video = Video()
        _ = video.run(seconds: 60) { $0 % 10 == 9 ? 0.1 : 0 }
        let now = MediaTime(nanoseconds: 160_000_000_000)
        let due = video.delay.due(video.firstTimestamp &+ 1500 * 3600, now: now)
        #expect(abs(due.seconds(since: now) - 0.03 - video.delay.target) < 0.001)
    }

    @Test func `other timestamps begin another stream`() throws {
        var video = Video()
        _ = video.run(seconds: 10) { _ in 0 }
        video.firstTimestamp &+= 1_000_000_000
        #expect(video.run(seconds: 10) { _ in 0 }.allSatisfy { $0 == 0 })
    }
}
