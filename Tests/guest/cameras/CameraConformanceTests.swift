import MediaGraph
import MediaTesting
import Testing

@testable import MediaNodes

extension GuestTests {
    /// The camera under the kit for plugins, like the other capturers in `BuiltInConformanceTests`.
    @Suite struct CameraConformanceTests {
        @Test func `a camera passes the kit's checks, and reports its loss`() async throws {
            let cameras = try Vivid()
            let path = try cameras[0]
            let rehearsal = Rehearsal(
                settings: ["device": .text(path), "width": 320, "height": 180, "fps": 15, "away": "end"],
                failing: [
                    ["device": "/dev/video77", "away": "end"], ["device": "no-such-camera", "away": "end"],
                    ["format": "h264"], ["brightness": 256],
                ],
                vanish: { try Camera.set("disconnect", 1, of: path) })
            // The emulated processor is about ten times slower: it is allowed a second where others have a
            // tenth, and is too slow for frames of 8192 pixels, or 240 of them per second.
            let stand = try PipelineStand(
                "camera", leavingUntried: ["width", "height", "fps"], leavingLimit: 1)
            let report = await Conformance.test(
                stand, rehearsal,
                Conformance.Options(reopenings: 100) { print("\($0.check): \($0.verdict): \($0.words)") })
            #expect(report.isPassed, "\(report)")
            let silent = Set(report.results.filter { $0.verdict == .notApplicable }.map(\.check))
            // Behaviour with a slow consumer depends on the pipeline's queues; a busy machine cannot judge timestamps.
            #expect(silent.subtracting(["clock"]) == ["slow-consumer"], "\(report)")
        }
    }
}
