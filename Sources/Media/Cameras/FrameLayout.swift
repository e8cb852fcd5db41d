/// A colour plane of a frame whose pieces of memory lie one after the other.
package struct ColourPlane: Sendable, Hashable {
    /// Its first byte, from the start of the frame.
    package let offset: Int
    /// Bytes from row to row.
    package let stride: Int

    package init(offset: Int, stride: Int) {
        self.offset = offset
        self.stride = stride
    }
}

extension CaptureLayout {
    /// The colour planes of a frame, in the order of its memory. Empty for compressed and unknown formats.
    ///
    /// - Parameter lengths: bytes of data in each piece of memory, for frames in several pieces.
    package func colourPlanes(_ lengths: [Int] = []) -> [ColourPlane] {
        guard let first = planes.first, first.stride > 0, mode.format.bitsPerPixel != nil else { return [] }
        if planes.count > 1 {
            var start = 0
            return planes.indices.map { place in
                defer { start += lengths.indices.contains(place) ? lengths[place] : planes[place].bytes }
                return ColourPlane(offset: start, stride: planes[place].stride)
            }
        }
        var found = [ColourPlane(offset: 0, stride: first.stride)]
        var end = first.stride * mode.size.height
        for shape in mode.format.chroma {
            let stride = (first.stride * shape.width + 1) / 2
            found.append(ColourPlane(offset: end, stride: stride))
            end += stride * (shape.isHalfHeight ? (mode.size.height + 1) / 2 : mode.size.height)
        }
        return found
    }

    /// The bytes that a complete raw frame has at least, without padding at its end. 0 for compressed and unknown formats.
    package var leastBytes: Int {
        guard let bits = mode.format.bitsInFirstPlane, let first = planes.first, first.stride > 0 else { return 0 }
        let row = min((mode.size.width * bits + 7) / 8, first.stride)
        if planes.count > 1 { return first.stride * (mode.size.height - 1) + row }
        guard let last = colourPlanes().last, let shape = mode.format.chroma.last else {
            return first.stride * (mode.size.height - 1) + row
        }
        let rows = shape.isHalfHeight ? (mode.size.height + 1) / 2 : mode.size.height
        return last.offset + last.stride * (rows - 1) + row * shape.width / 2
    }
}

extension FourCC {
    /// The planes after the first one, in a single piece of memory: their width in halves of the first one's, and height.
    fileprivate var chroma: [(width: Int, isHalfHeight: Bool)] {
        switch name {
        case "I420", "YV12": [(1, true), (1, true)]
        case "Y42B": [(1, false), (1, false)]
        case "NV12", "NV21": [(2, true)]
        case "NV16", "NV61": [(2, false)]
        case "NV24": [(4, false)]
        default: []
        }
    }
}
