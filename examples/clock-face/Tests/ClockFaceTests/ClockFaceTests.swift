import ClockFace
import MediaAuthoring
import MediaTesting
import Testing

@Test func `the picture is square, and its size and rate are the settings'`() throws {
    let clock = ClockFaceCapturer()
    try clock.begin(with: ["height": 240, "fps": 10])
    #expect(clock.format() == PictureFormat(width: 240, height: 240, framesPerSecond: 10))
}

@Test func `a size that no clock has is refused`() {
    #expect(throws: MediaError.self) { try ClockFaceCapturer().begin(with: ["height": 5000]) }
}

@Test func `it conforms to what graphs rely on`() async {
    let report = await Conformance.test(ClockFaceCapturer.init)
    #expect(report.isPassed, "\(report)")
}
