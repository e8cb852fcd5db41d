internal import ArgumentParser
internal import ConnectLiveSDK
internal import MediaGraph
internal import MediaNodes

/// `WIDTHxHEIGHT` in pixels.
struct PictureSize: ExpressibleByArgument, CustomStringConvertible {
    var width: Int
    var height: Int

    init(width: Int, height: Int) {
        self.width = width
        self.height = height
    }

    init?(argument: String) {
        let parts = argument.lowercased().split(separator: "x", omittingEmptySubsequences: false).map { Int($0) }
        guard parts.count == 2, let width = parts[0], let height = parts[1] else { return nil }
        // Encoders of 4:2:0 video need even sizes. 16383 is VP8's limit (RFC 6386, section 9.1).
        guard [width, height].allSatisfy({ (16...16383).contains($0) && $0 % 2 == 0 }) else { return nil }
        self.init(width: width, height: height)
    }

    var description: String { "\(width)x\(height)" }
}

enum CodecFlag: String, ExpressibleByArgument, CaseIterable {
    case vp8
    case h264

    var codec: VideoCodec {
        switch self {
        case .vp8: .vp8
        case .h264: .h264
        }
    }
}

/// The size of captured video and its encoding.
struct EncodingFlags: ParsableArguments {
    @Option(help: "Video codec: vp8 or h264.") var codec = CodecFlag.vp8

    @Option(help: "Frame size of the camera or test pattern, such as 1280x720 (default: 640x480).")
    var size: PictureSize?

    @Option(help: "Frames per second of the camera or test pattern, 1 to 60 (default: 20).") var fps: Int?

    @Option(help: "Video bits per second (default: by size and frame rate, see docs/bitrates.md).") var bitrate: Int?

    func validate() throws {
        if let fps, !(1...60).contains(fps) {
            throw ValidationError("--fps must be 1 to 60 frames per second, not \(fps).")
        }
        if let bitrate, !(30_000...50_000_000).contains(bitrate) {
            throw ValidationError("--bitrate must be 30000 to 50000000 bits per second, not \(bitrate).")
        }
    }

    func apply(to options: inout LocalMediaOptions) {
        options.videoCodec = codec.codec
        options.videoBitrate = bitrate
        if let size {
            options.videoWidth = size.width
            options.videoHeight = size.height
        }
        if let fps { options.videoFPS = fps }
    }
}

/// The source to publish.
struct SourceFlags: ParsableArguments {
    @Option(help: "Publish this file in a loop, at its own size and frame rate.") var file: String?

    @Option(help: "Publish a camera: auto, or a device such as /dev/video0.") var camera: String?

    @Flag(help: "Publish moving bars with a frame number, and a tone.") var testPattern = false

    @Option(help: "Microphone for a camera: auto, none, or one that 'devices' lists (default: auto).") var mic: String?

    /// The option that chose the source.
    var name: String { file != nil ? "--file" : camera != nil ? "--camera" : "--test-pattern" }

    func validate() throws {
        let given = [file != nil, camera != nil, testPattern].count { $0 }
        guard given == 1 else {
            throw ValidationError(
                "Choose exactly one of --file, --camera and --test-pattern, not \(given == 0 ? "none" : "\(given)").")
        }
    }

    func apply(to options: inout LocalMediaOptions) {
        if let file {
            options.source = .file
            options.fileName = file
        } else if let camera {
            options.source = .camera
            options.cameraDevice = camera == "auto" ? nil : camera
        } else {
            options.source = .testPattern
        }
        options.microphone =
            switch mic {
            case nil, "auto": .automatic
            case "none": .none
            case let device?: .device(device)
            }
    }
}
