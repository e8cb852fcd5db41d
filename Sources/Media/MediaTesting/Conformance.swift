public import MediaAuthoring
import Synchronization

/// Scores capturers, processors and renderers: whether they keep the promises that the host and other nodes rely on.
///
///     let report = await Conformance.test(ClockFace.init)
///     #expect(report.isPassed, "\(report)")
///
/// The checks run one after another, in real time. docs/plugin-conformance.md has their requirements.
public enum Conformance {
    /// Nodes that have the same checks.
    public enum Group: String, Sendable, Hashable, Codable, CaseIterable {
        /// Nodes of this role in a graph.
        case capturer, processor, renderer
    }

    /// The extent of the checks.
    public struct Options: Sendable {
        /// How long to watch a capturer, in seconds.
        public var seconds: Double
        /// How often to open and close it. The first fifth is not judged.
        public var reopenings: Int
        /// The names of the checks to run. Nil means all.
        public var checks: Set<String>?
        /// Receives each result.
        public var onResult: (@Sendable (CheckResult) -> Void)?
        /// Settings that override those of its rehearsal.
        public var settings: [String: SettingValue] = [:]
        /// Errors of earlier checks, for the check `errors`.
        public var saidBefore: [SaidError] = []
        /// Receives progress, which shows the step at which a node crashed.
        public var onEvent: (@Sendable (ConformanceEvent) -> Void)?
        /// Whether the node was built with optimization, as the kit by default. A debug build is not judged by the time
        /// that its loops take.
        public var isOptimized = !_isDebugAssertConfiguration()
        var clock: any StandClock = MachineClock()
        var settling = Settling()

        /// All checks, at their usual extent.
        public init(
            seconds: Double = 2, reopenings: Int = 500, checks: Set<String>? = nil,
            onResult: (@Sendable (CheckResult) -> Void)? = nil
        ) {
            self.seconds = seconds
            self.reopenings = reopenings
            self.checks = checks
            self.onResult = onResult
        }
    }

    /// The checks of capturers, processors or renderers, in order: a lost device may not return, so `vanishing` is late,
    /// and `errors` judges the errors of all others.
    public static func checks(for group: Group) -> [ConformanceCheck] {
        switch group {
        case .capturer:
            [
                .formats, .timestamps, .clock, .pacing, .slowConsumer, .cancellation, .stopWhileStarting,
                .failureWhileStarting, .formatChange, .settings, .reopening, .vanishing, .errors,
            ]
        case .processor:
            [
                .sizes, .sizeChange, .speed, .failureWhileStarting, .settings, .liveSettings, .reopening, .errors,
            ]
        case .renderer:
            [
                .sizes, .sizeChange, .gaps, .holding, .end, .cancellation, .stopWhileStarting, .failureWhileStarting,
                .settings, .liveSettings, .reopening, .vanishing, .errors,
            ]
        }
    }

    /// Runs the checks on a capturer. The author's information on its failures is its `Rehearsed.rehearsal`, unless
    /// another is passed.
    ///
    /// - Parameter make: returns another value with default settings each time.
    public static func test<Kind: Capturer>(
        _ make: @escaping @Sendable () -> Kind, _ rehearsal: Rehearsal? = nil, _ options: Options = Options()
    ) async -> ConformanceReport {
        await test(DirectStand(make, options.clock), of: Kind.self, rehearsal, options)
    }

    /// Runs the checks on a processor, as on a capturer.
    public static func test<Kind: Processor>(
        _ make: @escaping @Sendable () -> Kind, _ rehearsal: Rehearsal? = nil, _ options: Options = Options()
    ) async -> ConformanceReport {
        await test(FedStand(processor: make, options.clock), of: Kind.self, rehearsal, options)
    }

    /// Runs the checks on a renderer, as on a capturer.
    public static func test<Kind: Renderer>(
        _ make: @escaping @Sendable () -> Kind, _ rehearsal: Rehearsal? = nil, _ options: Options = Options()
    ) async -> ConformanceReport {
        await test(FedStand(renderer: make, options.clock), of: Kind.self, rehearsal, options)
    }

    private static func test(
        _ stand: any NodeStand, of kind: any WrittenNode.Type, _ rehearsal: Rehearsal?, _ options: Options
    ) async -> ConformanceReport {
        await test(stand, rehearsal ?? (kind as? any Rehearsed.Type)?.rehearsal ?? Rehearsal(), options)
    }

    /// Runs the checks on the nodes of a stand.
    public static func test(
        _ stand: any NodeStand, _ rehearsal: Rehearsal = Rehearsal(), _ options: Options = Options()
    ) async -> ConformanceReport {
        var rehearsal = rehearsal
        rehearsal.settings.merge(options.settings) { $1 }
        let examination = Examination(stand, rehearsal, options)
        var results: [CheckResult] = []
        for check in checks(for: stand.group) where options.checks?.contains(check.name) ?? true {
            options.onEvent?(.begins(check: check.name))
            let began = MediaTime.current
            let finding = await check.finding(examination)
            let result = CheckResult(
                check: check.name, demand: check.demand, documentation: check.documentation, verdict: finding.verdict,
                words: finding.words, seconds: MediaTime.current.seconds(since: began))
            options.onEvent?(.result(result))
            options.onResult?(result)
            results.append(result)
        }
        return ConformanceReport(subject: stand.name, results: results)
    }
}

/// One requirement for nodes, and its check.
public struct ConformanceCheck: Sendable {
    /// The name, such as `clock`.
    public let name: String
    /// The requirement in one sentence.
    public let demand: String
    private let body: @Sendable (Examination) async throws -> Finding

    init(_ name: String, _ demand: String, _ body: @escaping @Sendable (Examination) async throws -> Finding) {
        self.name = name
        self.demand = demand
        self.body = body
    }

    /// The page and section that explain it.
    public var documentation: String { "docs/plugin-conformance.md#\(name)" }

    func finding(_ examination: Examination) async -> Finding {
        do {
            return try await body(examination)
        } catch let finding as Finding {
            return finding
        } catch {
            return .failed("it did not start: \(error)")
        }
    }
}

/// The result of a check, which any of its steps may throw.
struct Finding: Error {
    let verdict: CheckResult.Verdict
    let words: String

    static func passed(_ words: String) -> Finding { Finding(verdict: .passed, words: words) }
    static func failed(_ words: String) -> Finding { Finding(verdict: .failed, words: words) }
    static func notApplicable(_ words: String) -> Finding { Finding(verdict: .notApplicable, words: words) }
}

/// The test of one node, with data shared by the checks.
final class Examination: Sendable {
    private struct State {
        var watched: Watched?
        var rate: Double??
        var errors: [SaidError]
    }

    let stand: any NodeStand
    let rehearsal: Rehearsal
    let options: Conformance.Options
    var clock: any StandClock { options.clock }
    private let state: Mutex<State>

    init(_ stand: any NodeStand, _ rehearsal: Rehearsal, _ options: Conformance.Options) {
        self.stand = stand
        self.rehearsal = rehearsal
        self.options = options
        state = Mutex(State(errors: options.saidBefore))
    }

    /// The output of an undisturbed run.
    struct Watched: Sendable {
        let stated: MediaFormat?
        let units: [MediaUnit]
        let outcome: NodeOutcome?
        /// For how many seconds the machine stalled meanwhile.
        var stoodStill = 0.0
        /// How many seconds a keyframe was awaited without success. Nil if none was.
        var keyframeLack: Double?

        /// Why its times cannot be judged. Nil if they can.
        var lack: String? {
            if case .failed(let error) = outcome { return "it failed after \(units.count): \(error)" }
            return units.count < 3 ? "it sent \(units.count) in this time" : nil
        }

        /// A short stream is valid, but cannot be judged.
        var isShort: Bool {
            if case .ended = outcome { return units.count < 10 }
            return false
        }

        /// Throws unless its times can be judged.
        func requireTimes() throws {
            if isShort { throw Finding.notApplicable("it ended after \(units.count)") }
            if let lack { throw Finding.failed(lack) }
        }
    }

    func open(
        _ settings: [String: SettingValue] = [:], _ consumer: CaptureConsumer = .quick
    ) async throws -> any NodeRun {
        tries(settings.isEmpty ? "" : "with \(settings.shown)")
        return try await stand.open(rehearsal.settings.merging(settings) { $1 }, consumer)
    }

    /// The stated frame rate with the settings of the rehearsal. Nil for audio.
    var rate: Double? {
        if let rate = state.withLock({ $0.rate }) { return rate }
        let rate = try? stand.format(rehearsal.settings)?.framesPerSecond
        state.withLock { $0.rate = .some(rate) }
        return rate
    }

    /// Runs it once for all checks that only watch.
    func watched() async throws -> Watched {
        if let watched = state.withLock({ $0.watched }) { return watched }
        let watched = try await watch(for: try span(of: 4.5, orAtLeast: options.seconds))
        state.withLock { $0.watched = watched }
        return watched
    }

    func watch(for seconds: Double, _ consumer: CaptureConsumer = .quick) async throws -> Watched {
        let stated = try stand.format(rehearsal.settings)
        let standstill = clock.standstill
        let run = try await open([:], consumer)
        if try await waitsInVain(for: 1, from: run) == nil {
            await clock.runs(run, for: seconds)
            // Extends the run by the time that was lost.
            if let standstill { await clock.runs(run, for: min(seconds, standstill.seconds)) }
        }
        // A keyframe requested at the end gets the same time as any other.
        _ = await clock.waits(KeyframeWait(run.units).limit) {
            let wait = KeyframeWait(run.units)
            return run.outcome != nil || wait.since == nil || wait.isTooLong(at: clock.now)
        }
        let units = run.units
        let wait = KeyframeWait(units)
        let lack = wait.isTooLong(at: clock.now) ? wait.limit : nil
        return Watched(
            stated: stated, units: units, outcome: await run.finish(), stoodStill: standstill?.seconds ?? 0,
            keyframeLack: lack)
    }

    /// The errors that it reported.
    var errors: [SaidError] { state.withLock { $0.errors } }

    func note(_ error: any Error) {
        let said = SaidError(error)
        state.withLock { $0.errors.append(said) }
        options.onEvent?(.says(said))
    }

    /// Reports the next step.
    func tries(_ what: String) {
        options.onEvent?(.tries(what))
    }
}

extension [String: SettingValue] {
    /// As text, sorted.
    var shown: String { map { "\($0) = \($1)" }.sorted().joined(separator: ", ") }
}
