import MediaAuthoring

/// The memory of a frame to draw. One capturer draws one frame, so it is not shared.
final class PictureMemory {
    struct Row: Hashable, Comparable {
        let plane: Int
        let number: Int

        static func < (left: Row, right: Row) -> Bool { (left.plane, left.number) < (right.plane, right.number) }
    }

    private let format: PictureFormat
    private let filling: UInt8
    private var planes: [[UInt8]]

    init(_ format: PictureFormat, filledWith filling: UInt8) {
        self.format = format
        self.filling = filling
        planes = (0..<format.pixels.planeCount).map { plane in
            let size =
                format.pixels.rowBytes(ofPlane: plane, width: format.width)
                * format.pixels.rows(ofPlane: plane, height: format.height)
            return [UInt8](repeating: filling, count: size)
        }
    }

    func withPlane(_ plane: VideoPlane, _ body: (inout MutableRawSpan, Int) -> Void) {
        let index = plane.rawValue
        // A plane that the format lacks has no bytes.
        var bytes: [UInt8] = []
        if planes.indices.contains(index) { swap(&bytes, &planes[index]) }
        var span = bytes.mutableSpan
        var raw = span.mutableBytes
        body(&raw, planes.indices.contains(index) ? format.pixels.rowBytes(ofPlane: index, width: format.width) : 0)
        if planes.indices.contains(index) { planes[index] = bytes }
    }

    /// The unwritten rows, judged by some of their bytes.
    var untouched: Set<Row> {
        var rows: Set<Row> = []
        for (index, plane) in planes.enumerated() {
            let length = format.pixels.rowBytes(ofPlane: index, width: format.width)
            let step = max(1, length / 16)
            for row in 0..<format.pixels.rows(ofPlane: index, height: format.height)
            where stride(from: row * length, to: (row + 1) * length, by: step).allSatisfy({ plane[$0] == filling }) {
                rows.insert(Row(plane: index, number: row))
            }
        }
        return rows
    }
}
