import GStreamerKit
import MediaGraph
import Synchronization

/// The probes at one node's edges and queues.
final class NodeProbe: Sendable {
    private struct Queue: Sendable {
        let name: String
        let rule: QueuePlan.Rule
        let element: Element
        let flow: FlowCount
        /// What waited when the counting began.
        let atStart: Int
    }

    private let member: Member
    /// By input.
    private let entered: [String: (flow: FlowCount, times: PassageTimes)]
    private let left = FlowCount()
    private let times = PassageTimes()
    private let format = Mutex<MediaFormat?>(nil)
    private let queues: [Queue]
    private let outputs: [Pad]
    private let probes: [Probe]

    init(_ member: Member, connections: [Connection], tees: [Element]) {
        self.member = member
        var probes: [Probe] = []
        let (left, times) = (left, times)
        var entered: [String: (flow: FlowCount, times: PassageTimes)] = [:]
        for connection in connections {
            let (flow, ages) = (FlowCount(), PassageTimes())
            entered[connection.plan.link.to.port] = (flow, ages)
            probes.append(
                connection.entry.onBuffer { buffer in
                    flow.add(bytes: buffer.byteCount)
                    ages.left(nil, captured: buffer.time)
                    times.entered(buffer.runningTime)
                    return .pass
                })
        }
        self.entered = entered
        outputs = tees.isEmpty ? Self.ends(of: member, connections) : tees.map(\.sink)
        for pad in outputs {
            probes.append(
                pad.onBuffer { buffer in
                    left.add(bytes: buffer.byteCount)
                    times.left(buffer.runningTime, captured: buffer.time)
                    return .pass
                })
        }
        var queues: [Queue] = []
        func watch(_ name: String, _ rule: QueuePlan.Rule, _ element: Element) {
            let flow = FlowCount()
            probes.append(
                element.sink.onBuffer { _ in
                    flow.enter()
                    return .pass
                })
            probes.append(
                element.source.onBuffer { _ in
                    flow.add(bytes: 0)
                    return .pass
                })
            queues.append(
                Queue(
                    name: name, rule: rule, element: element, flow: flow,
                    atStart: element.integer("current-level-buffers")))
        }
        for connection in connections {
            guard let queue = connection.queue, let plan = connection.plan.queue else { continue }
            watch("branch-\(connection.plan.link.to.port)", plan.limits.rule, queue)
        }
        for plan in member.plan.queues where member.instance.has(plan.element) {
            let element = member.instance.element(plan.element)
            if element.factory == "queue" { watch(plan.element, plan.limits.rule, element) }
        }
        self.queues = queues
        self.probes = probes
    }

    func remove() {
        for probe in probes { probe.remove() }
    }

    /// Where media ends inside a node that has no outputs: its sinks, or where it enters when they cannot be seen.
    private static func ends(of member: Member, _ connections: [Connection]) -> [Pad] {
        let sinks = lastElements(of: member).compactMap { $0.pad("sink") }
        return sinks.isEmpty ? connections.map(\.entry) : sinks
    }

    private static func lastElements(of member: Member) -> [Element] {
        let feeding = Set(member.plan.links.map(\.from.element))
        return member.plan.elements.filter { !feeding.contains($0.name) }.map { member.instance.element($0.name) }
    }

    var statistics: NodeStatistics {
        var statistics = NodeStatistics(node: member.plan.name, kind: member.plan.node.kind)
        for (input, (flow, times)) in entered {
            let count = flow.count
            statistics.framesIn += count.left
            statistics.inputs[input] = .init(frames: count.left, bytes: count.bytes, latency: times.medians.age)
        }
        let out = left.count
        statistics.framesOut = out.left
        statistics.bytesOut = out.bytes
        for queue in queues {
            let waiting = queue.element.integer("current-level-buffers")
            let flow = queue.flow.count
            statistics.queued += waiting
            let dropped = max(0, flow.entered - flow.left - (waiting - queue.atStart))
            statistics.dropped.append(.init(queue: queue.name, rule: queue.rule, frames: dropped))
        }
        (statistics.secondsInNode, statistics.latency) = times.medians
        if member.plan.playsByClock, let age = statistics.latency {
            // What came here in time is kept until it is due.
            let heard = Self.lastElements(of: member).compactMap(\.secondsUntilHeard).max() ?? 0
            statistics.latency = max(age, heard)
        }
        // A pad that has been stopped no longer knows.
        let now = outputs.first?.settledCaps?.structures.first.flatMap(MediaFormat.init)
        statistics.format = format.withLock { format in
            format = now ?? format
            return format
        }
        return statistics
    }
}

/// Counts what passes a point, or enters and leaves a queue.
final class FlowCount: Sendable {
    struct Count: Sendable {
        var entered = 0
        var left = 0
        var bytes = 0
    }

    private let state = Mutex(Count())

    func enter() { state.withLock { $0.entered += 1 } }

    func add(bytes: Int) {
        state.withLock { count in
            count.left += 1
            count.bytes += bytes
        }
    }

    var count: Count { state.withLock { $0 } }
}

/// How long the last frames took through a node, and how old they were when they left.
final class PassageTimes: Sendable {
    private static let memory = 128

    private struct State {
        /// Running time of frames that entered, and when that was.
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

    /// A frame leaves: the one that entered with the same time, or the last before it where the node cuts its media anew.
    func left(_ time: UInt64?, captured: MediaTime) {
        let now = GStreamer.now
        state.withLock { state in
            Self.keep(now.seconds(since: captured), in: &state.age)
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
