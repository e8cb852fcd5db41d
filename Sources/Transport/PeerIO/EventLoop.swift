internal import CGLib
internal import Glibc
package import PeerLoop
package import RTP
internal import Synchronization

/// A reader of sockets that has used its share of a turn.
protocol PausedReader: AnyObject {
    func resume()
}

/// One GLib main context with its own thread. All transport of a client process, or of the rooms assigned to the loop,
/// runs on it.
///
/// A *turn* handles, in this order: the sockets, the ends of turn, the timers that are due, the work of other threads
/// (`execute`, and jobs of actors pinned to the loop) in order of arrival, and the ends of turn again. Each part does
/// at most its share (`TurnShare`) and leaves the rest to the next turn. A flood of one kind therefore delays the
/// others by one share.
///
/// The loop is also a `SerialExecutor`. An actor that returns `loop.asUnownedSerialExecutor()` as its `unownedExecutor`
/// runs on it, and code on the loop may enter that actor with `assumeIsolated`.
///
/// The thread retains the loop: an `EventLoop` lives until `shutdown()`.
package final class EventLoop: Loop, SerialExecutor, @unchecked Sendable {
    // Sendable by hand: `inbox` and `threadID` are synchronised, the context is thread-safe in GLib, and only the
    // loop's thread touches everything under "on the loop", which the entry points assert.

    /// How much work of other threads may wait before `execute` refuses more. Actor jobs are always accepted, because
    /// the runtime cannot lose one, and so are the closures of `executeAlways`.
    package static let inboxCapacity = 65536
    /// The most work items of other threads in one turn.
    package static let workShare = 64
    /// The most timers fired in one turn.
    package static let timerShare = 256
    /// The most datagrams read from one ICE agent in one turn.
    package static let datagramShare = 32
    /// How many datagrams are read from all sockets before members send what is ready.
    static let datagramsBetweenSends = 64

    package let name: String

    let context: OpaquePointer
    private let inbox = Mutex(Inbox())
    private let threadID = Atomic<UInt>(0)
    /// Measures the shares of a turn.
    let turnClock: @Sendable () -> MonotonicTime

    // On the loop.
    private var work: [Work] = []
    /// The first item of `work` that has not run yet.
    private var nextWork = 0
    /// The number of turns.
    private(set) var turn = 0
    /// On the loop only.
    package internal(set) var busiest = TurnCounts()
    private var meter = TurnMeter()
    private var unsentDatagrams = 0
    /// Agents that have used up their share of this turn.
    private var pausedReaders: [any PausedReader] = []
    private var resumingReaders: [any PausedReader] = []
    /// The description of one batched send, shared by everything on the loop.
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
        register_socket_types()
        guard let context = g_main_context_new() else { fatalError("GLib made no main context") }
        self.context = context
        super.init(now: Self.now)
        inbox.withLock { $0.thread = startThread() }
    }

    deinit {
        g_main_context_unref(context)
    }

    // MARK: - Time

    /// CLOCK_MONOTONIC, from any thread.
    package static var now: MonotonicTime {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return MonotonicTime(nanoseconds: UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec))
    }

    // MARK: - From any thread

    /// Runs the closure on the loop, after earlier work.
    ///
    /// Returns false, and does not run the closure, after `shutdown` and if `inboxCapacity` closures wait. A caller
    /// that must not lose a message then fails its connection.
    @discardableResult
    package func execute(_ closure: @escaping @Sendable () -> Void) -> Bool {
        append(closure, limit: Self.inboxCapacity)
    }

    /// Runs the closure on the loop, after earlier work, however much that is. For calls that must not be lost, and whose
    /// number something else limits.
    ///
    /// Returns false, and does not run the closure, after `shutdown`.
    @discardableResult
    package func executeAlways(_ closure: @escaping @Sendable () -> Void) -> Bool { append(closure, limit: .max) }

    private func append(_ closure: @escaping @Sendable () -> Void, limit: Int) -> Bool {
        let (accepted, wasEmpty) = inbox.withLock { inbox in
            guard inbox.state == .running, inbox.work.count < limit else { return (false, false) }
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
        precondition(isOnLoop, "called outside of the event loop \(name)")
    }

    package func isIsolatingCurrentContext() -> Bool? { isOnLoop }

    /// Whether the caller is on the loop.
    package var isOnLoop: Bool { isOnThread || g_main_context_is_owner(context) != 0 }

    /// Traps outside of the loop. Compares two thread identities, which is cheap enough for every packet.
    package override func preconditionOnLoop() {
        precondition(isOnLoop, "called outside of its event loop")
    }

    /// Runs the queued work, ends the thread and waits for it. Close peers before. A second call does nothing; a call
    /// on the loop is a bug and traps.
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

    /// Tells the loop the time of the system's clock.
    @discardableResult
    @inline(__always)
    func readClock() -> MonotonicTime {
        now = Self.now
        return now
    }

    /// The turns so far, without the present one.
    package var turns: TurnStatistics {
        preconditionOnLoop()
        return meter.statistics
    }

    /// How much work of other threads waits.
    package var waitingWork: Int {
        preconditionOnLoop()
        return work.count - nextWork + inbox.withLock { $0.work.count }
    }

    /// Counts a handled datagram. Members send early after many of them.
    @inline(__always)
    func countDatagram() {
        traffic.received += 1
        unsentDatagrams += 1
        guard unsentDatagrams >= Self.datagramsBetweenSends else { return }
        unsentDatagrams = 0
        sendEarly()
    }

    /// Lets a reader of sockets continue in the next turn.
    func resumeNextTurn(_ reader: any PausedReader) { pausedReaders.append(reader) }

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
        let sockets = SocketWait(context: context)
        var socketsRead = readClock()
        while true {
            turn += 1
            let isStopping = runInbox()
            finishTurn()
            if isStopping { break }
            let idle = nextWork == work.count && inbox.withLock { $0.work.isEmpty && $0.state == .running }
            sockets.prepare(mayWait: idle && !hasMembers && pausedReaders.isEmpty)
            let end = Self.now
            meter.end(at: end)
            let due = nextTimer
            sockets.wait(until: due, now: end)
            meter.begin(at: readClock())
            // The turn itself, and the time by which the thread woke too late.
            noteStall(of: (end - socketsRead) + (now - min(now, max(end, due))))
            socketsRead = now
            sockets.dispatch()
            resumeReaders()
            // Media does not wait for timers and messages.
            finishTurn()
            fireTimers()
        }
        sockets.end()
        forgetTimers()
        threadID.store(0, ordering: .relaxed)
        g_main_context_pop_thread_default(context)
    }

    /// Runs a share of the waiting work. Returns true when the loop has ended and no work waits.
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
        var share = TurnShare(of: Self.workShare, at: turnClock())
        var mayGoOn = true
        while mayGoOn, nextWork < work.count {
            // Releases finished work immediately.
            var item = Work.done
            swap(&item, &work[nextWork])
            nextWork += 1
            readClock()
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

    private func resumeReaders() {
        guard !pausedReaders.isEmpty else { return }
        // One that pauses again continues in the next turn.
        swap(&pausedReaders, &resumingReaders)
        for reader in resumingReaders { reader.resume() }
        resumingReaders.removeAll(keepingCapacity: true)
    }

    private func finishTurn() {
        unsentDatagrams = 0
        endTurn()
    }

    private func fireTimers() {
        readClock()
        var share = TurnShare(of: Self.timerShare, at: turnClock())
        var mayGoOn = true
        while mayGoOn, fireNextTimer() { mayGoOn = share.spend(at: turnClock()) }
        busiest.timers = max(busiest.timers, share.used)
    }

    /// Runs an actor job that arrives after `shutdown` on the calling thread, which owns the context meanwhile.
    /// Isolation still holds, and no task hangs.
    private func runLate(_ job: UnownedJob) {
        while g_main_context_acquire(context) == 0 { sched_yield() }
        readClock()
        job.runSynchronously(on: asUnownedSerialExecutor())
        g_main_context_release(context)
    }
}
