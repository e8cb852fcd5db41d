// Composes a pipeline in Swift, changes it while it runs, and prints its statistics.
// A graph with publish or subscribe also needs the library ConnectLiveSDK, and registry: .withRooms in each call of
// MediaPipeline, including plan.
import Foundation
import MediaGraph
import MediaNodes

// A function of this program changes each frame. If there is a display, a window shows the frames.
let graph = MediaGraph {
    Chain {
        Node.testPattern("source", width: 640, height: 480, framesPerSecond: 30)
        Node.frameFunction("negative")
        Tee("preview", isOptional: true) { Node.window() }
        Node.null("seen")
    }
}
var bindings = NodeBindings()
bindings.frameFunctions["negative"] = { frame in
    frame.withPlane(.luma) { luma, _ in
        for offset in 0..<luma.byteCount {
            let sample = luma.unsafeLoad(fromByteOffset: offset, as: UInt8.self)
            luma.storeBytes(of: 255 - sample, toByteOffset: offset, as: UInt8.self)
        }
    }
}

do {
    // A plan is a value. It describes the run before anything starts.
    let plan = try await MediaPipeline.plan(graph)
    print("elements:", plan.elementCount, "left out:", plan.omitted.map(\.node))

    let pipeline = try await MediaPipeline(graph, bindings: bindings)
    let watch = pipeline.watch()
    try await pipeline.start()

    // A branch joins while it runs; the other one does not lose a frame.
    let sending = graph.adding {
        Chain(from: "negative") {
            Node.videoEncoder("encoder", codec: .vp8)
            Node.rtpOutput("packets")
        }
    }
    var more = NodeBindings()
    more.rtpOutputs["packets"] = { frame in if frame.isKeyframe { print("a keyframe of", frame.bytes.count, "bytes") } }
    print(try await pipeline.apply(sending, bindings: more))
    try await pipeline.set("encoder", "bitrate", to: 300_000)
    try await Task.sleep(for: .seconds(2))
    for node in watch.sample() { print(node.node, "delivered", node.framesOut, "frames") }
    await pipeline.stop()
} catch {
    // An uncaught error would crash the program.
    print(error)
    exit(1)
}
