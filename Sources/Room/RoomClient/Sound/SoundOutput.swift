internal import ClientCore
internal import MediaGraph
internal import MediaNodes
internal import PeerIO
internal import PeerLoop
internal import RTP
internal import RoomProtocol

/// The audio of all rooms of the process: one graph with a slot for each stream that is heard, and one loudspeaker. It runs
/// while a room has audio. On the loop only.
///
/// Another speaker in a slot changes nothing in the graph. Only a further room that needs more slots than there are makes the
/// graph start again, with more.
final class SoundOutput {
    /// A graph's report to the loop.
    enum Notice: Sendable {
        case running(any PlayingSound)
        case failed(MediaError)
        case device(MediaEvent)
        /// The sound server has silenced the loudspeaker, or no longer does.
        case interrupted(Bool)
    }

    /// Starts a graph with so many slots after `previous` has stopped, and calls `post` on any thread.
    typealias Launch = (
        _ slots: Int, _ use: SoundUse.Playing, _ previous: (any DecodingTask)?,
        _ post: @escaping @Sendable (Notice) -> Void
    ) -> any DecodingTask

    private enum Phase {
        case idle
        case starting
        case running(any PlayingSound)
        case waitingToRetry
    }

    private struct Slot {
        var sink: SlotSink?
        var splice = PacketSplice()
    }

    /// As many as a room has.
    static let slotsAtATime = 4
    /// How long the sound server may take to silence the stream of a new graph. It does so when the stream begins.
    static let silencingTime = TimeInterval.seconds(1)

    private let launch: Launch
    /// Nil if no room of this output is audible.
    private let activity: SoundActivity?
    private let post: @Sendable (Int, Notice) -> Void
    private let now: () -> MonotonicTime
    private let schedule: (TimeInterval, @escaping () -> Void) -> Void
    private var rooms: [SoundRoom] = []
    private var slots = [Slot](repeating: Slot(), count: slotsAtATime)
    private var phase = Phase.idle
    private var task: (any DecodingTask)?
    /// Of the graphs so far.
    private var attempt = 0
    private var retries = Retries()
    /// The event by which the loudspeaker went away. Nil while it plays.
    private var absence: MediaEvent?
    /// Whether the sound server has silenced the loudspeaker.
    private var isInterrupted = false
    /// Whether it has silenced only the stream of a former graph so far.
    private var isInterruptionOld = false
    /// How the process uses the loudspeaker.
    private var use: SoundUse.Playing

    /// - Parameters:
    ///   - activity: hears when a loudspeaker is used. Nil for an output without one.
    ///   - post: takes a notice, with the number of its graph, to `handle` on the loop
    ///   - schedule: calls the closure on the loop after a time
    init(
        use: SoundUse.Playing = SoundUse.Playing(), activity: SoundActivity? = nil, launch: @escaping Launch,
        post: @escaping @Sendable (Int, Notice) -> Void, now: @escaping () -> MonotonicTime,
        schedule: @escaping (TimeInterval, @escaping () -> Void) -> Void
    ) {
        (self.use, self.activity) = (use, activity)
        self.launch = launch
        self.post = post
        self.now = now
        self.schedule = schedule
    }

    // MARK: - Rooms

    /// A room has audio.
    func open(_ room: SoundRoom) {
        guard !rooms.contains(where: { $0 === room }) else { return }
        rooms.append(room)
        if let absence { room.loudspeaker.handle(absence) }
        if case .idle = phase { start() }
    }

    /// A room has ended.
    func close(_ room: SoundRoom) {
        guard let index = rooms.firstIndex(where: { $0 === room }) else { return }
        rooms.remove(at: index)
        guard rooms.isEmpty else { return }
        release()
        tellActivity(false)
        attempt += 1
        (phase, absence, retries) = (.idle, nil, Retries())
        if slots.allSatisfy({ $0.sink == nil }) { slots.removeLast(slots.count - Self.slotsAtATime) }
    }

    // MARK: - Slots

    /// Gives a free slot to a stream, which begins with the next packet. Returns its number.
    func take(_ sink: SlotSink) -> Int {
        if !slots.contains(where: { $0.sink == nil }) { grow() }
        guard let slot = slots.firstIndex(where: { $0.sink == nil }) else { preconditionFailure("it has grown") }
        slots[slot].sink = sink
        slots[slot].splice.begin()
        if case .running(let playing) = phase { begin(slot, in: playing) }
        return slot
    }

    /// A stream has left its slot.
    func free(_ slot: Int) {
        bank(slot)
        slots[slot].sink = nil
        playing?.end(slot)
        playing?.hold(slot, seconds: 0)
    }

    private func grow() {
        slots += [Slot](repeating: Slot(), count: Self.slotsAtATime)
        guard case .idle = phase else {
            release()
            return start()
        }
    }

    /// Audio before the graph runs is dropped: later, it would be late.
    func push(_ packet: Span<UInt8>, to slot: Int) {
        guard case .running(let playing) = phase else { return }
        let bytes = slots[slot].splice.rewrite(packet, payloadType: SoundGraph.payloadType) {
            playing.nextTimestamp(of: slot)
        }
        if let bytes { playing.push(bytes.span.bytes, to: slot) }
    }

    /// The running graph.
    var playing: (any PlayingSound)? {
        if case .running(let playing) = phase { return playing }
        return nil
    }

    /// The newest audio of the stream in a slot.
    func playing(_ slot: Int) -> PlayedMedia? {
        guard var media = playing?.playing(slot), let own = slots[slot].splice.original(media.rtpTimestamp) else {
            return nil
        }
        media.rtpTimestamp = own
        return media
    }

    private func begin(_ slot: Int, in playing: any PlayingSound) {
        guard let sink = slots[slot].sink else { return }
        sink.begins(with: playing.counts(of: slot).0)
        sink.setVolume(of: slot, in: playing)
    }

    /// Keeps the counters of a stream.
    private func bank(_ slot: Int) {
        guard let playing, let sink = slots[slot].sink else { return }
        sink.bank(playing.counts(of: slot).0)
    }

    // MARK: - The graph

    private func start() {
        attempt += 1
        phase = .starting
        task = launch(slots.count, use, task) { [attempt, post] notice in post(attempt, notice) }
    }

    /// The process uses the loudspeaker otherwise from now on. The graph starts again.
    func follow(_ use: SoundUse.Playing) {
        guard use != self.use else { return }
        self.use = use
        guard !rooms.isEmpty else { return }
        release()
        start()
    }

    private func tellActivity(_ isActive: Bool) {
        if !isActive { interrupt(false) }
        activity?.set(isActive, self)
    }

    private func interrupt(_ isInterrupted: Bool) {
        (self.isInterrupted, isInterruptionOld) = (isInterrupted, false)
        activity?.interrupted(isInterrupted)
    }

    /// Ends the graph, and keeps the counters of its streams.
    private func release() {
        for slot in slots.indices { bank(slot) }
        phase = .waitingToRetry
        // The next stream is probably silenced, too: microphones stay closed until it tells.
        isInterruptionOld = isInterrupted
        guard let task else { return }
        Task.detached { await task.stop() }
    }

    func handle(_ notice: Notice, of number: Int) {
        guard number == attempt else { return }
        switch (notice, phase) {
        case (.running(let playing), .starting):
            phase = .running(playing)
            retries.succeeded(at: now())
            tellActivity(use.isAllowed)
            endOldInterruption()
            for slot in slots.indices {
                slots[slot].splice = PacketSplice()
                begin(slot, in: playing)
            }
        case (.failed(let error), .starting), (.failed(let error), .running): failed(error)
        case (.device(let event), .starting), (.device(let event), .running): device(event)
        case (.interrupted(let isInterrupted), .starting), (.interrupted(let isInterrupted), .running):
            interrupt(isInterrupted)
        default: break
        }
    }

    /// Ends the interruption of a former graph, unless the sound server also silences the stream of this one.
    private func endOldInterruption() {
        guard isInterruptionOld else { return }
        schedule(Self.silencingTime) { [weak self, attempt] in
            guard let self, attempt == self.attempt, isInterruptionOld else { return }
            interrupt(false)
        }
    }

    private func failed(_ error: MediaError) {
        let delay = retries.failed(at: now())
        release()
        tellActivity(false)
        if retries.failures == 1 { for room in rooms { room.report(RoomError(error)) } }
        schedule(delay) { [weak self, attempt] in
            guard let self, attempt == self.attempt, case .waitingToRetry = phase else { return }
            start()
        }
    }

    private func device(_ event: MediaEvent) {
        if case .deviceReturned = event { absence = nil } else { absence = event }
        for room in rooms { room.loudspeaker.handle(event) }
    }

    /// Called about twice a second: a graph that starts again has no event for a loudspeaker that is there.
    func sample() {
        guard absence != nil, playing?.isAudible == true else { return }
        absence = nil
        for room in rooms { room.loudspeaker.plays() }
    }
}

extension SoundOutput {
    /// Those of the process: with a loudspeaker, and for rooms that only measure their audio.
    private final class Outputs {
        let audible: SoundOutput
        let silent: SoundOutput

        init(_ loop: EventLoop) {
            audible = SoundOutput.make(loop, isAudible: true)
            silent = SoundOutput.make(loop, isAudible: false)
        }
    }

    private final class Door {
        weak var output: SoundOutput?
    }

    private static let outputs = LoopBound(Outputs(RoomLoop.shared), loop: RoomLoop.shared)

    /// On the loop of all rooms.
    static func shared(isAudible: Bool) -> SoundOutput {
        isAudible ? outputs.value.audible : outputs.value.silent
    }

    private static func make(_ loop: EventLoop, isAudible: Bool) -> SoundOutput {
        let door = LoopBound(Door(), loop: loop)
        let output = SoundOutput(
            use: SoundUse.choice.value.playing, activity: isAudible ? .shared : nil,
            launch: { slots, use, previous, post in
                SoundRunner(
                    SoundGraph.make(slots: slots, isAudible: isAudible && use.isAllowed, use), slots: slots,
                    after: previous, post: post)
            },
            post: { number, notice in loop.execute { door.value.output?.handle(notice, of: number) } },
            now: { loop.now }, schedule: { delay, body in loop.schedule(after: delay, body) })
        door.value.output = output
        guard isAudible else { return output }
        SoundUse.choice.observe(as: output) {
            loop.execute { door.value.output?.follow(SoundUse.choice.value.playing) }
        }
        // It may have changed meanwhile.
        output.follow(SoundUse.choice.value.playing)
        return output
    }
}
