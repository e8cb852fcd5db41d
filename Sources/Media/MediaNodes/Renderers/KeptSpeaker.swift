import Dispatch
import GStreamerKit
import MediaGraph
import Synchronization

/// A loudspeaker node that goes on, without sound, while its device or sound server is away.
///
/// The node's own sink takes all audio at once. It passes each buffer with its capture time to the device's pipeline, which
/// plays it so long after that time as the graph's latency says. So the audio is as late as before when the device returns.
final class KeptSpeaker: HeadedNode {
    private let hold: SoundHold
    private let meter: AudioRendererNode
    private let device: SpeakerDevice
    let head: SourceHead?

    init(_ instance: NodeInstance) {
        let sink = instance.element("sink")
        // Before the other probes of the sink.
        hold = SoundHold(instance, "in", at: sink.sink)
        let device = SpeakerDevice(instance)
        self.device = device
        var limits = SourceSupervisor.Limits()
        // A null sink of PulseAudio takes none for 2 s if it was idle before.
        limits.quiet = 3
        // Each attempt asks `SoundRetries`.
        limits.poll = 1
        // There is nothing to fill.
        limits.fill = 60
        head = SourceHead(
            instance, device, [], withoutDevice: instance.text("away") == "end" ? .ends : .goesOn, isAwaited: false,
            limits: limits)
        meter = AudioRendererNode(instance, isAudible: false)
        sink.sink.watchBuffers { buffer in device.play(buffer.shared, at: buffer.time) }
        sink.sink.watchEvents { [weak sink] event in
            if case .endOfStream = event { sink?.endWhenHeard() }
        }
        sink.sink.onUpstreamEvent { [weak sink] event in
            if case .latency = event, let delay = sink?.renderingDelay { device.follow(delay) }
            return .pass
        }
    }

    /// It has no stand-ins.
    var absence: MediaError? { nil }

    /// A loudspeaker without audio does not deliver.
    func whenDecided(_ body: @escaping @Sendable () -> Void) { body() }

    var secondsUntilHeard: Double? { device.secondsUntilHeard.map { $0 + hold.held.all } }

    /// How long after its timestamp audio is heard, in seconds. Nil while it is dropped.
    var heardAfter: Double? {
        guard let status = head?.status, status.cause == nil else { return nil }
        return device.heardAfter
    }

    /// Whether a device plays, or would.
    var isAudible: Bool {
        guard let status = head?.status else { return false }
        return status.cause == nil && device.isIdle || status.state == .streaming || status.state == .silent
    }

    func report(into statistics: inout MediaStatistics, as name: String) {
        meter.report(into: &statistics, as: name)
        guard var status = head?.status else { return }
        // Open, and without audio to play.
        if status.cause == nil, device.isIdle { status.state = .streaming }
        statistics.audioRenderers[name]?.isAudible = status.state == .streaming || status.state == .silent
        statistics.audioRenderers[name]?.secondsPlayed = device.secondsPlayed
        statistics.sources[name] = status
    }
}

extension Element {
    /// How much longer than planned a device may have audio, in nanoseconds.
    private static var lag: Int { 20_000_000 }

    /// Lets the end of the stream wait in a sink that takes audio at once until its device has played the last audio.
    fileprivate func endWhenHeard() {
        // The sink would wait so much less, because the device needs that time.
        let delay = value("render-delay")?.integer ?? 0
        try? set("ts-offset", .integer(delay + Self.lag))
    }
}

/// The loudspeaker of a node, bound when it is opened.
private final class SpeakerDevice: SourceDevice {
    private struct State {
        var former = FormerSound()
        var chain: DeviceChain?
        /// Nil while the device does not play.
        var source: PushSource?
        /// Audio that came while the device was closed and can still be played in time.
        var early: [(audio: MediaBuffer, time: MediaTime)] = []
        /// From capture to the loudspeaker, in seconds.
        var delay: Double
        var secondsPlayed = 0.0
        /// The audio that was passed on last: its capture time and length.
        var newest: (time: MediaTime, seconds: Double)?
        /// From its timestamp until audio is heard, in seconds. Nil before the device was asked.
        var heardAfter: Double?
        var isAsked = false
        /// Whether the sound server has silenced the stream.
        var isInterrupted = false
        var isAskedForMute = false
    }

    /// How much running time a device's pipeline has behind it when it starts, in nanoseconds: audio may be so old.
    private static let past: UInt64 = 10_000_000_000

    /// Between two questions whether the stream is muted, in seconds.
    private static let pause = 0.2

    private let node: Node
    private let name: String
    private let prefix: String
    private let clock: PipelineClock
    private let reporter: Reporter
    private let state: Mutex<State>
    /// Whatever waits for the device's driver, such as changes of the delay, or for the receiver of an event.
    private let changes = DispatchQueue(label: "media.speaker")

    init(_ instance: NodeInstance) {
        node = instance.node
        name = SoundName.of(instance)
        prefix = instance.prefix
        (clock, reporter) = (instance.pipeline.clock, instance.reporter)
        state = Mutex(State(former: FormerSound(instance.plan.device), delay: instance.plan.latency))
    }

    func name(of candidate: Int) -> String { name }

    func open(_ candidate: Int, for output: SourceOutput) throws(MediaError) {
        var machine = SystemEnvironment()
        machine.retriesSound = true
        let request = NodeRequest(node, SpeakerNode.kind, inputs: [("in", .rawAudio)], environment: machine)
        let choice = try SpeakerNode.Choice(request, after: state.withLock { $0.former })
        var plan = DevicePlan(name: name, wish: "")
        plan.take(choice.plan)
        let chain = try DeviceChain(
            plan, named: "\(prefix).device", on: clock, for: output,
            // PulseAudio asks so for a pause, and has muted the stream. Audio that goes on keeps the time.
            requested: { [weak self] isPlaying in self?.interrupt(!isPlaying) },
            explain: { [name] failure, isFed in
                SpeakerNode.explain(failure, of: name, choice.former.system, isFed: isFed)
            })
        let stream = SoundStream(chain.element("sink"), device: choice.device) { [name] in
            output.fail(SpeakerNode.lost(name, nil))
        }
        watch(chain.element("sink"), stream)
        let delay = state.withLock { state in
            state.chain = chain
            return state.delay
        }
        Self.delay(chain, by: delay)
        try chain.play(elapsed: Self.past)
        state.withLock { state in
            state.former = choice.former
            state.source = PushSource(chain.element("source"))
            for (audio, time) in state.early { Self.push(audio, at: time, &state) }
            state.early = []
        }
        // It may have changed meanwhile.
        changes.async { [weak self] in self?.delayAgain() }
    }

    /// Makes a device play audio so long after its capture. Blocks while its driver opens.
    private static func delay(_ chain: DeviceChain, by seconds: Double) {
        chain.pipeline.setLatency(seconds: seconds)
        // Audio waits here until it is due.
        let capacity = (SpeakerNode.waiting.seconds ?? 0) + seconds
        try? chain.element("source").set("max-time", .integer(Int(capacity * 1e9)))
    }

    private func delayAgain() {
        let (chain, delay) = state.withLock { ($0.source == nil ? nil : $0.chain, $0.delay) }
        if let chain { Self.delay(chain, by: delay) }
    }

    private func watch(_ sink: Element, _ stream: SoundStream) {
        sink.sink.watchBuffers { [weak self] buffer in
            let seconds = Double(buffer.duration ?? 0) / 1e9
            let isInterrupted = self?.state.withLock { state in
                state.secondsPlayed += seconds
                return state.isInterrupted
            }
            stream.count()
            if isInterrupted == true { self?.askWhetherMuted() }
        }
    }

    func close() {
        let chain = state.withLock { state in
            defer { (state.chain, state.source, state.heardAfter) = (nil, nil, nil) }
            return state.chain
        }
        chain?.pipeline.stop()
        // Another stream is not silenced yet.
        interrupt(false)
    }

    /// PulseAudio tells a stream that goes on only by its mute that it is heard again. Does not block.
    private func askWhetherMuted() {
        let isDue = state.withLock { state in
            defer { state.isAskedForMute = true }
            return !state.isAskedForMute
        }
        guard isDue else { return }
        changes.asyncAfter(deadline: .now() + Self.pause) { [weak self] in
            guard let self else { return }
            let isMuted = state.withLock { $0.chain }?.element("sink").value("mute")?.flag
            state.withLock { $0.isAskedForMute = false }
            if isMuted == false { interrupt(false) }
        }
    }

    /// The sound server has silenced the stream, or no longer does. Any thread.
    private func interrupt(_ isInterrupted: Bool) {
        let isNews = state.withLock { state in
            defer { state.isInterrupted = isInterrupted }
            return state.isInterrupted != isInterrupted
        }
        if isNews { changes.async { [reporter, node] in reporter.soundInterrupted(node.name, isInterrupted) } }
    }

    /// Plays audio that was captured at a time, or drops it. Any thread; does not block.
    func play(_ audio: MediaBuffer, at time: MediaTime) {
        state.withLock { state in
            if state.source != nil { return Self.push(audio, at: time, &state) }
            state.early.append((audio, time))
            while let first = state.early.first, time.seconds(since: first.time) > state.delay {
                state.early.removeFirst()
            }
        }
    }

    private static func push(_ audio: MediaBuffer, at time: MediaTime, _ state: inout State) {
        guard let chain = state.chain, let timestamp = chain.pipeline.runningTime(at: time.nanoseconds) else { return }
        state.newest = (time, Double(audio.duration ?? 0) / 1e9)
        _ = state.source?.push(audio, timestamp: timestamp)
    }

    /// Nil while the device is closed. Never waits for the device's driver: it has what that said after the last call.
    var heardAfter: Double? {
        let (heardAfter, isDue) = state.withLock { state -> (Double?, Bool) in
            guard state.source != nil else { return (nil, false) }
            defer { state.isAsked = true }
            return (state.heardAfter, !state.isAsked)
        }
        if isDue { changes.async { [weak self] in self?.ask() } }
        return heardAfter
    }

    private func ask() {
        let (chain, delay) = state.withLock { ($0.source == nil ? nil : $0.chain, $0.delay) }
        let heardAfter = chain.map { $0.element("sink").secondsUntilHeard ?? delay }
        state.withLock { state in
            state.isAsked = false
            if state.source != nil, state.chain === chain { state.heardAfter = heardAfter }
        }
    }

    /// The graph's latency has changed. Does not block.
    func follow(_ delay: Double) {
        let isNew = state.withLock { state in
            defer { state.delay = delay }
            return state.delay != delay
        }
        if isNew { changes.async { [weak self] in self?.delayAgain() } }
    }

    var secondsUntilHeard: Double? {
        let (chain, delay) = state.withLock { ($0.source == nil ? nil : $0.chain, $0.delay) }
        return chain?.element("sink").secondsUntilHeard ?? delay
    }

    var secondsPlayed: Double { state.withLock { $0.secondsPlayed } }

    /// Without audio that is due, a loudspeaker has nothing to do.
    var isIdle: Bool {
        state.withLock { state in
            guard let source = state.source, let newest = state.newest else { return state.source != nil }
            let waiting = source.waiting
            let age = GStreamer.now.seconds(since: newest.time) + Double(waiting) * newest.seconds
            return waiting == 0 || age < state.delay
        }
    }

    /// A sound server that still responds says nothing about a loudspeaker that takes no audio.
    func isThere(_ candidate: Int) -> Bool { false }

    func isAbsence(_ error: MediaError) -> Bool { error.code == MediaError.Code.speakerAbsent }

    func error(for cause: SourceSupervisor.Cause, _ candidate: Int) -> MediaError {
        SpeakerNode.lost(name, state.withLock { $0.former.system })
    }
}
