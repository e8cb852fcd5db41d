import Cameras
import GStreamerKit
import MediaGraph
import Synchronization

/// A camera node that goes on while its camera is away.
struct KeptCamera: RunningNode {
    private let head: SourceHead
    private let device: CameraDevices

    init(_ instance: NodeInstance) {
        let wish = CameraWish(of: instance)
        device = CameraDevices(instance, wish)
        var limits = SourceSupervisor.Limits()
        // A stand-in is a keyframe, and after it, the stream goes on with the camera's next one.
        if wish.delivered == "h264" { (limits.quiet, limits.fill) = (1, 1) }
        // A few frame times; a slow camera is not silent between two frames.
        limits.quiet = max(limits.quiet, 4 / wish.framesPerSecond)
        limits.silent = max(limits.silent, limits.quiet * 2)
        limits.pause = max(limits.pause, limits.silent * 2)
        let slate = Slate(
            instance.plan.formats["video"] ?? .rawVideo(), instance.plan.device?.slate ?? [], named: instance.prefix,
            on: instance.pipeline.clock)
        head = SourceHead(
            instance, device, candidates: device.names.count,
            standIn: instance.text("away") == "slate" ? .slate(slate) : .freeze(slate: slate), limits: limits)
    }

    func prepare() { head.prepare() }

    func finish() { head.finish() }

    var absence: MediaError? { head.absence }

    func report(into statistics: inout MediaStatistics, as name: String) {
        statistics.cameras[name] = .init(device.counts)
        statistics.sources[name] = head.status
    }

    func set(_ setting: String, to value: SettingValue) throws(MediaError) -> Bool {
        try device.set(setting, to: value)
        return true
    }
}

/// The cameras of a node: the wished one, and the one that takes over for it. Bound when they are opened.
final class CameraDevices: SourceDevice {
    private struct State {
        var chain: DeviceChain?
        var capture: CameraCapture?
        var candidate = 0
        /// The name of the open camera, or of the one that was open last.
        var name: String?
        /// The cameras that the names led to.
        var identities: [Int: String] = [:]
        /// The controls as set last, which a camera gets whenever it opens.
        var controls: ControlValues
        /// Those of closed cameras.
        var counts = FrameCheck.Counts()
    }

    let names: [String]
    private let node: Node
    private let prefix: String
    private let wish: CameraWish
    /// The size of encoded frames, which are not scaled.
    private let size: FrameSize?
    private let clock: PipelineClock
    private let system: CameraSystem
    /// Keeps recorded cameras while they are closed.
    private let recorded: [FixtureCamera?]
    private let notice: @Sendable (String) -> Void
    private let requests: KeyframeRequests
    private let state: Mutex<State>

    init(_ instance: NodeInstance, _ wish: CameraWish, of system: CameraSystem = .machine) {
        node = instance.node
        prefix = instance.prefix
        clock = instance.pipeline.clock
        self.wish = wish
        let promise = instance.plan.formats["video"]
        size = wish.isEncoded ? promise.map { FrameSize($0.width ?? wish.width, $0.height ?? wish.height) } : nil
        self.system = system
        let failover = instance.isGiven("failover") ? instance.text("failover") : ""
        names = [CameraNode.device(of: instance)] + (failover.isEmpty ? [] : [failover])
        recorded = names.map(system.recorded)
        state = Mutex(State(controls: (try? ControlValues(of: instance)) ?? ControlValues()))
        let notice: @Sendable (String) -> Void = { [reporter = instance.reporter, name = instance.name] in
            reporter.warn(name, $0)
        }
        self.notice = notice
        requests = KeyframeRequests(notice)
    }

    var counts: FrameCheck.Counts { state.withLock { $0.capture?.counts ?? $0.counts } }

    func name(of candidate: Int) -> String { names[candidate] }

    func open(_ candidate: Int, for output: SourceOutput) throws(MediaError) {
        let (identity, controls, counts) = state.withLock { ($0.identities[candidate], $0.controls, $0.counts) }
        let session: CameraSession
        do throws(CaptureError) {
            session = try CameraSession(
                names[candidate], of: system, identity: identity, wish.capture, controls: controls, counts: counts)
        } catch {
            throw MediaError(error)
        }
        if let size, session.layout.mode.size != size {
            throw MediaError(
                code: MediaError.Code.cameraNoMode,
                message:
                    "The camera \(names[candidate]) delivers its \(wish.delivered) in \(session.layout.mode.size), but "
                    + "the stream has \(size). Set this size, or leave format out.")
        }
        var plan = DevicePlan(name: names[candidate], wish: wish.words)
        plan.take(CameraNode.planElements(node, session.layout.mode, wish))
        let chain = try DeviceChain(plan, named: prefix, on: clock, for: output) { failure, _ in
            MediaError(code: MediaError.Code.elementFailed, message: failure.message, cause: failure.detail)
        }
        let (source, layout) = (PushSource(chain.element("source")), session.layout)
        let capture = CameraCapture(
            session,
            .init(
                take: { [weak chain, isEncoded = wish.isEncoded] frame, time in
                    guard let timestamp = chain?.pipeline.runningTime(at: time.nanoseconds) else { return }
                    _ = source.push(frame, of: layout, timestamp: timestamp, isKept: isEncoded)
                }, fail: output.fail, notice: notice))
        state.withLock { state in
            (state.chain, state.capture, state.candidate) = (chain, capture, candidate)
            state.name = session.place.name
            state.identities[candidate] = session.place.name
        }
        try chain.play()
        try capture.start()
    }

    func close() {
        let (chain, capture) = state.withLock { state in
            defer { state.chain = nil }
            return (state.chain, state.capture)
        }
        capture?.close()
        state.withLock { state in
            state.counts = state.capture?.counts ?? state.counts
            state.capture = nil
        }
        chain?.pipeline.stop()
    }

    func requestKeyframe() { requests.pass(to: state.withLock { $0.capture }) }

    func isThere(_ candidate: Int) -> Bool {
        system.isThere(names[candidate], identity: state.withLock { $0.identities[candidate] })
    }

    func isAbsence(_ error: MediaError) -> Bool { error.code == MediaError.Code.cameraAbsent }

    func error(for cause: SourceSupervisor.Cause, _ candidate: Int) -> MediaError {
        let name = state.withLock { $0.name } ?? names[candidate]
        return switch cause {
        case .absent(let error), .failed(let error): error
        case .silent, .gone: CameraNode.lost(name)
        case .unresponsive: CameraNode.unresponsive(name)
        }
    }

    /// Changes a control, now if the camera is open, and whenever it opens.
    func set(_ setting: String, to value: SettingValue) throws(MediaError) {
        let values = try Result { () throws(CaptureError) in try ControlValues(setting, value) }.ofGraph()
        try state.withLock { $0.capture }?.set(values)
        state.withLock { $0.controls.merge(values) }
    }
}
