import Cameras
import Dispatch
import MediaGraph
import Testing
import TestSupport

@testable import MediaNodes

extension MediaNodesTests {
    @Suite struct CapturerTests {
        private func format(_ pixelFormat: String, _ width: Int, _ height: Int, _ rates: [Double]) -> CameraFormat {
            CameraFormat(pixelFormat: pixelFormat, width: width, height: height, framesPerSecond: rates)
        }

        private func offer(_ format: FourCC, _ width: Int, _ height: Int, _ rates: [Int]) -> FormatOffer {
            FormatOffer(
                format,
                sizes: [.init(SizeRange(FrameSize(width, height)), .list(rates.map { FrameRate($0) }))])
        }

        private func best(_ offers: [FormatOffer], _ wish: CameraWish) -> CaptureMode? {
            wish.capture.ranked(offers).first
        }

        @Test("The caps of a mode have its format, size and exact rate")
        func modeCaps() {
            let size = FrameSize(640, 480)
            #expect(
                CaptureMode("YUYV", size, FrameRate(24)).caps
                    == "video/x-raw,format=YUY2,width=640,height=480,framerate=24/1")
            #expect(
                CaptureMode("MJPG", size, FrameRate(30000, per: 1001)).caps
                    == "image/jpeg,width=640,height=480,framerate=30000/1001")
            #expect(CaptureMode("H264", size, FrameRate(30)).caps.contains("stream-format=byte-stream"))
        }

        @Test("JPEG is chosen if raw frames are too slow, and raw frames if they are fast enough")
        func jpegMode() {
            let offers = [offer("YUYV", 1280, 720, [10]), offer("MJPG", 1280, 720, [30])]
            #expect(best(offers, CameraWish(width: 1280, height: 720, framesPerSecond: 30))?.format == "MJPG")
            #expect(best(offers, CameraWish(width: 1280, height: 720, framesPerSecond: 10))?.format == "YUYV")
        }

        @Test("A frame of another shape is cropped in the middle, not distorted")
        func crop() {
            func crop(_ width: Int, _ height: Int, to shape: (Int, Int)) -> [String: SettingValue]? {
                CaptureMode("YUYV", FrameSize(width, height), FrameRate(30)).crop(toShapeOf: shape.0, shape.1)
            }
            #expect(crop(640, 480, to: (640, 480)) == nil)
            #expect(crop(1280, 720, to: (320, 180)) == nil)
            #expect(crop(1366, 768, to: (1280, 720)) == nil)
            #expect(crop(640, 360, to: (320, 240)) == ["left": 80, "right": 80, "top": 0, "bottom": 0])
            #expect(crop(640, 480, to: (320, 180)) == ["left": 0, "right": 0, "top": 60, "bottom": 60])
        }

        @Test("A camera with only grey frames is readable, and unknown formats are ignored")
        func greyMode() {
            let wish = CameraWish(width: 640, height: 480, framesPerSecond: 20)
            #expect(best([offer("GREY", 640, 480, [30])], wish)?.format == "GREY")
            #expect(best([offer("ABCD", 640, 480, [30])], wish) == nil)
            // H.264 is decoded if there is nothing else.
            #expect(best([offer("H264", 640, 480, [30]), offer("ABCD", 640, 480, [30])], wish)?.format == "H264")
        }

        @Test("A camera's own H.264 or JPEG passes through on request; raw avoids JPEG")
        func ownEncoding() {
            let offers = [
                offer("YUYV", 640, 480, [30]), offer("MJPG", 1280, 720, [30]), offer("H264", 1280, 720, [15, 30]),
                offer("H264", 640, 480, [30]),
            ]
            func mode(_ wanted: Camera.Format, _ delivered: String = "I420") -> String? {
                let wish = CameraWish(width: 1280, height: 720, framesPerSecond: 30, format: wanted)
                return best(offers, wish.delivering(delivered))?.description
            }
            #expect(mode(.h264, "h264") == "H264 1280x720 at 30 frames/s")
            #expect(mode(.mjpeg, "mjpeg") == "MJPG 1280x720 at 30 frames/s")
            #expect(mode(.raw) == "YUYV 640x480 at 30 frames/s")
            #expect(mode(.auto) == "MJPG 1280x720 at 30 frames/s")
            #expect(mode(.auto, "YUY2") == "MJPG 1280x720 at 30 frames/s")
        }

        @Test("The outputs that a camera could give are its best mode in each format")
        func outputs() throws {
            let offers = [
                offer("H264", 1280, 720, [30]), offer("MJPG", 1280, 720, [30]), offer("YUYV", 640, 480, [30]),
                offer("NV12", 1280, 720, [15]), offer("ABCD", 640, 480, [30]),
            ]
            let wish = CameraWish(width: 1280, height: 720, framesPerSecond: 30)
            let outputs = try wish.outputs(of: offers, camera: "it")
            #expect(
                outputs.map(\.format) == [
                    .rawVideo("I420", width: 1280, height: 720, framesPerSecond: 30),
                    .rawVideo("NV12", width: 1280, height: 720, framesPerSecond: 15),
                    .rawVideo("YUY2", width: 1280, height: 720, framesPerSecond: 30),
                    MediaFormat(.encodedVideo, "mjpeg", width: 1280, height: 720, framesPerSecond: 30),
                    MediaFormat(.encodedVideo, "h264", width: 1280, height: 720, framesPerSecond: 30),
                ])
            #expect(outputs[0].mode.format == "MJPG")
            // A rate that is too low is worse than a size that is too small.
            let shortfalls = outputs.map { $0.shortfall(for: wish) }
            #expect(
                shortfalls[0] == 0 && shortfalls[3...] == [0, 0] && shortfalls[1] > shortfalls[2] && shortfalls[2] > 1)
        }

        /// A machine with a test's fake cameras.
        private struct Machine: PlanEnvironment {
            var choice: CameraChoice?
            var absence = MediaError(code: MediaError.Code.cameraAbsent, message: "")
            func hasElement(_ factory: String) -> Bool { true }
            func canOpen(_ factory: String) -> Bool { true }
            func package(ofElement factory: String) -> String { "" }
            func camera(_ device: String) throws(MediaError) -> CameraChoice {
                guard let choice else { throw absence }
                return choice
            }
            func file(_ path: String) throws(MediaError) -> MediaFileInfo { throw MediaFile.notFound(path) }
            func windowSink() -> String? { nil }
            func soundSink() -> String? { nil }
            func soundSource() -> String? { nil }
            func secondsPerFrame(_ element: ElementPlan, _ format: MediaFormat) -> Double { 0 }
        }

        /// Without formats, there is no camera.
        private func planned(
            _ settings: [String: SettingValue], _ formats: [CameraFormat]?, _ absence: MediaError? = nil
        ) throws -> NodePlan {
            var machine = Machine()
            if let formats {
                let camera = CameraDevice(path: "/dev/video2", name: "Camera", formats: formats)
                machine.choice = (camera, ["/dev/video0 (Other) is used by another program"])
            }
            if let absence { machine.absence = absence }
            let node = Node("camera", settings: settings)
            let viewer = Demand([.init("view.in", Port("in", [.rawVideo], encodings: ["I420"]))])
            return try CameraNode.plan(
                NodeRequest(
                    node, CameraNode.kind, usedOutputs: ["video"], demands: ["video": viewer], environment: machine))
        }

        @Test("The plan lists the chosen mode with its reasons, and the rejected ones")
        func words() throws {
            let formats = [
                format("YUY2", 640, 480, [30]), format("YUY2", 1280, 720, [10]), format("MJPG", 1280, 720, [30]),
                format("H264", 1280, 720, [30]),
            ]
            let plan = try planned(["width": 1280, "height": 720, "fps": 30], formats)
            #expect(plan.notes.contains { $0.contains("image/jpeg,width=1280") && $0.contains("/dev/video2") })
            #expect(plan.passedOver.contains { $0.contains("/dev/video0") })
            #expect(plan.passedOver.contains("YUY2 640x480 at 30 frames/s: further from the requested size and rate"))
            #expect(
                plan.passedOver.contains(
                    "mjpeg 1280x720 at 30 frames/s: the same work, but fewer consumers accept it unchanged"))
            #expect(plan.passedOver.contains { $0.hasPrefix("h264 1280x720 at 30 frames/s: the same work") })
        }

        @Test("A camera's frames are mirrored only on request")
        func mirror() throws {
            let formats = [format("YUY2", 640, 480, [30])]
            func flips(_ settings: [String: SettingValue]) throws -> Bool {
                try #require(try planned(settings, formats).device).elements.contains { $0.factory == "videoflip" }
            }
            #expect(try !flips([:]))
            #expect(try flips(["mirror": true]))
            #expect(Node.camera().settings["mirror"] ?? false == false)
        }

        @Test("H.264 of the camera leaves the node encoded; if it has none, the error lists its formats")
        func planOfEncoded() throws {
            let formats = [format("YUY2", 640, 480, [30]), format("H264", 1280, 720, [30])]
            let plan = try planned(["format": "h264", "width": 1280, "height": 720, "fps": 30], formats)
            #expect(plan.formats["video"]?.encoding == "h264" && plan.formats["video"]?.kind == .encodedVideo)
            #expect(plan.elements.map(\.factory) == ["appsrc", "h264parse", "capsfilter"])
            let error = #expect(throws: MediaError.self) { try planned(["format": "mjpeg"], formats) }
            #expect(error?.code == "camera.no-mode")
            #expect(error?.message.contains("H264, YUY2") == true)
        }

        @Test("The controls of a node are its own settings, then the others in their order")
        func controls() throws {
            func values(_ settings: [String: SettingValue]) throws -> [String] {
                let node = Node("camera", settings: settings)
                let request = NodeRequest(node, CameraNode.kind, usedOutputs: ["video"], environment: Machine())
                return try ControlValues(of: request).values.map { "\($0.name)=\($0.value)" }
            }
            #expect(try values([:]).isEmpty)
            #expect(
                try values(["controls": "exposure_auto=1,gain=on", "brightness": 20, "hue": -3])
                    == ["brightness=20", "hue=-3", "exposure_auto=1", "gain=1"])
            #expect(CameraNode.kind.setting("brightness")?.isChangeable == true)
        }

        @Test("A camera that is not there is promised as wished, and the plan names it")
        func absentCamera() throws {
            let absent = MediaError(code: MediaError.Code.cameraAbsent, message: "It is not there.")
            let settings: [String: SettingValue] = ["device": "front", "width": 1280, "height": 720, "fps": 30]
            let plan = try planned(settings, nil, absent)
            #expect(plan.formats["video"] == .rawVideo(width: 1280, height: 720, framesPerSecond: 30))
            #expect(plan.elements.map(\.factory) == ["appsrc"] && plan.device?.elements.isEmpty == true)
            let advice = "Without a camera, use a test pattern or a file."
            #expect(plan.notes == ["waits for: front; requested 1280x720 at 30 (It is not there. \(advice))"])
            let there = try planned(settings, [format("YUY2", 1280, 720, [10])])
            #expect(there.elements == plan.elements && there.formats == plan.formats, "the promise is the same")
            #expect(there.device?.waiting == nil && there.device?.elements.first?.factory == "appsrc")
        }

        @Test("A camera that passes its encoding through is promised in it, whether it is there or not")
        func absentEncoder() throws {
            let absent = MediaError(code: MediaError.Code.cameraAbsent, message: "It is not there.")
            for (format, code) in [("h264", "H264"), ("mjpeg", "MJPG")] {
                let settings: [String: SettingValue] = [
                    "format": .text(format), "width": 640, "height": 480, "fps": 30,
                ]
                let plan = try planned(settings, nil, absent)
                #expect(plan.formats["video"]?.description == "\(format) 640x480 at 30 frames/s")
                #expect(plan.device?.elements.isEmpty == true)
                let there = try planned(settings, [self.format(code, 640, 480, [30])])
                #expect(there.elements == plan.elements && there.formats == plan.formats)
                #expect(there.device?.elements.map(\.factory) == ["appsrc"])
            }
        }

        @Test("A camera is not waited for if its loss ends the node, or if it is none")
        func neededCamera() throws {
            let absent = MediaError(code: MediaError.Code.cameraAbsent, message: "It is not there.")
            let other = MediaError(code: MediaError.Code.cameraUnusable, message: "It is not a camera.")
            let needed: [String: SettingValue] = ["away": "end", "device": "/dev/video0"]
            for (settings, error) in [(needed, absent), ([:], other)] {
                let thrown = #expect(throws: MediaError.self) { try planned(settings, nil, error) }
                #expect(thrown?.code == error.code, "\(settings)")
            }
        }

        @Test("A missing control, a rejected value and an invalid list of controls are refused")
        func refusedControls() throws {
            let there = [
                DeviceControl(0, "Brightness", .integer, 0...255, standard: 0),
                DeviceControl(1, "Auto Exposure", .menu, 0...3, standard: 1, items: [.init(1, "1"), .init(3, "3")]),
                DeviceControl(2, "Gain", .integer, 0...9, standard: 0, isReadOnly: true),
            ]
            func refusal(_ text: String) -> String? {
                do throws(MediaError) {
                    try ControlValues(text).check(there, of: "/dev/video2")
                    return nil
                } catch {
                    return error.code == MediaError.Code.cameraControl ? error.message : error.code
                }
            }
            #expect(refusal("brightness=255, auto_exposure=1") == nil)
            #expect(refusal("") == nil)
            #expect(refusal("brightness=256")?.contains("must be from 0 to 255, not 256. Set another value.") == true)
            #expect(refusal("auto_exposure=2")?.contains("must be 1 or 3, not 2. Set another value.") == true)
            #expect(refusal("gain=1")?.contains("is read-only. Leave it out.") == true)
            #expect(
                refusal("hue=1")?.contains("has no control hue, only brightness, auto_exposure. Choose one of these.")
                    == true)
            for text in ["brightness", "brightness=", "=1", "a b=1", "(((", "a=x", "a=1;b=2"] {
                #expect(refusal(text)?.contains("is not a control with a value") == true, "\(text)")
            }
        }

        @Test("A silent device is detected within 2 s, and no sooner")
        func silence() {
            var silence = Silence(limit: 1.5)
            for _ in 0..<20 {
                silence.begin()
                // 0.25 s apart
                let polls = (0..<6).map { _ in silence.poll() }
                #expect(!polls.contains(true))
            }
            let isOver = silence.poll()
            #expect(isOver)
        }

        @Test("A watchdog reports a silent device once")
        func watchdog() async throws {
            let noticed = Collected<ContinuousClock.Instant>()
            let control = DispatchQueue(label: "test")
            let watchdog = Watchdog(limit: 1, control: control) { noticed.append(.now) }
            let last = ContinuousClock.now
            watchdog.feed()
            await eventually("the silence to be noticed") { noticed.count > 0 }
            let delay = try #require(noticed.all.first) - last
            #expect(delay > .seconds(1.2))
            control.sync {}
            #expect(noticed.count == 1)
        }

        @Test("A stalled process does not blame its device")
        func heldUp() async throws {
            let noticed = Collected<ContinuousClock.Instant>()
            let control = DispatchQueue(label: "test")
            let watchdog = Watchdog(limit: 1, control: control) { noticed.append(.now) }
            watchdog.feed()
            // Nothing runs on the queue for longer than the limit; then the device continues.
            control.async { _ = DispatchSemaphore(value: 0).wait(timeout: .now() + 1.5) }
            try await Task.sleep(for: .milliseconds(1550))
            for _ in 0..<10 {
                watchdog.feed()
                try await Task.sleep(for: .milliseconds(50))
            }
            #expect(noticed.count == 0)
            control.sync { watchdog.stop() }
        }

        @Test("Without devices the list is empty, and fast")
        func devices() {
            let start = ContinuousClock.now
            let cameras = Devices.cameras()
            _ = Devices.sound()
            #expect(ContinuousClock.now - start < .seconds(2))
            // If the machine has cameras, each lists a format and can be found as the first.
            #expect(cameras.allSatisfy { !$0.formats.isEmpty })
            #expect(Devices.firstCamera() == cameras.first)
        }

        @Test("Tiles share the window in a grid")
        func tiles() {
            #expect(MixerLayout.tiles(0, width: 1280, height: 720).isEmpty)
            #expect(MixerLayout.tiles(1, width: 1280, height: 720) == [.init(x: 0, y: 0, width: 1280, height: 720)])
            let three = MixerLayout.tiles(3, width: 1280, height: 720)
            #expect(three[2] == .init(x: 0, y: 360, width: 640, height: 360))
            for count in 1...20 {
                let places = MixerLayout.tiles(count, width: 1280, height: 720)
                #expect(places.count == count)
                #expect(places.allSatisfy { $0.x + $0.width <= 1280 && $0.y + $0.height <= 720 })
                #expect(Set(places.map { "\($0.x),\($0.y)" }).count == count)
            }
        }
    }
}
