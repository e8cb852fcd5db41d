/// A format that a camera offers, in one frame size.
public struct CameraFormat: Sendable, Codable, Hashable {
    /// GStreamer's name of the pixel format, such as `YUY2`; `MJPG` for JPEG, `H264` for H.264.
    public let pixelFormat: String
    /// In pixels.
    public let width: Int
    /// In pixels.
    public let height: Int
    /// The frame rates of this format, in frames per second.
    public package(set) var framesPerSecond: [Double]

    /// A format of this size in pixels.
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
    /// The name to show.
    public let name: String
    /// The formats that the camera offers.
    public let formats: [CameraFormat]

    /// A camera, such as a test's.
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
    /// Whether the sound system uses the device unless another one is named.
    public let isDefault: Bool
    /// The name to write down, for the `device` of a microphone or speaker node: it means the same device after a reboot and
    /// in another order of plugging, such as `serial:7C3F`.
    public let lastingName: String
    /// Others that may mean the device, such as its USB port or its model.
    public let otherNames: [String]
    /// Empty if they are not known.
    package var ports: [SoundPort] = []

    private enum CodingKeys: String, CodingKey { case identifier, name, isDefault, lastingName, otherNames }

    /// The port in use. Nil if it is not known.
    package var port: SoundPort? { ports.first { $0.isActive } }

    /// A device, such as a test's.
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
    /// The sound system that was asked.
    public var system: SoundSystem
    /// The devices that record.
    public var microphones: [AudioDevice]
    /// The devices that play.
    public var speakers: [AudioDevice]

    /// The devices of a system.
    public init(_ system: SoundSystem, microphones: [AudioDevice] = [], speakers: [AudioDevice] = []) {
        self.system = system
        self.microphones = microphones
        self.speakers = speakers
    }
}

/// The sound system of a microphone or loudspeaker.
public enum SoundSystem: String, Sendable, Hashable, Codable, CaseIterable {
    /// PulseAudio, or a server that speaks its protocol.
    case pulse
    /// PipeWire by its own protocol.
    case pipewire
    /// The kernel's sound cards without a server.
    case alsa
}

/// The streams of a media file.
public struct MediaFileInfo: Sendable, Codable, Hashable {
    /// The path of the file.
    public let path: String
    /// Width of the first video stream in pixels; 0 without video.
    public let width: Int
    /// Height of the first video stream in pixels; 0 without video.
    public let height: Int
    /// 0 if the file does not state it.
    public let framesPerSecond: Double
    /// Whether the file has an audio stream.
    public let hasAudio: Bool
    /// In seconds; 0 if the file does not state it.
    public let duration: Double
    /// The encodings of its streams, as in formats; nil for those that have to be decoded.
    public let videoEncoding: String?
    /// The encoding of the audio, as in formats; nil if it has to be decoded.
    public let audioEncoding: String?

    /// A file with these streams, such as a test's.
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

    /// Whether the file has a video stream.
    public var hasVideo: Bool { width > 0 }
}
