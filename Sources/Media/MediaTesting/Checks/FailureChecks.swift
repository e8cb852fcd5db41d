import MediaGraph

extension ConformanceCheck {
    static let failureWhileStarting = ConformanceCheck(
        "failure-while-starting", "When it cannot start it ends with an error at once, and can be opened again."
    ) { examination in
        var seen: [String] = []
        if examination.stand.offers(.failing) {
            let run = try await examination.open([:], .failing)
            _ = await examination.clock.waits(examination.patience) { !run.units.isEmpty || run.outcome != nil }
            let machine = await Bystander().stop()
            _ = await examination.clock.waits(0.25 + machine) { run.outcome != nil }
            let outcome = run.outcome
            let tries = run.units.count
            _ = await run.stop()
            guard case .failed = outcome else {
                return .failed(
                    outcome == nil
                        ? "nothing it gave was taken, with an error each time, and it went on\(tries == 1 ? "" : ", \(tries) times")"
                        : "nothing it gave was taken, with an error, and it ended without one")
            }
            seen.append("it hands on the error of what comes behind")
        }
        let failing = examination.rehearsal.failing
        for settings in failing + examination.absentees {
            let isSure = failing.contains(settings)
            guard let fault = await examination.fails(with: settings, isSure: isSure, &seen) else { continue }
            return .failed(fault)
        }
        guard !seen.isEmpty else {
            return .notApplicable("nothing is known that keeps it from starting; see Rehearsal.failing")
        }
        let run = try await examination.open()
        let works = try await examination.waitsInVain(for: 1, from: run) == nil
        let outcome = run.outcome
        _ = await run.stop()
        return works
            ? .passed(seen.joined(separator: "; ")) : .failed("after that it does not start any more\(outcome.words)")
    }

    static let vanishing = ConformanceCheck(
        "vanishing", "When its device goes away it ends with an error within five seconds."
    ) { examination in
        guard let vanish = examination.rehearsal.vanish else {
            return .notApplicable("how its device can be taken away is not known; see Rehearsal.vanish")
        }
        let run = try await examination.open()
        guard try await examination.waitsInVain(for: 3, from: run) == nil else {
            let outcome = run.outcome
            _ = await run.stop()
            return .failed("it gave \(run.units.count) before anything was done to it\(outcome.words)")
        }
        let began = examination.clock.now
        try await vanish()
        _ = await examination.clock.waits(5) { run.outcome != nil }
        let outcome = run.outcome
        let seconds = examination.clock.now.seconds(since: began).rounded(to: 2)
        _ = await run.stop()
        try await examination.rehearsal.restore?()
        switch outcome {
        case .failed(let error):
            examination.note(error)
            return .passed("after \(seconds) s: \(error)")
        case .none: return .failed("its device is gone, and it says nothing for 5 s")
        default: return .failed("its device is gone, and it ends as if there were no more to come")
        }
    }

    static let errors = ConformanceCheck(
        "errors", "An error is one sentence with a code of its own, which names the thing and what would help."
    ) { examination in
        let errors = examination.errors
        // What the kit itself provokes by values out of range is refused before the capturer is asked.
        let own = errors.filter { $0.code?.hasPrefix("graph.") != true }
        guard !own.isEmpty else {
            return .notApplicable("nothing that was tried made it say anything; see Rehearsal.failing")
        }
        let faults = own.compactMap { error in error.fault.map { "\"\(error.words)\" \($0)" } }
        if let fault = faults.first { return .failed(fault) }
        let codes = Set(own.compactMap(\.code)).sorted()
        return .passed("\(own.count) in words: \(codes.joined(separator: ", "))")
    }
}

extension Examination {
    /// Settings that name something, with the name of something that there is not.
    fileprivate var absentees: [[String: SettingValue]] {
        guard rehearsal.failing.isEmpty else { return [] }
        return stand.settings.filter { $0.domain == .text }.map {
            [$0.name: .text("/nonexistent/of-the-conformance-kit")]
        }
    }

    /// Opens it with settings under which it cannot start. What is wrong with what it does; what is right goes to `seen`.
    fileprivate func fails(
        with settings: [String: SettingValue], isSure: Bool, _ seen: inout [String]
    ) async -> String? {
        let shown = settings.shown
        let thrown: any Error
        do {
            let run = try await open(settings)
            let patience = patience
            _ = await clock.waits(patience) { run.outcome != nil || !run.units.isEmpty }
            let outcome = run.outcome
            let hasGiven = !run.units.isEmpty
            let left = await run.stop()
            switch outcome {
            case .failed(let error): thrown = error
            case .none where hasGiven: return isSure ? "with \(shown) it should not start, and gives media" : nil
            case .none:
                return "with \(shown) it gives nothing for \(patience.rounded(to: 1)) s and says nothing"
                    + (left == nil ? ", nor does it leave" : "")
            default: return isSure || !hasGiven ? "with \(shown) it ends without a word" : nil
            }
        } catch {
            thrown = error
        }
        note(thrown)
        seen.append("with \(shown): \(thrown)")
        return nil
    }
}
