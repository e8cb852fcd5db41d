package import GStreamerKit
import MediaGraph
import Synchronization

/// A function of the program that replaces frames, for the nodes that call it. It outlives their pipelines, and may change
/// while they run.
package final class FrameBlend: Sendable {
    /// Gets each frame, and returns one of the same format and size to show instead; nil for the frame itself.
    package typealias Function = @Sendable (Picture) -> Picture?

    private let current = Mutex<Function?>(nil)

    package init() {}

    /// Nil leaves the frames as they are. Called on a thread of the nodes, one call after the other for each node.
    package var function: Function? {
        get { current.withLock { $0 } }
        set {
            let former = current.withLock { current in
                defer { current = newValue }
                return current
            }
            // Released without the lock: a deinit may ask this object.
            withExtendedLifetime(former) {}
        }
    }

    /// The kind of the nodes that call the function.
    package var node: NodeImplementation {
        NodeImplementation(
            kind: FrameBlendNode.kind, plan: { request throws(MediaError) in try FrameBlendNode.plan(request) },
            activate: { instance throws(MediaError) in FrameBlendNode(instance, self) })
    }
}

/// Replaces frames by those of a function. While it is busy, 2 frames wait, and the oldest of more is dropped.
final class FrameBlendNode: RunningNode {
    static let kind = NodeKind(
        "frame-blend", .processor, "Replaces frames by those of a function of the program, which may be slow",
        inputs: .rawVideoIn, outputs: .rawVideoOut)

    private struct State {
        var counts = MediaStatistics.FrameFunction()
        var arrived = 0
        var hasWarned = false
    }

    private let name: String
    private let reporter: Reporter
    private let queue: Element
    private let state = Mutex(State())

    static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        let format = request.input("in") ?? .rawVideo()
        var plan = NodePlan(request.node)
        plan.addQueue(as: "queue", .rawPictures, holding: format)
        plan.addFilter(RawFormat.video, as: "pictures")
        plan.chain(to: format)
        plan.copiesPerFrame = 1
        plan.notes.append("a frame that the function draws into is copied once")
        return plan
    }

    fileprivate init(_ instance: NodeInstance, _ blend: FrameBlend) {
        (name, reporter) = (instance.name, instance.reporter)
        queue = instance.element("queue")
        queue.sink.watchBuffers { [weak self] _ in self?.state.withLock { $0.arrived += 1 } }
        instance.element("pictures").source.onFrame { [weak self] buffer, format in
            guard let self, let format else { return }
            state.withLock { $0.counts.frames += 1 }
            guard let function = blend.function, let frame = buffer.picture(format), let other = function(frame) else {
                return
            }
            guard other.pixelFormat == frame.pixelFormat, other.width == frame.width, other.height == frame.height
            else { return refuse(other, for: frame) }
            buffer.replace(with: other)
        }
    }

    private func refuse(_ other: Picture, for frame: Picture) {
        let isNews = state.withLock { state in
            defer { state.hasWarned = true }
            return !state.hasWarned
        }
        guard isNews else { return }
        reporter.warn(
            name,
            "A blended frame is \(other.pixelFormat) \(other.width)x\(other.height), not \(frame.pixelFormat) "
                + "\(frame.width)x\(frame.height) as the captured one, which is shown unchanged. Return a frame of its format "
                + "and size.")
    }

    func report(into statistics: inout MediaStatistics, as name: String) {
        let waiting = queue.integer("current-level-buffers")
        statistics.frameFunctions[name] = state.withLock { state in
            var counts = state.counts
            counts.dropped = max(0, state.arrived - counts.frames - waiting)
            return counts
        }
    }
}
