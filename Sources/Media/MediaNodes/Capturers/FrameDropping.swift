import GStreamerKit
import MediaGraph
import Synchronization

extension Element {
    /// Drops frames before they reach a `videorate` that only drops. By itself, that passes as many frames after a silence as
    /// it has missed: its next frame is due by the count of all frames since its start.
    func dropFrames(above framesPerSecond: Double) {
        let pace = Mutex(FramePace(framesPerSecond: framesPerSecond))
        sink.onBuffer { buffer in
            guard let time = buffer.runningTime else { return .pass }
            return pace.withLock { $0.admits(time) } ? .pass : .drop
        }
    }
}

extension NodeInstance {
    /// Keeps a node to the rate of its setting `fps`, if it drops frames and repeats none.
    func dropFramesAboveRate() {
        let drops = plan.elements.contains { $0.name == "rate" && $0.properties["drop-only"] == .flag(true) }
        if drops, let rate = optionalNumber("fps") { element("rate").dropFrames(above: rate) }
    }
}
