package import PeerSession
package import RTP

/// An object with work at the end of a turn of the loop, such as a batch of datagrams to send.
package protocol TurnMember: AnyObject {
    /// Called once on the loop, at the end of the turn in which the member requested it.
    func endTurn()
    /// Called on the loop between two datagrams of a long turn. Sends the datagrams that are ready, and nothing else.
    func sendEarly()
}

extension TurnMember {
    package func sendEarly() {}
}

/// The timers and the turns of peers and rooms. It is told the time, and has no thread, socket or clock.
///
/// A subclass drives it: PeerIO's `EventLoop` on a thread of its own by the system's clock, and a simulation on virtual
/// time. A *turn* handles datagrams, messages or timers, and ends with `endTurn`, which sends what they caused.
///
/// `open` only for these subclasses. Everything is used on the loop.
open class Loop {
    /// The time, as told before each datagram, message or timer. Work for many receivers of one packet then reads no
    /// clock.
    @exclusivity(unchecked) package final var now: MonotonicTime
    /// Datagrams of this loop's peers.
    @exclusivity(unchecked) package final var traffic = LoopTraffic()
    /// For how long the sockets of this process were not read, in all, although datagrams may have waited. Peers compare
    /// it with the sum that they know: their estimates of the path must not take such a time for the path's.
    @exclusivity(unchecked) package private(set) final var stalled = TimeInterval.zero
    /// Shorter stalls change no estimate.
    private static let shortestStall = TimeInterval.milliseconds(20)
    /// A buffer for one packet, shared by everything on the loop.
    package final var scratch = PacketBuffer()
    /// Shared by the sessions of this loop's peers.
    package final let sessionScratch = SessionScratch()
    /// For paths that send a batch at once. Empty otherwise.
    private final var batch = DatagramBatch()

    @exclusivity(unchecked) private final var members: [any TurnMember] = []
    private final var endingMembers: [any TurnMember] = []
    @exclusivity(unchecked) private final var timers = TimerHeap()

    package init(now: MonotonicTime) { self.now = now }

    /// Traps outside of the loop. A loop without a thread has no outside.
    open func preconditionOnLoop() {}

    /// Adds a time in which nothing read the sockets. For the driver, before it reads them again.
    package final func noteStall(of time: TimeInterval) {
        if time >= Self.shortestStall { stalled = stalled + time }
    }

    // MARK: - Turns

    /// Calls `member.endTurn()` once when the present turn ends. Two calls in one turn cause two calls, so members have
    /// to remember their request.
    package final func atEndOfTurn(_ member: any TurnMember) {
        preconditionOnLoop()
        members.append(member)
    }

    /// Whether a turn has to end, because a member waits for that.
    package final var hasMembers: Bool { !members.isEmpty }

    /// Lets the members send what they have, in the middle of a long turn.
    package final func sendEarly() {
        // A member may add another one, such as the port that it sends through.
        var index = 0
        while index < members.count {
            members[index].sendEarly()
            index += 1
        }
    }

    /// Ends a turn. For the driver.
    package final func endTurn() {
        // Work that a member adds while ending ends in the same turn. The bound keeps two members that wake each other
        // from starving the sockets.
        for _ in 0..<8 where !members.isEmpty {
            swap(&members, &endingMembers)
            for member in endingMembers { member.endTurn() }
            endingMembers.removeAll(keepingCapacity: true)
        }
    }

    // MARK: - Sending

    /// For a path without a batch of its own: lets a closure fill one, and sends it at once.
    package final func withBatch<Result>(
        _ fill: (inout DatagramBatch) -> Void, _ send: (borrowing DatagramBatch) -> Result
    ) -> Result {
        fill(&batch)
        defer { batch.removeAll() }
        return send(batch)
    }

    /// For a path that cannot send: counts the datagrams as refused.
    package final func refuse(_ fill: (inout DatagramBatch) -> Void) -> (sent: Int, refused: Int) {
        withBatch(fill) { (0, $0.count) }
    }

    // MARK: - Timers

    /// Creates a disarmed timer. Its closure runs on the loop.
    package final func makeTimer(_ action: @escaping () -> Void) -> LoopTimer {
        LoopTimer(loop: self, action: action)
    }

    /// Runs the closure once on the loop, at `time` or up to about a millisecond later. Keep the timer to disarm it;
    /// releasing it does not.
    @discardableResult
    package final func schedule(at time: MonotonicTime, _ action: @escaping () -> Void) -> LoopTimer {
        let timer = makeTimer(action)
        timer.arm(at: time)
        return timer
    }

    @discardableResult
    package final func schedule(after delay: TimeInterval, _ action: @escaping () -> Void) -> LoopTimer {
        schedule(at: now + delay, action)
    }

    /// When the next timer may be due. `.never` without one.
    package final var nextTimer: MonotonicTime { timers.next }

    /// Fires the timer that is due first. Returns false if none is due. For the driver.
    package final func fireNextTimer() -> Bool {
        guard let timer = timers.popDue(at: now) else { return false }
        timer.fire(now: now)
        return true
    }

    /// Forgets all timers, because the loop ends. For the driver.
    package final func forgetTimers() { timers = TimerHeap() }

    final func insert(_ timer: LoopTimer, at time: MonotonicTime) {
        preconditionOnLoop()
        timers.insert(timer, at: time)
    }

    final func remove(_ timer: LoopTimer) {
        preconditionOnLoop()
        timers.remove(timer)
    }
}

/// Datagrams of a loop since its start, STUN included.
package struct LoopTraffic: Sendable, Equatable {
    /// Those that other loops handed over included.
    package var received = 0
    /// Of peers, without the answers to checks.
    package var sent = 0
    /// Of peers: the socket refused them, or the peer has no path.
    package var refused = 0
    /// Packets of sessions in which too many waited to be sent.
    package var outgoingFull = 0
    /// Packets of sessions that were too long or could not be encrypted.
    package var unprotectable = 0
}
