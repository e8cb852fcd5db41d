import MediaGraph

extension ConformanceCheck {
    static let cancellation = ConformanceCheck(
        "cancel", "It leaves within 50 ms of being cancelled, at whatever moment."
    ) { examination in
        // Moments that fall everywhere into the distance between two pictures.
        try await examination.stops(at: (0..<12).map { Double($0) * 0.618 }, afterFirst: true)
    }

    static let stopWhileStarting = ConformanceCheck(
        "stop-while-starting", "It leaves within 50 ms of being cancelled while it is still starting."
    ) { examination in
        try await examination.stops(at: [0, 0, 0.0002, 0.001, 0.002, 0.005, 0.01, 0.02, 0.04], afterFirst: false)
    }
}

extension Examination {
    /// Opens it once for each moment and cancels it then: so many periods after its first picture, or so many seconds
    /// after it was opened.
    fileprivate func stops(at moments: [Double], afterFirst: Bool) async throws -> Finding {
        let period = min(0.2, 1 / ((try stand.format(rehearsal.settings))?.framesPerSecond ?? 100))
        var worst = Leaving(seconds: 0, machine: 0)
        for moment in moments {
            var least: Leaving?
            // What the machine does besides makes it longer and never shorter: what is too long is looked at again.
            for _ in 0..<3 where (least?.own ?? .infinity) > stand.leavingLimit {
                let bystander = Bystander()
                let run = try await open()
                if afterFirst, let seconds = try await waitsInVain(for: 1, from: run) {
                    let outcome = run.outcome
                    _ = await run.stop()
                    return .failed("nothing came within \(seconds.rounded(to: 1)) s\(outcome.words)")
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
                        "it has not left \(CaptureTask.patience) s after it was cancelled, and was left behind")
                }
                let leaving = Leaving(seconds: seconds, machine: machine)
                if leaving.own < least?.own ?? .infinity { least = leaving }
                if case .failed(let error) = run.outcome { return .failed("it fails in place of leaving: \(error)") }
            }
            if let least, least.own > worst.own || worst.seconds == 0 { worst = least }
            if worst.own > stand.leavingLimit { break }
        }
        let words =
            "it left after \((worst.seconds * 1000).rounded(to: 1)) ms at the longest, of \(moments.count) times; something "
            + "that only waits took \((worst.machine * 1000).rounded(to: 1)) ms then"
        return worst.own <= stand.leavingLimit ? .passed(words) : .failed(words)
    }
}

/// How long it took to leave, and how long something took that did nothing but wait until the same moment.
private struct Leaving {
    let seconds: Double
    let machine: Double

    /// A machine that is late with everything is no fault of the capturer.
    var own: Double { max(0, seconds - machine) }
}
