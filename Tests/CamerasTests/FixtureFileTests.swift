import Cameras
import Foundation
import MediaGraph
import TestSupport
import Testing

@Suite struct FixtureFileTests {
    private static let smallest =
        #"{"version": 1, "driver": "d", "card": "c", "bus": "b", "formats": [{"format": "YUYV", "sizes": [SIZE]}]REST}"#

    private func read(_ size: String = #"{"size": "64x48", "rates": ["30"]}"#, _ rest: String = "") throws
        -> CameraFixture
    {
        try CameraFixture(
            json: Self.smallest.replacingOccurrences(of: "SIZE", with: size)
                .replacingOccurrences(of: "REST", with: rest))
    }

    @Test(arguments: [
        (#"{"size": "64", "rates": []}"#, "", "formats[0].sizes[0].size"),
        (#"{"rates": ["30"]}"#, "", "formats[0].sizes[0]: it needs size, or from and to"),
        (#"{"from": "9x9", "to": "8x8"}"#, "", "formats[0].sizes[0]: from 9x9 is larger than to 8x8"),
        (#"{"size": "64x48", "rates": ["fast"]}"#, "", "is not a rate in frames/s such as 30"),
        (#"{"size": "64x48"}"#, #", "faults": [{"fault": "explodes", "at": 1}]"#, "faults[0].fault"),
        (#"{"size": "64x48"}"#, #", "faults": [{"fault": "late", "at": 1}]"#, "late needs by"),
        (#"{"size": "64x48"}"#, #", "faults": [{"fault": "silent", "at": 2, "until": 1}]"#, "later than at"),
        (#"{"size": "64x48"}"#, #", "faults": [{"fault": "silent"}]"#, "faults[0].at is missing"),
        (
            #"{"size": "64x48"}"#, #", "faults": [{"fault": "silent", "at": 1e300}]"#,
            "faults[0].at is more than 1000000000 seconds"
        ),
        (#"{"size": "64x48", "rates": ["2000"]}"#, "", "above 1000"),
        (#"{"size": "64x48"}"#, #", "timing": {"firstFrame": -1}"#, "firstFrame"),
        (#"{"size": "64x48"}"#, #", "quirks": {"strideAlignment": 9223372036854775807}"#, "strideAlignment"),
        (#"{"size": "64x48"}"#, #", "quirks": {"strideAlignment": 0}"#, "strideAlignment"),
        ("nonsense", "", "it is not JSON at line 1, column 97"),
        (#"{"size": "64x48"}], "#, "", "it is not JSON"),
        (
            #"{"size": "64x48"}"#, #", "timing": {"firstFrame": 1e308}"#,
            "firstFrame is not from 0 to 1000000000 seconds"
        ),
        (#"{"size": "64x48"}"#, #", "timing": {"firstFrame": "0"}"#, "timing.firstFrame is not a number"),
        (#"{"size": "64x48"}"#, #", "controls": {}"#, "controls is not a list"),
        (#"{"size": "64x48"}"#, #", "frames": [null]"#, "frames[0] is null"),
        (#"{"size": 64}"#, "", "formats[0].sizes[0].size is not a text"),
        (#"{"size": "20000x48"}"#, "", "with sides of 1 to 16384"),
        (
            #"{"size": "64x48"}"#, #", "faults": [{"fault": "silent", "at": 1, "untill": 2}]"#,
            "faults[0].untill is not a field"
        ),
        (#"{"size": "64x48"}"#, #", "faults": [{"fault": "silent", "at": 1, "by": 2}]"#, "faults[0]: silent has no by"),
        (
            #"{"size": "64x48"}"#, #", "faults": [{"fault": "refusedControl", "at": 1, "control": "hue"}]"#,
            "faults[0].control: the camera has no control hue"
        ),
        (#"{"size": "64x48", "slowest": "30", "fastest": "5"}"#, "", "sizes[0]: slowest 30 is above fastest 5"),
        (#"{"size": "64x48", "slowest": "30"}"#, "", "sizes[0]: it needs both slowest and fastest"),
        (#"{"size": "64x48", "to": "64x48"}"#, "", "sizes[0]: it needs size, or from and to"),
        (
            #"{"size": "64x48"}"#, #", "frames": [{"format": "NV12", "size": "64x48", "data": ""}]"#,
            "frames[0]: the camera has no NV12"
        ),
        (#"{"size": "64x48"}"#, #", "frames": [{"format": "YUYV", "size": "9x9", "data": ""}]"#, "has no YUYV in 9x9"),
        (
            #"{"size": "64x48"}"#, controls(#""kind": "int""#),
            #"controls[0].kind: "int" is not a kind of control: integer"#
        ),
        (#"{"size": "64x48"}"#, controls(#""kind": "integer""#), "controls[0].minimum is missing"),
        (
            #"{"size": "64x48"}"#, controls(#""kind": "integer", "minimum": 0, "maximum": 9, "standard": 10"#),
            "controls[0].standard 10 is not from 0 to 9"
        ),
        (
            #"{"size": "64x48"}"#,
            controls(#""kind": "menu", "minimum": 0, "maximum": 9, "standard": 0, "items": {"x": "y"}"#),
            #"controls[0].items: "x" is not a whole number"#
        ),
        (
            #"{"size": "64x48"}"#,
            controls(#""kind": "button"}, {"identifier": 1, "title": "Other", "kind": "button""#),
            "controls[0].identifier: several controls have 1"
        ),
        (#"{"size": "64x48"}"#, controls(#""kind": "button", "identifier": 99999999999"#), "a number is too large"),
    ])
    func `an unreadable file is refused with the place`(size: String, rest: String, words: String) {
        let refused = #expect(throws: MediaError.self) { try read(size, rest) }
        #expect(refused?.code == "camera.fixture")
        #expect(refused?.message.contains(words) == true, "\(refused as Any)")
    }

    private static func controls(_ fields: String) -> String {
        fields.contains("identifier\": 9")
            ? #", "controls": [{"title": "Gain", \#(fields)}]"#
            : #", "controls": [{"identifier": 1, "title": "Gain", \#(fields)}]"#
    }

    @Test func `a file's error names the file, and a button needs no limits`() throws {
        let folder = TemporaryFolder()
        try "{}".write(toFile: folder.file("camera.json"), atomically: true, encoding: .utf8)
        let error = #expect(throws: MediaError.self) { try CameraFixture(file: folder.file("camera.json")) }
        #expect(error?.message.contains("The recorded camera \(folder.file("camera.json")) is unreadable: ") == true)
        let fixture = try read(#"{"size": "64x48"}"#, Self.controls(#""kind": "button""#))
        let device = try FixtureCamera(fixture, on: CaptureClock()).open("f")
        try device.set(try #require(try device.controls().first), to: 1)
    }

    @Test func `texts of a device cannot control a terminal`() throws {
        var fixture = try read(
            #"{"size": "64x48"}"#, #", "controls": [{"identifier": 1, "title": "Gain\u0007", "kind": "button"}]"#)
        fixture.card = "evil\u{1b}[31m\nname" + String(repeating: "x", count: 1000)
        let device = try FixtureCamera(fixture, on: CaptureClock()).open("f")
        #expect(
            device.information.card.hasPrefix("evil\u{fffd}[31m\u{fffd}name") && device.information.card.count == 129)
        #expect(try device.controls().map(\.title) == ["Gain\u{fffd}"])
    }

    @Test func `a text that is written is read again`() throws {
        let fixture = try FixtureTests.webcam(
            .init(.unplugged, at: 1, until: 2), .init(.slow, at: 3, rate: FrameRate(15, per: 2)))
        #expect(try CameraFixture(json: fixture.json) == fixture)
    }

    @Test func `sizes on a grid and rates in a range are offered`() throws {
        let fixture = try read(
            #"{"from": "16x16", "to": "64x48", "step": "16x8", "slowest": "1", "fastest": "60"}"#)
        let offers = try FixtureCamera(fixture, on: CaptureClock()).open("f").formats()
        #expect(
            offers[0].sizes == [
                .init(
                    SizeRange(FrameSize(16, 16), FrameSize(64, 48), step: FrameSize(16, 8)),
                    .range(slowest: FrameRate(1), fastest: FrameRate(60)))
            ])
    }

    @Test func `a recording plays as the camera that was recorded`() throws {
        var original = try FixtureTests.webcam(
            more: #", "quirks": {"strideAlignment": 256, "countsNothing": true}, "timing": {"firstFrame": 0.5}"#)
        original.faults = nil
        let clock = CaptureClock()
        let device = try FixtureCamera(original, on: clock).open("original")
        let recorded = try CameraFixture(
            recording: device, in: FixtureTests.Stand.mode, frames: 3, on: clock)
        #expect(recorded.quirks == original.quirks)
        #expect(recorded.timing == original.timing)
        #expect(recorded.controls == original.controls)
        #expect(recorded.frames?.count == 3)
        #expect(recorded.frames?.map { $0.data[0] } == [0, 1, 2])
        let again = try CameraFixture(json: recorded.json)
        #expect(again == recorded)
        func play(_ fixture: CameraFixture) throws -> [[UInt8]] {
            let stand = try FixtureTests.Stand(fixture)
            return try (0..<3).map { _ in try stand.frame().copy() }
        }
        #expect(try play(again) == play(original))
        let copy = try FixtureCamera(again, on: clock).open("copy")
        let source = try FixtureCamera(original, on: clock).open("source")
        #expect(try copy.formats() == source.formats())
        #expect(try copy.controls() == source.controls())
    }

    @Test func `what a file cannot say is left out of a recording, which is read again`() throws {
        let device = try DescribedDevice([
            FormatOffer(
                "YUYV",
                sizes: [
                    .init(
                        SizeRange(FrameSize(0, 0), FrameSize(65_535, 65_535)),
                        .list([FrameRate(2000), FrameRate(30)])),
                    .init(
                        SizeRange(FrameSize(64, 48)), .range(slowest: FrameRate(5), fastest: FrameRate(5000))),
                    .init(SizeRange(FrameSize(20_000, 48)), .list([])),
                ]),
            FormatOffer(FourCC(code: 0x0038_5942), sizes: []), FormatOffer(FourCC(code: 0x2020_2020), sizes: []),
        ])
        let recorded = try CameraFixture(recording: device, in: FixtureTests.Stand.mode, frames: 0)
        #expect(try CameraFixture(json: recorded.json) == recorded)
        #expect(recorded.formats.map(\.format) == ["YUYV"])
        let sizes = recorded.formats[0].sizes
        #expect(sizes.map(\.to) == [FrameSize(16_384, 16_384), nil])
        #expect(sizes[0].rates == [FrameRate(30)] && sizes[1].fastest == FrameRate(1000))
        // A camera of which nothing is left cannot be recorded.
        let error = #expect(throws: MediaError.self) {
            try CameraFixture(recording: try DescribedDevice([]), in: FixtureTests.Stand.mode, frames: 0)
        }
        #expect(error?.code == "camera.fixture")
    }

    @Test func `frames in several pieces of memory are recorded as one, and play`() throws {
        let mode = CaptureMode("NM12", FrameSize(64, 48), FrameRate(30))
        let offers = [FormatOffer("NM12", sizes: [.init(SizeRange(mode.size), .list([FrameRate(30)]))])]
        // Rows of 96 bytes, and padding behind the first piece.
        let pieces = [[UInt8](repeating: 16, count: 96 * 50), [UInt8](repeating: 128, count: 96 * 24)]
        let device = try DescribedDevice(
            offers, CaptureLayout(mode, planes: pieces.map { .init(stride: 96, bytes: $0.count) }), pieces)
        let recorded = try CameraFixture(recording: device, in: mode, frames: 1)
        #expect(recorded.frames?.first?.data == pieces[0].prefix(96 * 48) + pieces[1])
        #expect(recorded.quirks?.strideAlignment == 96)
        let clock = CaptureClock()
        let played = try FixtureCamera(recorded, on: clock).open("f")
        var check = FrameCheck(try played.configure(mode))
        try played.start(buffers: 2)
        guard case .frame(let frame) = try played.next(within: .seconds(1)) else {
            Issue.record("no frame")
            return
        }
        #expect(check.judge(frame, at: clock.now) != .damaged)
    }

    @Test func `damaged frames are not recorded, and a camera that gives no others is reported`() throws {
        let clock = CaptureClock()
        func record(_ fault: CameraFixture.Fault, _ damaged: (Int) -> Void = { _ in }) throws -> CameraFixture {
            let device = try FixtureCamera(try FixtureTests.webcam(fault), on: clock).open("f")
            return try CameraFixture(
                recording: device, in: FixtureTests.Stand.mode, frames: 3, of: "front", on: clock, damaged: damaged)
        }
        var damaged = 0
        let recorded = try record(.init(.corrupt, at: 0, until: 0.09)) { damaged = $0 }
        #expect(damaged == 2 && recorded.frames?.map { $0.data[0] } == [2, 3, 4])
        let error = #expect(throws: MediaError.self) { try record(.init(.cut, at: 0)) }
        #expect(error?.code == "camera.silent")
        #expect(error?.message.contains("The camera front delivered 0 of 3 frames; ") == true)
        #expect(error?.message.contains("were damaged") == true)
    }

    /// The start of a JPEG of 128x96 as far as its scan.
    private static let jpeg: [UInt8] = [
        0xff, 0xd8, 0xff, 0xc0, 0, 11, 8, 0, 96, 0, 128, 1, 1, 0x11, 0, 0xff, 0xda, 0, 2,
    ]

    /// Records frames of MJPG that come in turn.
    private func record(
        _ frames: [[UInt8]], keeping count: Int, _ damaged: (Int) -> Void = { _ in }
    ) throws -> CameraFixture {
        var camera = try FixtureTests.webcam()
        camera.frames = frames.map { .init(format: "MJPG", size: FrameSize(128, 96), data: $0) }
        let clock = CaptureClock()
        let device = try FixtureCamera(camera, on: clock).open("f")
        return try CameraFixture(
            recording: device, in: CaptureMode("MJPG", FrameSize(128, 96), FrameRate(30)), frames: count, of: "front",
            on: clock, damaged: damaged)
    }

    @Test func `JPEGs without a picture, a start or the end that others have are not recorded`() throws {
        let (end, empty): ([UInt8], [UInt8]) = ([0xff, 0xd9], [0xff, 0xd8, 1, 2, 3, 4, 0xff, 0xd9])
        let good = (0..<2).map { Self.jpeg + [7, UInt8($0)] + end }
        var damaged = 0
        let frames = [empty, Self.jpeg + [9], good[0], Array(good[0].dropFirst(2)), Self.jpeg + [9], good[1]]
        let recorded = try record(frames, keeping: 2) { damaged = $0 }
        #expect(recorded.frames?.map(\.data) == good)
        #expect(damaged == 4)
        let error = #expect(throws: MediaError.self) { try record([empty], keeping: 1) }
        #expect(error?.code == "camera.silent")
        #expect(error?.message.contains("were damaged. Check its cable and hub, or choose another format") == true)
    }

    @Test func `a camera whose JPEGs never have an end is recorded`() throws {
        let frames = (0..<2).map { Self.jpeg + [7, UInt8($0)] }
        var damaged = 0
        #expect(try record(frames, keeping: 2) { damaged = $0 }.frames?.map(\.data) == frames)
        #expect(damaged == 0)
    }

    @Test func `a mode that the driver does not list is recorded with it`() throws {
        let (listed, chosen) = (FrameSize(640, 480), CaptureMode("GREY", FrameSize(8, 8), FrameRate(30)))
        let bytes = [[UInt8](repeating: 0, count: 64)]
        let device = try DescribedDevice(
            [FormatOffer("GREY", sizes: [.init(SizeRange(listed), .list([FrameRate(30)]))])],
            CaptureLayout(chosen, planes: [.init(stride: 8, bytes: 64)]), bytes)
        let recorded = try CameraFixture(recording: device, in: chosen, frames: 1)
        #expect(recorded.formats[0].sizes.map(\.size) == [listed, chosen.size])
    }

    @Test func `a camera that is silent while it is recorded is reported`() throws {
        let clock = CaptureClock()
        let device = try FixtureCamera(try FixtureTests.webcam(.init(.silent, at: 0.05)), on: clock).open("f")
        let error = #expect(throws: MediaError.self) {
            try CameraFixture(recording: device, in: FixtureTests.Stand.mode, frames: 3, on: clock)
        }
        #expect(error?.code == "camera.silent")
        #expect(error?.message.contains("1 of 3 frames") == true)
    }

    @Test func `the page has a file that plays`() throws {
        let page = try Checkout.text("docs/camera-fixtures.md")
        let blocks = page.components(separatedBy: "```json\n").dropFirst().compactMap {
            $0.components(separatedBy: "```").first
        }
        #expect(!blocks.isEmpty)
        for block in blocks { _ = try CameraFixture(json: block) }
        for kind in CameraFixture.Fault.Kind.allCases {
            #expect(page.contains("| `\(kind.rawValue)` |"), "\(kind) is not on the page")
        }
    }
}

/// A device with any description, which captures the same frame again and again, or nothing.
private final class DescribedDevice: CaptureDevice {
    let information = CaptureInformation(driver: "d", card: "c", bus: "b")
    let waker: Waker
    let isTaken = false
    let isStreamedHere = false
    private let offers: [FormatOffer]
    private let layout: CaptureLayout?
    private let pieces: [[UInt8]]

    init(_ offers: [FormatOffer], _ layout: CaptureLayout? = nil, _ pieces: [[UInt8]] = []) throws {
        waker = try Waker("described")
        (self.offers, self.layout, self.pieces) = (offers, layout, pieces)
    }

    func formats() throws(MediaError) -> [FormatOffer] { offers }
    func controls() throws(MediaError) -> [DeviceControl] { [] }
    func value(of control: DeviceControl) throws(MediaError) -> Int { 0 }
    func set(_ control: DeviceControl, to value: Int) throws(MediaError) {}
    func configure(_ mode: CaptureMode) throws(MediaError) -> CaptureLayout {
        layout ?? CaptureLayout(mode, planes: [])
    }
    func start(buffers: Int) throws(MediaError) {}
    func next(within timeout: Duration) throws(MediaError) -> CaptureItem? {
        pieces.isEmpty
            ? nil
            : .frame(CapturedFrame(Planes(pieces), lengths: pieces.map(\.count), timestamp: .seconds(1), sequence: 0))
    }
    func stop() {}
    func close() {}
}
