import Cameras
import Foundation
import MediaGraph
import MediaNodes
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
                "    publish sends 1280x720 at 30 frames/s. It leaves out 1920x1080, which costs about 2.3 times as much to "
                    + "encode: --size 1920x1080 asks for it",
            ])
    }

    @Test func `a camera of libcamera is printed with its modes, or with the reason for which there are none`() throws {
        func lines(_ modes: String) throws -> [String] {
            let json = #"{"name": "libcamera:imx219", "modes": [\#(modes)]}"#
            return CameraListing.lines(of: try JSONDecoder().decode(LibraryCamera.self, from: Data(json.utf8)))
        }
        let last = "    publish sends 1280x720 at 30 frames/s; --size and --fps ask for more"
        #expect(
            try lines(#""NV12 640x480, 1920x1080""#)
                == ["  libcamera:imx219  (libcamera)", "    NV12 640x480, 1920x1080", last])
        #expect(
            try lines("")
                == [
                    "  libcamera:imx219  (libcamera)",
                    "    libcamera tells the modes of this camera only when it is opened", last,
                ])
    }

    private typealias Offered = (FourCC, [(FrameSize, Int)])

    private func choice(_ offers: Offered..., size: FrameSize? = nil, fps: Int? = nil, mayPass: Bool = true)
        -> CaptureChoice?
    {
        CaptureChoice(
            of: offers.map { format, sizes in
                FormatOffer(format, sizes: sizes.map { .init(SizeRange($0.0), .list([FrameRate($0.1)])) })
            }, size: size, framesPerSecond: fps, mayPass: mayPass)
    }

    private static let (vga, hd, fullHD) = (FrameSize(640, 480), FrameSize(1280, 720), FrameSize(1920, 1080))

    @Test func `publish takes the best mode of a camera, and devices says what is missing`() {
        let small = choice(("YUYV", [(FrameSize(321, 241), 30), (Self.hd, 5)]))
        #expect(
            small?.sentence
                == "publish sends 320x240 at 30 frames/s: no readable mode has 1280x720 at 30. It leaves out 1280x720, "
                + "which has only 5 frames/s: --size 1280x720 --fps 5 asks for it")
        let slow = choice(("MJPG", [(Self.hd, 15)]))
        #expect(slow?.sentence == "publish sends 1280x720 at 15 frames/s: no readable mode has 1280x720 at 30")
        #expect(choice(("MJPG", [(Self.fullHD, 15)]), fps: 10)?.framesPerSecond == 10)
        #expect(choice(("MJPG", [(Self.hd, 30)]), fps: 15)?.sentence == "publish sends 1280x720 at 15 frames/s")
        #expect(choice(("YUYV", [(Self.hd, 30)]))?.passing == nil)
        // A raw Bayer format.
        #expect(choice(("BA81", [(Self.hd, 30)])) == nil)
    }

    @Test func `what has to be encoded is 720p, and the larger mode is named with its cost and its option`() {
        let found = choice(("YUYV", [(Self.hd, 30), (Self.fullHD, 30)]))
        #expect(
            found?.sentence
                == "publish sends 1280x720 at 30 frames/s. It leaves out 1920x1080, which costs about 2.3 times as much to "
                + "encode: --size 1920x1080 asks for it")
        let asked = choice(("YUYV", [(Self.hd, 30), (Self.fullHD, 30)]), size: Self.fullHD)
        #expect(asked?.sentence == "publish sends 1920x1080 at 30 frames/s")
    }

    @Test func `a size beyond every mode is said to be scaled up, with the size that is not`() {
        let webcam: Offered = ("YUYV", [(Self.vga, 30), (Self.fullHD, 5)])
        #expect(
            choice(webcam, size: Self.hd)?.enlargement(to: Self.hd)
                == "publish scales the camera's frames up to 1280x720: its best mode is 640x480 at 30 frames/s. "
                + "--size 640x480 sends them as they are")
        #expect(choice(webcam, size: Self.vga)?.enlargement(to: Self.vga) == nil)
        #expect(choice(webcam, size: Self.hd, fps: 5)?.enlargement(to: Self.hd) == nil)
        #expect(choice(("H264", [(Self.hd, 30)]), webcam, size: Self.hd)?.enlargement(to: Self.hd) == nil)
    }

    @Test func `publish says that it scales up, before anything is sent`() throws {
        let folder = TemporaryFolder()
        let camera = try CameraFile.write([], to: folder)
        let result = try CommandLineTool.run(
            [
                "publish", "--room", "r", "--camera", camera, "--mic", "none", "--size", "128x96", "--fps", "15",
            ], folder: folder)
        #expect(result.error.contains("publish scales the camera's frames up to 128x96: "), "\(result.error)")
    }

    @Test func `publish names the missing plugin of libcamera, and promises nothing`() throws {
        guard !Devices.hasLibCamera else { return }
        let result = try CommandLineTool.run(
            ["publish", "--room", "r", "--camera", "libcamera", "--mic", "none"], folder: TemporaryFolder())
        #expect(result.status == 1 && !result.error.contains("publish sends"), "\(result.error)")
        #expect(result.error.contains("plugin for libcamera is not installed"), "\(result.error)")
    }

    @Test func `devices describes a recorded camera like a real one, and nothing else`() throws {
        let folder = TemporaryFolder()
        let camera = try CameraFile.writeAdjustable(to: folder)
        let result = try CommandLineTool.run(["devices", camera], folder: folder)
        #expect(
            result.output.split(separator: "\n").map(String.init) == [
                "Cameras", "  \(camera)  Webcam  (\(camera))", "    YUYV  64x48  30 frames/s",
                "    publish sends 64x48 at 30 frames/s: no readable mode has 1280x720 at 30",
                "    brightness  0 to 255  default 128", "    contrast    0 to 9    default 3",
            ], "\(result.error)")
        let missing = try CommandLineTool.run(["devices", "fixture:none.json"], folder: folder)
        #expect(missing.status == 1 && missing.error.contains("none.json"), "\(missing.error)")
        let wrong = try CommandLineTool.run(["devices", camera, "--nope"], folder: folder)
        #expect(wrong.status == 2 && wrong.error.contains("Unknown option '--nope'"), "\(wrong.error)")
        let report = try CommandLineTool.run(["devices", "list", camera, "--json"], folder: folder)
        let whole = try #require(
            try JSONSerialization.jsonObject(with: Data(report.output.utf8)) as? [String: Any])
        #expect((whole["cameras"] as? [[String: Any]])?.map { $0["name"] as? String } == [camera])
    }

    @Test func `the camera's own H.264 passes in up to 1080p, because nothing is encoded`() {
        let webcam: [Offered] = [
            ("H264", [(Self.hd, 30), (Self.fullHD, 30)]), ("YUYV", [(Self.vga, 30), (Self.hd, 30)]),
        ]
        let found = choice(webcam[0], webcam[1])
        #expect(found?.sentence == "publish sends 1920x1080 at 30 frames/s: the camera's own H.264")
        let encoded = choice(webcam[0], webcam[1], mayPass: false)
        #expect(encoded?.sentence == "publish sends 1280x720 at 30 frames/s")
        #expect(
            found?.sentence(or: encoded)
                == "publish sends 1920x1080 at 30 frames/s: the camera's own H.264, or 1280x720 encoded here if its "
                + "profile is not baseline")
        // A rate that the command line states is the highest one.
        #expect(choice(webcam[0], webcam[1], fps: 15)?.passing == nil)
        #expect(choice(webcam[0], webcam[1], size: Self.hd)?.passing?.size == Self.hd)
        #expect(choice(webcam[0], webcam[1], size: Self.vga)?.passing == nil)
    }

    @Test func `H.264 that is smaller or slower than the encoded video does not pass`() {
        let raw: Offered = ("MJPG", [(Self.hd, 30)])
        for worse in [(Self.vga, 30), (Self.fullHD, 15)] {
            let found = choice(("H264", [worse]), raw)
            #expect(found?.passing == nil && found?.width == 1280)
        }
        let large = choice(("H264", [(FrameSize(3840, 2160), 30), (Self.fullHD, 30)]), raw)
        #expect(
            large?.sentence
                == "publish sends 1920x1080 at 30 frames/s: the camera's own H.264. It leaves out 3840x2160, which not every "
                + "viewer decodes in time: --size 3840x2160 asks for it")
        let alone = choice(("H264", [(Self.fullHD, 60)]))
        #expect(alone?.passing?.size == Self.fullHD && alone?.framesPerSecond == 60)
        #expect(choice(("H264", [(Self.fullHD, 60)]), mayPass: false)?.width == 1280)
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

    /// They are positions of the SDK, too.
    @Test(arguments: ["front", "back", "porch"])
    func `a camera is published by its bound name`(name: String) throws {
        let config = ["XDG_CONFIG_HOME": folder.path]
        let bound = try CommandLineTool.run(
            ["devices", "bind", name, "serial:NONE"], folder: folder, environment: config)
        #expect(bound.status == 0 && bound.output.contains("connectlive devices unbind \(name)"), "\(bound)")
        #expect(bound.error.contains("serial:NONE is not plugged in"), "\(bound)")
        let result = try CommandLineTool.run(
            ["publish", "--room", "r", "--camera", name, "--seconds", "1"], folder: folder, environment: config)
        #expect(result.status == 1 && result.error.contains("serial:NONE"), "\(result.error)")
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

    @Test func `a name of a camera that is there is bound without a warning, and removed`() throws {
        func devices(_ arguments: String...) throws -> RunningProgram.Result {
            try CommandLineTool.run(
                ["devices"] + arguments, folder: folder, environment: ["XDG_CONFIG_HOME": folder.path])
        }
        let bound = try devices("bind", "porch", "fixture:\(file)")
        #expect(bound.status == 0 && bound.error.isEmpty, "\(bound)")
        #expect(try devices("unbind", "porch").status == 0)
        #expect(try !devices("list").output.contains("porch"))
    }

    @Test func `a name is bound to a lasting name of the camera`() throws {
        typealias Bind = DevicesCommand.BindCommand
        let none = ControlValues()
        #expect(try Bind.lasting("serial:7C3F", with: none, of: system) == ("serial:7C3F", false))
        #expect(
            try Bind.lasting("fixture:\(folder.path)/x/../camera.json", with: none, of: system) == (
                "fixture:\(file)", true
            ))
        #expect(try Bind.lasting("1-1.2", with: none, of: system) == ("1-1.2", false))
        for camera in ["nothing", "/dev/video97", "auto", "", "fixture:\(folder.path)/nothing.json"] {
            #expect(throws: MediaError.self) { try Bind.lasting(camera, with: none, of: system) }
        }
    }
}
