extension MediaGraph {
    /// The demand for each linked output, found from the ends of the graph to its sources.
    ///
    /// - Parameters:
    ///   - layers: the inputs for the further layers of a video.
    ///   - input: the contract of an input, narrowed to what its node accepts on this machine.
    ///   - encoder: the input of the encoder that the planner inserts for a codec; nil if there is none.
    ///   - running: the codec in which an encoder that was inserted for the link feeds its input in the graph that runs.
    func demands(
        _ catalogue: some PlanningCatalogue, layers: [PortReference: LayerInput], input: (PortReference, Node) -> Port?,
        encoder: (String) -> Port?,
        running: (Link) -> String?
    ) -> [PortReference: Demand] {
        var demands: [PortReference: Demand] = [:]
        var encoders: [String: Port?] = [:]
        for node in inOrder.reversed() {
            for (output, links) in Dictionary(grouping: links(outOf: node.name), by: \.from) {
                let consumers = links.compactMap { link -> Demand.Consumer? in
                    let layer = layers[link.to]
                    let named = layer.map { _ in PortReference(node: link.to.node, port: LayerInput.whole) } ?? link.to
                    guard let reader = self.node(link.to.node), let whole = input(named, reader) else { return nil }
                    let port = layer?.port(like: whole) ?? whole
                    let next = catalogue.output(repeating: link.to.port, of: reader)
                    return Demand.Consumer(
                        "\(link.to)", port,
                        onward: next.flatMap { demands[PortReference(node: reader.name, port: $0)] },
                        isDecoder: reader.kind == "video-decoder" || reader.kind == "audio-decoder",
                        isForPeers: catalogue.kind(named: reader.kind)?.group == .transport, layer: layer,
                        running: running(link))
                }
                let codecs = Set(
                    consumers.map(\.port).flatMap { $0.encodings(of: .encodedVideo) + $0.encodings(of: .encodedAudio) })
                for codec in codecs where encoders[codec] == nil { encoders[codec] = .some(encoder(codec)) }
                demands[output] = Demand(
                    consumers, encoders: encoders.compactMapValues(\.self).filter { codecs.contains($0.key) })
            }
        }
        return demands
    }
}
