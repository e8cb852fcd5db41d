internal import ArgumentParser
internal import Foundation
internal import GraphFile
internal import MediaGraph
internal import MediaNodes
internal import MediaTesting
internal import PluginLoader

/// A request to the examining process: list a plugin's nodes, validate settings of one, or run checks on it.
struct ExaminationRequest: Codable {
    var path: String
    /// Nil to list the nodes.
    var node: String?
    /// Empty to validate the settings only.
    var checks: [String] = []
    var reopenings = 5
    /// As written on the command line.
    var settings: [String: String] = [:]
    var saidBefore: [SaidError] = []
}

/// One line of the reply.
enum ExaminationLine: Codable {
    struct Listed: Codable {
        var name: String
        /// Nil if there are no checks for it.
        var group: Conformance.Group?
    }

    case nodes([Listed])
    case event(ConformanceEvent)
    /// The last line of a complete reply.
    case done
    /// The plugin could not be examined.
    case refused(code: String, message: String)
}

/// The examining process of `connectlive plugin test`. A plugin that crashes its process crashes only this one.
struct ExamineCommand: AsyncParsableCommand {
    /// The descriptor for replies, separate from the plugin's standard output.
    static let answers: Int32 = 3

    static let name = "examine"

    static let configuration = CommandConfiguration(
        commandName: name, abstract: "Run checks on a node, for the process that started this one.",
        shouldDisplay: false)

    @Argument(help: "The request as JSON.") var request: String

    func run() async throws {
        let request = try JSONDecoder().decode(ExaminationRequest.self, from: Data(request.utf8))
        // Programs that a node starts must not inherit the descriptor.
        _ = fcntl(Self.answers, F_SETFD, FD_CLOEXEC)
        do {
            try await examine(request)
        } catch let error as MediaError {
            Self.answer(.refused(code: error.code, message: error.message))
        }
        // Threads may still run in abandoned nodes; exit handlers would destroy objects that they use.
        fflush(nil)
        _exit(0)
    }

    private func examine(_ request: ExaminationRequest) async throws {
        // Only the first process of a test prints notes.
        let nodes = try PluginLoader.load(request.path) { if request.node == nil { Console.error($0) } }
        guard let name = request.node else {
            return Self.answer(.nodes(nodes.map { .init(name: $0.name, group: $0.testedGroup) }))
        }
        guard let node = nodes.first(where: { $0.name == name }) else { return }
        let kind = try KnownNodes.registry.adding(node).kind(named: name) ?? node.kind
        // Reads settings as a graph file does.
        let settings = Dictionary(
            uniqueKeysWithValues: request.settings.map { name, text in
                (name, kind.setting(name)?.value(written: text) ?? SettingValue(written: text))
            })
        guard !request.checks.isEmpty else {
            try node.refuse(settings, of: kind)
            return Self.answer(.done)
        }
        var options = Conformance.Options(reopenings: request.reopenings, checks: Set(request.checks))
        options.settings = settings
        options.saidBefore = request.saidBefore
        options.isOptimized = try !PluginLoader.library(at: request.path).chosen.contains("/debug/")
        options.onEvent = { Self.answer(.event($0)) }
        _ = try await Conformance.test(node, options)
        Self.answer(.done)
    }

    private static func answer(_ line: ExaminationLine) {
        guard let data = try? JSONEncoder().encode(line) else { return }
        try? FileHandle(fileDescriptor: answers).write(contentsOf: data + [UInt8(ascii: "\n")])
    }
}

extension CustomNode {
    /// Throws the first problem of the settings. Required settings may come from the node's rehearsal.
    fileprivate func refuse(_ settings: [String: SettingValue], of kind: NodeKind) throws(MediaError) {
        var rehearsed: [String: SettingValue] = [:]
        switch self {
        case .capturer(let type as any Rehearsed.Type, _), .processor(let type as any Rehearsed.Type, _),
            .renderer(let type as any Rehearsed.Type, _):
            rehearsed = type.rehearsal.settings
        default: break
        }
        let node = Node(kind.name, settings: rehearsed.merging(settings) { $1 })
        for problem in MediaGraph(nodes: [node]).validate(with: [kind]) {
            guard let setting = problem.setting else { continue }
            var words = problem.message
            if problem.kind == .missingSetting {
                words = "\(words.dropLast()); set it with --set \(kind.name).\(setting)=VALUE."
            } else if settings[setting] == nil {
                continue
            }
            throw MediaError(code: MediaError.Code.graphInvalid, message: words, node: kind.name)
        }
    }

    /// Known without creating a node, whose code may crash.
    fileprivate var name: String {
        switch self {
        case .capturer(let type, _): type.name
        case .processor(let type, _): type.name
        case .renderer(let type, _): type.name
        case .elements(let node): node.name
        }
    }

    /// Its group if there are checks for it.
    fileprivate var testedGroup: Conformance.Group? {
        switch self {
        case .capturer: .capturer
        case .processor: .processor
        case .renderer: .renderer
        case .elements(let node): Conformance.Group(of: node)
        }
    }
}
