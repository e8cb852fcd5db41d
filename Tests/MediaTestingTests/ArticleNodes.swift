import MediaAuthoring
import MediaTesting
import Testing

// The code of the articles in Sources/Media/MediaAuthoring/MediaAuthoring.docc, which quote it from here.

struct Grey: Capturer {
    static let summary = "Grey frames"
    @Setting("Brightness", in: 16...235) var luma = 100

    func format() -> PictureFormat { PictureFormat(width: 640, height: 360, framesPerSecond: 30) }

    func capture(into output: CaptureOutput<PictureFormat>) async throws {
        while true { try await output.draw { frame in frame.fill(luma: UInt8(luma)) } }
    }
}

/// A device that has an image every 20 ms.
final class Device: Sendable {
    struct Image {
        let age: Duration

        func copy(to frame: inout MutableVideoFrame) { frame.fill(luma: 90) }
    }

    func nextImage(timeout: Duration) async throws -> Image? {
        try await Task.sleep(for: .milliseconds(20))
        return Image(age: .milliseconds(5))
    }
}

struct DeviceFrames: Capturer {
    static let summary = "Frames of a device"

    func format() -> PictureFormat { PictureFormat(width: 640, height: 360, framesPerSecond: 50) }

    func capture(into output: CaptureOutput<PictureFormat>) async throws {
        let device = Device()
        while !Task.isCancelled {
            guard let image = try await device.nextImage(timeout: .milliseconds(40)) else { continue }
            try output.send(at: output.now - image.age) { frame in image.copy(to: &frame) }
        }
    }
}

@Test func `grey frames keep their promises`() async {
    let report = await Conformance.test(Grey.init, nil, Conformance.Options(seconds: 0.5, reopenings: 5))
    #expect(report.isPassed, "\(report)")
}

@Test func `frames of a device with a pace of its own are sent with their times`() async {
    let checks: Set = ["formats", "timestamps", "cancellation"]
    let report = await Conformance.test(DeviceFrames.init, nil, Conformance.Options(seconds: 0.5, checks: checks))
    #expect(report.isPassed, "\(report)")
}
