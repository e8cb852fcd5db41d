import Cameras
import Foundation
import Glibc
import MediaGraph
import TestSupport
import Testing

/// Sessions with recorded cameras, in virtual time.
@Suite struct SessionTests {
    private static let wish = CaptureWish(FrameSize(64, 48), FrameRate(30), formats: ["YUY2", "MJPG"])

    /// A machine with a recorded camera, whose file exists as long as this does.
    private struct Machine {
        let folder = TemporaryFolder()
        let clock = CaptureClock()
        let system: CameraSystem
        let camera: FixtureCamera?
        let name: String

        init(_ fixture: CameraFixture, automatic: String? = nil) throws {
            let file = folder.file("camera.json")
            try fixture.json.write(toFile: file, atomically: true, encoding: .utf8)
            name = "fixture:\(file)"
            system = CameraSystem(
                V4L2Backend(), tree: DeviceTree(root: folder.path),
                bindings: CameraBindings(file: folder.file("config/cameras.json")), automatic: automatic, on: clock)
            camera = system.recorded(name)
        }

        func session(_ wish: CaptureWish = wish, controls: String = "") throws -> CameraSession {
            try CameraSession(name, of: system, wish, controls: ControlValues(controls))
        }

        func started(_ wish: CaptureWish = wish, controls: String = "") throws -> CameraSession {
            let session = try session(wish, controls: controls)
            try session.start()
            return session
        }

        var seconds: Double { (clock.now - .seconds(1000)) / .seconds(1) }
    }

    private struct Seen {
        var times: [Double] = []
        var notices: [CameraNotice] = []
        var error: MediaError?
    }

    /// The items of a session until a time, in seconds. Frames return at once.
    private func read(_ session: CameraSession, _ machine: Machine, until end: Double) -> Seen {
        var seen = Seen()
        do throws(MediaError) {
            while machine.seconds < end {
                switch try session.next(within: .seconds(max(end - machine.seconds, 0))) {
                case .frame(_, let time): seen.times.append(time / .seconds(1) - 1000)
                case .notice(let notice): seen.notices.append(notice)
                case .woken, nil: break
                }
            }
        } catch {
            seen.error = error
        }
        return seen
    }

    private func isIncreasing(_ times: [Double]) -> Bool { zip(times, times.dropFirst()).allSatisfy { $0 < $1 } }

    @Test func `corrupt and cut frames are dropped, counted and reported once`() throws {
        let machine = try Machine(
            FixtureTests.webcam(.init(.corrupt, at: 0, until: 0.5), .init(.cut, at: 1, until: 1.5)))
        let session = try machine.started()
        let seen = read(session, machine, until: 3)
        #expect(session.counts.damaged > 25 && session.counts.damaged < 32)
        #expect(seen.times.count + session.counts.damaged == 90)
        #expect(seen.times.allSatisfy { !(0..<0.5).contains($0) && !(1..<1.5).contains($0) })
        #expect(seen.notices.map(\.kind) == [.damagedFrames])
        #expect(seen.error == nil)
    }

    @Test func `a camera with the control gives a keyframe on request, and its recording begins again`() throws {
        func bytes(_ controls: String, _ faults: CameraFixture.Fault..., requests: Bool = true) throws -> [UInt8] {
            var fixture = try CameraFixture(
                json: """
                    {"version": 1, "driver": "uvcvideo", "card": "Webcam", "bus": "usb-0000:00:14.0-1",
                     "formats": [{"format": "H264", "sizes": [{"size": "64x48", "rates": ["30"]}]}],
                     "controls": [\(controls)]}
                    """)
            fixture.faults = faults
            fixture.frames = (1...9).map { .init(format: "H264", size: FrameSize(64, 48), data: [$0]) }
            let machine = try Machine(fixture)
            let wish = CaptureWish(FrameSize(64, 48), FrameRate(30), formats: ["H264"])
            let session = try machine.started(wish)
            #expect(session.takesKeyframeRequests == !controls.isEmpty)
            var bytes: [UInt8] = []
            while bytes.count < 6 {
                if bytes.count == 3, requests { session.requestKeyframe() }
                if case .frame(let frame, _) = try session.next(within: .seconds(1)) { bytes += frame.copy() }
            }
            return bytes
        }
        let control = """
            {"identifier": 10029541, "title": "Force Key Frame", "kind": "button", "minimum": 0, "maximum": 0,
             "standard": 0}
            """
        #expect(try bytes(control) == [1, 2, 3, 1, 2, 3])
        #expect(try bytes("") == [1, 2, 3, 4, 5, 6])
        // The third frame is lost.
        let loss = CameraFixture.Fault(.dropping, at: 0.09, until: 0.11)
        #expect(try bytes(control, loss, requests: false) == [1, 2, 4, 1, 2, 3])
        #expect(try bytes("", loss, requests: false) == [1, 2, 4, 5, 6, 7])
    }

    @Test func `a cut JPEG is dropped, unless the camera never writes an end`() throws {
        let layout = CaptureLayout(
            CaptureMode("MJPG", FrameSize(8, 8), nil), planes: [.init(stride: 0, bytes: 64)])
        func verdicts(_ frames: [[UInt8]]) -> [Bool] {
            var check = FrameCheck(layout)
            return frames.indices.map { place in
                let frame = CapturedFrame(
                    Planes([frames[place]]), lengths: [frames[place].count], timestamp: nil,
                    sequence: UInt32(place))
                return check.judge(frame, at: .seconds(place + 1)) != .damaged
            }
        }
        let (whole, padded, cut): ([UInt8], [UInt8], [UInt8]) = (
            [0xff, 0xd8, 1, 0xff, 0xd9], [0xff, 0xd8, 1, 0xff, 0xd9, 0, 0], [0xff, 0xd8, 1, 2]
        )
        #expect(verdicts([whole, cut, padded, [1, 2, 3, 4], []]) == [true, false, true, false, false])
        #expect(verdicts([cut, cut]) == [true, true])
    }

    @Test func `timestamps that jump or run back are replaced by the arrival, and counted`() throws {
        let machine = try Machine(
            FixtureTests.webcam(
                .init(.shiftedTime, at: 1, until: 2, by: 100), .init(.shiftedTime, at: 2, until: 3, by: -5)))
        let session = try machine.started()
        let seen = read(session, machine, until: 4)
        #expect(isIncreasing(seen.times))
        #expect(seen.times.count >= 119 && abs((seen.times.last ?? 0) - 4) < 0.05)
        #expect((58...62).contains(session.counts.wrongTimes))
        #expect(seen.notices.map(\.kind) == [.wrongTimestamps])
    }

    @Test func `a camera without timestamps is stamped by the arrival, without a notice`() throws {
        let machine = try Machine(FixtureTests.webcam(more: ", \"quirks\": {\"hasNoTimestamps\": true}"))
        let seen = read(try machine.started(), machine, until: 1)
        #expect(seen.times.count == 30 && isIncreasing(seen.times) && seen.notices.isEmpty)
    }

    @Test func `a late frame keeps the time of its capture`() throws {
        let machine = try Machine(FixtureTests.webcam(.init(.late, at: 0, by: 0.5)))
        let session = try machine.started()
        guard case .frame(_, let time) = try session.next(within: .seconds(1)) else {
            Issue.record("no frame")
            return
        }
        #expect(abs(machine.clock.now / .seconds(1) - time / .seconds(1) - 0.5) < 0.001)
        #expect(session.counts.wrongTimes == 0)
    }

    @Test func `a rate that halves in the dark is reported with the control that prevents it`() throws {
        let dark = CameraFixture.Fault(
            .slow, at: 5, rate: FrameRate(15), control: "exposure_dynamic_framerate", value: 0)
        let machine = try Machine(FixtureTests.webcam(dark))
        let session = try machine.started()
        let seen = read(session, machine, until: 12)
        #expect(seen.notices.map(\.kind) == [.rateFell])
        #expect(
            seen.notices.first?.message.contains(
                "delivers 15 of 30 frames/s. It exposes for longer in the dark: set controls: exposure_dynamic_framerate=0"
            )
                == true, "\(seen.notices)")
        try session.set(ControlValues("exposure_dynamic_framerate=0"))
        #expect(read(session, machine, until: 20).notices.map(\.kind) == [.rateReturned])
    }

    @Test func `frames that the camera lost are counted, and are no slower rate`() throws {
        let machine = try Machine(FixtureTests.webcam(.init(.dropping, at: 2, until: 7)))
        let session = try machine.started()
        let seen = read(session, machine, until: 10)
        #expect((149...151).contains(session.counts.lost))
        #expect(!seen.notices.contains { $0.kind == .rateFell })
    }

    @Test func `controls are set at each opening, also after a replug, and a refused one is reported`() throws {
        let machine = try Machine(
            FixtureTests.webcam(
                .init(.unplugged, at: 2, until: 3), .init(.refusedControl, at: 0, control: "auto_exposure")))
        for opening in 1...2 {
            let session = try machine.started(controls: "brightness=9,auto_exposure=1,zoom=3")
            let seen = read(session, machine, until: opening == 1 ? 5 : 4)
            #expect(seen.notices.map(\.kind) == [.controlRefused, .controlRefused])
            #expect(seen.error?.code == (opening == 1 ? "camera.lost" : nil))
            session.close()
            if opening == 1 {
                #expect(#expect(throws: MediaError.self) { try machine.session() }?.code == "camera.absent")
                machine.clock.advance(by: .seconds(1))
            } else {
                let device = try machine.system.open(machine.name).device
                let brightness = try #require(try device.controls().first { $0.name == "brightness" })
                #expect(try device.value(of: brightness) == 9)
            }
        }
    }

    @Test func `controls before a refused one get their former values, and a reset gives those of before the node`()
        throws
    {
        let machine = try Machine(
            FixtureTests.webcam(.init(.refusedControl, at: 1, control: "auto_exposure")))
        let device = try machine.system.open(machine.name, mayReserve: false).device
        let session = try machine.started()
        let brightness = try #require(try device.controls().first { $0.name == "brightness" })
        let original = try device.value(of: brightness)
        _ = read(session, machine, until: 2)
        let refused = #expect(throws: MediaError.self) {
            try session.set(ControlValues("brightness=9,auto_exposure=1"))
        }
        #expect(refused?.message.contains("refused the control auto_exposure=1: ") == true, "\(refused as Any)")
        #expect(try device.value(of: brightness) == original)
        try session.set(ControlValues("brightness=9"))
        #expect(throws: MediaError.self) { try session.set(ControlValues("brightness=7,auto_exposure=1")) }
        #expect(try device.value(of: brightness) == 9)
        try session.set(ControlValues("brightness=7"))
        try session.reset(["brightness"])
        #expect(try device.value(of: brightness) == original)
        session.close()
    }

    @Test func `a control that the driver changes by itself is reported, if it was set`() throws {
        let faults: [CameraFixture.Fault] = [
            .init(.changedControl, at: 1, control: "brightness", value: 50),
            .init(.changedControl, at: 2, control: "auto_exposure", value: 1),
        ]
        let machine = try Machine(FixtureTests.webcam(faults[0], faults[1]))
        let seen = read(try machine.started(controls: "brightness=9"), machine, until: 3)
        #expect(seen.notices.map(\.kind) == [.controlChanged])
        #expect(seen.notices.first?.message.contains("changed brightness from 9 to 50") == true)
    }

    @Test func `a source of another size ends the session, and the next one has its size`() throws {
        let machine = try Machine(FixtureTests.webcam(.init(.changedSource, at: 1, size: FrameSize(32, 24))))
        let session = try machine.started()
        #expect(read(session, machine, until: 3).error?.code == "camera.changed")
        session.close()
        let again = try machine.started()
        #expect(again.layout.mode.size == FrameSize(32, 24))
        #expect(read(again, machine, until: 3).times.count > 20)
    }

    @Test func `a full bus and a busy camera refuse with their causes`() throws {
        let machine = try Machine(FixtureTests.webcam(.init(.noBandwidth, at: 0, until: 1), .init(.busy, at: 2)))
        #expect(#expect(throws: MediaError.self) { try machine.started() }?.code == "camera.bandwidth")
        machine.clock.advance(by: .seconds(2))
        #expect(#expect(throws: MediaError.self) { try machine.started() }?.code == "camera.busy")
    }

    @Test func `a notice comes once a minute over all openings`() throws {
        var fixture = try FixtureTests.webcam()
        fixture.faults = (0..<30).flatMap { round -> [CameraFixture.Fault] in
            let start = Double(round) * 2
            return [
                .init(.corrupt, at: start + 0.5, until: start + 0.6),
                .init(.failing, at: start + 1.5, until: start + 1.501),
            ]
        }
        let machine = try Machine(fixture)
        var (history, notices) = (CameraSession.History(), [CameraNotice.Kind]())
        while machine.seconds < 58 {
            let session = try CameraSession(
                machine.name, of: machine.system, Self.wish, controls: ControlValues("zoom=3,pan=2"), after: history)
            try session.start()
            notices += read(session, machine, until: 58).notices.map(\.kind)
            history = session.history
            session.close()
            machine.clock.advance(by: .milliseconds(10))
        }
        #expect(notices == [.controlRefused, .controlRefused, .damagedFrames])
        #expect(history.counts.damaged > 80)
    }

    @Test func `a strict wish that no mode meets is refused with the nearest modes`() throws {
        let machine = try Machine(FixtureTests.webcam())
        let strict = CaptureWish(FrameSize(1280, 720), FrameRate(30), formats: ["YUY2", "MJPG"], isRequired: true)
        let refused = #expect(throws: MediaError.self) { try machine.session(strict) }
        #expect(refused?.code == "camera.no-mode")
        #expect(refused?.message.contains("Choose one of the nearest: MJPG 128x96 at 30 frames/s, ") == true)
    }

    @Test func `a bound name leads to its camera, until it is removed`() throws {
        let machine = try Machine(FixtureTests.webcam())
        let bindings = CameraBindings(file: machine.folder.file("config/cameras.json"))
        #expect(try bindings.all().isEmpty)
        try bindings.bind("front", to: .init(machine.name))
        #expect(try bindings.all() == ["front": .init(machine.name)])
        #expect(try machine.system.find("front").path == machine.name)
        let session = try CameraSession("front", of: machine.system, Self.wish)
        #expect(session.place.model == "Webcam")
        try bindings.bind("front", to: nil)
        #expect(#expect(throws: MediaError.self) { try machine.system.find("front") }?.code == "camera.absent")
        for name in ["auto", "a b", "usb-1", "", "fixture:x"] {
            #expect(
                #expect(throws: MediaError.self) { try bindings.bind(name, to: .init("x")) }?.code == "camera.binding"
            )
        }
        try "nothing".write(toFile: bindings.file, atomically: true, encoding: .utf8)
        #expect(#expect(throws: MediaError.self) { try machine.system.find("front") }?.code == "camera.binding")
    }

    @Test func `a file of names is readable for others, and binding again returns the former camera`() throws {
        let folder = TemporaryFolder()
        let bindings = CameraBindings(file: folder.file("cameras.json"))
        let mask = umask(0o077)
        defer { umask(mask) }
        #expect(try bindings.bind("front", to: .init("serial:1", controls: "gain=2")) == nil)
        #expect(try bindings.bind("front", to: .init("serial:2"))?.description == "serial:1 with gain=2")
        let mode = try FileManager.default.attributesOfItem(atPath: bindings.file)[.posixPermissions] as? Int
        #expect(mode == 0o644)
        let unknown = #expect(throws: MediaError.self) { try bindings.bind("fornt", to: nil) }
        #expect(unknown?.message.contains(#"No camera is named fornt; did you mean "front"?"#) == true)
    }

    @Test func `a misspelt name, an empty one and one that leads to a name are reported as such`() throws {
        let machine = try Machine(FixtureTests.webcam())
        try CameraBindings(file: machine.folder.file("config/cameras.json")).bind("front", to: .init(machine.name))
        func refused(_ name: String) -> String? {
            #expect(throws: MediaError.self) { try machine.system.find(name) }?.message
        }
        #expect(
            refused("fornt")
                == #"No camera is named fornt; did you mean "front"? 'connectlive devices' lists the names."#)
        #expect(refused("other") == "No camera is named other. 'connectlive devices' lists the names.")
        #expect(refused("")?.hasPrefix("The camera's name is empty.") == true)
        #expect(refused("serial:7")?.hasPrefix("The camera serial:7 is not plugged in.") == true)
        try #"{"a": "b", "b": "a", "c": "c", "d": ""}"#
            .write(toFile: machine.folder.file("config/cameras.json"), atomically: true, encoding: .utf8)
        #expect(refused("a")?.hasPrefix("The name a leads to the name b, not to a camera: ") == true)
        #expect(refused("c")?.hasPrefix("The name c leads to the name c,") == true)
        #expect(refused("d")?.hasPrefix("The name d leads to nothing,") == true)
    }

    @Test func `a camera that another node of this program reads is refused with that node's name`() throws {
        let machine = try Machine(FixtureTests.webcam())
        let first = try CameraSession(machine.name, of: machine.system, Self.wish, owner: "left")
        let second = try CameraSession(machine.name, of: machine.system, Self.wish, owner: "right")
        try first.start()
        let late = #expect(throws: MediaError.self) { try second.start() }
        let third = #expect(throws: MediaError.self) {
            try CameraSession(machine.name, of: machine.system, Self.wish, owner: "third")
        }
        for error in [late, third] {
            #expect(error?.code == "camera.busy")
            #expect(error?.message.contains(#"is in use by the node "left" of this program"#) == true)
        }
        first.close()
        try second.start()
    }

    @Test func `a misspelt control is refused with the one that was meant`() throws {
        let controls = [DeviceControl(1, "Auto Exposure", .menu, 0...3, standard: 3)]
        let error = #expect(throws: MediaError.self) {
            try ControlValues("auto_exposrue=1").check(controls, of: "front")
        }
        #expect(error?.message.contains("has no control auto_exposrue; did you mean auto_exposure?") == true)
    }

    @Test func `auto is the camera that the process names, with the presets of a bound name`() throws {
        let machine = try Machine(FixtureTests.webcam(), automatic: "front")
        let bindings = CameraBindings(file: machine.folder.file("config/cameras.json"))
        for refused in [
            #expect(throws: MediaError.self) { try machine.system.open("auto") },
            #expect(throws: MediaError.self) { try machine.system.find("auto") },
        ] {
            #expect(refused?.code == "camera.absent")
            #expect(
                refused?.message.hasPrefix("CONNECTLIVE_CAMERA names the camera front. No camera is named front.")
                    == true
            )
        }
        let named = #expect(throws: MediaError.self) { try machine.system.open("front") }
        #expect(named?.message.hasPrefix("No camera is named front.") == true)
        try bindings.bind("front", to: .init(machine.name, controls: "brightness=90"))
        #expect(machine.system.isThere("auto"))
        let session = try CameraSession("auto", of: machine.system, Self.wish)
        #expect(session.place.path == machine.name)
        session.close()
        let device = try machine.system.open(machine.name).device
        defer { device.close() }
        #expect(try device.value(of: try #require(try device.controls().first)) == 90)
    }

    @Test func `the presets of a name are set whenever the camera opens, and a node's own values replace them`() throws
    {
        let machine = try Machine(FixtureTests.webcam())
        let bindings = CameraBindings(file: machine.folder.file("config/cameras.json"))
        try bindings.bind("front", to: .init(machine.name, controls: "brightness=90,auto_exposure=1"))
        #expect(try bindings.all()["front"]?.controls == "brightness=90,auto_exposure=1")
        func values(_ name: String, _ own: String = "") throws -> [Int] {
            let session = try CameraSession(name, of: machine.system, Self.wish, controls: try ControlValues(own))
            session.close()
            let opened = try machine.system.open(machine.name)
            defer { opened.device.close() }
            let controls = try opened.device.controls()
            return try ["brightness", "auto_exposure"].map { name in
                try opened.device.value(of: try #require(controls.first { $0.name == name }))
            }
        }
        #expect(try values("front") == [90, 1])
        #expect(try values("front", "brightness=20") == [20, 1])
        #expect(try values(machine.name, "brightness=30") == [30, 1])
        #expect(try values("front") == [90, 1])
        let refused = #expect(throws: MediaError.self) {
            try bindings.bind("front", to: .init(machine.name, controls: "brightness"))
        }
        #expect(refused?.code == "camera.control")
    }

    @Test func `a name that is bound while another program writes the file waits, and both are kept`() async throws {
        let folder = TemporaryFolder()
        let bindings = CameraBindings(file: folder.file("cameras.json"))
        let lock = open(bindings.file + ".lock", O_RDWR | O_CREAT, 0o600)
        #expect(flock(lock, LOCK_EX) == 0)
        let binding = Task.detached { try bindings.bind("front", to: .init("x")) }
        let isEarly = await eventually(within: 0.3) { FileManager.default.fileExists(atPath: bindings.file) }
        #expect(!isEarly)
        try #"{"back": "y"}"#.write(toFile: bindings.file, atomically: true, encoding: .utf8)
        close(lock)
        _ = try await binding.value
        #expect(try bindings.all() == ["front": .init("x"), "back": .init("y")])
    }

    @Test func `a file is written where its links lead, and a device stays a device`() throws {
        let folder = TemporaryFolder()
        let (link, real) = (folder.file("cameras.json"), folder.file("real.json"))
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: "real.json")
        try CameraBindings(file: link).bind("front", to: .init("x"))
        #expect(try FileManager.default.destinationOfSymbolicLink(atPath: link) == "real.json")
        #expect(try CameraBindings(file: real).all() == ["front": .init("x")])
        let pipe = folder.file("pipe")
        #expect(mkfifo(pipe, 0o600) == 0)
        let reader = open(pipe, O_RDONLY | O_NONBLOCK)
        defer { close(reader) }
        try write("text", toFile: pipe)
        var bytes = [UInt8](repeating: 0, count: 9)
        #expect(Glibc.read(reader, &bytes, 9) == 4)
    }

    @Test func `a file that is no recorded camera is refused`() throws {
        let machine = try Machine(FixtureTests.webcam())
        let missing = #expect(throws: MediaError.self) { try machine.system.open("fixture:/nowhere.json") }
        #expect(missing?.code == "camera.fixture")
    }

    @Test func `colour planes follow the driver's stride`() {
        func planes(_ format: FourCC, _ stride: Int) -> [ColourPlane] {
            CaptureLayout(CaptureMode(format, FrameSize(6, 5), nil), planes: [.init(stride: stride, bytes: 999)])
                .colourPlanes()
        }
        #expect(planes("YUYV", 16) == [.init(offset: 0, stride: 16)])
        #expect(
            planes("YU12", 8)
                == [.init(offset: 0, stride: 8), .init(offset: 40, stride: 4), .init(offset: 52, stride: 4)])
        #expect(planes("NV12", 8) == [.init(offset: 0, stride: 8), .init(offset: 40, stride: 8)])
        #expect(planes("MJPG", 0).isEmpty)
        let parts = CaptureLayout(
            CaptureMode("NM12", FrameSize(6, 5), nil),
            planes: [.init(stride: 8, bytes: 40), .init(stride: 8, bytes: 24)])
        #expect(parts.colourPlanes([48, 24]) == [.init(offset: 0, stride: 8), .init(offset: 48, stride: 8)])
        let odd = CaptureLayout(CaptureMode("YU12", FrameSize(6, 5), nil), planes: [.init(stride: 8, bytes: 64)])
        #expect(odd.leastBytes == [52 + 4 * 2 + 3])
    }

}
