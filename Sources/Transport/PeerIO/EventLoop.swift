internal import CGLib
internal import Glibc
package import RTP
internal import Synchronization

/// Something that has work left at the end of a turn of the loop, such as a batch of datagrams to send.
package protocol TurnMember: AnyObject {
    /// Called once, on the loop, at the end of the turn in which the member asked for it.
    func endTurn()
    /// Called on the loop between two datagrams of a long turn: sends what is ready, and does nothing else.
    func sendEarly()
}

extension TurnMember {
    package func sendEarly() {}
}

/// One GLib main context with a thread of its own: the place where all transport of a client process, or of the rooms
/// assigned to it, lives.
///
/// A *turn* is: dispatch of what the sockets have, the ends of turn, the timers that are due, the work handed in from
/// other threads (`execute`, and the jobs of actors pinned to the loop) in the order it came, and the ends of turn again.
/// Each part does its share at most (`TurnShare`) and leaves the rest to the next turn, so that a flood of one kind
/// delays the others by one share.
///
/// The loop is also a `SerialExecutor`: an actor that returns `loop.asUnownedSerialExecutor()` as its
/// `unownedExecutor` runs on it, and code called by the loop may enter such an actor with `assumeIsolated`.
///
/// The thread holds the loop: an `EventLoop` lives until `shutdown()`.
package final class EventLoop: SerialExecutor, @unchecked Sendable {
    // Sendable by hand: `inbox` and `threadID` guard themselves, the context is thread-safe in GLib, and everything
    // under "on the loop" is touched by the loop's thread alone, which the entry points assert.

    /// Work waiting from other threads at most; beyond it `execute` refuses. Actor jobs are always taken, because the
    /// runtime cannot lose one.
    package static let inboxCapacity = 65536
    /// Pieces of work from other threads done in one turn at most.
    package static let workShare = 64
    /// Timers fired in one turn at most.
    package static let timerShare = 256
    /// Datagrams read from one ICE agent in one turn at most.
    package static let datagramShare = 32
    /// Datagrams read, from all sockets together, before members send what is ready.
    static let datagramsBetweenSends = 64

    package let name: String

    let context: OpaquePointer
    private let inbox = Mutex(Inbox())
    private let threadID = Atomic<UInt>(0)
    /// Measures the shares of a turn.
    let turnClock: @Sendable () -> MonotonicTime

    // On the loop.
    private var work: [Work] = []
    /// The first piece of `work` that has not run yet.
    private var nextWork = 0
    /// Counts the turns.
    private(set) var turn = 0
    /// On the loop only.
    package internal(set) var busiest = TurnCounts()
    private var unsentDatagrams = 0
    /// Agents that have had their share of this turn.
    private var pausedAgents: [ICEAgent] = []
    private var members: [any TurnMember] = []
    private var endingMembers: [any TurnMember] = []
    private var timers = TimerHeap()
    /// When the loop last looked at the clock: at the beginning of each part of a turn and for each datagram. What is
    /// done for many receivers of one packet need not ask the system again for each.
    var turnTime = EventLoop.now
    /// Room for one packet, shared by everything on the loop.
    var scratch = PacketBuffer()
    /// The batch being sent.
    var outgoing = DatagramBatch()
    /// Room for the description of one batched send, likewise.
    let outbox = Outbox()

    private enum Work {
        case closure(@Sendable () -> Void)
        case job(UnownedJob)
        case done
    }

    private struct Inbox {
        var work: [Work] = []
        var state = State.running
        var thread: pthread_t?

        enum State {
            case running
            case stopping
            case ended
        }
    }

    /// Starts the loop's thread.
    ///
    /// - Parameters:
    ///   - name: shown by debuggers and `top` (the first 15 bytes of it).
    ///   - turnClock: measures how long the parts of a turn take; called on the loop after each piece of work.
    package init(name: String = "loop", turnClock: @escaping @Sendable () -> MonotonicTime = { EventLoop.now }) {
        self.name = name
        self.turnClock = turnClock
        guard let context = g_main_context_new() else { fatalError("GLib made no main context") }
        self.context = context
        inbox.withLock { $0.thread = startThread() }
    }

    deinit {
        g_main_context_unref(context)
    }

    // MARK: - Time

    /// CLOCK_MONOTONIC, from any thread.
    package var now: MonotonicTime { Self.now }

    package static var now: MonotonicTime {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return MonotonicTime(nanoseconds: UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec))
    }

    // MARK: - From any thread

    /// Runs the closure on the loop, after what was handed in before it.
    ///
    /// False, and the closure is not run, when the loop has been shut down or `inboxCapacity` closures wait: whoever
    /// must not lose a message fails its connection then.
    @discardableResult
    package func execute(_ closure: @escaping @Sendable () -> Void) -> Bool {
        let (accepted, wasEmpty) = inbox.withLock { inbox in
            guard inbox.state == .running, inbox.work.count < Self.inboxCapacity else { return (false, false) }
            inbox.work.append(.closure(closure))
            return (true, inbox.work.count == 1)
        }
        if wasEmpty, !isOnThread { g_main_context_wakeup(context) }
        return accepted
    }

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        // The runtime holds no reference to an executor, and the job may release the last one before this returns.
        let loop = Unmanaged.passRetained(self)
        defer { loop.release() }
        let (accepted, wasEmpty) = inbox.withLock { inbox in
            guard inbox.state != .ended else { return (false, false) }
            inbox.work.append(.job(job))
            return (true, inbox.work.count == 1)
        }
        guard accepted else { return runLate(job) }
        if wasEmpty, !isOnThread { g_main_context_wakeup(context) }
    }

    package func asUnownedSerialExecutor() -> UnownedSerialExecutor {
        UnownedSerialExecutor(ordinary: self)
    }

    package func checkIsolated() {
        precondition(isOnLoop, "called off the event loop \(name)")
    }

    package func isIsolatingCurrentContext() -> Bool? { isOnLoop }

    /// Whether the caller is on the loop.
    package var isOnLoop: Bool { isOnThread || g_main_context_is_owner(context) != 0 }

    /// Traps off the loop. Cheap enough for every packet: one comparison of thread identities.
    @inline(__always)
    package func preconditionOnLoop() {
        precondition(isOnLoop, "called off its event loop")
    }

    /// Runs what was handed in so far, ends the thread and waits for it. Close peers before. Calling it again does
    /// nothing; calling it on the loop is a bug and traps.
    package func shutdown() {
        precondition(!isOnThread, "an event loop cannot wait for its own end")
        let thread = inbox.withLock { inbox -> pthread_t? in
            if inbox.state == .running { inbox.state = .stopping }
            defer { inbox.thread = nil }
            return inbox.thread
        }
        guard let thread else { return }
        g_main_context_wakeup(context)
        pthread_join(thread, nil)
    }

    // MARK: - On the loop

    /// Calls `member.endTurn()` once when the present turn ends. Asking twice in a turn means two calls: members
    /// remember that they asked.
    package func atEndOfTurn(_ member: any TurnMember) {
        preconditionOnLoop()
        members.append(member)
    }

    /// Makes a timer that is not armed yet. Its closure runs on the loop.
    package func makeTimer(_ action: @escaping () -> Void) -> LoopTimer {
        LoopTimer(loop: self, action: action)
    }

    /// Runs the closure once on the loop, at `time` or at most a millisecond or so later; on the loop only. Keep the
    /// timer to disarm it; letting it go does not.
    @discardableResult
    package func schedule(at time: MonotonicTime, _ action: @escaping () -> Void) -> LoopTimer {
        let timer = makeTimer(action)
        timer.arm(at: time)
        return timer
    }

    @discardableResult
    package func schedule(after delay: TimeInterval, _ action: @escaping () -> Void) -> LoopTimer {
        schedule(at: now + delay, action)
    }

    /// Counts a datagram that was handled. Members send early when there have been many.
    @inline(__always)
    func countDatagram() {
        unsentDatagrams += 1
        if unsentDatagrams >= Self.datagramsBetweenSends { sendEarly() }
    }

    private func sendEarly() {
        unsentDatagrams = 0
        for member in members { member.sendEarly() }
    }

    /// The agent reads again in the next turn.
    func resumeNextTurn(_ agent: ICEAgent) { pausedAgents.append(agent) }

    func insert(_ timer: LoopTimer, at time: MonotonicTime) {
        preconditionOnLoop()
        timers.insert(timer, at: time)
    }

    func remove(_ timer: LoopTimer) {
        preconditionOnLoop()
        timers.remove(timer)
    }

    // MARK: - The thread

    private var isOnThread: Bool { UInt(pthread_self()) == threadID.load(ordering: .relaxed) }

    private func startThread() -> pthread_t {
        var thread = pthread_t()
        // The thread owns one reference to the loop until it ends.
        let result = pthread_create(
            &thread, nil,
            { argument in
                guard let argument else { return nil }
                Unmanaged<EventLoop>.fromOpaque(argument).takeRetainedValue().run()
                return nil
            }, Unmanaged.passRetained(self).toOpaque())
        precondition(result == 0, "no thread for an event loop: \(result)")
        return thread
    }

    private func run() {
        threadID.store(UInt(pthread_self()), ordering: .relaxed)
        thread_set_own_name(name)
        g_main_context_push_thread_default(context)
        let alarm = Alarm(context: context)
        while true {
            turn += 1
            let isStopping = runInbox()
            endTurn()
            if isStopping { break }
            alarm.ring(at: timers.next)
            let idle = nextWork == work.count && inbox.withLock { $0.work.isEmpty && $0.state == .running }
            g_main_context_iteration(context, idle && members.isEmpty ? 1 : 0)
            resumeAgents()
            // Media does not wait for timers and messages.
            endTurn()
            fireTimers()
        }
        alarm.remove()
        timers = TimerHeap()
        threadID.store(0, ordering: .relaxed)
        g_main_context_pop_thread_default(context)
    }

    /// Runs a share of what waits; true when the loop has ended and nothing waits any more.
    private func runInbox() -> Bool {
        var hasEnded = false
        if nextWork == work.count {
            work.removeAll(keepingCapacity: true)
            nextWork = 0
            hasEnded = inbox.withLock { inbox -> Bool in
                swap(&inbox.work, &work)
                if inbox.state == .stopping, work.isEmpty { inbox.state = .ended }
                return inbox.state == .ended
            }
        }
        turnTime = now
        var share = TurnShare(of: Self.workShare, at: turnClock())
        var mayGoOn = true
        while mayGoOn, nextWork < work.count {
            // What ran is let go of at once.
            var item = Work.done
            swap(&item, &work[nextWork])
            nextWork += 1
            switch item {
            case .closure(let closure): closure()
            case .job(let job): job.runSynchronously(on: asUnownedSerialExecutor())
            case .done: break
            }
            mayGoOn = share.spend(at: turnClock())
        }
        busiest.work = max(busiest.work, share.used)
        return hasEnded
    }

    private func resumeAgents() {
        guard !pausedAgents.isEmpty else { return }
        for agent in pausedAgents { agent.resume() }
        pausedAgents.removeAll(keepingCapacity: true)
    }

    private func endTurn() {
        unsentDatagrams = 0
        // What a member adds while ending is ended in the same turn; a bound keeps two members that wake one another
        // from starving the sockets.
        for _ in 0..<8 where !members.isEmpty {
            swap(&members, &endingMembers)
            for member in endingMembers { member.endTurn() }
            endingMembers.removeAll(keepingCapacity: true)
        }
    }

    private func fireTimers() {
        turnTime = now
        var share = TurnShare(of: Self.timerShare, at: turnClock())
        var mayGoOn = true
        while mayGoOn, let timer = timers.popDue(at: turnTime) {
            timer.fire(now: turnTime)
            mayGoOn = share.spend(at: turnClock())
        }
        busiest.timers = max(busiest.timers, share.used)
    }

    /// An actor job that comes after `shutdown` runs on the thread that brings it, which owns the context meanwhile,
    /// so that isolation still holds and no task hangs.
    private func runLate(_ job: UnownedJob) {
        while g_main_context_acquire(context) == 0 { sched_yield() }
        job.runSynchronously(on: asUnownedSerialExecutor())
        g_main_context_release(context)
    }
}
