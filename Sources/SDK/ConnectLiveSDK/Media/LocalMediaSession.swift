internal import GStreamerKit
internal import MediaGraph
internal import MediaNodes
package import RoomClient
internal import RoomProtocol
internal import Synchronization

final class LocalMediaSession: LocalMedia {
    let capture: LocalCapture
    let localVideo: LocalVideoStream
    let localAudio: LocalAudioStream
    private let frameSource: LocalFrameSource
    private let blender = Mutex<CalledBlender?>(nil)

    var video: any LocalVideo { localVideo }
    var audio: any LocalAudio { localAudio }
    var isMirror: Bool { capture.requested.isMirrored }
    var videoSource: (any VideoCapturerSource)? { capture.requested.source == .bypass ? frameSource : nil }
    var audioLevel: Int { capture.audioLevel.map(LevelScale.value) ?? 0 }
    var position: CameraPosition {
        get { LocalMediaOptions(capture.requested).position }
        set {
            if let problem = cameraMissing { return capture.refuse(problem) }
            capture.changeLater { request in
                var options = LocalMediaOptions(request)
                options.turn(to: newValue)
                request = options.request
            }
        }
    }

    init(_ options: LocalMediaOptions, capture: LocalCapture? = nil) {
        let capture = capture ?? LocalCapture(options.request)
        self.capture = capture
        frameSource = LocalFrameSource(capture.frames)
        localVideo = LocalVideoStream(extraValue: options.videoExtraValue, capture: capture)
        localAudio = LocalAudioStream(extraValue: options.audioExtraValue, capture: capture)
    }

    var frameBlender: (any FrameBlender)? {
        get { blender.withLock { $0 }?.blender }
        set {
            let called = newValue.map(CalledBlender.init)
            // Under one lock, so that the function and the request are those of the same blender.
            let former = blender.withLock { blender in
                defer { blender = called }
                if let called {
                    capture.blend.function = { called($0) }
                } else {
                    capture.blend.function = nil
                }
                capture.changeLater { $0.isBlended = called != nil }
                return blender
            }
            withExtendedLifetime(former) {}
        }
    }

    struct Attributes {
        var (video, audio) = (StreamAttributes(), StreamAttributes())
    }

    var attributes: Attributes {
        Attributes(video: localVideo.settings.attributes, audio: localAudio.settings.attributes)
    }

    /// See `StreamSettings.observe`.
    func observeSettings(
        as room: AnyObject, changed: @escaping @Sendable () -> Void, refused: @escaping @Sendable (RoomError) -> Void
    ) {
        for settings in [localVideo.settings, localAudio.settings] {
            settings.observe(as: room, changed: changed, refused: refused)
        }
    }

    func stopObservingSettings(as room: AnyObject) {
        for settings in [localVideo.settings, localAudio.settings] { settings.stopObserving(as: room) }
    }

    deinit {
        let capture = capture
        Task.detached { await capture.stop() }
    }

    func start() async throws { try await Self.told { () throws(RoomError) in try await self.capture.start() } }

    func start(completion: @escaping ((any Error)?) -> Void) { Self.run(completion) { try await self.start() } }

    func stop() async { await capture.stop() }

    func stop(completion: @escaping () -> Void) {
        let callback = Callback(completion)
        Task.detached {
            await self.stop()
            callback()
        }
    }

    /// The error of a change of the camera, for media that has another source.
    private var cameraMissing: RoomError? {
        guard capture.requested.source != .camera else { return nil }
        return RoomError(
            .cameraUnavailable,
            "This local media has no camera to change, because it has another source. Create local media with the source "
                + "camera.")
    }

    func switchCamera(position: CameraPosition, isMirror: Bool) async throws {
        if let cameraMissing { throw ConnectLiveError(cameraMissing) }
        try await update { options in
            options.turn(to: position)
            options.isMirror = isMirror
        }
    }

    func switchCamera(position: CameraPosition, isMirror: Bool, completion: @escaping ((any Error)?) -> Void) {
        Self.run(completion) { try await self.switchCamera(position: position, isMirror: isMirror) }
    }

    func update(_ change: @escaping @Sendable (inout LocalMediaOptions) -> Void) async throws {
        // `audio` and `video` of the options turn streams on and off.
        defer {
            localVideo.requestChanged()
            localAudio.requestChanged()
        }
        try await Self.told { () throws(RoomError) in
            try await self.capture.change { request in
                var options = LocalMediaOptions(request)
                change(&options)
                request = options.request
            }
        }
    }

    /// The participant publishes it no longer.
    func forget(_ owner: String) {
        localVideo.unpublished(owner: owner)
        localAudio.unpublished(owner: owner)
    }

    private static func told(_ body: () async throws(RoomError) -> Void) async throws {
        do throws(RoomError) {
            try await body()
        } catch {
            throw ConnectLiveError(error)
        }
    }

    private static func run(
        _ completion: @escaping ((any Error)?) -> Void, _ body: @escaping @Sendable () async throws -> Void
    ) {
        let callback = Callback(completion)
        Task.detached {
            do {
                try await body()
                callback(nil)
            } catch {
                callback(error)
            }
        }
    }
}

extension LocalMediaOptions {
    /// Chooses the camera of a place, instead of one by its name.
    fileprivate mutating func turn(to position: CameraPosition) {
        cameraDevice = nil
        self.position = position
    }
}

extension LocalMedia {
    /// The capture, for the command line, which checks sources and shows counters.
    package var localCapture: LocalCapture? { (self as? LocalMediaSession)?.capture }
}
