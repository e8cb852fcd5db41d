internal import Foundation
package import MediaGraph
internal import MediaNodes

/// The local media that a participant requests: sources, encoding, and whether somebody looks at it. A graph is derived from
/// it.
package struct MediaRequest: Sendable, Equatable {
    package enum Source: Sendable, Equatable {
        case camera
        /// Video and audio of `file`, at its own size and frame rate.
        case file
        /// Bars with a bar-coded frame number, and a tone.
        case testPattern
        /// Raw frames of another process, of any size, that connects to `feedSocket`. They have no audio, and the source fails
        /// when that process disconnects.
        case feed
        /// Frames that the program passes to `LocalCapture.frames`.
        case bypass
    }

    /// The direction that decides how a camera's frames are turned.
    package enum RotationType: Sendable, Equatable {
        /// None: frames stay as the camera gives them.
        case none
        /// That of the machine, as its sensor reports it.
        case device
        /// That of the program's interface, as the program states it.
        case app
    }

    /// The audio source for a camera and for frames of the program. Files and the test pattern have their own audio.
    package enum Microphone: Sendable, Equatable {
        /// The default microphone. Without one, the video alone, with a warning.
        case automatic
        case none
        case device(String)
    }

    package var source: Source
    /// A name of `connectlive devices`, a path such as `/dev/video0`, or nil for the first free camera.
    package var camera: String?
    /// The name of a place, such as `front`, whose camera is used if `camera` is nil.
    package var position: String?
    /// The camera that takes over while `camera` is away.
    package var failover: String?
    /// Controls of the camera by their V4L2 names, in the order in which to set them, such as
    /// `auto_exposure=1,exposure_time_absolute=157`. Nil sets none. They change while the camera is open.
    package var cameraControls: String?
    /// Whether capturing starts without the camera and a named microphone, and shows them when they are plugged in. Audio
    /// alone also waits for an automatic one.
    package var waitsForDevices = false
    /// Whether a missing camera is an error also beside audio.
    package var needsCamera = false
    /// The path of a file. A relative one is looked for in the current folder, then in `fileFolders`.
    package var file = ""
    /// More folders to look for `file` in.
    package var fileFolders: [String] = []
    package var isLooping = true
    /// The path of the socket on which a `feed` listens.
    package var feedSocket = ""
    /// The test pattern ends after so many frames; 0 means without end.
    package var patternFrames = 0
    package var microphone = Microphone.automatic
    package var hasVideo = true
    package var hasAudio = true
    /// Whether the video is captured at present. Its stream stays published.
    package var isVideoActive = true
    package var isAudioActive = true
    /// Size for a camera, the test pattern and a feed, whose frames are scaled to it with borders, and the largest one for frames of
    /// the program. A file keeps its own.
    package var width = 640
    package var height = 480
    /// Nil means 20. Then the camera's own encoding may be faster.
    package var framesPerSecond: Double?
    /// Mirrors the camera's frames. Its own encoding then does not pass through.
    package var isMirrored = true
    /// Whether the camera's frames are turned upright. Those of its own encoding then do not pass through while they are turned.
    package var rotationType = RotationType.none
    /// How far the machine is turned clockwise, in degrees, as its sensor and as the program state it: 0, 90, 180 or 270.
    package var (deviceTurn, appTurn) = (0, 0)
    /// Whether a function of the program blends the frames.
    package var isBlended = false
    /// Options that cannot be fulfilled, by their names: one sentence each.
    package var unusable: [String: String] = [:]
    /// Nil means the one that costs least: H.264 that the source delivers passes through, everything else becomes H.264 if
    /// hardware encodes it, or else VP8. While a room has the video, it keeps its codec, and a request for another one is
    /// refused.
    package var codec: VideoCodec?
    /// Nil means the default of `VideoBitrate`, or that of the source's own encoding. With a bitrate, nothing passes through.
    package var bitrate: Bitrate?
    /// Whether the video gets the bits of high definition. Nil means those of its size. Without a `bitrate` and a `degradation`,
    /// another value than that of the size doubles or halves the default of `VideoBitrate`, and with true, video keeps its detail.
    package var isHighDefinition: Bool?
    /// The property that encoded video keeps when the network carries less or the machine is too slow. Nil means the frame rate.
    package var degradation: Degradation?
    /// The sizes in which the video is encoded and sent: 2 adds half of width and height, 3 also a quarter.
    package var layers = 1
    /// Whether somebody looks at the captured frames.
    package var isPreviewed = false
    /// How the audio of the microphone is processed. Nil if the machine lacks the means. `LocalCapture` sets it.
    package var voice: VoiceProcessing?
    /// How the process may use microphones. `LocalCapture` sets it.
    package var capturing = SoundUse.Capturing()

    package init(source: Source) { self.source = source }

    package static func camera(_ name: String?) -> MediaRequest {
        var request = MediaRequest(source: .camera)
        request.camera = name
        return request
    }

    package static func file(_ path: String, isLooping: Bool = true) -> MediaRequest {
        var request = MediaRequest(source: .file)
        (request.file, request.isLooping) = (path, isLooping)
        return request
    }

    package static func testPattern(frames: Int = 0) -> MediaRequest {
        var request = MediaRequest(source: .testPattern)
        request.patternFrames = frames
        return request
    }
}

extension MediaRequest {
    /// The size and the rate of video.
    package struct VideoShape: Sendable, Equatable {
        package var width, height: Int
        package var framesPerSecond: Double

        /// Whether the default of `VideoBitrate` is for high definition: from 1280x720 on.
        package var isHighDefinition: Bool { pixelCount(width, height) >= 1280 * 720 }
    }

    /// The media that the sources of a request have.
    package struct Contents: Sendable, Equatable {
        package var hasVideo: Bool
        package var hasAudio: Bool
        /// The size and the rate of a file's video. Nil for that of the request.
        package var shape: VideoShape?
        /// Whether the video of a file has an odd width or height, which H.264 cannot be encoded in.
        package var hasOddSize = false
        /// The camera that was chosen by its place. Nil for that of the request.
        package var camera: String?
        /// The path at which the file was found. Nil for that of the request.
        package var file: String?
        /// One sentence about media that is left out, for the user.
        package var notice: String?

        package init(hasVideo: Bool, hasAudio: Bool) {
            (self.hasVideo, self.hasAudio) = (hasVideo, hasAudio)
        }
    }

    /// The part of the request that decides about its contents.
    struct Origin: Equatable {
        var source: Source
        var camera: String?
        var position: String?
        var file: String
        var fileFolders: [String]
        var microphone: Microphone
        var hasVideo: Bool
        var hasAudio: Bool
        var waitsForDevices: Bool
        var needsCamera: Bool
    }

    var origin: Origin {
        Origin(
            source: source, camera: camera, position: position, file: file, fileFolders: fileFolders,
            microphone: microphone, hasVideo: hasVideo, hasAudio: hasAudio, waitsForDevices: waitsForDevices,
            needsCamera: needsCamera)
    }

    /// Checks that file, camera and microphone exist, without opening them for capture. A camera that may come late is not
    /// checked. Blocks.
    ///
    /// - Parameters:
    ///   - isMicrophoneThere: whether the machine has a microphone.
    ///   - cameraAt: the camera of a place. Nil for the first one.
    func inspect(
        isMicrophoneThere: () -> Bool = { Devices.firstMicrophone() != nil },
        cameraAt: (String) throws(MediaError) -> String? = Devices.camera(at:)
    ) throws(MediaError) -> Contents {
        switch source {
        case .file:
            let path = foundFile()
            let info = try MediaFile.inspect(path)
            var contents = Contents(hasVideo: hasVideo, hasAudio: hasAudio && info.hasAudio)
            contents.file = path
            contents.shape = VideoShape(
                width: info.width, height: info.height,
                framesPerSecond: info.framesPerSecond > 0 ? info.framesPerSecond : 30)
            contents.hasOddSize = [info.width, info.height].contains { $0 % 2 != 0 }
            return contents
        case .testPattern: return Contents(hasVideo: hasVideo, hasAudio: hasAudio)
        case .feed: return Contents(hasVideo: hasVideo, hasAudio: false)
        case .camera, .bypass:
            let isLeftOut = microphone == .automatic && hasAudio && !waitsForMicrophone && !isMicrophoneThere()
            var contents = Contents(hasVideo: hasVideo, hasAudio: hasAudio && microphone != .none && !isLeftOut)
            if hasVideo, isLeftOut {
                contents.notice = Self.noMicrophone
            }
            guard source == .camera else { return contents }
            if hasVideo, camera == nil, let position { contents.camera = try cameraAt(position) }
            if hasVideo, mustHaveCamera(contents) {
                try Devices.checkCamera(camera ?? contents.camera ?? "auto")
            }
            return contents
        }
    }

    /// The notice about audio that is left out.
    package static let noMicrophone =
        "There is no microphone, so only the video is published. To wait for a microphone, name it."

    /// The path at which the file is, or else the file itself, for the error.
    func foundFile(isThere: (String) -> Bool = { FileManager.default.fileExists(atPath: $0) }) -> String {
        guard !file.hasPrefix("/") else { return file }
        return ([file] + fileFolders.map { "\($0)/\(file)" }).first(where: isThere) ?? file
    }

    /// Whether an automatic microphone may come late: that is for audio alone. A machine with a camera often has none.
    private var waitsForMicrophone: Bool { waitsForDevices && !hasVideo }

    /// Whether a start without the camera fails. With audio, a camera that is missing costs the video alone, unless it is
    /// needed.
    func mustHaveCamera(_ contents: Contents) -> Bool {
        source == .camera && !waitsForDevices && (needsCamera || !contents.hasAudio)
    }
}
