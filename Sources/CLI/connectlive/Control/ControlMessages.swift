internal import Foundation
internal import MediaGraph

/// What those who attach to a running pipeline say and hear: one JSON object a line, as docs/control-socket.md lists.
enum ControlProtocol {
    static let version = 1
    /// Longest line that either side takes, in bytes: a graph of a thousand nodes is some 150 KiB.
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
    /// Who runs what: answered by `PipelineStatus`.
    case status
    /// Answered by the `MediaGraph` that runs.
    case graph
    /// Answered by the `GraphPlan` that runs.
    case plan
    /// Statistics from now on, as events, every so many seconds.
    case watch(every: Double)
    case unwatch
    /// Makes the running graph this one, as one transaction: answered by `AppliedEdit`.
    case apply(MediaGraph, deadline: Double?)
    case set(node: String, setting: String, SettingValue)
}

/// A request with the number that its answer repeats.
struct ControlEnvelope: Sendable, Equatable {
    var id: Int?
    var request: ControlRequest
}

/// Why a request was refused.
struct ControlProblem: Error, Codable, Sendable, Equatable, CustomStringConvertible {
    var code: String
    var message: String
    /// The node that it is about, if it is about one.
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
                    forKey: .every, in: container, debugDescription: "takes 0.1 to 3600 seconds")
            }
            request = .watch(every: every)
        case "unwatch": request = .unwatch
        case "apply":
            let deadline = try container.decodeIfPresent(Double.self, forKey: .deadline)
            if let deadline, !(deadline > 0 && deadline <= 60) {
                throw DecodingError.dataCorruptedError(
                    forKey: .deadline, in: container, debugDescription: "takes more than 0 and up to 60 seconds")
            }
            request = .apply(try container.decode(MediaGraph.self, forKey: .graph), deadline: deadline)
        case "set":
            request = .set(
                node: try container.decode(String.self, forKey: .node),
                setting: try container.decode(String.self, forKey: .setting),
                try container.decode(SettingValue.self, forKey: .value))
        default:
            throw ControlProblem(
                code: "control.unknown-request",
                "There is no request '\(name.prefix(40))': ask for status, graph, plan, watch, unwatch, apply or set.")
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
        case .set(let node, let setting, let value):
            try container.encode("set", forKey: .request)
            try container.encode(node, forKey: .node)
            try container.encode(setting, forKey: .setting)
            try container.encode(value, forKey: .value)
        }
    }

    /// Reads one line. What cannot be read gives a problem, with the request's number where that could be read.
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
                code: "control.malformed", "\(what); a request is one line such as {\"id\":1,\"do\":\"status\"}.")
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
                    ? "The line is no JSON object" : "\(path(context.codingPath)) has the wrong type")
        case DecodingError.dataCorrupted(let context) where !context.codingPath.isEmpty:
            return malformed("\(path(context.codingPath)) \(context.debugDescription)")
        default: return malformed("The line is no JSON object")
        }
    }
}

// MARK: - Answers

/// An answer: `result` or `error`, and the request's number.
struct ControlAnswer<Body: Encodable>: Encodable {
    var id: Int?
    var result: Body?
    var error: ControlProblem?
}

/// An answer that says no more than that it is done.
struct Done: Codable, Sendable {}

/// Something that nobody asked for just now.
struct ControlEvent: Codable, Sendable {
    enum Kind: String, Codable, Sendable {
        case statistics
        /// The pipeline has ended; nothing follows.
        case ended
    }

    var event: Kind
    var statistics: PipelineStatistics?
    /// Why it ended, if not at its end.
    var error: ControlProblem?
}

/// Who runs what.
struct PipelineStatus: Codable, Sendable, Equatable {
    var version = ControlProtocol.version
    var pid: Int
    /// The file that was run, as it was named.
    var file: String
    /// What the file says that the graph is for.
    var description: String?
    /// `prepared`, `running`, `paused`, `ended` or `failed`.
    var state: String
    /// Since the start.
    var seconds: Double
}

/// What became of a setting.
struct AppliedSetting: Codable, Sendable, Equatable {
    /// What is to be known of it, in a sentence.
    var note: String?
}

/// What an edit did.
struct AppliedEdit: Codable, Sendable, Equatable {
    /// One line for each thing that changed, in words.
    var changes: [String]
}

/// What has been counted, at one moment. Counters only grow; take two and subtract for a rate.
struct PipelineStatistics: Codable, Sendable, Equatable {
    /// Since the start.
    var seconds: Double
    /// Sources first.
    var nodes: [NodeStatistics]
}
