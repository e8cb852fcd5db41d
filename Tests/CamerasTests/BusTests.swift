import Cameras
import TestSupport
import Testing

@Suite struct BusTests {
    /// Those of a usual webcam of USB 2.0, up to three packets of 1020 bytes in a microframe.
    private static let usual: [UInt16] = [
        0x00c0, 0x0180, 0x0200, 0x0280, 0x0320, 0x03b0, 0x0a80, 0x0b20, 0x0be0, 0x1380, 0x13fc,
    ]

    private func usb(
        _ settings: [AlternateSetting], port: String = "1-1", bus: Int = 1, speed: Int = 480
    ) -> USBPlace {
        USBPlace(kernelPort: port, port: "usb-x-\(port)", serial: nil, bus: bus, speed: speed, alternates: settings)
    }

    private var webcam: USBPlace {
        usb(alternateSettings(in: descriptors(packets: Self.usual), speed: 480))
    }

    private static func mode(_ format: FourCC, _ width: Int, _ height: Int, _ rate: Int) -> CaptureMode {
        CaptureMode(format, FrameSize(width, height), FrameRate(rate))
    }

    @Test func `alternate settings are read from descriptors`() throws {
        let settings = alternateSettings(in: descriptors(packets: Self.usual), speed: 480)
        #expect(settings.count == Self.usual.count)
        #expect(settings.first == AlternateSetting(1, bytesPerSecond: 192 * 8000))
        // Bits 11 and 12 of 0x13fc are two further packets.
        #expect(settings.last == AlternateSetting(11, bytesPerSecond: 3 * 1020 * 8000))
        #expect(alternateSettings(in: descriptors(packets: [1023]), speed: 12).map(\.bytesPerSecond) == [1_023_000])
        #expect(
            alternateSettings(in: descriptors(packets: [0x0400], interval: 2), speed: 480).map(\.bytesPerSecond)
                == [1024 * 4000])
        #expect(
            alternateSettings(in: descriptors(packets: [0x0400], companion: 24_576), speed: 5000).map(\.bytesPerSecond)
                == [24_576 * 8000])
        #expect(
            alternateSettings(in: descriptors(packets: [512], isBulk: true), speed: 480)
                == [AlternateSetting(0, bytesPerSecond: 0)])
    }

    @Test func `damaged descriptors are read without a trap`() {
        var random = Seeded(7)
        let whole = descriptors(packets: Self.usual, companion: 100)
        for count in 0...whole.count { _ = alternateSettings(in: Array(whole.prefix(count)), speed: 480) }
        for _ in 0..<20_000 {
            var damaged = whole
            for _ in 0..<8 {
                damaged[Int.random(in: 0..<damaged.count, using: &random)] = .random(in: 0...255, using: &random)
            }
            for setting in alternateSettings(in: damaged, speed: 480) { #expect(setting.bytesPerSecond >= 0) }
        }
    }

    @Test func `a tree's descriptors and speed reach the place`() throws {
        let made = MadeTree()
        try made.plug("1-1", speed: "480", descriptors: descriptors(packets: Self.usual))
        try made.plug("2-1", speed: "5000")
        try made.plug("1-2", speed: "1.5")
        for (number, port) in ["1-1", "2-1", "1-2"].enumerated() { try made.addVideo(number, name: "W", at: port) }
        let places = made.cameras().compactMap(\.usb)
        #expect(places.map(\.speed) == [480, 5000, 1])
        #expect(places.map(\.bus) == [1, 2, 1])
        #expect(places.map(\.alternates.count) == [11, 0, 0])
        #expect(places[1].capacity > places[0].capacity)
    }

    @Test func `a mode costs the smallest setting that carries it`() throws {
        // 640x480 YUYV at 30: 18,432,000 bytes and the headers need 2316 bytes in a microframe; 0x1380 has 2688.
        let cost = try #require(webcam.cost(of: Self.mode("YUYV", 640, 480, 30)))
        #expect(cost == BusCost(bytesPerSecond: (2688 + 3 * 38) * 8000, isReserved: true, isEstimate: false))
        // 1280x720 YUYV at 30 is more than any setting has.
        #expect(webcam.cost(of: Self.mode("YUYV", 1280, 720, 30)) == nil)
        #expect(webcam.cost(of: Self.mode("MJPG", 1280, 720, 30))?.isEstimate == true)
        #expect(webcam.cost(of: CaptureMode("YUYV", FrameSize(640, 480), nil)) == nil)
        #expect(webcam.cost(of: Self.mode("pBAA", 640, 480, 30)) == nil)
    }

    @Test func `without settings a mode costs its bytes, and a bulk camera reserves nothing`() {
        let mode = Self.mode("YUYV", 320, 240, 15)
        let plain = 320 * 240 * 2 * 15 + 12 * 8000
        #expect(usb([]).cost(of: mode) == BusCost(bytesPerSecond: plain, isReserved: true, isEstimate: false))
        #expect(
            usb([AlternateSetting(0, bytesPerSecond: 0)]).cost(of: mode)
                == BusCost(bytesPerSecond: plain, isReserved: false, isEstimate: false))
    }

    @Test func `the second camera of a bus is warned about, with the modes that fit`() throws {
        let modes = [
            Self.mode("YUYV", 640, 480, 30), Self.mode("MJPG", 640, 480, 30), Self.mode("YUYV", 320, 240, 30),
        ]
        let one = BusUser("serial:A", webcam, modes)
        let other = BusUser("serial:B", webcam, modes)
        // 22.4 of 48 MB/s each: two fit, and a third camera's place is smaller.
        #expect(BusFit(one, other) == .fits)
        #expect(BusFit.warning(one, other) == nil)
        let large = [Self.mode("YUYV", 800, 500, 30)] + modes
        let (big, bigger) = (BusUser("serial:A", usb([]), large), BusUser("serial:B", usb([]), large))
        // Each needs 24.1 of 48 MB/s. One of them, in the next mode, makes room.
        #expect(BusFit(big, bigger) == .fitsAs(large[0], large[1]))
        #expect(
            BusFit.warning(big, bigger)
                == "serial:A (YUYV 800x500 at 30 frames/s) and serial:B (YUYV 800x500 at 30 frames/s) need 24.1 and 24.1 "
                + "of the 48.0 MB/s of USB bus 1: the second one will not start. Use serial:A in YUYV 800x500 at 30 "
                + "frames/s and serial:B in YUYV 640x480 at 30 frames/s.")
        // On two buses both have room.
        #expect(BusFit(big, BusUser("serial:B", usb([], bus: 2), large)) == .fits)
    }

    @Test func `three cameras are warned about that fit in pairs only, and cameras that reserve nothing never`() {
        let modes = [Self.mode("YUYV", 640, 480, 30)]
        let users = ["a", "b", "c"].map { BusUser($0, webcam, modes) }
        #expect(BusFit.warnings([users[0]], users[1]) == [])
        #expect(
            BusFit.warnings(Array(users.prefix(2)), users[2]) == [
                "a, b and c need 67.2 of the 48.0 MB/s of USB bus 1: the last one will not start. Use MJPG or smaller "
                    + "sizes, or plug one into another USB controller."
            ])
        let bulk = usb([AlternateSetting(0, bytesPerSecond: 0)])
        let huge = ["a", "b"].map { BusUser($0, bulk, [Self.mode("YUYV", 1920, 1080, 15)]) }
        #expect(BusFit.warnings([huge[0]], huge[1]) == [])
    }

    @Test func `cameras that never fit are told to use another controller`() {
        let huge = [Self.mode("YUYV", 1920, 1080, 15)]
        let (one, other) = (BusUser("a", usb([]), huge), BusUser("b", usb([]), huge))
        #expect(BusFit(one, other) == .never)
        #expect(BusFit.warning(one, other)?.hasSuffix("Plug one into another USB controller.") == true)
    }
}
