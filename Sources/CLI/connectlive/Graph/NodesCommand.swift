internal import ArgumentParser
internal import GraphFile
internal import MediaGraph
internal import MediaNodes

struct NodesCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "nodes", abstract: "List all kinds of nodes, or describe one kind with its ports and settings.")

    @Argument(help: "A kind of node, or element:NAME for a GStreamer element (default: list all).")
    var kind: String?

    @OptionGroup var plugins: PluginFlags

    func run() throws {
        let catalogue = KnownNodes.registry
        guard let kind else { return Console.say(NodeTable.list(catalogue.kinds)) }
        guard let found = catalogue.kind(named: kind) else {
            let names = catalogue.kinds.map(\.name)
            let hint =
                kind.nearest(among: names).map { "did you mean \"\($0)\"?" }
                ?? "\"connectlive nodes\" lists all kinds. A plugin's nodes need --plugin PATH."
            throw CommandFailure(
                code: MediaError.Code.graphInvalid,
                catalogue.reasonForLack(of: kind) ?? "There is no kind of node \"\(kind)\"; \(hint)")
        }
        Console.say(NodeTable.detail(found))
    }
}

/// Kinds of nodes as text.
enum NodeTable {
    private static let width = 100

    static func list(_ kinds: [NodeKind]) -> String {
        let longest = kinds.map(\.name.count).max() ?? 0
        var lines: [String] = []
        for group in NodeGroup.allCases {
            let members = kinds.filter { $0.group == group }
            guard !members.isEmpty else { continue }
            lines += lines.isEmpty ? [title(group)] : ["", title(group)]
            for kind in members {
                let ports = [names(kind.inputs), names(kind.outputs)]
                let flow =
                    ports[0].isEmpty
                    ? "-> \(ports[1])" : ports[1].isEmpty ? "\(ports[0]) ->" : ports.joined(separator: " -> ")
                lines += columns(kind.name.padded(to: longest), "\(kind.summary) (\(flow))", indent: 2)
            }
        }
        lines += [
            "", "Any installed GStreamer element can be a node: {element: NAME}.",
            "\"connectlive nodes KIND\" describes a kind, \"connectlive nodes element:NAME\" an element.",
        ]
        return lines.joined(separator: "\n")
    }

    static func detail(_ kind: NodeKind) -> String {
        var lines = ["\(kind.name): \(kind.summary)."]
        for (title, ports) in [("Inputs", kind.inputs), ("Outputs", kind.outputs)] where !ports.isEmpty {
            lines += ["", title]
            let longest = ports.map { shown($0).count }.max() ?? 0
            for port in ports {
                let inserted = title == "Inputs" && kind.group != .codec ? adapted(port) : ""
                lines += columns(shown(port).padded(to: longest), media(port) + inserted, indent: 2)
            }
        }
        lines += ["", kind.settings.isEmpty ? "No settings" : "Settings"]
        let longest = kind.settings.map(\.name.count).max() ?? 0
        for setting in kind.settings {
            lines += columns(setting.name.padded(to: longest), setting.summary, indent: 2)
            lines += columns(String(repeating: " ", count: longest), values(setting), indent: 2)
        }
        if let binding = kind.binding {
            lines += [
                "", "The program that runs the graph passes a handle of the node's name, with \(function(binding)).",
            ]
        }
        return (lines + ["", "For example", "  \(example(kind))"]).joined(separator: "\n")
    }

    // MARK: Text

    private static func title(_ group: NodeGroup) -> String {
        switch group {
        case .capturer: "Capturers: sources of frames and audio"
        case .processor: "Processors: change frames and audio"
        case .codec: "Codecs: encode and decode"
        case .renderer: "Renderers: show frames and play audio"
        case .recorder: "Recorders: write files"
        case .transport: "Rooms and the network"
        case .element: "GStreamer elements"
        }
    }

    private static func names(_ ports: [Port]) -> String { ports.map(shown).joined(separator: ", ") }

    private static func shown(_ port: Port) -> String {
        port.isRepeated ? "\(port.name)1, \(port.name)2, ..." : port.name
    }

    private static func media(_ port: Port) -> String {
        let kinds = port.kinds.map(\.words).sorted().joined(separator: " or ")
        let encodings = port.encodings.isEmpty ? "" : ": \(port.encodings.joined(separator: ", "))"
        return kinds + encodings + (port.isRequired ? "" : "; optional")
    }

    /// The media that an input accepts through an inserted encoder.
    private static func adapted(_ port: Port) -> String {
        switch port.kinds {
        case [.encodedVideo]: "; raw video is encoded"
        case [.encodedAudio]: "; raw audio is encoded"
        default: ""
        }
    }

    private static func function(_ binding: CodeBinding) -> String {
        switch binding {
        case .rtpOutput: "a function that receives RTP packets"
        case .frames: "a function that receives frames"
        case .audio: "a function that receives audio"
        case .frameFunction: "a function that changes frames"
        }
    }

    private static func values(_ setting: SettingContract) -> String {
        let unit = setting.unit.map { " \($0)" } ?? ""
        var words =
            switch setting.domain {
            case .flag: "true or false"
            case .integer(let range) where range.upperBound == .max:
                range.lowerBound == .min ? "a whole number\(unit)" : "\(range.lowerBound)\(unit) or more"
            case .integer where setting.values != nil:
                (setting.values ?? []).map(String.init).joined(separator: ", ") + unit
            case .integer(let range): "\(range.lowerBound) to \(range.upperBound)\(unit)"
            case .number(let range) where range.upperBound > 1e30: "a number\(unit)"
            case .number(let range): "\(short(range.lowerBound)) to \(short(range.upperBound))\(unit)"
            case .text: setting.form.map(\.words) ?? "text"
            case .choice(let choices): choices.joined(separator: ", ")
            }
        if !setting.excludedSettings.isEmpty {
            words += "; not with \(setting.excludedSettings.joined(separator: ", "))"
        }
        if setting.isRequired { words += "; required" }
        if let value = setting.defaultValue { words += "; default \(short(value))" }
        if setting.isChangeUnsaid {
            words += "; live changes are undocumented"
        } else if setting.isChangeable {
            words += "; live"
        }
        return words
    }

    private static func short(_ value: SettingValue) -> String {
        switch value {
        case .flag(let flag): "\(flag)"
        case .integer(let number): "\(number)"
        case .number(let number): short(number)
        case .text(let text): text.isEmpty ? "\"\"" : text
        }
    }

    private static func short(_ number: Double) -> String { Int(exactly: number).map { "\($0)" } ?? "\(number)" }

    /// A step with the required settings. If there are none, with the first two that have an example or a default.
    private static func example(_ kind: NodeKind) -> String {
        let isElement = kind.name.hasPrefix(NodeKind.elementPrefix)
        let name = isElement ? String(kind.name.dropFirst(NodeKind.elementPrefix.count)) : kind.name
        var node = Node(kind.name, name: name)
        let required = kind.settings.filter(\.isRequired)
        let fit = kind.settings.filter { $0.example != nil || $0.defaultValue != nil }
        for setting in required.isEmpty ? Array(fit.prefix(2)) : required {
            node.settings[setting.name] = exampleValue(setting)
        }
        return "- " + GraphDocument.step(node, of: kind)
    }

    private static func exampleValue(_ setting: SettingContract) -> SettingValue {
        if let value = setting.example ?? setting.defaultValue { return value }
        switch setting.domain {
        case .flag: return true
        case .integer(let range): return .integer(min(max(range.lowerBound, 1000), range.upperBound))
        case .number(let range): return .number(min(max(range.lowerBound, 1), range.upperBound))
        case .choice(let choices): return .text(choices.first ?? "")
        case .text: return .text(setting.name.uppercased())
        }
    }

    // MARK: Layout

    /// A word in the first column and wrapped text in the second.
    private static func columns(_ word: String, _ text: String, indent: Int) -> [String] {
        let margin = String(repeating: " ", count: indent + word.count + 2)
        var rows: [String] = []
        for part in text.split(separator: " ") {
            if let last = rows.last, margin.count + last.count + part.count < width {
                rows[rows.count - 1] = "\(last) \(part)"
            } else {
                rows.append(String(part))
            }
        }
        return rows.enumerated().map { index, row in
            (index == 0 ? String(repeating: " ", count: indent) + word + "  " : margin) + row
        }
    }
}

extension String {
    fileprivate func padded(to width: Int) -> String { self + String(repeating: " ", count: max(0, width - count)) }
}
