import Cameras
import MediaGraph
import Testing

@Suite struct ValueTests {
    @Test func `a code of four characters is read and written as text`() throws {
        #expect(FourCC(text: "YUYV")?.code == 0x5659_5559)
        #expect(FourCC(text: "Y16") == FourCC(code: 0x2036_3159))
        #expect(FourCC(text: "Y16")?.description == "Y16")
        #expect(FourCC(text: "Y16-BE")?.code == 0xa036_3159)
        #expect(FourCC(code: 0xa036_3159).description == "Y16-BE")
        for wrong in ["", "YUYV2", "Ü", "A\n"] { #expect(FourCC(text: wrong) == nil) }
    }

    @Test func `formats have GStreamer's names and their bits`() {
        #expect(FourCC("YUYV").name == "YUY2")
        #expect(FourCC("YU12").bitsPerPixel == 12)
        #expect(FourCC("YU12").bitsInFirstPlane == 8)
        #expect(FourCC("YUYV").bitsInFirstPlane == 16)
        #expect(FourCC("MJPG").bitsPerPixel == nil)
        #expect(FourCC("JPEG").isJPEG == true)
        #expect(FourCC("pBAA").name == nil)
    }

    @Test func `rates are exact fractions`() {
        #expect(FrameRate(60, per: 2) == FrameRate(30))
        #expect(FrameRate("30000/1001")?.description == "30000/1001")
        #expect(FrameRate("30000/1001")?.short == "29.97")
        #expect(FrameRate("7.5") == FrameRate(15, per: 2))
        #expect(FrameRate(15, per: 2).short == "7.5")
        #expect(FrameRate(1001, per: 1000).short == "1")
        #expect(FrameRate(101, per: 100).short == "1.01")
        #expect(FrameRate(30000, per: 1001) < FrameRate(30))
        // Their products need more than 64 bits.
        #expect(FrameRate(4_294_967_295, per: 4_294_967_294) < FrameRate(4_294_967_291, per: 4_294_967_290))
        #expect(FrameRate(30).interval == .nanoseconds(33_333_333))
        for wrong in ["", "0", "-5", "1/0", "1/2/3", "nan", "x", "-1e300", "1e300"] { #expect(FrameRate(wrong) == nil) }
    }

    @Test func `sizes are read as text`() {
        #expect(FrameSize("1280x720") == FrameSize(1280, 720))
        for wrong in ["", "1280", "0x720", "-1x5", "1x2x3", "1280X720"] { #expect(FrameSize(wrong) == nil) }
    }

    @Test func `sizes that no frame has are cut off`() {
        let range = SizeRange(FrameSize(0, 16), FrameSize(4_294_967_295, 64), step: FrameSize(0, 8))
        #expect(range.usable == SizeRange(FrameSize(1, 16), FrameSize(16_384, 64), step: FrameSize(1, 8)))
        #expect(SizeRange(FrameSize(20_000, 16)).usable == nil)
        #expect(FrameSize(4_294_967_295, 4_294_967_295).pixels == .max)
    }

    @Test func `a menu of any range is checked`() {
        let menu = DeviceControl(1, "Mode", .menu, 0...Int.max, standard: 0, items: [.init(0, "a")])
        let refused = #expect(throws: MediaError.self) { try ControlValues("mode=5").check([menu], of: "f") }
        #expect(refused?.message.contains("must be 0, not 5") == true)
    }

    @Test func `a range of sizes gives the next larger size on its grid`() {
        let range = SizeRange(FrameSize(16, 16), FrameSize(1000, 500), step: FrameSize(16, 8))
        #expect(range.nearest(to: FrameSize(640, 480)) == FrameSize(640, 480))
        #expect(range.nearest(to: FrameSize(641, 1)) == FrameSize(656, 16))
        // The largest width is not on the grid.
        #expect(range.nearest(to: FrameSize(4000, 4000)) == FrameSize(1000 - (1000 - 16) % 16, 496))
    }

    @Test func `the slowest sufficient rate is chosen, or the fastest`() {
        let list = RateOffer.list([FrameRate(30000, per: 1001), FrameRate(15), FrameRate(60)])
        #expect(list.nearest(to: FrameRate(30)) == FrameRate(30000, per: 1001))
        #expect(list.nearest(to: FrameRate(10)) == FrameRate(15))
        #expect(list.nearest(to: FrameRate(90)) == FrameRate(60))
        #expect(RateOffer.list([]).nearest(to: FrameRate(30)) == nil)
        let range = RateOffer.range(slowest: FrameRate(5), fastest: FrameRate(50))
        #expect(range.nearest(to: FrameRate(1)) == FrameRate(5))
        #expect(range.nearest(to: FrameRate(24)) == FrameRate(24))
        #expect(range.nearest(to: FrameRate(60)) == FrameRate(50))
    }

    @Test func `a control has a name, a unit, and a check of its values`() {
        let white = DeviceControl(
            0x0098_091a, "White Balance Temperature", .integer, 2000...6500, step: 10, standard: 4000)
        #expect(white.name == "white_balance_temperature")
        #expect(white.unit == "K")
        #expect([2000, 2010, 6500].allSatisfy(white.takes))
        #expect(![1990, 2005, 6510].contains(where: white.takes))
        let exposure = DeviceControl(
            0x009a_0901, "Auto Exposure", .menu, 0...3, standard: 3,
            items: [.init(1, "Manual Mode"), .init(3, "Aperture Priority Mode")])
        #expect(exposure.takes(3))
        #expect(!exposure.takes(2))
        let bits = DeviceControl(1, "Bits", .bitmask, 0...0b101, standard: 0)
        #expect(bits.takes(0b100))
        #expect(!bits.takes(0b10))
        #expect(!bits.takes(-1))
        let fixed = DeviceControl(2, "Read-Only", .integer, 0...9, standard: 1, isReadOnly: true)
        #expect(!fixed.takes(1))
        let wide = DeviceControl(3, "Wide", .wideInteger, Int.min...Int.max, standard: 0)
        #expect(wide.takes(Int.max))
        #expect(DeviceControl(4, "Do it", .button, 0...0, standard: 0).takes(1))
    }
}
