import Cameras
import Foundation
import TestSupport
import Testing

@testable import MediaGraph
@testable import MediaNodes

/// A machine with one camera, or those of a system, and one encoder of H.264.
private struct Machine: CameraEnvironment {
    /// `FORMAT WIDTHxHEIGHT@RATE`, with a driver's code.
    var offers: String
    var encoder = "x264enc"
    /// Of the camera's H.264. Nil if it delivers no keyframe.
    var parameters: SequenceParameters? = .made()
    var system: CameraSystem?
    var mayCapture = true

    func hasElement(_ factory: String) -> Bool {
        !factory.hasSuffix("enc") || [encoder, "vp8enc", "x264enc", "jpegenc"].contains(factory)
    }
    func canOpen(_ factory: String) -> Bool { true }
    func package(ofElement factory: String) -> String { "" }
    func camera(_ device: String) throws(MediaError) -> CameraChoice {
        (CameraDevice(path: "/dev/video0", name: "Camera", formats: []), [])
    }
    func camera(
        _ device: String, suits: (CameraDevice, [FormatOffer]) throws(MediaError) -> Void
    ) throws(MediaError) -> CameraChoice {
        if let system { return try Devices.choose(device, of: system, suits: suits) }
        let found = try camera(device)
        try suits(found.camera, formats)
        return found
    }
    func deviceControls(_ path: String) -> [DeviceControl]? { nil }
    private var formats: [FormatOffer] {
        offers.split(separator: " ").chunked(by: 2).compactMap { words in
            let mode = words[1].split(separator: "@").map(String.init)
            guard let format = FourCC(text: String(words[0])), let size = FrameSize(mode[0]),
                let rate = FrameRate(mode[1])
            else { return nil }
            return FormatOffer(format, sizes: [.init(SizeRange(size), .list([rate]))])
        }
    }
    func sequenceParameters(of path: String, in mode: CaptureMode) -> SequenceParameters? { parameters }
    func file(_ path: String) throws(MediaError) -> MediaFileInfo { throw MediaFile.notFound(path) }
    func windowSink() -> String? { nil }
    func soundSink() -> String? { nil }
    func soundSource() -> String? { nil }
    func secondsPerFrame(_ element: ElementPlan, _ format: MediaFormat) -> Double { 0 }
}

extension [Substring] {
    fileprivate func chunked(by count: Int) -> [[Substring]] {
        stride(from: 0, to: self.count, by: count).map { Array(self[$0..<Swift.min($0 + count, self.count)]) }
    }
}

extension SequenceParameters {
    /// ITU-T H.264, 7.3.2.1.1. Order 0 permits B-frames, order 2 does not.
    fileprivate static func made(profile: Int = 66, order: Int = 2, level: Int = 31) -> SequenceParameters? {
        var writer = BitWriter()
        writer.append(0x67, bits: 8)
        writer.append(profile, bits: 8)
        writer.append(level, bits: 16)
        writer.append(unsigned: 0)
        if profile == 100 {
            for value in [1, 0, 0] { writer.append(unsigned: value) }
            writer.append(0, bits: 2)
        }
        for value in [0, order] { writer.append(unsigned: value) }
        if order == 0 { writer.append(unsigned: 2) }
        writer.append(unsigned: 1)
        writer.append(false)
        for value in [39, 29] { writer.append(unsigned: value) }
        for flag in [true, false, false, false, true] { writer.append(flag) }
        writer.align(with: false)
        return SequenceParameters(unit: writer.unit)
    }
}

extension MediaNodesTests {
    /// The output of a camera that needs the least work of the whole graph.
    @Suite struct CameraOutputTests {
        /// Consumers: `room` takes VP8 and H.264, `disk` what Matroska holds, `view` I420, `encoder` what the encoder does.
        private func plan(
            _ machine: Machine, to consumers: String, _ settings: [String: SettingValue] = [:]
        ) throws -> GraphPlan {
            let given: [String: SettingValue] = ["width": 640, "height": 480]
            let camera = Node("camera", settings: given.merging(settings) { $1 })
            var graph = MediaGraph(nodes: [camera], links: [])
            for name in consumers.split(separator: " ").map(String.init) {
                let node =
                    switch name {
                    case "room": Node.rtpOutput("room")
                    case "disk": Node("recorder", name: "disk", settings: ["path": "/tmp/none.mkv"])
                    case "encoder": Node.videoEncoder("encoder", codec: .h264)
                    default: Node.frames(name)
                    }
                graph.nodes.append(node)
                graph.links.append(
                    Link(
                        from: PortReference(node: "camera", port: "video"),
                        to: PortReference(node: name, port: name == "disk" ? "video" : "in")))
                guard name == "encoder" else { continue }
                graph.nodes.append(Node.rtpOutput("packets"))
                graph.links.append(
                    Link(
                        from: PortReference(node: "encoder", port: "out"),
                        to: PortReference(node: "packets", port: "in")))
            }
            return try Planner(NodeRegistry.builtIn, machine).plan(graph)
        }

        @Test func `a control whose setting is removed is forgotten`() throws {
            let controls = CameraControls(
                try ControlValues("brightness=9"), listed: try ControlValues("contrast=5,zoom=2,focus=3"))
            try controls.set("controls", to: "hue=1")
            try controls.reset("controls")
            #expect(controls.values.values.map(\.name) == ["brightness"])
            try controls.reset("brightness")
            #expect(controls.values.values.isEmpty)
            try controls.set("contrast", to: 4)
            try controls.reset("controls")
            #expect(controls.values.values.map(\.name) == ["contrast"])
        }

        @Test func `a plan that may not capture expects that H.264 passes`() throws {
            var machine = Machine(offers: "H264 640x480@30 YUYV 640x480@30", parameters: nil)
            #expect(try plan(machine, to: "room").node("camera")?.formats["video"]?.encoding != "h264")
            machine.mayCapture = false
            #expect(try plan(machine, to: "room").node("camera")?.formats["video"]?.encoding == "h264")
        }

        @Test func `the encoder behind a head has a queue, threads for its size, and a keyframe every 2 s`() throws {
            let format = MediaFormat(.encodedVideo, "h264", width: 1920, height: 1080, framesPerSecond: 25)
            var plan = NodePlan(Node("camera"))
            plan.append("videoconvert", as: "convert")
            try plan.appendQueuedEncoder(of: format, Machine(offers: ""))
            #expect(plan.elements.map(\.factory).prefix(3) == ["videoconvert", "queue", "x264enc"])
            #expect(plan.element("encoder-queue")?.properties["leaky"] == "downstream")
            #expect(plan.element("encoder-queue")?.properties["max-size-buffers"] == 2)
            #expect(plan.element("encoder")?.properties["key-int-max"] == 50)
            let threads = VideoEncoderNode.threads(forPixels: 1920 * 1080)
            #expect(plan.element("encoder")?.properties["threads"] == .integer(threads))
        }

        @Test func `a queue of encoded video begins with a keyframe, and drops to the next one when it is full`() {
            var gate = KeyframeGate()
            let frames = [
                (false, false), (true, false), (false, false), (false, true), (true, true), (false, false),
                (true, false),
            ]
            let taken = frames.map { gate.admits(isKeyframe: $0.0, isFull: $0.1) }
            #expect(taken == [false, true, true, false, false, false, true])
        }

        @Test func `auto passes over a camera without a mode that a strict wish needs`() throws {
            let folder = TemporaryFolder()
            let clock = CaptureClock()
            var cameras: [String: FixtureCamera] = [:]
            for (number, size) in ["640x480", "1280x720"].enumerated() {
                let place = folder.file("class/video4linux/video\(number)")
                try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
                try "Webcam \(number)".write(toFile: "\(place)/name", atomically: true, encoding: .utf8)
                let fixture = try CameraFixture(
                    json: """
                        {"version": 1, "driver": "uvcvideo", "card": "Webcam", "bus": "usb-0000:00:14.0-\(number)",
                         "formats": [{"format": "YUYV", "sizes": [{"size": "\(size)", "rates": ["30"]}]}]}
                        """)
                cameras["/dev/video\(number)"] = FixtureCamera(fixture, on: clock)
            }
            let machine = Machine(
                offers: "",
                system: CameraSystem(FixtureBackend(cameras), tree: DeviceTree(root: folder.path), on: clock))
            let wish: [String: SettingValue] = ["width": 1280, "height": 720, "fps": 30]
            let lenient = try #require(try plan(machine, to: "view", wish).node("camera"))
            #expect(lenient.resource == "/dev/video0")
            let strict = try #require(
                try plan(machine, to: "view", wish.merging(["strict": true]) { $1 }).node("camera"))
            #expect(strict.resource == "/dev/video1")
            #expect(strict.passedOver.contains { $0.contains("Webcam 0") && $0.contains("has no mode with 1280x720") })
        }

        private struct Case: CustomTestStringConvertible, Sendable {
            let offers: String
            let consumers: String
            var encoder = "x264enc"
            var settings: [String: SettingValue] = [:]
            let chosen: String
            /// Inserted encoders and decoders, and conversions: inserted ones, and decoders and converters of the camera.
            let work: [Int]

            init(
                _ offers: String, to consumers: String, by encoder: String = "x264enc",
                _ settings: [String: SettingValue] = [:], gives chosen: String, _ work: [Int]
            ) {
                (self.offers, self.consumers, self.encoder) = (offers, consumers, encoder)
                (self.settings, self.chosen, self.work) = (settings, chosen, work)
            }

            var testDescription: String { "\(offers) \(settings) -> \(consumers)" }
        }

        private static let (h264, yuy2) = ("H264 640x480@30", "YUYV 640x480@30")
        private static let (nv12, mjpg) = ("NV12 640x480@30", "MJPG 640x480@30")
        private static let cases = [
            // The camera's own H.264 goes untouched to all that take it.
            Case("\(yuy2) \(h264)", to: "room", gives: "h264", [0, 0]),
            Case("\(yuy2) \(h264)", to: "room disk", gives: "h264", [0, 0]),
            Case("\(yuy2) \(h264)", to: "room disk view", gives: "h264", [0, 1]),
            Case("\(yuy2) \(h264)", to: "view", gives: "I420", [0, 0]),
            Case(h264, to: "view", gives: "h264", [0, 1]),
            // Raw frames go straight to an encoder that takes them.
            Case(nv12, to: "encoder", gives: "NV12", [0, 0]),
            Case("\(yuy2) \(nv12)", to: "encoder", gives: "NV12", [0, 0]),
            Case(yuy2, to: "encoder", by: "msdkh264enc", gives: "YUY2", [0, 0]),
            Case(yuy2, to: "encoder", gives: "I420", [0, 0]),
            Case(nv12, to: "encoder view", gives: "I420", [0, 0]),
            // JPEG stays JPEG up to the one decoder.
            Case(mjpg, to: "disk", gives: "mjpeg", [0, 0]),
            Case(mjpg, to: "disk view", gives: "mjpeg", [0, 1]),
            Case(mjpg, to: "view", gives: "I420", [0, 0]),
            Case(mjpg, to: "room", gives: "I420", [1, 0]),
            // The settings count more than the work: size, rate, mirror, format.
            Case("\(yuy2) H264 1280x720@30", to: "room", gives: "I420", [1, 0]),
            Case("\(yuy2) H264 640x480@10", to: "room", gives: "I420", [1, 0]),
            Case("YUYV 640x480@10 \(h264)", to: "room", gives: "h264", [0, 0]),
            Case("\(yuy2) \(h264)", to: "room", ["fps": 30], gives: "h264", [0, 0]),
            Case("\(yuy2) \(h264)", to: "room", ["fps": 15], gives: "I420", [1, 0]),
            Case("\(yuy2) \(h264)", to: "room", ["mirror": true], gives: "I420", [1, 0]),
            Case("\(yuy2) \(h264)", to: "room", ["failover": "other"], gives: "I420", [1, 0]),
            Case("\(yuy2) \(h264)", to: "room", ["format": "raw"], gives: "I420", [1, 0]),
            Case("\(yuy2) \(mjpg)", to: "view", ["format": "mjpeg"], gives: "mjpeg", [0, 1]),
            Case("\(yuy2) H264 320x240@30", to: "room", ["format": "h264"], gives: "h264", [0, 0]),
            Case("YUYV 320x240@30 \(h264)", to: "room", ["strict": true, "fps": 30], gives: "h264", [0, 0]),
            Case("\(yuy2) \(h264)", to: "room", ["away": "end"], gives: "h264", [0, 0]),
        ]

        @Test("A camera gives the format that needs the least work, within its settings", arguments: cases)
        private func choice(_ testCase: Case) throws {
            let machine = Machine(offers: testCase.offers, encoder: testCase.encoder)
            let plan = try plan(machine, to: testCase.consumers, testCase.settings)
            #expect(plan.node("camera")?.formats["video"]?.encoding == testCase.chosen)
            let inserted = plan.nodes.filter { $0.adapts != nil }.map(\.node.kind)
            #expect(
                [inserted.count { $0.hasSuffix("-encoder") }, inserted.count { $0 == "video-decoder" }] == testCase.work
            )
            #expect(!inserted.contains("convert"))
        }

        @Test func `the elements of a direct format convert nothing, and the promise has that format`() throws {
            let plan = try plan(Machine(offers: "NV12 1280x720@30"), to: "encoder", ["width": 1280, "height": 720])
            let camera = try #require(plan.node("camera"))
            #expect(camera.element("source")?.properties["caps"]?.text?.contains("format=NV12,width=1280") == true)
            #expect(camera.device?.element("format")?.properties["caps"]?.text?.contains("format=NV12") == true)
            #expect(camera.formats["video"]?.encoding == "NV12")
        }

        @Test func `the plan says what was chosen, what was not, and why`() throws {
            let machine = Machine(offers: "\(Self.yuy2) \(Self.mjpg) \(Self.h264) RGB3 640x480@30")
            let camera = try #require(try plan(machine, to: "room view").node("camera"))
            #expect(camera.notes[0].contains("the requested size, the lowest sufficient rate, encoded by the camera"))
            #expect(camera.notes[1] == "h264 640x480 at 30 frames/s: 1 decode for room.in and view.in")
            #expect(
                camera.passedOver == [
                    "RGB: the same 640x480 at 30 frames/s, slower to convert",
                    "I420 from YUY2 640x480 at 30 frames/s: needs 1 encode and 1 conversion",
                    "YUY2 640x480 at 30 frames/s: needs 1 encode and 1 conversion",
                    "mjpeg 640x480 at 30 frames/s: needs 1 encode and 1 decode",
                ])
        }

        @Test func `h264 that receivers need not decode, or that may have B-frames, is not passed, with the reason`()
            throws
        {
            func camera(
                _ parameters: SequenceParameters?, to consumers: String, _ format: String = "auto"
            ) throws -> (format: String?, reason: String?) {
                let machine = Machine(offers: "\(Self.yuy2) \(Self.h264)", parameters: parameters)
                let node = try plan(machine, to: consumers, ["format": .text(format)]).node("camera")
                return (node?.formats["video"]?.encoding, node?.passedOver.first { $0.hasPrefix("h264") })
            }
            let high = try camera(.made(profile: 100), to: "room")
            #expect(high.format == "I420" && high.reason?.contains("its profile is High, and receivers") == true)
            let large = try camera(.made(level: 60), to: "room")
            #expect(large.format == "I420" && large.reason?.contains("its level is 6.0, and receivers") == true)
            #expect(try camera(.made(level: 40), to: "room").format == "h264")
            #expect(try camera(.made(level: 60), to: "disk").format == "h264")
            let recorded = try camera(.made(profile: 100), to: "disk")
            #expect(recorded.format == "h264" && recorded.reason == nil)
            let reordered = try camera(.made(profile: 100, order: 0), to: "disk")
            #expect(reordered.format == "I420" && reordered.reason?.contains("may have B-frames") == true)
            let silent = try camera(nil, to: "room")
            #expect(silent.format == "I420" && silent.reason?.contains("gave no keyframe") == true)
            // The settings decide.
            #expect(try camera(.made(profile: 100, order: 0), to: "room", "h264").format == "h264")
        }
    }
}
