import Cameras
import Glibc
import MediaGraph
import Testing

@Suite struct FixtureTests {
    /// A small webcam, with faults.
    static func webcam(_ faults: CameraFixture.Fault..., more: String = "") throws -> CameraFixture {
        var fixture = try CameraFixture(
            json: """
                {
                  "version": 1, "driver": "uvcvideo", "card": "Webcam", "bus": "usb-0000:00:14.0-1",
                  "formats": [
                    {"format": "YUYV", "sizes": [
                      {"size": "64x48", "rates": ["30", "10"]}, {"size": "128x96", "rates": ["15/2"]}]},
                    {"format": "MJPG", "sizes": [{"size": "128x96", "rates": ["30"]}]}
                  ],
                  "controls": [
                    {"identifier": 9963776, "title": "Brightness", "kind": "integer", "minimum": 0, "maximum": 255,
                     "standard": 128},
                    {"identifier": 10094851, "title": "Exposure, Dynamic Framerate", "kind": "boolean", "minimum": 0,
                     "maximum": 1, "standard": 1},
                    {"identifier": 10094849, "title": "Auto Exposure", "kind": "menu", "minimum": 0, "maximum": 3,
                     "standard": 3, "items": {"1": "Manual Mode", "3": "Aperture Priority Mode"}}
                  ]\(more)
                }
                """)
        fixture.faults = faults
        return fixture
    }

    @Test func `a size that is listed twice gets the wished rate`() throws {
        let fixture = try CameraFixture(
            json: """
                {"version": 1, "driver": "uvcvideo", "card": "Webcam", "bus": "usb-0000:00:14.0-1", "formats": [
                  {"format": "YUYV", "sizes": [
                    {"size": "64x48", "rates": ["30", "15"]},
                    {"from": "16x16", "to": "128x96", "step": "2x2", "slowest": "1", "fastest": "60"}]}]}
                """)
        let device = try FixtureCamera(fixture, on: CaptureClock()).open("fixture")
        defer { device.close() }
        for rate in [15, 20, 30, 50] {
            let mode = CaptureMode("YUYV", FrameSize(64, 48), FrameRate(rate))
            #expect(try device.configure(mode).mode == mode)
        }
    }

    /// A recorded camera that streams in virtual time.
    struct Stand {
        let clock = CaptureClock()
        let camera: FixtureCamera
        let device: any CaptureDevice
        static let mode = CaptureMode("YUYV", FrameSize(64, 48), FrameRate(30))

        init(_ fixture: CameraFixture, buffers: Int = 4) throws {
            camera = FixtureCamera(fixture, on: clock)
            device = try camera.open("fixture")
            _ = try device.configure(Self.mode)
            try device.start(buffers: buffers)
        }

        func frame() throws -> CapturedFrame {
            guard case .frame(let frame) = try device.next(within: .seconds(1)) else {
                throw Missing()
            }
            return frame
        }

        struct Missing: Error {}

        func control(_ name: String) throws -> DeviceControl {
            try #require(try device.controls().first { $0.name == name })
        }

        var seconds: Double { (clock.now - .seconds(1000)) / .seconds(1) }
    }

    private func near(_ one: Double, _ other: Double) -> Bool { abs(one - other) < 0.001 }

    @Test func `frames come at their rate, in virtual time, with their numbers`() throws {
        let stand = try Stand(try Self.webcam())
        for number in 0..<300 {
            let frame = try stand.frame()
            #expect(frame.sequence == UInt32(number))
            #expect(frame.timestamp == stand.clock.now)
            #expect(frame.copy().prefix(2) == [UInt8(number & 255), UInt8(number >> 8)])
            #expect(frame.lengths == [64 * 48 * 2])
        }
        #expect(near(stand.seconds, 10))
    }

    @Test func `a wish is rounded as drivers do, and rows are padded`() throws {
        let camera = FixtureCamera(
            try Self.webcam(more: ", \"quirks\": {\"strideAlignment\": 256}"), on: CaptureClock())
        let device = try camera.open("fixture")
        let layout = try device.configure(CaptureMode("NV12", FrameSize(1000, 1000), FrameRate(60)))
        #expect(layout.mode == CaptureMode("YUYV", FrameSize(128, 96), FrameRate(15, per: 2)))
        #expect(layout.planes == [.init(stride: 256, bytes: 256 * 96)])
        let small = try device.configure(Stand.mode)
        #expect(small.planes == [.init(stride: 256, bytes: 256 * 48)])
    }

    @Test func `held frames stay unchanged, and frames without a buffer are lost and missing in the numbers`() throws {
        let stand = try Stand(try Self.webcam(), buffers: 2)
        var held = [try stand.frame(), try stand.frame()]
        let bytes = held.map { $0.copy() }
        #expect(try stand.device.next(within: .seconds(1)) == nil)
        #expect(held.map { $0.copy() } == bytes)
        held = []
        #expect(try stand.frame().sequence == 32)
    }

    @Test func `a reader that is late finds as many frames as there are buffers`() throws {
        let stand = try Stand(try Self.webcam(), buffers: 3)
        stand.clock.advance(by: .seconds(1))
        #expect(try (0..<4).map { _ in try stand.frame().sequence } == [0, 1, 2, 30])
    }

    @Test func `an unplugged camera is lost, absent, and back with its standard values`() throws {
        let stand = try Stand(try Self.webcam(.init(.unplugged, at: 2, until: 5)))
        try stand.device.set(stand.control("brightness"), to: 7)
        #expect(try stand.device.value(of: stand.control("brightness")) == 7)
        let brightness = try stand.control("brightness")
        let lost = #expect(throws: MediaError.self) { while true { _ = try stand.device.next(within: .seconds(9)) } }
        #expect(lost?.code == "camera.lost")
        #expect(lost?.message.contains("unplugged") == true)
        #expect(near(stand.seconds, 2))
        #expect(#expect(throws: MediaError.self) { try stand.camera.open("fixture") }?.code == "camera.absent")
        stand.clock.advance(by: .seconds(3))
        // The open device stays lost: the camera that is back is another device.
        #expect(throws: MediaError.self) { try stand.device.controls() }
        let again = try stand.camera.open("fixture")
        #expect(try again.value(of: brightness) == 128)
        _ = try again.configure(Stand.mode)
        try again.start(buffers: 2)
        guard case .frame(let frame) = try again.next(within: .seconds(1)) else {
            Issue.record("no frame")
            return
        }
        #expect(frame.sequence == 0)
    }

    @Test func `a silent camera gives no frame and no error`() throws {
        let stand = try Stand(try Self.webcam(.init(.silent, at: 0.48, until: 4)))
        for _ in 0..<14 { _ = try stand.frame() }
        #expect(try stand.device.next(within: .seconds(3)) == nil)
        #expect(near(stand.seconds, 14.0 / 30 + 3))
        #expect(try stand.frame().sequence == 14)
    }

    @Test func `a late frame carries the time of its capture`() throws {
        let stand = try Stand(try Self.webcam(.init(.late, at: 0, by: 0.25)))
        let frame = try stand.frame()
        #expect(near(try #require(frame.timestamp) / .seconds(1) - 1000, 1.0 / 30))
        #expect(near(stand.seconds, 0.25 + 1.0 / 30))
    }

    @Test func `a busy camera and a full bus refuse, and later accept`() throws {
        let clock = CaptureClock()
        let fixture = try Self.webcam(.init(.busy, at: 0, until: 1), .init(.noBandwidth, at: 0, until: 2))
        let device = try FixtureCamera(fixture, on: clock).open("fixture")
        #expect(
            #expect(throws: MediaError.self) { try device.configure(Stand.mode) }?.code == "camera.busy")
        clock.advance(by: .seconds(1))
        _ = try device.configure(Stand.mode)
        #expect(#expect(throws: MediaError.self) { try device.start(buffers: 2) }?.code == "camera.bandwidth")
        clock.advance(by: .seconds(1))
        try device.start(buffers: 2)
        #expect(try device.next(within: .seconds(1)) != nil)
    }

    @Test func `corrupt frames are marked, and cut ones are short`() throws {
        let stand = try Stand(
            try Self.webcam(.init(.corrupt, at: 0.89, until: 0.99), .init(.cut, at: 1.89, until: 1.99)))
        let frames = try (0..<60).map { _ in
            let frame = try stand.frame()
            return (frame.isCorrupt, frame.lengths[0])
        }
        #expect(frames.indices.filter { frames[$0].0 } == [26, 27, 28])
        #expect(frames.indices.filter { frames[$0].1 == 64 * 48 } == [56, 57, 58])
    }

    @Test func `timestamps jump and run back, while frames arrive as before`() throws {
        let stand = try Stand(
            try Self.webcam(.init(.shiftedTime, at: 1, until: 2, by: 100), .init(.shiftedTime, at: 2, by: -5)))
        let times = try (0..<75).map { _ in
            try #require(try stand.frame().timestamp) / .seconds(1) - 1000
        }
        #expect(near(times[15], 16.0 / 30))
        #expect(near(times[45], 46.0 / 30 + 100))
        #expect(near(times[70], 71.0 / 30 - 5))
        #expect(near(stand.seconds, 2.5))
    }

    @Test func `a rate that halves in the dark is prevented by its control`() throws {
        let dark = CameraFixture.Fault(
            .slow, at: 1, rate: FrameRate(15), control: "exposure_dynamic_framerate", value: 0)
        let stand = try Stand(try Self.webcam(dark))
        for _ in 0..<60 { _ = try stand.frame() }
        // A second at 30, and the rest at 15.
        #expect(abs(stand.seconds - 3) < 0.04)
        try stand.device.set(stand.control("exposure_dynamic_framerate"), to: 0)
        // One frame was due at the old rate.
        _ = try stand.frame()
        let start = stand.seconds
        for _ in 0..<30 { _ = try stand.frame() }
        #expect(near(stand.seconds - start, 1))
    }

    @Test func `a stream that fails ends with the cause, and starts again once the fault is over`() throws {
        let stand = try Stand(try Self.webcam(.init(.failing, at: 1, until: 2)))
        for _ in 0..<2 {
            let lost = #expect(throws: MediaError.self) { for _ in 0..<100 { _ = try stand.frame() } }
            #expect(lost?.message.contains("EIO") == true)
            stand.device.stop()
            _ = try stand.device.configure(Stand.mode)
            try stand.device.start(buffers: 2)
        }
        stand.device.stop()
        stand.clock.advance(by: .seconds(1))
        _ = try stand.device.configure(Stand.mode)
        try stand.device.start(buffers: 2)
        #expect(try stand.frame().sequence == 0)
    }

    @Test func `lost frames are missing in the numbers`() throws {
        let stand = try Stand(try Self.webcam(.init(.dropping, at: 0.09, until: 0.21)))
        #expect(try (0..<4).map { _ in try stand.frame().sequence } == [0, 1, 6, 7])
    }

    @Test func `several events at one time come in the order of the file, and all of them`() throws {
        let stand = try Stand(
            try Self.webcam(
                .init(.changedControl, at: 2, control: "brightness", value: 3),
                .init(.changedControl, at: 1, control: "brightness", value: 2),
                .init(.changedControl, at: 1, control: "brightness", value: 1),
                .init(.changedSource, at: 1, size: FrameSize(16, 12)),
                .init(.changedControl, at: 1, control: "auto_exposure", value: 1)))
        var events: [String] = []
        while events.count < 5 {
            switch try stand.device.next(within: .seconds(2)) {
            case .controlChanged(_, let value): events.append("\(value ?? -1)")
            case .sourceChanged: events.append("source")
            default: break
            }
        }
        #expect(events == ["2", "1", "source", "1", "3"])
        #expect(try stand.device.value(of: stand.control("brightness")) == 3)
    }

    @Test func `a control is refused, or changed by the driver with an event`() throws {
        let stand = try Stand(
            try Self.webcam(
                .init(.refusedControl, at: 0, control: "auto_exposure"),
                .init(.changedControl, at: 1, control: "brightness", value: 50)))
        #expect(throws: MediaError.self) { try stand.device.set(stand.control("auto_exposure"), to: 1) }
        try stand.device.set(stand.control("brightness"), to: 999)
        #expect(try stand.device.value(of: stand.control("brightness")) == 255)
        var value: Int?
        while value == nil {
            if case .controlChanged(9_963_776, let changed) = try stand.device.next(within: .seconds(2)) {
                value = changed
            }
        }
        #expect(value == 50)
        #expect(near(stand.seconds, 1))
        #expect(try stand.device.value(of: stand.control("brightness")) == 50)
        guard case .frame = try stand.device.next(within: .seconds(1)) else {
            Issue.record("an event is reported once")
            return
        }
    }

    @Test func `a source that changes is reported once, and the next configuration has its size`() throws {
        let stand = try Stand(try Self.webcam(.init(.changedSource, at: 0.98, size: FrameSize(32, 24))))
        var frames = 0
        reading: while true {
            switch try stand.device.next(within: .seconds(2)) {
            case .frame: frames += 1
            case .sourceChanged: break reading
            default: Issue.record("neither")
            }
        }
        #expect(frames == 29)
        #expect(try stand.frame().isCorrupt)
        stand.device.stop()
        #expect(try stand.device.configure(Stand.mode).mode.size == FrameSize(32, 24))
        try stand.device.start(buffers: 2)
        #expect(try !stand.frame().isCorrupt)
    }

    @Test func `a waker ends a wait, in virtual time and in real time`() throws {
        let stand = try Stand(try Self.webcam(.init(.silent, at: 0)))
        stand.device.waker.wake()
        guard case .woken = try stand.device.next(within: .seconds(5)) else {
            Issue.record("not woken")
            return
        }
        #expect(try stand.device.next(within: .seconds(5)) == nil)
        let device = try FixtureCamera(try Self.webcam(.init(.silent, at: 0))).open("fixture")
        _ = try device.configure(Stand.mode)
        try device.start(buffers: 2)
        device.waker.wake()
        guard case .woken = try device.next(within: .seconds(600)) else {
            Issue.record("not woken")
            return
        }
    }

    @Test func `another path has no camera`() throws {
        let backend = FixtureBackend(["front": FixtureCamera(try Self.webcam(), on: CaptureClock())])
        #expect(try backend.open("front").information.card == "Webcam")
        #expect(#expect(throws: MediaError.self) { try backend.open("back") }?.code == "camera.absent")
    }
}
