internal import ArgumentParser
internal import Foundation

struct TopCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "top", abstract: "Watch the nodes of a running pipeline: rates, drops, queues, time.",
        discussion: "Counting is on only while somebody watches.")

    @Argument(help: "Process number or control socket (default: the only pipeline that runs).") var pipeline: String?

    @Option(help: "Seconds between two looks, 0.1 to 3600.") var every = ControlProtocol.defaultInterval

    @OptionGroup var length: SecondsFlag

    @Flag(help: "Print each look as one line of JSON.") var json = false

    func validate() throws {
        guard ControlProtocol.intervals.contains(every) else {
            throw ValidationError("--every takes 0.1 to 3600 seconds.")
        }
    }

    func run() async throws {
        let interruption = Interruption()
        let watching = Task { try await watch() }
        let waiting = Task {
            await interruption.wait(seconds: length.seconds)
            watching.cancel()
        }
        defer { waiting.cancel() }
        do {
            try await watching.value
        } catch {
            // Whoever leaves is done.
            if !watching.isCancelled { throw error }
        }
    }

    private func watch() async throws {
        try await ControlClient.attached(to: pipeline) { client in
            let status = try await client.ask(.status, for: PipelineStatus.self)
            try await client.tell(.watch(every: every))
            let screen = Screenful(.standardOutput)
            var before: PipelineStatistics?
            while true {
                let event = try await client.nextEvent()
                if event.event == .ended { return try Self.ended(event) }
                guard let now = event.statistics else { continue }
                if json {
                    screen.say(String(ControlProtocol.line(now).dropLast()))
                } else if let before {
                    screen.show(TopView(status, before, now, Style(hasColours: screen.hasColours)).lines)
                }
                before = now
            }
        }
    }

    private static func ended(_ event: ControlEvent) throws {
        if let problem = event.error { throw problem }
        Console.say("The pipeline has ended.")
    }
}

/// One look at the nodes of a pipeline.
struct TopView {
    let lines: [String]

    init(_ status: PipelineStatus, _ before: PipelineStatistics, _ now: PipelineStatistics, _ style: Style) {
        let heading =
            "\(status.file)  ·  process \(status.pid)  ·  \(status.state) for \(Figures.clock(now.seconds))"
        var table = Table(.left, .right, .right, .right, .left, .right, .right, .right)
        table.add("NODE", "IN/S", "OUT/S", "KBIT/S", "DROPPED", "QUEUE", "TIME", "LATENCY")
        let span = now.seconds - before.seconds
        var dropping: Set<Int> = []
        for (index, node) in now.nodes.enumerated() {
            let earlier = before.nodes.first { $0.name == node.name }
            func rate(_ count: Int?, _ past: Int?, by divisor: Double = 1) -> Double? {
                guard let count, span > 0 else { return nil }
                return Double(count - (past ?? 0)) / span / divisor
            }
            if node.dropped.values.reduce(0, +) > earlier?.dropped.values.reduce(0, +) ?? 0 { dropping.insert(index) }
            table.add(
                node.name, rate(node.framesIn, earlier?.framesIn).map { Figures.number($0, 1) } ?? "",
                rate(node.framesOut, earlier?.framesOut).map { Figures.number($0, 1) } ?? "",
                rate(node.bytesOut, earlier?.bytesOut, by: 125).map { Figures.number($0) } ?? "",
                Self.dropped(node.dropped), Self.queue(node),
                node.millisecondsInNode.map(Figures.milliseconds) ?? "", node.latency.map(Figures.milliseconds) ?? "")
        }
        let rows = table.lines(hasHeading: true)
        lines =
            [style.bold(heading), "", style.faint(rows[0])]
            + rows.dropFirst().enumerated().map {
                dropping.contains($0.offset) ? style.warning($0.element) : $0.element
            }
    }

    private static func dropped(_ dropped: [String: Int]) -> String {
        dropped.filter { $0.value > 0 }.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key)" }
            .joined(separator: ", ")
    }

    private static func queue(_ node: PipelineStatistics.Node) -> String {
        guard let queued = node.queued else { return "" }
        return node.queueCapacity.map { "\(queued)/\($0)" } ?? "\(queued)"
    }
}
