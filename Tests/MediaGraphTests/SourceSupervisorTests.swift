import MediaGraph
import TestSupport
import Testing

@Suite struct SourceSupervisorTests {
    @Test func `a device that announced a rest is not lost however long it is, and its silence counts afterwards`() {
        var bench = Bench()
        bench.send(.started)
        bench.send(.opened)
        bench.stream(1)
        bench.send(.rests(true))
        bench.beginTrack()
        bench.pass(3600)
        #expect(bench.supervisor.phase == .silent && bench.events.isEmpty && bench.looks.isEmpty)
        #expect(bench.longestGap < 0.5, "the last frame stays")
        bench.send(.rests(false))
        bench.pass(4.9)
        #expect(bench.supervisor.losses == 0)
        bench.pass(0.2)
        #expect(bench.words == ["lost"])
    }

    @Test func `a device that delivers video without a keyframe is alive, however long its stand-in shows`() {
        var bench = Bench()
        bench.send(.started)
        bench.send(.opened)
        bench.pass(20, each: 1 / 30, of: .alive)
        #expect(bench.supervisor.phase == .opening && bench.supervisor.losses == 0 && bench.fills > 0)
        bench.stream(1)
        bench.pass(20, each: 1 / 30, of: .alive)
        #expect(bench.supervisor.phase == .silent && bench.supervisor.isFilling)
        #expect(bench.opens.count == 1 && bench.events.isEmpty && bench.longestGap < 0.5)
        bench.stream(1)
        #expect(bench.supervisor.phase == .streaming)
        bench.pass(20, each: 1 / 30, of: .alive)
        bench.pass(6)
        #expect(bench.words == ["lost"], "real silence counts")
    }

    @Test func `a slow pace does not raise a limit above the wished timeout`() {
        var limits = SourceSupervisor.Limits()
        (limits.quiet, limits.silent, limits.pause, limits.longestPaced) = (0.5, 2, 2, 2)
        let paced = limits.paced(0.5)
        #expect(paced.quiet == 2 && paced.silent == 2 && paced.pause == 2)
        limits.longestPaced = .infinity
        #expect(limits.paced(0.5).quiet == 8)
    }

    @Test func `an error may demand a longer pause than the backoff`() {
        var bench = Bench()
        bench.send(.started)
        bench.send(.openFailed(.failed(broken), pause: 300))
        bench.pass(299)
        #expect(bench.opens.count == 1)
        bench.pass(2)
        #expect(bench.opens.count == 2)
    }

    @Test func `a device that rests before its first frame is not lost either`() {
        var bench = Bench()
        bench.send(.started)
        bench.send(.opened)
        bench.send(.rests(true))
        bench.pass(600)
        #expect(bench.supervisor.phase == .opening && bench.events.isEmpty && bench.fills > 0)
        bench.send(.rests(false))
        bench.pass(8.1)
        #expect(bench.words == ["waiting"])
    }

    @Test func `devices that failed together are not opened together`() {
        func opens(_ chance: Double) -> [Double] {
            var limits = SourceSupervisor.Limits()
            limits.chance = chance
            var bench = Bench(limits)
            bench.send(.started)
            let start = bench.now
            for _ in 0..<4 {
                bench.send(.openFailed(.failed(broken)))
                bench.pass(10)
            }
            return bench.opens.map { $0.seconds(since: start) }
        }
        #expect(zip(opens(0), opens(1)).dropFirst().allSatisfy { $0 < $1 })
    }

    @Test func `a slow device is not silent between two frames, and its silence is noticed all the same`() {
        var bench = Bench()
        bench.send(.started)
        bench.send(.paced(1))
        bench.send(.opened)
        bench.pass(60, each: 1, of: .frame)
        #expect(bench.fills == 0 && bench.supervisor.phase == .streaming)
        bench.pass(5)
        #expect(bench.fills > 0 && bench.supervisor.phase == .silent)
        bench.pass(20)
        bench.send(.closed)
        #expect(bench.words == ["lost"])
        // The next device may be a fast one.
        bench.pass(10)
        #expect(bench.outstanding == [0] && bench.supervisor.limits == SourceSupervisor.Limits())
    }

    @Test func `a device that is there streams without an event or a stand-in`() {
        var bench = Bench()
        bench.send(.started)
        #expect(bench.outstanding == [0])
        bench.pass(0.3)
        bench.send(.opened)
        bench.stream(60)
        #expect(bench.supervisor.phase == .streaming)
        #expect(bench.events.isEmpty && bench.fills == 0 && bench.keyframes == 0)
    }

    @Test func `a device that is not there is waited for with a slate, and opened soon after it appears`() {
        var bench = Bench()
        bench.send(.started)
        bench.send(.openFailed(.absent(absent)))
        #expect(bench.fills == 1, "the slate waits for nothing")
        #expect(bench.words == ["waiting"])
        bench.live(through: 30, deviceWorks: false)
        #expect(bench.words == ["waiting"], "reported once")
        #expect(bench.fills > 140 && bench.fills < 160, "\(bench.fills)")
        #expect(bench.opens.count > 50, "a device without a monitor is tried twice a second")
        bench.live(through: 1, deviceWorks: true)
        #expect(bench.supervisor.phase == .streaming)
        #expect(bench.words == ["waiting", "returned"])
    }

    @Test func `a failure that is told in other words each time is reported once`() {
        var bench = Bench()
        bench.send(.started)
        for attempt in 0..<20 {
            bench.send(
                .openFailed(.failed(MediaError(code: "process.ended", message: "It ended at 12:01:\(attempt)."))))
            while bench.outstanding.isEmpty { bench.pass(0.5) }
        }
        #expect(bench.words == ["waiting"])
        guard case .failed(let error) = bench.supervisor.cause else {
            Issue.record("no cause")
            return
        }
        #expect(error.message == "It ended at 12:01:19.")
    }

    @Test func `the cause is about the candidate that failed, while another one opens`() {
        var bench = Bench(candidates: 2)
        bench.send(.started)
        bench.send(.openFailed(.absent(absent)))
        #expect(bench.supervisor.candidate == 1)
        #expect(bench.supervisor.blamed == 0)
    }

    @Test func `a loss is reported when all candidates have failed, and not when another one takes over`() {
        var bench = Bench(candidates: 2, triesAllFirst: true)
        bench.send(.started)
        bench.stream(1)
        bench.send(.failed(.failed(broken)))
        bench.send(.closed)
        bench.pass(0.5)
        #expect(bench.outstanding == [1] && bench.events.isEmpty)
        bench.stream(1)
        #expect(bench.words == ["failedOver"])
        bench.send(.failed(.failed(broken)))
        #expect(bench.words == ["failedOver", "lost"] && bench.supervisor.blamed == 1)
    }

    @Test func `candidates that are all away are reported as soon as each was tried`() {
        var bench = Bench(candidates: 2, triesAllFirst: true)
        bench.send(.started)
        bench.send(.openFailed(.absent(absent)))
        bench.pass(0.5)
        #expect(bench.events.isEmpty)
        bench.send(.openFailed(.absent(broken)))
        #expect(bench.words == ["waiting"] && bench.supervisor.cause == .absent(absent))
    }

    @Test func `a loss is reported after a while if the device does not close`() {
        var bench = Bench(candidates: 2, triesAllFirst: true)
        bench.send(.started)
        bench.stream(1)
        bench.send(.failed(.failed(broken)))
        bench.pass(4.9)
        #expect(bench.isClosing && bench.events.isEmpty)
        bench.pass(0.2)
        #expect(bench.words == ["lost"])
    }

    @Test func `limits stay finite at any rate`() {
        for rate in [1e-300, 0.001, 30, 1e300] {
            let limits = SourceSupervisor.Limits().paced(rate)
            #expect(limits.quiet <= 3600 && limits.silent <= 3600 && limits.pause <= 3600)
        }
    }

    @Test func `an opening device shows no slate for a second`() {
        var bench = Bench()
        bench.send(.started)
        bench.pass(0.9)
        #expect(bench.fills == 0)
        bench.pass(0.2)
        #expect(bench.fills == 1)
    }

    @Test func `silence of a few frame times begins the stand-in, and the next frame ends it`() {
        var bench = Bench()
        bench.send(.started)
        bench.stream(5)
        bench.pass(0.7)
        #expect(bench.supervisor.phase == .silent && bench.fills == 3)
        bench.send(.frame)
        #expect(bench.supervisor.phase == .streaming && bench.keyframes == 0 && bench.events.isEmpty)
    }

    @Test func `a silent device that responds may pause, and one that does not is lost`() {
        for (responds, seconds) in [(true, 5.0), (false, 1.5)] {
            var bench = Bench()
            bench.send(.started)
            bench.stream(5)
            let start = bench.now
            bench.pass(1.7)
            #expect(bench.looks == [0])
            bench.send(.looked(0, isThere: responds))
            if responds { #expect(bench.supervisor.phase == .silent) }
            bench.pass(responds ? 4 : 0.01)
            #expect(bench.supervisor.phase == .lost && bench.isClosing)
            #expect(bench.events.first.map { $0.at.seconds(since: start) >= seconds - 0.1 } == true)
            #expect(bench.events.map(\.event) == [.lost(responds ? .silent : .gone)])
        }
    }

    @Test func `a machine that stood still loses no device`() {
        var bench = Bench()
        bench.send(.started)
        bench.stream(5)
        for _ in 0..<10 {
            bench.stall(20)
            bench.send(.timePassed)
            #expect(bench.supervisor.phase == .silent)
            bench.send(.frame)
        }
        #expect(bench.events.isEmpty)
    }

    @Test func `a lost device is closed, and opened again only when that is done`() {
        var bench = Bench()
        bench.send(.started)
        bench.stream(20)
        bench.send(.failed(.failed(broken)))
        #expect(bench.isClosing)
        bench.pass(60)
        #expect(bench.opens.count == 1, "the driver hangs in close")
        #expect(bench.fills > 290)
        bench.send(.closed)
        bench.pass(0.3)
        #expect(bench.opens.count == 2)
        bench.send(.frame)
        #expect(bench.words == ["lost", "returned"] && bench.keyframes == 1)
    }

    @Test func `a driver that hangs while it opens is reported, and its late answer counts`() {
        var bench = Bench()
        bench.send(.started)
        bench.pass(9)
        #expect(bench.events.map(\.event) == [.waiting(.unresponsive)])
        bench.send(.opened)
        bench.pass(5)
        #expect(bench.opens.count == 1)
        bench.send(.closed)
        bench.pass(1)
        #expect(bench.opens.count == 2)
    }

    @Test func `back-off doubles to its limit, and a device that works resets it`() {
        var bench = Bench()
        bench.send(.started)
        for _ in 0..<12 {
            bench.send(.openFailed(.failed(broken)))
            while bench.supervisor.phase != .opening { bench.pass(0.01) }
        }
        let waits = zip(bench.opens, bench.opens.dropFirst()).map { $1.seconds(since: $0) }
        #expect(waits.prefix(5).map { ($0 * 10).rounded() / 10 } == [0.3, 0.5, 1, 2, 4], "\(waits)")
        #expect(waits.allSatisfy { $0 <= 4.2 })
        bench.stream(15)
        let loss = bench.now
        bench.send(.failed(.failed(broken)))
        bench.send(.closed)
        bench.pass(1)
        #expect(bench.opens.last.map { $0.seconds(since: loss) < 0.3 } == true)
    }

    @Test func `another candidate takes over, and the wished one returns when it is there`() {
        var bench = Bench(candidates: 2)
        bench.send(.started)
        bench.stream(20)
        bench.send(.failed(.gone))
        bench.send(.closed)
        bench.pass(0.3)
        #expect(bench.outstanding == [1])
        bench.stream(5)
        #expect(bench.words == ["lost", "failedOver"])
        bench.stream(6)
        #expect(bench.looks == [0])
        // A device that comes just after a look is not missed for long.
        bench.send(.looked(0, isThere: false))
        bench.stream(1)
        #expect(bench.looks == [0, 0])
        bench.send(.looked(0, isThere: true))
        #expect(bench.isClosing)
        bench.send(.closed)
        #expect(bench.outstanding == [0])
        bench.stream(1)
        #expect(bench.words == ["lost", "failedOver", "returned"])
    }

    @Test func `the cause that is shown is that of the last attempt`() {
        var bench = Bench()
        let busy = MediaError(code: "camera.busy", message: "Another program reads it.")
        bench.send(.started)
        bench.stream(1)
        bench.send(.failed(.failed(broken)))
        bench.send(.closed)
        #expect(bench.supervisor.cause == .failed(broken))
        bench.pass(0.5)
        bench.send(.openFailed(.failed(busy)))
        #expect(bench.supervisor.cause == .failed(busy))
        bench.pass(0.5)
        bench.stream(1)
        #expect(bench.supervisor.cause == nil && bench.words == ["lost", "returned"])
    }

    @Test func `the source returns less and less often to a wished device that is there and does not work`() {
        var bench = Bench(candidates: 2)
        bench.send(.started)
        bench.send(.openFailed(.failed(broken)))
        bench.pass(0.3)
        #expect(bench.outstanding == [1])
        var returns: [MediaTime] = []
        let end = bench.now + .seconds(3600)
        while bench.now < end {
            if bench.isClosing { bench.send(.closed) }
            if bench.supervisor.phase == .opening, bench.outstanding == [0] {
                returns.append(bench.now)
                bench.send(.openFailed(.failed(broken)))
            } else if bench.supervisor.phase == .opening {
                bench.send(.opened)
            }
            let looks = bench.looks.count
            bench.stream(0.5)
            if bench.looks.count > looks { bench.send(.looked(0, isThere: true)) }
        }
        let pauses = zip(returns, returns.dropFirst()).map { $1.seconds(since: $0) }
        #expect(zip(pauses, pauses.dropFirst()).allSatisfy { $0 <= $1 + 1 }, "\(pauses)")
        #expect((6...14).contains(returns.count), "\(returns.count)")
    }

    @Test func `two candidates that are absent for different reasons are reported once`() {
        var bench = Bench(candidates: 2)
        let other = MediaError(code: "camera.absent", message: "There is no other camera.")
        bench.send(.started)
        for _ in 0..<600 {
            if bench.supervisor.phase == .opening {
                bench.send(.openFailed(.absent(bench.outstanding == [0] ? absent : other)))
            }
            bench.pass(0.1)
        }
        #expect(bench.words == ["waiting"])
    }

    @Test func `a device that opens and refuses to start is tried at most every five minutes in the end`() {
        var bench = Bench()
        bench.send(.started)
        let end = bench.now + .seconds(3600)
        while bench.now < end {
            if bench.isClosing { bench.send(.closed) }
            if bench.supervisor.phase == .opening {
                bench.send(.opened)
                bench.send(.failed(.failed(broken)))
            }
            bench.pass(0.1)
        }
        #expect((10...30).contains(bench.opens.count), "\(bench.opens.count)")
    }

    @Test func `an opening that fails after a frame is a loss, and the device opens again`() {
        var bench = Bench()
        bench.send(.started)
        bench.send(.frame)
        bench.send(.openFailed(.failed(broken)))
        #expect(bench.supervisor.phase == .backingOff)
        bench.pass(1)
        #expect(bench.opens.count == 2 && bench.mostOutstanding == 1)
    }

    @Test func `a loose plug floods no log`() {
        var bench = Bench()
        bench.send(.started)
        bench.stream(20)
        let begin = bench.now
        for _ in 0..<2000 {
            bench.send(.failed(.gone))
            if bench.isClosing { bench.send(.closed) }
            bench.send(.appeared)
            if bench.supervisor.phase == .opening { bench.send(.frame) }
            bench.pass(0.01)
        }
        let seconds = bench.now.seconds(since: begin)
        #expect(Double(bench.events.count) <= 6 + seconds + 1, "\(bench.events.count) in \(seconds) s")
        bench.live(through: 3, deviceWorks: true)
        #expect(bench.words.last == "returned", "the last event tells the truth")
    }
}
