import MediaGraph
import TestSupport
import Testing

/// Random sequences of what devices do.
@Suite struct SupervisorSequenceTests {
    @Test func `a hundred thousand sequences keep the track, open one device at a time, and get back`() {
        for seed in 0..<100_000 as Range<UInt64> {
            if let problem = Self.problem(seed) {
                Issue.record("seed \(seed): \(problem)")
                return
            }
        }
    }

    /// A sequence of random events, then a device that works. Returns the broken promise.
    private static func problem(_ seed: UInt64) -> String? {
        var random = Seeded(seed)
        var bench = Bench(candidates: Int.random(in: 1...2, using: &random))
        let limits = SourceSupervisor.Limits()
        bench.send(.started)
        bench.beginTrack()
        var isStarted = true
        var longestGap = limits.firstStandIn + 0.01
        let begin = bench.now
        for _ in 0..<16 {
            let opens = bench.opens.count
            switch Int.random(in: 0..<15, using: &random) {
            case 0: bench.send(.appeared)
            case 1: bench.send(.looked(.random(in: 0...1, using: &random), isThere: .random(using: &random)))
            case 2: if bench.supervisor.phase == .opening { bench.send(.opened) }
            case 3: if bench.supervisor.phase == .opening { bench.send(.openFailed(.absent(absent))) }
            case 4: if bench.supervisor.phase == .opening { bench.send(.openFailed(.failed(broken))) }
            case 5, 6: if bench.isClosing { bench.send(.closed) }
            case 7: if !bench.outstanding.isEmpty { bench.send(.frame) }
            case 8: bench.send(.failed(.failed(broken)))
            case 9:
                // Mostly goes on.
                guard Int.random(in: 0..<8, using: &random) == 0 else { continue }
                bench.send(isStarted ? .stopped : .started)
                isStarted.toggle()
                if isStarted { bench.beginTrack() } else { bench.endTrack() }
            case 10: bench.pass(.random(in: 0...3, using: &random))
            case 11: bench.send(.alive)
            case 12: bench.send(.rests(.random(using: &random)))
            case 13: bench.send(.paced(.random(in: 0...60, using: &random)))
            default: bench.pass(.random(in: 0...0.3, using: &random))
            }
            if bench.mostOutstanding > 1 { return "two devices are open" }
            if bench.opens.count > opens, bench.supervisor.isResting || bench.supervisor.limits != limits {
                return "a device begins with the rest or the pace of the one before"
            }
            // A source that starts again has no track until its former device is closed.
            if bench.supervisor.phase == .stopped, isStarted { bench.beginTrack() }
            // A slow device is waited for, but no longer than it is slow.
            longestGap = max(longestGap, bench.supervisor.limits.quiet + 0.01)
            if bench.longestGap > longestGap { return "a gap of \(bench.longestGap) s" }
        }
        let seconds = bench.now.seconds(since: begin)
        if Double(bench.events.count) > limits.eventBurst + seconds / limits.eventInterval {
            return "a flood of events"
        }
        if !isStarted { bench.send(.started) }
        bench.endTrack()
        let until = bench.now + .seconds(limits.longestBackoff + 2)
        bench.send(.paced(30))
        while bench.now < until, bench.supervisor.phase != .streaming {
            bench.live(through: 0.01, deviceWorks: true)
        }
        guard bench.supervisor.phase == .streaming else { return "the phase is \(bench.supervisor.phase)" }
        return bench.mostOutstanding > 1 ? "two devices are open at the end" : nil
    }

    /// A return of a device: the phase that it met, and the seconds that passed.
    private struct Return {
        let met: SourceSupervisor.Phase
        let failures: Int
        /// From its appearance to the next attempt to open it. Nil if it was open.
        var toOpening: Double?
        /// From its first buffer to the first frame that is passed on.
        var toMovement = 0.0
        /// Stand-ins while it delivers.
        var fills = 0
    }

    @Test
    func `video moves within one frame time and 100 ms of the first buffer of a device that appears in any phase`() {
        var met: [SourceSupervisor.Phase: Int] = [:]
        var mostFailures = 0
        for seed in 0..<3000 as Range<UInt64> {
            var random = Seeded(seed)
            let rate = Double.random(in: 5...60, using: &random)
            let found = Self.comeBack(rate, &random)
            met[found.met, default: 0] += 1
            mostFailures = max(mostFailures, found.failures)
            let shortest = SourceSupervisor.Limits().shortestBackoff
            guard found.toMovement <= 1 / rate + 0.1, found.fills == 0, found.toOpening ?? 0 <= shortest + 0.001 else {
                Issue.record("seed \(seed), \(rate) frames/s: \(found)")
                return
            }
        }
        for phase in [.waiting, .opening, .streaming, .silent, .lost, .backingOff] as [SourceSupervisor.Phase] {
            #expect(met[phase] ?? 0 > 20, "\(phase): \(met)")
        }
        #expect(mostFailures >= 12)
    }

    /// A device that fails in some ways, and then works.
    private static func comeBack(_ rate: Double, _ random: inout Seeded) -> Return {
        var bench = Bench()
        bench.send(.started)
        if Bool.random(using: &random) {
            bench.send(.opened)
            bench.pass(.random(in: 0.1...15, using: &random), each: 1 / rate, of: .frame)
            switch Int.random(in: 0...3, using: &random) {
            case 0: bench.send(.failed(.failed(broken)))
            case 1: bench.pass(.random(in: 0...8, using: &random))
            case 2: bench.send(.rests(true))
            default: break
            }
        }
        let failures = Int.random(in: 0...14, using: &random)
        for _ in 0..<failures { bench.fail(&random) }
        bench.pass(.random(in: 0...0.3, using: &random))

        var found = Return(met: bench.supervisor.phase, failures: failures)
        let (appearance, opens) = (bench.now, bench.opens.count)
        var late = appearance
        bench.send(.appeared)
        // A driver takes its time to close and to open, and a camera until its first buffer.
        while !bench.isOpenNow {
            if bench.isClosing {
                bench.pass(.random(in: 0...1, using: &random))
                bench.send(.closed)
                late = bench.now
            }
            bench.pass(0.001)
        }
        if bench.opens.count > opens { found.toOpening = bench.opens[opens].seconds(since: late) }
        if bench.supervisor.phase == .opening {
            bench.pass(.random(in: 0...1, using: &random))
            bench.send(.opened)
            // An answer about the device as it was before.
            bench.send(.looked(0, isThere: false))
            bench.pass(.random(in: 0...2, using: &random))
        }
        let first = bench.now
        bench.send(.frame)
        while bench.supervisor.phase != .streaming || bench.supervisor.isFilling, bench.now.seconds(since: first) < 1 {
            bench.pass(1 / rate)
            bench.send(.frame)
        }
        found.toMovement = bench.now.seconds(since: first)
        let fills = bench.fills
        // At 5 frames/s, the limit for silence is a frame time.
        bench.send(.paced(rate))
        bench.pass(2, each: 1 / rate, of: .frame)
        found.fills = bench.fills - fills
        return found
    }
}
