import Cameras
import Foundation
import MediaGraph
import TestSupport
import Testing

/// Names, paths and identities, with recorded cameras in a made-up sysfs.
@Suite struct FindingTests {
    private func machine(_ made: MadeTree, _ cameras: [String: CameraFixture]) -> CameraSystem {
        let clock = CaptureClock()
        return CameraSystem(
            FixtureBackend(cameras.mapValues { FixtureCamera($0, on: clock) }), tree: made.tree, on: clock)
    }

    @Test func `auto passes over a camera in use, and takes the camera of before if it is there`() throws {
        let made = MadeTree()
        for (number, serial) in [(0, "A7"), (2, "B7"), (4, "C7")] {
            try made.plug("1-\(number + 1)", serial: serial)
            try made.addVideo(number, name: "Webcam", at: "1-\(number + 1)")
        }
        let (busy, free) = (
            try FixtureTests.webcam(.init(.busy, at: 0)), try FixtureTests.webcam()
        )
        let system = machine(made, ["/dev/video0": busy, "/dev/video2": free, "/dev/video4": free])
        let opened = try system.open("auto")
        #expect(opened.place.name == "serial:B7")
        #expect(opened.passedOver.count == 1 && opened.passedOver.first?.contains("serial:A7") == true)
        #expect(try system.open("auto", identity: .init("serial:C7")).place.name == "serial:C7")
        #expect(try system.open("auto", identity: .init("serial:gone")).place.name == "serial:B7")
        // Without a check, the first one.
        #expect(try system.open("auto", mayReserve: false).place.name == "serial:A7")
        let refused = #expect(throws: MediaError.self) { try system.open("serial:A7") }
        #expect(refused?.code == "camera.busy")
        let none = #expect(throws: MediaError.self) { try machine(MadeTree(), [:]).open("auto") }
        #expect(none?.code == "camera.absent")
    }

    @Test func `front and back are the bound cameras, or else the first and the second one`() throws {
        let folder = TemporaryFolder()
        func places(cameras: Int, bound: String?, automatic: String? = nil) throws -> [String?] {
            let made = MadeTree()
            var fixtures: [String: CameraFixture] = [:]
            for number in 0..<cameras {
                try made.plug("1-\(number + 1)", serial: ["A7", "B7", "C7"][number])
                try made.addVideo(2 * number, name: "Webcam", at: "1-\(number + 1)")
                fixtures["/dev/video\(2 * number)"] = try FixtureTests.webcam()
            }
            let clock = CaptureClock()
            let file = folder.file("cameras.json")
            try (bound ?? "{}").write(toFile: file, atomically: true, encoding: .utf8)
            let system = CameraSystem(
                FixtureBackend(fixtures.mapValues { FixtureCamera($0, on: clock) }), tree: made.tree,
                bindings: CameraBindings(file: file), automatic: automatic, on: clock)
            return [try system.camera(at: "front"), try system.camera(at: "back")]
        }
        #expect(try places(cameras: 0, bound: nil) == [nil, nil])
        #expect(try places(cameras: 1, bound: nil) == [nil, nil])
        #expect(try places(cameras: 3, bound: nil) == [nil, "serial:B7"])
        #expect(try places(cameras: 2, bound: #"{"front": "serial:B7"}"#) == ["front", "serial:A7"])
        #expect(try places(cameras: 2, bound: #"{"back": "serial:A7"}"#) == ["serial:B7", "back"])
        #expect(try places(cameras: 1, bound: #"{"back": "serial:A7"}"#) == [nil, "back"])
        // CONNECTLIVE_CAMERA counts more.
        #expect(try places(cameras: 2, bound: #"{"back": "serial:A7"}"#, automatic: "serial:B7") == [nil, nil])
    }

    @Test func `the kernel's list tells without opening a device whether a name may lead to a camera`() throws {
        let made = MadeTree()
        try made.plug("1-1", serial: "A7")
        try made.addVideo(0, name: "Webcam", at: "1-1")
        let system = machine(made, [:])
        let names = ["auto", "serial:A7", "serial:A7#2", "model:Webcam", "1-1", "/dev/video9", "fixture:nothing.json"]
        #expect(names.filter { !system.isListed($0) } == [])
        let other = CameraPlace.Identity("serial:B7")
        let mayBe = [
            system.isListed("serial:B7", identity: .init("serial:A7")), system.isListed("serial:B7"),
            system.isListed("/dev/video0", identity: other), machine(MadeTree(), [:]).isListed("auto"),
        ]
        #expect(mayBe == [true, false, false, false])
        // Nothing can be opened here.
        #expect(!system.isThere("serial:A7"))
    }

    @Test func `a path leads to the same camera when the numbers change after a replug`() throws {
        let (before, after) = (MadeTree(), MadeTree())
        for (made, numbers) in [(before, [0, 1]), (after, [1, 0])] {
            for (port, serial) in [("1-1", "A7"), ("1-2", "B7")] {
                try made.plug(port, serial: serial)
                try made.addVideo(numbers[port == "1-1" ? 0 : 1], name: "Webcam", at: port)
            }
        }
        let cameras = ["/dev/video0": try FixtureTests.webcam(), "/dev/video1": try FixtureTests.webcam()]
        let identity = try machine(before, cameras).find("/dev/video0").identity
        #expect(identity.name == "serial:A7")
        #expect(try machine(after, cameras).find("/dev/video0", identity: identity).path == "/dev/video1")
        // Another camera that took the number is not the wished one.
        let other = MadeTree()
        try other.plug("1-2", serial: "B7")
        try other.addVideo(0, name: "Webcam", at: "1-2")
        let gone = #expect(throws: MediaError.self) {
            try machine(other, cameras).find("/dev/video0", identity: identity)
        }
        #expect(gone?.code == "camera.absent")
    }

    @Test func `a path without an entry in sysfs, as in a container, leads to its camera again`() throws {
        let system = machine(MadeTree(), ["/dev/video0": try FixtureTests.webcam()])
        let identity = try system.open("/dev/video0").place.identity
        #expect(try system.open("/dev/video0", identity: identity).place.path == "/dev/video0")
        #expect(system.isThere("/dev/video0", identity: identity))
    }

    @Test(arguments: ["/dev/video0", "serial:A7", "auto"])
    func `a second camera with the same serial number does not hide the first`(name: String) throws {
        let made = MadeTree()
        let cameras = ["/dev/video0": try FixtureTests.webcam(), "/dev/video2": try FixtureTests.webcam()]
        try made.plug("1-2", serial: "A7")
        try made.addVideo(0, name: "Webcam", at: "1-2")
        let system = machine(made, cameras)
        let identity = try system.open(name).place.identity
        try made.plug("1-1", serial: "A7")
        try made.addVideo(2, name: "Webcam", at: "1-1")
        #expect(try system.open(name, identity: identity).place.path == "/dev/video0")
    }

    @Test func `a camera that moved to another port is found by its serial number`() throws {
        let (before, after) = (MadeTree(), MadeTree())
        for (made, port) in [(before, "1-1"), (after, "1-2")] {
            try made.plug(port, serial: "A7")
            try made.addVideo(0, name: "Webcam", at: port)
        }
        let cameras = ["/dev/video0": try FixtureTests.webcam()]
        let identity = try machine(before, cameras).open("/dev/video0").place.identity
        #expect(try machine(after, cameras).open("/dev/video0", identity: identity).place.path == "/dev/video0")
    }

    /// Two cameras in one machine.
    private func pair(_ first: CameraFixture, _ second: CameraFixture, in made: MadeTree) throws -> CameraSystem {
        for (number, port) in [(0, "1-1"), (2, "1-2")] {
            try made.plug(port, serial: "A\(port)")
            try made.addVideo(number, name: "Webcam", at: port)
        }
        return machine(made, ["/dev/video0": first, "/dev/video2": second])
    }

    private static let wish = CaptureWish(FrameSize(64, 48), FrameRate(30), formats: ["YUY2"])

    @Test func `auto passes over cameras without a mode`() throws {
        var bayer = try FixtureTests.webcam()
        bayer.formats = [bayer.formats[0]]
        bayer.formats[0].format = "pBAA"
        let made = MadeTree()
        let system = try pair(bayer, try FixtureTests.webcam(), in: made)
        #expect(try CameraSession("auto", of: system, Self.wish).place.path == "/dev/video2")
        let refused = #expect(throws: MediaError.self) { try CameraSession("/dev/video0", of: system, Self.wish) }
        #expect(refused?.code == "camera.no-mode")
    }

    @Test func `a strict wish that the driver does not keep is refused, and auto passes over it`() throws {
        let made = MadeTree()
        let system = try pair(
            try FixtureTests.webcam(.init(.changedSource, at: 0, size: FrameSize(16, 12))),
            try FixtureTests.webcam(), in: made)
        let strict = CaptureWish(FrameSize(64, 48), FrameRate(30), formats: ["YUY2"], isRequired: true)
        let refused = #expect(throws: MediaError.self) { try CameraSession("/dev/video0", of: system, strict) }
        #expect(refused?.code == "camera.no-mode")
        #expect(refused?.message.contains("chose YUYV 16x12") == true)
        #expect(try CameraSession("auto", of: system, strict).place.path == "/dev/video2")
        #expect(try CameraSession("auto", of: system, Self.wish).place.path == "/dev/video0")
    }

    @Test func `two cameras of auto in one process are two cameras`() throws {
        let made = MadeTree()
        let system = try pair(try FixtureTests.webcam(), try FixtureTests.webcam(), in: made)
        let first = try CameraSession("auto", of: system, Self.wish)
        try first.start()
        let second = try CameraSession("auto", of: system, Self.wish)
        try second.start()
        #expect([first.place.path, second.place.path] == ["/dev/video0", "/dev/video2"])
        // The plan of an edit may choose a camera whose node is about to end.
        let planned = try system.open("auto", mayBeOwn: true)
        #expect(planned.place.path == "/dev/video0")
        let refused = #expect(throws: MediaError.self) { try planned.device.configure(FixtureTests.Stand.mode) }
        #expect(refused?.code == "camera.busy")
        first.close()
        #expect(try system.open("auto").place.path == "/dev/video0")
        second.close()
    }

    @Test func `two cameras that do not fit on one bus are reported before the second one fails`() throws {
        let made = MadeTree()
        for (port, number) in [("1-1", 0), ("1-2", 1)] {
            try made.plug(port, serial: "A\(port)")
            try made.addVideo(number, name: "Webcam", at: port)
        }
        let large = try CameraFixture(
            json: """
                {"version": 1, "driver": "uvcvideo", "card": "Webcam", "bus": "usb-1",
                 "formats": [{"format": "YUYV", "sizes": [{"size": "1280x720", "rates": ["15", "5"]}]}]}
                """)
        var full = large
        full.faults = [.init(.noBandwidth, at: 0)]
        for second in [large, full] {
            let system = machine(made, ["/dev/video0": large, "/dev/video1": second])
            let wish = CaptureWish(FrameSize(1280, 720), FrameRate(15), formats: ["YUY2"])
            let first = try CameraSession("/dev/video0", of: system, wish)
            try first.start()
            let other = try CameraSession("/dev/video1", of: system, wish)
            if second.faults == nil {
                try other.start()
                guard case .notice(let notice) = try other.next(within: .seconds(1)) else {
                    Issue.record("no notice")
                    return
                }
                #expect(notice.kind == .bus && notice.message.contains("the second one will not start"))
            } else {
                let refused = #expect(throws: MediaError.self) { try other.start() }
                #expect(refused?.code == "camera.bandwidth")
                #expect(refused?.message.contains("USB bus 1") == true, "\(String(describing: refused))")
            }
            first.close()
        }
    }
}
