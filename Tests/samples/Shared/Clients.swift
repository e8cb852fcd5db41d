import ConnectLiveSDK
import Foundation
import Testing

/// A model of the main actor that is a delegate by an isolated conformance (Swift 6.2).
@MainActor
final class IsolatedModel {
    var events: [String] = []
}

extension IsolatedModel: @MainActor RoomDelegate {
    func onConnected(participantIds: [String]) { events.append("connected") }

    func onDisconnected(reason: DisconnectReason) { events.append("disconnected") }

    func onError(code: Int, message: String, isCritical: Bool) { events.append("error \(code)") }

    func onParticipantEntered(remoteParticipant: RemoteParticipant) { events.append("entered") }

    func onParticipantLeft(remoteParticipant: RemoteParticipant) { events.append("left") }
}

/// A capturer without a camera, as an application for iOS has one.
final class Capturer {
    static var config: Config {
        var config = Config()
        config.mediaOptions.source = .bypass
        config.mediaOptions.hasAudio = false
        config.mediaOptions.develop(option: .fps, value: 15)
        config.mediaOptions.develop(option: .videoStreamSubType, value: StreamSubType.single)
        config.mediaOptions.develop(option: .screenCast, value: true)
        return config
    }

    private let source: VideoCapturerSource

    init(_ source: VideoCapturerSource) { self.source = source }

    func capture(at time: CMTime, _ orientation: UIInterfaceOrientation) {
        guard let frame: CVPixelBuffer = PixelBuffer(width: 640, height: 480, format: .nv12) else { return }
        source.didCapturePixelBuffer(frame, time: time, orientation: orientation)
        let sample: CMSampleBuffer = SampleBuffer(imageBuffer: frame, presentationTimeStamp: time)
        if let image = CMSampleBufferGetImageBuffer(sample) {
            source.didCapturePixelBuffer(
                image, time: CMSampleBufferGetPresentationTimeStamp(sample), orientation: .landscapeRight)
        }
        source.didCaptureSampleBuffer(sample, orientation: orientation)
    }
}

/// Draws into the frames of local media.
final class Stamp: FrameBlender {
    func blend(frame: CVPixelBuffer) -> CVPixelBuffer? {
        frame.draw { $0.draw(barCode: 1) }
        return frame
    }
}

/// The applications of both language modes. No test has a server.
@MainActor @Suite(.timeLimit(.minutes(1))) struct ClientTests {
    init() { CameraNames.isolate() }

    /// Waits on the main actor until a condition holds.
    private func wait(_ condition: () -> Bool) async throws {
        let end = ContinuousClock.now + .seconds(20)
        while !condition() {
            try #require(ContinuousClock.now < end, "the callbacks came")
            try await Task.sleep(for: .milliseconds(2))
        }
    }

    @Test func `a class of the main actor is a delegate by an isolated conformance`() async throws {
        let model = IsolatedModel()
        let room = ConnectLive.createRoom(config: nil, delegate: model)
        room.connect(roomId: "not a name")
        try await wait { model.events.count == 2 }
        #expect(model.events == ["error 1301", "disconnected"])
    }

    @Test func `a class of the main actor is a delegate by a conformance from before concurrency`() async throws {
        let guide = Guide()
        guide.s18CreateRoom(guide)
        guide.room?.connect(roomId: "not a name")
        try await wait { !guide.lines.isEmpty }
        #expect(guide.lines == ["ended by 1301"])
        #expect(!guide.latestErrorMessage.isEmpty)
    }

    @Test func `a completion changes state of the main actor`() async throws {
        let readme = Readme()
        let room = ConnectLive.createRoom(config: nil, delegate: FiveMethodDelegate())
        let results = await readme.s26And27Subscribe(room)
        #expect(results.count { if case .failure = $0 { true } else { false } } == 2)
        try await wait { readme.lines == ["failed", "failed"] }
    }

    @available(*, deprecated)
    @Test func `statistics of a room that never connected are empty, in all forms`() async throws {
        let readme = Readme()
        let room = ConnectLive.createRoom(config: nil, delegate: FiveMethodDelegate())
        let counts = await readme.s30Statistics(room)
        #expect(counts == [0, 0, 0, 0, 0])
        try await wait { readme.lines.count == 6 }
        #expect(Set(readme.lines) == ["0 objects"])
        let guide = Guide()
        guide.s30Statistics(room)
        try await wait { guide.lines.count == 2 }
        #expect(Set(guide.lines) == ["0 local objects", "0 remote objects"])
    }

    @Test func `a sign-in is awaited, with and without its result`() async {
        let (code, message) = await ConnectLive.signIn(
            serviceId: "SERVICE", serviceSecret: "SECRET", endpoint: "nowhere:")
        #expect(code != 0 && !message.isEmpty)
        await ConnectLive.signIn(serviceId: "SERVICE", token: "", endpoint: "nowhere:")
    }

    @Test func `a sign-in that is awaited calls back, too, and the callback changes state of the main actor`()
        async throws
    {
        let model = IsolatedModel()
        await ConnectLive.signIn(
            serviceId: "SERVICE", serviceSecret: "SECRET", endpoint: "nowhere:",
            callback: { code, _ in model.events.append("secret \(code != 0)") })
        await ConnectLive.signIn(serviceId: "SERVICE", token: "", endpoint: "nowhere:") { code, _ in
            model.events.append("token \(code != 0)")
        }
        try await wait { model.events == ["secret true", "token true"] }
    }

    @Test func `the guide's calls on local media and views act without a server`() async {
        let guide = Guide()
        guide.s9Options()
        guide.s16Receivers()
        guide.config.mediaOptions.source = .file
        guide.config.mediaOptions.fileName = "/nonexistent/sample.mov"
        guide.s12CreateMedia()
        let views = [guide.s6View(), guide.s7Subclass()]
        for view in views { guide.s13Attach(view) }
        #expect(views.map(\.isAssignedStream) == [true, true] && guide.media?.video.viewId == views[0].uuid)
        guide.s14Detach()
        #expect(views.map(\.isAssignedStream) == [false, false])
        await guide.s15Start().value
    }

    @Test func `a subclass of the view has initializers of its own, and is told of activity`() {
        let view = LabelledView()
        var isActive = false
        view.onActive = { isActive = $0 }
        #expect(view.label == "code" && view.videoContentMode == .scaleAspectFill && !isActive)
        view.frame = CGRect(x: 0, y: 0, width: 160, height: 90)
        view.isHidden = true
        #expect(Set([view, LabelledView()]).count == 2)
    }

    @Test func `the guide's calls on a room act without a server`() async {
        let guide = Guide()
        let delegate = FiveMethodDelegate()
        guide.s18CreateRoom(delegate)
        guide.s20Publish()
        #expect(guide.lines == ["not published"] && guide.s42Error() == 1311)
        #expect(guide.s21Participants() == [""] && guide.s22LocalStreams().isEmpty && guide.s23RemoteStreams().isEmpty)
        guide.lines = []
        await guide.s24Subscribe(to: 7)
        await guide.s26Unsubscribe(from: 7)
        #expect(guide.lines.isEmpty)
        guide.s31Disconnect()
    }

    @Test func `a capturer passes frames on a thread of its own, and a blender draws into them`() throws {
        let blender = Stamp()
        let media = try #require(ConnectLive.createLocalMedia(config: Capturer.config))
        media.frameBlender = blender
        let capturer = Capturer(try #require(media.videoSource))
        capturer.capture(at: CMTime(value: 1, timescale: 20), .portrait)
        let frame = try #require(PixelBuffer(width: 64, height: 48))
        #expect(blender.blend(frame: frame) === frame)
        #expect(CVPixelBufferGetWidth(frame) == 64 && CVPixelBufferGetHeight(frame) == 48)
        #expect(media.frameBlender === blender)
        media.frameBlender = nil
        #expect(ConnectLive.createLocalMedia(config: Config())?.videoSource == nil)
    }

    @Test func `times count from their clock`() {
        #expect(CMTimeGetSeconds(CMTimeMake(value: 3, timescale: 2)) == 1.5)
        #expect(CMTime(seconds: 0.25, preferredTimescale: 600) == CMTime(value: 150, timescale: 600))
        #expect(CMTime.zero.isValid && !CMTime.invalid.isValid && CMTime.invalid.seconds.isNaN)
        #expect(!CMTime(value: 1, timescale: 0).isValid && CMTime(value: -1, timescale: 1) == .zero)
        #expect(CMTime(seconds: .infinity, preferredTimescale: 1) == .invalid)
    }

    @Test func `a switch over the closed enumerations of iOS is exhaustive`() {
        func name(_ source: CapturerType) -> String {
            switch source {
            case .camera: "camera"
            case .bypass: "bypass"
            case .file: "file"
            }
        }
        func name(_ position: AVCaptureDevice.Position) -> String {
            switch position {
            case .unspecified: "unspecified"
            case .back: "back"
            case .front: "front"
            @unknown default: "another"
            }
        }
        func name(_ orientation: UIInterfaceOrientation) -> String {
            switch orientation {
            case .unknown: "unknown"
            case .portrait: "portrait"
            case .portraitUpsideDown: "upside down"
            case .landscapeLeft: "left"
            case .landscapeRight: "right"
            @unknown default: "another"
            }
        }
        func name(_ type: CameraRotationType) -> String {
            switch type {
            case .notAvailable: "none"
            case .deviceOrientation: "device"
            case .appOrientation: "app"
            }
        }
        #expect(name(Config().mediaOptions.source) == "camera" && name(Config().mediaOptions.position) == "front")
        #expect(name(.portrait) == "portrait" && name(Config().mediaOptions.rotationType) == "none")
    }

    @Test func `an application tells errors apart by code, and reads what was wrong with an exchange`() {
        func text(_ error: ConnectLiveError) -> String {
            switch error {
            case .error(let code, let message): "\(code) \(message)"
            case .provision(let code, _, let underlying):
                switch underlying as? HttpSessionError {
                case .unknown, .empty, nil: "\(code)"
                case .requestError(let cause): "\(code) \(cause.localizedDescription)"
                case .httpStatusError(let status, let body): "\(code) \(status) \(body)"
                }
            }
        }
        #expect(text(.error(1301, "No.")) == "1301 No.")
        #expect(text(.provision(1902, "No.", HttpSessionError.httpStatusError(503, "busy"))) == "1902 503 busy")
    }

    @Test func `the camera's place and the definition are set before publishing`() throws {
        let media = try #require(ConnectLive.createLocalMedia(config: Config()))
        media.position = .back
        media.video.hd = true
        #expect(media.position == .back && media.video.hd)
        let room = ConnectLive.createRoom(config: nil, delegate: FiveMethodDelegate())
        room.restartIce()
        #expect(room.remoteParticipants.values.allSatisfy { !$0.isVideoSubscribed })
    }

    @Test func `an application asks for access before it captures`() async {
        for type in [AVMediaType.video, .audio] {
            let isGranted = await AVCaptureDevice.requestAccess(for: type)
            #expect((AVCaptureDevice.authorizationStatus(for: type) == .authorized) == isGranted)
        }
        let interval: CFTimeInterval = 0.5
        #expect(interval == 0.5)
        let told = await withCheckedContinuation { continuation in
            AVCaptureDevice.requestAccess(for: .video) { continuation.resume(returning: $0) }
        }
        #expect(told == (AVCaptureDevice.authorizationStatus(for: .video) == .authorized))
    }
}
