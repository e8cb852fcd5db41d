internal import CGLib
internal import CGStreamer
package import MediaGraph

/// A buffer inside a probe. Valid during the probe only.
package struct PassingBuffer: ~Copyable {
    let buffer: UnsafeMutablePointer<GstBuffer>
    /// The place for a writable replacement of the buffer. Nil inside a list.
    let slot: UnsafeMutablePointer<GstPadProbeInfo>?
    let pad: UnsafeMutablePointer<GstPad>

    /// Presentation timestamp in the pad's segment, in nanoseconds.
    package var timestamp: UInt64? {
        let time = current.pointee.pts
        return time == UInt.max ? nil : UInt64(time)
    }

    /// The timestamp in nanoseconds since the pipeline's start.
    package var runningTime: UInt64? { segment(UInt64(current.pointee.pts)) }

    /// The same for a buffer that begins before its segment and, being so long, ends in it: zero, and the nanoseconds
    /// that lie before.
    package func clippedRunningTime(lasting duration: UInt64) -> (time: UInt64, before: UInt64)? {
        if let time = runningTime { return (time, 0) }
        guard let start = timestamp, let end = segment(start &+ duration), end < duration else { return nil }
        return (0, duration - end)
    }

    private func segment(_ timestamp: UInt64) -> UInt64? {
        let timestamp = UInt(timestamp)
        guard timestamp != UInt.max, let event = gst_pad_get_sticky_event(pad, GST_EVENT_SEGMENT, 0) else { return nil }
        defer { gst_event_unref(event) }
        var segment: UnsafePointer<GstSegment>?
        gst_event_parse_segment(event, &segment)
        guard let segment, segment.pointee.format == GST_FORMAT_TIME else { return nil }
        let time = gst_segment_to_running_time(segment, GST_FORMAT_TIME, timestamp)
        return time == UInt.max ? nil : UInt64(time)
    }

    /// The timestamp on the monotonic clock. The current time if the buffer has none.
    package var time: MediaTime {
        guard let running = runningTime, let element = gst_pad_get_parent_element(pad) else { return GStreamer.now }
        defer { gst_object_unref(element) }
        // An element may give any timestamp.
        let (time, isTooLarge) = UInt64(gst_element_get_base_time(element)).addingReportingOverflow(running)
        return MediaTime(nanoseconds: isTooLarge ? UInt64(Int64.max) : min(time, UInt64(Int64.max)))
    }

    /// The pad's negotiated format of raw frames.
    package var videoFormat: VideoFormat? {
        gst_pad_get_current_caps(pad).map(Caps.init(takingOwnership:)).flatMap(VideoFormat.init(caps:))
    }

    /// Sends a title before the buffer, which a window downstream displays.
    package func pushTitle(_ title: String) {
        let tags = gst_tag_list_new_empty()
        var holder = GValue()
        g_value_init(&holder, FundamentalType.string)
        defer { g_value_unset(&holder) }
        g_value_set_string(&holder, title)
        gst_tag_list_add_value(tags, GST_TAG_MERGE_REPLACE, "title", &holder)
        gst_pad_push_event(pad, gst_event_new_tag(tags))
    }

    package var duration: UInt64? {
        let time = current.pointee.duration
        return time == UInt.max ? nil : UInt64(time)
    }

    package var byteCount: Int { Int(gst_buffer_get_size(current)) }

    /// Whether decoding can begin with this buffer.
    package var isKeyframe: Bool {
        current.pointee.mini_object.flags & GST_BUFFER_FLAG_DELTA_UNIT.rawValue == 0
    }

    /// Whether media is missing before this buffer.
    package var followsGap: Bool {
        current.pointee.mini_object.flags & GST_BUFFER_FLAG_DISCONT.rawValue != 0
    }

    /// Marks that the buffer does not continue the one before, so that mixers go by its timestamp. Does nothing inside a list.
    package func markGap() {
        makeWritable()?.pointee.mini_object.flags |= GST_BUFFER_FLAG_DISCONT.rawValue
    }

    var current: UnsafeMutablePointer<GstBuffer> {
        slot?.pointee.data.assumingMemoryBound(to: GstBuffer.self) ?? buffer
    }

    /// Calls `body` with the bytes. Nil if they cannot be mapped.
    package func read<Result>(_ body: (RawSpan) -> Result) -> Result? {
        var map = GstMapInfo()
        guard gst_buffer_map(current, &map, GST_MAP_READ) != 0 else { return nil }
        defer { gst_buffer_unmap(current, &map) }
        return body(UnsafeRawBufferPointer(start: map.data, count: Int(map.size)).bytes)
    }

    /// Appends the bytes to `bytes`.
    package func append(to bytes: inout [UInt8]) {
        GStreamerKit.append(current, to: &bytes)
    }

    /// Calls `body` with the bytes to change them in place. Does nothing inside a list.
    package func write(_ body: (inout MutableRawSpan) -> Void) {
        guard let buffer = makeWritable() else { return }
        var map = GstMapInfo()
        let access = GstMapFlags(rawValue: GST_MAP_READ.rawValue | GST_MAP_WRITE.rawValue)
        guard gst_buffer_map(buffer, &map, access) != 0 else { return }
        defer { gst_buffer_unmap(buffer, &map) }
        var span = UnsafeMutableRawBufferPointer(start: map.data, count: Int(map.size)).mutableBytes
        body(&span)
        // The content may not be silence any more, and mixers and converters trust the mark for a gap.
        buffer.pointee.mini_object.flags &= ~GST_BUFFER_FLAG_GAP.rawValue
    }

    /// Calls `body` with the luma plane of an I420 frame to change it in place.
    package func writeLuma(
        width: Int, height: Int, _ body: (_ luma: inout MutableRawSpan, _ stride: Int) -> Void
    ) {
        guard let buffer = makeWritable(), let format = VideoFormat(width: width, height: height) else { return }
        EditablePicture.edit(buffer, format) { $0.withPlane(.luma, body) }
    }

    /// Changes the buffer's timestamp. The samples are shared, not copied.
    package func retime(to timestamp: UInt64) {
        guard let buffer = makeWritable() else { return }
        buffer.pointee.pts = UInt(timestamp)
        buffer.pointee.dts = UInt.max
    }

    /// Moves the buffer to another time, with the order in which it is decoded.
    package func move(to timestamp: UInt64) {
        guard let buffer = makeWritable() else { return }
        let (shown, decoded) = (buffer.pointee.pts, buffer.pointee.dts)
        buffer.pointee.pts = UInt(timestamp)
        guard shown != UInt.max, decoded != UInt.max else {
            buffer.pointee.dts = UInt.max
            return
        }
        let lead = shown > decoded ? shown - decoded : 0
        buffer.pointee.dts = UInt(timestamp) - min(UInt(timestamp), lead)
    }

    /// The time of decoding in the pad's segment, in nanoseconds. Nil without one.
    package var decodeTime: UInt64? {
        let time = current.pointee.dts
        return time == UInt.max ? nil : UInt64(time)
    }

    /// The level of its audio, as a node upstream has measured it: the negated root mean square in dBov, 0 to 127 (RFC 6464).
    package var audioLevel: UInt8? {
        gst_buffer_get_audio_level_meta(current).map { min($0.pointee.level, 127) }
    }

    /// Sets the level of its audio, which payloaders pass on. Does nothing inside a list.
    package func setAudioLevel(_ level: UInt8) {
        guard let buffer = makeWritable() else { return }
        if let present = gst_buffer_get_audio_level_meta(buffer) {
            present.pointee.level = level
        } else {
            gst_buffer_add_audio_level_meta(buffer, level, 0)
        }
    }

    /// Changes the buffer's duration. Nil for none.
    package func setDuration(_ duration: UInt64?) {
        makeWritable()?.pointee.duration = duration.map { UInt($0) } ?? UInt.max
    }

    /// The bytes as signed 16-bit samples.
    package var samples: [Int16] {
        read { bytes in
            (0..<bytes.byteCount / 2).map { bytes.unsafeLoadUnaligned(fromByteOffset: $0 * 2, as: Int16.self) }
        } ?? []
    }

    /// Replaces the buffer by one with these samples and the same timestamp. Does nothing inside a list.
    package func replace(with samples: [Int16], lasting duration: UInt64) {
        guard let slot, let made = gst_buffer_new_allocate(nil, gsize(samples.count * 2), nil) else { return }
        samples.withUnsafeBytes { bytes in _ = gst_buffer_fill(made, 0, bytes.baseAddress, gsize(bytes.count)) }
        let former = current
        (made.pointee.pts, made.pointee.duration) = (former.pointee.pts, UInt(duration))
        made.pointee.mini_object.flags |= former.pointee.mini_object.flags & GST_BUFFER_FLAG_DISCONT.rawValue
        slot.pointee.data = UnsafeMutableRawPointer(made)
        gst_buffer_unref(former)
    }

    func makeWritable() -> UnsafeMutablePointer<GstBuffer>? {
        guard let slot else { return nil }
        let object = slot.pointee.data.assumingMemoryBound(to: GstMiniObject.self)
        guard let writable = gst_mini_object_make_writable(object) else { return nil }
        slot.pointee.data = UnsafeMutableRawPointer(writable)
        return UnsafeMutableRawPointer(writable).assumingMemoryBound(to: GstBuffer.self)
    }

    /// Keeps the buffer beyond the probe, as a frame of the given format.
    package func keep(as format: VideoFormat) -> VideoBuffer {
        VideoBuffer(retaining: current, format)
    }
}

/// The memory layout of I420 frames of one size.
// @unchecked: only the initialiser writes `info`; C needs it mutable and does not change it.
package final class VideoFormat: @unchecked Sendable {
    var info: GstVideoInfo
    package var width: Int { Int(info.width) }
    package var height: Int { Int(info.height) }

    init?(caps: Caps) {
        info = GstVideoInfo()
        guard gst_video_info_from_caps(&info, caps.pointer) != 0 else { return nil }
    }

    init?(width: Int, height: Int) {
        info = GstVideoInfo()
        guard gst_video_info_set_format(&info, GST_VIDEO_FORMAT_I420, UInt32(width), UInt32(height)) != 0 else {
            return nil
        }
    }

    /// - Parameter pixelFormat: GStreamer's name.
    init?(pixelFormat: String, width: Int, height: Int) {
        info = GstVideoInfo()
        let format = gst_video_format_from_string(pixelFormat)
        guard format != GST_VIDEO_FORMAT_UNKNOWN, (1...Self.longestSide).contains(width),
            (1...Self.longestSide).contains(height),
            gst_video_info_set_format(&info, format, UInt32(width), UInt32(height)) != 0
        else { return nil }
    }

    /// Longer sides of frames are refused: their bytes would not be countable.
    private static let longestSide = 16_384
}

/// A frame in the memory that GStreamer wrote.
// @unchecked: the buffer is only read, and its reference count is atomic.
package final class VideoBuffer: VideoFrameStorage, @unchecked Sendable {
    let buffer: UnsafeMutablePointer<GstBuffer>
    let format: VideoFormat

    init(retaining buffer: UnsafeMutablePointer<GstBuffer>, _ format: VideoFormat) {
        self.buffer = gst_buffer_ref(buffer)
        self.format = format
    }

    /// A frame with a copy of the given bytes. Traps if the planes are too short.
    package init(width: Int, height: Int, luma: [UInt8], chromaBlue: [UInt8], chromaRed: [UInt8]) {
        GStreamer.load()
        guard let format = VideoFormat(width: width, height: height),
            let buffer = gst_buffer_new_allocate(nil, format.info.size, nil)
        else { preconditionFailure("no frame of \(width)x\(height)") }
        self.format = format
        self.buffer = buffer
        let filled: Void? = EditablePicture.edit(buffer, format) { picture in
            for (plane, bytes) in zip(VideoPlane.allCases, [luma, chromaBlue, chromaRed]) {
                let (columns, rows) = (plane.rows(of: width), plane.rows(of: height))
                precondition(bytes.count >= columns * rows)
                picture.withPlane(plane) { target, stride in
                    target.withUnsafeMutableBytes { target in
                        for row in 0..<rows {
                            target[(row * stride)...].copyBytes(from: bytes[row * columns..<(row + 1) * columns])
                        }
                    }
                }
            }
        }
        guard filled != nil else { preconditionFailure("memory cannot be mapped") }
    }

    deinit {
        gst_buffer_unref(buffer)
    }

    package func withPlane<Result>(_ plane: VideoPlane, _ body: (RawSpan, Int) throws -> Result) rethrows -> Result {
        var frame = GstVideoFrame()
        guard gst_video_frame_map(&frame, &format.info, buffer, GST_MAP_READ) != 0 else {
            return try body(UnsafeRawBufferPointer(start: nil, count: 0).bytes, 0)
        }
        defer { gst_video_frame_unmap(&frame) }
        let (start, stride) = frame.plane(plane)
        let rows = plane.rows(of: format.height)
        return try body(UnsafeRawBufferPointer(start: start, count: stride * rows).bytes, stride)
    }
}

func append(_ buffer: UnsafeMutablePointer<GstBuffer>, to bytes: inout [UInt8]) {
    var map = GstMapInfo()
    guard gst_buffer_map(buffer, &map, GST_MAP_READ) != 0 else { return }
    bytes.append(contentsOf: UnsafeBufferPointer(start: map.data, count: Int(map.size)))
    gst_buffer_unmap(buffer, &map)
}
