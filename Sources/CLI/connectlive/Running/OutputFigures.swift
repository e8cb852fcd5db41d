internal import MediaGraph

/// What a plan expects and what was counted, brought together for each output.
struct OutputFigures {
    /// One input of an output: what comes there.
    struct Arrival {
        var port: String
        var planned: MediaFormat
        /// As far as it is known; the rate is what was counted.
        var measured: MediaFormat
        var bitsPerSecond: Double
        /// Seconds from capture; of an output with several inputs until it comes there, else until it has left.
        var plannedLatency: Double
        var latency: Double?
        /// Frames that came, those that were thrown away on the way, and of pictures those that set out: nil where several
        /// become one on the way, or where they set out cannot be told from what else leaves there.
        var frames: Int
        var dropped: Int
        var captured: Int?
        var isEncoded: Bool { measured.kind == .encodedVideo || measured.kind == .encodedAudio }
        var isVideo: Bool { measured.kind == .rawVideo || measured.kind == .encodedVideo }
    }

    var name: String
    var kind: String
    var arrivals: [Arrival]
    /// Frames that were dropped anywhere on the way here.
    var dropped: Int

    /// Of the pictures, if there are any.
    var latency: Double? { (arrivals.first(where: \.isVideo) ?? arrivals.first)?.latency }

    /// Of each output, from what was counted between two looks.
    static func all(
        _ plan: GraphPlan, from before: PipelineStatistics, to now: PipelineStatistics
    ) -> [OutputFigures] {
        let span = now.seconds - before.seconds
        return plan.ends.compactMap { name in
            guard let node = now.node(name) else { return nil }
            let earlier = before.node(name)
            let links = plan.links(into: name)
            let arrivals = links.map { link -> Arrival in
                let port = link.link.to.port
                let count = node.inputs[port]
                // A node that was replaced counts anew.
                let past = earlier?.inputs[port].flatMap { $0.frames <= count?.frames ?? 0 ? $0 : nil }
                var measured = now.format(on: link, of: plan)
                if measured.kind == .rawVideo || measured.kind == .encodedVideo, span > 0 {
                    measured.framesPerSecond = Double((count?.frames ?? 0) - (past?.frames ?? 0)) / span
                }
                let bytes = (count?.bytes ?? 0) - (past?.bytes ?? 0)
                // What a recorder writes has no times: how old a frame is shows where it comes in.
                let isAlone = links.count == 1 && plan.node(name)?.node.kind != NodeKind.recorder.name
                let latencyBefore = plan.latency(of: link.link.from.node)
                let way = plan.straightWay(to: link)
                let isPicture = measured.kind == .rawVideo || measured.kind == .encodedVideo
                let captured = isPicture ? way.origin.flatMap { now.framesOut(of: $0, since: before) } : nil
                let droppedInBetween = way.nodes.map { now.dropped(in: $0, since: before) }.reduce(0, +)
                return Arrival(
                    port: port, planned: link.format, measured: measured,
                    bitsPerSecond: span > 0 ? Double(bytes) * 8 / span : 0,
                    plannedLatency: isAlone ? plan.latency(of: name) : latencyBefore,
                    latency: (isAlone ? node.latency : count?.latency).map { max(0, $0) },
                    frames: (count?.frames ?? 0) - (past?.frames ?? 0),
                    dropped: droppedInBetween + now.dropped(in: name, queue: "branch-\(port)", since: before),
                    captured: captured)
            }
            return OutputFigures(
                name: name, kind: node.kind, arrivals: arrivals,
                dropped: plan.way(to: name).compactMap { now.node($0)?.droppedFrames }.reduce(0, +))
        }
    }
}

extension NodeStatistics {
    var droppedFrames: Int { dropped.map(\.frames).reduce(0, +) }
}

extension PipelineStatistics {
    func node(_ name: String) -> NodeStatistics? { nodes.first { $0.node == name } }

    /// Frames that a node has thrown away since an earlier look, in one of its queues or all.
    func dropped(in name: String, queue: String? = nil, since before: PipelineStatistics) -> Int {
        func count(_ statistics: PipelineStatistics) -> Int {
            statistics.node(name)?.dropped.filter { queue == nil || $0.queue == queue }.map(\.frames).reduce(0, +) ?? 0
        }
        return max(0, count(self) - count(before))
    }

    func framesOut(of name: String, since before: PipelineStatistics) -> Int? {
        node(name).map { $0.framesOut - (before.node(name)?.framesOut ?? 0) }
    }

    /// What travels along a link: as it was seen where it comes from, if that node has but one output that is used.
    func format(on link: LinkPlan, of plan: GraphPlan) -> MediaFormat {
        let outputs = Set(plan.links.filter { $0.link.from.node == link.link.from.node }.map(\.link.from.port))
        guard outputs.count == 1, let seen = node(link.link.from.node)?.format else { return link.format }
        return seen
    }
}

extension GraphPlan {
    /// The nodes between a link and where its media sets out, and where that is: nil where several become one, or where more
    /// than one kind of media sets out.
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

    /// The nodes that media may pass on its way to a node, and the node itself.
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
