import Dispatch
import Glibc
import RTP
import Synchronization
import Testing
import TestSupport

@testable import PeerIO
@testable import PeerLoop

struct EventLoopTests {
    @Test("work from another thread runs on the loop in order")
    func order() async throws {
        let loop = EventLoop(name: "order")
        let seen = Mutex<[Int]>([])
        for number in 0..<1000 {
            loop.execute {
                loop.preconditionOnLoop()
                seen.withLock { $0.append(number) }
            }
        }
        loop.shutdown()
        #expect(seen.withLock { $0 } == Array(0..<1000))
        #expect(!loop.isOnLoop)
    }

    @Test("after shutdown the loop refuses work")
    func refusesAfterShutdown() {
        let loop = EventLoop()
        loop.shutdown()
        loop.shutdown()
        #expect(!loop.execute {})
    }

    @Test("a full inbox refuses work instead of growing, except for work that must not be lost")
    func fullInbox() {
        let loop = EventLoop()
        let gate = Mutex(())
        let isEntered = Atomic(false)
        let accepted = Atomic(0)
        let late = Atomic(0)
        gate.withLock { _ in
            loop.execute {
                isEntered.store(true, ordering: .relaxed)
                gate.withLock { _ in }
            }
            while !isEntered.load(ordering: .relaxed) { sched_yield() }
            for _ in 0..<EventLoop.inboxCapacity + 10 where loop.execute({}) {
                accepted.add(1, ordering: .relaxed)
            }
            for _ in 0..<10 { #expect(loop.executeAlways { late.add(1, ordering: .relaxed) }) }
        }
        loop.shutdown()
        #expect(accepted.load(ordering: .relaxed) == EventLoop.inboxCapacity)
        #expect(late.load(ordering: .relaxed) == 10)
        #expect(!loop.executeAlways {})
    }

    @Test("an actor pinned to the loop runs there, and code on the loop can enter it without waiting")
    func actor() async {
        let loop = EventLoop(name: "actor")
        let counter = Counter(loop: loop)
        await counter.increment()
        let value: Int = await onLoop(loop) { counter.assumeIsolated { $0.count } }
        #expect(value == 1)
        loop.shutdown()
        // A late job still runs, isolated.
        await counter.increment()
        #expect(await counter.count == 2)
    }

    @Test("a disarmed timer leaves the heap immediately, and the others fire in order")
    func heap() {
        let loop = EventLoop(name: "heap")
        defer { loop.shutdown() }
        var heap = TimerHeap()
        let timers = (0..<500).map { _ in loop.makeTimer {} }
        // 7 and 500 are coprime: every time from 0 to 499 occurs once, in mixed order.
        for (index, timer) in timers.enumerated() { heap.insert(timer, at: time(index * 7 % 500 + 1000)) }
        for timer in timers[..<100] { heap.remove(timer) }
        #expect(heap.count == 400)
        for timer in timers[..<100] { heap.remove(timer) }
        #expect(heap.count == 400)
        // Moved forward, and armed again.
        heap.insert(timers[499], at: time(1))
        heap.insert(timers[0], at: time(2))
        var popped: [LoopTimer] = []
        while let timer = heap.popDue(at: time(5000)) { popped.append(timer) }
        let rest = (100..<499).sorted { $0 * 7 % 500 < $1 * 7 % 500 }
        #expect(popped.map(ObjectIdentifier.init) == ([499, 0] + rest).map { ObjectIdentifier(timers[$0]) })
        #expect(heap.count == 0 && heap.next == .never)
    }

    private func time(_ milliseconds: Int) -> MonotonicTime { .zero + .milliseconds(Int64(milliseconds)) }

    @Test("timers fire in order of their time, and not before it")
    func timers() async {
        let loop = EventLoop(name: "timers")
        let start = EventLoop.now
        let fired: [(Int, MonotonicTime)] = await withCheckedContinuation { done in
            loop.execute {
                var fired: [(Int, MonotonicTime)] = []
                for delay in [30, 10, 20] {
                    loop.schedule(after: .milliseconds(Int64(delay))) {
                        fired.append((delay, loop.now))
                        if fired.count == 3 { done.resume(returning: fired) }
                    }
                }
            }
        }
        loop.shutdown()
        #expect(fired.map(\.0) == [10, 20, 30])
        for (delay, time) in fired { #expect(time - start >= .milliseconds(Int64(delay))) }
    }

    @Test("a timer armed again fires once, at the last time; a disarmed one does not fire")
    func rearming() async {
        let loop = EventLoop(name: "rearming")
        let result: [String] = await withCheckedContinuation { done in
            loop.execute {
                var log: [String] = []
                let start = loop.now
                let later = loop.makeTimer { log.append(loop.now - start >= .milliseconds(20) ? "later" : "early") }
                later.arm(at: start + .milliseconds(5))
                later.arm(at: start + .milliseconds(20))
                let sooner = loop.makeTimer { log.append("sooner") }
                sooner.arm(at: start + .milliseconds(200))
                sooner.arm(at: start + .milliseconds(2))
                let never = loop.makeTimer { log.append("never") }
                never.arm(at: start + .milliseconds(3))
                never.disarm()
                loop.schedule(at: start + .milliseconds(40)) { done.resume(returning: log) }
            }
        }
        loop.shutdown()
        #expect(result == ["sooner", "later"])
    }

    @Test("a turn in which the sockets are not read counts as a stall")
    func stall() async {
        let loop = EventLoop()
        let before: TimeInterval = await onLoop(loop) { loop.stalled }
        loop.execute { usleep(50_000) }
        await eventually("the stall") {
            let stalled: TimeInterval = await onLoop(loop) { loop.stalled }
            return stalled - before >= .milliseconds(50)
        }
        loop.shutdown()
    }

    @Test("a member's turn ends once for each request, after the work of the turn")
    func endOfTurn() async {
        final class Member: TurnMember {
            var log: [String] = []

            func endTurn() { log.append("end") }
        }
        let loop = EventLoop(name: "turn")
        let log: [String] = await withCheckedContinuation { done in
            loop.execute {
                let member = Member()
                loop.atEndOfTurn(member)
                member.log.append("work")
                loop.schedule(after: .milliseconds(1)) { done.resume(returning: member.log) }
            }
        }
        loop.shutdown()
        #expect(log == ["work", "end"])
    }

    @Test("a turn does its share of the waiting work and leaves the rest")
    func workShare() async {
        let loop = EventLoop(name: "share", turnClock: { .zero })
        let done = Mutex<[Int]>([])
        let gate = DispatchSemaphore(value: 0)
        loop.execute { gate.wait() }
        for _ in 0..<1000 {
            loop.execute {
                let turn = loop.turn
                done.withLock { $0.append(turn) }
            }
        }
        gate.signal()
        loop.shutdown()
        let turns = Dictionary(grouping: done.withLock { $0 }) { $0 }.values.map(\.count)
        #expect(turns.reduce(0, +) == 1000)
        #expect(turns.allSatisfy { $0 <= EventLoop.workShare })
    }

    @Test("a turn fires its share of the timers that are due, and leaves the others to the next turns")
    func timerShare() async {
        let loop = EventLoop(name: "timer share", turnClock: { .zero })
        let count = 4 * EventLoop.timerShare
        let turns: [Int] = await withCheckedContinuation { done in
            loop.execute {
                var turns: [Int] = []
                let due = loop.now
                for _ in 0..<count {
                    loop.schedule(at: due) {
                        turns.append(loop.turn)
                        if turns.count == count { done.resume(returning: turns) }
                    }
                }
            }
        }
        loop.shutdown()
        let counts = Dictionary(grouping: turns) { $0 }.values.map(\.count)
        #expect(counts.max() == EventLoop.timerShare)
    }

    @Test("a disarmed timer releases its closure at once, long before it was due")
    func disarmedTimer() async {
        final class Captured {}
        let loop = EventLoop(name: "disarmed")
        let isReleased: Bool = await onLoop(loop) {
            weak var captured: Captured?
            func armAndDisarm() {
                let object = Captured()
                captured = object
                loop.schedule(after: .seconds(3600)) { withExtendedLifetime(object) {} }.disarm()
            }
            armAndDisarm()
            return captured == nil
        }
        loop.shutdown()
        #expect(isReleased)
    }

    @Test("a loop outlives each job that it is handed, even if the job releases its last reference")
    func lastReference() async {
        let owner = LastReference()
        let isAlive = await owner.makeActor().run { owner.release() }
        #expect(isAlive)
        // The thread that submitted the job releases the loop after it.
        #expect(await eventually { !owner.isAlive })
    }

    @Test("a hundred loops come and go without leaving a thread or a descriptor")
    func threads() {
        let before = (threadCount(), descriptorCount())
        for _ in 0..<100 { EventLoop(name: "brief").shutdown() }
        // Concurrent tests have loops of their own.
        #expect(threadCount() <= before.0 + 50)
        #expect(descriptorCount() <= before.1 + 50)
    }
}

private actor Counter {
    let loop: EventLoop
    private(set) var count = 0

    init(loop: EventLoop) { self.loop = loop }

    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    func increment() {
        loop.preconditionOnLoop()
        count += 1
    }
}

/// Owns a loop that has been shut down, so that its jobs run on the threads that submit them.
private final class LastReference: @unchecked Sendable {
    // @unchecked: the test awaits each step.
    private var loop: EventLoop?
    private weak var observed: EventLoop?

    init() {
        let loop = EventLoop(name: "last reference")
        loop.shutdown()
        self.loop = loop
        observed = loop
    }

    func makeActor() -> Visitor {
        guard let loop else { preconditionFailure("released before") }
        return Visitor(executor: loop.asUnownedSerialExecutor())
    }

    var isAlive: Bool { observed != nil }

    /// Returns whether the loop is still alive.
    func release() -> Bool {
        loop = nil
        return isAlive
    }
}

/// An actor on a loop that it does not own.
private actor Visitor {
    nonisolated let unownedExecutor: UnownedSerialExecutor

    init(executor: UnownedSerialExecutor) { unownedExecutor = executor }

    func run(_ body: @Sendable () -> Bool) -> Bool { body() }
}
