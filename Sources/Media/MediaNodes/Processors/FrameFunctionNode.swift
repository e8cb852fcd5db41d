import GStreamerKit
public import MediaGraph
import Synchronization

/// Passes each frame to a function of the program, which may change it in place.
package final class FrameFunctionNode: NodeType, RunningNode {
    package static let kind = NodeKind(
        "frame-function", .processor, "Passes each frame to a function of the program, which may change it in place",
        inputs: .rawVideoIn, outputs: .rawVideoOut, binding: .frameFunction)

    private struct State {
        var counts = MediaStatistics.FrameFunction()
        var format: VideoFormat?
    }

    package let name: String
    /// The processor behind the function, which shares its settings with every copy of itself.
    private let settings: (any WrittenNode)?
    private let function: @Sendable (inout MutableVideoFrame) -> Void
    private let state = Mutex(State())

    package static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        var plan = NodePlan(request.node)
        plan.addFilter(RawFormat.video, as: "pictures")
        plan.inputs["in"] = ElementPad("pictures")
        plan.outputs["out"] = ElementPad("pictures")
        plan.formats["out"] = request.input("in") ?? .rawVideo()
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
        let function = instance.bound(\.frameFunctions)
        return FrameFunctionNode(instance, settings: nil, function)
    }

    /// Calls `function` with every frame. `settings` receives changed settings.
    init(
        _ instance: NodeInstance, settings: (any WrittenNode)?,
        _ function: @escaping @Sendable (inout MutableVideoFrame) -> Void
    ) {
        name = instance.name
        self.settings = settings
        self.function = function
        let output = instance.element("pictures").source
        output.onEvent { event in
            // The pad does not have the new format yet: it is read with the next frame.
            if case .caps = event { self.state.withLock { $0.format = nil } }
            return .pass
        }
        output.onBuffer { buffer in
            self.call(buffer)
            return .pass
        }
    }

    package func set(_ setting: String, to value: SettingValue) throws(MediaError) -> Bool {
        guard let settings else { return false }
        try settings.set(setting, to: value)
        return true
    }

    private func call(_ buffer: borrowing PassingBuffer) {
        let known = state.withLock { $0.format }
        guard let format = known ?? buffer.videoFormat else { return }
        let isCopied = buffer.edit(format) { function(&$0) }
        state.withLock { state in
            state.format = format
            state.counts.frames += 1
            if isCopied == true { state.counts.copies += 1 }
        }
    }

    package func report(into statistics: inout MediaStatistics) {
        statistics.frameFunctions[name] = state.withLock { $0.counts }
    }
}

extension Node {
    /// Passes each frame to the function that the program has bound to `name`.
    public static func frameFunction(_ name: String) -> Node {
        Node(FrameFunctionNode.kind, name)
    }
}
