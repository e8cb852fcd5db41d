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
        "scale", .processor, "Changes the size or the rate of pictures", inputs: picturesIn, outputs: picturesOut,
        settings: [
            SettingContract("width", .integer(16...8192), unit: "pixels", "Width; as it comes when not given")
                .example(640),
            SettingContract("height", .integer(16...8192), unit: "pixels", "Height; as it comes when not given"),
            SettingContract("fps", .number(1...240), unit: "frames/s", "Frame rate; as it comes when not given"),
        ])

    public static let convert = NodeKind(
        "convert", .processor, "Changes the pixel format of pictures",
        inputs: [Port("in", [.rawVideo])], outputs: [Port("out", [.rawVideo])],
        settings: [
            SettingContract(
                "pixel-format", .text, default: "I420", "GStreamer's name of the format that comes out"
            ).written("[A-Za-z0-9_]+", "GStreamer's name of a pixel format, such as NV12")
        ])

    public static let rate = NodeKind(
        "rate", .processor, "Changes the rate of pictures", inputs: picturesIn, outputs: picturesOut,
        settings: [
            SettingContract("fps", .number(1...240), isRequired: true, unit: "frames/s", "Frame rate that comes out")
                .example(15),
            SettingContract(
                "repeat", .flag,
                "Whether pictures are repeated where too few come, at one frame of latency; when not given, only where the "
                    + "rate that comes in is lower or not known"),
        ])

    public static let crop = NodeKind(
        "crop", .processor, "Cuts pixels off the edges of pictures, or cuts them to a shape",
        inputs: picturesIn, outputs: picturesOut,
        settings: ["left", "right", "top", "bottom"].map {
            SettingContract(
                $0, .integer(0...8192), default: 0, isChangeable: true, unit: "pixels", "What is cut off at the \($0)")
        } + [
            SettingContract("shape", .text, "Width to height; the middle is kept")
                .written(#"(?:[1-9][0-9]{0,3}|10000):(?:[1-9][0-9]{0,3}|10000)"#, "width to height, such as 16:9")
                .excluding(["left", "right", "top", "bottom"])
        ])

    public static let mirror = NodeKind(
        "mirror", .processor, "Swaps left and right, or top and bottom", inputs: picturesIn, outputs: picturesOut,
        settings: [
            SettingContract(
                "direction", .choice(["horizontal", "vertical", "none"]), default: "horizontal", isChangeable: true,
                "What is swapped: left and right, or top and bottom")
        ])

    public static let rotate = NodeKind(
        "rotate", .processor, "Turns pictures clockwise", inputs: picturesIn, outputs: picturesOut,
        settings: [
            SettingContract(
                "degrees", .integer(0...270), default: 90, isChangeable: true, unit: "degrees",
                "How far; width and height change places at 90 and 270"
            ).limited(to: [0, 90, 180, 270])
        ])

    private static let corners = [
        "top-left", "top", "top-right", "left", "center", "right", "bottom-left", "bottom", "bottom-right",
    ]

    public static let overlay = NodeKind(
        "overlay", .processor, "Writes text, the time or an image over pictures", inputs: picturesIn,
        outputs: picturesOut,
        settings: [
            SettingContract("text", .text, default: "", isChangeable: true, "What is written; may have several lines"),
            SettingContract(
                "position", .choice(corners), default: "bottom-left", isChangeable: true, "Where the text stands"),
            SettingContract(
                "x", .integer(-8192...8192), default: 0, isChangeable: true, unit: "pixels",
                "How far to the right of that place"),
            SettingContract(
                "y", .integer(-8192...8192), default: 0, isChangeable: true, unit: "pixels", "How far below that place"),
            SettingContract(
                "font-size", .integer(4...400), default: 18, isChangeable: true, unit: "points",
                "Size on a picture 640 pixels wide; grows with the picture"),
            SettingContract(
                "color", .text, default: "#ffffff", isChangeable: true,
                "Of the letters"
            ).written("#[0-9A-Fa-f]{6}", "red, green and blue as #rrggbb, such as #ffcc00"),
            SettingContract(
                "shaded", .flag, default: false, isChangeable: true,
                "Whether the picture is darkened behind the letters"),
            SettingContract(
                "clock", .text, "The time; no clock when not given"
            ).written(#"(?:[\s\S]*%[\s\S]*)?"#, "the time as strftime writes it, such as %H:%M:%S"),
            SettingContract(
                "clock-position", .choice(corners), default: "top-right", isChangeable: true, "Where the clock stands"),
            SettingContract("image", .text, "A PNG or JPEG file that is laid over the picture"),
            SettingContract(
                "image-x", .integer(-8192...8192), default: 16, isChangeable: true, unit: "pixels",
                "Left edge of the image; negative counts from the right"),
            SettingContract(
                "image-y", .integer(-8192...8192), default: 16, isChangeable: true, unit: "pixels",
                "Top edge of the image; negative counts from the bottom"),
            SettingContract(
                "image-width", .integer(0...8192), default: 0, isChangeable: true, unit: "pixels",
                "Width of the image; 0 for its own"),
            SettingContract(
                "image-height", .integer(0...8192), default: 0, isChangeable: true, unit: "pixels",
                "Height of the image; 0 for its own"),
            SettingContract(
                "image-opacity", .number(0...1), default: 1, isChangeable: true, "From 0 (not to be seen) to 1"),
        ])

    public static let mixer = NodeKind(
        "mixer", .processor, "Puts several pictures into one; one that stalls or ends does not stop the others",
        inputs: [Port("in", [.rawVideo], encodings: ["I420"], isRepeated: true)], outputs: picturesOut,
        settings: [
            SettingContract(
                "layout", .choice(["picture-in-picture", "grid"]), default: "picture-in-picture", isChangeable: true,
                "One that fills the picture with the others small on it, or all of one size"),
            SettingContract(
                "width", .integer(64...8192), unit: "pixels",
                "Width; that of the first input when not given, 1280 where that is not known"),
            SettingContract(
                "height", .integer(64...8192), unit: "pixels",
                "Height; that of the first input when not given, 720 where that is not known"),
            SettingContract(
                "fps", .number(1...240), unit: "frames/s",
                "Frame rate; that of the fastest input when not given, 30 where none is known"),
            SettingContract(
                "main", .integer(1...1000), default: 1, isChangeable: true,
                "Number of the input that fills the picture; the first that is there where it is not"),
            SettingContract(
                "corner", .choice(["top-left", "top-right", "bottom-left", "bottom-right"]), default: "bottom-right",
                isChangeable: true, "Where the small pictures stand"),
            SettingContract(
                "inset", .number(0.05...0.5), default: 0.25, isChangeable: true,
                "Width of a small picture, as a part of the whole"),
            SettingContract(
                "margin", .integer(0...500), default: 16, isChangeable: true, unit: "pixels",
                "Between small pictures and the edges"),
        ])

    public static let frameFunction = NodeKind(
        "frame-function", .processor, "Hands each picture to a function of the program, which may change it in place",
        inputs: picturesIn, outputs: picturesOut, binding: .frameFunction)

    // MARK: Sound

    private static let soundIn = [Port("in", [.rawAudio])]
    private static let soundOut = [Port("out", [.rawAudio])]

    public static let volume = NodeKind(
        "volume", .processor, "Makes sound louder or quieter", inputs: soundIn, outputs: soundOut,
        settings: [
            SettingContract(
                "volume", .number(0...10), default: 1, isChangeable: true,
                "What samples are multiplied by: 0 is silence, 1 as it comes, 2 is 6 dB louder"),
            SettingContract("mute", .flag, default: false, isChangeable: true, "Whether nothing is heard"),
        ])

    public static let level = NodeKind(
        "level", .processor, "Measures how loud sound is, channel by channel; see the statistics",
        inputs: soundIn, outputs: soundOut,
        settings: [
            SettingContract(
                "interval", .number(0.01...10), default: 0.1, unit: "s",
                "How long the sound is that one value speaks of")
        ])

    public static let audioMixer = NodeKind(
        "audio-mixer", .processor, "Adds sounds up; one that stalls or ends does not stop the others",
        inputs: [Port("in", [.rawAudio], isRepeated: true)], outputs: soundOut,
        settings: [
            SettingContract(
                "latency", .integer(0...1000), default: 20, unit: "ms",
                "How much later than the first input another may come; as long as the longest buffers")
        ])

    public static let echoCancel = NodeKind(
        "echo-cancel", .processor,
        "Takes what is played out of what the microphone hears, suppresses noise and evens out loudness",
        inputs: [Port("in", [.rawAudio]), Port("played", [.rawAudio], isRequired: false)],
        outputs: [Port("out", [.rawAudio]), Port("played-out", [.rawAudio], isRequired: false)],
        settings: [
            SettingContract(
                "suppression", .choice(["low", "moderate", "high"]), default: "low",
                "How much of what may be echo is held down; more costs the voice 1 dB each while both speak"),
            SettingContract(
                "noise-suppression", .choice(["off", "low", "moderate", "high", "very-high"]), default: "moderate",
                "How much of steady noise is taken out"),
            SettingContract(
                "gain-control", .flag, default: false, "Whether the voice is brought to the target level"),
            SettingContract(
                "target-level", .integer(-31...0), default: -3, unit: "dBFS", "Peaks that gain control aims at"),
            SettingContract(
                "delay", .integer(0...2000), unit: "ms",
                "From a timestamp of what is played to when the microphone hears it; found by listening when not given"),
        ])
}
