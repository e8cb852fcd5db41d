import GStreamerKit
import MediaGraph

/// Maps the pads of an element to the ports of a node.
struct ElementShape: Sendable {
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

    let inputs: [(port: Port, template: PadTemplate)]
    let outputs: [Output]

    /// For inputs whose pads have settings, this many are listed.
    static let listedPads = 4

    init(of element: ElementDescription) {
        inputs = Self.ports(of: element, .sink, "in") { template, media, isOnly in
            // Inputs that are neither video nor audio are secondary, such as subtitles.
            isOnly || (media.kinds != [.data] && template.presence != .onRequest)
        }
        var outputs = Self.ports(of: element, .source, "out") { template, _, isOnly in
            isOnly && template.presence == .always
        }.map { Output(port: $0.port, origin: .pad($0.template)) }
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

    /// The ports for pads that exist or are requested. The only one has a plain name.
    private static func ports(
        of element: ElementDescription, _ direction: PadTemplate.Direction, _ plain: String,
        isRequired: (PadTemplate, ElementMedia, _ isOnly: Bool) -> Bool
    ) -> [(port: Port, template: PadTemplate)] {
        let templates = element.pads.filter { $0.direction == direction && $0.presence != .sometimes }
        let isOnly = templates.count == 1
        return templates.enumerated().map { index, template in
            let media = ElementMedia(of: template.caps)
            let port = Port(
                isOnly ? plain : name(of: template, after: templates[..<index], otherwise: plain), media.kinds,
                encodings: media.encodings, isRequired: isRequired(template, media, isOnly),
                isRepeated: template.presence == .onRequest)
            return (port, template)
        }
    }

    func input(_ port: String) -> (port: Port, template: PadTemplate)? { inputs.first { $0.port.matches(port) } }

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
