import MediaGraph
import MediaNodes
import TestSupport

/// A pipeline with its events and its output.
final class Watched: Sendable {
    let pipeline: MediaPipeline
    let events = Collected<MediaEvent>()
    /// Sizes of the frames that arrived at nodes of the kind `frames`.
    let pictures = Collected<String>()
    let other = Collected<String>()

    init(_ graph: MediaGraph) async throws(MediaError) {
        var bindings = NodeBindings()
        bindings.events = { [events] in events.append($0) }
        for (name, seen) in [("view", pictures), ("other", other)]
        where graph.nodes.contains(where: { $0.name == name }) {
            bindings.frames[name] = { seen.append("\($0.width)x\($0.height)") }
        }
        pipeline = try await MediaPipeline(graph, bindings: bindings)
    }

    static func camera(_ device: String, _ settings: [String: SettingValue] = [:], name: String = "camera") -> Node {
        let small: [String: SettingValue] = ["device": .text(device), "width": 320, "height": 180, "fps": 15]
        return Node("camera", name: name, settings: small.merging(settings) { $1 })
    }

    /// A camera's video, encoded and decoded again.
    static func viewing(_ device: String, _ settings: [String: SettingValue] = [:]) -> MediaGraph {
        MediaGraph {
            Chain {
                camera(device, settings)
                Node("vp8-encoder", name: "encoder")
                Node.frames("view")
            }
        }
    }

    func start() async throws(MediaError) -> Watched {
        try await pipeline.start()
        return self
    }

    var failure: MediaError? {
        events.all.lazy.compactMap { if case .failed(let error) = $0 { error } else { nil } }.first
    }

    var lostParts: [(error: MediaError, nodes: [String])] {
        events.all.compactMap { if case .partFailed(let error, let nodes) = $0 { (error, nodes) } else { nil } }
    }
}
