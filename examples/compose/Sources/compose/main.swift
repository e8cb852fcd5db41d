// Composes a pipeline in Swift, changes it while it runs, and prints its statistics.
// For publish and subscribe, import ConnectLiveSDK instead.
import Foundation
import MediaNodes

let source = TestPattern(width: 640, height: 480, framesPerSecond: 30)
// A function of this program changes each frame.
let negative = FrameFunction { frame in
    frame.withPlane(.luma) { luma, _ in
        for offset in 0..<luma.byteCount {
            let sample = luma.unsafeLoad(fromByteOffset: offset, as: UInt8.self)
            luma.storeBytes(of: 255 - sample, toByteOffset: offset, as: UInt8.self)
        }
    }
}
let encoder = VideoEncoder(.vp8)
let packets = RTPOutput { frame in if frame.isKeyframe { print("a keyframe of", frame.bytes.count, "bytes") } }

do {
    // If there is a display, a window shows the frames.
    let pipeline = try await MediaPipeline {
        source >>> negative >>> Null()
        negative >>> Window().optional
    }
    // The plan is a value. It describes the run before anything starts.
    print("elements:", pipeline.plan.elementCount, "left out:", pipeline.plan.omitted.map(\.node))
    let watch = pipeline.watch()
    try await pipeline.start()

    // A branch joins while it runs; the others do not lose a frame.
    print(try await pipeline.add { negative >>> encoder >>> packets })
    try await encoder.setBitrate(.kilobitsPerSecond(300))
    try await Task.sleep(for: .seconds(2))
    for node in watch.sample() { print(node.node, "delivered", node.framesOut, "frames") }
    await pipeline.stop()
} catch {
    // An uncaught error would crash the program.
    print(error)
    exit(1)
}
