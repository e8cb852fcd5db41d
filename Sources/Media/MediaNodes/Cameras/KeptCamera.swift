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

    func report(into statistics: inout MediaStatistics, as name: String) {
        statistics.cameras[name] = .init()
        statistics.cameras[name]?.lost = device.missing
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
        var candidate = 0
        /// The path of the open camera, or of the one that was open last.
        var path: String?
        /// The controls as set last, which a camera gets whenever it opens.
        var settings: [String: SettingValue] = [:]
        /// Whether the camera has opened, so that its controls can be set. v4l2src reads them while it opens.
        var takesControls = false
    }

    let names: [String]
    private let node: Node
    private let prefix: String
    private let wish: CameraWish
    private let clock: PipelineClock
    private let gaps = NumberGaps()
    private let state = Mutex(State())
    /// Held while controls are set, so that the camera does not open or close meanwhile.
    private let controlling = Mutex(())

    init(_ instance: NodeInstance, _ wish: CameraWish) {
        node = instance.node
        prefix = instance.prefix
        clock = instance.pipeline.clock
        self.wish = wish
        let failover = instance.isGiven("failover") ? instance.text("failover") : ""
        names = [CameraNode.device(of: instance)] + (failover.isEmpty ? [] : [failover])
    }

    /// Frames that the camera numbered but did not deliver.
    var missing: Int { gaps.missing }

    func name(of candidate: Int) -> String { names[candidate] }

    func open(_ candidate: Int, for output: SourceOutput) throws(MediaError) {
        var node = node
        let settings = state.withLock { $0.settings }
        node.settings.merge(settings) { $1 }
        let request = NodeRequest(
            node, CameraNode.kind, usedOutputs: ["video"], environment: SystemEnvironment())
        let bound = try CameraNode.planBound(request, wish, names[candidate])
        let path = bound.resource ?? names[candidate]
        var plan = DevicePlan(name: names[candidate], wish: wish.words)
        plan.take(bound)
        let chain = try DeviceChain(plan, named: prefix, on: clock, for: output) { failure, isFed in
            CameraNode.explain(failure, of: path, isFed: isFed)
                ?? MediaError(code: MediaError.Code.elementFailed, message: failure.message, cause: failure.detail)
        }
        chain.element("source").source.watchBuffers { [gaps] picture in
            if let number = picture.number { gaps.saw(number) }
        }
        state.withLock { ($0.chain, $0.path, $0.candidate) = (chain, path, candidate) }
        try chain.play()
        controlling.withLock { _ in
            let changed = state.withLock { state in
                state.takesControls = true
                return state.settings.filter { settings[$0.key] != $0.value }
            }
            for (setting, value) in changed { try? apply(setting, value) }
        }
    }

    func close() {
        let chain = controlling.withLock { _ in
            state.withLock { state in
                defer { (state.chain, state.takesControls) = (nil, false) }
                return state.chain
            }
        }
        guard let chain else { return }
        let source = chain.element("source")
        LeftoverDescriptors.mark(of: source)
        chain.pipeline.stop()
        LeftoverDescriptors.release(of: source)
    }

    func isThere(_ candidate: Int) -> Bool {
        let open = state.withLock { $0.chain == nil || $0.candidate != candidate ? nil : $0.path }
        if let open { return DeviceProbe.openingProblem(of: open) == nil }
        return (try? Devices.choose(names[candidate], mayReserve: false)) != nil
    }

    func isAbsence(_ error: MediaError) -> Bool { error.code == MediaError.Code.cameraAbsent }

    func error(for cause: SourceSupervisor.Cause, _ candidate: Int) -> MediaError {
        let path = state.withLock { $0.path } ?? names[candidate]
        return switch cause {
        case .absent(let error), .failed(let error): error
        case .silent, .gone: CameraNode.lost(path)
        case .unresponsive: CameraNode.silent(path, "its driver is not responding")
        }
    }

    /// Changes a control, now if the camera is open, and whenever it opens.
    func set(_ setting: String, to value: SettingValue) throws(MediaError) {
        let result = controlling.withLock { _ in
            Result { () throws(MediaError) in
                try apply(setting, value)
                state.withLock { $0.settings[setting] = value }
            }
        }
        try result.get()
    }

    /// Sets a control of the open camera. Does nothing while it is not open.
    private func apply(_ setting: String, _ value: SettingValue) throws(MediaError) {
        let controls = try CameraControls(value.text ?? "\(setting)=\(value.integer ?? 0)")
        let open = state.withLock { $0.takesControls ? ($0.chain, $0.path) : (nil, nil) }
        guard let chain = open.0, let path = open.1 else { return }
        if let there = DeviceProbe.controls(of: path) { try controls.check(there, of: path) }
        // Sets only the given controls; the others keep their values.
        if let structure = controls.structure { try chain.element("source").set("extra-controls", structure) }
    }
}
