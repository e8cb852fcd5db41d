import ChildProcesses
import Dispatch
import FrameSocket
import GStreamerKit
package import MediaGraph

/// A program that the graph starts, and that sends its frames over an inherited socket.
final class ProcessNode: NodeType, SelfHeadedNode, FedNode, ProgramOwner {
    /// The socket's descriptor in the program.
    private static let descriptor = 3

    /// Interval in seconds between polls whether all frames of an ended program are read.
    private static let pollInterval = 0.02

    let hub: FeedHub
    private let program: Program
    private let isRestarted: Bool
    private let hasDelivered = AtomicBool()
    let heldHead = HeldHead()

    private init(_ instance: NodeInstance) {
        hub = FeedHub(instance, queue: DispatchQueue(label: "media.process"))
        program = Program(instance, queue: hub.queue)
        isRestarted = instance.flag("restart") && instance.text("away") != "end"
        hub.set(owner: self)
        heldHead.hold(
            SourceHead(
                instance, self, [.video(of: instance)], withoutDevice: isRestarted ? .goesOn : .ends,
                limits: FedSource.limits(hub.output.format, timeout: hub.timeout)))
    }

    static let kind = NodeKind(
        "process", .capturer, "A program in any language that sends frames over a socket and shared memory",
        outputs: FrameFormat.output(FrameFormat.names),
        settings: [Program.commandSetting]
            + FrameFormat.settings(FrameFormat.names, "Format that the program has to send; h264 is Annex B") + [
                FrameFormat.scaleSetting, Program.restartSetting,
                FrameFormat.timeoutSetting("Timeout for frames, after which the program is restarted"),
            ] + FedSource.settings)

    static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        let words = try Program.check(request)
        return try FrameFormat(request).planShared(request, note: "runs \(words[0])")
    }

    static func activate(_ instance: NodeInstance) throws(MediaError) -> (any RunningNode)? { ProcessNode(instance) }

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

    func programEnded(isGood: Bool, _ story: MediaError) {
        hub.detach()
        if isGood, !isRestarted || program.isDismissed { hub.output.end() } else { hub.output.fail(story) }
    }

    func feedAccepted() { hub.start() }

    func feedEnded(_ end: FeedConnection.End, hasGivenPictures: Bool) {
        // A refused program is replaced. One that sent bye or closed the socket is about to end.
        if case .refused(let error) = end {
            program.note(fault: error.message)
            hub.output.fail(MediaError(error))
        } else {
            program.awaitEnd { [weak self] in
                guard let self else { return }
                hub.output.fail(
                    MediaError(
                        code: "feed.lost", message: "The program \(name(of: 0)) closed its socket and did not end."))
            }
        }
    }

    func feedDelivers() -> Bool {
        hasDelivered.raise()
        return true
    }

    var consequence: String? {
        "The graph ends the program \(name(of: 0))" + (isRestarted ? " and restarts it." : ".")
    }

    func prepareToFinish() {
        // A program that does not end keeps the queue busy.
        hub.queue.run(within: Program.patience) {
            self.hub.detach(.ended)
            self.program.requestEnd()
        }
    }

    func stopFeeding(_ reason: StopReason) {
        hub.stop(reason)
        hub.queue.async {
            guard self.program.dismiss() else {
                self.head?.end()
                return
            }
            self.program.awaitEnd { [weak self] in self?.hub.output.end() }
        }
    }

    var stalled: MediaError? { program.silent(hub.timeout) }
}

extension ProcessNode: SourceDevice {
    func name(of candidate: Int) -> String { program.command.first ?? "" }

    func open(_ candidate: Int, for output: SourceOutput) throws(MediaError) {
        guard !program.isDismissed else {
            output.end()
            throw Reporter.stopped
        }
        hub.output.open(output)
        try program.start(for: self)
    }

    func close() {
        hub.output.close()
        hub.queue.sync {
            hub.detach(.ended)
            program.stop()
        }
    }

    /// Nothing but its frames tells.
    func isThere(_ candidate: Int) -> Bool { false }

    func isAbsence(_ error: MediaError) -> Bool { false }

    func requestKeyframe() { hub.wantKeyframe() }

    /// A program has 2 s to end.
    var closingLimit: Double { 5 }

    var closingProblem: String { "The program \(name(of: 0)) does not end." }

    func error(for cause: SourceSupervisor.Cause, _ candidate: Int) -> MediaError {
        hasDelivered.value ? program.paused(hub.timeout) : program.silent(hub.timeout)
    }
}

/// Frames of a program that starts with the graph, and again when it ends. It sends them over a socket and shared memory:
/// docs/frame-socket.md. Its kind is `process`.
public struct CapturerProcess: MediaNode {
    public var handle: NodeHandle

    /// A feeder by its command line, which the node starts.
    ///
    /// - Parameters:
    ///   - command: the program and its arguments, split like a shell command; no shell runs.
    ///   - framesPerSecond: the maximum frame rate.
    ///   - format: the format that the program has to send, such as `NV12` or `h264`.
    ///   - scales: whether to accept raw frames of other sizes and formats, and convert them.
    ///   - restarts: whether to restart the program when it ends; otherwise the stream ends with it.
    ///   - timeout: the time without a frame after which the program is restarted.
    public init(
        command: String, width: Int? = nil, height: Int? = nil, framesPerSecond: Double? = nil, format: String? = nil,
        scales: Bool? = nil, restarts: Bool? = nil, timeout: Duration? = nil, away: Camera.Away? = nil,
        slateText: String? = nil, slateImage: String? = nil
    ) {
        handle = NodeHandle(
            ProcessNode.kind,
            [
                "command": command, "width": width, "height": height, "fps": framesPerSecond, "format": format,
                "scale": scales, "restart": restarts, "timeout": timeout?.inSeconds, "away": away,
                "slate-text": slateText, "slate-image": slateImage,
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
