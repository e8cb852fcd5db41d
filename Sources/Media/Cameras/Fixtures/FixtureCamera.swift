internal import Glibc
package import MediaGraph
import Synchronization

/// Recorded cameras in the place of the kernel's, by their paths.
package final class FixtureBackend: CaptureBackend {
    private let cameras: [String: FixtureCamera]

    package init(_ cameras: [String: FixtureCamera]) {
        self.cameras = cameras
    }

    package func open(_ path: String) throws(MediaError) -> any CaptureDevice {
        guard let camera = cameras[path] else { throw MediaError("open", ENOENT, on: path) }
        return try camera.open(path)
    }
}

/// A recorded camera on a clock. It is there from the moment on that it is made, and its faults count from then.
package final class FixtureCamera: Sendable {
    let fixture: CameraFixture
    let clock: CaptureClock
    private let start: Duration
    /// The values that were set, with the time; a replug undoes them.
    private let values = Mutex<[UInt32: (value: Int, time: Duration)]>([:])
    /// The opening that streams, and since when.
    private let streaming = Mutex<(device: ObjectIdentifier, since: Duration)?>(nil)
    private let started = Mutex(0)

    package init(_ fixture: CameraFixture, on clock: CaptureClock = .monotonic) {
        self.fixture = fixture
        self.clock = clock
        start = clock.now
    }

    /// - Throws: `camera.absent` while the camera is unplugged.
    package func open(_ path: String) throws(MediaError) -> any CaptureDevice {
        if fault(.unplugged) != nil { throw MediaError("open", ENOENT, on: path) }
        return try FixtureDevice(self, path)
    }

    // MARK: Faults

    func begin(of fault: CameraFixture.Fault) -> Duration { start + .seconds(fault.at) }

    private func end(of fault: CameraFixture.Fault) -> Duration? { fault.until.map { start + .seconds($0) } }

    /// The first fault of a kind at a time, which is now without one.
    func fault(_ kind: CameraFixture.Fault.Kind, at time: Duration? = nil) -> CameraFixture.Fault? {
        let time = time ?? clock.now
        return fixture.faults?.first { fault in
            fault.fault == kind && begin(of: fault) <= time && end(of: fault).map { time < $0 } ?? true
        }
    }

    /// The faults of some kinds that began after one time and until another, in the order of time and then of the file.
    func faults(_ kinds: CameraFixture.Fault.Kind..., after first: Duration, until last: Duration)
        -> [CameraFixture.Fault]
    {
        (fixture.faults ?? []).filter { kinds.contains($0.fault) && begin(of: $0) > first && begin(of: $0) <= last }
            .sorted { $0.at < $1.at }
    }

    /// The next time at which a fault begins or ends.
    func nextChange(after time: Duration) -> Duration? {
        (fixture.faults ?? []).flatMap { [begin(of: $0), end(of: $0)].compactMap(\.self) }.filter { $0 > time }.min()
    }

    // MARK: Streams

    /// How many streams have begun, for tests.
    package var streams: Int { started.withLock { $0 } }

    /// Notes that an opening streams.
    func streams(in device: ObjectIdentifier) {
        started.withLock { $0 += 1 }
        streaming.withLock { [now = clock.now] in $0 = (device, now) }
    }

    func ends(in device: ObjectIdentifier) {
        streaming.withLock { if $0?.device == device { $0 = nil } }
    }

    /// Whether another opening than `device` streams. One of before a replug does not.
    func isStreamed(beside device: ObjectIdentifier?) -> Bool {
        guard let stream = streaming.withLock({ $0 }), stream.device != device else { return false }
        return faults(.unplugged, after: stream.since, until: clock.now).isEmpty
    }

    // MARK: Controls

    func value(of control: DeviceControl, at time: Duration) -> Int {
        let set = values.withLock { $0[control.identifier] }
        let replugs = faults(.unplugged, after: set?.time ?? .zero, until: time)
        var result = replugs.isEmpty ? set?.value ?? control.standard : control.standard
        let since = max(set?.time ?? start - .seconds(1), replugs.last.map(begin) ?? start - .seconds(1))
        for change in faults(.changedControl, after: since, until: time) where change.control == control.name {
            result = change.value ?? result
        }
        return result
    }

    func set(_ control: DeviceControl, to value: Int) {
        let time = clock.now
        values.withLock { $0[control.identifier] = (value, time) }
    }

    /// When a keyframe was last requested.
    var keyframeRequest: Duration? { values.withLock { $0[CameraSession.forcesKeyframe]?.time } }

    /// The rate at a time, of a stream with another one.
    func rate(at time: Duration, of rate: FrameRate) -> FrameRate {
        guard let slow = fault(.slow, at: time), let less = slow.rate, less < rate else { return rate }
        if let name = slow.control, let control = fixture.deviceControls.first(where: { $0.name == name }),
            value(of: control, at: time) == slow.value
        {
            return rate
        }
        return less
    }
}
