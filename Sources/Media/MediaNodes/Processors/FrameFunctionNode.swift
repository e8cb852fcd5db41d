import GStreamerKit
public import MediaGraph
import Synchronization

/// Passes each frame to a function of the program, which may change it in place.
package final class FrameFunctionNode: NodeType, RunningNode {
    package static let kind = NodeKind(
        "frame-function", .processor, "Passes each frame to a function of the program, which may change it in place",
        inputs: .rawVideoIn, outputs: .rawVideoOut, binding: .frameFunction)

    /// The processor behind the function, which shares its settings with every copy of itself.
    private let settings: (any WrittenNode)?
    private let function: @Sendable (inout MutableVideoFrame) -> Void
    private let counts = Mutex(MediaStatistics.FrameFunction())

    package static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        var plan = NodePlan(request.node)
        plan.addFilter(RawFormat.video, as: "pictures")
        plan.chain(to: request.input("in") ?? .rawVideo())
        if request.sharedInputs.contains("in") {
            plan.copiesPerFrame = 1
            plan.notes.append("other nodes use the frames too, so each is copied once for the function")
        } else {
            plan.notes.append(
                "the function changes frames in place; only a frame that its decoder still needs is copied")
        }
        return plan
    }

    package static func activate(_ instance: NodeInstance) throws(MediaError) -> (any RunningNode)? {
        FrameFunctionNode(instance, settings: nil, instance.bound(\.frameFunctions))
    }

    /// Calls `function` with every frame. `settings` receives changed settings.
    init(
        _ instance: NodeInstance, settings: (any WrittenNode)?,
        _ function: @escaping @Sendable (inout MutableVideoFrame) -> Void
    ) {
        self.settings = settings
        self.function = function
        instance.element("pictures").source.onFrame { buffer, format in
            if let format { self.call(buffer, format) }
        }
    }

    package func set(_ setting: String, to value: SettingValue) throws(MediaError) -> Bool {
        guard let settings else { return false }
        try settings.set(setting, to: value)
        return true
    }

    private func call(_ buffer: borrowing PassingBuffer, _ format: VideoFormat) {
        let isCopied = buffer.edit(format) { function(&$0) }
        counts.withLock { counts in
            counts.frames += 1
            if isCopied == true { counts.copies += 1 }
        }
    }

    package func report(into statistics: inout MediaStatistics, as name: String) {
        statistics.frameFunctions[name] = counts.withLock { $0 }
    }
}

/// Passes each frame to a function, which may change it in place.
public struct FrameFunction: MediaNode {
    public var handle: NodeHandle

    /// A node that calls a function for each frame.
    ///
    /// - Parameter change: called for each frame, one call after the other, on a GStreamer thread. Return soon and never
    ///   block. To stop the pipeline, start a Task.
    public init(_ change: @escaping @Sendable (inout MutableVideoFrame) -> Void) {
        handle = NodeHandle(FrameFunctionNode.kind, code: .frameFunction(change))
    }

    /// The frames that the function got so far.
    ///
    /// - Throws: `node.not-running`.
    public var statistics: MediaStatistics.FrameFunction {
        get throws(MediaError) { try figures(\.frameFunctions) ?? MediaStatistics.FrameFunction() }
    }
}
