import Foundation
import RoomClient
import TestFixtures
import TestSupport
import Testing

@testable import ConnectLiveSDK

@Suite struct OptionsTests {
    private func request(_ change: (inout LocalMediaOptions) -> Void) -> MediaRequest {
        var options = Config().mediaOptions
        change(&options)
        return options.request
    }

    @Test func `options become a request`() {
        #expect(request { _ in }.position == "front")
        #expect(request { $0.position = .back }.position == "back")
        #expect(request { $0.position = .unspecified }.position == nil)
        #expect(!request { $0.video = false }.isVideoActive && !request { $0.audio = false }.isAudioActive)
        #expect(request { $0.source = .file }.source == .file)
        #expect(request { $0.usesTestPattern = true }.source == .testPattern)
        #expect(request { _ in }.fileFolders.last == Bundle.main.executableURL?.deletingLastPathComponent().path)
    }

    @Test func `options of bypass, rotation and development become a request`() {
        #expect(request { $0.source = .bypass }.source == .bypass)
        #expect(request { $0.rotationType = .deviceOrientation }.rotationType == .device)
        var options = Config().mediaOptions
        #expect(options.rotationType == .notAvailable)
        options.rotationType = .appOrientation
        options.source = .bypass
        #expect(options.rotationType == .appOrientation && options.source == .bypass)
        options.develop(option: .fps, value: 12)
        options.develop(option: .videoStreamSubType, value: StreamSubType.multiple)
        #expect(options.videoFPS == 12 && options.videoLayers == 3 && options.request.unusable.isEmpty)
        options.develop(option: .videoStreamSubType, value: "single")
        options.develop(option: .screenCast, value: true)
        #expect(options.videoLayers == 1 && options.videoDegradation == .detail)
        #expect(options.request.isHighDefinition == true)
        options.develop(option: .screenCast, value: false)
        #expect(options.videoDegradation == nil && options.request.isHighDefinition == nil)
        #expect(
            LocalMediaOptions.DevelopOption.allCases.map(\.rawValue) == ["fps", "videoStreamSubType", "screenCast"])
    }

    @Test(
        arguments: [
            (LocalMediaOptions.DevelopOption.fps, "twenty"), (.videoStreamSubType, "some"), (.screenCast, "yes"),
        ])
    func `a value of another type makes the start fail, until another value is set`(
        option: LocalMediaOptions.DevelopOption, value: String
    ) async throws {
        var config = Config()
        config.mediaOptions.usesTestPattern = true
        (config.mediaOptions.videoWidth, config.mediaOptions.videoHeight) = (64, 64)
        config.mediaOptions.develop(option: option, value: value)
        let media = try #require(ConnectLive.createLocalMedia(config: config))
        let error = await #expect(throws: ConnectLiveError.self) { try await media.start() }
        #expect(error?.code == 2021 && error?.localizedDescription.contains(option.rawValue) == true)
        try await media.update { options in
            switch option {
            case .fps: options.develop(option: option, value: 10)
            case .videoStreamSubType: options.develop(option: option, value: StreamSubType.none)
            case .screenCast: options.develop(option: option, value: false)
            }
        }
        try await media.start()
        await media.stop()
    }

    @Test func `the defaults are video, audio and the front camera`() {
        let options = Config().mediaOptions
        #expect(options.video && options.audio && options.position == .front && !options.usesTestPattern)
    }

    @Test func `the test pattern reads as a file, and another source ends it`() {
        var options = Config().mediaOptions
        options.usesTestPattern = true
        #expect(options.source == .file && options.usesTestPattern)
        options.source = .file
        #expect(options.source == .file && !options.usesTestPattern)
        options.usesTestPattern = true
        options.usesTestPattern = false
        #expect(options.source == .camera)
        options.source = .file
        options.usesTestPattern = false
        #expect(options.source == .file)
    }

    @Test func `a place and a camera that was named as one replace each other`() {
        var options = Config().mediaOptions
        options.cameraDevice = "back"
        #expect(options.position == .back)
        options.position = .front
        #expect(options.position == .front && options.cameraDevice == nil)
        options.cameraDevice = "serial:7C3F"
        options.position = .back
        #expect(options.position == .unspecified && options.cameraDevice == "serial:7C3F")
    }

    @Test func `positions have the raw values of iOS, and the names of bindings`() {
        let all: [CameraPosition] = [.unspecified, .back, .front]
        #expect(all.map(\.rawValue) == [0, 1, 2] && all.map(\.name) == ["", "back", "front"])
        #expect(all.map { CameraPosition(named: $0.name) } == all)
    }

    @Test func `the names of earlier versions mean the present ones`() {
        let old: any OldNames = EarlierVersion()
        var options = Config().mediaOptions
        #expect(old.size(of: options) == [640, 480])
        old.setSize(of: &options, 320, 240)
        #expect(options.videoWidth == 320 && options.videoHeight == 240)
    }

    @Test func `an ICE server is read and written as JSON, and made with a name`() throws {
        let server = IceServer(urls: ["turn:host:3478"], name: "user", credential: "password")
        #expect(server.name == "user")
        let copy = try JSONDecoder().decode(IceServer.self, from: try JSONEncoder().encode(server))
        #expect(copy == server)
        let plain = try JSONDecoder().decode(IceServer.self, from: Data(#"{"urls": ["stun:host"]}"#.utf8))
        #expect(plain == IceServer(urls: ["stun:host"]))
        let browser = #"{"urls": ["turn:host:3478"], "username": "user", "credential": "password"}"#
        #expect(try JSONDecoder().decode(IceServer.self, from: Data(browser.utf8)) == server)
    }
}

/// Calls of deprecated names, without their warnings.
private protocol OldNames {
    func size(of options: LocalMediaOptions) -> [Int]
    func setSize(of options: inout LocalMediaOptions, _ width: Int, _ height: Int)
    func stop(_ media: any LocalMedia)
}

private struct EarlierVersion: OldNames {
    @available(*, deprecated)
    func size(of options: LocalMediaOptions) -> [Int] { [options.cameraCapturewWidth, options.cameraCaptureHeight] }

    @available(*, deprecated)
    func setSize(of options: inout LocalMediaOptions, _ width: Int, _ height: Int) {
        options.cameraCapturewWidth = width
        options.cameraCaptureHeight = height
    }

    @available(*, deprecated)
    func stop(_ media: any LocalMedia) { media.stop() }
}

extension SDKTests {
    @Suite(.timeLimit(.minutes(1)))
    struct Options {
        private let folder = TemporaryFolder()

        private func camera(_ change: (inout LocalMediaOptions) -> Void) throws -> any LocalMedia {
            CameraNames.isolate()
            var config = silent()
            (config.mediaOptions.videoWidth, config.mediaOptions.videoHeight) = (64, 48)
            config.mediaOptions.microphone = .none
            change(&config.mediaOptions)
            return try #require(ConnectLive.createLocalMedia(config: config))
        }

        @Test func `the front camera is the one that the user has bound to that name`() async throws {
            try CameraNames.bind("front", to: try CameraFile.write([], to: folder))
            defer { CameraNames.unbind() }
            let media = try camera { _ in }
            try await media.start()
            #expect(media.position == .front)
            await media.stop()
        }

        @Test func `a stop without waiting frees the camera soon`() async throws {
            let file = try CameraFile.write([], to: folder)
            let media = try camera { $0.cameraDevice = file }
            try await media.start()
            let old: any OldNames = EarlierVersion()
            old.stop(media)
            try await requireEventually("stopped") { media.localCapture?.isRunning == false }
        }

        @Test func `video that is not active at first waits for the others, and can be made active`() async throws {
            try await onStage { _ in
                let (viewer, publisher) = (Client(), Client())
                _ = try await viewer.join("options")
                _ = try await publisher.join("options")
                let file = try CameraFile.write([], to: folder)
                let media = try camera {
                    $0.cameraDevice = file
                    $0.video = false
                }
                try publisher.room.publish(media)
                let video = try await viewer.listener.waitForVideo()
                #expect(!media.video.active && media.audio.active)
                try await requireEventually("the state") { video.state == .waiting(reason: "video off") }
                media.video.active = true
                try await requireEventually("the state") { video.state == .live }
                try await viewer.leave()
                try await publisher.leave()
                await media.stop()
            }
        }
    }
}
