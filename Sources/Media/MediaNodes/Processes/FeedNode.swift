import ChildProcesses
import Dispatch
import FrameSocket
import GStreamerKit
import Glibc
import MediaGraph
import Synchronization

/// Frames of a program that connects to a socket, such as a shared screen.
final class FeedNode: NodeType, SelfHeadedNode, FedNode {
    /// Seconds after a feeder without frames in which no other is accepted, so that repeated tries cost little.
    private static let penalty = 0.2
    /// Seconds after a refused feeder.
    private static let pause = 0.02
    /// Seconds after a connection that could not be accepted, for example because the process has no free descriptor.
    private static let shortage = 0.1
    /// Connections to handle before other work on the queue gets its turn.
    private static let batch = 16

    private struct Door {
        var listener: MessageListener?
        var readSource: ReadSource?
        var isBusySaid = false
        var isShortageSaid = false
    }

    let hub: FeedHub
    private let path: String
    private let door: Mutex<Door>
    let heldHead = HeldHead()

    private init(_ instance: NodeInstance, path: String) {
        self.path = path
        hub = FeedHub(instance, queue: DispatchQueue(label: "media.feed"))
        door = Mutex(Door())
        hub.set(owner: self)
        var limits = FedSource.limits(hub.output.format, timeout: hub.timeout)
        // The next feeder is opened when it comes.
        (limits.poll, limits.shortestBackoff, limits.longestBackoff) = (1, 0, 0)
        heldHead.hold(
            SourceHead(
                instance, self, [.video(of: instance)],
                withoutDevice: instance.text("away") == "end" ? .endsWithLoss : .goesOn,
                isAwaited: false,
                limits: limits))
    }

    static let kind = NodeKind(
        "feed", .capturer, "Frames of another process, such as a shared screen, over a socket and shared memory",
        outputs: FrameFormat.output(FrameFormat.names),
        settings: FrameFormat.settings(FrameFormat.names, "Format of the frames; h264 is Annex B") + [
            FrameFormat.scaleSetting,
            SettingContract(
                "socket", .text, default: "",
                "Path to listen on (default: feed-NAME.sock in $XDG_RUNTIME_DIR/connectlive or /tmp/connectlive-UID)"),
            FrameFormat.timeoutSetting("Timeout for frames, after which the feeder counts as away"),
        ] + FedSource.settings)

    static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        let path = socketPath(request.text("socket"), request.name)
        var plan = try FrameFormat(request).planShared(request, note: "listens at \(path)")
        // Two nodes cannot listen on one path.
        plan.resource = path
        return plan
    }

    private static func socketPath(_ given: String, _ name: String) -> String {
        given.isEmpty ? "\(RuntimeFolder.path)/feed-\(name).sock" : given
    }

    static func activate(_ instance: NodeInstance) throws(MediaError) -> (any RunningNode)? {
        FeedNode(instance, path: socketPath(instance.text("socket"), instance.name))
    }

    func prepare() throws(MediaError) {
        if path.hasPrefix(RuntimeFolder.path + "/"), let obstacle = RuntimeFolder.make() {
            throw MediaError(
                code: "feed.unavailable",
                message:
                    "The folder \(RuntimeFolder.path) for sockets is unusable: \(obstacle). Set XDG_RUNTIME_DIR to a folder "
                    + "of your own, or set the node's socket.")
        }
        let listener: MessageListener
        do throws(FrameSocketError) {
            listener = try MessageListener(path: path)
        } catch {
            throw MediaError(code: error.code, message: error.message, node: hub.output.name)
        }
        let readSource = ReadSource(listener.number, of: listener, on: hub.queue) { [weak self] in self?.accept() }
        door.withLock { ($0.listener, $0.readSource) = (listener, readSource) }
        head?.prepare()
    }

    private func accept() {
        for _ in 0..<Self.batch {
            guard let accepted = door.withLock({ $0.listener })?.accept() else { return }
            let socket: MessageSocket
            switch accepted {
            case .nothing: return
            case .failed(let error): return accept(nobody: error)
            case .connection(let made): socket = made
            }
            door.withLock { $0.isShortageSaid = false }
            if let peer = socket.peer, peer.user != geteuid() {
                turnAway(
                    socket,
                    FrameSocketError(
                        code: "feed.foreign",
                        "A process of another user (\(peer.user)) connected. Run the feeder as the user of the graph."))
            } else if hub.isTaken {
                turnAway(
                    socket,
                    FrameSocketError(code: "feed.busy", "Another feeder is connected. End it first."))
            } else {
                door.withLock { $0.isBusySaid = false }
                hub.attach(socket)
            }
        }
    }

    /// The listener stays readable, so it is not asked again at once.
    private func accept(nobody error: FrameSocketError) {
        let (readSource, isNews) = door.withLock { door in
            defer { door.isShortageSaid = true }
            return (door.readSource, !door.isShortageSaid)
        }
        readSource?.hold(seconds: Self.shortage)
        if isNews { hub.report(error) }
    }

    private func turnAway(_ socket: MessageSocket, _ error: FrameSocketError) {
        socket.send(.failure(error))
        let (readSource, isNews) = door.withLock { door in
            defer { door.isBusySaid = true }
            return (door.readSource, !door.isBusySaid)
        }
        readSource?.hold(seconds: Self.pause)
        if isNews { hub.report(error) }
    }

    func feedAccepted() { head?.appeared() }

    /// A feeder that was silent for long is back.
    func feedDelivers() -> Bool {
        if !hub.output.isOpen { head?.appeared() }
        return true
    }

    func feedEnded(_ end: FeedConnection.End, hasGivenPictures: Bool) {
        if !hasGivenPictures { door.withLock { $0.readSource }?.hold(seconds: Self.penalty) }
        switch end {
        case .bye: hub.output.fail(absent("has ended"))
        case .gone:
            let error = FrameSocketError(
                code: "feed.lost", "The feeder \(hub.feeder)disconnected without bye. Start it again.")
            // A feeder without a hello was no device.
            if hub.output.isOpen { hub.output.fail(MediaError(error)) } else { hub.report(error) }
        case .refused(let error): hub.output.fail(MediaError(error))
        }
    }

    private func absent(_ story: String) -> MediaError {
        MediaError(
            code: "feed.absent", message: "The feeder \(hub.feeder)\(story). Start one that connects to \(path).")
    }

    /// The feeder may connect at any time.
    var mayStayEmpty: Bool { true }

    func stopFeeding(_ reason: StopReason) { hub.stop(reason) }

    func finish() {
        hub.queue.sync {
            let (listener, readSource) = door.withLock { door in
                defer { (door.listener, door.readSource) = (nil, nil) }
                return (door.listener, door.readSource)
            }
            readSource?.cancel()
            // The cancelled source retains it for another moment.
            listener?.withdraw()
            hub.detach(.ended)
        }
        heldHead.finish()
    }
}

extension FeedNode: SourceDevice {
    func name(of candidate: Int) -> String { path }

    func open(_ candidate: Int, for output: SourceOutput) throws(MediaError) {
        let isThere = hub.queue.sync {
            hub.output.open(output)
            return hub.start()
        }
        if !isThere { throw absent("is not there") }
    }

    /// The connection of a feeder that is only silent stays.
    func close() { hub.output.close() }

    /// Nothing but its frames tells.
    func isThere(_ candidate: Int) -> Bool { false }

    func isAbsence(_ error: MediaError) -> Bool { error.code == "feed.absent" }

    func requestKeyframe() { hub.wantKeyframe() }

    func error(for cause: SourceSupervisor.Cause, _ candidate: Int) -> MediaError {
        MediaError(
            code: "feed.silent",
            message: "The feeder \(hub.feeder)has sent no frame for \(hub.timeout.short) s and has not reported a "
                + "pause. Send paused, or raise timeout.")
    }
}

/// Frames of a program that connects to a Unix socket: docs/frame-socket.md.
public struct Feed: MediaNode {
    public var handle: NodeHandle

    /// A node that waits for a feeder at a socket.
    ///
    /// - Parameters:
    ///   - socket: the path to listen on; nil for one that is named after the node.
    ///   - framesPerSecond: the maximum frame rate.
    ///   - format: the format of the frames, such as `NV12` or `h264`.
    ///   - scales: whether to accept raw frames of other sizes and formats, and convert them.
    ///   - timeout: the time without a frame after which a warning is reported.
    public init(
        socket: String? = nil, width: Int? = nil, height: Int? = nil, framesPerSecond: Double? = nil,
        format: String? = nil, scales: Bool? = nil, timeout: Duration? = nil, away: Camera.Away? = nil,
        slateText: String? = nil, slateImage: String? = nil
    ) {
        handle = NodeHandle(
            FeedNode.kind,
            [
                "socket": socket, "width": width, "height": height, "fps": framesPerSecond, "format": format,
                "scale": scales, "timeout": timeout?.inSeconds, "away": away, "slate-text": slateText,
                "slate-image": slateImage,
            ])
    }
}
