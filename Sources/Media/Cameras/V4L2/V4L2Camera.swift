internal import CV4L2
internal import Glibc
package import MediaGraph

/// The kernel's cameras.
package struct V4L2Backend: CaptureBackend {
    package init() {}

    package func open(_ path: String) throws(MediaError) -> any CaptureDevice {
        try V4L2Camera(path)
    }
}

/// A camera of the kernel's V4L2, by its device file.
package final class V4L2Camera: CaptureDevice {
    package let path: String
    package let information: CaptureInformation
    package let waker: Waker
    /// Nil once the device is closed.
    private var descriptor: V4L2Descriptor?
    private let type: UInt32
    private var layout: CaptureLayout?
    private var stream: V4L2Stream?

    package init(_ path: String) throws(MediaError) {
        self.path = path
        waker = try Waker(path)
        let opened = cv4l2_open(path)
        guard opened >= 0 else { throw MediaError("open", -opened, on: path) }
        let descriptor = V4L2Descriptor(taking: opened, path)
        self.descriptor = descriptor
        var found = cv4l2_information()
        try descriptor.check("VIDIOC_QUERYCAP", cv4l2_information(opened, &found))
        information = CaptureInformation(
            driver: text(of: found.driver), card: text(of: found.card), bus: text(of: found.bus))
        type = found.type
        guard type != 0 else {
            throw MediaError(
                code: MediaError.Code.cameraUnusable,
                message:
                    "\(path) is not a camera: it captures no video. Choose one of 'connectlive devices'.")
        }
        // Devices with a fixed source refuse.
        _ = cv4l2_subscribe_source(opened)
        for control in (try? controls()) ?? [] { _ = cv4l2_subscribe_control(opened, control.identifier) }
    }

    deinit { close() }

    package var isTaken: Bool {
        guard stream == nil, let descriptor else { return false }
        if isStreamedHere { return true }
        let result = cv4l2_request_buffers(descriptor.number, type, 1)
        if result >= 0 { _ = cv4l2_request_buffers(descriptor.number, type, 0) }
        return result == -EBUSY
    }

    package var isStreamedHere: Bool { descriptor.map(V4L2Stream.isRunning) ?? false }

    package func followSource() {
        if let descriptor { cv4l2_follow_source(descriptor.number) }
    }

    package func formats() throws(MediaError) -> [FormatOffer] {
        try open().formats(type)
    }

    package func controls() throws(MediaError) -> [DeviceControl] {
        try open().controls()
    }

    package func value(of control: DeviceControl) throws(MediaError) -> Int {
        if control.kind == .button { return 0 }
        let descriptor = try open()
        var value: Int64 = 0
        try descriptor.check(
            "VIDIOC_G_EXT_CTRLS",
            cv4l2_get_control(descriptor.number, control.identifier, control.isWide ? 1 : 0, &value))
        return Int(value)
    }

    package func set(_ control: DeviceControl, to value: Int) throws(MediaError) {
        let descriptor = try open()
        try descriptor.check(
            "VIDIOC_S_EXT_CTRLS",
            cv4l2_set_control(descriptor.number, control.identifier, control.isWide ? 1 : 0, Int64(value)),
            control: "\(control.name)=\(value)")
    }

    package func configure(_ mode: CaptureMode) throws(MediaError) -> CaptureLayout {
        precondition(stream == nil, "a device that streams cannot be configured")
        let descriptor = try open()
        var found = cv4l2_layout()
        (found.width, found.height, found.code) =
            (UInt32(clamping: mode.size.width), UInt32(clamping: mode.size.height), mode.format.code)
        try descriptor.check("VIDIOC_S_FMT", cv4l2_set_layout(descriptor.number, type, &found))
        let layout = CaptureLayout(of: found, rate: try setRate(mode.rate, descriptor))
        try layout.check(of: path)
        self.layout = layout
        return layout
    }

    /// Returns the driver's choice. Nil if the device has no rate to choose.
    private func setRate(_ rate: FrameRate?, _ descriptor: V4L2Descriptor) throws(MediaError) -> FrameRate? {
        var interval = cv4l2_fraction()
        let result: Int32
        if let rate {
            interval = cv4l2_fraction(numerator: UInt32(rate.seconds), denominator: UInt32(rate.frames))
            result = cv4l2_set_interval(descriptor.number, type, &interval)
        } else {
            result = cv4l2_get_interval(descriptor.number, type, &interval)
        }
        if result == -ENOTTY { return nil }
        try descriptor.check("VIDIOC_S_PARM", result)
        return FrameRate(interval: interval)
    }

    package func start(buffers: Int) throws(MediaError) {
        precondition(stream == nil, "the device streams already")
        guard let layout else { preconditionFailure("a device is configured before it starts") }
        stream = try V4L2Stream(try open(), type, planes: layout.planes.count, buffers: buffers)
    }

    package func next(within timeout: Duration) throws(MediaError) -> CaptureItem? {
        guard let stream else { preconditionFailure("a device starts before its frames are read") }
        let descriptor = try open()
        let end = monotonicTime() + timeout
        while true {
            stream.queueRefused()
            // Never negative, which would mean no end.
            let left = max(end - monotonicTime(), .zero)
            // A refused buffer is offered again, so that a stream does not dry up.
            let wait = stream.hasRefused ? min(left, Self.refusedPause) : left
            let ready = cv4l2_wait(descriptor.number, waker.number, nanoseconds(wait))
            try descriptor.check("poll", ready)
            if ready & Int32(CV4L2_BELL) != 0 {
                waker.silence()
                return .woken
            }
            if ready & Int32(CV4L2_GONE) != 0 { throw MediaError("VIDIOC_DQBUF", ENODEV, on: path) }
            if ready & Int32(CV4L2_EVENT) != 0, let event = nextEvent(descriptor) { return event }
            if ready & Int32(CV4L2_FRAME | CV4L2_ERROR) != 0 {
                if let frame = try stream.dequeue() { return .frame(frame) }
                // The device reports an error, and no call names it.
                if ready & Int32(CV4L2_ERROR) != 0 { throw MediaError("VIDIOC_DQBUF", EIO, on: path) }
            }
            let rest = end - monotonicTime()
            guard rest > .zero else { return nil }
            // Some drivers report a frame that is not there, again and again.
            if ready != 0 { _ = cv4l2_wait(-1, waker.number, nanoseconds(min(rest, Self.emptyPause))) }
        }
    }

    private static let refusedPause = Duration.milliseconds(20)
    private static let emptyPause = Duration.milliseconds(2)

    private func nextEvent(_ descriptor: V4L2Descriptor) -> CaptureItem? {
        var event = cv4l2_event()
        guard cv4l2_dequeue_event(descriptor.number, &event) >= 0 else { return nil }
        switch event.kind {
        case Int32(CV4L2_EVENT_CONTROL):
            return .controlChanged(
                identifier: event.identifier, value: event.changes & Self.valueChanged == 0 ? nil : Int(event.value))
        case Int32(CV4L2_EVENT_SOURCE): return .sourceChanged
        default: return nil
        }
    }

    /// `V4L2_EVENT_CTRL_CH_VALUE`
    private static let valueChanged: UInt32 = 1

    package func stop() {
        stream?.end()
        stream = nil
    }

    package func close() {
        stop()
        descriptor = nil
    }

    private func open() throws(MediaError) -> V4L2Descriptor {
        guard let descriptor else { preconditionFailure("a closed device cannot be used") }
        return descriptor
    }
}

extension DeviceControl {
    fileprivate var isWide: Bool { kind == .wideInteger }
}

/// The descriptor of a device, closed with this object.
final class V4L2Descriptor: Sendable {
    let number: Int32
    let path: String
    /// The kernel's number of the device, which all its descriptors have in common.
    let device: UInt

    init(taking number: Int32, _ path: String) {
        self.number = number
        self.path = path
        var status = stat()
        device = fstat(number, &status) == 0 ? UInt(status.st_rdev) : 0
    }

    deinit { Glibc.close(number) }

    /// Throws the error of a call that returned a negative number.
    func check(_ call: String, _ result: Int32, control: String? = nil) throws(MediaError) {
        if result < 0 { throw MediaError(call, -result, on: path, control: control) }
    }
}

/// Ends the wait of a device's `next`, by a descriptor that any thread makes readable.
package final class Waker: Sendable {
    let number: Int32

    package init(_ path: String) throws(MediaError) {
        number = cv4l2_bell()
        guard number >= 0 else { throw MediaError("eventfd", -number, on: path) }
    }

    deinit { Glibc.close(number) }

    package func wake() { cv4l2_ring(number) }
    func silence() { cv4l2_silence(number) }
    var isAwake: Bool { cv4l2_wait(-1, number, 0) & Int32(CV4L2_BELL) != 0 }
}

/// Since the start of `CLOCK_MONOTONIC`.
package func monotonicTime() -> Duration {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
}

/// Clamped to the range of an `Int64`, which is 292 years.
func nanoseconds(_ time: Duration) -> Int64 {
    let (seconds, attoseconds) = time.components
    let (whole, isTooLong) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
    return isTooLong
        ? (seconds < 0 ? .min : .max) : whole.addingReportingOverflow(attoseconds / 1_000_000_000).partialValue
}
