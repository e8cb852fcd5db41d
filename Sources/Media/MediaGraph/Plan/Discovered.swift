/// A format that a camera offers, in one frame size.
public struct CameraFormat: Sendable, Codable, Hashable {
    /// GStreamer's name of the pixel format, such as `YUY2`; `MJPG` for JPEG, `H264` for H.264.
    public let pixelFormat: String
    public let width: Int
    public let height: Int
    /// The frame rates of this format, in frames per second.
    public package(set) var framesPerSecond: [Double]

    public init(pixelFormat: String, width: Int, height: Int, framesPerSecond: [Double]) {
        self.pixelFormat = pixelFormat
        self.width = width
        self.height = height
        self.framesPerSecond = framesPerSecond
    }
}

/// A video capture device with at least one format.
public struct CameraDevice: Sendable, Codable, Hashable {
    /// Path of the device, such as `/dev/video0`.
    public let path: String
    public let name: String
    public let formats: [CameraFormat]

    public init(path: String, name: String, formats: [CameraFormat]) {
        self.path = path
        self.name = name
        self.formats = formats
    }
}

/// A chosen camera, and one sentence with the reason for each rejected one.
public typealias CameraChoice = (camera: CameraDevice, passedOver: [String])

/// A microphone or loudspeaker.
public struct AudioDevice: Sendable, Codable, Hashable {
    /// The name in the sound system, which may change when devices are plugged in.
    public let identifier: String
    /// The name to show.
    public let name: String
    public let isDefault: Bool
    /// The name to write down, for the `device` of a microphone or speaker node: it means the same device after a reboot and
    /// in another order of plugging, such as `serial:7C3F`.
    public let lastingName: String
    /// Others that may mean the device, such as its USB port or its model.
    public let otherNames: [String]

    public init(
        identifier: String, name: String, isDefault: Bool, lastingName: String? = nil, otherNames: [String] = []
    ) {
        self.identifier = identifier
        self.name = name
        self.isDefault = isDefault
        self.lastingName = lastingName ?? identifier
        self.otherNames = otherNames
    }
}

/// The microphones and loudspeakers of a sound system.
public struct SoundDevices: Sendable, Hashable {
    public var system: SoundSystem
    public var microphones: [AudioDevice]
    public var speakers: [AudioDevice]

    public init(_ system: SoundSystem, microphones: [AudioDevice] = [], speakers: [AudioDevice] = []) {
        self.system = system
        self.microphones = microphones
        self.speakers = speakers
    }
}

/// The sound system of a microphone or loudspeaker.
public enum SoundSystem: String, Sendable, Hashable, Codable, CaseIterable {
    case pulse
    case pipewire
    case alsa
}

/// The streams of a media file.
public struct MediaFileInfo: Sendable, Codable, Hashable {
    public let path: String
    /// Width of the first video stream in pixels; 0 without video.
    public let width: Int
    public let height: Int
    /// 0 if the file does not state it.
    public let framesPerSecond: Double
    public let hasAudio: Bool
    /// In seconds; 0 if the file does not state it.
    public let duration: Double
    /// The encodings of its streams, as in formats; nil for those that have to be decoded.
    public let videoEncoding: String?
    public let audioEncoding: String?

    public init(
        path: String, width: Int, height: Int, framesPerSecond: Double, hasAudio: Bool, duration: Double,
        videoEncoding: String? = nil, audioEncoding: String? = nil
    ) {
        self.path = path
        self.width = width
        self.height = height
        self.framesPerSecond = framesPerSecond
        self.hasAudio = hasAudio
        self.duration = duration
        (self.videoEncoding, self.audioEncoding) = (videoEncoding, audioEncoding)
    }

    public var hasVideo: Bool { width > 0 }
}
