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
}
