import MediaGraph
import Testing

@testable import GStreamerKit

/// Frames that a program makes, byte by byte.
@Suite struct PictureTests {
    struct Layout: Sendable, CustomTestStringConvertible {
        let format: String
        /// For each plane the bytes of a sample, and by how much width and height are divided.
        let planes: [(bytes: Int, divisor: Int)]

        var testDescription: String { format }
    }

    static let layouts = [
        Layout(format: "I420", planes: [(1, 1), (1, 2), (1, 2)]), Layout(format: "NV12", planes: [(1, 1), (2, 2)]),
        Layout(format: "BGRA", planes: [(4, 1)]),
    ]

    /// The samples of a plane, row by row.
    private func samples(_ picture: Picture, _ index: Int, _ layout: Layout) throws -> [[[UInt8]]] {
        let (bytes, divisor) = layout.planes[index]
        let plane = try #require(VideoPlane(rawValue: index))
        let (columns, rows) = ((picture.width + divisor - 1) / divisor, (picture.height + divisor - 1) / divisor)
        return picture.withPlane(plane) { span, stride in
            (0..<rows).map { row in
                (0..<columns).map { column in
                    (0..<bytes).map {
                        span.unsafeLoad(fromByteOffset: row * stride + column * bytes + $0, as: UInt8.self)
                    }
                }
            }
        }
    }

    /// A frame whose bytes differ from their neighbours.
    private func made(_ layout: Layout, _ width: Int, _ height: Int) throws -> Picture {
        var picture = try #require(Picture(layout.format, width: width, height: height))
        picture.draw { frame in
            for (index, (size, divisor)) in layout.planes.enumerated() {
                guard let plane = VideoPlane(rawValue: index) else { continue }
                let (columns, rows) = ((width + divisor - 1) / divisor, (height + divisor - 1) / divisor)
                frame.withPlane(plane) { bytes, stride in
                    for row in 0..<rows {
                        for byte in 0..<columns * size {
                            let value = UInt8(truncatingIfNeeded: row * 31 + byte * 7 + index)
                            bytes.storeBytes(of: value, toByteOffset: row * stride + byte, as: UInt8.self)
                        }
                    }
                }
            }
        }
        return picture
    }

    /// One quarter clockwise.
    private func turned(_ samples: [[[UInt8]]]) -> [[[UInt8]]] {
        (0..<samples[0].count).map { column in samples.reversed().map { $0[column] } }
    }

    @Test(arguments: layouts, [(64, 48), (70, 34), (33, 17), (1, 1)])
    func `a frame is turned by quarters, sample by sample`(layout: Layout, size: (width: Int, height: Int)) throws {
        let picture = try made(layout, size.width, size.height)
        for quarters in 1...3 {
            let other = try #require(picture.turned(clockwise: quarters * 90))
            #expect((other.width, other.height) == (quarters == 2 ? size : (size.height, size.width)))
            for plane in layout.planes.indices {
                var expected = try samples(picture, plane, layout)
                for _ in 0..<quarters { expected = turned(expected) }
                #expect(try samples(other, plane, layout) == expected, "plane \(plane), \(quarters * 90) degrees")
            }
        }
    }

    @Test func `drawing into a frame with another reader copies it, and only then`() throws {
        func address(_ picture: Picture) -> UInt {
            picture.withPlane(.luma) { span, _ in span.withUnsafeBytes { UInt(bitPattern: $0.baseAddress) } }
        }
        var picture = try #require(Picture("I420", width: 64, height: 48))
        let first = address(picture)
        picture.draw { $0.fill(luma: 40) }
        #expect(address(picture) == first)
        var kept: Picture? = picture
        picture.draw { $0.fill(luma: 200) }
        #expect(address(picture) != first && kept.map(address) == first)
        #expect(kept?.withPlane(.luma) { bytes, _ in bytes.unsafeLoad(fromByteOffset: 0, as: UInt8.self) } == 40)
        kept = nil
        let second = address(picture)
        picture.draw { $0.fill(luma: 100) }
        #expect(address(picture) == second)
    }

    @Test func `a buffer keeps the frame that it was made of`() throws {
        var picture = try #require(Picture("I420", width: 48, height: 32))
        picture.draw { $0.fill(luma: 60) }
        let buffer = try #require(MediaBuffer(picture, format: nil))
        picture.draw { $0.fill(luma: 90) }
        #expect(buffer.bytes.prefix(48 * 32).allSatisfy { $0 == 60 })
        #expect(buffer.byteCount == 48 * 32 * 3 / 2)
    }

    @Test func `the memory of released frames is used again`() throws {
        var addresses: Set<UInt> = []
        for _ in 0..<100 {
            let picture = try #require(Picture("I420", width: 72, height: 40))
            addresses.insert(
                picture.withPlane(.luma) { span, _ in span.withUnsafeBytes { UInt(bitPattern: $0.baseAddress) } })
        }
        #expect(addresses.count == 1)
    }

    @Test(arguments: [(0, 4), (4, 0), (-1, 4), (16_385, 4), (4, Int.max)])
    func `sizes that no frame has are refused`(width: Int, height: Int) {
        #expect(Picture("I420", width: width, height: height) == nil)
        #expect(Picture("nothing", width: 16, height: 16) == nil)
    }

    @Test func `a frame that is kept beyond its drawing has no samples`() throws {
        var picture = try #require(Picture("I420", width: 64, height: 48))
        var kept: MutableVideoFrame?
        picture.draw { kept = $0 }
        kept?.withPlane(.luma) { bytes, _ in #expect(bytes.byteCount == 0) }
    }
}
