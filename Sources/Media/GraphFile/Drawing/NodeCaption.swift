internal import MediaGraph

/// The text of a node in a drawing.
struct NodeCaption {
    /// The node's name.
    var title: String
    /// The kind, if the name differs.
    var kind: String?
    /// The settings as text.
    var details: [String]

    init(_ node: Node, _ contract: NodeKind?) {
        title = node.name
        kind = node.name == node.kindInFiles ? nil : node.kindInFiles
        var settings = node.settings(inOrderOf: contract)
        details = []
        if let width = node.settings["width"]?.short, let height = node.settings["height"]?.short {
            details.append("\(width) × \(height)")
            settings.removeAll { $0.key == "width" || $0.key == "height" }
        }
        details += settings.map { Self.words($0.key, $0.value, contract?.setting($0.key)) }
    }

    private static func words(_ name: String, _ value: SettingValue, _ contract: SettingContract?) -> String {
        switch (value, contract?.unit) {
        case (.flag(let flag), _): flag ? name : "no \(name)"
        case (.integer(let bits), SettingContract.bitsPerSecond?): bitrate(bits)
        case (_, "frames/s"?) where name == "fps": "\(value.short) frames/s"
        case (_, let unit?) where name == unit: "\(value.short) \(unit)"
        case (_, let unit?): "\(name) \(value.short) \(unit)"
        case (.text(let text), nil): text.isEmpty ? "\(name) empty" : "\(name) \(text.oneLine)"
        case (_, nil): "\(name) \(value.short)"
        }
    }

    private static func bitrate(_ bits: Int) -> String {
        if bits >= 1_000_000 { return "\(((Double(bits) / 1e5).rounded() / 10).short) Mbit/s" }
        return bits >= 1000 ? "\(((Double(bits) / 100).rounded() / 10).short) kbit/s" : "\(bits) bit/s"
    }
}

extension String {
    fileprivate var oneLine: String {
        let line = String(map { $0.isNewline || $0 == "\t" ? " " : $0 })
        // The end of a path or an address is more specific than its beginning.
        return line.count > 44 ? "...\(line.suffix(41))" : line
    }
}

extension MediaGraph {
    /// The media of a link, as far as its nodes' contracts state it. Without an encoding if that is open.
    func media(on link: Link, _ catalogue: any NodeCatalogue) -> MediaFormat? {
        guard
            let node = node(link.from.node), let contract = catalogue.kind(named: node.kind),
            let source = contract.output(link.from.port)
        else { return nil }
        let input = self.node(link.to.node).flatMap { catalogue.kind(named: $0.kind) }?.input(link.to.port)
        let common = input.map { source.kinds.intersection($0.kinds) } ?? source.kinds
        // Without a common kind, an encoder or decoder is inserted, and the source's media is on the link.
        let kinds = common.isEmpty ? source.kinds : common
        guard kinds.count == 1, let kind = kinds.first else { return nil }
        var encodings = source.encodings.filter {
            input?.encodings.isEmpty ?? true || input?.encodings.contains($0) ?? true
        }
        // Some nodes have a setting for their output. Without it, those with raw output deliver that.
        for name in ["codec", "format"] {
            guard case .text(let told)? = node.settings[name] ?? contract.setting(name)?.defaultValue else { continue }
            if encodings.contains(told) { encodings = [told] }
            if !source.encodings.contains(told), source.kinds.contains(.rawVideo) { return .rawVideo("") }
        }
        return MediaFormat(kind, encodings.count == 1 ? encodings[0] : "")
    }
}

extension MediaFormat {
    /// The media of a link as text.
    var words: String {
        switch kind {
        case .rawVideo, .rawAudio, .rtp: kind.words
        case .applicationFrames: "frames"
        case .data: encoding.isEmpty ? "data" : encoding
        case .encodedVideo, .encodedAudio: encoding.isEmpty ? kind.words : Encoding.named(encoding)?.title ?? encoding
        }
    }

    var isAudio: Bool { kind == .rawAudio || kind == .encodedAudio }

    var isEncoded: Bool { kind == .encodedVideo || kind == .encodedAudio }
}
