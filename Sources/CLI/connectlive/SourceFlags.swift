internal import ArgumentParser
internal import Cameras
internal import ConnectLiveSDK
internal import GraphFile
internal import MediaGraph
internal import MediaNodes

/// A width and a height in pixels.
struct PictureSize {
    var width: Int
    var height: Int

    /// Reads `WIDTHxHEIGHT`.
    init(_ text: String) throws {
        let parts = text.lowercased().split(separator: "x", omittingEmptySubsequences: false).map { Int($0) ?? 0 }
        // Encoders of 4:2:0 video need even sizes. 16383 is VP8's limit (RFC 6386, section 9.1).
        guard parts.count == 2, parts.allSatisfy({ (16...16383).contains($0) && $0 % 2 == 0 }) else {
            throw ValidationError("Write WIDTHxHEIGHT, each an even number from 16 to 16383, such as 640x480.")
        }
        (width, height) = (parts[0], parts[1])
    }
}

enum CodecFlag: String, ExpressibleByArgument, CaseIterable {
    case vp8
    case h264
    case vp9

    var codec: VideoCodec {
        switch self {
        case .vp8: .vp8
        case .h264: .h264
        case .vp9: .vp9
        }
    }
}

enum DegradationFlag: String, ExpressibleByArgument, CaseIterable {
    case motion
    case detail
    case balanced

    var degradation: Degradation {
        switch self {
        case .motion: .motion
        case .detail: .detail
        case .balanced: .balanced
        }
    }
}

/// The size of captured video and its encoding.
struct EncodingFlags: ParsableArguments {
    @Option(
        help:
            "Video codec: vp8, h264 or vp9 (default: H.264 that the camera delivers or hardware encodes, otherwise vp8)."
    )
    var codec: CodecFlag?

    @Option(
        help: ArgumentHelp(
            "Frame size of even numbers from 16 to 16383, such as 1280x720; not with --file (default: the camera's best, "
                + "up to 1920x1080 of its own H.264 and 1280x720 of what is encoded; 640x480 for the test pattern).",
            valueName: "size"),
        transform: { try PictureSize($0) })
    var size: PictureSize?

    @Option(help: "Frames per second, 1 to 60 (default: up to 30 of the camera; 20 for the test pattern).") var fps:
        Int?

    @Option(
        help: ArgumentHelp(
            "Video bits per second, such as 2M, for which the video is encoded (default: by size and frame rate, see "
                + "docs/bitrates.md)."),
        transform: { try EncodingFlags.bitrate($0) })
    var bitrate: Int?

    @Option(
        help: ArgumentHelp(
            "Property that encoded video keeps on a slow network or machine: motion (frame rate), detail (size) or balanced "
                + "(default: motion).",
            valueName: "quality"))
    var degradation: DegradationFlag?

    @Option(
        help: ArgumentHelp(
            "Sizes in which the video is encoded and sent, 1 to 3: 2 adds half of width and height, 3 also a quarter. Each "
                + "viewer gets the largest one that the network carries (default: 1, which costs least processor time)."
        ))
    var layers: Int?

    func validate() throws {
        if let layers, !(1...VideoLayer.allCases.count).contains(layers) {
            throw ValidationError("--layers must be 1 to 3 sizes, not \(layers).")
        }
        if let fps, !(1...60).contains(fps) {
            throw ValidationError("--fps must be 1 to 60 frames per second, not \(fps).")
        }
    }

    private static func bitrate(_ text: String) throws -> Int {
        let range = 30_000...50_000_000
        let contract = SettingContract("bitrate", .integer(range), unit: "bit/s", "Video bitrate")
        guard case .integer(let bitrate) = contract.value(written: text), range.contains(bitrate) else {
            throw ValidationError("Write 30000 to 50000000 bits per second, such as 800k or 2M.")
        }
        return bitrate
    }

    func apply(to options: inout LocalMediaOptions) {
        options.videoCodec = codec?.codec
        options.videoBitrate = bitrate
        options.videoDegradation = degradation?.degradation
        if let layers { options.videoLayers = layers }
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

    @Option(
        help: ArgumentHelp(
            "Publish a camera: auto, a name of 'devices' or 'devices bind', /dev/video0, libcamera, libcamera:NAME, or "
                + "fixture:FILE for a recorded one. Without a source: auto.",
            valueName: "camera"))
    var camera: String?

    @Option(
        help: ArgumentHelp(
            "Controls to set whenever the camera opens, such as brightness=90,auto_exposure=1; 'devices' lists them.",
            valueName: "controls"))
    var controls: String?

    @Flag(help: "Publish moving bars with a frame number, and a tone.") var testPattern = false

    @Option(help: "Microphone for a camera: auto, none, or one that 'devices' lists (default: auto).") var mic: String?

    /// The option that chose the source.
    var name: String { file != nil ? "--file" : testPattern ? "--test-pattern" : "--camera" }

    /// The camera to publish. Nil for another source.
    var chosenCamera: String? { file == nil && !testPattern ? camera ?? "auto" : nil }

    func validate() throws {
        guard [file != nil, camera != nil, testPattern].count(where: { $0 }) <= 1 else {
            throw ValidationError("Pass only one of --file, --camera and --test-pattern.")
        }
        do throws(MediaError) {
            _ = try ControlValues(controls ?? "")
        } catch {
            throw ValidationError(error.message)
        }
    }

    func apply(to options: inout LocalMediaOptions) {
        if let file {
            options.source = .file
            options.fileName = file
        } else if let chosenCamera {
            options.source = .camera
            // Before the device: it would take one with the name of a position for that position.
            options.position = .unspecified
            options.cameraDevice = chosenCamera == "auto" ? nil : chosenCamera
            options.cameraControls = controls
            // Nobody sees himself here, and the viewers want to read what they see.
            options.isMirror = false
        } else {
            options.usesTestPattern = true
        }
        options.microphone =
            switch mic {
            case nil, "auto": .automatic
            case "none": .none
            case let device?: .device(device)
            }
    }
}
