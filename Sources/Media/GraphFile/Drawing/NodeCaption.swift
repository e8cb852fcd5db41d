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
        let isElement = node.kind.hasPrefix(NodeKind.elementPrefix)
        let kindName = isElement ? String(node.kind.dropFirst(NodeKind.elementPrefix.count)) : node.kind
        title = node.name
        kind = node.name == kindName ? nil : kindName
        var left = node.settings
        details = []
        if let width = left["width"]?.short, let height = left["height"]?.short {
            details.append("\(width) × \(height)")
            left["width"] = nil
            left["height"] = nil
        }
        // In the order of the contract, which is by importance.
        let known = contract?.settings.map(\.name) ?? []
        let order = known.filter { left[$0] != nil } + left.keys.filter { !known.contains($0) }.sorted()
        details += order.compactMap { name in
            left[name].map { Self.words(name, $0, contract?.setting(name)) }
        }
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
        if bits >= 1_000_000 { return "\((Double(bits) / 1e5).rounded().short.tenth) Mbit/s" }
        return bits >= 1000 ? "\((Double(bits) / 100).rounded().short.tenth) kbit/s" : "\(bits) bit/s"
    }
}

extension String {
    /// A tenth of this whole number, without a needless ".0".
    fileprivate var tenth: String { hasSuffix("0") ? String(dropLast()) : "\(dropLast()).\(suffix(1))" }

    fileprivate var oneLine: String {
        let line = String(map { $0.isNewline || $0 == "\t" ? " " : $0 })
        // The end of a path or an address is more specific than its beginning.
        return line.count > 44 ? "...\(line.suffix(41))" : line
    }
}

extension SettingValue {
    var short: String {
        switch self {
        case .flag(let flag): "\(flag)"
        case .integer(let number): "\(number)"
        case .number(let number): number.short
        case .text(let text): text
        }
    }
}

extension MediaGraph {
    /// The media of a link, as far as its nodes' contracts state it.
    func media(on link: Link, _ catalogue: any NodeCatalogue) -> LinkMedia? {
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
            if !source.encodings.contains(told), source.kinds.contains(.rawVideo) { return LinkMedia(kind: .rawVideo) }
        }
        return LinkMedia(kind: kind, encoding: encodings.count == 1 ? encodings.first : nil)
    }
}

/// The media of a link.
struct LinkMedia {
    var kind: MediaKind
    var encoding: String?

    var words: String {
        switch (kind, encoding) {
        case (.rawVideo, _): "raw video"
        case (.rawAudio, _): "raw audio"
        case (.rtp, _): "RTP"
        case (.applicationFrames, _): "frames"
        case (.data, let type): type ?? "data"
        case (_, "vp8"?): "VP8"
        case (_, "vp9"?): "VP9"
        case (_, "h264"?): "H.264"
        case (_, "h265"?): "H.265"
        case (_, "av1"?): "AV1"
        case (_, "mjpeg"?), (_, "jpeg"?): "Motion JPEG"
        case (_, "opus"?): "Opus"
        case (_, "aac"?): "AAC"
        case (_, let encoding?): encoding
        case (.encodedVideo, nil): "encoded video"
        case (.encodedAudio, nil): "encoded audio"
        }
    }

    var isAudio: Bool { kind == .rawAudio || kind == .encodedAudio }

    var isEncoded: Bool { kind == .encodedVideo || kind == .encodedAudio }
}
