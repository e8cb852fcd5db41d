internal import CGLib
internal import CGStreamer

/// Rows of GStreamer's own buffers begin at multiples of so many bytes. Its converters rely on that: their vector
/// instructions crash at other addresses.
private let rowAlignment = 4

/// Returns a raw frame whose rows all begin at aligned addresses: the same one, or else a copy. Nil if it cannot be copied.
///
/// Takes the buffer's ownership, and passes on that of the result.
func aligned(
    _ buffer: UnsafeMutablePointer<GstBuffer>, _ planes: [(offset: Int, stride: Int)], _ pixelFormat: String,
    _ width: Int, _ height: Int
) -> UnsafeMutablePointer<GstBuffer>? {
    let places = planes.flatMap { [$0.offset, $0.stride] } + addresses(of: buffer)
    if places.allSatisfy({ $0.isMultiple(of: rowAlignment) }) { return buffer }
    defer { gst_buffer_unref(buffer) }
    var info = GstVideoInfo()
    guard
        gst_video_info_set_format(&info, gst_video_format_from_string(pixelFormat), UInt32(width), UInt32(height)) != 0,
        let copy = gst_buffer_new_allocate(nil, info.size, nil)
    else { return nil }
    if copyRows(of: buffer, to: copy, &info) { return copy }
    gst_buffer_unref(copy)
    return nil
}

extension MediaBuffer {
    /// A copy of a raw frame. Nil without memory.
    ///
    /// - Parameters:
    ///   - pixelFormat: GStreamer's name.
    ///   - planes: for each plane its first byte, and the bytes from row to row. They may differ from those that GStreamer
    ///     expects of a frame without this information: whole rows, without gaps.
    package convenience init?(
        _ bytes: [UInt8], _ pixelFormat: String, width: Int, height: Int, planes: [(offset: Int, stride: Int)]
    ) {
        GStreamer.load()
        guard let buffer = gst_buffer_new_allocate(nil, gsize(bytes.count), nil) else { return nil }
        gst_buffer_fill(buffer, 0, bytes, gsize(bytes.count))
        addPlanes(planes, pixelFormat, width, height, to: buffer)
        guard let aligned = aligned(buffer, planes, pixelFormat, width, height) else { return nil }
        self.init(takingOwnership: aligned)
    }
}

private func copyRows(
    of buffer: UnsafeMutablePointer<GstBuffer>, to copy: UnsafeMutablePointer<GstBuffer>, _ info: inout GstVideoInfo
) -> Bool {
    var (source, target) = (GstVideoFrame(), GstVideoFrame())
    guard gst_video_frame_map(&source, &info, buffer, GST_MAP_READ) != 0 else { return false }
    defer { gst_video_frame_unmap(&source) }
    guard gst_video_frame_map(&target, &info, copy, GST_MAP_WRITE) != 0 else { return false }
    defer { gst_video_frame_unmap(&target) }
    return gst_video_frame_copy(&target, &source) != 0
}

/// The addresses of the buffer's pieces of memory.
private func addresses(of buffer: UnsafeMutablePointer<GstBuffer>) -> [Int] {
    (0..<gst_buffer_n_memory(buffer)).map { index in
        var map = GstMapInfo()
        let memory = gst_buffer_peek_memory(buffer, index)
        guard gst_memory_map(memory, &map, GST_MAP_READ) != 0 else { return 0 }
        defer { gst_memory_unmap(memory, &map) }
        return Int(bitPattern: map.data)
    }
}
