import Cameras
import MediaGraph
import TestSupport
import Testing

@Suite struct PlaceTests {
    @Test func `a camera is named by its serial number`() throws {
        let made = MadeTree()
        try made.plug("1-1.2", serial: "A1B2C3")
        try made.addVideo(0, name: "HD Pro Webcam C920", at: "1-1.2")
        let camera = try #require(made.cameras().first)
        #expect(camera.name == "serial:A1B2C3")
        #expect(camera.path == "/dev/video0")
        #expect(camera.model == "HD Pro Webcam C920")
        #expect(camera.usb?.kernelPort == "1-1.2")
        #expect(camera.usb?.port == "usb-0000:00:14.0-1.2")
        #expect(camera.usb?.bus == 1)
        #expect(camera.usb?.speed == 480)
    }

    @Test func `two cameras with one serial number are told apart by their ports, behind a hub too`() throws {
        let made = MadeTree()
        try made.plug("1-1.2", serial: "77")
        try made.plug("1-1.3.4", serial: "77")
        try made.addVideo(0, name: "Webcam", at: "1-1.3.4")
        try made.addVideo(2, name: "Webcam", at: "1-1.2")
        let cameras = made.cameras()
        #expect(cameras.map(\.name) == ["serial:77@usb-0000:00:14.0-1.3.4", "serial:77@usb-0000:00:14.0-1.2"])
        let other = #expect(throws: MediaError.self) { try CameraPlace.find("serial:77", among: cameras) }
        #expect(other?.message.contains("several cameras") == true)
        #expect(other?.message.contains(cameras[1].name) == true)
        #expect(try CameraPlace.find(cameras[1].name, among: cameras).path == "/dev/video2")
        // The name with the port stays valid while the other camera is away.
        let alone = [try CameraPlace.find(cameras[1].name, among: cameras)]
        #expect(try CameraPlace.find("serial:77@usb-0000:00:14.0-1.2", among: alone).path == "/dev/video2")
    }

    @Test(arguments: ["200901010001", "SN0001", "0000", "0123456789"])
    func `a serial number that a maker repeats does not name a camera alone`(serial: String) throws {
        let made = MadeTree()
        try made.plug("2-4", serial: serial)
        try made.addVideo(0, name: "Webcam", at: "2-4")
        #expect(made.cameras().first?.name == "serial:\(serial)@usb-0000:00:14.0-4")
    }

    @Test func `a camera without a serial number is named by its port`() throws {
        let made = MadeTree()
        try made.plug("1-2")
        try made.addVideo(0, name: "Webcam", at: "1-2")
        let cameras = made.cameras()
        #expect(cameras.map(\.name) == ["usb-0000:00:14.0-2"])
        for name in ["usb-0000:00:14.0-2", "1-2", "model:Webcam", "Webcam"] {
            #expect(try CameraPlace.find(name, among: cameras).path == "/dev/video0")
        }
        // A part of a port is another port.
        #expect(throws: MediaError.self) { try CameraPlace.find("1-2.1", among: cameras) }
    }

    @Test func `metadata devices are left out, and a camera's second sensor has a name of its own`() throws {
        let made = MadeTree()
        try made.plug("1-1", serial: "IR1")
        for number in 0..<4 { try made.addVideo(number, name: "Laptop Camera", at: "1-1", interface: number / 2 * 2) }
        let cameras = made.cameras(metadata: [1, 3])
        #expect(cameras.map(\.path) == ["/dev/video0", "/dev/video2"])
        #expect(cameras.map(\.name) == ["serial:IR1", "serial:IR1#2"])
        #expect(try CameraPlace.find("serial:IR1", among: cameras).path == "/dev/video0")
        #expect(try CameraPlace.find("1-1#2", among: cameras).path == "/dev/video2")
    }

    @Test func `a sensor of a board is named by its model, and the second device of it is counted`() throws {
        let made = MadeTree()
        for number in [0, 10] {
            try made.addVideo(number, name: "unicam-image", below: "devices/platform/soc/fe801000.csi")
        }
        let cameras = made.cameras()
        #expect(cameras.map(\.name) == ["model:unicam-image", "model:unicam-image#2"])
        #expect(cameras.allSatisfy { $0.usb == nil })
        for name in ["model:unicam-image#2", "model:unicam-image@fe801000.csi#2"] {
            #expect(try CameraPlace.find(name, among: cameras).path == "/dev/video10")
        }
        #expect(try CameraPlace.find("model:unicam-image@fe801000.csi", among: cameras).path == "/dev/video0")
    }

    @Test func `equal sensors of a board keep their names by their addresses when their numbers are swapped`() throws {
        func cameras(_ first: Int, _ second: Int?) throws -> [CameraPlace] {
            let made = MadeTree()
            try made.addVideo(first, name: "imx219", below: "devices/platform/soc/fe801000.csi")
            if let second { try made.addVideo(second, name: "imx219", below: "devices/platform/soc/fe802000.csi") }
            return made.cameras()
        }
        let name = "model:imx219@fe801000.csi"
        for (first, second) in [(0, 10), (10, 0)] {
            let both = try cameras(first, second)
            #expect(Set(both.map(\.name)) == [name, "model:imx219@fe802000.csi"])
            #expect(try CameraPlace.find(name, among: both).path == "/dev/video\(first)")
            let several = #expect(throws: MediaError.self) { try CameraPlace.find("model:imx219", among: both) }
            #expect(several?.message.contains("several cameras") == true && several?.message.contains(name) == true)
        }
        // The name stays valid without the other one, and the camera is known again.
        let alone = try cameras(3, nil)
        #expect(try CameraPlace.find(name, among: alone).path == "/dev/video3")
        #expect(try #require(alone.first).name == "model:imx219")
        let before = try CameraPlace.find(name, among: try cameras(0, 10))
        #expect(try #require(alone.first).identity == CameraPlace.Identity("model:imx219", atPort: name))
        #expect(before.identity == CameraPlace.Identity(name))
    }

    @Test func `equal cameras without an address are counted in the order of their numbers`() throws {
        let made = MadeTree()
        for number in [0, 1] { try made.addVideo(number, name: "Dummy", below: "devices/virtual/dummy\(number)") }
        #expect(made.cameras().map(\.name) == ["model:Dummy", "model:Dummy#2"])
        #expect(try CameraPlace.find("model:Dummy", among: made.cameras()).path == "/dev/video0")
        #expect(try CameraPlace.find("model:Dummy#2", among: made.cameras()).path == "/dev/video1")
    }

    @Test func `cameras keep their names when their numbers are swapped`() throws {
        func names(_ first: Int, _ second: Int) throws -> [String: String] {
            let made = MadeTree()
            try made.plug("1-1", serial: "LEFT")
            try made.plug("1-2")
            try made.addVideo(first, name: "Webcam", at: "1-1")
            try made.addVideo(second, name: "Webcam", at: "1-2")
            return Dictionary(uniqueKeysWithValues: made.cameras().map { ($0.name, $0.path) })
        }
        #expect(try names(0, 2) == ["serial:LEFT": "/dev/video0", "usb-0000:00:14.0-2": "/dev/video2"])
        #expect(try names(2, 0) == ["serial:LEFT": "/dev/video2", "usb-0000:00:14.0-2": "/dev/video0"])
    }

    @Test func `a serial number without its prefix is answered with the way to write it`() throws {
        let made = MadeTree()
        try made.plug("1-1", serial: "7C3F")
        try made.addVideo(0, name: "Webcam", at: "1-1")
        try made.plug("1-2", serial: "ABBA")
        try made.addVideo(2, name: "Webcam", at: "1-2")
        let cameras = made.cameras()
        func refused(_ wish: String, names: [String] = []) -> String {
            #expect(throws: MediaError.self) { try CameraPlace.find(wish, among: cameras, names: names) }?.message ?? ""
        }
        #expect(refused("7C3F").hasPrefix("No camera is named 7C3F; did you mean serial:7C3F?"))
        #expect(refused("7c3f#2").hasPrefix("No camera is named 7c3f#2; did you mean serial:7C3F#2?"))
        #expect(refused("ABBA", names: ["abbe"]).hasPrefix("No camera is named ABBA; did you mean serial:ABBA?"))
        #expect(refused("99D1").hasPrefix("The camera 99D1 is not plugged in; a serial number is written serial:99D1."))
        for other in ["serial:99D1", "1-7", "model:Cam"] {
            #expect(refused(other).hasPrefix("The camera \(other) is not plugged in. "))
        }
    }

    @Test func `a machine without cameras has none, and the error advises to plug one in`() throws {
        let cameras = MadeTree().cameras()
        #expect(cameras.isEmpty)
        let absent = #expect(throws: MediaError.self) { try CameraPlace.find("serial:1", among: cameras) }
        #expect(absent?.message.hasSuffix("is not plugged in. Plug it in.") == true)
        #expect(absent?.code == "camera.absent")
    }
}
