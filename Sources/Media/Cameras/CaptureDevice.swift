package import MediaGraph

/// Opens cameras: the kernel's, or those of fixtures.
package protocol CaptureBackend: Sendable {
    /// Opens a device by its path, such as `/dev/video0`, without reserving it: others may still capture.
    ///
    /// - Throws: `camera.absent` for a missing device and one that captures no video, `camera.denied`, `camera.busy`.
    func open(_ path: String) throws(MediaError) -> any CaptureDevice
}

/// An open camera.
///
/// Threads: one thread at a time uses a device. Any thread may use its `waker`, and may release its frames. Calls block
/// for milliseconds, or longer if the device responds slowly; `next` blocks for as long as it is told. No call blocks
/// while it holds a lock that `waker` or a frame needs, except for the queueing of a buffer.
///
/// Order: `configure`, `start`, `next` in a loop, `stop`, and again from `configure`. Descriptions and controls work at
/// any time.
package protocol CaptureDevice: AnyObject {
    /// As the driver described the device when it was opened (`VIDIOC_QUERYCAP`).
    var information: CaptureInformation { get }

    /// Ends a blocked `next`, or the following one if none is blocked.
    var waker: Waker { get }

    /// Whether another program, or another opening in this process, captures. Many can open a camera, but only one can
    /// capture. Makes a buffer for a moment, in which another program that begins to capture is refused. False if it is
    /// unknown.
    var isTaken: Bool { get }

    /// Whether this process captures.
    var isStreamedHere: Bool { get }

    /// Takes over the size and rate that the source of a grabber has now. The device must not stream. Does nothing for a
    /// camera, and if another program captures.
    func followSource()

    /// The formats, sizes and rates in the driver's order.
    ///
    /// - Throws: `camera.lost`, `camera.failed`.
    func formats() throws(MediaError) -> [FormatOffer]

    /// The controls in the driver's order, without disabled ones.
    ///
    /// - Throws: `camera.lost`, `camera.failed`.
    func controls() throws(MediaError) -> [DeviceControl]

    /// The current value of a control (`VIDIOC_G_EXT_CTRLS`); 0 for a button.
    ///
    /// - Throws: `camera.control`, `camera.lost`.
    func value(of control: DeviceControl) throws(MediaError) -> Int

    /// Sets a control (`VIDIOC_S_EXT_CTRLS`). The driver may round the value; `value(of:)` reports the result.
    ///
    /// - Throws: `camera.control`, `camera.lost`.
    func set(_ control: DeviceControl, to value: Int) throws(MediaError)

    /// Sets format, size and rate (`VIDIOC_S_FMT`, `VIDIOC_S_PARM`). The device must not stream.
    ///
    /// - Returns: the mode that the driver chose, which may differ from the wish in every part.
    /// - Throws: `camera.busy` if another program captures, `camera.no-mode`, `camera.lost`, `camera.failed`.
    func configure(_ mode: CaptureMode) throws(MediaError) -> CaptureLayout

    /// Makes buffers, maps and queues them, and starts to stream (`VIDIOC_REQBUFS`, `VIDIOC_QBUF`, `VIDIOC_STREAMON`).
    ///
    /// - Parameter buffers: the requested number. The driver may make more or fewer, at least one.
    /// - Throws: `camera.busy`, `camera.bandwidth`, `camera.lost`, `camera.failed`. The device then does not stream.
    func start(buffers: Int) throws(MediaError)

    /// The next frame or event (`VIDIOC_DQBUF`, `VIDIOC_DQEVENT`). Blocks up to `timeout`; with zero it only polls.
    /// The device must stream.
    ///
    /// - Returns: nil after the timeout.
    /// - Throws: `camera.lost`, `camera.failed`. Only `stop` and `close` are useful then.
    func next(within timeout: Duration) throws(MediaError) -> CaptureItem?

    /// Stops to stream, and frees the buffers (`VIDIOC_STREAMOFF`). Frames that are still held stay readable. Does
    /// nothing if the device does not stream.
    func stop()

    /// Stops and closes the device. Does nothing if it is closed.
    func close()
}

extension CaptureDevice {
    package func followSource() {}
}

/// The driver's names for a device (`VIDIOC_QUERYCAP`). None is unique, nor stable over kernels.
package struct CaptureInformation: Sendable, Hashable {
    /// Such as `uvcvideo`.
    package let driver: String
    /// The model, such as `HD Pro Webcam C920`.
    package let card: String
    /// Such as `usb-0000:00:14.0-1.2`.
    package let bus: String

    package init(driver: String, card: String, bus: String) {
        self.driver = driver.cleaned
        self.card = card.cleaned
        self.bus = bus.cleaned
    }
}

/// A frame or event of a device.
package enum CaptureItem: Sendable {
    case frame(CapturedFrame)
    /// Another program, another control or the driver changed a control (`V4L2_EVENT_CTRL`). Values that this device
    /// handle set itself are not reported. The value is nil if only flags or the range changed.
    case controlChanged(identifier: UInt32, value: Int?)
    /// The source's size or timing changed, such as that of an HDMI grabber (`V4L2_EVENT_SOURCE_CHANGE`). Frames are
    /// unusable until `stop`, `configure` and `start`.
    case sourceChanged
    /// `waker` was used.
    case woken
}
