import GStreamerKit
package import MediaGraph
import Synchronization

/// Takes what is played out of what the microphone hears.
///
/// What is played goes through a tee: to a probe that the canceller reads, and then on to the loudspeaker. Both happen on
/// one thread, one after the other, so the canceller knows a sound before it can be heard, however busy the machine is.
///
/// The canceller finds echo only between 6 ms before and 34 ms after the time at which the probe says the sound is heard
/// (measured: 50 dB inside, 17 dB at 42 ms), while sound servers and loudspeakers add delays that nobody reports. So
/// the node listens for the echo's delay itself (`EchoDelay`) and tells the probe.
package final class EchoCancelNode: NodeType, RunningNode {
    package static let kind = NodeKind.echoCancel

    /// How long after the time that the probe is told the echo should come, in seconds. Well inside what is found: a
    /// room's echo goes on for longer behind its beginning than before it.
    private static let lead = 0.012

    private struct State {
        var delay = EchoDelay()
        /// Whether the probe has been told by us and no longer goes by the pipeline's latency.
        var isTold = false
        var found: Double?
    }

    package let name: String
    private let probe: Element
    private let given: Double?
    private let state = Mutex(State())

    package static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        try request.environment.require("webrtcdsp")
        let hasPlayed = request.input("played") != nil
        var plan = NodePlan(request.node)
        let noise = request.text("noise-suppression")
        plan.add(
            "webrtcdsp", as: "canceller",
            [
                "echo-cancel": .flag(hasPlayed),
                "echo-suppression-level": .text(request.text("suppression")),
                "noise-suppression": .flag(noise != "off"),
                "noise-suppression-level": .text(noise == "off" ? "moderate" : noise),
                "gain-control": .flag(request.flag("gain-control")),
                "target-level-dbfs": .integer(-(request.integer("target-level") ?? -3)),
            ])
        plan.addFilter(RawFormat.audio, as: "microphone")
        plan.addFilter(RawFormat.audio, as: "clean")
        plan.link("microphone", "canceller", "clean")
        plan.inputs["in"] = ElementPad("microphone")
        plan.outputs["out"] = ElementPad("clean")
        plan.formats["out"] = .rawAudio
        plan.latency = filterDelay(takesEcho: hasPlayed, suppressesNoise: noise != "off")
        plan.allowances["out"] = plan.latency
        if hasPlayed {
            planPlayed(request, &plan)
        } else {
            plan.notes.append(
                "nothing is played, so there is no echo to take out: only noise and loudness are looked after")
        }
        return plan
    }

    /// How much later a sound leaves the canceller than its timestamp says, in seconds. Measured by comparing what goes in
    /// with what comes out: 0.9 ms at least, 7 more with the echo's filters and 6 more with those against noise.
    private static func filterDelay(takesEcho: Bool, suppressesNoise: Bool) -> Double {
        0.0009 + (takesEcho ? 0.007 : 0) + (suppressesNoise ? 0.006 : 0)
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
        plan.notes.append(
            request.integer("delay").map { "the echo is expected \($0) ms after a sound's timestamp" }
                ?? "the delay of the echo is found by listening, within about 1 s of speech")
    }

    package static func activate(_ instance: NodeInstance) throws(MediaError) -> (any RunningNode)? {
        let output = instance.element("clean").source
        // The sound keeps step with the pictures, and who plays it by the clock waits for it.
        output.shift(by: -Int(instance.plan.latency * 1e9))
        output.answerLatencyQueries(asking: instance.element("microphone").sink, adding: instance.plan.latency)
        guard instance.has("probe") else { return nil }
        let node = EchoCancelNode(instance)
        try node.nameProbe(instance)
        // The probe would wait for the sound for as long as it has been under way already, and so miss all of it where
        // a jitter buffer stands before it.
        node.probe.sink.answerLatencyQueries(seconds: 0)
        node.probe.sink.onBuffer { buffer in
            node.hear(buffer, isPlayed: true)
            return .pass
        }
        instance.element("microphone").source.onBuffer { buffer in
            node.hear(buffer, isPlayed: false)
            return .pass
        }
        instance.element("end").sink.onUpstreamEvent { event in
            // Until the echo was heard, sound is taken to be heard when the pipeline's latency says so.
            if case .latency = event { node.state.withLock { $0.isTold } ? .drop : .pass } else { .pass }
        }
        return node
    }

    private init(_ instance: NodeInstance) {
        name = instance.name
        probe = instance.element("probe")
        given = instance.setting("delay")?.integer.map { Double($0) / 1000 }
    }

    private static let serial = Atomic<Int>(0)

    /// The canceller finds its probe by a name that is one for the whole process, so two pipelines with nodes of one name
    /// would take one another's. Only an element without a parent takes another name.
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

    /// Tells the probe how long after its timestamp a sound comes back.
    private func tell(_ seconds: Double) {
        state.withLock { state in
            state.isTold = true
            state.found = seconds
        }
        probe.source.sendLatency(seconds: max(0, seconds - Self.lead))
    }

    package func report(into statistics: inout MediaStatistics) {
        statistics.echoCancellers[name] = MediaStatistics.EchoCanceller(delay: state.withLock { $0.found })
    }
}
