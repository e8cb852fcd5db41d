import Cameras

/// The alternate settings of any descriptors are sorted, and reserve nothing negative.
@Sendable func fuzzUSBDescriptors(_ bytes: [UInt8]) {
    for speed in [12, 480, 5000] {
        let settings = alternateSettings(in: bytes, speed: speed)
        precondition(settings.allSatisfy { $0.bytesPerSecond >= 0 })
        precondition(zip(settings, settings.dropFirst()).allSatisfy { $0.bytesPerSecond <= $1.bytesPerSecond })
    }
}

/// A recorded camera that is read can be written, read again, and opened.
@Sendable func fuzzCameraFixture(_ bytes: [UInt8]) {
    guard let fixture = try? CameraFixture(json: String(decoding: bytes, as: UTF8.self)) else { return }
    guard let again = try? CameraFixture(json: fixture.json) else { preconditionFailure("it cannot be read again") }
    precondition(again == fixture)
    guard let device = try? FixtureCamera(fixture, on: CaptureClock()).open("fixture") else { return }
    _ = try? device.formats()
    for control in (try? device.controls()) ?? [] {
        _ = try? device.value(of: control)
        _ = control.takes(control.standard)
    }
    device.close()
    play(fixture)
}

/// The longest frame that is worth the time, in bytes.
private let longestFrame = 1 << 20

/// Plays a second of a recorded camera on virtual time, and judges its frames.
private func play(_ fixture: CameraFixture) {
    let clock = CaptureClock()
    let wish = CaptureWish(
        FrameSize(64, 48), FrameRate(30), formats: ["I420", "NV12", "YUY2", "MJPG", "GRAY8", "RGB"])
    guard let device = try? FixtureCamera(fixture, on: clock).open("fixture") else { return }
    defer { device.close() }
    guard let offers = try? device.formats(), let mode = try? wish.choose(from: offers, of: "fixture") else { return }
    guard let layout = try? device.configure(mode), layout.problem == nil,
        layout.planes.allSatisfy({ $0.bytes <= longestFrame }), (try? device.start(buffers: 4)) != nil
    else { return }
    var check = FrameCheck(layout)
    var watch = RateWatch(layout)
    var last: Duration?
    for _ in 0..<50 {
        guard case .frame(let frame)? = try? device.next(within: .milliseconds(20)) else { continue }
        guard case .usable(let time) = check.judge(frame, at: clock.now) else { continue }
        precondition(last.map { $0 < time } ?? true)
        precondition(zip(frame.lengths, layout.leastBytes).allSatisfy { $0 >= $1 })
        last = time
        _ = watch.captured(at: time, number: frame.sequence)
    }
}
