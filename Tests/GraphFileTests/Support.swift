import Foundation
import GraphFile
import MediaGraph

/// Kinds for tests: with several outputs and inputs, repeated inputs, every domain of settings, and elements
/// that exist on request.
struct TestKinds: NodeCatalogue {
    let kinds: [NodeKind] = [
        NodeKind(
            "camera", .capturer, "A camera", outputs: [Port("video", [.rawVideo])],
            settings: [
                SettingContract("device", .text, default: "auto", "Which"),
                SettingContract("width", .integer(16...8192), default: 640, unit: "pixels", "Width"),
                SettingContract("height", .integer(16...8192), default: 480, unit: "pixels", "Height"),
                SettingContract("fps", .number(1...240), default: 20, unit: "frames/s", "Rate"),
                SettingContract("mirror", .flag, default: true, "Whether left and right are swapped"),
                SettingContract("format", .choice(["auto", "raw", "h264"]), default: "auto", "Output format"),
            ]),
        NodeKind("microphone", .capturer, "A microphone", outputs: [Port("audio", [.rawAudio])]),
        NodeKind(
            "file", .capturer, "A file",
            outputs: [Port("video", [.rawVideo], isRequired: false), Port("audio", [.rawAudio], isRequired: false)],
            settings: [SettingContract("path", .text, isRequired: true, "The file")]),
        NodeKind(
            "scale", .processor, "Scales", inputs: [Port("in", [.rawVideo])], outputs: [Port("out", [.rawVideo])],
            settings: [SettingContract("width", .integer(16...8192), unit: "pixels", "Width")]),
        NodeKind(
            "mixer", .processor, "Mixes", inputs: [Port("in", [.rawVideo], isRequired: false, isRepeated: true)],
            outputs: [Port("out", [.rawVideo])]),
        NodeKind(
            "h264-encoder", .codec, "H.264", inputs: [Port("in", [.rawVideo])],
            outputs: [Port("out", [.encodedVideo], encodings: ["h264"])],
            settings: [
                SettingContract(
                    "bitrate", .integer(30_000...100_000_000), isChangeable: true, unit: "bit/s", "Constant bitrate")
            ]),
        NodeKind(
            "opus-encoder", .codec, "Opus", inputs: [Port("in", [.rawAudio])],
            outputs: [Port("out", [.encodedAudio], encodings: ["opus"])]),
        NodeKind(
            "window", .renderer, "A window", inputs: [Port("in", [.rawVideo])],
            settings: [SettingContract("title", .text, default: "Video", "Its title")]),
        NodeKind("null", .renderer, "Drops", inputs: [Port("in", [.rawVideo, .rawAudio])]),
        NodeKind(
            "recorder", .recorder, "Records",
            inputs: [
                Port("video", [.rawVideo, .encodedVideo], isRequired: false),
                Port("audio", [.rawAudio, .encodedAudio], isRequired: false),
            ],
            settings: [SettingContract("path", .text, isRequired: true, "The file")]),
        NodeKind(
            "publish", .transport, "Publishes",
            inputs: [
                Port("video", [.encodedVideo], isRequired: false), Port("audio", [.encodedAudio], isRequired: false),
            ],
            settings: [SettingContract("room", .text, default: "demo", "The room")]),
        NodeKind(
            "changing", .processor, "Has settings that are called like words of ours",
            inputs: [Port("in", [.rawVideo])], outputs: [Port("out", [.rawVideo])],
            settings: [
                SettingContract("to", .choice(["size", "rate"]), isRequired: true, "What changes"),
                SettingContract("name", .text, default: "", "A name of its own"),
                SettingContract("after", .integer(0...99), default: 10, "When"),
            ]),
    ]

    func kind(named name: String) -> NodeKind? {
        if let kind = kinds.first(where: { $0.name == name }) { return kind }
        guard name == "element:videobalance" else { return nil }
        return NodeKind(
            name, .element, "Adjusts brightness", inputs: [Port("in", [.rawVideo])],
            outputs: [Port("out", [.rawVideo])],
            settings: [
                SettingContract("saturation", .number(0...2), default: 1, isChangeable: true, "Saturation"),
                SettingContract("to", .integer(0...9), "A property whose name is a word of ours"),
            ])
    }

    func reasonForLack(of name: String) -> String? {
        name == "element:x265enc" ? "the element x265enc is not installed; Debian has it in a package." : nil
    }
}

/// Reads with the kinds of the tests.
func read(_ text: String, _ values: [String: String] = [:]) -> GraphReading {
    GraphReading(text.utf8, values: values, catalogue: TestKinds())
}

/// The problems, each as `line:column message`.
func problems(_ text: String, _ values: [String: String] = [:]) -> [String] { listed(read(text, values)) }

/// The same with other kinds.
func problems(_ text: String, _ kinds: [NodeKind]) -> [String] { listed(GraphReading(text.utf8, catalogue: kinds)) }

private func listed(_ reading: GraphReading) -> [String] {
    reading.problems.map { ($0.place.map { "\($0) " } ?? "") + $0.message }
}
