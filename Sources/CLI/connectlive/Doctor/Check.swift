internal import MediaNodes

/// The result of one check.
struct Finding: Sendable, Equatable {
    enum Level: String, Sendable, Encodable, Comparable {
        case ok, warning, failure

        private var rank: Int {
            switch self {
            case .ok: 0
            case .warning: 1
            case .failure: 2
            }
        }

        static func < (left: Self, right: Self) -> Bool { left.rank < right.rank }
    }

    let level: Level
    /// The facts, as one line.
    let text: String
    /// A command or setting that mends it.
    let fix: String?

    static func ok(_ text: String) -> Finding { Finding(level: .ok, text: text, fix: nil) }

    static func warning(_ text: String, fix: String) -> Finding { Finding(level: .warning, text: text, fix: fix) }

    static func failure(_ text: String, fix: String) -> Finding { Finding(level: .failure, text: text, fix: fix) }
}

/// One question to the machine.
struct Check: Sendable {
    /// When a check runs. Each stage begins when the one before has ended.
    enum Stage: Sendable, CaseIterable {
        /// Prepares what the other checks use.
        case first
        /// Runs beside the others.
        case together
        /// Measures speed, and runs alone.
        case alone
    }

    static let usualLimit = Duration.seconds(3)

    let name: String
    /// The server that is asked, such as `stun.example.org:3478`. Nil for a check of this machine.
    let asked: String?
    let stage: Stage
    /// How long the answer may take. Then the check is abandoned, because a driver may never return.
    let limit: Duration
    /// The fix for a check without an answer.
    let fixIfSilent: String
    /// Empty if there is nothing to report.
    let run: @Sendable () async -> [Finding]

    init(
        _ name: String, of asked: String? = nil, _ stage: Stage = .together, limit: Duration = Check.usualLimit,
        fixIfSilent: String, run: @escaping @Sendable () async -> [Finding]
    ) {
        (self.name, self.asked, self.stage, self.limit) = (name, asked, stage, limit)
        (self.fixIfSilent, self.run) = (fixIfSilent, run)
    }

    /// A check that may block its thread, and therefore gets one.
    static func blocking(
        _ name: String, of asked: String? = nil, _ stage: Stage = .together, limit: Duration = Check.usualLimit,
        fixIfSilent: String, run: @escaping @Sendable () -> [Finding]
    ) -> Check {
        Check(name, of: asked, stage, limit: limit, fixIfSilent: fixIfSilent) { (try? await offPool { run() }) ?? [] }
    }
}

/// Runs checks, each within its limit.
struct CheckRunner: Sendable {
    /// Returns after a time.
    var pause: @Sendable (Duration) async -> Void = { try? await Task.sleep(for: $0) }

    /// Calls `report` for each check in the order of `checks`, as soon as it and those before it have answered.
    func run(_ checks: [Check], report: (Check, [Finding]) async -> Void) async {
        for stage in Check.Stage.allCases {
            let checks = checks.filter { $0.stage == stage }
            if stage == .together {
                let answers = checks.map { check in Task { await findings(of: check) } }
                for (check, answer) in zip(checks, answers) { await report(check, await answer.value) }
            } else {
                for check in checks { await report(check, await findings(of: check)) }
            }
        }
    }

    /// The findings, or a failure at the limit. A check that hangs keeps its thread until the process ends.
    private func findings(of check: Check) async -> [Finding] {
        let (answers, answer) = AsyncStream.makeStream(of: [Finding].self, bufferingPolicy: .bufferingOldest(1))
        let work = Task { answer.yield(await check.run()) }
        let limit = Task {
            await pause(check.limit)
            let seconds = check.limit.components.seconds
            let subject = check.asked.map { "\($0) " } ?? ""
            answer.yield([.failure("\(subject)did not answer within \(seconds) s", fix: check.fixIfSilent)])
        }
        defer {
            work.cancel()
            limit.cancel()
        }
        for await first in answers { return first }
        return []
    }
}
