import ChildProcesses
import Dispatch
import FrameSocket
import GStreamerKit
package import MediaGraph

/// A program that the graph starts, and that sends its frames over an inherited socket.
final class ProcessNode: NodeType, FedNode, ProgramOwner {
    /// The socket's descriptor in the program.
    private static let descriptor = 3

    /// Interval in seconds between polls whether all frames of an ended program are read.
    private static let pollInterval = 0.02

    let hub: FeedHub
    private let program: Program

    private init(_ instance: NodeInstance) {
        hub = FeedHub(instance, queue: DispatchQueue(label: "media.process"))
        program = Program(instance, queue: hub.queue)
        hub.set(owner: self)
    }

    static let kind = NodeKind(
        "process", .capturer, "A program in any language that sends frames over a socket and shared memory",
        outputs: FrameFormat.output(FrameFormat.names),
        settings: [Program.commandSetting]
            + FrameFormat.settings(FrameFormat.names, "Format that the program has to send; h264 is Annex B") + [
                FrameFormat.scaleSetting, Program.restartSetting,
                FrameFormat.timeoutSetting("Timeout for frames, after which the program is restarted"),
            ])

    static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        let words = try Program.check(request)
        return try FrameFormat(request).planShared(request, note: "runs \(words[0])")
    }

    static func activate(_ instance: NodeInstance) throws(MediaError) -> (any RunningNode)? {
        instance.reporter.await(instance.name)
        return ProcessNode(instance)
    }

    func prepare() throws(MediaError) {
        try program.begin(for: self)
    }

    func wire() throws(MediaError) -> Program.Wiring {
        do throws(FrameSocketError) {
            let (own, other) = try MessageSocket.pair()
            return Program.Wiring(
                descriptors: [nil, nil, nil, other.number],
                environment: [FrameFeed.environmentVariable: "\(Self.descriptor)"], keeping: [other],
                started: { [weak self] in self?.hub.attach(own) })
        } catch {
            throw MediaError(code: error.code, message: error.message)
        }
    }

    /// Reads the remaining messages in the socket as usual.
    func takeRest(_ whenTaken: @escaping @Sendable () -> Void) {
        // By then its frames have arrived at the allowed rate. Its children may continue to send.
        let seconds = Double(FrameIntake.mostSlots) / hub.output.format.framesPerSecond + 1
        takeRest(until: FrameFeed.now + UInt64(seconds * 1e9), whenTaken)
    }

    private func takeRest(until deadline: UInt64, _ whenTaken: @escaping @Sendable () -> Void) {
        // Everything up to the bye or the end is read, or until nothing is left.
        guard hub.hasUnread, FrameFeed.now < deadline else { return whenTaken() }
        hub.queue.asyncAfter(deadline: .now() + Self.pollInterval) { [weak self] in
            self?.takeRest(until: deadline, whenTaken)
        }
    }

    func programEnded(isLast: Bool, isGood: Bool) {
        hub.detach()
        if isLast, isGood { hub.output.endOfStream() }
    }

    func feedEnded(_ end: FeedConnection.End, hasGivenPictures: Bool) {
        // A refused program is replaced. One that sent bye or closed the socket is about to end.
        if case .refused(let error) = end { program.replace(becauseOf: error.message) } else { program.awaitEnd() }
    }

    var consequence: String? { program.consequence }

    func feedIsSilent(_ error: FrameSocketError) { program.replace(becauseOf: error.message) }

    func prepareToFinish() {
        hub.queue.sync {
            hub.detach(.ended)
            program.requestEnd()
        }
    }

    func finish() {
        hub.queue.sync {
            hub.detach(.ended)
            program.stop()
        }
    }

    func stopFeeding(_ reason: StopReason) {
        hub.stop(reason)
        hub.queue.async { self.program.dismiss() }
    }

    var stalled: MediaError? { program.stalled }
}

extension Program {
    /// The error if no frame arrived at the start.
    var stalled: MediaError {
        MediaError(
            code: "process.silent",
            message: "The program \(command.first ?? "") sent no frame within 8 s"
                + (lastWords.map { "; its last output was \"\($0)\"" } ?? " and printed nothing")
                + ". Run it by hand to see why.")
    }
}

/// Frames of a program that starts with the graph, and again when it ends. It sends them over a socket and shared memory:
/// docs/frame-socket.md. Its kind is `process`.
public struct CapturerProcess: MediaNode {
    public var handle: NodeHandle

    /// - Parameters:
    ///   - command: the program and its arguments, split like a shell command; no shell runs.
    ///   - framesPerSecond: the maximum frame rate.
    ///   - format: the format that the program has to send, such as `NV12` or `h264`.
    ///   - scales: whether to accept raw frames of other sizes, and scale them.
    ///   - restarts: whether to restart the program when it ends; otherwise the stream ends with it.
    ///   - timeout: the time without a frame after which the program is restarted.
    public init(
        command: String, width: Int? = nil, height: Int? = nil, framesPerSecond: Double? = nil, format: String? = nil,
        scales: Bool? = nil, restarts: Bool? = nil, timeout: Duration? = nil
    ) {
        handle = NodeHandle(
            ProcessNode.kind,
            [
                "command": command, "width": width, "height": height, "fps": framesPerSecond, "format": format,
                "scale": scales, "restart": restarts, "timeout": timeout?.inSeconds,
            ])
    }
}

extension Node {
    /// Frames of a program that starts with the graph, and again when it ends.
    package static func process(
        _ name: String = "process", command: String, width: Int? = nil, height: Int? = nil,
        framesPerSecond: Double? = nil, format: String? = nil
    ) -> Node {
        Node(
            ProcessNode.kind, name,
            [
                "command": command, "width": width, "height": height, "fps": framesPerSecond,
                "format": format,
            ])
    }
}
