/// A picture format that a camera offers, in one size.
public struct CameraFormat: Sendable, Codable, Hashable {
    /// GStreamer's name of the pixel format, such as `YUY2`; `MJPG` for JPEG pictures, `H264` for encoded ones.
    public let pixelFormat: String
    public let width: Int
    public let height: Int
    /// The rates on offer, in frames per second.
    public let framesPerSecond: [Double]

    public init(pixelFormat: String, width: Int, height: Int, framesPerSecond: [Double]) {
        self.pixelFormat = pixelFormat
        self.width = width
        self.height = height
        self.framesPerSecond = framesPerSecond
    }
}

/// A device that captures video and lists a format.
public struct CameraDevice: Sendable, Codable, Hashable {
    /// Path of the device, such as `/dev/video0`.
    public let path: String
    public let name: String
    /// A path that stays the same when other cameras come and go, if there is one (in `/dev/v4l`).
    public let stablePath: String?
    public let formats: [CameraFormat]

    public init(path: String, name: String, stablePath: String?, formats: [CameraFormat]) {
        self.path = path
        self.name = name
        self.stablePath = stablePath
        self.formats = formats
    }
}

/// Something of a camera that can be set, such as its brightness.
public struct CameraControl: Sendable, Codable, Hashable {
    /// In small letters and underscores, such as `auto_exposure`; what the driver calls it, brought into that form.
    public let name: String
    public let minimum: Int
    public let maximum: Int
    /// The values of a menu, which may have gaps; nil for a number.
    public let choices: [Int]?
    public let isReadOnly: Bool

    public init(name: String, minimum: Int, maximum: Int, choices: [Int]? = nil, isReadOnly: Bool = false) {
        self.name = name
        self.minimum = minimum
        self.maximum = maximum
        self.choices = choices
        self.isReadOnly = isReadOnly
    }

    public func takes(_ value: Int) -> Bool {
        !isReadOnly && value >= minimum && value <= maximum && choices.map { $0.contains(value) } ?? true
    }
}

/// A microphone or a speaker.
public struct AudioDevice: Sendable, Codable, Hashable {
    /// What a microphone node takes as its device.
    public let identifier: String
    public let name: String
    public let isDefault: Bool

    public init(identifier: String, name: String, isDefault: Bool) {
        self.identifier = identifier
        self.name = name
        self.isDefault = isDefault
    }
}

/// Everything that is plugged in.
public struct DeviceList: Sendable, Codable, Hashable {
    public let cameras: [CameraDevice]
    public let microphones: [AudioDevice]
    public let speakers: [AudioDevice]

    public init(cameras: [CameraDevice], microphones: [AudioDevice], speakers: [AudioDevice]) {
        self.cameras = cameras
        self.microphones = microphones
        self.speakers = speakers
    }
}

/// What a media file holds.
public struct MediaFileInfo: Sendable, Codable, Hashable {
    public let path: String
    /// Size of the first stream of pictures, in pixels; 0 when there are none.
    public let width: Int
    public let height: Int
    /// 0 when the file does not tell.
    public let framesPerSecond: Double
    public let hasAudio: Bool
    /// In seconds; 0 when the file does not tell.
    public let duration: Double

    public init(path: String, width: Int, height: Int, framesPerSecond: Double, hasAudio: Bool, duration: Double) {
        self.path = path
        self.width = width
        self.height = height
        self.framesPerSecond = framesPerSecond
        self.hasAudio = hasAudio
        self.duration = duration
    }

    public var hasVideo: Bool { width > 0 }
}
