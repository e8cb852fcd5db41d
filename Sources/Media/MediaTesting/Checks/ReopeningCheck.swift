import MediaAuthoring

extension ConformanceCheck {
    static let reopening = ConformanceCheck(
        "reopening", "Opened and closed many times, it leaks no file descriptors, threads or memory."
    ) { examination in
        let rounds = examination.options.reopenings
        // A leak occurs in each round. Other threads of this process may vary.
        let slack = min(8, max(3, (rounds - rounds / 5) / 10))
        let allowed = Allowance(descriptors: slack, threads: slack, bytes: examination.stand.memoryLimit)
        let growth = try await Growth.measured(
            warmUp: rounds / 5, rounds: rounds - rounds / 5, allowed, examination.options.settling
        ) {
            try await examination.reopen()
        }
        return growth.isFlat ? .passed(growth.words) : .failed(growth.words)
    }
}

extension Examination {
    fileprivate func reopen() async throws {
        let run = try await open()
        let lack = try await waitsInVain(for: 1, from: run)
        let outcome = run.outcome
        guard await run.stop() != nil else { throw Finding.failed("it did not start: it does not return") }
        guard let lack else { return }
        throw Finding.failed("it did not start: no media passed within \(lack.rounded(to: 1)) s\(outcome.words)")
    }
}
