public import MediaGraph
internal import Synchronization

/// A video codec that our nodes encode.
struct EncodedVideo: Sendable {
    /// The encoding's name in formats.
    let name: String
    /// The bitrate relative to VP8 for the same quality. Rounded figures from the codecs' own comparisons at realtime
    /// speeds, where they save less than at their best.
    var economy = 1.0
    /// The profile that the encoder's output is limited to; nil if it has no alternatives.
    var profile: String?
    /// The known encoders, in order of preference: hardware first, and among hardware, elements for one chip before
    /// general interfaces. The last one is in every Debian.
    let elements: [VideoEncoderElement]

    var title: String { Encoding.named(name)?.title ?? name }

    var needsEvenSize: Bool { Encoding.named(name)?.needsEvenSize ?? false }

    /// The pixel formats that one of the elements takes, I420 first.
    var pixelFormats: [String] {
        elements.flatMap(\.pixelFormats).reduce(into: ["I420"]) { if !$0.contains($1) { $0.append($1) } }
    }

    /// The bitrate for frames of this format if the node sets none. Nil when their size is not known.
    func defaultBitrate(for format: MediaFormat) -> Bitrate? {
        guard let width = format.width, let height = format.height else { return nil }
        let rate = format.framesPerSecond ?? 30
        let figure = VideoBitrate.default(width: width, height: height, framesPerSecond: rate)
        return .kilobitsPerSecond(Int(Double(figure.kilobitsPerSecond) * economy))
    }

    // MARK: The table

    static let all = [vp8, vp9, h264, av1]

    static let vp8 = EncodedVideo(
        name: "vp8",
        elements: [
            .mpp("mppvp8enc"), .vaapi("vaapivp8enc"),
            VideoEncoderElement(
                factory: "omxvp8enc", isHardware: true, rate: .bitsPerSecond("target-bitrate"),
                fixed: ["control-rate": "constant"]),
            .v4l2("v4l2vp8enc"),
            // Realtime: one pass, no frame delayed or dropped, quantizers and buffers as in browsers.
            .libvpx("vp8enc", ["cpu-used": -8, "max-intra-bitrate": 600, "token-partitions": "2"]),
        ])

    static let vp9 = EncodedVideo(
        name: "vp9", economy: 0.75,
        elements: [
            .quickSync("qsvvp9enc"), .vaapi("vaapivp9enc"), .msdk("msdkvp9enc"), .v4l2("v4l2vp9enc"),
            // At speed 8 a frame of 640x480 needs 3 ms of one core; with GStreamer's defaults, 200 ms.
            .libvpx(
                "vp9enc",
                [
                    "cpu-used": 8, "aq-mode": "cyclic-refresh", "row-mt": false, "auto-alt-ref": false,
                    "frame-parallel-decoding": false,
                ]),
        ])

    static let h264 = EncodedVideo(
        name: "h264", profile: "constrained-baseline",
        elements: [
            .nvidia("nvh264enc"), .mpp("mpph264enc"), .quickSync("qsvh264enc", ["b-frames": 0]),
            .va("vah264enc", ["b-frames": 0]), .va("vah264lpenc", ["b-frames": 0]),
            .vaapi("vaapih264enc", ["max-bframes": 0]), .msdk("msdkh264enc"),
            VideoEncoderElement(
                factory: "omxh264enc", isHardware: true, rate: .bitsPerSecond("target-bitrate"),
                keyframes: "interval-intraframes",
                fixed: ["control-rate": "constant", "b-frames": 0, "inline-header": true]),
            .v4l2("v4l2h264enc"),
            VideoEncoderElement(
                factory: "x264enc", pixelFormats: ["I420", "NV12", "YV12"], rate: .kilobitsPerSecond("bitrate"),
                keyframes: "key-int-max",
                fixed: [
                    "tune": "zerolatency", "speed-preset": "superfast", "byte-stream": true, "bframes": 0,
                    "threads": 1, "aud": false, "vbv-buf-capacity": 600, "option-string": "scenecut=0",
                ]),
            VideoEncoderElement(
                factory: "openh264enc", rate: .bitsPerSecond("bitrate"), keyframes: "gop-size",
                fixed: [
                    "rate-control": "bitrate", "complexity": "low", "usage-type": "camera", "multi-thread": 1,
                    "enable-frame-skip": false, "scene-change-detection": false,
                ]),
        ])

    static let av1 = EncodedVideo(
        name: "av1", economy: 0.65,
        elements: [
            .nvidia("nvav1enc"), .quickSync("qsvav1enc"), .va("vaav1enc"), .msdk("msdkav1enc"),
            // At speed 9 a frame of 640x480 needs 7 ms of one core; with GStreamer's defaults, 3 s. The largest quantizer
            // has to be set: without it the library fails an assertion.
            VideoEncoderElement(
                factory: "av1enc", rate: .kilobitsPerSecond("target-bitrate"), keyframes: "keyframe-max-dist",
                fixed: [
                    "usage-profile": "realtime", "cpu-used": 9, "threads": 1, "row-mt": false, "lag-in-frames": 0,
                    "end-usage": "cbr", "min-quantizer": 2, "max-quantizer": 56, "undershoot-pct": 100,
                    "overshoot-pct": 15, "buf-initial-sz": 500, "buf-optimal-sz": 600, "buf-sz": 1000,
                ]),
        ])
}

/// An element that encodes video.
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

    private(set) var factory = ""
    /// The pixel formats that it takes, best first.
    private(set) var pixelFormats = ["I420"]
    private(set) var isHardware = false
    let rate: Rate
    /// The property with the longest interval between keyframes.
    private(set) var keyframes: String?
    private(set) var longestInterval = Int.max
    private(set) var fixed: [String: SettingValue] = [:]

    /// Whether a keyframe cannot be requested by GStreamer's event (av1enc before 1.24): the element is restarted, which
    /// takes a millisecond.
    var restartsForKeyframe: Bool { factory == "av1enc" }
    /// Whether its rate control needs timestamps finer than the frame rate. av1enc 1.22 rounds them to whole frames and
    /// takes uneven ones for half the rate, which was seen to double the bitrate.
    var needsFineTime: Bool { factory == "av1enc" }

    /// Whether its rate control takes a gap between frames for a lower frame rate: its timestamps have a constant rate.
    var needsConstantRate: Bool { factory == "vp8enc" || factory == "vp9enc" }

    /// Whether its rate control counts frames instead of time: the bitrate is for the frame rate of the format, however many
    /// frames come.
    var countsFrames: Bool { factory == "x264enc" || needsConstantRate }

    /// The property with the most bits of a keyframe in percent of a frame's, and its value if no frames are skipped.
    var keyframeLimit: (name: String, percent: Int)? {
        fixed["max-intra-bitrate"]?.integer.map { ("max-intra-bitrate", $0) }
    }

    /// All properties but the bitrate.
    func properties(keyframeInterval: Int) -> [String: SettingValue] {
        var properties = fixed
        if let keyframes { properties[keyframes] = .integer(min(keyframeInterval, longestInterval)) }
        return properties
    }

    /// The property with the bitrate, in the element's unit.
    func rateProperty(_ bitrate: Int, keyframeInterval: Int) -> (name: String, value: SettingValue) {
        switch rate {
        case .bitsPerSecond(let name): (name, .integer(bitrate))
        case .kilobitsPerSecond(let name): (name, .integer(max(bitrate / 1000, 1)))
        case .controls:
            (
                "extra-controls",
                .text(
                    "controls,video_bitrate_mode=(int)1,repeat_sequence_header=(int)1,"
                        + "video_gop_size=(int)\(keyframeInterval),h264_i_frame_period=(int)\(keyframeInterval),"
                        + "video_bitrate=(int)\(bitrate)")
            )
        }
    }

    // MARK: Families

    /// The element `factory` of this family, with properties of its own.
    fileprivate func callAsFunction(_ factory: String, _ own: [String: SettingValue] = [:]) -> VideoEncoderElement {
        var element = self
        element.factory = factory
        element.fixed.merge(own) { $1 }
        return element
    }

    fileprivate static let libvpx = VideoEncoderElement(
        rate: .bitsPerSecond("target-bitrate"), keyframes: "keyframe-max-dist",
        fixed: [
            "deadline": 1, "threads": 1, "end-usage": "cbr", "lag-in-frames": 0, "dropframe-threshold": 0,
            "error-resilient": 0, "min-quantizer": 2, "max-quantizer": 56, "undershoot": 100, "overshoot": 15,
            "buffer-initial-size": 500, "buffer-optimal-size": 600, "buffer-size": 1000, "static-threshold": 1,
        ])
    fileprivate static let nvidia = VideoEncoderElement(
        pixelFormats: ["I420", "NV12"], isHardware: true, rate: .kilobitsPerSecond("bitrate"), keyframes: "gop-size",
        fixed: ["preset": "low-latency-hp", "rc-mode": "cbr", "zerolatency": true])
    fileprivate static let quickSync = VideoEncoderElement(
        pixelFormats: ["NV12"], isHardware: true, rate: .kilobitsPerSecond("bitrate"), keyframes: "gop-size",
        fixed: ["rate-control": "cbr", "low-latency": true])
    fileprivate static let va = VideoEncoderElement(
        pixelFormats: ["NV12"], isHardware: true, rate: .kilobitsPerSecond("bitrate"), keyframes: "key-int-max",
        longestInterval: 1024,
        fixed: ["rate-control": "cbr", "target-usage": 6])
    fileprivate static let vaapi = VideoEncoderElement(
        pixelFormats: ["NV12"], isHardware: true, rate: .kilobitsPerSecond("bitrate"), keyframes: "keyframe-period",
        fixed: ["rate-control": "cbr", "quality-level": 6])
    fileprivate static let msdk = VideoEncoderElement(
        pixelFormats: ["NV12", "I420", "YUY2", "UYVY"], isHardware: true, rate: .kilobitsPerSecond("bitrate"),
        keyframes: "gop-size",
        fixed: ["rate-control": "cbr", "target-usage": 7, "b-frames": 0, "async-depth": 1])
    fileprivate static let mpp = VideoEncoderElement(
        pixelFormats: ["NV12", "I420", "YUY2", "UYVY"], isHardware: true, rate: .bitsPerSecond("bps"), keyframes: "gop",
        fixed: ["rc-mode": "cbr", "header-mode": "each-idr"])
    /// All drivers of boards take NV12; some, such as the Raspberry Pi's, I420 too.
    fileprivate static let v4l2 = VideoEncoderElement(
        pixelFormats: ["NV12", "I420"], isHardware: true, rate: .controls)
}

/// A video encoder at a constant bitrate. Its kind is `vp8-encoder`, `h264-encoder`, `vp9-encoder` or `av1-encoder`.
public struct VideoEncoder: MediaNode {
    /// The codecs in which a node encodes.
    public enum Codec: String, Sendable, Hashable, CaseIterable {
        /// VP8 (RFC 6386).
        case vp8
        /// Constrained baseline.
        case h264
        /// Profile 0.
        case vp9
        /// For recordings.
        case av1

        fileprivate var row: EncodedVideo {
            switch self {
            case .vp8: .vp8
            case .h264: .h264
            case .vp9: .vp9
            case .av1: .av1
            }
        }
    }

    public var handle: NodeHandle

    /// An encoder. Nil values are the defaults, which `connectlive nodes vp8-encoder` lists.
    ///
    /// - Parameters:
    ///   - bitrate: nil for that of `VideoBitrate`, for the size and rate that arrive.
    ///   - keyframeInterval: the most frames between keyframes without a request.
    ///   - element: the GStreamer element to use; nil for the first usable one, hardware first.
    ///   - degradation: the property that the video keeps when the network carries less or the machine is too slow; nil for `detail` of
    ///     screens and `motion` of others. Matters only if all consumers send to peers.
    ///   - layer: the layer of a published video; nil for the whole size. Others are encoded only while a room wants them.
    ///     `Publish` with layers has encoders of its own.
    public init(
        _ codec: Codec = .vp8, bitrate: Bitrate? = nil, keyframeInterval: Int? = nil, element: String? = nil,
        degradation: Degradation? = nil, layer: VideoLayer? = nil
    ) {
        handle = NodeHandle(
            VideoEncoderNode.kind(of: codec.row),
            [
                "bitrate": bitrate?.bitsPerSecond, "keyframe-interval": keyframeInterval, "element": element,
                "degradation": degradation?.rawValue, "layer": layer?.rawValue,
            ])
    }

    /// Changes the bitrate from the next frame on.
    ///
    /// - Throws: `graph.invalid` for a bitrate out of range; `node.not-running`.
    public func setBitrate(_ bitrate: Bitrate) async throws(MediaError) {
        try await change("bitrate", to: bitrate.bitsPerSecond)
    }

    /// Changes the property that the video keeps when the network carries less or the machine is too slow.
    ///
    /// - Throws: `node.not-running`.
    public func setDegradation(_ degradation: Degradation) async throws(MediaError) {
        try await change("degradation", to: degradation.rawValue)
    }

    /// Makes the next frame a keyframe. Does not block.
    ///
    /// - Throws: `node.not-running`.
    public func requestKeyframe() throws(MediaError) {
        let (pipeline, name) = try running()
        try pipeline.requestKeyframe(name)
    }

    /// The frames that were encoded and dropped so far.
    ///
    /// - Throws: `node.not-running`.
    public var statistics: MediaStatistics.VideoEncoder {
        get throws(MediaError) { try figures(\.encoders) ?? MediaStatistics.VideoEncoder() }
    }
}

extension Node {
    /// A video encoder. Without a bitrate, `VideoBitrate` determines it for the size and rate that arrive.
    package static func videoEncoder(
        _ name: String? = nil, codec: VideoCodec = .vp8, bitrate: Bitrate? = nil, keyframeInterval: Int? = nil
    ) -> Node {
        Node(
            VideoEncoderNode.kind(of: (VideoEncoder.Codec(rawValue: codec.rawValue) ?? .vp8).row), name,
            ["bitrate": bitrate?.bitsPerSecond, "keyframe-interval": keyframeInterval])
    }
}

extension VideoCodec {
    /// The codecs that hardware of this machine was seen to encode. An edit plans while that hardware is in use, and keeps
    /// its codec.
    private static let seen = Mutex<Set<VideoCodec>>([])

    /// The codec of video that has to be encoded for a room if nobody has asked for one: H.264 if hardware encodes it, or
    /// else VP8. Blocks for milliseconds.
    package static func preferred(on environment: any PlanEnvironment) -> VideoCodec {
        h264.hasHardwareEncoder(on: environment) ? .h264 : .vp8
    }

    private func hasHardwareEncoder(on environment: any PlanEnvironment) -> Bool {
        let isThisMachine = environment is SystemEnvironment
        if isThisMachine, Self.seen.withLock({ $0.contains(self) }) { return true }
        let row = EncodedVideo.all.first { $0.name == rawValue }
        let isThere = (row?.elements ?? []).contains { element in
            element.isHardware && environment.hasElement(element.factory) && environment.canOpen(element.factory)
        }
        if isThisMachine, isThere { Self.seen.withLock { _ = $0.insert(self) } }
        return isThere
    }
}
