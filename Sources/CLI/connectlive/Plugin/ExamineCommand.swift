internal import ArgumentParser
internal import Foundation
internal import GraphFile
internal import MediaGraph
internal import MediaNodes
internal import MediaTesting
internal import PluginLoader

/// What the other end of an examination is asked for: to list a plugin's nodes, to look whether the settings fit one, or
/// to make checks on it.
struct ExaminationRequest: Codable {
    var path: String
    /// Nil to list them.
    var capturer: String?
    /// None to look at the settings only.
    var checks: [String] = []
    var reopenings = 5
    /// As they were written.
    var settings: [String: String] = [:]
    var saidBefore: [SaidError] = []
}

/// One line of its answer.
enum ExaminationLine: Codable {
    struct Listed: Codable {
        var name: String
        var isCapturer: Bool
    }

    case nodes([Listed])
    case event(ConformanceEvent)
    /// The last line of an examination that came to its end.
    case done
    /// Why there is none, in words.
    case refused(code: String, message: String)
}

/// The other end of `connectlive plugin test`: what a plugin's code does to its process ends this one.
struct ExamineCommand: AsyncParsableCommand {
    /// Answers go there: what the plugin writes to standard output is not among them.
    static let answers: Int32 = 3

    static let name = "examine"

    static let configuration = CommandConfiguration(
        commandName: name, abstract: "Make checks on a capturer, for the process that started this one.",
        shouldDisplay: false)

    @Argument(help: "What is asked for, as JSON.") var request: String

    func run() async throws {
        let request = try JSONDecoder().decode(ExaminationRequest.self, from: Data(request.utf8))
        // Programs that a capturer starts have no part in this.
        _ = fcntl(Self.answers, F_SETFD, FD_CLOEXEC)
        do {
            try await examine(request)
        } catch let error as MediaError {
            Self.answer(.refused(code: error.code, message: error.message))
        }
        // Threads that were left behind in a capturer are not to be disturbed by the end of everything around them.
        fflush(nil)
        _exit(0)
    }

    private func examine(_ request: ExaminationRequest) async throws {
        // Said once, by the first process of a test.
        let nodes = try PluginLoader.load(request.path) { if request.capturer == nil { Console.error($0) } }
        guard let name = request.capturer else {
            return Self.answer(.nodes(nodes.map { .init(name: $0.name, isCapturer: $0.isCapturer) }))
        }
        guard let node = nodes.first(where: { $0.name == name }) else { return }
        let kind = try KnownNodes.registry.adding(node).kind(named: name) ?? node.kind
        // Read as a graph file reads them.
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
    /// Throws what is wrong with settings for an examination; what is required may come from the capturer's rehearsal.
    fileprivate func refuse(_ settings: [String: SettingValue], of kind: NodeKind) throws(MediaError) {
        var rehearsed: [String: SettingValue] = [:]
        if case .capturer(let type as any Rehearsed.Type) = self { rehearsed = type.rehearsal.settings }
        let node = Node(kind.name, settings: rehearsed.merging(settings) { $1 })
        for problem in MediaGraph(nodes: [node]).validate(with: [kind]) {
            guard let setting = problem.setting else { continue }
            var words = problem.message
            if problem.kind == .missingSetting {
                words = "\(words.dropLast()); give it with --set \(kind.name).\(setting)=VALUE."
            } else if settings[setting] == nil {
                continue
            }
            throw MediaError(code: MediaError.Code.graphInvalid, message: words, node: kind.name)
        }
    }

    /// Of a capturer it is known without making one: its code may not be able to.
    fileprivate var name: String {
        switch self {
        case .capturer(let type): type.name
        case .elements(let node): node.name
        default: kind.name
        }
    }

    fileprivate var isCapturer: Bool {
        switch self {
        case .capturer: true
        case .elements(let node): node.group == .capturer
        default: false
        }
    }
}
