import MediaGraph
import Testing

@testable import RoomClient

/// The graph that is derived from a wish. No pipeline runs.
@Suite struct MediaWishTests {
    private let camera = MediaWish.camera("serial:7C3F")
    private let both = MediaWish.Contents(hasVideo: true, hasAudio: true)
    private let silent = MediaWish.Contents(hasVideo: true, hasAudio: false)

    private func links(
        _ wish: MediaWish, _ contents: MediaWish.Contents, continuing codec: VideoCodec? = nil
    ) -> [String]? {
        wish.graph(contents, continuing: codec)?.links.map { "\($0.from) > \($0.to)" }
    }

    @Test func `a camera feeds the output directly, so that nothing is encoded if nothing has to be`() {
        #expect(links(camera, silent) == ["source > output.video"])
        #expect(
            links(camera, both) == [
                "source > output.video", "microphone > opus-encoder", "opus-encoder > output.audio",
            ])
        #expect(
            links(.file("clip.mp4"), both) == [
                "source > output.video", "source.audio > opus-encoder", "opus-encoder > output.audio",
            ])
    }

    @Test func `a preview is one more consumer, which may fail alone`() {
        var wish = camera
        wish.isPreviewed = true
        #expect(links(wish, silent) == ["source > preview", "source > output.video"])
        #expect(wish.graph(silent)?.node("preview")?.isOptional == true)
        #expect(wish.graph(silent)?.node("source") == camera.graph(silent)?.node("source"))
    }

    @Test func `a bitrate needs an encoder, with the codec of the stream that it continues`() {
        var wish = camera
        wish.bitrate = Bitrate(bitsPerSecond: 800_000)
        #expect(links(wish, silent) == ["source > encoder", "encoder > output.video"])
        #expect(wish.graph(silent)?.node("encoder")?.kind == "vp8-encoder")
        #expect(wish.graph(silent, continuing: .h264)?.node("encoder")?.kind == "h264-encoder")
        wish.codec = .h264
        #expect(wish.graph(silent)?.node("encoder")?.kind == "h264-encoder")
        #expect(wish.graph(silent, continuing: .vp8)?.node("encoder")?.kind == "vp8-encoder")
    }

    @Test func `the output accepts the chosen codec, or that of the stream, or any`() {
        func codec(_ wish: MediaWish, _ continuing: VideoCodec? = nil) -> SettingValue? {
            wish.graph(silent, continuing: continuing)?.node("output")?.settings["codec"]
        }
        var wish = camera
        #expect(codec(wish) == nil)
        #expect(codec(wish, .h264) == "h264")
        wish.codec = .vp8
        #expect(codec(wish) == "vp8")
        #expect(codec(wish, .h264) == "h264")
    }

    @Test func `settings of the camera reach its node`() {
        var wish = camera
        (wish.width, wish.height, wish.failover, wish.isMirrored) = (1280, 720, "back", false)
        let settings = wish.graph(silent)?.node("source")?.settings
        #expect(
            settings == [
                "device": "serial:7C3F", "width": 1280, "height": 720, "failover": "back", "mirror": false,
            ])
        wish.framesPerSecond = 30
        #expect(wish.graph(silent)?.node("source")?.settings["fps"] == 30.0)
        #expect(MediaWish.camera(nil).graph(silent)?.node("source")?.settings["device"] == "auto")
    }

    @Test func `media that is not active needs no device`() {
        var wish = camera
        wish.isVideoActive = false
        #expect(links(wish, both) == ["microphone > opus-encoder", "opus-encoder > output.audio"])
        wish.isAudioActive = false
        #expect(links(wish, both) == nil)
        wish = .file("clip.mp4")
        wish.isVideoActive = false
        // The file is read for its audio.
        #expect(
            links(wish, both) == [
                "source > unseen", "source.audio > opus-encoder", "opus-encoder > output.audio",
            ])
        wish.isAudioActive = false
        #expect(links(wish, both) == nil)
    }

    @Test func `with audio, a start without the camera succeeds`() {
        var wish = camera
        #expect(wish.mustHaveCamera(silent) && !wish.mustHaveCamera(both))
        wish.needsCamera = true
        #expect(wish.mustHaveCamera(both))
        wish.waitsForDevices = true
        #expect(!wish.mustHaveCamera(silent))
    }
}
