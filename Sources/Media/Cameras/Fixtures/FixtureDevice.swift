internal import Glibc
internal import MediaGraph

/// An open recorded camera. Its calls behave as those of the kernel's cameras.
final class FixtureDevice: CaptureDevice {
    /// The rate of a mode without one.
    private static let usualRate = FrameRate(30)

    private let camera: FixtureCamera
    private let path: String
    private let opened: Duration
    private var isOpen = true
    private var layout: CaptureLayout?
    private var stream: FixtureStream?
    /// How many events of the camera were reported, or came before the stream.
    private var reported = 0

    let information: CaptureInformation
    let waker: Waker

    init(_ camera: FixtureCamera, _ path: String) throws(MediaError) {
        self.camera = camera
        self.path = path
        opened = camera.clock.now
        waker = try Waker(path)
        let fixture = camera.fixture
        information = CaptureInformation(driver: fixture.driver, card: fixture.card, bus: fixture.bus)
    }

    deinit { close() }

    var isTaken: Bool { camera.fault(.busy) != nil || stream == nil && isStreamedHere }
    var isStreamedHere: Bool { camera.isStreamed(beside: nil) }
    private var isBusy: Bool { camera.fault(.busy) != nil || camera.isStreamed(beside: ObjectIdentifier(self)) }

    // MARK: Description and controls

    func formats() throws(MediaError) -> [FormatOffer] {
        try check("VIDIOC_ENUM_FMT")
        return camera.fixture.offers
    }

    func controls() throws(MediaError) -> [DeviceControl] {
        try check("VIDIOC_QUERY_EXT_CTRL")
        return camera.fixture.deviceControls
    }

    func value(of control: DeviceControl) throws(MediaError) -> Int {
        try check("VIDIOC_G_EXT_CTRLS")
        return control.kind == .button ? 0 : camera.value(of: control, at: camera.clock.now)
    }

    func set(_ control: DeviceControl, to value: Int) throws(MediaError) {
        try check("VIDIOC_S_EXT_CTRLS")
        func refused(_ number: Int32) -> MediaError {
            MediaError("VIDIOC_S_EXT_CTRLS", number, on: path, control: "\(control.name)=\(value)")
        }
        if let fault = camera.fault(.refusedControl), fault.control ?? control.name == control.name {
            throw refused(EIO)
        }
        if control.isReadOnly { throw refused(EACCES) }
        let isListed = control.items.contains { $0.value == value }
        if control.kind == .menu || control.kind == .integerMenu, !isListed {
            throw refused(EINVAL)
        }
        camera.set(control, to: min(max(value, control.minimum), control.maximum))
    }

    /// Throws the error of a device that is gone.
    private func check(_ call: String) throws(MediaError) {
        precondition(isOpen, "a closed device cannot be used")
        // A device that was plugged in again is another one.
        let isGone = !camera.faults(.unplugged, after: opened, until: camera.clock.now).isEmpty
        if isGone { throw MediaError(call, ENODEV, on: path) }
    }

    // MARK: Capture

    func configure(_ mode: CaptureMode) throws(MediaError) -> CaptureLayout {
        precondition(stream == nil, "a device that streams cannot be configured")
        try check("VIDIOC_S_FMT")
        if isBusy { throw MediaError("VIDIOC_S_FMT", EBUSY, on: path) }
        let offers = camera.fixture.offers
        // As drivers do: a missing format becomes the first one, a size the nearest.
        let offer = offers.first { $0.format == mode.format } ?? offers[0]
        // One with the wished rate, if several have the size.
        func distance(_ size: FormatOffer.Size) -> (size: Int, rate: Double) {
            let found = size.range.nearest(to: mode.size)
            let rate = mode.rate.flatMap { wish in
                size.rates.nearest(to: wish).map { abs($0.perSecond - wish.perSecond) }
            }
            return (abs(found.width - mode.size.width) + abs(found.height - mode.size.height), rate ?? 0)
        }
        let size = offer.sizes.min { distance($0) < distance($1) }
        let source = camera.faults(.changedSource, after: .zero, until: camera.clock.now).last?.size
        let layout = layout(
            CaptureMode(
                offer.format, source ?? size?.range.nearest(to: mode.size) ?? mode.size,
                mode.rate.flatMap { size?.rates.nearest(to: $0) } ?? Self.usualRate))
        self.layout = layout
        return layout
    }

    private func layout(_ mode: CaptureMode) -> CaptureLayout {
        guard let row = mode.rowBytes else {
            return CaptureLayout(mode, planes: [.init(stride: 0, bytes: mode.size.pixels * 2)])
        }
        let alignment = max(camera.fixture.quirks?.strideAlignment ?? 1, 1)
        let stride = (row + alignment - 1) / alignment * alignment
        let plain = CaptureLayout(mode, planes: [.init(stride: stride, bytes: 0)])
        // Padding at the end of the last row, too.
        let bytes = ((plain.leastBytes[0] - 1) / stride + 1) * stride
        return CaptureLayout(mode, planes: [.init(stride: stride, bytes: bytes)])
    }

    func start(buffers: Int) throws(MediaError) {
        precondition(stream == nil, "the device streams already")
        guard let layout else { preconditionFailure("a device is configured before it starts") }
        try check("VIDIOC_REQBUFS")
        if isBusy { throw MediaError("VIDIOC_REQBUFS", EBUSY, on: path) }
        if camera.fault(.noBandwidth) != nil { throw MediaError("VIDIOC_STREAMON", ENOSPC, on: path) }
        stream = FixtureStream(camera, layout, buffers: max(buffers, 1), rate: layout.mode.rate ?? Self.usualRate)
        camera.streams(in: ObjectIdentifier(self))
        reported = events(camera.clock.now).count
    }

    func next(within timeout: Duration) throws(MediaError) -> CaptureItem? {
        guard let stream else { preconditionFailure("a device starts before its frames are read") }
        let end = camera.clock.now + timeout
        while true {
            let now = camera.clock.now
            try check("VIDIOC_DQBUF")
            if waker.isAwake {
                waker.silence()
                return .woken
            }
            if camera.fault(.failing) != nil || !camera.faults(.failing, after: stream.start, until: now).isEmpty {
                throw MediaError("VIDIOC_DQBUF", EIO, on: path)
            }
            if let event = nextEvent(now) { return event }
            stream.capture(until: now)
            if let frame = stream.next(now) { return .frame(frame) }
            if now >= end { return nil }
            let next = [end, stream.nextArrival, camera.nextChange(after: now)].compactMap(\.self).min() ?? end
            camera.clock.wait(until: min(next, end), waker)
        }
    }

    private func events(_ now: Duration) -> [CameraFixture.Fault] {
        camera.faults(.changedControl, .changedSource, after: .zero, until: now)
    }

    /// The first event that was not reported.
    private func nextEvent(_ now: Duration) -> CaptureItem? {
        guard let fault = events(now).dropFirst(reported).first else { return nil }
        reported += 1
        if fault.fault == .changedSource { return .sourceChanged }
        let control = camera.fixture.deviceControls.first { $0.name == fault.control }
        return control.map { .controlChanged(identifier: $0.identifier, value: fault.value) }
    }

    func stop() {
        stream = nil
        camera.ends(in: ObjectIdentifier(self))
    }

    func close() {
        stop()
        isOpen = false
    }
}
