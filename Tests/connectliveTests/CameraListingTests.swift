import Cameras
import Foundation
import MediaGraph
import TestSupport
import Testing

@testable import connectlive

@Suite struct CameraListingTests {
    private let usb = USBPlace(
        kernelPort: "1-1.2", port: "usb-0000:00:14.0-1.2", serial: "A1", bus: 1, speed: 480,
        alternates: [AlternateSetting(1, bytesPerSecond: 8_000_000), AlternateSetting(2, bytesPerSecond: 24_000_000)])

    @Test func `a camera is printed with its name, its modes with their cost, and its controls`() {
        let place = CameraPlace(name: "serial:A1", path: "/dev/video0", model: "Webcam", usb: usb)
        let listing = CameraListing(
            place,
            [
                FormatOffer(
                    "YUYV",
                    sizes: [
                        .init(SizeRange(FrameSize(640, 480)), .list([FrameRate(15), FrameRate(30)])),
                        .init(SizeRange(FrameSize(1280, 720)), .list([FrameRate(60), FrameRate(10)])),
                    ]),
                FormatOffer(
                    "MJPG",
                    sizes: [
                        .init(
                            SizeRange(FrameSize(16, 16), FrameSize(1280, 720), step: FrameSize(2, 2)),
                            .range(slowest: FrameRate(1), fastest: FrameRate(30000, per: 1001)))
                    ]),
            ],
            [
                DeviceControl(1, "Brightness", .integer, 0...255, step: 5, standard: 128),
                DeviceControl(
                    2, "Auto Exposure", .menu, 0...3, standard: 3, items: [.init(1, "Manual"), .init(3, "Automatic")]),
                DeviceControl(
                    0x009a_0902, "Exposure Time, Absolute", .integer, 3...2047, standard: 250, isInactive: true),
                DeviceControl(4, "Reset", .button, 0...0, standard: 0),
            ])
        #expect(
            listing.lines == [
                "  serial:A1  Webcam  (/dev/video0, USB bus 1, 480 Mbit/s)",
                "    YUYV  640x480                      30, 15 frames/s      24.9 MB/s of the bus",
                "    YUYV  1280x720                     60, 10 frames/s      24.9 MB/s of the bus",
                "    MJPG  16x16 to 1280x720, step 2x2  1 to 29.97 frames/s  about 24.9 MB/s of the bus",
                "    publish sends 1280x720 at 30 frames/s",
                "    brightness              0 to 255, step 5       default 128",
                "    auto_exposure           1 Manual, 3 Automatic  default 3",
                "    exposure_time_absolute  3 to 2047 (100 µs)     default 250  inactive: another control overrides it",
                "    reset                                                       button",
            ])
    }

    @Test func `a sensor of a board has no cost, and a mode without a list of rates has none`() {
        let place = CameraPlace(name: "model:imx219", path: "/dev/video0", model: "imx219", usb: nil)
        let listing = CameraListing(
            place, [FormatOffer("UYVY", sizes: [.init(SizeRange(FrameSize(1920, 1080)), .list([]))])], [])
        #expect(
            listing.lines == [
                "  model:imx219  imx219  (/dev/video0)", "    UYVY  1920x1080",
                "    publish sends 1280x720 at 30 frames/s",
            ])
    }

    @Test func `publish takes the best mode of a camera, and devices says what is missing`() {
        func best(_ format: FourCC, _ sizes: [(FrameSize, Int)], fps: Int = 30) -> CaptureChoice? {
            CaptureChoice(
                of: [FormatOffer(format, sizes: sizes.map { .init(SizeRange($0.0), .list([FrameRate($0.1)])) })],
                framesPerSecond: fps)
        }
        let small = best("YUYV", [(FrameSize(321, 241), 30), (FrameSize(1280, 720), 5)])
        #expect(small?.sentence == "publish sends 320x240 at 30 frames/s: no readable mode has 1280x720 at 30")
        let slow = best("MJPG", [(FrameSize(1920, 1080), 15)])
        #expect(slow?.sentence == "publish sends 1280x720 at 15 frames/s: no readable mode has 1280x720 at 30")
        #expect(best("MJPG", [(FrameSize(1920, 1080), 15)], fps: 10)?.framesPerSecond == 10)
        let encoding = best("H264", [(FrameSize(1920, 1080), 60)])
        #expect(encoding?.passesH264 == true && encoding?.width == 1920)
        #expect(best("YUYV", [(FrameSize(1280, 720), 30)])?.passesH264 == false)
        // A raw Bayer format.
        #expect(best("BA81", [(FrameSize(1280, 720), 30)]) == nil)
    }
}

/// `camera record` and `devices bind`, with a recorded camera in the place of a real one.
@Suite struct CameraCommandTests {
    private let folder = TemporaryFolder()
    private let system: CameraSystem
    private let file: String

    init() throws {
        file = folder.file("camera.json")
        try """
        {"version": 1, "driver": "uvcvideo", "card": "Webcam", "bus": "usb-1",
         "formats": [{"format": "YUYV", "sizes": [{"size": "64x48", "rates": ["30"]}]}],
         "timing": {"firstFrame": 0.5}}
        """.write(toFile: file, atomically: true, encoding: .utf8)
        system = CameraSystem(V4L2Backend(), tree: DeviceTree(root: folder.path), on: CaptureClock())
    }

    @Test func `a recorded camera is a camera, with the frames and the timing of the first one`() throws {
        let (recorded, summary) = try CameraCommand.RecordCommand.record(
            "fixture:\(file)", of: system,
            .init(size: FrameSize(640, 480), rate: FrameRate(20), format: "YUYV", frames: 3))
        #expect(summary == "3 frames of YUYV 64x48 at 30 frames/s")
        #expect(recorded.card == "Webcam" && recorded.frames?.count == 3)
        #expect(recorded.timing?.firstFrame == 0.5)
        let copy = folder.file("copy.json")
        try recorded.json.write(toFile: copy, atomically: true, encoding: .utf8)
        #expect(try system.find("fixture:\(copy)").model == "Webcam")
    }

    @Test func `a name is bound to a lasting name of the camera`() throws {
        typealias Bind = DevicesCommand.BindCommand
        let none = ControlValues()
        #expect(try Bind.lasting("serial:7C3F", with: none, of: system) == "serial:7C3F")
        #expect(
            try Bind.lasting("fixture:\(folder.path)/x/../camera.json", with: none, of: system) == "fixture:\(file)")
        #expect(try Bind.lasting("1-1.2", with: none, of: system) == "1-1.2")
        for camera in ["nothing", "/dev/video97", "auto", "", "fixture:\(folder.path)/nothing.json"] {
            #expect(throws: MediaError.self) { try Bind.lasting(camera, with: none, of: system) }
        }
    }
}
