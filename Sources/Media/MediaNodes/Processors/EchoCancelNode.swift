import GStreamerKit
public import MediaGraph
import Synchronization

/// Removes played audio from the microphone's audio.
///
/// Played audio passes a tee: to a probe that the canceller reads, and then to the loudspeaker. Both happen on one
/// thread, one after the other, so the canceller knows audio before it can be heard, however busy the machine is.
///
/// Audio that another pipeline plays passes an `echo-probe` there, and comes here by its label (`PlayedAudio`). It enters the
/// node's probe at the times of this pipeline, so the two need not have begun together. It is 70 ms early at least, which are the
/// loudspeaker's buffers.
///
/// The canceller finds echo only from 6 ms before to 34 ms after the time at which the probe states that audio is heard
/// (measured: 50 dB inside, 17 dB at 42 ms). But sound servers and loudspeakers add unreported delays. So the node
/// measures the echo's delay itself (`EchoDelay`) and informs the probe.
package final class EchoCancelNode: NodeType, SoundHolding {
    package static let kind = NodeKind(
        "echo-cancel", .processor,
        "Removes played audio from the microphone's audio, suppresses noise and controls the gain",
        inputs: [Port("in", [.rawAudio]), Port("played", [.rawAudio], isRequired: false)],
        outputs: [Port("out", [.rawAudio]), Port("played-out", [.rawAudio], isRequired: false)],
        settings: [
            SettingContract(
                "suppression", EchoCancel.Suppression.settingDomain, default: "low",
                "Strength of the echo suppression; each step costs the voice 1 dB while both sides speak"),
            SettingContract(
                "noise-suppression", EchoCancel.NoiseSuppression.settingDomain, default: "moderate",
                "Strength of the noise suppression"),
            SettingContract(
                "gain-control", .flag, default: false, "Whether to raise or lower the voice to the target level"),
            SettingContract(
                "target-level", .integer(-31...0), default: -3, unit: "dBFS",
                "Peak level that the gain control aims at"),
            SettingContract(
                "delay", .integer(0...2000), unit: "ms",
                "Time from playing audio until the microphone records it (default: measured)"),
            SettingContract(
                "heard", .text, default: "",
                "Label of an echo-probe of another graph of this process, whose audio the microphone hears, instead of the "
                    + "input played"),
        ])

    /// How long after the probe's stated time the echo should arrive, in seconds. Well inside of the window: a room's
    /// echo continues longer after its beginning than before it.
    private static let lead = 0.012

    private struct State {
        var delay = EchoDelay()
        /// The delay that the probe was told, in seconds. The probe then ignores the pipeline's latency.
        var told: Double?
        /// The delay that the pipeline which plays the audio states, in seconds, as the probe was told.
        var stated: Double?
        var listener: Int?
    }

    private let probe: Element
    private let given: Double?
    /// The audio of another pipeline, and the source that it enters by.
    private let heard: (audio: PlayedAudio, source: PushSource)?
    private let pipeline: WeakBox<Pipeline>
    private let hold: SoundHold?
    private let state = Mutex(State())

    package static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        try request.environment.require("webrtcdsp")
        let isHeard = !request.text("heard").isEmpty
        if isHeard, request.input("played") != nil { throw twoEchoes(request.name) }
        let hasPlayed = request.input("played") != nil || isHeard
        var plan = NodePlan(request.node)
        let noise = request.text("noise-suppression")
        plan.addFilter(RawFormat.audio, as: "microphone")
        plan.add(
            "webrtcdsp", as: "canceller",
            [
                "echo-cancel": .flag(hasPlayed),
                "echo-suppression-level": .text(request.text("suppression")),
                "noise-suppression": .flag(noise != "off"),
                "noise-suppression-level": .text(noise == "off" ? "moderate" : noise),
                "gain-control": .flag(request.flag("gain-control")),
                "target-level-dbfs": .integer(-(request.integer("target-level"))),
            ])
        plan.addFilter(RawFormat.audio, as: "clean")
        plan.chain(to: .rawAudio)
        plan.latency = filterDelay(takesEcho: hasPlayed, suppressesNoise: noise != "off")
        plan.allowances["out"] = plan.latency
        if isHeard {
            planHeard(request, &plan)
        } else if hasPlayed {
            planPlayed(request, &plan)
        } else {
            plan.notes.append(
                "nothing is played, so there is no echo: only noise suppression and gain control work")
        }
        return plan
    }

    /// How much later audio leaves the canceller than its timestamp states, in seconds. Measured by comparing input and
    /// output: at least 0.9 ms, 7 more with the echo's filters and 6 more with those against noise.
    private static func filterDelay(takesEcho: Bool, suppressesNoise: Bool) -> Double {
        0.0009 + (takesEcho ? 0.007 : 0) + (suppressesNoise ? 0.006 : 0)
    }

    private static func twoEchoes(_ name: String) -> MediaError {
        MediaError(
            code: MediaError.Code.graphInvalid,
            message: "\"\(name)\" has both audio at played and the setting heard. Remove one of them.", node: name)
    }

    /// How much audio of another pipeline may wait for this one.
    private static let waiting = QueuePlan.Limits(seconds: 0.5, rule: .dropOldest)

    private static func planHeard(_ request: NodeRequest, _ plan: inout NodePlan) {
        PushQueue.plan(&plan, caps: RawFormat.audio, waiting, holding: .rawAudio, as: "heard")
        plan.add("webrtcechoprobe", as: "probe")
        plan.addSink(as: "end")
        plan.link("heard", "probe", "end")
        plan.notes.append(
            "the microphone hears the audio labelled \"\(request.text("heard"))\"; \(delayNote(request))")
    }

    private static func delayNote(_ request: NodeRequest) -> String {
        request.optionalInteger("delay").map { "the echo is expected \($0) ms after the audio's timestamp" }
            ?? "the delay of the echo is measured within about 1 s of speech"
    }

    private static func planPlayed(_ request: NodeRequest, _ plan: inout NodePlan) {
        plan.addFilter(RawFormat.audio, as: "played")
        plan.add("tee", as: "branch", ["allow-not-linked": true])
        plan.add("webrtcechoprobe", as: "probe")
        plan.addSink(as: "end")
        plan.link("played", "branch")
        plan.link(ElementPad("branch", "src_0"), ElementPad("probe"))
        plan.link("probe", "end")
        plan.inputs["played"] = ElementPad("played")
        if request.usedOutputs.contains("played-out") {
            plan.addQueue(as: "played-out", .rawSound, holding: nil)
            plan.link(ElementPad("branch", "src_1"), ElementPad("played-out"))
            plan.outputs["played-out"] = ElementPad("played-out")
        }
        plan.formats["played-out"] = .rawAudio
        plan.notes.append(delayNote(request))
    }

    package static func activate(_ instance: NodeInstance) throws(MediaError) -> (any RunningNode)? {
        let output = instance.element("clean").source
        // The audio stays in step with the video, and renderers that play by the clock wait for it.
        output.offset = -Int(instance.plan.latency * 1e9)
        output.answerLatencyQueries(asking: instance.element("microphone").sink, adding: instance.plan.latency)
        guard instance.has("probe") else { return nil }
        let node = EchoCancelNode(instance)
        try node.nameProbe(instance)
        // Otherwise the probe would wait for audio as long as that has been in transit, and miss all of it downstream
        // of a jitter buffer.
        node.probe.sink.answerLatencyQueries(seconds: 0)
        // The node keeps these elements, so their probes must not keep the node.
        node.probe.sink.watchBuffers { [weak node] buffer in node?.hear(buffer, isPlayed: true) }
        instance.element("microphone").source.watchBuffers { [weak node] buffer in node?.hear(buffer, isPlayed: false) }
        instance.element("end").sink.onUpstreamEvent { [weak node] event in
            // Until an echo is detected, the pipeline's latency states when audio is heard.
            guard case .latency = event, let node else { return .pass }
            return node.heard != nil || node.state.withLock({ $0.told != nil }) ? .drop : .pass
        }
        if let source = node.heard?.source {
            // Otherwise a graph whose microphone ends would wait for the loudspeaker.
            instance.element("microphone").sink.watchEvents { event in
                if case .endOfStream = event { source.endOfStream() }
            }
        }
        return node
    }

    private init(_ instance: NodeInstance) {
        probe = instance.element("probe")
        given = instance.optionalInteger("delay").map { Double($0) / 1000 }
        heard =
            instance.has("heard")
            ? (PlayedAudio.labelled(instance.text("heard")), PushSource(instance.element("heard"))) : nil
        pipeline = WeakBox(instance.pipeline)
        hold = instance.has("played") ? SoundHold(instance, "played", at: instance.element("played").sink) : nil
    }

    private static let serial = Atomic<Int>(0)

    /// The canceller finds its probe by a process-wide name, so two pipelines with nodes of one name would exchange
    /// theirs. Only an element without a parent can be renamed.
    private func nameProbe(_ instance: NodeInstance) throws(MediaError) {
        let serial = Self.serial.wrappingAdd(1, ordering: .relaxed).newValue
        let branch = probe.sink.peer
        instance.pipeline.remove(probe)
        try probe.set("name", .text("\(probe.name)-\(serial)"))
        instance.pipeline.add(probe)
        _ = branch?.link(probe.sink)
        _ = probe.source.link(instance.element("end").sink)
        try instance.element("canceller").set("probe", .text(probe.name))
    }

    package func prepare() throws(MediaError) {
        if let given { tell(given) }
        guard let heard else { return }
        let listener = heard.audio.listen { [weak self] audio, time, delay in self?.enter(audio, at: time, delay) }
        state.withLock { $0.listener = listener }
    }

    package func finish() { stopListening() }
    package func stopped() { stopListening() }

    deinit { stopListening() }

    private func stopListening() {
        let listener = state.withLock { state in
            defer { state.listener = nil }
            return state.listener
        }
        if let listener { heard?.audio.ignore(listener) }
    }

    /// Audio of another pipeline, at the time of its timestamp on the clock.
    private func enter(_ audio: MediaBuffer, at time: MediaTime, _ delay: Double?) {
        guard let heard, let pipeline = pipeline.value, let timestamp = pipeline.runningTime(at: time.nanoseconds),
            timestamp > 0
        else { return }
        let stated = state.withLock { state -> Double? in
            guard state.told == nil, let delay, delay != state.stated else { return nil }
            state.stated = delay
            return delay
        }
        // Until an echo is detected.
        if let stated { probe.source.sendLatency(seconds: stated) }
        _ = heard.source.push(audio, timestamp: timestamp)
    }

    private func hear(_ buffer: borrowing PassingBuffer, isPlayed: Bool) {
        guard given == nil, let time = buffer.runningTime else { return }
        let found = buffer.read { bytes -> Double? in
            state.withLock { state in
                if isPlayed { state.delay.play(bytes, at: time) }
                return !isPlayed && state.delay.record(bytes, at: time) ? state.delay.seconds : nil
            }
        }
        if let found = found ?? nil { tell(found) }
    }

    /// Sets how long after its timestamp audio returns.
    private func tell(_ seconds: Double) {
        state.withLock { $0.told = seconds }
        probe.source.sendLatency(seconds: max(0, seconds - Self.lead))
    }

    package func report(into statistics: inout MediaStatistics, as name: String) {
        statistics.echoCancellers[name] = MediaStatistics.EchoCanceller(delay: state.withLock { $0.told })
    }
}

/// Removes the audio that is played from the audio of a microphone, suppresses noise and controls the gain:
///
/// ```swift
/// microphone >>> echo >>> voice
/// received >>> echo.played
/// echo.playedOut >>> Speaker()
/// ```
///
/// If another pipeline of the process plays the audio, an ``EchoProbe`` there and `heard` here have one label.
public struct EchoCancel: MediaNode {
    /// How much of the remaining echo is taken away.
    public enum Suppression: String, SettingChoice {
        /// From the least to the most.
        case low, moderate, high
    }

    /// How much of the noise is taken away.
    public enum NoiseSuppression: String, SettingChoice {
        /// From none to much.
        case off, low, moderate, high
        /// The most, which changes the voice.
        case veryHigh = "very-high"
    }

    public var handle: NodeHandle

    /// An echo canceller. Nil values are the defaults, which `connectlive nodes echo-cancel` lists.
    ///
    /// - Parameters:
    ///   - suppression: each step costs the voice 1 dB while both sides speak.
    ///   - gainControl: whether to raise or lower the voice to the target level.
    ///   - targetLevel: the peak level that the gain control aims at, in dBFS.
    ///   - delay: the time from playing audio until the microphone records it; nil to measure it.
    ///   - heard: the label of the `EchoProbe` of another pipeline, instead of `played`.
    public init(
        suppression: Suppression? = nil, noiseSuppression: NoiseSuppression? = nil, gainControl: Bool? = nil,
        targetLevel: Int? = nil, delay: Duration? = nil, heard: String? = nil
    ) {
        handle = NodeHandle(
            EchoCancelNode.kind,
            [
                "suppression": suppression, "noise-suppression": noiseSuppression, "gain-control": gainControl,
                "target-level": targetLevel, "delay": delay?.inMilliseconds,
                "heard": heard,
            ])
    }

    /// The audio to play, which passes unchanged to `playedOut`.
    public var played: NodeInput { input(named: "played") }
    /// The audio of `played`, for the loudspeaker.
    public var playedOut: NodeOutput { output(named: "played-out") }

    /// The delay that was detected.
    ///
    /// - Throws: `node.not-running`.
    public var statistics: MediaStatistics.EchoCanceller {
        get throws(MediaError) { try figures(\.echoCancellers) ?? MediaStatistics.EchoCanceller() }
    }
}

extension Node {
    /// Removes the audio of an echo probe from that of a microphone, and suppresses noise.
    package static func echoCancel(_ name: String = "echo-cancel", heard: String, controlsGain: Bool) -> Node {
        Node(EchoCancelNode.kind, name, ["heard": heard, "gain-control": controlsGain])
    }
}
