internal import Foundation
internal import MediaGraph

/// The control socket's messages: one JSON object per line, specified in docs/control-socket.md.
enum ControlProtocol {
    static let version = 1
    /// The longest line that either side accepts, in bytes. A graph of a thousand nodes has about 150 KiB.
    static let maximumLineLength = 1024 * 1024
    /// Seconds between two events of a watched pipeline.
    static let intervals = 0.1...3600.0
    static let defaultInterval = 1.0

    static func line(_ message: some Encodable) -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        encoder.nonConformingFloatEncodingStrategy = .convertToString(
            positiveInfinity: "inf", negativeInfinity: "-inf", nan: "nan")
        guard let data = try? encoder.encode(message) else {
            preconditionFailure("\(type(of: message)) did not encode")
        }
        return String(decoding: data, as: UTF8.self) + "\n"
    }
}

/// One line to the pipeline.
enum ControlRequest: Sendable, Equatable {
    /// Replies with `PipelineStatus`.
    case status
    /// Replies with the running `MediaGraph`.
    case graph
    /// Replies with the running `GraphPlan`.
    case plan
    /// Sends statistics as events, with this interval in seconds.
    case watch(every: Double)
    case unwatch
    /// Replaces the running graph by this one, as one transaction. Replies with `AppliedEdit`.
    case apply(MediaGraph, deadline: Double?)
    case set(node: String, setting: String, SettingValue)
    /// Refuses what `set` would refuse, and changes nothing.
    case check(node: String, setting: String, SettingValue)
}

/// A request and the number that the reply repeats.
struct ControlEnvelope: Sendable, Equatable {
    var id: Int?
    var request: ControlRequest
}

/// Why a request was refused.
struct ControlProblem: Error, Codable, Sendable, Equatable, CustomStringConvertible {
    var code: String
    var message: String
    /// The node with the problem, if it concerns one node.
    var node: String?

    init(code: String, _ message: String, node: String? = nil) {
        self.code = code
        self.message = message
        self.node = node
    }

    init(_ error: MediaError) { self.init(code: error.code, error.message, node: error.node) }

    var description: String { "\(message) [\(code)]" }
}

// MARK: - Reading requests

extension ControlEnvelope: Codable {
    private enum Key: String, CodingKey {
        case id
        case request = "do"
        case every, graph, deadline, node, setting, value
    }

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Key.self)
        id = try container.decodeIfPresent(Int.self, forKey: .id)
        let name = try container.decode(String.self, forKey: .request)
        switch name {
        case "status": request = .status
        case "graph": request = .graph
        case "plan": request = .plan
        case "watch":
            let every = try container.decodeIfPresent(Double.self, forKey: .every) ?? ControlProtocol.defaultInterval
            guard ControlProtocol.intervals.contains(every) else {
                throw DecodingError.dataCorruptedError(
                    forKey: .every, in: container, debugDescription: "must be 0.1 to 3600 seconds")
            }
            request = .watch(every: every)
        case "unwatch": request = .unwatch
        case "apply":
            let deadline = try container.decodeIfPresent(Double.self, forKey: .deadline)
            if let deadline, !(deadline > 0 && deadline <= 60) {
                throw DecodingError.dataCorruptedError(
                    forKey: .deadline, in: container, debugDescription: "must be more than 0 and at most 60 seconds")
            }
            request = .apply(try container.decode(MediaGraph.self, forKey: .graph), deadline: deadline)
        case "set", "check":
            let node = try container.decode(String.self, forKey: .node)
            let setting = try container.decode(String.self, forKey: .setting)
            let value = try container.decode(SettingValue.self, forKey: .value)
            request =
                name == "set"
                ? .set(node: node, setting: setting, value) : .check(node: node, setting: setting, value)
        default:
            throw ControlProblem(
                code: "control.unknown-request",
                "Unknown request '\(name.prefix(40))'. Send status, graph, plan, watch, unwatch, apply, set or check.")
        }
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        try container.encodeIfPresent(id, forKey: .id)
        switch request {
        case .status: try container.encode("status", forKey: .request)
        case .graph: try container.encode("graph", forKey: .request)
        case .plan: try container.encode("plan", forKey: .request)
        case .watch(let every):
            try container.encode("watch", forKey: .request)
            try container.encode(every, forKey: .every)
        case .unwatch: try container.encode("unwatch", forKey: .request)
        case .apply(let graph, let deadline):
            try container.encode("apply", forKey: .request)
            try container.encode(graph, forKey: .graph)
            try container.encodeIfPresent(deadline, forKey: .deadline)
        case .set(let node, let setting, let value), .check(let node, let setting, let value):
            let isCheck = if case .check = request { true } else { false }
            try container.encode(isCheck ? "check" : "set", forKey: .request)
            try container.encode(node, forKey: .node)
            try container.encode(setting, forKey: .setting)
            try container.encode(value, forKey: .value)
        }
    }

    /// Reads one line. A failure includes the request's number if the line has one.
    static func read(_ line: [UInt8]) -> Result<ControlEnvelope, NumberedProblem> {
        let data = Data(line)
        do {
            return .success(try JSONDecoder().decode(ControlEnvelope.self, from: data))
        } catch {
            let id = (try? JSONDecoder().decode(Numbered.self, from: data))?.id
            return .failure(NumberedProblem(id: id, problem: problem(error)))
        }
    }

    struct NumberedProblem: Error {
        var id: Int?
        var problem: ControlProblem
    }

    private struct Numbered: Decodable { var id: Int? }

    private static func problem(_ error: any Error) -> ControlProblem {
        func malformed(_ what: String) -> ControlProblem {
            ControlProblem(
                code: "control.malformed", "\(what). Send one line such as {\"id\":1,\"do\":\"status\"}.")
        }
        func path(_ keys: [any CodingKey]) -> String {
            "'\(keys.map { $0.intValue.map { "[\($0)]" } ?? $0.stringValue }.joined(separator: ".").prefix(80))'"
        }
        switch error {
        case let error as ControlProblem: return error
        case DecodingError.keyNotFound(let key, _): return malformed("'\(key.stringValue)' is missing")
        case DecodingError.typeMismatch(_, let context), DecodingError.valueNotFound(_, let context):
            return malformed(
                context.codingPath.isEmpty
                    ? "The line is not a JSON object" : "\(path(context.codingPath)) has the wrong type")
        case DecodingError.dataCorrupted(let context) where !context.codingPath.isEmpty:
            return malformed("\(path(context.codingPath)) \(context.debugDescription)")
        default: return malformed("The line is not a JSON object")
        }
    }
}

// MARK: - Replies

/// A reply: `result` or `error`, and the request's number.
struct ControlAnswer<Body: Encodable>: Encodable {
    var id: Int?
    var result: Body?
    var error: ControlProblem?
}

/// A reply without a result.
struct Done: Codable, Sendable {}

/// A message that is not a reply.
struct ControlEvent: Codable, Sendable {
    enum Kind: String, Codable, Sendable {
        case statistics
        /// The pipeline ended. It is the last event.
        case ended
    }

    var event: Kind
    var statistics: PipelineStatistics?
    /// Why the pipeline failed. Nil if it ended normally.
    var error: ControlProblem?
}

/// The process and its pipeline.
struct PipelineStatus: Codable, Sendable, Equatable {
    var version = ControlProtocol.version
    var pid: Int
    /// The graph file's path, as given on the command line.
    var file: String
    /// The `description` of the graph file.
    var description: String?
    /// `prepared`, `running`, `paused`, `ended` or `failed`.
    var state: String
    /// Seconds since the start.
    var seconds: Double
}

/// The result of `set`.
struct AppliedSetting: Codable, Sendable, Equatable {
    /// A sentence for the user.
    var note: String?
}

/// The result of `apply`.
struct AppliedEdit: Codable, Sendable, Equatable {
    /// One line for each change.
    var changes: [String]
    /// One sentence for each new or replaced source whose device is away, and for other doubts. Nil without any.
    var warnings: [String]?
}

/// Statistics at one moment. Counters only grow; the difference of two samples gives a rate.
struct PipelineStatistics: Codable, Sendable, Equatable {
    /// Seconds since the start.
    var seconds: Double
    /// Sources first.
    var nodes: [NodeStatistics]
}
