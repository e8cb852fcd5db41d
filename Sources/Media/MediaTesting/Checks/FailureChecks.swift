import MediaAuthoring

extension ConformanceCheck {
    static let failureWhileStarting = ConformanceCheck(
        "failure-while-starting", "If it cannot start, it throws an error immediately, and can be opened again."
    ) { examination in
        var seen: [String] = []
        if examination.stand.offers(.failing) {
            let run = try await examination.open([:], .failing)
            _ = await examination.clock.waits(examination.frameTimeout) { !run.units.isEmpty || run.outcome != nil }
            let machine = await Bystander().stop()
            _ = await examination.clock.waits(0.25 + machine) { run.outcome != nil }
            let tries = run.units.count
            let outcome = await run.finish()
            guard case .failed = outcome else {
                return .failed(
                    outcome == nil
                        ? "its frames were refused with errors, but it continued\(tries == 1 ? "" : ", \(tries) times")"
                        : "its frames were refused with an error, but it ended without one")
            }
            seen.append("it rethrows an error from downstream")
        }
        let failing = examination.rehearsal.failing
        for settings in failing + examination.absentees {
            let isSure = failing.contains(settings)
            if let error = try await examination.failure(with: settings, isSure: isSure) {
                examination.note(error)
                seen.append("with \(settings.shown): \(error)")
            }
        }
        guard !seen.isEmpty else {
            return .notApplicable("no settings are known with which it cannot start; see Rehearsal.failing")
        }
        let run = try await examination.open()
        let works = try await examination.waitsInVain(for: 1, from: run) == nil
        let outcome = await run.finish()
        return works
            ? .passed(seen.joined(separator: "; ")) : .failed("afterwards it does not start again\(outcome.words)")
    }

    static let vanishing = ConformanceCheck(
        "vanishing", "If its device is lost, it throws an error within five seconds."
    ) { examination in
        guard let vanish = examination.rehearsal.vanish else {
            return .notApplicable("it is not known how to remove its device; see Rehearsal.vanish")
        }
        let run = try await examination.open()
        guard try await examination.waitsInVain(for: 3, from: run) == nil else {
            let count = run.units.count
            return .failed("it passed \(count) before its device was removed\(await run.finish().words)")
        }
        let began = examination.clock.now
        try await vanish()
        _ = await examination.clock.waits(5) { run.outcome != nil }
        let seconds = examination.clock.now.seconds(since: began).rounded(to: 2)
        let outcome = await run.finish()
        try await examination.rehearsal.restore?()
        switch outcome {
        case .failed(let error):
            examination.note(error)
            return .passed("after \(seconds) s: \(error)")
        case .none: return .failed("its device is lost, and it reports nothing for 5 s")
        default: return .failed("its device is lost, and it returns without an error")
        }
    }

    static let errors = ConformanceCheck(
        "errors", "An error is one sentence with a code of its own, the cause and a fix."
    ) { examination in
        let errors = examination.errors
        // Values out of range that the kit sets are refused before they reach the capturer.
        let own = errors.filter { $0.code?.hasPrefix("graph.") != true }
        guard !own.isEmpty else {
            return .notApplicable("no test caused an error; see Rehearsal.failing")
        }
        let faults = own.compactMap { error in error.fault.map { "\"\(error.words)\" \($0)" } }
        if let fault = faults.first { return .failed(fault) }
        let codes = Set(own.compactMap(\.code)).sorted()
        return .passed("\(own.count) errors: \(codes.joined(separator: ", "))")
    }
}

extension Examination {
    /// Settings that name an object, with a name that does not exist.
    fileprivate var absentees: [[String: SettingValue]] {
        guard rehearsal.failing.isEmpty else { return [] }
        return stand.settings.filter { $0.domain == .text }.map {
            [$0.name: .text("/nonexistent/of-the-conformance-kit")]
        }
    }

    /// The error of a start with settings with which it cannot start. Nil if it works with them and this is not sure.
    fileprivate func failure(with settings: [String: SettingValue], isSure: Bool) async throws -> (any Error)? {
        let run: any NodeRun
        do { run = try await open(settings) } catch { return error }
        let shown = settings.shown
        let timeout = frameTimeout
        _ = await clock.waits(timeout) { run.outcome != nil || !run.units.isEmpty }
        let outcome = run.outcome
        let hasGiven = !run.units.isEmpty
        let left = await run.stop()
        switch outcome {
        case .failed(let error): return error
        case .none where !hasGiven: throw Finding.failed(silence(shown, timeout, left))
        case .none where isSure: throw Finding.failed("with \(shown) it should not start, but passes media")
        case .some where isSure || !hasGiven: throw Finding.failed("with \(shown) it returns without an error")
        default: return nil
        }
    }

    /// The fault of a node that passed no media for so many seconds. `left` is nil if it did not return either.
    func silence(_ settings: String, _ seconds: Double, _ left: Double?) -> String {
        "with \(settings) it passes no media for \(seconds.rounded(to: 1)) s and reports nothing"
            + (left == nil ? ", nor does it return" : "")
    }
}
