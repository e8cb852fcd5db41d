import MediaGraph
import MediaNodes
import RTP
import TestFixtures
import TestSupport
import Testing

@testable import RoomClient

/// The times in the packets of a room, compared with those of a camera's driver.
@Suite(.serialized, .timeLimit(.minutes(2)))
struct CaptureTimeTests {
    /// How much later than captured the frames of the camera arrive, in seconds.
    private static let lateness = 0.3
    /// From one frame of the driver to the next, in nanoseconds.
    private static let interval = 1e9 / 30

    @Test(arguments: [false, true])
    func `packets carry the driver's time, of video that passes or is encoded, before and after a loss`(isEncoded: Bool)
        async throws
    {
        let folder = TemporaryFolder()
        let film = try EncodedFilm.h264(30, keyframeEvery: 10)
        let camera = try CameraFile.write(
            h264: film,
            [
                CameraFile.Fault("late", at: 0, by: Self.lateness), CameraFile.Fault("unplugged", at: 4, until: 5.5),
            ], to: folder)
        try await RoomStage.run { stage in
            let witness = StreamWitness()
            let engine = try await witness.enter(stage)
            let pipeline = try await MediaPipeline(
                MediaGraph {
                    Chain {
                        Node("camera", settings: ["device": .text(camera), "width": 64, "height": 48, "fps": 30])
                        if isEncoded { Node.videoEncoder("encoder", codec: .vp8) }
                        Node("publish", settings: stage.settings(room: "room").mapValues { .text($0) })
                    }
                }, registry: RoomNodes.registry)
            try await pipeline.start()
            try await witness.watch(engine)
            try await requireEventually("capture times") { witness.seen.captureTimes.count > 2 }
            #expect(areDriverTimes(witness.seen.captureTimes), "\(witness.seen.captureTimes)")
            try await requireEventually(within: 40, "the return") { pipeline.statistics.sources["camera"]?.losses == 1 }
            try await requireEventually(within: 40, "frames again") {
                pipeline.statistics.sources["camera"]?.state == .streaming
            }
            let before = witness.seen.captureTimes.count
            // Stand-ins that were encoded late come first.
            try await requireEventually(within: 40, "the driver's times again") {
                let after = Array(witness.seen.captureTimes.dropFirst(before).suffix(3))
                return after.count == 3 && areDriverTimes(after)
            }
            let all = witness.seen.captureTimes
            let steps = zip(all, all.dropFirst()).map { $1.time.interval(since: $0.time).milliseconds }
            #expect(steps.allSatisfy { $0 >= 0 }, "\(steps)")
            await pipeline.stop()
            engine.disconnect()
        }
    }

    /// Whether times are whole frames of the driver apart, and as old as its frames are when they arrive.
    private func areDriverTimes(_ times: [(time: NTPTime, arrival: NTPTime)]) -> Bool {
        times.allSatisfy { time, arrival in
            let frames = Double(time.interval(since: times[0].time).nanoseconds) / Self.interval
            // Encoders round their times.
            return arrival.interval(since: time).seconds >= Self.lateness
                && abs(frames - frames.rounded()) * Self.interval < 10_000
        }
    }
}
