import MediaAuthoring
import MediaTesting
import QRCode
import Testing

@Test func `the picture is one byte a pixel, so that nothing is computed for colour`() throws {
    let code = QRCodeCapturer()
    try code.begin(with: ["size": 256])
    #expect(code.format() == PictureFormat(.gray8, width: 256, height: 256, framesPerSecond: 10))
}

@Test func `it conforms to what graphs rely on, and refuses a text that is too long in words`() async {
    let report = await Conformance.test(QRCodeCapturer.init)
    #expect(report.isPassed, "\(report)")
    #expect(report["failure-while-starting"]?.verdict == .passed && report["errors"]?.verdict == .passed, "\(report)")
}
