import MediaGraph
import Testing

@Suite struct BarCodeTests {
    private static func drawn(_ number: UInt32, width: Int, height: Int, stride: Int, shade: UInt8 = 90) -> [UInt8] {
        var plane = [UInt8](repeating: shade, count: stride * height)
        var span = plane.mutableSpan
        var bytes = span.mutableBytes
        BarCode.draw(number, into: &bytes, stride: stride, width: width, height: height)
        return plane
    }

    @Test(
        "A drawn number is readable",
        arguments: [(64, 64), (320, 180), (352, 288), (640, 480), (1280, 720), (641, 361)],
        [0, 1, 0x1234_5678, UInt32.max])
    func roundTrip(size: (width: Int, height: Int), number: UInt32) {
        let stride = (size.width + 3) / 4 * 4
        let plane = Self.drawn(number, width: size.width, height: size.height, stride: stride)
        let read = BarCode.read(plane.span.bytes, stride: stride, width: size.width, height: size.height)
        #expect(read == number)
    }

    @Test("A frame of one shade has no number", arguments: [UInt8(0), 16, 90, 126, 127, 200, 255])
    func noNumber(shade: UInt8) {
        let plane = [UInt8](repeating: shade, count: 640 * 480)
        #expect(BarCode.read(plane.span.bytes, stride: 640, width: 640, height: 480) == nil)
    }

    @Test("One flipped block is detected", arguments: 0..<40)
    func checksum(block: Int) {
        var plane = Self.drawn(77, width: 640, height: 480, stride: 640)
        let isWhite = plane[8 * 640 + block * 16 + 8] > 126
        for y in 0..<16 {
            for x in 0..<16 { plane[y * 640 + block * 16 + x] = isWhite ? 16 : 235 }
        }
        #expect(BarCode.read(plane.span.bytes, stride: 640, width: 640, height: 480) == nil)
    }

    @Test("A strip that does not fit is neither drawn nor read")
    func tooSmall() {
        let plane = Self.drawn(5, width: 16, height: 16, stride: 16)
        #expect(plane.allSatisfy { $0 == 90 })
        #expect(BarCode.read(plane.span.bytes, stride: 16, width: 16, height: 16) == nil)
    }
}
