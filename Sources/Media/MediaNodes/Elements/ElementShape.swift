import GStreamerKit
import MediaGraph

/// Maps the pads of an element to the ports of a node.
struct ElementShape: Sendable {
    struct Input: Sendable {
        let port: Port
        let template: PadTemplate
    }

    struct Output: Sendable {
        enum Origin: Sendable {
            /// A pad that exists or is requested.
            case pad(PadTemplate)
            /// Video or audio of the pads that appear, decoded if their format is not known before.
            case appearing(isDecoded: Bool)
        }

        let port: Port
        let origin: Origin
    }

    let inputs: [Input]
    let outputs: [Output]

    /// For inputs whose pads have settings, this many are listed.
    static let listedPads = 4

    init(of element: ElementDescription) {
        let sinks = element.pads.filter { $0.direction == .sink && $0.presence != .sometimes }
        let sources = element.pads.filter { $0.direction == .source && $0.presence != .sometimes }
        inputs = sinks.enumerated().map { index, template in
            let media = ElementMedia(of: template.caps)
            // Inputs that are neither video nor audio are secondary, such as subtitles.
            let isSideline = media.kinds == [.data] && sinks.count > 1
            let isOneOfSeveral = template.presence == .onRequest && sinks.count > 1
            return Input(
                port: Port(
                    sinks.count == 1 ? "in" : Self.name(of: template, after: sinks[..<index], otherwise: "in"),
                    media.kinds,
                    encodings: media.encodings, isRequired: !isSideline && !isOneOfSeveral,
                    isRepeated: template.presence == .onRequest),
                template: template)
        }
        var outputs = sources.enumerated().map { index, template in
            let media = ElementMedia(of: template.caps)
            return Output(
                port: Port(
                    sources.count == 1 ? "out" : Self.name(of: template, after: sources[..<index], otherwise: "out"),
                    media.kinds,
                    encodings: media.encodings, isRequired: template.presence == .always && sources.count == 1,
                    isRepeated: template.presence == .onRequest),
                origin: .pad(template))
        }
        let appearing = element.pads.filter { $0.direction == .source && $0.presence == .sometimes }
        for (name, kind) in [("video", MediaKind.rawVideo), ("audio", .rawAudio)] {
            let fitting = appearing.filter { ElementMedia.mayHold(kind, $0.caps) }
            guard !fitting.isEmpty else { continue }
            let isRaw = fitting.allSatisfy { ElementMedia(of: $0.caps).kinds == [kind] }
            let decodes = element.entry.classification.contains("Decoder")
            outputs.append(
                Output(
                    port: Port(name, [kind], encodings: kind == .rawVideo ? ["I420"] : [], isRequired: false),
                    origin: .appearing(isDecoded: !isRaw && !decodes)))
        }
        self.outputs = outputs
    }

    func input(_ port: String) -> Input? { inputs.first { $0.port.matches(port) } }

    func output(_ port: String) -> Output? { outputs.first { $0.port.matches(port) } }

    /// `video` for `video_sink` and `video_%u`. If that is used, the whole name.
    private static func name(
        of template: PadTemplate, after others: some Sequence<PadTemplate>, otherwise: String
    ) -> String {
        func short(_ template: PadTemplate) -> String {
            let words = template.name.split(separator: "_")
                .filter { !["sink", "src"].contains($0) && !$0.contains("%") }
            return words.isEmpty ? otherwise : words.joined(separator: "-")
        }
        let name = short(template)
        guard others.contains(where: { short($0) == name }) else { return name }
        return template.name.split(separator: "_").filter { !$0.contains("%") }.joined(separator: "-")
    }
}
