/// An input for a further layer of a video, which the planner links and for which it inserts an encoder.
public struct LayerInput: Sendable, Hashable {
    /// The input for the whole video.
    static let whole = "video"

    /// The layer that the input accepts.
    public let layer: VideoLayer
    /// How many layers the node wants.
    let count: Int
    /// The codec of an encoder that the graph names for the whole video. Nil lets the planner choose.
    let codec: String?
    /// The settings of the layer's encoder.
    let settings: [String: SettingValue]

    /// Whether frames of this size are large enough for the layer.
    func suits(_ format: MediaFormat) -> Bool {
        VideoLayer.layers(min(count, VideoLayer.most(forWidth: format.width, height: format.height))).contains(layer)
    }

    func port(like whole: Port) -> Port {
        let encodings = whole.encodings(of: .encodedVideo)
        return Port(
            layer.rawValue, [.encodedVideo], encodings: codec.map { [$0] } ?? encodings, isRequired: false)
    }
}

extension Demand.Consumer {
    /// Whether it accepts a format unchanged.
    func takes(_ format: MediaFormat) -> Bool { layer == nil && port.takes(format) }
}

extension VideoLayer {
    /// The layer's size of a format.
    package func scaled(_ format: MediaFormat) -> MediaFormat {
        var scaled = format
        (scaled.width, scaled.height) = (format.width.map(self.scaled), format.height.map(self.scaled))
        return scaled
    }

    /// The bitrate for the layer's size, if this one is for the whole size: pixels to the power of 3/4, as in docs/bitrates.md.
    func bitrate(ofWhole bitrate: Int) -> Int {
        let scale = 1 / Double(divisor)
        return max(30_000, Int((Double(bitrate) * scale * scale.squareRoot()).rounded()))
    }
}

extension MediaGraph {
    /// The graph with a link to an input of its own for each further layer of a video. The link begins where the whole video
    /// is not encoded yet, as far as the graph names the encoder.
    func addingLayers(_ catalogue: some PlanningCatalogue) -> (MediaGraph, [PortReference: LayerInput]) {
        var (graph, inputs) = (self, [PortReference: LayerInput]())
        for node in nodes {
            let count = catalogue.videoLayers(of: node)
            let whole = PortReference(node: node.name, port: LayerInput.whole)
            guard count > 1, let link = links.first(where: { $0.to == whole }) else { continue }
            let linked = Set(links(into: node.name).map(\.to.port))
            let encoder = self.node(link.from.node).flatMap { node in
                catalogue.kind(named: node.kind)?.codec.map { (codec: $0, node: node) }
            }
            let raw = encoder.flatMap { encoder in links(into: encoder.node.name).first?.from }
            for layer in VideoLayer.layers(count) where layer != .full && !linked.contains(layer.rawValue) {
                var settings = raw == nil ? [:] : encoder?.node.settings ?? [:]
                if let bitrate = settings["bitrate"]?.integer {
                    settings["bitrate"] = .integer(layer.bitrate(ofWhole: bitrate))
                }
                settings["layer"] = .text(layer.rawValue)
                let input = PortReference(node: node.name, port: layer.rawValue)
                inputs[input] = LayerInput(
                    layer: layer, count: count, codec: raw == nil ? nil : encoder?.codec, settings: settings)
                graph.links.append(Link(from: raw ?? link.from, to: input))
            }
        }
        return (graph, inputs)
    }
}

extension NodeKind {
    /// Whether an input is for a further layer of the video, which the setting `layers` links.
    func isLayer(_ input: Port) -> Bool {
        setting("layers") != nil && VideoLayer(rawValue: input.name) != nil
    }

    /// The codec of a kind that encodes video. Nil for others.
    fileprivate var codec: String? {
        guard group == .codec, input("in")?.kinds == [.rawVideo] else { return nil }
        return output("out")?.encodings(of: .encodedVideo).first
    }
}
