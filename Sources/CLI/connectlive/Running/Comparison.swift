internal import Foundation
internal import MediaGraph

/// The plan's expectations beside the measured values.
struct Comparison: Encodable {
    struct Output: Encodable {
        var name: String
        var inputs: [Input]
        var dropped: Int
    }

    struct Input: Encodable {
        var port: String
        var planned: MediaFormat
        var measured: MediaFormat
        var kilobitsPerSecond: Double
        var plannedLatencyMs: Double
        var latencyMs: Double?
        /// Frames that arrived, frames dropped upstream, and frames captured, if that is known.
        var frames: Int
        var dropped: Int
        var captured: Int?
        /// Frames that the planned rate would deliver in the time, and the last frame of a run that ends by itself. Nil
        /// without a planned rate.
        var expected: Int?
    }

    /// The last level of each channel at a level meter, in dBFS, left channel first.
    struct Meter: Encodable {
        var name: String
        var levels: [MediaStatistics.ChannelLevel]
    }

    struct Count: Encodable {
        var what: String
        var planned: Int
        var measured: Int
    }

    /// The frames of a camera that went wrong.
    struct Camera: Encodable {
        var name: String
        var frames: MediaStatistics.Camera
    }

    var seconds: Double
    var outputs: [Output]
    var counts: [Count]
    var meters: [Meter]
    var cameras: [Camera]

    /// Compares two samples. `hasEnded`: whether the sources ended the run. It then ends with the last frame, whose
    /// interval has not passed: 60 frames at 30 frames/s take 59 intervals.
    init(_ plan: GraphPlan, from before: PipelineStatistics, to now: PipelineStatistics, hasEnded: Bool = false) {
        seconds = now.seconds - before.seconds
        outputs = OutputFigures.all(plan, from: before, to: now).map { output in
            Output(
                name: output.name,
                inputs: output.arrivals.map {
                    Input(
                        port: $0.port, planned: $0.planned, measured: $0.measured,
                        kilobitsPerSecond: $0.bitsPerSecond / 1000, plannedLatencyMs: $0.plannedLatency * 1000,
                        latencyMs: $0.latency.map { $0 * 1000 }, frames: $0.frames, dropped: $0.dropped,
                        captured: $0.captured, expected: $0.expected.map { $0 + (hasEnded ? 1 : 0) })
                },
                dropped: output.dropped)
        }
        meters = now.nodes.filter { !$0.levels.isEmpty }.map { Meter(name: $0.node, levels: $0.levels) }
        cameras = now.nodes.compactMap { node in node.camera.map { Camera(name: node.node, frames: $0) } }
        counts = [
            Count(what: "nodes", planned: plan.nodes.count, measured: now.nodes.count),
            Count(what: "encodes", planned: plan.encoders.count, measured: Self.changes(plan, now, to: Self.encoded)),
            Count(
                what: "decodes", planned: Self.plannedDecodes(plan), measured: Self.changes(plan, now, to: Self.raw)),
        ]
    }

    private static let raw: Set<MediaKind> = [.rawVideo, .rawAudio]
    private static let encoded: Set<MediaKind> = [.encodedVideo, .encodedAudio]

    /// How many nodes converted media to these kinds from another kind.
    private static func changes(_ plan: GraphPlan, _ now: PipelineStatistics, to kinds: Set<MediaKind>) -> Int {
        now.nodes.count { node in
            guard let format = node.format, kinds.contains(format.kind), !plan.ends.contains(node.node) else {
                return false
            }
            let others = kinds == raw ? encoded : raw
            return plan.links(into: node.node).contains { others.contains(now.format(on: $0, of: plan).kind) }
        }
    }

    private static func plannedDecodes(_ plan: GraphPlan) -> Int {
        plan.nodes.count { node in
            node.formats.values.contains { raw.contains($0.kind) }
                && plan.links(into: node.name).contains { encoded.contains($0.format.kind) }
        }
    }

    /// The comparison as a table.
    func lines(_ style: Style) -> [String] {
        var table = Table(.left, .left, .left)
        table.add("", "PLANNED", "MEASURED")
        for output in outputs {
            for input in output.inputs {
                var measured = input.measured
                measured.framesPerSecond = measured.framesPerSecond.map { ($0 * 10).rounded() / 10 }
                measured.bitsPerSecond = input.planned.bitsPerSecond == nil ? nil : Int(input.kilobitsPerSecond * 1000)
                let name = output.inputs.count > 1 ? "\(output.name).\(input.port)" : output.name
                table.add(name, "\(input.planned)", "\(measured)")
                table.add(
                    "  latency", Figures.milliseconds(input.plannedLatencyMs),
                    input.latencyMs.map(Figures.milliseconds) ?? "not measured")
                if let expected = input.expected { table.add("  frames", "\(expected)", "\(input.frames)") }
                if input.dropped > 0 { table.add("  dropped", "0", "\(input.dropped)") }
            }
            // Frames dropped where several inputs share a path cannot be assigned to one input.
            let others = output.dropped - output.inputs.map(\.dropped).reduce(0, +)
            if others > 0 { table.add("\(output.name), dropped upstream", "0", "\(others)") }
        }
        for meter in meters { table.add("\(meter.name), level", "", Figures.levels(meter.levels)) }
        for camera in cameras {
            for (what, frames) in [
                ("lost", camera.frames.lost), ("damaged", camera.frames.damaged),
                ("wrong timestamps", camera.frames.wrongTimestamps),
            ] where frames > 0 {
                table.add("\(camera.name), \(what)", "0", "\(frames)")
            }
        }
        for count in counts where count.planned > 0 || count.measured > 0 {
            table.add(count.what, "\(count.planned)", "\(count.measured)")
        }
        let lines = table.lines()
        return [style.faint(lines[0])] + lines.dropFirst()
    }
}

extension GraphPlan {
    /// This plan with the latencies that another plan of the same graph measured, for nodes with the same elements.
    func withLatencies(of measured: GraphPlan?) -> GraphPlan {
        var plan = self
        for place in plan.nodes.indices {
            guard let other = measured?.node(plan.nodes[place].name),
                other.elements.map(\.factory) == plan.nodes[place].elements.map(\.factory)
            else { continue }
            plan.nodes[place].latency = other.latency
        }
        return plan
    }
}
