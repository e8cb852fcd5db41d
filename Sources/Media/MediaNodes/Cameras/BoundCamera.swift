import Cameras
import GStreamerKit
import MediaGraph
import Synchronization

/// A camera that has to be there: its loss ends the node.
final class BoundCamera: RunningNode {
    /// An unplugged camera is detected within 2 s: this limit and the watchdog's interval.
    private static let silenceLimit = 1.5
    /// A camera that still responds may pause longer: some stop while they adjust, and a busy machine delays frames.
    private static let pauseLimit = 5.0
    /// How long the end waits for the driver, in seconds.
    private static let closingLimit = 2.0

    /// The open camera.
    private final class Captured: Sendable {
        let camera = Mutex<CameraCapture?>(nil)
    }

    private let name: String
    private let device: String
    private let wish: CameraWish
    /// The caps of the planned mode.
    private let planned: String?
    /// Whether the camera delivers H.264, whether it passes or is decoded.
    private let isH264: Bool
    /// Whether frames beyond the promised rate are dropped.
    private let dropsFrames: Bool
    private let reporter: Reporter
    private let queue: PushQueue
    private let watchdog: Watchdog
    private let recorded: FixtureCamera?
    private let capture: Captured
    private let controls: CameraControls

    init(_ instance: NodeInstance) {
        (name, reporter) = (instance.name, instance.reporter)
        wish = CameraWish(of: instance)
        let device = instance.plan.resource ?? CameraNode.device(of: instance)
        self.device = device
        recorded = CameraSystem.machine.recorded(device)
        planned = instance.plan.element("source")?.properties["caps"]?.text
        isH264 = planned?.hasPrefix("video/x-h264") == true
        dropsFrames = instance.plan.element("rate") != nil
        let (reporter, name) = (reporter, name)
        let requests = KeyframeRequests { reporter.warn(name, $0) }
        let capture = Captured()
        self.capture = capture
        queue = PushQueue(instance, isEncoded: isH264) {
            requests.pass(to: capture.camera.withLock { $0 })
        }
        watchdog = Watchdog(
            instance, limit: Self.silenceLimit, timeout: Self.pauseLimit,
            isThere: { CameraSystem.machine.isThere(device) }, lost: CameraNode.lost(device))
        controls = CameraControls(instance)
        instance.element("source").source.watchBuffers { [watchdog] _ in watchdog.feed() }
    }

    /// Opens the camera, in the planned mode.
    func prepare() throws(MediaError) {
        let values = controls.values
        let session: CameraSession
        do throws(CaptureError) {
            session = try CameraSession(device, of: .machine, wish.capture, controls: values, owner: name)
        } catch {
            throw MediaError(error)
        }
        let layout = session.layout
        guard let planned, planned.sizeOfCaps == layout.mode.caps.sizeOfCaps else {
            throw MediaError(
                code: MediaError.Code.cameraNoMode,
                message:
                    "The camera \(device) chose \(layout.mode) instead of the planned mode. Choose another size or rate."
            )
        }
        // Drivers round rates. Without an element that drops frames, the planned rate is a name only.
        if dropsFrames, planned != layout.mode.caps { queue.source.setFormat(Caps(layout.mode.caps)) }
        let capture = CameraCapture(
            session,
            .init(
                take: { [weak self] frame, time in self?.push(frame, of: layout, at: time) },
                fail: { [reporter, name] error in reporter.fail(error, name) },
                notice: { [reporter, name] notice in reporter.warn(name, notice) }))
        controls.attach(capture, openedWith: values)
        try capture.start()
        self.capture.camera.withLock { $0 = capture }
    }

    private func push(_ frame: CapturedFrame, of layout: CaptureLayout, at time: MediaTime) {
        // Copied, because the graph may keep encoded frames for long.
        if isH264 {
            let bytes = frame.copy()
            // Some cameras give the parameter sets of a keyframe in a frame of their own.
            _ = queue.push(
                encoded: bytes.span.bytes, at: time,
                isKeyframe: frame.isKeyframe || VideoCodec.h264.isKeyframe(bytes) || bytes.hasParameterSet)
        } else {
            let isKept = wish.isEncoded
            _ = queue.push(at: time) { source, timestamp in
                source.push(frame, of: layout, timestamp: timestamp, isKept: isKept)
            }
        }
    }

    func finish() {
        watchdog.stop()
        let capture = capture.camera.withLock { $0 }
        if capture?.close(within: Self.closingLimit) == false {
            reporter.warn(name, "\(device) does not close, because its driver is not responding. The rest continues.")
        }
    }

    func stopped() { watchdog.stop() }

    func report(into statistics: inout MediaStatistics, as name: String) {
        statistics.cameras[name] = .init(counts)
    }

    private var counts: FrameCheck.Counts {
        capture.camera.withLock { $0 }?.history.counts ?? FrameCheck.Counts()
    }

    var stalled: MediaError? {
        CameraNode.isDamaged(counts)
            ? CameraNode.damaged(device, counts)
            : CameraNode.silent(device, "none arrived within \(Limits().start.short) s")
    }

    func set(_ setting: String, to value: SettingValue) throws(MediaError) -> Bool {
        try controls.set(setting, to: value)
        return true
    }
}

extension MediaStatistics.Camera {
    init(_ counts: FrameCheck.Counts) {
        self.init()
        (lost, damaged, wrongTimestamps) = (counts.lost, counts.damaged, counts.wrongTimes)
    }
}

extension String {
    /// Caps of a mode without the rate.
    fileprivate var sizeOfCaps: Substring { split(separator: ",framerate=").first ?? "" }
}

extension [UInt8] {
    /// Whether the first unit of H.264 is a sequence parameter set (ITU-T H.264, table 7-1), after a start code.
    fileprivate var hasParameterSet: Bool {
        guard let one = prefix(4).firstIndex(of: 1), one >= 2, count > one + 1 else { return false }
        return self[one + 1] & 0x1f == 7
    }
}
