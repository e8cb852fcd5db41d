import MediaNodes
import TestSupport
import Testing

// The code of the page of Sources/Media/MediaNodes/MediaNodes.docc, which quotes it from here.

/// Shows a source in a window, if there is a display, and records it to its end.
func record(_ source: some MediaNode, to path: String) async throws {
    let encoder = VideoEncoder(.vp8, bitrate: .kilobitsPerSecond(800))
    let pipeline = try await MediaPipeline {
        source >>> Window().optional
        source >>> encoder >>> Recorder(path: path)
    }
    print(pipeline.plan.elementCount, "elements")  // nothing runs yet
    try await pipeline.run()
}

@Suite(.timeLimit(.minutes(1))) struct ArticlePipelineTests {
    @Test func `a pattern is recorded to its end`() async throws {
        let folder = TemporaryFolder()
        let path = folder.file("talk.mkv")
        try await record(TestPattern(width: 320, height: 180, framesPerSecond: 30, frames: 15), to: path)
        let file = try MediaFile.inspect(path)
        #expect(file.width == 320 && file.height == 180 && !file.hasAudio)
    }
}
