/// Nodes that change raw media.
extension NodeKind {
    static let processors: [NodeKind] = [
        scale, convert, rate, crop, mirror, rotate, overlay, mixer, frameFunction, volume, level, audioMixer,
        echoCancel,
    ]

    // MARK: Pictures

    private static let picturesIn = [Port("in", [.rawVideo], encodings: ["I420"])]
    private static let picturesOut = [Port("out", [.rawVideo], encodings: ["I420"])]

    public static let scale = NodeKind(
        "scale", .processor, "Changes the frame size or frame rate", inputs: picturesIn, outputs: picturesOut,
        settings: [
            SettingContract("width", .integer(16...8192), unit: "pixels", "Width (default: unchanged)")
                .example(640),
            SettingContract("height", .integer(16...8192), unit: "pixels", "Height (default: unchanged)"),
            SettingContract("fps", .number(1...240), unit: "frames/s", "Frame rate (default: unchanged)"),
        ])

    /// The formats that GStreamer 1.22 converts to, the usual ones first.
    private static let pixelFormats = """
        I420 NV12 YV12 NV21 YUY2 UYVY YVYU VYUY RGB BGR RGBA BGRA ARGB ABGR RGBx BGRx xRGB xBGR GRAY8 AYUV VUYA \
        Y444 Y42B Y41B A420 NV16 NV24 NV61 P010_10LE I420_10LE I422_10LE Y444_10LE GBR GBRA RGBP BGRP RGB16 BGR16 \
        RGB15 BGR15 RGB8P YVU9 YUV9 IYU1 IYU2 v308 v210 v216 r210 UYVP Y210 Y410 AV12 GRAY16_LE GRAY16_BE GRAY10_LE32 \
        A420_10LE A422_10LE A444_10LE GBR_10LE GBRA_10LE I420_12LE I422_12LE Y444_12LE GBR_12LE GBRA_12LE Y212_LE \
        Y412_LE P012_LE P016_LE Y444_16LE RGB10A2_LE BGR10A2_LE ARGB64 AYUV64 ARGB64_LE RGBA64_LE BGRA64_LE ABGR64_LE \
        P010_10BE I420_10BE I422_10BE Y444_10BE A420_10BE A422_10BE A444_10BE GBR_10BE GBRA_10BE I420_12BE I422_12BE \
        Y444_12BE GBR_12BE GBRA_12BE Y212_BE Y412_BE P012_BE P016_BE Y444_16BE ARGB64_BE RGBA64_BE BGRA64_BE \
        ABGR64_BE NV16_10LE32 NV12_10LE32 NV12_10LE40 NV12_10BE_8L128 NV12_8L128 NV12_64Z32 NV12_4L4 NV12_32L32 \
        NV12_16L32S
        """.split(separator: " ").map(String.init)

    public static let convert = NodeKind(
        "convert", .processor, "Changes the pixel format",
        inputs: [Port("in", [.rawVideo])], outputs: [Port("out", [.rawVideo])],
        settings: [
            SettingContract(
                "pixel-format", .choice(pixelFormats), default: "I420", "GStreamer's name of the output format")
        ])

    public static let rate = NodeKind(
        "rate", .processor, "Changes the frame rate", inputs: picturesIn, outputs: picturesOut,
        settings: [
            SettingContract("fps", .number(1...240), isRequired: true, unit: "frames/s", "Output frame rate")
                .example(15),
            SettingContract(
                "repeat", .flag,
                "Whether to repeat frames if too few arrive, at one frame of latency (default: only if the input rate "
                    + "is lower or unknown)"),
        ])

    public static let crop = NodeKind(
        "crop", .processor, "Crops frames at their edges, or to an aspect ratio",
        inputs: picturesIn, outputs: picturesOut,
        settings: ["left", "right", "top", "bottom"].map {
            SettingContract(
                $0, .integer(0...8192), default: 0, isChangeable: true, unit: "pixels", "Pixels to remove at the \($0)")
        } + [
            SettingContract("shape", .text, "Aspect ratio; the middle is kept")
                .written(#"(?:[1-9][0-9]{0,3}|10000):(?:[1-9][0-9]{0,3}|10000)"#, "width to height, such as 16:9")
                .excluding(["left", "right", "top", "bottom"])
        ])

    public static let mirror = NodeKind(
        "mirror", .processor, "Mirrors frames horizontally or vertically", inputs: picturesIn, outputs: picturesOut,
        settings: [
            SettingContract(
                "direction", .choice(["horizontal", "vertical", "none"]), default: "horizontal", isChangeable: true,
                "Whether to swap left and right, or top and bottom")
        ])

    public static let rotate = NodeKind(
        "rotate", .processor, "Rotates frames clockwise", inputs: picturesIn, outputs: picturesOut,
        settings: [
            SettingContract(
                "degrees", .integer(0...270), default: 90, isChangeable: true, unit: "degrees",
                "Angle; 90 and 270 swap width and height"
            ).limited(to: [0, 90, 180, 270])
        ])

    private static let corners = [
        "top-left", "top", "top-right", "left", "center", "right", "bottom-left", "bottom", "bottom-right",
    ]

    public static let overlay = NodeKind(
        "overlay", .processor, "Draws text, the time or an image over frames", inputs: picturesIn,
        outputs: picturesOut,
        settings: [
            SettingContract("text", .text, default: "", isChangeable: true, "The text; may have several lines"),
            SettingContract(
                "position", .choice(corners), default: "bottom-left", isChangeable: true, "Place of the text"),
            SettingContract(
                "x", .integer(-8192...8192), default: 0, isChangeable: true, unit: "pixels",
                "Offset to the right of that place"),
            SettingContract(
                "y", .integer(-8192...8192), default: 0, isChangeable: true, unit: "pixels", "Offset below that place"),
            SettingContract(
                "font-size", .integer(4...400), default: 18, isChangeable: true, unit: "points",
                "Font size on a frame 640 pixels wide; grows with the frame"),
            SettingContract(
                "color", .text, default: "#ffffff", isChangeable: true,
                "Color of the text"
            ).written("#[0-9A-Fa-f]{6}", "red, green and blue as #rrggbb, such as #ffcc00"),
            SettingContract(
                "shaded", .flag, default: false, isChangeable: true,
                "Whether to darken the frame behind the text"),
            SettingContract(
                "clock", .text, "Format of the time (default: no clock)"
            ).written(#"(?:[\s\S]*%[\s\S]*)?"#, "a format of strftime, such as %H:%M:%S"),
            SettingContract(
                "clock-position", .choice(corners), default: "top-right", isChangeable: true, "Place of the clock"),
            SettingContract("image", .text, "A PNG or JPEG file to draw over the frame"),
            SettingContract(
                "image-x", .integer(-8192...8192), default: 16, isChangeable: true, unit: "pixels",
                "Left edge of the image; negative counts from the right"),
            SettingContract(
                "image-y", .integer(-8192...8192), default: 16, isChangeable: true, unit: "pixels",
                "Top edge of the image; negative counts from the bottom"),
            SettingContract(
                "image-width", .integer(0...8192), default: 0, isChangeable: true, unit: "pixels",
                "Width of the image; 0 is its own"),
            SettingContract(
                "image-height", .integer(0...8192), default: 0, isChangeable: true, unit: "pixels",
                "Height of the image; 0 is its own"),
            SettingContract(
                "image-opacity", .number(0...1), default: 1, isChangeable: true, "From 0 (invisible) to 1"),
        ])

    public static let mixer = NodeKind(
        "mixer", .processor, "Combines several videos into one; an input that stalls or ends does not stop the others",
        inputs: [Port("in", [.rawVideo], encodings: ["I420"], isRepeated: true)], outputs: picturesOut,
        settings: [
            SettingContract(
                "layout", .choice(["picture-in-picture", "grid"]), default: "picture-in-picture", isChangeable: true,
                "One input fills the frame with the others inset, or all have the same size"),
            SettingContract(
                "width", .integer(64...8192), unit: "pixels",
                "Width (default: that of the first input, else 1280)"),
            SettingContract(
                "height", .integer(64...8192), unit: "pixels",
                "Height (default: that of the first input, else 720)"),
            SettingContract(
                "fps", .number(1...240), unit: "frames/s",
                "Frame rate (default: that of the fastest input, else 30)"),
            SettingContract(
                "main", .integer(1...1000), default: 1, isChangeable: true,
                "Number of the input that fills the frame; if it is missing, the first available one"),
            SettingContract(
                "corner", .choice(["top-left", "top-right", "bottom-left", "bottom-right"]), default: "bottom-right",
                isChangeable: true, "Corner of the insets"),
            SettingContract(
                "inset", .number(0.05...0.5), default: 0.25, isChangeable: true,
                "Width of an inset, as a fraction of the frame"),
            SettingContract(
                "margin", .integer(0...500), default: 16, isChangeable: true, unit: "pixels",
                "Margin between insets and edges"),
        ])

    public static let frameFunction = NodeKind(
        "frame-function", .processor, "Passes each frame to a function of the program, which may change it in place",
        inputs: picturesIn, outputs: picturesOut, binding: .frameFunction)

    // MARK: Sound

    private static let soundIn = [Port("in", [.rawAudio])]
    private static let soundOut = [Port("out", [.rawAudio])]

    public static let volume = NodeKind(
        "volume", .processor, "Changes the volume of audio", inputs: soundIn, outputs: soundOut,
        settings: [
            SettingContract(
                "volume", .number(0...10), default: 1, isChangeable: true,
                "Factor for samples: 0 is silence, 1 is unchanged, 2 is 6 dB louder"),
            SettingContract("mute", .flag, default: false, isChangeable: true, "Whether to mute the audio"),
        ])

    public static let level = NodeKind(
        "level", .processor, "Measures the level of each audio channel, for the statistics",
        inputs: soundIn, outputs: soundOut,
        settings: [
            SettingContract(
                "interval", .number(0.01...10), default: 0.1, unit: "s",
                "Length of the audio that one value covers")
        ])

    public static let audioMixer = NodeKind(
        "audio-mixer", .processor, "Mixes audio; an input that stalls or ends does not stop the others",
        inputs: [Port("in", [.rawAudio], isRepeated: true)], outputs: soundOut,
        settings: [
            SettingContract(
                "latency", .integer(0...1000), default: 20, unit: "ms",
                "Longest delay of an input after the first one; at least the longest buffer")
        ])

    public static let echoCancel = NodeKind(
        "echo-cancel", .processor,
        "Removes played audio from the microphone's audio, suppresses noise and controls the gain",
        inputs: [Port("in", [.rawAudio]), Port("played", [.rawAudio], isRequired: false)],
        outputs: [Port("out", [.rawAudio]), Port("played-out", [.rawAudio], isRequired: false)],
        settings: [
            SettingContract(
                "suppression", .choice(["low", "moderate", "high"]), default: "low",
                "Strength of the echo suppression; each step costs the voice 1 dB while both sides speak"),
            SettingContract(
                "noise-suppression", .choice(["off", "low", "moderate", "high", "very-high"]), default: "moderate",
                "Strength of the noise suppression"),
            SettingContract(
                "gain-control", .flag, default: false, "Whether to raise or lower the voice to the target level"),
            SettingContract(
                "target-level", .integer(-31...0), default: -3, unit: "dBFS",
                "Peak level that the gain control aims at"),
            SettingContract(
                "delay", .integer(0...2000), unit: "ms",
                "Time from playing audio until the microphone records it (default: measured)"),
        ])
}
