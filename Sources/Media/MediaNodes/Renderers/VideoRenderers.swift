import Dispatch
import GStreamerKit
import MediaGraph
import Synchronization

/// Counts the pictures that reach a renderer and hands them on.
final class VideoRendererNode: RunningNode {
    private struct State {
        var counts = MediaStatistics.VideoRenderer()
        var format: VideoFormat?
    }

    let name: String
    private let state = Mutex(State())
    private let reporter: Reporter
    private let timestamps: TimestampMap?
    /// Nil where nobody wants the pictures themselves.
    private let handOver: (@Sendable (VideoFrame) -> Void)?
    private let explanation: @Sendable (PipelineFailure) -> MediaError?

    @discardableResult
    init(
        _ node: ResolvedNode, in assembly: Assembly, handOver: (@Sendable (VideoFrame) -> Void)?,
        explain: @escaping @Sendable (PipelineFailure) -> MediaError? = { _ in nil }
    ) {
        explanation = explain
        name = node.name
        reporter = assembly.reporter
        timestamps = assembly.rtpInput(above: node.name)?.timestamps
        self.handOver = handOver
        assembly.register(self)
    }

    static func build(frames node: ResolvedNode, in assembly: Assembly) throws(MediaError) {
        guard let handOver = assembly.bindings.frames[node.name] else {
            preconditionFailure("a graph that was validated has an unbound \(node.name)")
        }
        let sink = try assembly.sink(of: node)
        VideoRendererNode(node, in: assembly, handOver: handOver).watch(sink)
        assembly.accept("in", of: node, into: sink)
    }

    /// Sees every picture that comes to `element`.
    func watch(_ element: Element) {
        let input = element.sink
        input.onEvent { event in
            // The pad does not have the new format yet: it is read with the next picture.
            if case .caps = event { self.state.withLock { $0.format = nil } }
            return .pass
        }
        input.onBuffer { buffer in
            self.take(buffer)
            return .pass
        }
    }

    private func take(_ buffer: borrowing PassingBuffer) {
        let known = state.withLock { $0.format }
        guard let format = known ?? buffer.videoFormat else { return }
        state.withLock { state in
            state.format = format
            state.counts.framesRendered += 1
            state.counts.width = format.width
            state.counts.height = format.height
        }
        reporter.firstFrame(name)
        guard let handOver else { return }
        handOver(
            VideoFrame(
                width: format.width, height: format.height,
                captureTime: buffer.time,
                rtpTimestamp: buffer.timestamp.flatMap { timestamps?.rtpTimestamp(at: $0) },
                handedOver: GStreamer.now, storage: buffer.keep(as: format)))
    }

    func explain(_ failure: PipelineFailure, missing: String?) -> MediaError? {
        explanation(failure)
    }

    func report(into statistics: inout MediaStatistics) {
        statistics.videoRenderers[name] = state.withLock { $0.counts }
    }
}

/// Counts pictures or sound, whichever comes, and drops them.
enum NullNode {
    static func build(_ node: ResolvedNode, in assembly: Assembly) throws(MediaError) {
        let sink = try assembly.sink(of: node)
        if assembly.carriesSound(into: node) {
            AudioRendererNode(node, in: assembly, isAudible: false, handOver: nil).watch(sink)
        } else {
            VideoRendererNode(node, in: assembly, handOver: nil).watch(sink)
        }
        assembly.accept("in", of: node, into: sink)
    }
}

/// Writes one picture to a file.
enum ImageNode {
    static func build(_ node: ResolvedNode, in assembly: Assembly) throws(MediaError) {
        let path = node.text("path")
        let wanted = node.integer("frame") ?? 1
        let counter = Counter()
        let sink = try assembly.sink(of: node)
        let reporter = assembly.reporter
        let control = assembly.control
        let running = VideoRendererNode(node, in: assembly) { frame in
            guard counter.next() == wanted else { return }
            // Encoding a PNG takes tens of milliseconds: not on the streaming thread.
            control.async {
                do throws(MediaError) {
                    try FrameImage.writePNG(frame, to: path)
                } catch {
                    reporter.fail(error)
                }
            }
        }
        running.watch(sink)
        assembly.accept("in", of: node, into: sink)
    }
}

/// Counts from 1.
final class Counter: Sendable {
    private let value = Atomic<Int>(0)

    func next() -> Int {
        value.wrappingAdd(1, ordering: .relaxed).newValue
    }

    var count: Int { value.load(ordering: .relaxed) }
}

extension Assembly {
    /// Whether the link into a node's only input carries sound.
    func carriesSound(into node: ResolvedNode) -> Bool {
        guard let link = graph.links(into: node.name).first, let source = graph.node(link.from.node) else {
            return false
        }
        let port = NodeKind.builtIn.kind(named: source.kind)?.outputs.first { $0.name == link.from.port }
        return port?.kinds == [.rawAudio]
    }
}
