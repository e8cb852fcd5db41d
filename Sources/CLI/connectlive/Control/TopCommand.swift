internal import ArgumentParser
internal import Foundation
internal import MediaGraph
internal import RoomClient
internal import RoomProtocol

struct TopCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "top", abstract: "Show statistics of a running pipeline's nodes, or of a room server's loops.",
        discussion:
            "For each node: rates, drops, queues, latency. For each loop of a server: load, turns, packets, queues, "
            + "drops. A pipeline collects statistics only while a client watches.")

    @Argument(help: "Process number or control socket (default: the only running pipeline).") var pipeline: String?

    @Option(
        defaultAsFlag: "", parsing: .next,
        help: ArgumentHelp(
            "Show a room server instead of a pipeline (default: CONNECTLIVE_SERVER, else the server of 'serve').",
            valueName: "url"))
    var server: String?

    @Option(help: "Service id, for --server (default: CONNECTLIVE_SERVICE_ID, else that of 'serve').")
    var serviceId: String?

    @Option(help: "Service secret, for --server (default: CONNECTLIVE_SERVICE_SECRET, else that of 'serve').")
    var serviceSecret: String?

    @OptionGroup var authorities: AuthoritiesFlag

    @Option(help: "Refresh interval in seconds, 0.1 to 3600.") var every = ControlProtocol.defaultInterval

    @OptionGroup var length: SecondsFlag

    @Flag(help: "Print each sample as one line of JSON.") var json = false

    func validate() throws {
        guard ControlProtocol.intervals.contains(every) else {
            throw ValidationError("--every must be 0.1 to 3600 seconds.")
        }
        guard server == nil || pipeline == nil else {
            throw ValidationError("top shows a pipeline or, with --server, a server. Name one of them.")
        }
        guard server != nil || serviceId == nil && serviceSecret == nil && authorities.ca == nil else {
            throw ValidationError("--service-id, --service-secret and --ca need --server.")
        }
    }

    func run() async throws {
        let interruption = Interruption()
        let watching = Task {
            if let server { try await watchServer(server) } else { try await watch() }
        }
        let waiting = Task {
            await interruption.wait(seconds: nil)
            watching.cancel()
        }
        defer { waiting.cancel() }
        do {
            try await watching.value
        } catch {
            // A cancelled watch is a normal end.
            if !watching.isCancelled { throw error }
        }
    }

    /// Seconds between two samples. A shorter `--seconds` has one sample at its end.
    private var interval: Double {
        length.seconds.map { min(every, max($0, ControlProtocol.intervals.lowerBound)) } ?? every
    }

    /// How many samples follow the first.
    private var samples: Int {
        guard let seconds = length.seconds, seconds / interval < Double(Int.max / 2) else { return .max }
        return max(1, Int(seconds / interval))
    }

    private func watch() async throws {
        try await ControlClient.attached(to: pipeline) { client in
            let status = try await client.ask(.status, for: PipelineStatus.self)
            // The first sample arrives immediately; the next ones are compared with it.
            try await client.tell(.watch(every: interval))
            let screen = Screenful(.standardOutput)
            var before: PipelineStatistics?
            var left = samples
            while left > 0 {
                let event = try await client.nextEvent()
                if event.event == .ended { return try Self.ended(event) }
                guard let now = event.statistics else { continue }
                if json {
                    screen.say(String(ControlProtocol.line(now).dropLast()))
                } else if let before {
                    screen.show(TopView(status, before, now, Style(hasColours: screen.hasColours)).lines)
                }
                if before != nil { left -= 1 }
                before = now
            }
        }
    }

    private func watchServer(_ server: String) async throws {
        let location = try ServerLocator(
            server: server, serviceId: serviceId, serviceSecret: serviceSecret, authorities: authorities.ca
        ).locate()
        let screen = Screenful(.standardOutput)
        var before: ServerStatistics?
        var left = samples
        while true {
            let now = try await ServerRequest(to: location).statistics()
            // The server was started again.
            if let earlier = before, earlier.seconds > now.seconds { before = nil }
            if json {
                screen.say(String(ControlProtocol.line(now).dropLast()))
            } else if let before {
                let style = Style(hasColours: screen.hasColours)
                screen.show(ServerTopView("\(location.address)", before, now, style).lines)
            }
            if before != nil { left -= 1 }
            before = now
            guard left > 0 else { return }
            try await Task.sleep(for: .seconds(interval))
        }
    }

    private static func ended(_ event: ControlEvent) throws {
        if let problem = event.error { throw problem }
        Console.say("The pipeline ended.")
    }
}

/// One sample of a pipeline's nodes, as text.
struct TopView {
    let lines: [String]

    init(_ status: PipelineStatus, _ before: PipelineStatistics, _ now: PipelineStatistics, _ style: Style) {
        let heading =
            "\(status.file)  ·  process \(status.pid)  ·  \(status.state) for \(Figures.clock(now.seconds))"
        var table = Table(.left, .left, .right, .right, .right, .right, .right, .right, .left)
        table.add("NODE", "OUTPUT", "IN/S", "OUT/S", "KBIT/S", "QUEUED", "TIME", "AGE", "DROPPED")
        var dropping: Set<Int> = []
        for (index, node) in now.nodes.enumerated() {
            let earlier = now.earlier(node.node, in: before)
            let span = now.span(of: node.node, since: before)
            func rate(_ count: Int, _ past: Int?, _ digits: Int = 1) -> String {
                guard count > 0, span > 0 else { return "" }
                return Figures.number(Double(count - (past ?? 0)) / span, digits)
            }
            // Frames and audio buffers have no common rate.
            func rates(_ counts: [String: Int], _ past: [String: Int]?, _ sum: Int, _ pastSum: Int?) -> String {
                guard counts.count > 1 else { return rate(sum, pastSum) }
                return counts.filter { $0.value > 0 }.sorted { $0.key < $1.key }
                    .map { "\($0.key) \(rate($0.value, past?[$0.key]))" }.joined(separator: ", ")
            }
            if node.droppedFrames > earlier?.droppedFrames ?? 0 { dropping.insert(index) }
            let isRaw = node.format?.kind == .rawVideo || node.format?.kind == .rawAudio
            let bits = isRaw ? "" : rate(node.bytesOut / 125, (earlier?.bytesOut ?? 0) / 125, 0)
            table.add(
                node.node, Self.output(node),
                rates(
                    node.inputs.mapValues(\.frames), earlier?.inputs.mapValues(\.frames), node.framesIn,
                    earlier?.framesIn),
                rates(node.outputs, earlier?.outputs, node.framesOut, earlier?.framesOut), bits,
                node.queued > 0 ? "\(node.queued)" : "",
                node.secondsInNode.map { Figures.milliseconds($0 * 1000) } ?? "",
                node.latency.map { Figures.milliseconds($0 * 1000) } ?? "", Self.dropped(node.dropped))
        }
        let rows = table.lines()
        lines =
            [style.bold(heading), "", style.faint(rows[0])]
            + rows.dropFirst().enumerated().map {
                dropping.contains($0.offset) ? style.warning($0.element) : $0.element
            }
    }

    private static func output(_ node: NodeStatistics) -> String {
        if let source = node.source, source.isAway { return "\(media(node)) (\(source.state.rawValue))" }
        return media(node)
    }

    private static func media(_ node: NodeStatistics) -> String {
        guard let format = node.format else { return "" }
        if !node.levels.isEmpty { return "\(format.encoding), \(Figures.levels(node.levels))" }
        guard let width = format.width, let height = format.height else { return format.encoding }
        return "\(format.encoding) \(width)x\(height)"
    }

    private static func dropped(_ drops: [NodeStatistics.Drop]) -> String {
        drops.filter { $0.frames > 0 }.map { "\($0.frames) (\($0.rule.rawValue))" }.joined(separator: ", ")
    }
}
