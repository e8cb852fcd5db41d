import GStreamerKit
import MediaGraph
import Synchronization

/// The probes at one node's edges and queues.
final class NodeProbe: Sendable {
    /// The data that reaches an input, over any link.
    private struct Arrival: Sendable {
        let entry: CountedPad
        let flow: FlowCount
        let ages: PassageTimes
    }

    private struct Queue: Sendable {
        let name: String
        let rule: QueuePlan.Rule
        let element: Element
        let ends: [CountedPad]
        let flow: FlowCount
        /// The number of queued buffers when the counting began.
        let atStart: Int

        init(_ name: String, _ rule: QueuePlan.Rule, _ element: Element) {
            let flow = FlowCount()
            (self.name, self.rule, self.element, self.flow) = (name, rule, element, flow)
            ends = [
                CountedPad(element.sink) { _ in flow.enter() },
                CountedPad(element.source) { _ in flow.add(bytes: 0) },
            ]
            atStart = element.integer("current-level-buffers")
        }

        /// The number of dropped buffers. A queue that waits drops none: missing buffers are still about to enter.
        var dropped: Int {
            guard rule != .wait else { return 0 }
            let flow = flow.count
            return max(0, flow.entered - flow.left - (element.integer("current-level-buffers") - atStart))
        }
    }

    /// The point where media leaves the node, or ends in it.
    private struct Exit: Sendable {
        let element: Element?
        let end: CountedPad
        let frames: [CountedPad]
    }

    private struct State {
        var arrivals: [String: Arrival] = [:]
        var queues: [Queue] = []
        var exits: [Exit] = []
        /// The counts of all exits, of removed ones too.
        var out: [FlowCount] = []
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
            if let there, there.entry.pad === pad { return arrivals[port] = there }
            let (flow, ages) = (there?.flow ?? FlowCount(), there?.ages ?? PassageTimes())
            let entry = CountedPad(pad) { buffer in
                flow.add(bytes: buffer.byteCount)
                ages.left(nil, captured: buffer.time)
                times.entered(buffer.runningTime)
            }
            arrivals[port] = Arrival(entry: entry, flow: flow, ages: ages)
        }
    }

    private func followQueues(_ connections: [Connection], _ state: inout State) {
        var wanted: [(name: String, rule: QueuePlan.Rule, element: Element)] = []
        for connection in connections {
            guard let queue = connection.entry.queue, let plan = connection.plan.queue else { continue }
            wanted.append(("branch-\(connection.plan.link.to.port)", plan.limits.rule, queue))
        }
        for plan in node.plan.queues where node.has(plan.element) {
            let element = node.element(plan.element)
            if element.factory == "queue" { wanted.append((plan.element, plan.limits.rule, element)) }
        }
        state.queues = wanted.map { queue in
            state.queues.first { $0.element === queue.element } ?? Queue(queue.name, queue.rule, queue.element)
        }
    }

    private func followExits(_ connections: [Connection], _ state: inout State) {
        let elements = node.tees.isEmpty ? lastElements.filter { $0.pad("sink") != nil } : node.tees
        guard !elements.isEmpty else {
            // The elements of this end are not visible.
            if state.exits.isEmpty { state.exits = connections.map { exit(nil, $0.entry.pad, &state.out) } }
            return
        }
        let before = state.exits
        state.exits = elements.compactMap { element in
            if let exit = before.first(where: { $0.element === element }) { return exit }
            return element.pad("sink").map { exit(element, $0, &state.out) }
        }
    }

    private func exit(_ element: Element?, _ pad: Pad, _ out: inout [FlowCount]) -> Exit {
        let (flow, times) = (FlowCount(), times)
        out.append(flow)
        let isPackets = element.map(takesPackets) ?? false
        let muxed = element.map(padsBeforeMuxer) ?? []
        let isFrame = muxed.isEmpty
        let end = CountedPad(pad) { buffer in
            flow.add(bytes: buffer.byteCount, frame: isPackets ? buffer.runningTime : nil, isFrame: isFrame)
            times.left(buffer.runningTime, captured: buffer.time)
        }
        return Exit(
            element: element, end: end, frames: muxed.map { pad in CountedPad(pad) { _ in flow.add(bytes: 0) } })
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

    private var lastElements: [Element] {
        let plan = node.plan
        let feeding = Set(plan.links.map(\.from.element))
        return plan.elements.filter { !feeding.contains($0.name) && node.has($0.name) }.map { node.element($0.name) }
    }

    var statistics: NodeStatistics {
        var statistics = NodeStatistics(node: node.name, kind: node.node.kind)
        statistics.secondsCounted = GStreamer.now.seconds(since: start)
        let (arrivals, queues, exits, out) = state.withLock { ($0.arrivals, $0.queues, $0.exits, $0.out.map(\.count)) }
        for (input, arrival) in arrivals {
            let count = arrival.flow.count
            statistics.framesIn += count.left
            statistics.inputs[input] = .init(frames: count.left, bytes: count.bytes, latency: arrival.ages.medians.age)
        }
        statistics.framesOut = out.map(\.left).reduce(0, +)
        statistics.bytesOut = out.map(\.bytes).reduce(0, +)
        for queue in queues {
            statistics.queued += queue.element.integer("current-level-buffers")
            statistics.dropped.append(.init(queue: queue.name, rule: queue.rule, frames: queue.dropped))
        }
        (statistics.secondsInNode, statistics.latency) = times.medians
        if node.plan.playsByClock, let age = statistics.latency {
            // Data that arrived in time is kept until it is due.
            let heard = lastElements.compactMap(\.secondsUntilHeard).max() ?? 0
            statistics.latency = max(age, heard)
        }
        var measured = MediaStatistics()
        node.running?.report(into: &measured)
        statistics.levels = measured.levels[node.name] ?? []
        // A stopped pad has no caps any more.
        let now = exits.first?.end.pad.settledCaps?.structures.first.flatMap(MediaFormat.init)
        statistics.format = state.withLock { state in
            state.format = now ?? state.format
            return state.format
        }
        return statistics
    }
}

/// A pad whose buffers are counted until this is released.
private final class CountedPad: Sendable {
    let pad: Pad
    private let probe: Probe

    init(_ pad: Pad, _ count: @escaping @Sendable (borrowing PassingBuffer) -> Void) {
        self.pad = pad
        probe = pad.onBuffer { buffer in
            count(buffer)
            return .pass
        }
    }

    deinit {
        probe.remove()
    }
}

/// Counts the data that passes a point, or enters and leaves a queue.
final class FlowCount: Sendable {
    struct Count: Sendable {
        var entered = 0
        var left = 0
        var bytes = 0
    }

    private struct State {
        var count = Count()
        var lastFrame: UInt64?
    }

    private let state = Mutex(State())

    func enter() { state.withLock { $0.count.entered += 1 } }

    /// `frame` is the time of the frame of this buffer, if frames arrive in parts: one frame counts once. Without
    /// `isFrame`, only its bytes count.
    func add(bytes: Int, frame: UInt64? = nil, isFrame: Bool = true) {
        state.withLock { state in
            if isFrame, frame == nil || frame != state.lastFrame { state.count.left += 1 }
            state.lastFrame = frame
            state.count.bytes += bytes
        }
    }

    var count: Count { state.withLock { $0.count } }
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
