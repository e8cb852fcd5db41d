import MediaGraph
import TestSupport
import Testing

struct PlayoutDelayTests {
    /// A video at 25 frames/s that arrives by a path of 30 ms.
    private struct Video {
        private struct Packet {
            var time: Double
            var timestamp: UInt32
            var number: UInt16
        }

        var delay = PlayoutDelay(clockRate: 90_000)
        var frame = 0
        /// Near the wrap of timestamps.
        var firstTimestamp = UInt32.max - 90_000
        /// Near the wrap of numbers.
        private var number = UInt16.max - 20
        /// When the path is free, in seconds.
        private var freeAt = 0.0
        private var packets: [Packet] = []

        /// Frames of one packet. A late one is overtaken by the next ones, as a repaired one is.
        mutating func run(seconds: Double, lateness: (Int) -> Double) -> [Double] {
            run(seconds: seconds) { video in
                let frame = video.frame
                video.send(at: video.due + lateness(frame))
            }
        }

        /// Frames of as many packets as `count` says, which leave 4 ms one after the other, and never before `gate`.
        mutating func runInPackets(
            seconds: Double, _ count: (Int) -> Int, gate: (Double) -> Double = { $0 }
        ) -> [Double] {
            run(seconds: seconds) { video in
                for _ in 0..<count(video.frame) {
                    video.freeAt = max(video.freeAt, video.due) + 0.004
                    video.send(at: gate(video.freeAt - 0.004))
                }
            }
        }

        private mutating func run(seconds: Double, sending: (inout Video) -> Void) -> [Double] {
            var targets: [Double] = []
            let end = frame + Int(seconds * 25)
            while frame < end {
                sending(&self)
                let now = due
                let arrived = packets.filter { $0.time <= now }.sorted { $0.time < $1.time }
                packets.removeAll { $0.time <= now }
                for packet in arrived {
                    delay.arrived(
                        packet.timestamp, number: packet.number,
                        at: MediaTime(nanoseconds: UInt64((100.03 + packet.time) * 1e9)))
                }
                targets.append(delay.target)
                frame += 1
            }
            return targets
        }

        /// When the frame is sent, in seconds.
        var due: Double { Double(frame) / 25 }

        private mutating func send(at time: Double) {
            packets.append(Packet(time: time, timestamp: timestamp, number: number))
            number &+= 1
        }

        private var timestamp: UInt32 { firstTimestamp &+ UInt32(frame) * 3600 }
    }

    @Test func `a stream that arrives evenly is not delayed`() {
        var video = Video()
        let targets = video.run(seconds: 60) { _ in 0 }
        #expect(targets.allSatisfy { $0 == 0 })
    }

    @Test func `one frame in two hundred that is late does not count, and one in twenty does`() throws {
        var rare = Video()
        #expect(try #require(rare.run(seconds: 120) { $0 % 200 == 199 ? 0.205 : 0 }.last) == 0)
        var frequent = Video()
        let target = try #require(frequent.run(seconds: 120) { $0 % 20 == 19 ? 0.205 : 0 }.last)
        #expect((0.2...0.21).contains(target))
    }

    @Test func `the delay rises within half a second, and sinks slowly`() throws {
        var video = Video()
        _ = video.run(seconds: 60) { _ in 0 }
        let rising = video.run(seconds: 2) { _ in 0.155 }
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

    @Test func `frames that are late by less than 10 ms are in time`() {
        var video = Video()
        let targets = video.run(seconds: 60) { $0 % 3 == 2 ? 0.009 : 0 }
        #expect(targets.allSatisfy { $0 == 0 })
    }

    @Test func `the delay has a bound`() throws {
        var video = Video()
        let targets = video.run(seconds: 60) { $0 % 5 == 4 ? 0.405 : 0 }
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

    @Test func `a large frame that the sender spreads over time does not count, nor do the frames behind it`() {
        var video = Video()
        // 100 ms for one frame in ten.
        let targets = video.runInPackets(seconds: 60, { $0 % 10 == 9 ? 25 : 3 })
        #expect(targets.allSatisfy { $0 == 0 })
    }

    @Test func `a path that delays packets counts beside large frames`() throws {
        var video = Video()
        // Every 0.8 s, nothing arrives for 0.12 s.
        let targets = video.runInPackets(seconds: 60, { $0 % 10 == 9 ? 25 : 3 }) { time in
            let since = time.truncatingRemainder(dividingBy: 0.8)
            return since < 0.12 ? time - since + 0.12 : time
        }
        #expect((0.08...0.15).contains(try #require(targets.last)))
    }

    @Test(arguments: [0.3, 1.5]) func `one stall buys no delay`(seconds: Double) {
        var video = Video()
        let targets = video.runInPackets(seconds: 120, { _ in 3 }) { $0 > 60 && $0 < 60 + seconds ? 60 + seconds : $0 }
        #expect(targets.allSatisfy { $0 == 0 })
    }

    @Test func `stalls that come again and again buy delay`() throws {
        var video = Video()
        let targets = video.runInPackets(seconds: 120, { _ in 3 }) { time in
            let since = time.truncatingRemainder(dividingBy: 4)
            return time > 60 && since < 0.3 ? time - since + 0.3 : time
        }
        #expect(try #require(targets[..<1450].max()) == 0)
        #expect((0.25...0.31).contains(try #require(targets.last)))
    }

    @Test func `stalls that are longer than any delay buy none, however many there are`() {
        var video = Video()
        let targets = video.runInPackets(seconds: 120, { _ in 3 }) { time in
            let since = time.truncatingRemainder(dividingBy: 4)
            return time > 60 && since < 1 ? time - since + 1 : time
        }
        #expect(targets.allSatisfy { $0 == 0 })
    }

    @Test func `other timestamps begin another stream`() throws {
        var video = Video()
        _ = video.run(seconds: 10) { _ in 0 }
        video.firstTimestamp &+= 1_000_000_000
        #expect(video.run(seconds: 10) { _ in 0 }.allSatisfy { $0 == 0 })
    }
}
