import Cameras
import GStreamerKit
import MediaGraph
import Synchronization

/// A camera node. It goes on while its camera is away, unless its settings end it then.
struct KeptCamera: HeadedNode {
    let head: SourceHead?
    private let device: CameraDevices

    init(_ instance: NodeInstance) {
        let wish = CameraWish(of: instance).promising(instance.plan.formats["video"] ?? .rawVideo())
        device = CameraDevices(instance, wish)
        var limits = SourceSupervisor.Limits()
        // A stand-in is a keyframe, and after it, the stream goes on with the camera's next one.
        if wish.delivered == "h264" { (limits.quiet, limits.fill) = (1, 1) }
        limits = limits.paced(wish.framesPerSecond)
        head = SourceHead(
            instance, device, candidates: device.names.count,
            [.video(of: instance)],
            withoutDevice: wish.isKeptUp ? .goesOn : .ends, limits: limits)
    }

    var stalled: MediaError? { device.error(for: .silent, 0) }

    func report(into statistics: inout MediaStatistics, as name: String) {
        statistics.cameras[name] = .init(device.counts)
        statistics.sources[name] = head?.status
    }

    func set(_ setting: String, to value: SettingValue) throws(MediaError) -> Bool {
        try device.set(setting, to: value)
        return true
    }

    func check(_ setting: String, to value: SettingValue) throws(MediaError) { try device.check(setting, to: value) }

    func reset(_ setting: String) throws(MediaError) { try device.reset(setting) }
}

extension MediaStatistics.Camera {
    init(_ counts: FrameCheck.Counts) {
        self.init()
        (lost, damaged, wrongTimestamps) = (counts.lost, counts.damaged, counts.wrongTimes)
    }
}

/// A number of frames that one thread raises and another one resets.
private final class FrameCount: Sendable {
    private let count = Atomic<Int>(0)

    var value: Int { count.load(ordering: .relaxed) }

    func add(_ frames: Int) { count.wrappingAdd(frames, ordering: .relaxed) }

    func reset() { count.store(0, ordering: .relaxed) }
}

/// The cameras of a node: the wished one, and the one that takes over for it. Bound when they are opened.
final class CameraDevices: SourceDevice {
    private struct State {
        var chain: DeviceChain?
        var capture: CameraCapture?
        /// The cameras that the names led to.
        var identities: [Int: CameraPlace.Identity] = [:]
        /// Why the cameras could not be found. Nil for those that were there.
        var absences: [Int: MediaError] = [:]
        /// The last notice about an encoder.
        var noted: String?
        /// Of H.264 that is decoded here.
        var gate = KeyframeGate()
        /// That of closed cameras.
        var history = CameraSession.History()
    }

    let names: [String]
    private let node: Node
    private let prefix: String
    private let wish: CameraWish
    private let clock: PipelineClock
    private let system: CameraSystem
    /// Keeps recorded cameras while they are closed.
    private let recorded: [FixtureCamera?]
    private let notice: @Sendable (String) -> Void
    private let requests: KeyframeRequests
    private let controls: CameraControls
    /// Whether the cameras have ever delivered a frame.
    private let hasDelivered: [AtomicBool]
    /// Frames that have entered the cameras' chains since the last one that left them.
    private let undecoded: [FrameCount]
    /// A decoder holds fewer frames than this.
    private static let mostInDecoder = 12
    private let state = Mutex(State())

    init(_ instance: NodeInstance, _ wish: CameraWish, of system: CameraSystem = .machine) {
        node = instance.node
        prefix = instance.prefix
        clock = instance.pipeline.clock
        self.wish = wish
        self.system = system
        let failover = instance.isGiven("failover") ? instance.text("failover") : ""
        names = [CameraNode.device(of: instance)] + (failover.isEmpty ? [] : [failover])
        recorded = names.map(system.recorded)
        hasDelivered = names.map { _ in AtomicBool() }
        undecoded = names.map { _ in FrameCount() }
        controls = CameraControls(instance)
        let notice: @Sendable (String) -> Void = { [reporter = instance.reporter, name = instance.name] in
            reporter.warn(name, $0)
        }
        self.notice = notice
        requests = KeyframeRequests(notice)
    }

    var counts: FrameCheck.Counts { history.counts }

    private var history: CameraSession.History { state.withLock { $0.capture?.history ?? $0.history } }

    func name(of candidate: Int) -> String { names[candidate] }

    func open(_ candidate: Int, for output: SourceOutput) throws(MediaError) {
        let (identity, history, absence) = state.withLock {
            ($0.identities[candidate], $0.history, $0.absences[candidate])
        }
        // A search opens all cameras, which some dislike. So it is not repeated twice a second.
        if let absence, !system.isListed(names[candidate], identity: identity) { throw absence }
        let values = controls.values
        let session: CameraSession
        do throws(MediaError) {
            session = try CameraSession(
                names[candidate], of: system, identity: identity, wish.capture, controls: values, owner: node.name,
                after: history)
            state.withLock { $0.absences[candidate] = nil }
        } catch {
            state.withLock { $0.absences[candidate] = isAbsence(error) ? error : nil }
            throw error
        }
        let mode = session.layout.mode
        var plan = DevicePlan(name: names[candidate], wish: wish.words)
        plan.take(try CameraNode.planElements(node, mode, wish, SystemEnvironment()))
        if wish.isEncoded, !wish.passes(mode) {
            noteOnce(
                "The camera \(names[candidate]) does not deliver \(wish.delivered) in \(wish.size). Its \(mode.name) in "
                    + "\(mode.size) is encoded here.")
        }
        let chain = try DeviceChain(
            plan, named: prefix, on: clock, for: watched(output, of: candidate)
        ) { failure, _ in
            MediaError(code: MediaError.Code.elementFailed, message: failure.message, cause: failure.detail)
        }
        let capture = CameraCapture(
            session,
            .init(
                take: entrance(of: chain, session.layout, isSlowed: plan.element("rate") != nil, candidate),
                fail: output.fail, notice: notice, pace: output.pace))
        state.withLock { state in
            (state.chain, state.capture) = (chain, capture)
            state.identities[candidate] = session.place.identity
        }
        controls.attach(capture, openedWith: values)
        if let pace = session.pace { output.pace(pace) }
        try chain.play()
        try capture.start()
    }

    /// Takes the frames of a camera into its chain.
    ///
    /// - Parameter isSlowed: whether frames beyond the wished rate are dropped.
    private func entrance(
        of chain: DeviceChain, _ layout: CaptureLayout, isSlowed: Bool, _ candidate: Int
    ) -> @Sendable (CapturedFrame, MediaTime) -> Void {
        let (source, mode, passes) = (PushSource(chain.element("source")), layout.mode, wish.passes(layout.mode))
        // The head's own gate is behind the decoder.
        let (isDecoded, isKept) = (mode.format.isH264 && !passes, mode.format.isH264 || passes)
        state.withLock { $0.gate.close() }
        // Each frame of H.264 is needed to decode the next one.
        if isSlowed, isDecoded { chain.element("rate").dropFrames(above: wish.framesPerSecond) }
        let pace = Mutex(isSlowed && !isDecoded ? FramePace(framesPerSecond: wish.framesPerSecond) : nil)
        return { [weak self, weak chain, hasDelivered = hasDelivered[candidate]] frame, time in
            hasDelivered.raise()
            guard let timestamp = chain?.pipeline.runningTime(at: time.nanoseconds),
                pace.withLock({ $0?.admits(timestamp) ?? true })
            else { return }
            if isDecoded, self?.admits(frame, to: source) != true { return }
            if source.push(frame, of: layout, timestamp: timestamp, isKept: isKept), !passes {
                self?.undecoded[candidate].add(1)
            }
        }
    }

    /// The output, noticing that frames leave the chain.
    private func watched(_ output: SourceOutput, of candidate: Int) -> SourceOutput {
        var watched = output
        watched.deliver = { [undecoded = undecoded[candidate]] buffer, time, track in
            undecoded.reset()
            return output.deliver(buffer, time, track)
        }
        return watched
    }

    func close() {
        let (chain, capture) = state.withLock { state in
            defer { state.chain = nil }
            return (state.chain, state.capture)
        }
        controls.detach()
        capture?.close()
        state.withLock { state in
            state.history = state.capture?.history ?? state.history
            state.capture = nil
        }
        chain?.pipeline.stop()
    }

    func requestKeyframe() {
        let (chain, capture) = state.withLock { ($0.chain, $0.capture) }
        if let encoder = chain?.encoder { return encoder.source.requestKeyframe() }
        requests.pass(to: capture)
    }

    /// Whether a frame of H.264 enters the queue of its decoder.
    private func admits(_ frame: CapturedFrame, to source: PushSource) -> Bool {
        let isKeyframe = frame.withBytes { EncodedHeader.isKeyframe($0, encoding: "h264") }
        let isFull = source.waiting >= PushQueue.encodedLimits.frames ?? .max
        let (isTaken, asks, capture) = state.withLock { state in
            let isTaken = state.gate.admits(isKeyframe: isKeyframe, isFull: isFull)
            return (isTaken, !isTaken && isFull, state.capture)
        }
        if asks { requests.pass(to: capture) }
        return isTaken
    }

    private func noteOnce(_ text: String) {
        let isNews = state.withLock { state in
            defer { state.noted = text }
            return state.noted != text
        }
        if isNews { notice(text) }
    }

    func isThere(_ candidate: Int) -> Bool {
        system.isThere(names[candidate], identity: state.withLock { $0.identities[candidate] })
    }

    func isAbsence(_ error: MediaError) -> Bool { error.code == MediaError.Code.cameraAbsent }

    func error(for cause: SourceSupervisor.Cause, _ candidate: Int) -> MediaError {
        let name = state.withLock { $0.identities[candidate]?.name } ?? names[candidate]
        return switch cause {
        case .silent where CameraNode.isDamaged(counts): CameraNode.damaged(name, counts)
        case .silent where undecoded[candidate].value > Self.mostInDecoder:
            CameraNode.undecodable(name, undecoded[candidate].value)
        case .silent where !hasDelivered[candidate].value:
            CameraNode.silent(name, "none arrived within \(SourceSupervisor.Limits().firstFrame.short) s")
        case .unresponsive: CameraNode.unresponsive(name)
        default: CameraNode.lost(name)
        }
    }

    /// Changes a control, now if the camera is open, and whenever it opens.
    func set(_ setting: String, to value: SettingValue) throws(MediaError) {
        try controls.set(setting, to: value)
    }

    func check(_ setting: String, to value: SettingValue) throws(MediaError) { try controls.check(setting, to: value) }

    func reset(_ setting: String) throws(MediaError) { try controls.reset(setting) }
}
