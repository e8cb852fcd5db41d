internal import ArgumentParser
internal import Foundation
internal import GraphFile
internal import MediaGraph
internal import MediaNodes
internal import RoomClient

struct RunCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "run", abstract: "Run a graph file, with a status line for each output.",
        discussion: "While it runs, 'top', 'graph --live', 'set' and 'apply' can attach to it.")

    @OptionGroup var graph: GraphFlags

    @OptionGroup var length: SecondsFlag

    @Option(help: "Write planned and measured values to this JSON file at the end.") var report: String?

    @Flag(help: "Do not collect or print statistics.") var quiet = false

    @Flag(help: "Print GStreamer's warnings immediately (default: only when something fails).")
    var verbose = false

    func validate() throws {
        if quiet, report != nil {
            throw ValidationError(
                "--report needs statistics, which --quiet disables. Leave out one of them.")
        }
    }

    /// An event that a run handles.
    fileprivate enum Occurrence: Sendable {
        case started
        case sample
        case event(MediaEvent)
        case logged(GStreamerLog.Line)
        case interrupted
        case couldNotStart(MediaError)
    }

    func run() async throws {
        let document = try graph.document()
        if let report { try check(report, document) }
        let plan = try await graph.plan(document, measuringCosts: false)
        let (occurrences, occur) = AsyncStream.makeStream(of: Occurrence.self)
        let live = try await LiveRun(plan, file: graph.shownPath, description: document.description) {
            occur.yield(.event($0))
        }
        // Before this, a signal ends the process immediately, because a hanging file or driver could block the plan.
        let interruption = Interruption()
        let server = try await ControlServer.start(at: RunningPipelines().makeSocketPath(), for: live)
        Console.say("Running \(graph.shownPath): attach with 'connectlive top \(getpid())'; socket \(server.path)")
        QualityChanges.shared.name("run \(graph.shownPath)")
        for left in plan.omitted { Console.line("Running without \(left.node): \(left.reason) [\(left.code)]") }
        for warning in plan.sharedCameras + plan.unknownFailovers { Console.line("warning: \(warning)") }
        for node in plan.nodes where node.node.kind == "feed" {
            if let path = node.resource { Console.line("\(node.name) waits for a feeder at \(path)") }
        }
        if !quiet { live.setWatched(true) }
        let log = LogMemory()
        let isVerbose = verbose
        GStreamerLog.listen { line in if log.isNew(line), isVerbose { occur.yield(.logged(line)) } }
        defer { GStreamerLog.listen(nil) }
        var (first, hasEnded, failure) = await follow(live, occurrences, occur, interruption)
        let last = live.statistics
        await live.pipeline.stop()
        occur.finish()
        let shortfalls = live.pipeline.shortfalls
        for await case .event(let event) in occurrences {
            // The end of a recording may fail too.
            if case .failed(let error) = event { failure = failure ?? error }
            // Without a failure, shortfalls are the errors at the end.
            if failure == nil, case .warning(_, let message) = event, shortfalls.contains(where: { "\($0)" == message })
            {
                continue
            }
            if let words = Self.words(of: event, in: live.plan) { Console.line(words) }
        }
        await server.stop(failure.map { ControlProblem($0) })
        if !quiet { try await conclude(live, first, last, hasEnded: hasEnded) }
        if let error = failure ?? shortfalls.first, !verbose {
            for line in log.lines(about: error.node) { Console.line(Self.words(of: line)) }
        }
        if let failure { throw failure }
        try Self.report(shortfalls)
    }

    /// Throws if the report cannot be written, or would replace the graph file or a file of a node.
    private func check(_ report: String, _ document: GraphDocument) throws {
        try OutputFile.check(report)
        let machine = SystemEnvironment()
        func isReport(_ path: String) -> Bool {
            machine.fileIdentity(report).map { $0 == machine.fileIdentity(path) } ?? false
        }
        func conflict(_ use: String) -> CommandFailure {
            CommandFailure(
                code: MediaError.Code.fileConflict,
                "The report cannot be written to \(report): \(use). Choose another file for the report.")
        }
        if graph.file != "-", isReport(graph.file) { throw conflict("the graph is read from it") }
        for node in document.graph.nodes {
            for setting in KnownNodes.registry.kind(named: node.kind)?.settings ?? [] where setting.file != nil {
                if let path = node.settings[setting.name]?.text, isReport(path) {
                    throw conflict("\"\(node.name)\" uses that file")
                }
            }
        }
    }

    /// Throws if the run did not do everything that its graph describes.
    private static func report(_ shortfalls: [MediaError]) throws {
        guard let last = shortfalls.last else { return }
        for other in shortfalls.dropLast() { Console.error("\(other)") }
        throw last
    }

    /// Prints the planned beside the measured values. `first` is nil if the start did not complete; the report then
    /// counts from its beginning, and nothing is printed.
    private func conclude(
        _ live: LiveRun, _ first: PipelineStatistics?, _ last: PipelineStatistics, hasEnded: Bool
    ) async throws {
        guard let first else {
            let beginning = PipelineStatistics(seconds: 0, nodes: [])
            if let report { try Comparison(live.plan, from: beginning, to: last).writeJSON(to: report) }
            return
        }
        // Measuring the codecs earlier would have delayed the start. The graph ran as it was planned then: a camera that is
        // away now would be planned otherwise.
        let measured = try? await PlanCommand.plan(live.graph, measuringCosts: true)
        let plan = live.plan.withLatencies(of: measured)
        let comparison = Comparison(plan, from: first, to: last, hasEnded: hasEnded)
        let screen = Screenful(.standardOutput)
        screen.show(comparison.lines(Style(hasColours: screen.hasColours)))
        if let report { try comparison.writeJSON(to: report) }
    }

    /// Follows the run to its end. Returns the first sample after the start, if it started, whether the sources ended
    /// it, and the failure.
    private func follow(
        _ live: LiveRun, _ occurrences: AsyncStream<Occurrence>, _ occur: AsyncStream<Occurrence>.Continuation,
        _ interruption: Interruption
    ) async -> (first: PipelineStatistics?, hasEnded: Bool, failure: MediaError?) {
        var helpers = [
            Task {
                do throws(MediaError) {
                    try await live.start()
                    occur.yield(.started)
                } catch {
                    occur.yield(.couldNotStart(error))
                }
            },
            Task {
                await interruption.wait(seconds: nil)
                occur.yield(.interrupted)
            },
        ]
        defer { for helper in helpers { helper.cancel() } }
        var display = RunDisplay(live)
        for await occurrence in occurrences {
            switch occurrence {
            case .started:
                display.begin()
                helpers += timers(occur)
            case .sample: display.update()
            case .event(.ended): return (display.first, true, nil)
            case .interrupted: return (display.first, false, nil)
            case .event(.failed(let error)), .couldNotStart(let error): return (display.first, false, error)
            case .event(let event):
                let words = Self.words(
                    of: event, in: live.plan, isFirst: display.isFirstArrival(event),
                    before: display.qualityBefore(event))
                if let words {
                    if Self.explainsVideo(event, in: live.plan) { QualityChanges.shared.note(words) }
                    display.say(words)
                }
            case .logged(let line): display.say(Self.words(of: line))
            }
        }
        return (display.first, false, nil)
    }

    /// Whether `connectlive why` keeps the line: changes of the quality, and news of a room's connection.
    private static func explainsVideo(_ event: MediaEvent, in plan: GraphPlan) -> Bool {
        switch event {
        case .qualityChanged: true
        case .warning(let node?, _): plan.node(node).map { ["publish", "subscribe"].contains($0.node.kind) } ?? false
        default: false
        }
    }

    private static func words(of line: GStreamerLog.Line) -> String {
        "\(line.node ?? "GStreamer") (\(line.source), \(line.isError ? "error" : "warning")): \(line.message)"
    }

    /// The line for an event that does not end the run but that the user should see.
    ///
    /// - Parameters:
    ///   - isFirst: whether a device arrives that was not lost before.
    ///   - before: the quality that another one replaces
    static func words(
        of event: MediaEvent, in plan: GraphPlan, isFirst: Bool = false, before: VideoQuality? = nil
    ) -> String? {
        func device(_ node: String) -> String { DeviceWord.of(kind: plan.node(node)?.node.kind) }
        return switch event {
        case .partFailed(let error, let nodes): "Continuing without \(nodes.joined(separator: ", ")): \(error)"
        case .warning(let node, let message): "\(node.map { "\($0): " } ?? "")\(message)"
        case .deviceWaiting(let node, let cause): "\(node) waits for its \(device(node)): \(cause)"
        case .deviceLost(let node, let cause): "\(node) lost its \(device(node)) and continues without it: \(cause)"
        case .deviceReturned(let node): "\(node) has its \(device(node))\(isFirst ? "" : " again")"
        case .deviceFailedOver(let node, let device): "\(node) continues with \(device)"
        case .soundInterrupted(let node): "\(node) is silenced by the sound server while another program plays"
        case .soundResumed(let node): "\(node) is heard again"
        case .qualityChanged(let node, let quality): "\(node): \(before.map(quality.change) ?? "\(quality)")"
        case .ended, .failed, .keyframeNeeded, .firstFrame: nil
        }
    }

    private func timers(_ occur: AsyncStream<Occurrence>.Continuation) -> [Task<Void, Never>] {
        let isTerminal = Console.isTerminal
        let samples = Task {
            while (try? await Task.sleep(for: isTerminal ? .seconds(1) : .seconds(5))) != nil { occur.yield(.sample) }
        }
        guard let seconds = length.seconds else { return quiet ? [] : [samples] }
        let end = Task {
            if (try? await Task.sleep(for: .seconds(seconds))) != nil { occur.yield(.interrupted) }
        }
        return [samples, end]
    }
}

/// The status lines of a run, on standard error.
private struct RunDisplay {
    private let live: LiveRun
    private let screen = Screenful(.standardError)
    private(set) var first: PipelineStatistics?
    private var last: PipelineStatistics?
    /// The nodes whose device had not come yet.
    private var waiting: Set<String> = []
    /// The last one of each node.
    private var qualities: [String: VideoQuality] = [:]

    init(_ live: LiveRun) { self.live = live }

    mutating func isFirstArrival(_ event: MediaEvent) -> Bool {
        switch event {
        case .deviceWaiting(let node, _): waiting.insert(node)
        case .deviceReturned(let node): return waiting.remove(node) != nil
        default: break
        }
        return false
    }

    mutating func qualityBefore(_ event: MediaEvent) -> VideoQuality? {
        guard case .qualityChanged(let node, let quality) = event else { return nil }
        return qualities.updateValue(quality, forKey: node)
    }

    mutating func begin() {
        first = live.statistics
        last = first
    }

    mutating func update() {
        let now = live.statistics
        guard let before = last, !now.nodes.isEmpty else { return }
        last = now
        screen.show(
            RunStatus.lines(
                OutputFigures.all(live.plan, from: before, to: now), now.nodes,
                Style(hasColours: screen.hasColours)))
    }

    func say(_ line: String) { screen.say(line) }
}
