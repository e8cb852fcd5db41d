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
    /// The capture times of the frames of "view".
    let times = Collected<MediaTime>()

    init(_ graph: MediaGraph, registry: NodeRegistry = .builtIn) async throws(MediaError) {
        var bindings = NodeBindings()
        bindings.events = { [events] in events.append($0) }
        for (name, seen) in [("view", pictures), ("other", other)]
        where graph.nodes.contains(where: { $0.name == name }) {
            let isView = name == "view"
            bindings.frames[name] = { [times] frame in
                seen.append("\(frame.width)x\(frame.height)")
                if isView { times.append(frame.captureTime) }
            }
        }
        pipeline = try await MediaPipeline(graph, bindings: bindings, registry: registry)
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

    func start() async throws -> Watched {
        try await pipeline.start()
        return self
    }

    var failure: MediaError? {
        events.all.lazy.compactMap { if case .failed(let error) = $0 { error } else { nil } }.first
    }

    /// The events of the camera's device.
    var deviceEvents: [String] {
        events.all.compactMap { event in
            switch event {
            case .deviceWaiting: "waiting"
            case .deviceLost: "lost"
            case .deviceReturned: "returned"
            case .deviceFailedOver: "failed over"
            default: nil
            }
        }
    }

    var lostParts: [(error: MediaError, nodes: [String])] {
        events.all.compactMap { if case .partFailed(let error, let nodes) = $0 { (error, nodes) } else { nil } }
    }
}
