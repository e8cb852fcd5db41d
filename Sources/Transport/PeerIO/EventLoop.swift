internal import CGLib
internal import Glibc
package import RTP
internal import Synchronization

/// Something that has work left at the end of a turn of the loop, such as a batch of datagrams to send.
package protocol TurnMember: AnyObject {
    /// Called once, on the loop, at the end of the turn in which the member asked for it.
    func endTurn()
}

/// One GLib main context with a thread of its own: the place where all transport of a client process, or of the rooms
/// assigned to it, lives.
///
/// A *turn* is: dispatch of what the sockets have, then the timers that are due, then the work handed in from other
/// threads (`execute`, and the jobs of actors pinned to the loop) in the order it came, then the ends of turn.
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

    package let name: String

    let context: OpaquePointer
    private let inbox = Mutex(Inbox())
    private let threadID = Atomic<UInt>(0)

    // On the loop.
    private var work: [Work] = []
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

    /// Starts the loop's thread. `name` is shown by debuggers and `top` (the first 15 bytes of it).
    package init(name: String = "loop") {
        self.name = name
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
            let isStopping = runInbox()
            endTurn()
            if isStopping { break }
            alarm.ring(at: timers.next)
            let idle = inbox.withLock { $0.work.isEmpty && $0.state == .running }
            g_main_context_iteration(context, idle && members.isEmpty ? 1 : 0)
            fireTimers()
        }
        alarm.remove()
        timers = TimerHeap()
        threadID.store(0, ordering: .relaxed)
        g_main_context_pop_thread_default(context)
    }

    /// Runs what waits; true when the loop has ended and nothing waits any more.
    private func runInbox() -> Bool {
        let hasEnded = inbox.withLock { inbox -> Bool in
            swap(&inbox.work, &work)
            if inbox.state == .stopping, work.isEmpty { inbox.state = .ended }
            return inbox.state == .ended
        }
        turnTime = now
        for item in work {
            switch item {
            case .closure(let closure): closure()
            case .job(let job): job.runSynchronously(on: asUnownedSerialExecutor())
            }
        }
        work.removeAll(keepingCapacity: true)
        return hasEnded
    }

    private func endTurn() {
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
        while let timer = timers.popDue(at: turnTime) { timer.fire(now: turnTime) }
    }

    /// An actor job that comes after `shutdown` runs on the thread that brings it, which owns the context meanwhile,
    /// so that isolation still holds and no task hangs.
    private func runLate(_ job: UnownedJob) {
        while g_main_context_acquire(context) == 0 { sched_yield() }
        job.runSynchronously(on: asUnownedSerialExecutor())
        g_main_context_release(context)
    }
}
