import Foundation
import GStreamerKit
import MediaGraph
import MediaNodes
import RoomClient
import Synchronization
import TestFixtures
import TestSupport
import Testing

@testable import ConnectLiveSDK

/// A capturer of an application, which passes the same upright frame, turned as its camera is, until it gets another one.
private final class Capturer: Sendable {
    struct Picture: Sendable {
        var code: UInt32
        var width = 320
        var height = 240
        var orientation = InterfaceOrientation.landscapeRight
    }

    private let current: Mutex<Picture>
    private let task = Mutex<Task<Void, Never>?>(nil)

    init(_ source: any VideoCapturerSource, _ picture: Picture) {
        current = Mutex(picture)
        let task = Task.detached { [weak self] in
            var count = 0
            while let picture = self?.current.withLock({ $0 }), !Task.isCancelled {
                if let frame = Self.frame(picture) {
                    // Every other frame comes as a sample.
                    if count.isMultiple(of: 2) {
                        source.didCapturePixelBuffer(frame, time: .now, orientation: picture.orientation)
                    } else {
                        let sample = SampleBuffer(imageBuffer: frame, presentationTimeStamp: .now)
                        source.didCaptureSampleBuffer(sample, orientation: picture.orientation)
                    }
                }
                count += 1
                try? await Task.sleep(for: .milliseconds(50))
            }
        }
        self.task.withLock { $0 = task }
    }

    deinit { end() }

    func end() { task.withLock { $0 }?.cancel() }

    func show(_ picture: Picture) { current.withLock { $0 = picture } }

    /// The frame as the camera of a machine in this direction sees it.
    private static func frame(_ picture: Picture) -> PixelBuffer? {
        guard let upright = PixelBuffer(width: picture.width, height: picture.height) else { return nil }
        upright.draw { frame in
            frame.fill(luma: 90)
            frame.draw(barCode: picture.code)
        }
        let turn = picture.orientation.turn
        return turn == 0 ? upright : upright.picture.turned(clockwise: 360 - turn).flatMap { PixelBuffer($0) }
    }
}

/// The frames that a video shows.
private final class Sights: Sendable {
    struct Sight: Sendable, Hashable {
        var width, height: Int
        var code: UInt32?
    }

    let all = Collected<Sight>()

    func take(_ frame: VideoFrame) {
        all.append(Sight(width: frame.width, height: frame.height, code: frame.barCode))
    }

    func watch(_ video: any RemoteVideo) {
        guard let stream = video as? RemoteVideoStream else { preconditionFailure("a video of no room") }
        _ = stream.outlet.fanout.add { [self] in take($0) }
    }

    func has(_ width: Int, _ height: Int, _ code: UInt32) -> Bool {
        all.all.contains(Sight(width: width, height: height, code: code))
    }
}

/// Draws its number into each frame, in front of the encoder.
private final class NumberBlender: FrameBlender, Sendable {
    let number: UInt32
    let frames = Collected<Int>()

    init(_ number: UInt32) { self.number = number }

    func blend(frame: PixelBuffer) -> PixelBuffer? {
        frames.append(frame.width)
        frame.draw { $0.draw(barCode: number) }
        return frame
    }
}

extension SDKTests {
    /// Frames that the application captures and changes.
    @Suite(.timeLimit(.minutes(2)))
    struct Bypass {
        private func media(_ change: (inout LocalMediaOptions) -> Void = { _ in }) throws -> any LocalMedia {
            CameraNames.isolate()
            var config = silent()
            config.mediaOptions.source = .bypass
            config.mediaOptions.hasAudio = false
            config.mediaOptions.videoDegradation = .detail
            change(&config.mediaOptions)
            return try #require(ConnectLive.createLocalMedia(config: config))
        }

        /// Publishes the media and watches it as another participant.
        private func onCall(
            _ media: any LocalMedia,
            _ body: (_ viewer: Client, _ publisher: Client, _ sights: Sights) async throws -> Void
        ) async throws {
            try await onStage { _ in
                let (viewer, publisher) = (Client(), Client())
                _ = try await viewer.join("bypass")
                _ = try await publisher.join("bypass")
                try publisher.room.publish(media)
                let video = try await viewer.listener.waitForVideo()
                let sights = Sights()
                sights.watch(video)
                try await viewer.room.subscribe(videoId: video.id).get()
                try await body(viewer, publisher, sights)
                #expect(viewer.listener.names.count { $0 == "video" } == 1)
                #expect(!viewer.listener.names.contains("videoGone"))
                try await viewer.leave()
                try await publisher.leave()
                await media.stop()
            }
        }

        @Test func `frames of five sizes and four orientations arrive upright in their size`() async throws {
            let media = try media { ($0.videoWidth, $0.videoHeight) = (640, 480) }
            let capturer = Capturer(try #require(media.videoSource), Capturer.Picture(code: 0))
            try await onCall(media) { _, _, sights in
                var code: UInt32 = 1
                for (width, height) in [(320, 240), (640, 480), (480, 640), (176, 144), (640, 360)] {
                    for orientation in [
                        InterfaceOrientation.landscapeRight, .portrait, .landscapeLeft, .portraitUpsideDown,
                    ] {
                        let picture = Capturer.Picture(
                            code: code, width: width, height: height, orientation: orientation)
                        capturer.show(picture)
                        try await requireEventually("\(picture)") { sights.has(width, height, code) }
                        code += 1
                    }
                }
            }
        }

        @Test func `larger frames are scaled into the largest size, also upright`() async throws {
            let media = try media { ($0.videoWidth, $0.videoHeight) = (320, 240) }
            let capturer = Capturer(
                try #require(media.videoSource), Capturer.Picture(code: 0, width: 640, height: 480))
            try await onCall(media) { _, _, sights in
                // The blocks of a bar code are half as large in both frames.
                try await requireEventually("a wide frame") { sights.has(320, 240, 0) }
                capturer.show(Capturer.Picture(code: 1, width: 480, height: 640))
                try await requireEventually("an upright frame") {
                    sights.all.all.contains {
                        $0.width == 180 && $0.height == 240 || $0.width == 240 && $0.height == 320
                    }
                }
            }
        }

        @Test func `a video without frames waits, shows its last one, and goes on`() async throws {
            let media = try media()
            #expect(media.videoSource != nil)
            try await media.start()
            try await requireEventually("waiting") { media.video.state != .live }
            try await onCall(media) { viewer, _, sights in
                let capturer = Capturer(try #require(media.videoSource), Capturer.Picture(code: 5))
                try await requireEventually("frames") { sights.has(320, 240, 5) }
                try await requireEventually("live") { media.video.state == .live }
                capturer.end()
                try await requireEventually("waiting again") { media.video.state != .live }
                let count = sights.all.count
                try await requireEventually("stand-ins") { sights.all.count > count + 2 }
                let other = Capturer(try #require(media.videoSource), Capturer.Picture(code: 6))
                try await requireEventually("other frames") { sights.has(320, 240, 6) }
                other.end()
            }
        }

        @Test func `a blender changes what all see, may be set and removed, and the video goes on`() async throws {
            let media = try media()
            let capturer = Capturer(try #require(media.videoSource), Capturer.Picture(code: 1))
            let (view, mine) = (FrameView(), Sights())
            view.onFrame = { mine.take($0) }
            media.video.attach(view)
            let (first, second) = (NumberBlender(1_001), NumberBlender(1_002))
            try await onCall(media) { _, _, sights in
                try await requireEventually("frames") { sights.has(320, 240, 1) && mine.has(320, 240, 1) }
                media.frameBlender = first
                try await requireEventually("blended") { sights.has(320, 240, 1_001) && mine.has(320, 240, 1_001) }
                media.frameBlender = second
                try await requireEventually("others") { sights.has(320, 240, 1_002) && mine.has(320, 240, 1_002) }
                media.frameBlender = nil
                capturer.show(Capturer.Picture(code: 2))
                try await requireEventually("plain") { sights.has(320, 240, 2) && mine.has(320, 240, 2) }
                try await requireEventually("no node") { media.localCapture?.plan?.node("blend") == nil }
            }
            let count = second.frames.count
            #expect(count > 0)
            media.video.detach()
        }

        @Test func `a source of other media is none, and appears with its source`() async throws {
            let media = try media { $0.usesTestPattern = true }
            #expect(media.videoSource == nil)
            try await media.start()
            try await media.update { $0.source = .bypass }
            let capturer = Capturer(try #require(media.videoSource), Capturer.Picture(code: 3))
            let (view, mine) = (FrameView(), Sights())
            view.onFrame = { mine.take($0) }
            media.video.attach(view)
            try await requireEventually("its frames") { mine.has(320, 240, 3) }
            try await media.update { $0.usesTestPattern = true }
            #expect(media.videoSource == nil)
            capturer.end()
            await media.stop()
        }

        @Test func `a buffer has the planes of its format`() throws {
            let buffer = try #require(PixelBuffer(width: 64, height: 48, format: .nv12))
            #expect(buffer.planeCount == 2 && buffer.format == .nv12)
            #expect(buffer.withPlane(.chroma) { bytes, stride in bytes.byteCount == stride * 24 && stride >= 64 })
            #expect(buffer.withPlane(.chromaRed) { bytes, _ in bytes.byteCount } == 0)
            #expect(PixelBuffer(width: 0, height: 48) == nil)
            #expect(SampleBuffer(imageBuffer: buffer, presentationTimeStamp: .zero).imageBuffer === buffer)
        }

        @Test func `a camera's frames follow the sensor of the machine while they are asked to`() async throws {
            let sensor = try Fixture.orientationSensor("left-up")
            let bus = EnvironmentOverride(["DBUS_SYSTEM_BUS_ADDRESS": sensor.answer.bus])
            let folder = TemporaryFolder()
            let camera = try CameraFile.write([], to: folder)
            let media = try media { options in
                options.source = .camera
                options.cameraDevice = camera
                options.rotationType = .deviceOrientation
                (options.videoWidth, options.videoHeight) = (64, 48)
            }
            let (view, mine) = (FrameView(), Sights())
            view.onFrame = { mine.take($0) }
            media.video.attach(view)
            try await media.start()
            func isUpright() -> Bool? { mine.all.all.last.map { $0.width == 48 && $0.height == 64 } }
            try await requireEventually("upright frames") { isUpright() == true }
            sensor.tell("normal")
            try await requireEventually("wide frames") { isUpright() == false }
            try await media.update { $0.rotationType = .notAvailable }
            sensor.tell("right-up")
            let count = mine.all.count
            try await requireEventually("more frames") { mine.all.count > count + 10 }
            #expect(isUpright() == false)
            media.video.detach()
            await media.stop()
            withExtendedLifetime(bus) {}
        }

        @Test func `a camera's frames are turned while it goes on`() async throws {
            let folder = TemporaryFolder()
            let camera = try CameraFile.write([], to: folder)
            let media = try media { options in
                options.source = .camera
                options.cameraDevice = camera
                options.rotationType = .appOrientation
                (options.videoWidth, options.videoHeight) = (64, 48)
            }
            try await onCall(media) { _, _, sights in
                try await requireEventually("wide") { sights.all.all.contains { $0.width == 64 && $0.height == 48 } }
                media.setOrientation(.portrait)
                try await requireEventually("upright") {
                    sights.all.all.last.map { ($0.width, $0.height) == (48, 64) } ?? false
                }
                media.setOrientation(.portraitUpsideDown)
                try await requireEventually("live") {
                    media.localCapture?.plan?.node("rotation")?.node.settings["degrees"] == 270
                }
                media.setOrientation(.landscapeRight)
                try await requireEventually("wide again") {
                    sights.all.all.last.map { ($0.width, $0.height) == (64, 48) } ?? false
                }
                #expect(media.localCapture?.plan?.node("rotation") == nil)
                #expect(media.localCapture?.statistics.sources["source"]?.losses == 0)
            }
        }
    }
}
