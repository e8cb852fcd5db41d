internal import ArgumentParser
internal import Foundation
internal import GraphFile
internal import MediaGraph
internal import MediaNodes
internal import RoomClient

struct PlanCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "plan", abstract: "Show what a graph would do on this machine, without starting it.")

    enum Format: String, ExpressibleByArgument, CaseIterable {
        case text
        case json
    }

    @OptionGroup var graph: GraphFlags

    @Option(help: "Output format: text or json.") var format = Format.text

    func run() async throws {
        let document = try graph.document()
        let plan = try await graph.plan(document, measuringCosts: true)
        for warning in plan.sharedCameras { Console.line("warning: \(warning)") }
        switch format {
        case .text:
            let screen = Screenful(.standardOutput)
            let page = PlanPage(plan, title: graph.shownPath, description: document.description)
            Console.say(page.lines(Style(hasColours: screen.hasColours)).joined(separator: "\n"))
        case .json:
            Console.say(try PlanReport(plan.withoutSecrets(KnownNodes.registry)).prettyJSON())
        }
    }

    /// The plan on this machine, without bound functions. Measuring the codecs' latency takes half a second for each.
    static func plan(_ graph: MediaGraph, measuringCosts: Bool) async throws -> GraphPlan {
        try await MediaPipeline.plan(
            graph, bound: [:], registry: KnownNodes.registry,
            environment: SystemEnvironment(measuringCosts: measuringCosts))
    }
}

/// A plan and the values derived from it.
struct PlanReport: Encodable {
    var plan: GraphPlan
    /// Names of the encoders.
    var encodes: [String]
    /// Names of the inserted nodes.
    var inserted: [String]
    /// Links with encoded passthrough media.
    var untouched: [Link]
    var queuedBytes: Int
    /// Latency of each output in milliseconds.
    var latencyMs: [String: Double]

    init(_ plan: GraphPlan) {
        self.plan = plan
        encodes = plan.encoders
        inserted = plan.nodes.filter { $0.adapts != nil }.map(\.name)
        untouched = plan.untouched.map(\.link)
        queuedBytes = plan.queuedBytes
        latencyMs = Dictionary(uniqueKeysWithValues: plan.ends.map { ($0, plan.latency(of: $0) * 1000) })
    }
}

extension GraphPlan {
    /// Links to outputs with media that was encoded outside of the graph.
    var untouched: [LinkPlan] {
        let encoders = Set(encoders)
        let ends = Set(ends)
        return links.filter { link in
            ends.contains(link.link.to.node)
                && (link.format.kind == .encodedVideo || link.format.kind == .encodedAudio)
                && way(to: link.link.from.node).isDisjoint(with: encoders)
        }
    }
}
