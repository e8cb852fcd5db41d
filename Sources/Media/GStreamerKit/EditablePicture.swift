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
        guard let buffer = makeWritable(), let picture = EditablePicture(buffer, format) else { return nil }
        let isCopied = picture.firstByte != before
        var frame = MutableVideoFrame(
            width: format.width, height: format.height, captureTime: time, access: picture.withPlane)
        body(&frame)
        picture.close()
        return isCopied
    }

    private var firstByte: UnsafeMutableRawPointer? {
        var map = GstMapInfo()
        guard gst_buffer_map(current, &map, GST_MAP_READ) != 0 else { return nil }
        defer { gst_buffer_unmap(current, &map) }
        return UnsafeMutableRawPointer(map.data)
    }
}

/// A frame that is mapped for writing until it is closed.
final class EditablePicture {
    private var frame = GstVideoFrame()
    private let height: Int
    private var isOpen = true

    init?(_ buffer: UnsafeMutablePointer<GstBuffer>, _ format: VideoFormat) {
        height = format.height
        let access = GstMapFlags(rawValue: GST_MAP_READ.rawValue | GST_MAP_WRITE.rawValue)
        guard gst_video_frame_map(&frame, &format.info, buffer, access) != 0 else { return nil }
    }

    var firstByte: UnsafeMutableRawPointer? { frame.data.0 }

    func close() {
        isOpen = false
        gst_video_frame_unmap(&frame)
    }

    func withPlane(_ plane: VideoPlane, _ body: (inout MutableRawSpan, Int) -> Void) {
        // A frame kept beyond the call has no samples.
        let (start, stride) = isOpen ? frame.plane(plane) : (nil, 0)
        var bytes = UnsafeMutableRawBufferPointer(start: start, count: stride * plane.rows(of: height)).mutableBytes
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
