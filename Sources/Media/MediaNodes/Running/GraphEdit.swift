import Dispatch
import GStreamerKit
import MediaGraph
import Synchronization

/// One transaction on a running graph. New nodes are built beside the old ones, must deliver a frame, and then replace
/// them.
///
/// Until then the graph is unchanged, and it stays unchanged if they do not deliver. Blocks its thread meanwhile, so it
/// runs on a queue of its own.
final class GraphEdit {
    private let graph: RunningGraph
    /// The plan that the edit began with.
    private let base: GraphPlan
    private let change: GraphChange
    private let owners: NodeOwners
    private let deadline: DispatchTime
    private let outcome: EditOutcome
    /// Whether the edit fails if the device of a new source is away.
    private let needsDevices: Bool
    private var staged: [String: NodeInstance] = [:]
    /// New inputs of nodes that stay.
    private var grown: [NodePlan] = []
    /// How many first frames and appeared nodes the edit has waited for.
    private var awaited = 0
    /// The outputs and ends of the new nodes, each raised by its first buffer.
    private var flows: [Flow] = []
    /// Links whose new source or new target is staged, once they have data.
    private var connections: [Connection] = []
    private var relinks: [Relink] = []
    /// The live settings that have their new values, with their former ones.
    private var changedSettings: [(value: SettingValue?, former: GraphChange.SettingChange)] = []

    /// An input that stays and gets another source: an unlinked branch that waits.
    private struct Relink {
        let plan: LinkPlan
        let source: NodeInstance
        let target: NodeInstance
        let tee: Element
        let branch: Pad
        /// Holds the new media, so that the source's other branches continue; nil if there are none.
        let queue: LinkEntry?
        let waiting: Element

        /// The last pad before the input.
        var output: Pad { queue?.queue?.source ?? branch }
        var isEncoded: Bool { plan.format.kind == .encodedVideo }
    }

    /// An output of a new node, or the node itself if it has none that is linked.
    private struct Flow {
        let node: String
        let port: String?
        let hasBegun = AtomicBool()
    }

    /// The probes that hold the new sources at a frame until the links have moved.
    private var held: [Probe] = []

    /// The shortest wait for a keyframe, when the deadline has nearly passed, and the longest for a raw frame.
    private static let swapLimit = DispatchTimeInterval.milliseconds(500)

    init(
        _ graph: RunningGraph, _ change: GraphChange, from base: GraphPlan, until deadline: DispatchTime,
        outcome: EditOutcome, owners: NodeOwners = [:], needsDevices: Bool = false
    ) {
        self.graph = graph
        self.base = base
        self.change = change
        self.owners = owners
        self.outcome = outcome
        self.deadline = deadline
        self.needsDevices = needsDevices
    }

    /// Names of nodes that had to release an exclusive device before their replacements could be built.
    private(set) var released: Set<String> = []

    func perform() throws(MediaError) {
        releaseResources()
        do throws(MediaError) {
            try stage()
            try waitForFirstFrames()
            try requireDevices()
            defer { for probe in held { probe.remove() } }
            let limit = max(deadline, .now() + Self.swapLimit)
            // With a refused setting or without its keyframe an edit fails, so nobody sees the new nodes before.
            for setting in change.settings { changedSettings.append((setting.value, try graph.set(setting))) }
            try holdEncoded(until: limit)
            try appear(until: limit)
            holdRaw()
            try outcome.commit()
            try swap()
        } catch {
            undo()
            throw error
        }
        finish()
    }

    /// Ends nodes whose camera the new ones need. Until those deliver, the old nodes' targets get no data.
    private func releaseResources() {
        let wanted = Set(change.added.compactMap(\.resource))
        for name in change.removed {
            guard let node = graph.node(name), let resource = node.plan.resource, wanted.contains(resource) else {
                continue
            }
            released.insert(name)
            graph.releaseDevices(of: node)
        }
    }

    // MARK: Building beside the old nodes

    private func stage() throws(MediaError) {
        for plan in change.added { staged[plan.name] = try graph.stage(plan, in: change.result) }
        for part in change.addedInputs {
            grown.append(part)
            try live(part.name).add(part)
        }
        var feeds: [Connection] = []
        for link in change.addedLinks {
            let source = staged[link.link.from.node]
            let target = staged[link.link.to.node] ?? grownNode(at: link.link.to)
            switch (source, target) {
            case (let source?, let target?):
                let connection = try graph.connect(link, from: source, to: target)
                connections.append(connection)
                try graph.link(connection)
            case (nil, let target?):
                let connection = try graph.connect(
                    link, from: live(link.link.from.node), to: target, isContained: true)
                feeds.append(connection)
                connections.append(connection)
            case (let source, nil):
                relinks.append(try prepareRelink(link, from: source ?? live(link.link.from.node)))
            }
        }
        watchFlows()
        for plan in change.added { try staged[plan.name]?.running?.prepare() }
        try play()
        for connection in feeds { try open(connection) }
    }

    private func live(_ name: String) -> NodeInstance {
        guard let node = graph.node(name) else { preconditionFailure("\(name) does not run") }
        return node
    }

    /// The node that stays and gets this input.
    private func grownNode(at input: PortReference) -> NodeInstance? {
        let isNew = grown.contains { $0.name == input.node && $0.inputs[input.port] != nil }
        return isNew ? live(input.node) : nil
    }

    private func prepareRelink(_ link: LinkPlan, from source: NodeInstance) throws(MediaError) -> Relink {
        let waiting = try Element(
            "fakesink", name: "\(source.prefix).waiting-\(link.link.to.node)-\(link.link.to.port)",
            NodePlan.sinkProperties)
        graph.context.pipeline.add(waiting)
        waiting.followPipeline()
        let target = live(link.link.to.node)
        let queue = try graph.makeQueue(of: link, from: source, to: target, suffix: graph.newSuffix())
        queue?.queue?.followPipeline()
        let tee = source.tee(behind: link.link.from.port)
        guard let branch = tee.requestPad("src_%u") else { preconditionFailure("a tee gives every pad") }
        let relink = Relink(
            plan: link, source: source, target: target, tee: tee, branch: branch, queue: queue, waiting: waiting)
        guard relink.output.link(waiting.sink), queue.map({ branch.link($0.pad) }) ?? true else {
            preconditionFailure("a tee feeds everything")
        }
        return relink
    }

    /// Starts the staged nodes, renderers first.
    private func play() throws(MediaError) {
        var elements: [Element] = []
        for part in grown {
            elements += live(part.name).tees + live(part.name).elements(of: part).reversed()
            elements += connections.filter { grownNode(at: $0.plan.link.to) != nil }.compactMap(\.entry.queue)
        }
        for plan in change.added.reversed() {
            guard let node = staged[plan.name] else { continue }
            elements += node.tees + node.allElements.reversed()
            elements += connections.filter { $0.plan.link.to.node == plan.name }.compactMap(\.entry.queue)
        }
        for element in elements where !element.followPipeline() {
            // The bus has reported the reason, on this very thread.
            throw outcome.failure
                ?? MediaError(
                    code: MediaError.Code.elementFailed, message: "\(element.name) refused to start.")
        }
    }

    /// Links a running output to a new input; encoded media from a keyframe on.
    private func open(_ connection: Connection) throws(MediaError) {
        guard connection.plan.format.kind == .encodedVideo else { return try graph.link(connection) }
        connection.entry.pad.onBuffer { $0.isKeyframe ? .passAndRemove : .drop }
        try graph.link(connection)
        connection.branch.requestKeyframe()
    }

    // MARK: Waiting for first frames

    private func waitForFirstFrames() throws(MediaError) {
        for pad in firstFramePads() {
            awaited += 1
            let outcome = outcome
            pad.onBuffer { _ in
                outcome.arrived()
                return .passAndRemove
            }
        }
        guard outcome.wait(for: awaited, until: deadline) else {
            if let failure = outcome.failure { throw failure }
            throw late("delivered nothing", silentNodes)
        }
    }

    /// A new source may have delivered a stand-in, because its device is away or slow.
    private func requireDevices() throws(MediaError) {
        guard needsDevices else { return }
        // A program may begin to pass frames at any time.
        let devices = staged.compactMapValues(\.running).filter { !$0.value.mayStayEmpty }
        for running in devices.values {
            awaited += 1
            running.whenDecided { [outcome] in outcome.arrived() }
        }
        guard outcome.wait(for: awaited, until: deadline) else {
            throw outcome.failure ?? late("delivered nothing", [])
        }
        for (name, running) in devices { if let absence = running.absence { throw absence.about(name) } }
    }

    /// All new nodes deliver, and encoded sources are held, so others outside of this process may see the new nodes.
    private func appear(until limit: DispatchTime) throws(MediaError) {
        let instances = change.added.compactMap { staged[$0.name] } + grown.map { live($0.name) }
        let nodes = instances.filter { $0.publishing != nil }
        for node in nodes {
            node.publishing?.appear { [outcome] error in
                if let error { outcome.fail(error.about(node.name)) } else { outcome.arrived() }
            }
        }
        awaited += nodes.count
        guard outcome.wait(for: awaited, until: limit) else {
            throw outcome.failure ?? nodes.firstNonNil { $0.running?.stalled }
                ?? late("did not appear", nodes.map(\.name))
        }
    }

    private func firstFramePads() -> [Pad] {
        var pads = relinks.map(\.waiting.sink)
        for (name, node) in staged where !change.addedLinks.contains(where: { $0.link.from.node == name }) {
            pads += ends(of: name, node)
        }
        for part in grown { pads += live(part.name).lastElements(of: part).compactMap { $0.pad("sink") } }
        return pads
    }

    /// Where the media of a node without a linked output ends.
    private func ends(of name: String, _ node: NodeInstance) -> [Pad] {
        let ends = node.lastElements(of: node.plan).compactMap { $0.pad("sink") }
        return ends.isEmpty ? connections.filter { $0.plan.link.to.node == name }.map(\.entry.pad) : ends
    }

    private func watchFlows() {
        for (name, node) in staged {
            let outputs = Set(change.addedLinks.map(\.link.from).filter { $0.node == name }.map(\.port))
            var pads = outputs.sorted().map { (port: String?.some($0), pad: node.tee(behind: $0).sink) }
            if pads.isEmpty { pads = ends(of: name, node).map { (nil, $0) } }
            for (port, pad) in pads {
                let flow = Flow(node: name, port: port)
                pad.onBuffer { _ in
                    flow.hasBegun.raise()
                    return .passAndRemove
                }
                flows.append(flow)
            }
        }
    }

    /// The new nodes that delivered nothing, although all new nodes that feed them did.
    private var silentNodes: [String] {
        let silent = flows.filter { !$0.hasBegun.value }
        func isSilent(_ output: PortReference) -> Bool {
            silent.contains { $0.node == output.node && $0.port == output.port }
        }
        let starved = Set(change.addedLinks.filter { isSilent($0.link.from) }.map(\.link.to.node))
        return change.added.map(\.name).filter { name in
            silent.contains { $0.node == name } && !starved.contains(name)
        }
    }

    private func late(_ what: String, _ nodes: [String]) -> MediaError {
        let nodes = nodes.isEmpty ? change.added.map(\.name) : nodes
        let names = nodes.map { "\"\($0)\"" }.joined(separator: ", ")
        let words = Set(nodes.map { DeviceWord.of(kind: change.result.node($0)?.node.kind) })
        return MediaError(
            code: MediaError.Code.editFailed,
            message:
                "\(names.isEmpty ? "The new source" : names) \(what) in time, so the graph is unchanged. Check its "
                + "input or \(words.count == 1 ? words.first ?? "device" : "device"), or raise the deadline.",
            node: nodes.first)
    }

    // MARK: Replacing the old nodes

    /// Holds the encoded sources of inputs that stay at a keyframe.
    private func holdEncoded(until limit: DispatchTime) throws(MediaError) {
        let encoded = relinks.filter(\.isEncoded)
        for relink in encoded {
            hold(relink) { $0.isKeyframe }
            relink.branch.requestKeyframe()
        }
        guard outcome.wait(for: awaited, until: limit) else {
            throw outcome.failure ?? late("delivered no keyframe", encoded.map(\.source.name))
        }
    }

    /// Holds the raw sources of inputs that stay, immediately before the links move: a frame held for longer would be
    /// old, and a source without a queue would fall behind. A source that pauses now is held when it continues.
    private func holdRaw() {
        for relink in relinks where !relink.isEncoded { hold(relink) { _ in true } }
        _ = outcome.wait(for: awaited, until: .now() + Self.swapLimit)
    }

    private func hold(_ relink: Relink, at isFirst: @escaping @Sendable (borrowing PassingBuffer) -> Bool) {
        if let queue = relink.queue { held.append(queue.pad.refuseSerializedQueries()) }
        awaited += 1
        held.append(relink.output.block(from: isFirst) { [outcome] in outcome.arrived() })
    }

    /// Moves the links. Fails only for a format that does not fit, and has cut off the old nodes by then.
    private func swap() throws(MediaError) {
        for relink in relinks {
            if let old = former(relink.plan.link.to), graph.detach(old), old.entry.queue == nil {
                old.entry.pad.acceptAgain()
            }
            relink.output.unlink(relink.waiting.sink)
            let connection = try graph.connect(
                relink.plan, from: relink.source, to: relink.target, branch: relink.branch,
                queue: relink.queue)
            if connection.entry.queue == nil { try graph.link(connection) }
            connections.append(connection)
        }
    }

    /// The current connection of an input.
    private func former(_ input: PortReference) -> Connection? {
        change.removedLinks.first { $0.to == input }.flatMap { graph.connection($0) }
    }

    private func finish() {
        let swapped = Set(relinks.map(\.plan.link.to))
        let cut = change.removedLinks.filter { !swapped.contains($0.to) }.compactMap { graph.connection($0) }
        let removed = Set(change.removed)
        let leavingInputs = Set(change.removedInputs)
        func isInside(_ connection: Connection) -> Bool {
            removed.isSuperset(of: [connection.plan.link.from.node, connection.plan.link.to.node])
        }
        // Links between removed nodes are removed with them.
        for connection in cut where !isInside(connection) {
            graph.detach(connection)
            let target = connection.plan.link.to
            if !removed.contains(target.node), !leavingInputs.contains(target) { end(connection) }
        }
        for input in leavingInputs { live(input.node).remove([input.port]) }
        for connection in connections {
            let isOptional = change.result.node(connection.plan.link.to.node)?.node.isOptional == true
            if !isOptional { connection.entry.isContained.lower() }
        }
        let leaving = graph.commit(change, from: base, connections, owners)
        graph.context.reporter.release(isSuccess: true)
        for relink in relinks { graph.discard(relink.waiting) }
        graph.remove(leaving)
        for connection in cut where isInside(connection) { graph.discard(connection.entry.queue) }
    }

    /// Ends the data of a link whose target stays. A mixer then does not wait for it and rearranges its other inputs.
    private func end(_ connection: Connection) {
        let target = connection.plan.link.to
        guard connection.requested == nil, let node = graph.node(target.node),
            let input = node.plan.inputs[target.port]
        else { return }
        node.pad(input, isOutput: false).sendEndOfStream()
    }

    // MARK: Undoing

    private func undo() {
        for (value, former) in changedSettings.reversed() { graph.restore(former, from: value) }
        let names = Set(staged.keys)
        for connection in connections where !names.contains(connection.plan.link.from.node) {
            graph.detach(connection)
        }
        for relink in relinks where !connections.contains(where: { $0.branch === relink.branch }) {
            relink.queue?.isLeaving.raise()
            let entry = relink.queue?.pad ?? relink.waiting.sink
            relink.branch.whenIdle { relink.branch.unlink(entry) }
            relink.tee.release(relink.branch)
            graph.discard(relink.queue?.queue)
        }
        for relink in relinks { graph.discard(relink.waiting) }
        for connection in connections where names.contains(connection.plan.link.from.node) {
            graph.discard(connection.entry.queue)
        }
        graph.unstage()
        graph.context.reporter.release(isSuccess: false)
        for part in grown { live(part.name).remove(Set(part.inputs.keys)) }
    }
}

extension NodeInstance {
    /// Gives a live setting of the running node a value.
    func set(_ change: GraphChange.SettingChange) throws(MediaError) {
        let contract = kind.setting(change.setting)
        guard let value = change.value ?? contract?.defaultValue else {
            try running?.reset(change.setting)
            return
        }
        if try running?.set(change.setting, to: value) == true { return }
        guard let element = allElements.first(where: { $0.has(change.setting) }) else { return }
        if let reason = element.trySet(change.setting, value) {
            let isSecret = contract?.isSecret == true
            throw MediaError(
                code: MediaError.Code.graphInvalid,
                message: "\(name).\(change.setting): \(isSecret ? "the element refuses this value." : reason)",
                node: name)
        }
    }
}

/// The result that an edit waits for: first frames, or a failure of a new node.
final class EditOutcome: Sendable {
    private struct State {
        var arrived = 0
        var failure: MediaError?
        /// Whether the new nodes have replaced the old, or have been removed again.
        var isSettled = false
    }

    private let state = Mutex(State())
    private let changed = DispatchSemaphore(value: 0)

    var failure: MediaError? { state.withLock { $0.failure } }

    func arrived() {
        state.withLock { $0.arrived += 1 }
        changed.signal()
    }

    /// Records the first failure: the edit undoes its work whenever it continues. False if it is too late.
    @discardableResult
    func fail(_ error: MediaError) -> Bool {
        let isInTime = state.withLock { state in
            if !state.isSettled { state.failure = state.failure ?? error }
            return !state.isSettled
        }
        changed.signal()
        return isInTime
    }

    /// From here on the edit can no longer be cancelled.
    func commit() throws(MediaError) {
        let failure = state.withLock { state in
            state.isSettled = state.failure == nil
            return state.failure
        }
        if let failure { throw failure }
    }

    /// Waits for `count` arrivals. False if something failed or the deadline has passed.
    func wait(for count: Int, until deadline: DispatchTime) -> Bool {
        while true {
            let (isDone, hasFailed) = state.withLock { ($0.arrived >= count, $0.failure != nil) }
            if hasFailed { return false }
            if isDone { return true }
            if changed.wait(timeout: deadline) == .timedOut { return false }
        }
    }
}
