internal import MediaGraph

/// The planned and the measured values of one output.
struct OutputFigures {
    /// One input of an output.
    struct Arrival {
        var port: String
        var planned: MediaFormat
        /// As far as known, with the measured rate.
        var measured: MediaFormat
        var bitsPerSecond: Double
        /// Seconds from capture to this input if the output has several, else to the output itself.
        var plannedLatency: Double
        var latency: Double?
        /// Frames that arrived, frames dropped upstream, and frames captured. Nil if several streams merge upstream, or
        /// if the source has other outputs too.
        var frames: Int
        var dropped: Int
        var captured: Int?
        /// Frames that the planned rate would deliver in the time. Nil without a planned rate.
        var expected: Int?
        var isEncoded: Bool { measured.kind == .encodedVideo || measured.kind == .encodedAudio }
        var isVideo: Bool { measured.kind == .rawVideo || measured.kind == .encodedVideo }
    }

    var name: String
    var kind: String
    var arrivals: [Arrival]
    /// Frames dropped anywhere upstream between the two samples.
    var dropped: Int

    /// The latency of the video, else of the first input.
    var latency: Double? { (arrivals.first(where: \.isVideo) ?? arrivals.first)?.latency }

    /// The figures of each output, from two samples.
    static func all(
        _ plan: GraphPlan, from before: PipelineStatistics, to now: PipelineStatistics
    ) -> [OutputFigures] {
        plan.ends.compactMap { name in
            guard let node = now.node(name) else { return nil }
            return OutputFigures(
                name: name, kind: node.kind,
                arrivals: plan.links(into: name).map { Arrival($0, at: node, plan, from: before, to: now) },
                dropped: plan.way(to: name).map { now.dropped(in: $0, since: before) }.reduce(0, +))
        }
    }
}

extension OutputFigures.Arrival {
    fileprivate init(
        _ link: LinkPlan, at node: NodeStatistics, _ plan: GraphPlan, from before: PipelineStatistics,
        to now: PipelineStatistics
    ) {
        let port = link.link.to.port
        var format = now.format(on: link, of: plan)
        let isImage = format.kind == .rawVideo || format.kind == .encodedVideo
        let count = node.inputs[port]
        let past = now.earlier(node.node, in: before)?.inputs[port]
        let span = now.span(of: node.node, since: before)
        let frames = (count?.frames ?? 0) - (past?.frames ?? 0)
        let bytes = (count?.bytes ?? 0) - (past?.bytes ?? 0)
        if isImage, span > 0 { format.framesPerSecond = Double(frames) / span }
        // A recorder's output has no timestamps, so its latency is measured at the input.
        let isAlone = plan.links(into: node.node).count == 1 && node.kind != "recorder"
        let latency = isAlone ? node.latency : count?.latency
        let way = plan.straightWay(to: link)
        let droppedBefore = way.nodes.map { now.dropped(in: $0, since: before) }.reduce(0, +)
        self.init(
            port: port, planned: link.format, measured: format,
            bitsPerSecond: span > 0 ? Double(bytes) * 8 / span : 0,
            plannedLatency: plan.latency(of: isAlone ? node.node : link.link.from.node),
            latency: latency.map { max(0, $0) }, frames: frames,
            dropped: droppedBefore + now.dropped(in: node.node, queue: "branch-\(port)", since: before),
            captured: isImage ? way.origin.flatMap { now.framesOut(of: $0, since: before) } : nil,
            expected: isImage ? link.format.framesPerSecond.map { Int(($0 * span).rounded()) } : nil)
    }
}

extension NodeStatistics {
    var droppedFrames: Int { dropped.map(\.frames).reduce(0, +) }
}

extension PipelineStatistics {
    func node(_ name: String) -> NodeStatistics? { nodes.first { $0.node == name } }

    /// A node's earlier sample. Nil for a node that was added since, which counts from zero.
    func earlier(_ name: String, in before: PipelineStatistics) -> NodeStatistics? {
        guard let now = node(name), let past = before.node(name) else { return nil }
        // The two samples do not take exactly the same time.
        let span = seconds - before.seconds
        return now.secondsCounted >= past.secondsCounted + max(span / 2, span - 0.5) ? past : nil
    }

    /// Seconds between two samples in which a node was counted.
    func span(of name: String, since before: PipelineStatistics) -> Double {
        let whole = seconds - before.seconds
        guard let now = node(name), earlier(name, in: before) == nil else { return whole }
        return min(whole, now.secondsCounted)
    }

    /// Frames that a node dropped since an earlier sample, in one of its queues or in all.
    func dropped(in name: String, queue: String? = nil, since before: PipelineStatistics) -> Int {
        func count(_ statistics: NodeStatistics?) -> Int {
            statistics?.dropped.filter { queue == nil || $0.queue == queue }.map(\.frames).reduce(0, +) ?? 0
        }
        return max(0, count(node(name)) - count(earlier(name, in: before)))
    }

    func framesOut(of name: String, since before: PipelineStatistics) -> Int? {
        node(name).map { $0.framesOut - (earlier(name, in: before)?.framesOut ?? 0) }
    }

    /// The format on a link: as measured if the node upstream has only one output in use, else as planned.
    func format(on link: LinkPlan, of plan: GraphPlan) -> MediaFormat {
        let outputs = Set(plan.links.filter { $0.link.from.node == link.link.from.node }.map(\.link.from.port))
        guard outputs.count == 1, let seen = node(link.link.from.node)?.format else { return link.format }
        return seen
    }
}

extension GraphPlan {
    /// The nodes between a link and its source, and the source. The source is nil if several streams merge on the way,
    /// or if the source has several outputs in use.
    func straightWay(to link: LinkPlan) -> (origin: String?, nodes: [String]) {
        var nodes: [String] = []
        var link = link
        while true {
            let from = link.link.from.node
            let before = links(into: from)
            guard let only = before.first else {
                let outputs = Set(links.filter { $0.link.from.node == from }.map(\.link.from.port))
                return (outputs.count == 1 ? from : nil, nodes)
            }
            nodes.append(from)
            guard before.count == 1 else { return (nil, nodes) }
            link = only
        }
    }

    /// A node and all nodes upstream of it.
    func way(to name: String) -> Set<String> {
        var found: Set<String> = []
        var frontier = [name]
        while let node = frontier.popLast() {
            guard found.insert(node).inserted else { continue }
            frontier += links(into: node).map(\.link.from.node)
        }
        return found
    }
}
