import MediaAuthoring

/// The size of a frame, in pixels, and the bytes behind each row of its planes.
struct FrameShape: Sendable, Hashable, CustomStringConvertible {
    var width: Int
    var height: Int
    var padding = 0

    /// Small, so that a debug build processes it in time.
    static let usual = FrameShape(width: 320, height: 180)

    var description: String {
        "\(width)x\(height)" + (padding == 0 ? "" : " with \(padding) bytes of padding after each row")
    }
}

/// A frame of a stand.
struct Picture: Sendable {
    struct Row: Hashable, Comparable {
        let plane: Int
        let number: Int

        static func < (left: Row, right: Row) -> Bool { (left.plane, left.number) < (right.plane, right.number) }
    }

    private let pixels: PixelFormat
    private let shape: FrameShape
    fileprivate(set) var planes: [[UInt8]]

    /// `rows` returns rows for a plane's number and the bytes of a row, which are repeated down to its end.
    init(_ pixels: PixelFormat, _ shape: FrameShape, rows: (_ plane: Int, _ length: Int) -> [[UInt8]]) {
        (self.pixels, self.shape) = (pixels, shape)
        planes = (0..<pixels.planeCount).map { plane in
            let rows = rows(plane, pixels.rowBytes(ofPlane: plane, width: shape.width) + shape.padding)
            return (0..<pixels.rows(ofPlane: plane, height: shape.height)).flatMap { rows[$0 % rows.count] }
        }
    }

    /// Bytes from one row of a plane to the next.
    func stride(of plane: Int) -> Int { pixels.rowBytes(ofPlane: plane, width: shape.width) + shape.padding }

    /// The samples of each plane without padding.
    var visible: [[UInt8]] {
        planes.indices.map { plane in
            let stride = stride(of: plane)
            return (0..<planes[plane].count / stride).flatMap { row in
                planes[plane][row * stride..<(row + 1) * stride - shape.padding]
            }
        }
    }

    /// The rows that have only this byte, judged by some of their bytes.
    func rows(filledWith filling: UInt8) -> Set<Row> {
        var rows: Set<Row> = []
        for (index, plane) in planes.enumerated() {
            let length = stride(of: index)
            for row in 0..<plane.count / length
            where Swift.stride(from: row * length, to: (row + 1) * length, by: max(1, length / 16))
                .allSatisfy({ plane[$0] == filling })
            {
                rows.insert(Row(plane: index, number: row))
            }
        }
        return rows
    }
}

/// A frame to draw or to change. One thread uses it, so it is not shared.
final class PictureMemory {
    private(set) var picture: Picture

    init(_ picture: Picture) {
        self.picture = picture
    }

    func withPlane(_ plane: VideoPlane, _ body: (inout MutableRawSpan, Int) -> Void) {
        let index = plane.rawValue
        let isThere = picture.planes.indices.contains(index)
        // A plane that the format lacks has no bytes.
        var bytes: [UInt8] = []
        if isThere { swap(&bytes, &picture.planes[index]) }
        var span = bytes.mutableSpan
        var raw = span.mutableBytes
        body(&raw, isThere ? picture.stride(of: index) : 0)
        if isThere { picture.planes[index] = bytes }
    }
}
