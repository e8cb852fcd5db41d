import ConnectLiveSDK
import Foundation
import TestSupport
import Testing

extension SampleTests {
    /// Local media, its views, and its cameras.
    @MainActor @Suite(.timeLimit(.minutes(2))) struct Media {
        init() { CameraNames.isolate() }

        /// The clip of the demo.
        private var clip: URL { URL(fileURLWithPath: Checkout.clip) }

        @Test func `guide 6, 7, 9, 12 to 15: media that starts shows its frames in the view, until it is detached`()
            async throws
        {
            let guide = Guide()
            guide.s9Options()
            guide.config.mediaOptions.usesTestPattern = true
            guide.s12CreateMedia()
            let media = try #require(guide.media)
            #expect(media.video.active && media.audio.active)
            let (view, own) = (guide.s6View(), guide.s7Subclass())
            guide.s13Attach(view)
            guide.s13Attach(own)
            #expect(view.latestFrame == nil)
            await guide.s15Start().value
            try await wait(for: "a frame in both views") { view.latestFrame != nil && own.latestFrame != nil }
            #expect(view.isAssignedStream && own.isAssignedStream)
            guide.s14Detach()
            #expect(!view.isAssignedStream && !own.isAssignedStream)
            await media.stop()
        }

        @Test func `guide 10, README 9: each capturer shows frames`() async throws {
            let cameras = try TwoCameras()
            defer { withExtendedLifetime(cameras) {} }
            let folder = TemporaryFolder()
            let file = folder.file("sample.mov")
            try FileManager.default.createSymbolicLink(atPath: file, withDestinationPath: clip.path)
            let guide = Guide()
            #expect(guide.s10CapturerTypes() == Readme().s9CapturerTypes())
            for type in guide.s10CapturerTypes() {
                guide.config = Config()
                guide.config.mediaOptions.source = type
                guide.config.mediaOptions.fileName = file
                guide.config.mediaOptions.hasAudio = type == .file
                guide.s12CreateMedia()
                let media = try #require(guide.media)
                let view = UIRenderView()
                guide.s13Attach(view)
                #expect((media.videoSource != nil) == (type == .bypass))
                let started = guide.s15Start()
                // The application's own frames, if it is asked for them.
                let frame = try #require(PixelBuffer(width: 320, height: 240))
                try await wait(for: "a frame of \(type)") {
                    media.videoSource?.didCapturePixelBuffer(frame, time: .now, orientation: .landscapeRight)
                    return view.latestFrame != nil
                }
                await started.value
                await media.stop()
            }
        }

        @available(*, deprecated)
        @Test func `README 7, 8, 11 to 19: the options decide about the camera, which the application switches`()
            async throws
        {
            let cameras = try TwoCameras()
            defer { withExtendedLifetime(cameras) {} }
            let readme = Readme()
            #expect(readme.s7And11Config() == [9, 20, 1, 640])
            let options = readme.s8Options()
            let media = try #require(readme.s13CreateMedia(options))
            #expect(readme.s14Streams(media) == ["camera", "camera"])
            #expect(readme.s18IsMirror(media) && readme.s12Level(media) == 0)
            let view = UIRenderView()
            media.video.attach(view)
            readme.s15Start(media)
            try await wait(for: "the start") { readme.lines == ["started"] }
            try await wait(for: "a frame") { view.latestFrame?.width == 640 }
            #expect(readme.s17Turn(media) == .front)
            try await wait(for: "the other camera") { media.position == .back }
            try await readme.s19SwitchCameraAndWait(media)
            #expect(media.position == .front && media.isMirror)
            readme.s19SwitchCamera(media)
            try await wait(for: "the switch") { readme.lines.last == "switched" }
            #expect(media.position == .back && !readme.s18IsMirror(media))
            readme.s16Stop(media)
            // The view is inactive once nothing is captured any longer.
            let changes = Collected<Bool>()
            view.onActive = { changes.append($0) }
            try await wait(for: "the end of the frames") { changes.all.last == false }
            try await readme.s15StartAndWait(media)
            try await wait(for: "frames again") { changes.all.last == true }
            await media.stop()
        }

        @available(*, deprecated)
        @Test func `controls 3, README 20: a switch chooses the camera at the back, mirrored`() async throws {
            let cameras = try TwoCameras()
            defer { withExtendedLifetime(cameras) {} }
            let (created, switched) = Readme().s20Example()
            await switched.value
            let media = try #require(created)
            #expect(media.position == .back && media.isMirror && media.video.active && media.audio.active)
            try await media.switchCamera(position: .front, isMirror: false)
            let view = UIRenderView()
            media.video.attach(view)
            try await media.start()
            try await wait(for: "a frame") { view.latestFrame != nil }
            await Controls().s3SwitchCamera(media).value
            #expect(media.position == .back && media.isMirror)
            await media.stop()
        }

        @Test func `guide 11, README 10: the audio type and the gain are those of the last choice`() {
            defer { (LocalMediaOptions.audioType, LocalMediaOptions.autoGain) = (.voice, false) }
            #expect(Readme().s10AudioTypes() == ["voice", "music"])
            (LocalMediaOptions.audioType, LocalMediaOptions.autoGain) = (.music, true)
            #expect(Guide().s11AudioType() == "voice")
            #expect(LocalMediaOptions.audioType == .voice && !LocalMediaOptions.autoGain)
        }

        @Test func `README 0: an application asks for access, and learns the answer again`() async {
            let isGranted = await Readme().s0Access(to: .video)
            #expect((Readme().s0Status(of: .video) == .authorized) == isGranted)
        }
    }
}
