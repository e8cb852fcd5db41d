internal import CGLib
internal import CGStreamer
package import MediaGraph

extension PassingBuffer {
    /// Calls `body` with the frame to change it in place. Returns nil if it cannot be mapped, as inside a list.
    ///
    /// If the samples are shared, copies them first and returns true.
    package func edit(_ format: VideoFormat, _ body: (inout MutableVideoFrame) -> Void) -> Bool? {
        let time = time
        let before = firstByte
        guard let buffer = makeWritable() else { return nil }
        return EditablePicture.edit(buffer, format) { picture in
            picture.draw(at: time, body)
            return picture.firstByte != before
        }
    }

    private var firstByte: UnsafeMutableRawPointer? {
        var map = GstMapInfo()
        guard gst_buffer_map(current, &map, GST_MAP_READ) != 0 else { return nil }
        defer { gst_buffer_unmap(current, &map) }
        return UnsafeMutableRawPointer(map.data)
    }
}

/// A frame that is mapped for writing.
final class EditablePicture {
    private var frame = GstVideoFrame()
    private let format: VideoFormat
    private var isOpen = true

    private init(_ format: VideoFormat) {
        self.format = format
    }

    /// Calls `body` with the frame of a buffer. Returns nil if it cannot be mapped.
    static func edit<Result>(
        _ buffer: UnsafeMutablePointer<GstBuffer>, _ format: VideoFormat, _ body: (EditablePicture) throws -> Result
    ) rethrows -> Result? {
        let picture = EditablePicture(format)
        let access = GstMapFlags(rawValue: GST_MAP_READ.rawValue | GST_MAP_WRITE.rawValue)
        guard gst_video_frame_map(&picture.frame, &format.info, buffer, access) != 0 else { return nil }
        defer {
            picture.isOpen = false
            gst_video_frame_unmap(&picture.frame)
        }
        return try body(picture)
    }

    var firstByte: UnsafeMutableRawPointer? { frame.data.0 }

    func draw(at time: MediaTime, _ body: (inout MutableVideoFrame) throws -> Void) rethrows {
        var frame = MutableVideoFrame(
            width: format.width, height: format.height, captureTime: time, access: withPlane)
        try body(&frame)
    }

    func withPlane(_ plane: VideoPlane, _ body: (inout MutableRawSpan, Int) -> Void) {
        // A frame kept beyond the call has no samples.
        let (start, stride) = isOpen ? frame.plane(plane) : (nil, 0)
        var bytes = UnsafeMutableRawBufferPointer(start: start, count: stride * plane.rows(of: format.height))
            .mutableBytes
        body(&bytes, stride)
    }
}

extension GstVideoFrame {
    /// The first byte of a mapped plane, and the bytes from row to row.
    func plane(_ plane: VideoPlane) -> (start: UnsafeMutableRawPointer?, stride: Int) {
        switch plane {
        case .luma: (data.0, Int(info.stride.0))
        case .chromaBlue: (data.1, Int(info.stride.1))
        case .chromaRed: (data.2, Int(info.stride.2))
        }
    }
}

extension VideoPlane {
    /// The number of rows, or of columns, of this plane of an I420 frame.
    func rows(of length: Int) -> Int { self == .luma ? length : (length + 1) / 2 }
}
