import Cameras
import Foundation
import GStreamerKit
import MediaGraph
import TestSupport
import Testing

@testable import MediaNodes

/// A pipeline with a recorded camera, in real time.
private final class RecordedRun: Sendable {
    let seen = Seen()
    let pipeline: MediaPipeline
    private let name: String
    // Removed with this object; nothing else uses it.
    private nonisolated(unsafe) let folder = TemporaryFolder()

    init(
        _ faults: [CameraFixture.Fault] = [], _ settings: [String: SettingValue] = [:], format: FourCC = "YUYV",
        rate: FrameRate = FrameRate(100), frames: [CameraFixture.Frame]? = nil, isEncoded: Bool = false,
        firstFrame: Double? = nil, slowedTo slowed: Double? = nil
    ) async throws {
        var fixture = try CameraFixture(
            json: """
                {"version": 1, "driver": "uvcvideo", "card": "Webcam", "bus": "usb-0000:00:14.0-1",
                 "formats": [{"format": "\(format)", "sizes": [{"size": "64x48", "rates": ["\(rate)"]}]}],
                 "controls": [{"identifier": 9963776, "title": "Brightness", "kind": "integer", "minimum": 0,
                               "maximum": 255, "standard": 128},
                              {"identifier": 9963777, "title": "Reset", "kind": "button", "minimum": 0,
                               "maximum": 0, "standard": 0}],
                 "quirks": {"strideAlignment": 256}}
                """)
        (fixture.faults, fixture.frames) = (faults, frames)
        fixture.timing = .init(firstFrame: firstFrame)
        let file = folder.file("camera.json")
        name = "fixture:\(file)"
        try fixture.json.write(toFile: file, atomically: true, encoding: .utf8)
        var all: [String: SettingValue] = [
            "device": .text(name), "width": 64, "height": 48, "fps": 100,
        ]
        all.merge(settings) { $1 }
        let graph = MediaGraph {
            Chain {
                Node("camera", settings: all)
                if let slowed { Node("rate", settings: ["fps": .number(slowed)]) }
                if isEncoded { Node.null("end") } else { Node.frames("view") }
            }
        }
        pipeline = try await MediaPipeline(graph, bindings: seen.bindings(of: graph))
    }

    /// The value that the camera has.
    func brightness() throws -> Int {
        let device = try CameraSystem.machine.open(name, mayReserve: false).device
        defer { device.close() }
        return try device.value(of: try #require(try device.controls().first))
    }

    var status: SourceStatus? { pipeline.statistics.sources["camera"] }
    var events: [String] { seen.deviceEvents }
    var isMonotonic: Bool {
        let times = seen.pictures.all.map(\.time)
        return zip(times, times.dropFirst()).allSatisfy { $0 < $1 }
    }
}

extension MediaNodesTests {
    @Suite struct RecordedCameraTests {
        @Test(arguments: ["YUYV", "YU12", "NV12", "RGB3", "GREY"] as [FourCC])
        func `frames of a recorded camera arrive in the wished format, whatever its own is`(format: FourCC)
            async throws
        {
            let run = try await RecordedRun(format: format)
            try await run.pipeline.start()
            await eventually("frames") { run.seen.pictures.count > 20 }
            await run.pipeline.stop()
            #expect(run.seen.pictures.all.allSatisfy { $0.width == 64 && $0.height == 48 })
            #expect(run.isMonotonic && run.events.isEmpty)
        }

        @Test(arguments: ["25/3", "50/7", "1199/50", "10000000/666666"])
        func `a camera whose rate is no whole number is slower than the wish`(rate: String) async throws {
            let run = try await RecordedRun(rate: try #require(FrameRate(rate)))
            try await run.pipeline.start()
            await eventually("frames") { run.seen.pictures.count > 5 }
            await run.pipeline.stop()
            #expect(run.isMonotonic && run.events.isEmpty && run.seen.failures.isEmpty)
        }

        @Test func `padded rows are read by the driver's stride`() async throws {
            // Grey frames with white padding.
            var data = [UInt8](repeating: 255, count: 256 * 48)
            for row in 0..<48 { for place in 0..<64 { data[row * 256 + place] = 110 } }
            let run = try await RecordedRun(
                format: "GREY", frames: [.init(format: "GREY", size: FrameSize(64, 48), data: data)])
            try await run.pipeline.start()
            await eventually("frames") { run.seen.pictures.count > 3 }
            await run.pipeline.stop()
            #expect(abs((run.seen.pictures.all.last?.brightness ?? 0) - 110) < 10)
        }

        @Test func `a camera that is unplugged and comes back continues the stream`() async throws {
            let run = try await RecordedRun([.init(.unplugged, at: 0.6, until: 1)])
            try await run.pipeline.start()
            await eventually("the return") { run.events == ["lost camera.lost", "returned"] }
            let count = run.seen.pictures.count
            await eventually("frames") { run.seen.pictures.count > count + 10 }
            #expect(run.status?.losses == 1)
            await run.pipeline.stop()
            #expect(run.isMonotonic && run.seen.failures.isEmpty)
        }

        @Test func `a graph runs before its camera is there, and the camera gets the controls of meanwhile`()
            async throws
        {
            let run = try await RecordedRun([.init(.unplugged, at: 0, until: 1.5)], ["brightness": 7])
            try await run.pipeline.start()
            #expect(run.events.isEmpty || run.events == ["waiting camera.absent"])
            try await run.pipeline.set("camera", "brightness", to: 9)
            await eventually("the camera") { run.status?.state == .streaming }
            #expect(try run.brightness() == 9)
            let refused = await #expect(throws: MediaError.self) {
                try await run.pipeline.set("camera", "brightness", to: 999)
            }
            #expect(refused?.code == "camera.control")
            #expect(refused?.message.contains("must be from 0 to 255") == true)
            #expect(try run.brightness() == 9)
            let checks: [(String, SettingValue)] = [
                ("brightness", 999), ("controls", "brightness=999"), ("controls", "nope=1"),
            ]
            for (setting, value) in checks {
                let unchecked = #expect(throws: MediaError.self) {
                    try run.pipeline.check("camera", setting, to: value)
                }
                #expect(unchecked?.code == "camera.control")
            }
            try run.pipeline.check("camera", "brightness", to: 10)
            #expect(try run.brightness() == 9)
            try await run.pipeline.set("camera", "brightness", to: 10)
            #expect(try run.brightness() == 10)
            await run.pipeline.stop()
        }

        @Test(arguments: [false, true])
        func `a control that is set while the camera opens reaches it`(isLate: Bool) async throws {
            let folder = TemporaryFolder()
            let name = "fixture:\(folder.file("camera.json"))"
            try #"""
            {"version": 1, "driver": "uvcvideo", "card": "Webcam", "bus": "usb-1",
             "formats": [{"format": "YUYV", "sizes": [{"size": "64x48", "rates": ["30"]}]}],
             "controls": [{"identifier": 9963776, "title": "Brightness", "kind": "integer", "minimum": 0,
                           "maximum": 255, "standard": 128}]}
            """#.write(toFile: folder.file("camera.json"), atomically: true, encoding: .utf8)
            let controls = CameraControls(try ControlValues("brightness=7"))
            let values = controls.values
            let session = try CameraSession(
                name, of: .machine, CaptureWish(FrameSize(64, 48), FrameRate(30), formats: ["YUY2"]),
                controls: values)
            let device = try CameraSystem.machine.open(name, mayReserve: false).device
            let control = try #require(try device.controls().first)
            let notices = Collected<String>()
            let capture = CameraCapture(
                session, .init(take: { _, _ in }, fail: { _ in }, notice: { notices.append($0) }))
            // Before the camera is there, before it starts, and while it streams.
            try controls.set("brightness", to: 8)
            controls.attach(capture, openedWith: values)
            if isLate { try controls.set("brightness", to: 9) }
            try capture.start()
            await eventually("the value") { (try? device.value(of: control)) == (isLate ? 9 : 8) }
            let refused = #expect(throws: MediaError.self) { try controls.set("brightness", to: 999) }
            #expect(refused?.code == "camera.control")
            #expect(controls.values == (try ControlValues(isLate ? "brightness=9" : "brightness=8")))
            try controls.reset("brightness")
            await eventually("the value of before") { (try? device.value(of: control)) == control.standard }
            #expect(controls.values == ControlValues())
            capture.close()
            #expect(notices.count == 0)
        }

        @Test func `a control whose driver is late is not set after the caller has given up`() throws {
            let folder = TemporaryFolder()
            let name = "fixture:\(folder.file("camera.json"))"
            try #"""
            {"version": 1, "driver": "uvcvideo", "card": "Webcam", "bus": "usb-1",
             "formats": [{"format": "YUYV", "sizes": [{"size": "64x48", "rates": ["30"]}]}],
             "controls": [{"identifier": 9963776, "title": "Brightness", "kind": "integer", "minimum": 0,
                           "maximum": 255, "standard": 128}]}
            """#.write(toFile: folder.file("camera.json"), atomically: true, encoding: .utf8)
            let controls = CameraControls(try ControlValues("brightness=7"))
            let session = try CameraSession(
                name, of: .machine, CaptureWish(FrameSize(64, 48), FrameRate(30), formats: ["YUY2"]),
                controls: controls.values)
            let device = try CameraSystem.machine.open(name, mayReserve: false).device
            let control = try #require(try device.controls().first)
            // The camera's thread hangs in its first frame.
            let (hangs, goesOn) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
            let isFirst = AtomicBool(true)
            let capture = CameraCapture(
                session,
                .init(
                    take: { _, _ in
                        guard isFirst.value else { return }
                        isFirst.lower()
                        hangs.signal()
                        goesOn.wait()
                    }, fail: { _ in }, notice: { _ in }), answerLimit: 0.01)
            controls.attach(capture, openedWith: controls.values)
            try capture.start()
            hangs.wait()
            let error = #expect(throws: MediaError.self) { try controls.set("brightness", to: 9) }
            #expect(error?.code == MediaError.Code.cameraSilent)
            #expect(controls.values == (try ControlValues("brightness=7")))
            goesOn.signal()
            // The thread runs what was queued before it ends.
            capture.close()
            #expect(try device.value(of: control) == 7)
        }

        @Test func `a control of a camera that is away is judged by the camera that was there`() async throws {
            let run = try await RecordedRun([.init(.unplugged, at: 0.7, until: 1000)], ["brightness": 7])
            try await run.pipeline.start()
            await eventually("the loss") { run.events == ["lost camera.lost"] }
            for (setting, value) in [("brightness", .integer(900)), ("controls", .text("nope=1"))]
                as [(String, SettingValue)]
            {
                let refused = await #expect(throws: MediaError.self) {
                    try await run.pipeline.set("camera", setting, to: value)
                }
                #expect(refused?.code == "camera.control")
            }
            try await run.pipeline.set("camera", "brightness", to: 9)
            await run.pipeline.stop()
        }

        @Test func `a camera whose frames are all damaged is reported as such`() async throws {
            let run = try await RecordedRun([.init(.corrupt, at: 0)])
            try await run.pipeline.start()
            await eventually("the warning") { run.events == ["waiting camera.silent"] }
            #expect(run.status?.cause?.contains("delivers damaged frames only") == true, "\(run.status as Any)")
            await run.pipeline.stop()
        }

        @Test func `a camera whose frames cannot be decoded is reported as such, and not as unplugged`() async throws {
            let data = [0xff, 0xd8] + [UInt8](repeating: 0x55, count: 200) + [0xff, 0xd9]
            let run = try await RecordedRun(
                format: "MJPG", frames: [.init(format: "MJPG", size: FrameSize(64, 48), data: data)])
            try await run.pipeline.start()
            await eventually("the warning") { run.events == ["waiting camera.undecodable"] }
            #expect(
                run.status?.cause?.contains("sends frames that cannot be decoded") == true, "\(run.status as Any)")
            await run.pipeline.stop()
        }

        @Test(arguments: [(20.0, nil), (100, 20)])
        func `after a silence, a camera's frames come no faster than they were requested`(
            rate: Double, slowed: Double?
        ) async throws {
            let run = try await RecordedRun(
                [.init(.silent, at: 0.5, until: 1.4)], ["fps": .number(rate)], slowedTo: slowed)
            try await run.pipeline.start()
            await eventually("frames after the silence") { run.seen.pictures.count > 40 }
            await run.pipeline.stop()
            let times = run.seen.pictures.all.map(\.time)
            // A stand-in may come directly before or after a frame.
            let near = zip(times, times.dropFirst()).filter { $1.milliseconds(since: $0) < 30 }
            #expect(near.count <= 3, "\(near.count) of \(times.count)")
        }

        @Test func `a replacement that cannot be is refused, and one that is there or away is noted`() async throws {
            let other = TemporaryFolder()
            func notes(_ failover: String) async throws -> [String] {
                let run = try await RecordedRun([], ["failover": .text(failover)])
                return run.pipeline.plan.node("camera")?.notes ?? []
            }
            for failover in ["fixture:\(other.file("nothing.json"))", "libcamera"] {
                await #expect(throws: MediaError.self) { try await notes(failover) }
            }
            #expect(
                try await notes("serial:NOPE").contains {
                    $0.contains("serial:NOPE takes over, which is not available now")
                })
            try #"""
            {"version": 1, "driver": "d", "card": "Other", "bus": "usb-1",
             "formats": [{"format": "YUYV", "sizes": [{"size": "64x48", "rates": ["30"]}]}]}
            """#.write(toFile: other.file("other.json"), atomically: true, encoding: .utf8)
            let name = "fixture:\(other.file("other.json"))"
            #expect(try await notes(name).contains { $0.contains("takes over, which is there") })
            for away: SettingValue in ["freeze", "end"] {
                let graph = MediaGraph {
                    Chain {
                        Node("camera", settings: ["device": .text(name), "failover": .text(name), "away": away])
                        Node.null("end")
                    }
                }
                let same = await #expect(throws: MediaError.self) { try await MediaPipeline(graph) }
                #expect(same?.code == "graph.invalid" && same?.message.contains("the same camera as device") == true)
            }
        }

        @Test func `a camera that ends when it is lost first gives way to its replacement`() async throws {
            let other = TemporaryFolder()
            func replacement(_ faults: String) throws -> SettingValue {
                let file = other.file("other.json")
                try #"""
                {"version": 1, "driver": "d", "card": "Other", "bus": "usb-1", "faults": [\#(faults)],
                 "formats": [{"format": "YUYV", "sizes": [{"size": "64x48", "rates": ["100"]}]}]}
                """#.write(toFile: file, atomically: true, encoding: .utf8)
                return .text("fixture:\(file)")
            }
            let failover = try replacement("")
            var run = try await RecordedRun(
                [.init(.unplugged, at: 0.5, until: 1000)], ["away": "end", "failover": failover])
            try await run.pipeline.start()
            await eventually("the replacement: \(run.seen.deviceEvents)") { run.status?.state == .failedOver }
            let count = run.seen.pictures.count
            await eventually("its frames") { run.seen.pictures.count > count + 5 }
            #expect(run.seen.deviceEvents.allSatisfy { $0.hasPrefix("failed over to") } && run.isMonotonic)
            await run.pipeline.stop()
            // One that is away gives way from the start on.
            run = try await RecordedRun([], ["device": "serial:NOPE", "away": "end", "failover": failover])
            try await run.pipeline.start()
            await eventually("the replacement") { run.status?.state == .failedOver }
            await run.pipeline.stop()
            // Both are lost.
            run = try await RecordedRun(
                [.init(.unplugged, at: 0.5, until: 1000)],
                ["away": "end", "failover": try replacement(#"{"fault": "unplugged", "at": 0.5, "until": 1000}"#)])
            try await run.pipeline.start()
            await eventually("the end: \(run.seen.deviceEvents)") { run.pipeline.state == .failed }
            #expect(run.events.last == "failed camera.lost" && !run.events.contains { $0.hasPrefix("lost") })
            await run.pipeline.stop()
        }

        @Test func `a slate's image that is not one is refused`() async throws {
            let folder = TemporaryFolder()
            try "text".write(toFile: folder.file("slate.png"), atomically: true, encoding: .utf8)
            let error = await #expect(throws: MediaError.self) {
                try await RecordedRun([], ["slate-image": .text(folder.file("slate.png"))])
            }
            #expect(error?.message.contains("neither a PNG nor a JPEG image") == true)
        }

        @Test func `a graph may press a button of its camera`() async throws {
            let run = try await RecordedRun([], ["controls": "reset=1,brightness=9"])
            try await run.pipeline.start()
            await eventually("the camera") { run.status?.state == .streaming }
            #expect(try run.brightness() == 9 && run.events.isEmpty)
            await run.pipeline.stop()
        }

        @Test func `a camera that never delivers a frame is called silent, not lost`() async throws {
            // The supervisor waits 8 s for the first frame.
            let run = try await RecordedRun(firstFrame: 1000)
            try await run.pipeline.start()
            await eventually("the warning") { run.events == ["waiting camera.silent"] }
            await run.pipeline.stop()
        }

        @Test func `a camera that is slower than its wish gets no stand-ins`() async throws {
            let run = try await RecordedRun([], ["fps": 30], rate: FrameRate(4))
            try await run.pipeline.start()
            // Beyond the first second, in which there are no stand-ins.
            await eventually("frames") { run.seen.pictures.count > 10 }
            #expect(run.status?.standIns == 0)
            await run.pipeline.stop()
        }

        @Test func `a camera whose loss ends the node fails with the driver's cause`() async throws {
            let run = try await RecordedRun([.init(.failing, at: 0.8)], ["away": "end"])
            try await run.pipeline.start()
            await eventually("the failure") { !run.seen.failures.isEmpty }
            #expect(run.seen.failures.first?.code == "camera.lost")
            #expect(run.seen.failures.first?.message.contains("EIO") == true)
            await run.pipeline.stop()
            #expect(run.seen.pictures.count > 3 && run.isMonotonic)
        }

        @Test func `a full bus ends the start of a camera that is needed, with its cause`() async throws {
            let run = try await RecordedRun([.init(.noBandwidth, at: 0)], ["away": "end"])
            let error = await #expect(throws: MediaError.self) { try await run.pipeline.start() }
            #expect(error?.code == "camera.bandwidth")
            await run.pipeline.stop()
        }

        @Test func `the camera's JPEG passes through, and damaged frames do not`() async throws {
            let run = try await RecordedRun(
                [.init(.corrupt, at: 0.3)], ["format": "mjpeg", "away": "end"], format: "MJPG",
                frames: [.init(format: "MJPG", size: FrameSize(64, 48), data: [0xff, 0xd8, 0xff, 0xd9])],
                isEncoded: true)
            try await run.pipeline.start()
            await eventually("the damage is noticed") {
                run.seen.failures.first?.message.contains("delivers damaged frames only") == true
            }
            await run.pipeline.stop()
        }

        @Test func `a strict size that the camera lacks is refused with the nearest modes`() async throws {
            let error = await #expect(throws: MediaError.self) {
                try await RecordedRun([], ["strict": true, "width": 640])
            }
            #expect(error?.code == "camera.no-mode")
            #expect(error?.message.contains("Choose one of the nearest: YUYV 64x48 at 100 frames/s") == true)
        }
    }
}
