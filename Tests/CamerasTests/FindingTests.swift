import Cameras
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
        #expect(try system.open("auto", identity: "serial:C7").place.name == "serial:C7")
        #expect(try system.open("auto", identity: "serial:gone").place.name == "serial:B7")
        // Without a check, the first one.
        #expect(try system.open("auto", mayReserve: false).place.name == "serial:A7")
        let refused = #expect(throws: CaptureError.self) { try system.open("serial:A7") }
        #expect(refused?.code == "camera.busy")
        let none = #expect(throws: CaptureError.self) { try machine(MadeTree(), [:]).open("auto") }
        #expect(none?.code == "camera.absent")
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
        let identity = try machine(before, cameras).find("/dev/video0").name
        #expect(identity == "serial:A7")
        #expect(try machine(after, cameras).find("/dev/video0", identity: identity).path == "/dev/video1")
        // Another camera that took the number is not the wished one.
        let other = MadeTree()
        try other.plug("1-2", serial: "B7")
        try other.addVideo(0, name: "Webcam", at: "1-2")
        let gone = #expect(throws: CaptureError.self) {
            try machine(other, cameras).find("/dev/video0", identity: identity)
        }
        #expect(gone?.code == "camera.absent")
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
                let refused = #expect(throws: CaptureError.self) { try other.start() }
                #expect(refused?.code == "camera.bandwidth")
                #expect(refused?.message.contains("USB bus 1") == true, "\(String(describing: refused))")
            }
            first.close()
        }
    }
}
