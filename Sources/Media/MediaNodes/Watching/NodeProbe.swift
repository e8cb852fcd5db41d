import GStreamerKit
import MediaGraph
import Synchronization

/// The probes at one node's edges and queues.
final class NodeProbe: Sendable {
    private struct Queue: Sendable {
        let plan: QueuePlan
        let element: Element
        let entries: PadCount
        let exits: PadCount
        /// The number of queued buffers when the counting began.
        let atStart: Int

        init(_ plan: QueuePlan, _ element: Element) {
            (self.plan, self.element) = (plan, element)
            (entries, exits) = (PadCount(element.sink), PadCount(element.source))
            atStart = element.integer("current-level-buffers")
        }

        /// The number of dropped buffers. A queue that waits drops none: missing buffers are still about to enter.
        var dropped: Int {
            guard plan.limits.rule != .wait else { return 0 }
            let (entered, left) = (entries.flow.count.frames, exits.flow.count.frames)
            return max(0, entered - left - (element.integer("current-level-buffers") - atStart))
        }
    }

    /// The point where media leaves the node, or ends in it.
    private struct Exit: Sendable {
        let element: Element?
        let end: PadCount
        /// The inputs of a muxer, where frames count.
        let frames: [PadCount]
    }

    private struct State {
        /// The data that reaches an input, over any link.
        var arrivals: [String: PadCount] = [:]
        var queues: [Queue] = []
        var exits: [Exit] = []
        /// The counts of all exits, of removed ones too, with the output. Nil at an end of the graph.
        var out: [(output: String?, flow: FlowCount)] = []
        var format: MediaFormat?
    }

    private let node: NodeInstance
    private let start = GStreamer.now
    private let times = PassageTimes()
    private let state = Mutex(State())

    init(_ node: NodeInstance) {
        self.node = node
    }

    /// Counts at the node's links and tees, again after each edit. Counts continue where a link or tee remains.
    func follow(_ connections: [Connection]) {
        state.withLock { state in
            followArrivals(connections, &state)
            followQueues(connections, &state)
            followExits(connections, &state)
        }
    }

    private func followArrivals(_ connections: [Connection], _ state: inout State) {
        let (before, times) = (state.arrivals, times)
        state.arrivals = connections.reduce(into: [:]) { arrivals, connection in
            let (port, pad) = (connection.plan.link.to.port, connection.entry.pad)
            let there = before[port]
            if let there, there.pad === pad { return arrivals[port] = there }
            arrivals[port] = PadCount(pad, there?.flow ?? FlowCount()) { flow, buffer in
                flow.add(bytes: buffer.byteCount)
                flow.ages.left(nil, captured: buffer.time)
                times.entered(buffer.runningTime)
            }
        }
    }

    private func followQueues(_ connections: [Connection], _ state: inout State) {
        var wanted: [(plan: QueuePlan, element: Element)] = []
        for connection in connections {
            guard let queue = connection.entry.queue, var plan = connection.plan.queue else { continue }
            plan.element = "branch-\(connection.plan.link.to.port)"
            wanted.append((plan, queue))
        }
        for plan in node.plan.queues where node.has(plan.element) {
            let element = node.element(plan.element)
            if element.factory == "queue" { wanted.append((plan, element)) }
        }
        state.queues = wanted.map { queue in
            state.queues.first { $0.element === queue.element } ?? Queue(queue.plan, queue.element)
        }
    }

    private func followExits(_ connections: [Connection], _ state: inout State) {
        let tees = node.teesByOutput
        // Outputs without a consumer do not count.
        let elements: [(output: String?, element: Element)] =
            tees.isEmpty
            ? node.lastElements(of: node.plan).filter { $0.pad("sink") != nil }.map { (nil, $0) }
            : tees.filter { $0.value.integer("num-src-pads") > 0 }.map { ($0.key, $0.value) }
        guard !elements.isEmpty || !tees.isEmpty else {
            // The elements of this end are not visible.
            if state.exits.isEmpty { state.exits = connections.map { exit(nil, nil, $0.entry.pad, &state.out) } }
            return
        }
        let before = state.exits
        state.exits = elements.compactMap { output, element in
            if let exit = before.first(where: { $0.element === element }) { return exit }
            return element.pad("sink").map { exit(element, output, $0, &state.out) }
        }
    }

    private func exit(
        _ element: Element?, _ output: String?, _ pad: Pad, _ out: inout [(output: String?, flow: FlowCount)]
    ) -> Exit {
        let (flow, times) = (FlowCount(), times)
        out.append((output, flow))
        let isPackets = element.map(takesPackets) ?? false
        let muxed = element.map(padsBeforeMuxer) ?? []
        let isFrame = muxed.isEmpty
        let end = PadCount(pad, flow) { flow, buffer in
            flow.add(bytes: buffer.byteCount, frame: isPackets ? buffer.runningTime : nil, isFrame: isFrame)
            times.left(buffer.runningTime, captured: buffer.time)
        }
        let frames = muxed.map { pad in PadCount(pad, flow) { flow, _ in flow.add(bytes: 0) } }
        return Exit(element: element, end: end, frames: frames)
    }

    /// The inputs of a muxer that feeds the element. A muxer writes the header and the media of a frame apart, so frames
    /// count where they enter it. Empty without a muxer.
    private func padsBeforeMuxer(_ element: Element) -> [Pad] {
        let plan = node.plan
        let muxers = plan.links.filter { link in
            plan.element(link.from.element)?.factory.hasSuffix("mux") == true && node.has(link.to.element)
                && node.element(link.to.element) === element
        }.map(\.from.element)
        return plan.links.compactMap { link in
            guard muxers.contains(link.to.element), node.has(link.from.element) else { return nil }
            return node.element(link.from.element).pad("src")?.peer
        }
    }

    /// Whether a payloader feeds the element.
    private func takesPackets(_ element: Element) -> Bool {
        let plan = node.plan
        return plan.links.contains { link in
            let factory = plan.element(link.from.element)?.factory ?? ""
            return factory.hasPrefix("rtp") && factory.hasSuffix("pay") && element.name.hasSuffix(".\(link.to.element)")
        }
    }

    var statistics: NodeStatistics {
        var statistics = NodeStatistics(node: node.name, kind: node.node.kind)
        statistics.secondsCounted = GStreamer.now.seconds(since: start)
        let (arrivals, queues, exits, out) = state.withLock { ($0.arrivals, $0.queues, $0.exits, $0.out) }
        for (input, arrival) in arrivals {
            let count = arrival.flow.count
            statistics.framesIn += count.frames
            statistics.inputs[input] = .init(
                frames: count.frames, bytes: count.bytes, latency: arrival.flow.ages.medians.age)
        }
        for (output, flow) in out {
            let count = flow.count
            statistics.framesOut += count.frames
            statistics.bytesOut += count.bytes
            if let output { statistics.outputs[output, default: 0] += count.frames }
        }
        for queue in queues {
            statistics.queued += queue.element.integer("current-level-buffers")
            statistics.dropped.append(
                .init(queue: queue.plan.element, rule: queue.plan.limits.rule, frames: queue.dropped))
        }
        (statistics.secondsInNode, statistics.latency) = times.medians
        if node.plan.playsByClock, let age = statistics.latency {
            // Data that arrived in time is kept until it is due.
            statistics.latency = max(age, node.running?.secondsUntilHeard ?? 0)
        }
        var measured = MediaStatistics()
        node.running?.report(into: &measured, as: node.name)
        // Frames that the network has no room for do not enter the encoder's queue.
        if let encoder = measured.encoders[node.name], !statistics.dropped.isEmpty {
            statistics.dropped[0].frames += encoder.droppedForRate
        }
        statistics.levels = measured.levels[node.name] ?? []
        statistics.source = measured.sources[node.name]
        statistics.camera = measured.cameras[node.name]
        statistics.outage = measured.outages[node.name]
        // A stopped pad has no caps any more.
        let now = exits.first?.end.pad.settledCaps?.structures.first.flatMap(MediaFormat.init)
        statistics.format = state.withLock { state in
            state.format = now ?? state.format
            return state.format
        }
        return statistics
    }
}

/// Counts the buffers of a pad until this is released.
private final class PadCount: Sendable {
    let pad: Pad
    let flow: FlowCount
    private let probe: Probe

    init(
        _ pad: Pad, _ flow: FlowCount = FlowCount(),
        _ count: @escaping @Sendable (FlowCount, borrowing PassingBuffer) -> Void = { flow, _ in flow.add(bytes: 0) }
    ) {
        (self.pad, self.flow) = (pad, flow)
        probe = pad.watchBuffers { buffer in count(flow, buffer) }
    }

    deinit {
        probe.remove()
    }
}

/// Counts the data that passes a point.
final class FlowCount: Sendable {
    private struct State {
        var frames = 0
        var bytes = 0
        var lastFrame: UInt64?
    }

    /// The ages of the frames, if they are recorded.
    let ages = PassageTimes()
    private let state = Mutex(State())

    /// `frame` is the time of the frame of this buffer, if frames arrive in parts: one frame counts once. Without
    /// `isFrame`, only its bytes count.
    func add(bytes: Int, frame: UInt64? = nil, isFrame: Bool = true) {
        state.withLock { state in
            if isFrame, frame == nil || frame != state.lastFrame { state.frames += 1 }
            state.lastFrame = frame
            state.bytes += bytes
        }
    }

    var count: (frames: Int, bytes: Int) { state.withLock { ($0.frames, $0.bytes) } }
}

/// The durations of the last frames' passage through a node, and their ages at its output.
final class PassageTimes: Sendable {
    private static let memory = 128

    private struct State {
        /// The running times of entered frames, and when they entered.
        var entries: [(time: UInt64, at: MediaTime)] = []
        var inNode: [Double] = []
        var age: [Double] = []
    }

    private let state = Mutex(State())

    func entered(_ time: UInt64?) {
        guard let time else { return }
        let now = GStreamer.now
        state.withLock { state in
            state.entries.append((time, now))
            if state.entries.count > Self.memory { state.entries.removeFirst() }
        }
    }

    /// Called when a frame leaves: the entered frame with the same time, or the last before it if the node splits its
    /// media differently.
    func left(_ time: UInt64?, captured: MediaTime) {
        let now = GStreamer.now
        state.withLock { state in
            // The time of a frame may be up to a second in the future after a burst of packets.
            Self.keep(max(0, now.seconds(since: captured)), in: &state.age)
            guard let time, let index = state.entries.lastIndex(where: { $0.time <= time }) else { return }
            Self.keep(now.seconds(since: state.entries[index].at), in: &state.inNode)
            state.entries.removeFirst(index)
        }
    }

    private static func keep(_ value: Double, in values: inout [Double]) {
        values.append(value)
        if values.count > memory { values.removeFirst() }
    }

    var medians: (inNode: Double?, age: Double?) {
        let (inNode, age) = state.withLock { ($0.inNode, $0.age) }
        func median(_ values: [Double]) -> Double? { values.isEmpty ? nil : values.sorted()[values.count / 2] }
        return (median(inNode), median(age))
    }
}
