package import MediaGraph

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
    /// As many pieces of memory as a frame has at most.
    private static let mostPlanes = 4
    /// The longest row, in bytes: 32 bits a pixel, and as much padding.
    private static let longestRow = FrameSize.longest * 8

    /// The colour planes of a frame, in the order of its memory. Empty for compressed and unknown formats.
    ///
    /// - Parameter lengths: bytes of data in each piece of memory, for frames in several pieces.
    package func colourPlanes(_ lengths: [Int] = []) -> [ColourPlane] {
        guard problem == nil, let first = planes.first, first.stride > 0, mode.format.bitsPerPixel != nil else {
            return []
        }
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
            end += stride * rows(of: shape)
        }
        return found
    }

    /// The bytes that a complete frame has at least in each piece of memory, without padding at the end of its planes. 1
    /// for compressed and unknown formats.
    package var leastBytes: [Int] {
        let whole = planes.isEmpty ? [1] : planes.map { _ in 1 }
        guard problem == nil, let row = mode.rowBytes else { return whole }
        let colours = colourPlanes()
        guard !colours.isEmpty else { return whole }
        let shapes = mode.format.chroma
        let ends = colours.indices.map { place in
            place == 0
                ? colours[0].stride * (mode.size.height - 1) + row
                : colours[place].stride * (rows(of: shapes[place - 1]) - 1)
                    + mode.size.chromaRowBytes(shapes[place - 1].width)
        }
        return planes.count > 1 ? ends : [zip(colours, ends).map { $0.offset + $1 }.max() ?? 1]
    }

    /// The contradiction of a layout whose frames cannot be read, as words after the camera's name. Nil for a usable one.
    package var problem: String? {
        let (size, longest) = (mode.size, FrameSize.longest)
        guard (1...longest).contains(size.width), (1...longest).contains(size.height) else {
            return "chose the size \(size)"
        }
        guard (1...Self.mostPlanes).contains(planes.count) else { return "has frames in \(planes.count) pieces" }
        guard let row = mode.rowBytes else { return nil }
        let shapes = mode.format.chroma
        guard planes.count == 1 || planes.count == shapes.count + 1 else {
            return "has \(mode.format) in \(planes.count) pieces"
        }
        for (place, plane) in planes.enumerated() where plane.stride != 0 || place > 0 {
            let least = place == 0 ? row : size.chromaRowBytes(shapes[place - 1].width)
            if !(least...Self.longestRow).contains(plane.stride) {
                return "has rows of \(plane.stride) bytes in the mode \(mode), which need \(least)"
            }
        }
        return nil
    }

    /// - Throws: `camera.no-mode` for a layout whose frames cannot be read.
    package func check(of camera: String) throws(MediaError) {
        guard let problem else { return }
        throw MediaError(
            code: MediaError.Code.cameraNoMode,
            message:
                "The camera \(camera) \(problem). Choose another size or format.")
    }

    private func rows(of shape: (width: Int, isHalfHeight: Bool)) -> Int {
        shape.isHalfHeight ? (mode.size.height + 1) / 2 : mode.size.height
    }
}

extension CaptureMode {
    /// The bytes of a row in the first plane. Nil for compressed and unknown formats.
    package var rowBytes: Int? {
        guard let bits = format.bitsInFirstPlane else { return nil }
        // Two pixels share their colour.
        let width = format.isPairwise ? (size.width + 1) / 2 * 2 : size.width
        return (width * bits + 7) / 8
    }
}

extension FrameSize {
    /// The bytes of a row of colour, of a plane whose rows have so many halves of the first plane's.
    fileprivate func chromaRowBytes(_ halves: Int) -> Int {
        halves == 4 ? width * 2 : (width + 1) / 2 * halves
    }
}

extension FourCC {
    fileprivate var isPairwise: Bool { ["YUY2", "UYVY", "YVYU", "VYUY"].contains(name) }

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
