public import MediaGraph
import Synchronization

/// Scores capturers: whether they keep what the host and the other nodes rely on.
///
///     let report = await Conformance.test(ClockFace.self)
///     #expect(report.isPassed, "\(report)")
///
/// The checks run one after the other, on real time. What they hold a capturer to stands in docs/plugin-conformance.md.
public enum Conformance {
    /// How thorough the checks are.
    public struct Options: Sendable {
        /// How long a capturer is watched, in seconds.
        public var seconds: Double
        /// How often it is opened and closed in a row; the first fifth is not judged.
        public var reopenings: Int
        /// The names of the checks to make; nil for all.
        public var checks: Set<String>?
        /// Told each result as it comes.
        public var onResult: (@Sendable (CheckResult) -> Void)?
        /// With these it is tried, over those of its rehearsal.
        public var settings: [String: SettingValue] = [:]
        /// What it has said in checks that were made before, for the check `errors`.
        public var saidBefore: [SaidError] = []
        /// Told what is going on, for who wants to know of what a capturer died.
        public var onEvent: (@Sendable (ConformanceEvent) -> Void)?
        var clock: any StandClock = MachineClock()
        var settling = Settling()

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

    /// Every check, in the order in which they are made: what has vanished may not come back, and what was said in all of
    /// them is looked at in the end.
    public static let checks: [ConformanceCheck] = [
        .formats, .timestamps, .clock, .pacing, .slowConsumer, .cancellation, .stopWhileStarting, .failureWhileStarting,
        .formatChange, .settings, .reopening, .vanishing, .errors,
    ]

    /// Makes the checks on a capturer. What its author knows about bringing it into trouble is its `Rehearsed.rehearsal`,
    /// unless another is given.
    public static func test<Kind: Capturer>(
        _ kind: Kind.Type, _ rehearsal: Rehearsal? = nil, _ options: Options = Options()
    ) async -> ConformanceReport {
        let own = (kind as? any Rehearsed.Type)?.rehearsal
        return await test(DirectStand(kind, options.clock), rehearsal ?? own ?? Rehearsal(), options)
    }

    /// Makes the checks on whatever a stand opens.
    public static func test(
        _ stand: any CaptureStand, _ rehearsal: Rehearsal = Rehearsal(), _ options: Options = Options()
    ) async -> ConformanceReport {
        var rehearsal = rehearsal
        rehearsal.settings.merge(options.settings) { $1 }
        let examination = Examination(stand, rehearsal, options)
        var results: [CheckResult] = []
        for check in checks where options.checks?.contains(check.name) ?? true {
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

/// One thing that is demanded of a capturer, and how it is found out.
public struct ConformanceCheck: Sendable {
    public let name: String
    /// In one sentence.
    public let demand: String
    private let body: @Sendable (Examination) async throws -> Finding

    init(_ name: String, _ demand: String, _ body: @escaping @Sendable (Examination) async throws -> Finding) {
        self.name = name
        self.demand = demand
        self.body = body
    }

    /// Where it is explained.
    public var documentation: String { "docs/plugin-conformance.md#\(name)" }

    func finding(_ examination: Examination) async -> Finding {
        do {
            return try await body(examination)
        } catch let unjudged as Unjudged {
            return .notApplicable(unjudged.words)
        } catch {
            return .failed("it did not start: \(error)")
        }
    }
}

/// What a check has found.
struct Finding {
    let verdict: CheckResult.Verdict
    let words: String

    static func passed(_ words: String) -> Finding { Finding(verdict: .passed, words: words) }
    static func failed(_ words: String) -> Finding { Finding(verdict: .failed, words: words) }
    static func notApplicable(_ words: String) -> Finding { Finding(verdict: .notApplicable, words: words) }
}

/// One capturer while it is examined, and what the checks share.
final class Examination: Sendable {
    private struct State {
        var watched: Watched?
        var rate: Double??
        var errors: [SaidError]
    }

    let stand: any CaptureStand
    let rehearsal: Rehearsal
    let options: Conformance.Options
    var clock: any StandClock { options.clock }
    private let state: Mutex<State>

    init(_ stand: any CaptureStand, _ rehearsal: Rehearsal, _ options: Conformance.Options) {
        self.stand = stand
        self.rehearsal = rehearsal
        self.options = options
        state = Mutex(State(errors: options.saidBefore))
    }

    /// What came when nothing was done to it.
    struct Watched: Sendable {
        let stated: MediaFormat?
        let units: [CapturedUnit]
        let outcome: CaptureOutcome?
        /// For so many seconds the machine stood still meanwhile.
        var stoodStill = 0.0
        /// So many seconds a keyframe was waited for in vain; nil where none was.
        var keyframeLack: Double?

        /// Why its times cannot be judged; nil where they can.
        var lack: String? {
            if case .failed(let error) = outcome { return "it failed after \(units.count): \(error)" }
            return units.count < 3 ? "it gave \(units.count) in this time" : nil
        }

        /// A stream may be short; then there is nothing to judge, and nothing wrong.
        var isShort: Bool {
            if case .ended = outcome { return units.count < 10 }
            return false
        }
    }

    func open(
        _ settings: [String: SettingValue] = [:], _ consumer: CaptureConsumer = .quick
    ) async throws -> any CaptureRun {
        tries(settings.isEmpty ? "" : "with \(settings.shown)")
        return try await stand.open(rehearsal.settings.merging(settings) { $1 }, consumer)
    }

    /// Pictures a second with the settings of the rehearsal, as it says; nil for sound.
    var rate: Double? {
        if let rate = state.withLock({ $0.rate }) { return rate }
        let rate = try? stand.format(rehearsal.settings)?.framesPerSecond
        state.withLock { $0.rate = .some(rate) }
        return rate
    }

    /// Runs it once, for all the checks that only look.
    func watched() async throws -> Watched {
        if let watched = state.withLock({ $0.watched }) { return watched }
        let watched = try await watch(for: try span(of: 4.5, orAtLeast: options.seconds))
        state.withLock { $0.watched = watched }
        return watched
    }

    func watch(for seconds: Double, _ consumer: CaptureConsumer = .quick) async throws -> Watched {
        let stated = try stand.format(rehearsal.settings)
        let standstill = clock.standstill
        let run = try await open(consumer)
        if try await waitsInVain(for: 1, from: run) == nil {
            await clock.runs(run, for: seconds)
            // What came to nothing of it is made up for.
            if let standstill { await clock.runs(run, for: min(seconds, standstill.seconds)) }
        }
        // One that was asked for at the end is waited for as long as any other.
        _ = await clock.waits(KeyframeWait(run.units).limit) {
            let wait = KeyframeWait(run.units)
            return run.outcome != nil || wait.since == nil || wait.isTooLong(at: clock.now)
        }
        let outcome = run.outcome
        let units = run.units
        let wait = KeyframeWait(units)
        let lack = wait.isTooLong(at: clock.now) ? wait.limit : nil
        _ = await run.stop()
        return Watched(
            stated: stated, units: units, outcome: outcome, stoodStill: standstill?.seconds ?? 0, keyframeLack: lack)
    }

    private func open(_ consumer: CaptureConsumer) async throws -> any CaptureRun { try await open([:], consumer) }

    /// What it said when something was in its way.
    var errors: [SaidError] { state.withLock { $0.errors } }

    func note(_ error: any Error) {
        let said = SaidError(error)
        state.withLock { $0.errors.append(said) }
        options.onEvent?(.says(said))
    }

    /// Something is about to be done to it.
    func tries(_ what: String) {
        options.onEvent?(.tries(what))
    }
}

extension [String: SettingValue] {
    /// In words, always in the same order.
    var shown: String { map { "\($0) \($1)" }.sorted().joined(separator: ", ") }
}
