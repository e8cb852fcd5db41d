import MediaAuthoring

extension ConformanceCheck {
    static let cancellation = ConformanceCheck(
        "cancel", "It returns within 50 ms of its cancellation, at any moment."
    ) { examination in
        // Moments distributed evenly between two frames.
        try await examination.stops(at: (0..<12).map { Double($0) * 0.618 }, afterFirst: true)
    }

    static let stopWhileStarting = ConformanceCheck(
        "stop-while-starting", "It returns within 50 ms of its cancellation while it is still starting."
    ) { examination in
        try await examination.stops(at: [0, 0, 0.0002, 0.001, 0.002, 0.005, 0.01, 0.02, 0.04], afterFirst: false)
    }
}

extension Examination {
    /// Opens it once for each moment and cancels it then: after this many periods from its first frame, or after this
    /// many seconds from its opening.
    fileprivate func stops(at moments: [Double], afterFirst: Bool) async throws -> Finding {
        let period = min(0.2, 1 / ((try stand.format(rehearsal.settings))?.framesPerSecond ?? 100))
        var worst = Leaving(seconds: 0, machine: 0)
        for moment in moments {
            var least: Leaving?
            // Other work of the machine only makes it longer, so a long time is measured again.
            for _ in 0..<3 where (least?.own ?? .infinity) > stand.leavingLimit {
                let bystander = Bystander()
                let run = try await open()
                if afterFirst, let seconds = try await waitsInVain(for: 1, from: run) {
                    let outcome = await run.finish()
                    return .failed("no media passed within \(seconds.rounded(to: 1)) s\(outcome.words)")
                }
                let wait = afterFirst ? moment.truncatingRemainder(dividingBy: 2) * period : moment
                // One that starts may block; frames are waited for by the clock.
                let clock: any StandClock = afterFirst ? clock : MachineClock()
                try? await clock.wait(until: clock.now.advanced(by: wait))
                async let other = bystander.stop()
                let seconds = await run.stop()
                let machine = await other
                guard let seconds else {
                    return .failed(
                        "it did not return within \(StandTask.timeout) s of its cancellation, and was abandoned")
                }
                let leaving = Leaving(seconds: seconds, machine: machine)
                if leaving.own < least?.own ?? .infinity { least = leaving }
                if case .failed(let error) = run.outcome { return .failed("it throws instead of returning: \(error)") }
            }
            if let least, least.own > worst.own || worst.seconds == 0 { worst = least }
            if worst.own > stand.leavingLimit { break }
        }
        let words =
            "it returned after at most \((worst.seconds * 1000).rounded(to: 1)) ms, in \(moments.count) tries; a task "
            + "that only waits needed \((worst.machine * 1000).rounded(to: 1)) ms"
        return worst.own <= stand.leavingLimit ? .passed(words) : .failed(words)
    }
}

/// How long the return took, and how long a task took that only waited until the same moment.
private struct Leaving {
    let seconds: Double
    let machine: Double

    /// The delay without that of the machine, which is not the fault of the capturer.
    var own: Double { max(0, seconds - machine) }
}
