import MediaGraph

/// The known encoders by codec, in order of preference: hardware first, and among hardware, elements for one chip
/// before general interfaces. The last one of each codec is in every Debian.
///
/// Names and values of properties are those of GStreamer 1.22: see the sources of its plugins nvcodec, va, vaapi, qsv,
/// msdk, video4linux2 and omx, and of Rockchip's plugin for mpp.
struct VideoEncoderElement: Sendable {
    /// How an element's bitrate is set.
    enum Rate: Sendable {
        case bitsPerSecond(String)
        case kilobitsPerSecond(String)
        /// A structure of V4L2 controls in `extra-controls`, which also has the keyframe interval.
        case controls
    }

    /// How a keyframe is requested from an element.
    enum Keyframes: Sendable {
        /// By GStreamer's event.
        case onEvent
        /// Not possible (av1enc before 1.24): it is restarted, which takes a millisecond.
        case byRestart
    }

    /// The requested encoding, as far as known before frames arrive.
    struct Target: Sendable {
        var keyframeInterval: Int
        /// In bits per second. Nil if the table decides when frames arrive.
        var bitrate: Int?
    }

    let factory: String
    let isHardware: Bool
    /// The required pixel format.
    let pixelFormat: String
    let rate: Rate
    let keyframes: Keyframes
    /// Whether its rate control needs timestamps finer than the frame rate. av1enc 1.22 rounds them to whole frames and
    /// takes uneven ones for half the rate, which was seen to double the bitrate.
    var needsFineTime: Bool { factory == "av1enc" }
    let properties: @Sendable (Target) -> [String: SettingValue]

    /// An encoder in hardware has the pixel format that it needs.
    private init(
        _ factory: String, hardware pixelFormat: String? = nil, _ rate: Rate, keyframes: Keyframes = .onEvent,
        _ properties: @escaping @Sendable (Target) -> [String: SettingValue]
    ) {
        self.factory = factory
        isHardware = pixelFormat != nil
        self.pixelFormat = pixelFormat ?? "I420"
        self.rate = rate
        self.keyframes = keyframes
        self.properties = properties
    }

    /// The value of the element's bitrate property. Nil for V4L2 controls.
    func rateProperty(_ bitrate: Int, keyframeInterval: Int) -> (name: String, value: SettingValue) {
        switch rate {
        case .bitsPerSecond(let name): (name, .integer(bitrate))
        case .kilobitsPerSecond(let name): (name, .integer(max(bitrate / 1000, 1)))
        case .controls: ("extra-controls", .text(Self.controls(bitrate, keyframeInterval)))
        }
    }

    private static func controls(_ bitrate: Int?, _ keyframeInterval: Int) -> String {
        let rate = bitrate.map { ",video_bitrate=(int)\($0)" } ?? ""
        return "controls,video_bitrate_mode=(int)1,repeat_sequence_header=(int)1,"
            + "video_gop_size=(int)\(keyframeInterval),h264_i_frame_period=(int)\(keyframeInterval)" + rate
    }

    // MARK: The tables

    static func all(for codec: EncodedVideo) -> [VideoEncoderElement] {
        switch codec {
        case .vp8: vp8
        case .vp9: vp9
        case .h264: h264
        case .av1: av1
        }
    }

    private static let h264: [VideoEncoderElement] = [
        nvidia("nvh264enc"), mpp("mpph264enc"), quickSync("qsvh264enc"), va("vah264enc"), va("vah264lpenc"),
        vaapi("vaapih264enc"), msdk("msdkh264enc"), omx("omxh264enc"), v4l2("v4l2h264enc"),
        VideoEncoderElement("x264enc", .kilobitsPerSecond("bitrate")) { target in
            [
                "tune": "zerolatency", "speed-preset": "superfast", "byte-stream": true, "bframes": 0,
                "key-int-max": .integer(target.keyframeInterval), "threads": 1, "aud": false,
                "vbv-buf-capacity": 600, "option-string": "scenecut=0",
            ]
        },
        VideoEncoderElement("openh264enc", .bitsPerSecond("bitrate")) { target in
            [
                "rate-control": "bitrate", "complexity": "low", "usage-type": "camera", "multi-thread": 1,
                "enable-frame-skip": false, "scene-change-detection": false,
                "gop-size": .integer(target.keyframeInterval),
            ]
        },
    ]

    private static let vp8: [VideoEncoderElement] = [
        mpp("mppvp8enc"), vaapi("vaapivp8enc"), omx("omxvp8enc"), v4l2("v4l2vp8enc"),
        // Realtime: one pass, no frame delayed or dropped, quantizers and buffers as in browsers.
        VideoEncoderElement("vp8enc", .bitsPerSecond("target-bitrate")) { target in
            realtime(target).merging([
                "cpu-used": -8, "max-intra-bitrate": 600, "token-partitions": "2",
            ]) { $1 }
        },
    ]

    private static let vp9: [VideoEncoderElement] = [
        quickSync("qsvvp9enc"), vaapi("vaapivp9enc"), msdk("msdkvp9enc"), v4l2("v4l2vp9enc"),
        // At speed 8 a frame of 640x480 needs 3 ms of one core; with GStreamer's defaults, 200 ms.
        VideoEncoderElement("vp9enc", .bitsPerSecond("target-bitrate")) { target in
            realtime(target).merging([
                "cpu-used": 8, "aq-mode": "cyclic-refresh", "row-mt": false, "auto-alt-ref": false,
                "frame-parallel-decoding": false,
            ]) { $1 }
        },
    ]

    private static let av1: [VideoEncoderElement] = [
        nvidia("nvav1enc"), quickSync("qsvav1enc"), va("vaav1enc"), msdk("msdkav1enc"),
        // At speed 9 a frame of 640x480 needs 7 ms of one core; with GStreamer's defaults, 3 s. The largest quantizer
        // has to be set: without it the library fails an assertion.
        VideoEncoderElement("av1enc", .kilobitsPerSecond("target-bitrate"), keyframes: .byRestart) { target in
            [
                "usage-profile": "realtime", "cpu-used": 9, "threads": 1, "row-mt": false, "lag-in-frames": 0,
                "end-usage": "cbr", "keyframe-max-dist": .integer(target.keyframeInterval), "min-quantizer": 2,
                "max-quantizer": 56, "undershoot-pct": 100, "overshoot-pct": 15, "buf-initial-sz": 500,
                "buf-optimal-sz": 600, "buf-sz": 1000,
            ]
        },
    ]

    /// Properties of libvpx for both of its codecs.
    private static func realtime(_ target: Target) -> [String: SettingValue] {
        [
            "deadline": 1, "threads": 1, "end-usage": "cbr", "lag-in-frames": 0, "dropframe-threshold": 0,
            "error-resilient": 0, "keyframe-max-dist": .integer(target.keyframeInterval), "min-quantizer": 2,
            "max-quantizer": 56, "undershoot": 100, "overshoot": 15, "buffer-initial-size": 500,
            "buffer-optimal-size": 600, "buffer-size": 1000, "static-threshold": 1,
        ]
    }

    // MARK: Families of hardware

    private static func nvidia(_ factory: String) -> VideoEncoderElement {
        VideoEncoderElement(factory, hardware: "I420", .kilobitsPerSecond("bitrate")) { target in
            [
                "preset": "low-latency-hp", "rc-mode": "cbr", "zerolatency": true,
                "gop-size": .integer(target.keyframeInterval),
            ]
        }
    }

    private static func quickSync(_ factory: String) -> VideoEncoderElement {
        VideoEncoderElement(factory, hardware: "NV12", .kilobitsPerSecond("bitrate")) { target in
            let properties: [String: SettingValue] = [
                "rate-control": "cbr", "low-latency": true, "gop-size": .integer(target.keyframeInterval),
            ]
            return factory == "qsvh264enc" ? properties.merging(["b-frames": 0]) { $1 } : properties
        }
    }

    private static func va(_ factory: String) -> VideoEncoderElement {
        VideoEncoderElement(factory, hardware: "NV12", .kilobitsPerSecond("bitrate")) { target in
            let properties: [String: SettingValue] = [
                "rate-control": "cbr", "key-int-max": .integer(min(target.keyframeInterval, 1024)), "target-usage": 6,
            ]
            return factory == "vaav1enc" ? properties : properties.merging(["b-frames": 0]) { $1 }
        }
    }

    private static func vaapi(_ factory: String) -> VideoEncoderElement {
        VideoEncoderElement(factory, hardware: "NV12", .kilobitsPerSecond("bitrate")) { target in
            let properties: [String: SettingValue] = [
                "rate-control": "cbr", "quality-level": 6, "keyframe-period": .integer(target.keyframeInterval),
            ]
            return factory == "vaapih264enc" ? properties.merging(["max-bframes": 0]) { $1 } : properties
        }
    }

    private static func msdk(_ factory: String) -> VideoEncoderElement {
        VideoEncoderElement(factory, hardware: "NV12", .kilobitsPerSecond("bitrate")) { target in
            [
                "rate-control": "cbr", "target-usage": 7, "b-frames": 0, "async-depth": 1,
                "gop-size": .integer(target.keyframeInterval),
            ]
        }
    }

    private static func mpp(_ factory: String) -> VideoEncoderElement {
        VideoEncoderElement(factory, hardware: "NV12", .bitsPerSecond("bps")) { target in
            ["rc-mode": "cbr", "header-mode": "each-idr", "gop": .integer(target.keyframeInterval)]
        }
    }

    private static func omx(_ factory: String) -> VideoEncoderElement {
        VideoEncoderElement(factory, hardware: "I420", .bitsPerSecond("target-bitrate")) { target in
            let properties: [String: SettingValue] = ["control-rate": "constant"]
            guard factory == "omxh264enc" else { return properties }
            return properties.merging([
                "b-frames": 0, "interval-intraframes": .integer(target.keyframeInterval), "inline-header": true,
            ]) { $1 }
        }
    }

    private static func v4l2(_ factory: String) -> VideoEncoderElement {
        VideoEncoderElement(factory, hardware: "I420", .controls) { target in
            ["extra-controls": .text(controls(target.bitrate, target.keyframeInterval))]
        }
    }
}

/// A video codec that our nodes encode. The raw value is the encoding's name in formats.
enum EncodedVideo: String, Sendable, CaseIterable {
    case vp8
    case vp9
    case h264
    case av1

    var title: String {
        switch self {
        case .vp8: "VP8"
        case .vp9: "VP9"
        case .h264: "H.264"
        case .av1: "AV1"
        }
    }

    /// The caps that the encoder's output is limited to; nil if it has no alternatives.
    var outputCaps: String? {
        switch self {
        case .h264: "video/x-h264,profile=constrained-baseline,stream-format=byte-stream,alignment=au"
        case .vp8, .vp9, .av1: nil
        }
    }

    /// The bitrate relative to VP8 for the same quality. Rounded figures from the codecs' own comparisons at realtime
    /// speeds, where they save less than at their best.
    private var economy: Double {
        switch self {
        case .vp8, .h264: 1
        case .vp9: 0.75
        case .av1: 0.65
        }
    }

    /// The bitrate if the node sets none.
    func defaultBitrate(width: Int, height: Int, framesPerSecond: Double) -> Bitrate {
        let figure = VideoBitrate.default(width: width, height: height, framesPerSecond: framesPerSecond)
        return .kilobitsPerSecond(Int(Double(figure.kilobitsPerSecond) * economy))
    }

    /// The same for a planned format; nil when its size is not known.
    func defaultBitrate(for format: MediaFormat) -> Bitrate? {
        guard let width = format.width, let height = format.height else { return nil }
        return defaultBitrate(width: width, height: height, framesPerSecond: format.framesPerSecond ?? 30)
    }

    /// The node that encodes with this codec.
    var encoder: NodeImplementation {
        NodeImplementation(
            kind: VideoEncoderNode.kind(of: self),
            plan: { (request) throws(MediaError) in try VideoEncoderNode.plan(request, codec: self) },
            activate: { (instance) throws(MediaError) in try VideoEncoderNode.activate(instance, codec: self) })
    }
}
