import Cameras
import GStreamerKit
import MediaGraph
import Synchronization

/// A camera node that goes on while its camera is away.
struct KeptCamera: RunningNode {
    private let head: SourceHead
    private let device: CameraDevices

    init(_ instance: NodeInstance) {
        let wish = CameraWish(instance)
        device = CameraDevices(instance, wish)
        var limits = SourceSupervisor.Limits()
        // A few frame times; a slow camera is not silent between two frames.
        limits.quiet = max(limits.quiet, 4 / wish.framesPerSecond)
        limits.silent = max(limits.silent, limits.quiet * 2)
        limits.pause = max(limits.pause, limits.silent * 2)
        let slate = Slate(
            width: wish.width, height: wish.height, instance.plan.device?.slate ?? [], named: instance.prefix,
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

extension VideoBuffer {
    /// A dark grey frame.
    static func grey(width: Int, height: Int) -> VideoBuffer {
        let chroma = [UInt8](repeating: 128, count: (width + 1) / 2 * ((height + 1) / 2))
        return VideoBuffer(
            width: width, height: height, luma: [UInt8](repeating: 48, count: width * height), chromaBlue: chroma,
            chromaRed: chroma)
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
    private let clock: PipelineClock
    private let system: CameraSystem
    /// Keeps recorded cameras while they are closed.
    private let recorded: [FixtureCamera?]
    private let notice: @Sendable (String) -> Void
    private let state: Mutex<State>

    init(_ instance: NodeInstance, _ wish: CameraWish, of system: CameraSystem = .machine) {
        node = instance.node
        prefix = instance.prefix
        clock = instance.pipeline.clock
        self.wish = wish
        self.system = system
        let failover = instance.isGiven("failover") ? instance.text("failover") : ""
        names = [CameraNode.device(of: instance)] + (failover.isEmpty ? [] : [failover])
        recorded = names.map(system.recorded)
        state = Mutex(State(controls: (try? ControlValues(of: instance)) ?? ControlValues()))
        notice = { [reporter = instance.reporter, name = instance.name] in reporter.warn(name, $0) }
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
        var plan = DevicePlan(name: names[candidate], wish: wish.words)
        plan.take(try CameraNode.planElements(node, session.layout.mode, wish, SystemEnvironment()))
        let chain = try DeviceChain(plan, named: prefix, on: clock, for: output) { failure, _ in
            MediaError(code: MediaError.Code.elementFailed, message: failure.message, cause: failure.detail)
        }
        let (source, layout) = (PushSource(chain.element("source")), session.layout)
        let capture = CameraCapture(
            session,
            .init(
                take: { [weak chain] frame, time in
                    guard let timestamp = chain?.pipeline.runningTime(at: time.nanoseconds) else { return }
                    _ = source.push(frame, of: layout, timestamp: timestamp)
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
