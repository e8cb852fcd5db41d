import Cameras
import MediaGraph
import Testing

@Suite struct NegotiationTests {
    private static let raw = ["I420", "NV12", "YUY2"]
    private static let all = raw + ["MJPG"]

    /// A usual webcam: raw up to 640x480 at 30 and 720p at 10, JPEG up to 1080p at 30.
    private static let webcam = [
        offer("YUYV", [("320x240", [30, 15]), ("640x480", [30, 15]), ("1280x720", [10, 5])]),
        offer("MJPG", [("640x480", [60, 30]), ("1280x720", [60, 30]), ("1920x1080", [30])]),
        offer("H264", [("1280x720", [30])]),
    ]

    private static func offer(_ format: FourCC, _ sizes: [(String, [Int])]) -> FormatOffer {
        FormatOffer(
            format,
            sizes: sizes.compactMap { text, rates in
                FrameSize(text).map { .init(SizeRange($0), .list(rates.map { FrameRate($0) })) }
            })
    }

    private func chosen(
        _ size: String, _ rate: FrameRate, _ formats: [String] = all, _ offers: [FormatOffer] = webcam,
        isRequired: Bool = false
    ) throws -> String {
        try CaptureWish(#require(FrameSize(size)), rate, formats: formats, isRequired: isRequired)
            .choose(from: offers, of: "front").description
    }

    @Test func `the requested size and rate win, then the cheapest format and the slowest rate`() throws {
        #expect(try chosen("640x480", FrameRate(30)) == "YUYV 640x480 at 30 frames/s")
        #expect(try chosen("640x480", FrameRate(20)) == "YUYV 640x480 at 30 frames/s")
        #expect(try chosen("640x480", FrameRate(50)) == "MJPG 640x480 at 60 frames/s")
        #expect(try chosen("1280x720", FrameRate(30)) == "MJPG 1280x720 at 30 frames/s")
        #expect(try chosen("1280x720", FrameRate(30), ["H264"]) == "H264 1280x720 at 30 frames/s")
    }

    @Test func `the next larger size is better than a nearer smaller one, and the rate is better than both`() throws {
        #expect(try chosen("660x490", FrameRate(30)) == "MJPG 1280x720 at 30 frames/s")
        #expect(try chosen("1280x720", FrameRate(30), Self.raw) == "YUYV 640x480 at 30 frames/s")
        #expect(try chosen("4096x2160", FrameRate(5)) == "MJPG 1920x1080 at 30 frames/s")
        #expect(try chosen("320x240", FrameRate(120)) == "MJPG 640x480 at 60 frames/s")
    }

    @Test func `fractional rates serve whole ones`() throws {
        let offers = [
            FormatOffer(
                "YUYV",
                sizes: [.init(SizeRange(FrameSize(640, 480)), .list([FrameRate(30000, per: 1001), FrameRate(60)]))])
        ]
        #expect(try chosen("640x480", FrameRate(30), Self.all, offers) == "YUYV 640x480 at 29.97 frames/s")
        #expect(
            try chosen("640x480", FrameRate(30), Self.all, offers, isRequired: true) == "YUYV 640x480 at 29.97 frames/s"
        )
    }

    @Test func `a size on a grid and a rate in a range are met exactly`() throws {
        let offers = [
            FormatOffer(
                "NV12",
                sizes: [
                    .init(
                        SizeRange(FrameSize(32, 32), FrameSize(3280, 2464), step: FrameSize(2, 2)),
                        .range(slowest: FrameRate(1), fastest: FrameRate(90)))
                ])
        ]
        #expect(try chosen("1281x720", FrameRate(25), Self.all, offers) == "NV12 1282x720 at 25 frames/s")
        #expect(
            try chosen("1280x720", FrameRate(120), Self.all, offers) == "NV12 1280x720 at 90 frames/s")
    }

    @Test func `a driver that lists no rates is used as it is set`() throws {
        let offers = [FormatOffer("UYVY", sizes: [.init(SizeRange(FrameSize(1920, 1080)), .list([]))])]
        #expect(try chosen("1280x720", FrameRate(30), ["UYVY"], offers, isRequired: true) == "UYVY 1920x1080")
    }

    @Test func `a wish that no mode meets is refused with the nearest three`() throws {
        let refused = #expect(throws: MediaError.self) {
            try chosen("1920x1080", FrameRate(60), isRequired: true)
        }
        #expect(refused?.code == "camera.no-mode")
        #expect(
            refused?.message
                == "The camera front has no mode with 1920x1080 at 60 frames/s. Choose one of the nearest: MJPG 1280x720 "
                + "at 60 frames/s, MJPG 640x480 at 60 frames/s, MJPG 1920x1080 at 30 frames/s.")
        #expect(try chosen("1920x1080", FrameRate(30), isRequired: true) == "MJPG 1920x1080 at 30 frames/s")
    }

    @Test func `a camera without a readable format is refused with the formats that it has`() {
        let refused = #expect(throws: MediaError.self) { try chosen("640x480", FrameRate(30), ["RGB"]) }
        #expect(refused?.message.contains("does not offer RGB, only H264, MJPG, YUY2.") == true)
        let none = #expect(throws: MediaError.self) { try chosen("640x480", FrameRate(30), Self.all, []) }
        #expect(none?.code == "camera.no-mode")
    }

    @Test func `an emulated format and a mode that is listed twice count once, after the real one`() {
        let size = FormatOffer.Size(SizeRange(FrameSize(640, 480)), .list([FrameRate(30)]))
        let offers = [
            FormatOffer("YM12", isEmulated: true, sizes: [size]), FormatOffer("YU12", sizes: [size, size]),
        ]
        let wish = CaptureWish(FrameSize(640, 480), FrameRate(30), formats: ["I420"])
        #expect(wish.ranked(offers) == [CaptureMode("YU12", FrameSize(640, 480), FrameRate(30))])
    }
}
