import MediaGraph
import MediaNodes
import TestFixtures
import TestSupport
import Testing

/// A receiver on a stepped clock, and the packets of a film at 30 frames/s.
private final class Playout: Sendable {
    private static let interval = 1 / 30.0

    let clock = SteppedClock()
    let receiver: MediaPipeline
    private let input: PacketInput
    private let film: [RTPBatch]
    /// The frames that were due, and the clock's time then.
    let played = Collected<MediaTime>()
    private let fed = Collected<Bool>()

    init(frames: Int) async throws {
        film = try await Self.film(frames: frames)
        let receiving = MediaGraph {
            Chain {
                Node.rtpInput("in", codec: .vp8)
                Node.rtpOutput("out")
            }
        }
        var bindings = NodeBindings()
        bindings.rtpOutputs["out"] = { [played, clock] _ in played.append(clock.now) }
        receiver = try await MediaPipeline(receiving, bindings: bindings, on: clock)
        input = try #require(receiver.rtpInput("in"))
        try await receiver.begin()
    }

    private static func film(frames: Int) async throws -> [RTPBatch] {
        let sent = Collected<RTPBatch>()
        let publishing = MediaGraph {
            Chain {
                Node.testPattern("pattern", width: 64, height: 64, framesPerSecond: 30, frames: frames)
                Node.videoEncoder("encoder", codec: .vp8)
                Node.rtpOutput("video")
            }
        }
        var bindings = NodeBindings()
        bindings.rtpOutputs["video"] = { sent.append($0) }
        let clock = SteppedClock()
        let publisher = try await MediaPipeline(publishing, bindings: bindings, on: clock)
        clock.run(publisher) { sent.count < frames }
        try await publisher.start()
        await eventually("the film") { sent.count == frames }
        await publisher.stop()
        return sent.all
    }

    var delay: Double { receiver.statistics.rtpInputs["in"]?.playoutDelay ?? -1 }

    /// The timestamp of the frame that was fed last.
    var newest: UInt32 { film[fed.count - 1].rtpTimestamp }

    /// Lets time pass without packets.
    func pass(seconds: Double) { clock.advance(by: seconds, pending: 0) }

    /// Frames that arrive in time, or all at once.
    func feed(_ count: Int, together: Bool = false, isPaused: Bool = false) async {
        for _ in 0..<count {
            if !together { pass(seconds: Self.interval) }
            let batch = film[fed.count]
            input.push(batch.bytes, ends: batch.ends)
            fed.append(true)
            let wanted = fed.count
            if isPaused { continue }
            // A frame that waits for the clock keeps the next ones from leaving the jitter buffer.
            await eventually("frame \(wanted)") {
                clock.pending > 0 || receiver.statistics.rtpInputs["in"]?.framesReceived ?? 0 >= wanted
            }
        }
    }

    /// Moves the clock until all frames are played.
    func play() async {
        await eventually("the last frame") {
            clock.crank(seconds: 0.01)
            return played.count >= fed.count
        }
    }
}

extension MediaNodesTests {
    @Suite struct PlayoutTests {
        @Test func `after a stall, frames do not wait for times that lie ahead`() async throws {
            let playout = try await Playout(frames: 110)
            // From now on, frames are compared with the clock.
            playout.receiver.hold("in", seconds: 0.02)
            await playout.feed(30)
            #expect(playout.delay > 0.01)
            playout.receiver.hold("in", seconds: 0)
            await playout.feed(30)
            await playout.play()
            #expect(playout.delay == 0)
            playout.pass(seconds: 1.5)
            let arrival = playout.clock.now
            await playout.feed(45, together: true)
            await playout.play()
            #expect(playout.clock.now.seconds(since: arrival) < 0.1)
            await playout.receiver.stop()
        }

        @Test func `a pause buys no delay`() async throws {
            let playout = try await Playout(frames: 250)
            await playout.feed(60)
            await playout.receiver.pause()
            await playout.feed(60, isPaused: true)
            await playout.receiver.resume()
            var delays: [Double] = []
            for _ in 0..<120 {
                await playout.feed(1)
                delays.append(playout.delay)
            }
            #expect(delays.allSatisfy { $0 == 0 })
            await playout.receiver.stop()
        }

        @Test func `a hold for lip-sync delays frames by as much, and tells when they are played`() async throws {
            let playout = try await Playout(frames: 100)
            await playout.feed(10)
            #expect(playout.receiver.playing("in")?.hold == 0)
            playout.receiver.hold("in", seconds: 0.1)
            await playout.feed(80)
            #expect(abs(playout.delay - 0.1) < 0.006)
            let playing = try #require(playout.receiver.playing("in"))
            #expect(abs(playing.hold - playout.delay) < 0.006)
            // The newest frame may still be on its way to the jitter buffer's end.
            let age = Double(playout.newest &- playing.rtpTimestamp) / 90_000
            #expect(abs(playing.time.seconds(since: playout.clock.now) + age - playout.delay) < 0.005)
            await playout.receiver.stop()
        }
    }
}
