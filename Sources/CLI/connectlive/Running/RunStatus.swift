internal import MediaGraph

/// One line for each output of a running pipeline, and for each source that is without its device.
enum RunStatus {
    static func lines(_ outputs: [OutputFigures], _ nodes: [NodeStatistics], _ style: Style) -> [String] {
        lines(outputs.filter { output in nodes.allSatisfy { $0.node != output.name || $0.outage == nil } }, style)
            + nodes.compactMap { node in node.outage.map { style.warning("\(node.node)  \($0)") } }
            + nodes.compactMap { node in
                guard let source = node.source, source.isAway else { return nil }
                return style.warning("\(node.node)  \(source.words)")
            }
    }

    private static func lines(_ outputs: [OutputFigures], _ style: Style) -> [String] {
        var table = Table(.left, .left, .right, .right, .right, .right)
        for output in outputs {
            let video = output.arrivals.first(where: \.isVideo)
            table.add(
                output.name, media(output),
                video?.measured.framesPerSecond.map { "\(Figures.number($0, 1)) frames/s" } ?? "",
                rate(output), "\(output.dropped) dropped",
                output.latency.map { "latency \(Figures.milliseconds($0 * 1000))" } ?? "")
        }
        return zip(table.lines(), outputs).map { line, output in
            let isStill = output.arrivals.contains { $0.isVideo && $0.measured.framesPerSecond == 0 }
            return isStill ? style.warning(line) : line
        }
    }

    /// Such as `h264 1280x720 + opus`.
    private static func media(_ output: OutputFigures) -> String {
        output.arrivals.map { arrival in
            let format = arrival.measured
            switch format.kind {
            case .rawVideo, .encodedVideo:
                let name = arrival.isEncoded ? format.encoding : "video"
                guard let width = format.width, let height = format.height else { return name }
                return "\(name) \(width)x\(height)"
            case .rawAudio: return "audio"
            default: return format.encoding
            }
        }.joined(separator: " + ")
    }

    private static func rate(_ output: OutputFigures) -> String {
        let encoded = output.arrivals.filter(\.isEncoded)
        guard !encoded.isEmpty else { return "" }
        return "\(encoded.map { Figures.number($0.bitsPerSecond / 1000) }.joined(separator: " + ")) kbit/s"
    }
}

extension SourceStatus {
    /// Whether a stand-in takes the place of the device.
    var isAway: Bool { state != .streaming && state != .stopped }

    /// Such as `waiting for auto: No camera was found.`
    var words: String {
        let what =
            switch state {
            case .waiting: "waiting for \(device)"
            case .failedOver: "failed over to \(device)"
            case .opening, .streaming, .silent, .lost, .backingOff, .stopped: "\(device) \(state.rawValue)"
            }
        return cause.map { "\(what): \($0)" } ?? what
    }
}
