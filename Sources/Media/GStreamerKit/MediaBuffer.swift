internal import CGLib
internal import CGStreamer
import MediaGraph

/// A buffer that was taken from a pad. The corresponding C type is `GstBuffer`.
// @unchecked: the buffer is only read once it is shared, and its reference count is atomic.
package final class MediaBuffer: @unchecked Sendable {
    private var buffer: UnsafeMutablePointer<GstBuffer>
    /// The format of this frame and the ones after it. Nil if it has not changed.
    package private(set) var format: Caps?
    /// The bytes, of a buffer that was made of them.
    private var content: [UInt8]?

    /// Copies bytes.
    package init?(_ bytes: [UInt8]) {
        GStreamer.load()
        guard let buffer = gst_buffer_new_allocate(nil, gsize(bytes.count), nil) else { return nil }
        gst_buffer_fill(buffer, 0, bytes, gsize(bytes.count))
        (self.buffer, content) = (buffer, bytes)
    }

    init(takingOwnership buffer: UnsafeMutablePointer<GstBuffer>) {
        self.buffer = buffer
    }

    init(takingOwnership buffer: UnsafeMutablePointer<GstBuffer>, format: Caps?) {
        (self.buffer, self.format) = (buffer, format)
    }

    /// A dark grey frame of a YUV format. Nil for formats that are unknown to GStreamer.
    package init?(greyIn pixelFormat: String, width: Int, height: Int) {
        GStreamer.load()
        var info = GstVideoInfo()
        let format = gst_video_format_from_string(pixelFormat)
        guard gst_video_info_set_format(&info, format, UInt32(width), UInt32(height)) != 0,
            let buffer = gst_buffer_new_allocate(nil, info.size, nil)
        else { return nil }
        self.buffer = buffer
        let (luma, chroma): (UInt8, UInt8) = (48, 128)
        switch pixelFormat {
        case "YUY2", "UYVY", "YVYU":
            let pair = pixelFormat == "UYVY" ? [chroma, luma] : [luma, chroma]
            let bytes = (0..<Int(info.size)).map { pair[$0 % 2] }
            gst_buffer_fill(buffer, 0, bytes, info.size)
        default:
            // The luma plane comes first.
            gst_buffer_memset(buffer, 0, luma, info.size)
            gst_buffer_memset(buffer, info.offset.1, chroma, info.size - info.offset.1)
        }
    }

    deinit {
        gst_buffer_unref(buffer)
    }

    /// A copy in memory of its own, which holds nothing of the device. Nil without memory.
    package var copied: MediaBuffer? {
        gst_buffer_copy_deep(buffer).map { MediaBuffer(takingOwnership: $0, format: format) }
    }

    package var byteCount: Int { Int(gst_buffer_get_size(buffer)) }

    /// In nanoseconds, as the buffer's element stated it.
    package var timestamp: UInt64? {
        let time = buffer.pointee.pts
        return time == UInt.max ? nil : UInt64(time)
    }

    /// In nanoseconds.
    package var duration: UInt64? {
        let time = buffer.pointee.duration
        return time == UInt.max ? nil : UInt64(time)
    }

    /// A copy of the bytes.
    package var bytes: [UInt8] {
        if let content { return content }
        var bytes: [UInt8] = []
        append(buffer, to: &bytes)
        return bytes
    }

    fileprivate func lent(at timestamp: UInt64) -> UnsafeMutablePointer<GstBuffer>? {
        // Usually the only reference, so that this copies nothing.
        let object = UnsafeMutableRawPointer(buffer).assumingMemoryBound(to: GstMiniObject.self)
        guard let writable = gst_mini_object_make_writable(object) else { return nil }
        buffer = UnsafeMutableRawPointer(writable).assumingMemoryBound(to: GstBuffer.self)
        buffer.pointee.pts = UInt(timestamp)
        buffer.pointee.dts = UInt.max
        return gst_buffer_ref(buffer)
    }

    fileprivate var shallowCopy: UnsafeMutablePointer<GstBuffer>? {
        let parts = GstBufferCopyFlags(
            rawValue: GST_BUFFER_COPY_FLAGS.rawValue | GST_BUFFER_COPY_META.rawValue
                | GST_BUFFER_COPY_MEMORY.rawValue)
        return gst_buffer_copy_region(buffer, parts, 0, gsize.max)
    }
}

extension PassingBuffer {
    /// The buffer beyond the probe. Its samples are shared.
    package var shared: MediaBuffer { MediaBuffer(takingOwnership: gst_buffer_ref(current)) }
}

extension PushSource {
    /// Queues a buffer without a copy, at a timestamp. Once for each buffer; `repeat` queues it again. Returns false if
    /// the element does not run.
    package func push(_ buffer: MediaBuffer, timestamp: UInt64) -> Bool {
        buffer.lent(at: timestamp).map { push($0, at: timestamp) } ?? false
    }

    /// Queues an encoded frame without a copy, once.
    package func push(_ frame: MediaBuffer, timestamp: UInt64, decodedAt: UInt64, isKeyframe: Bool) -> Bool {
        guard let buffer = frame.lent(at: timestamp) else { return false }
        let isDelta = GST_BUFFER_FLAG_DELTA_UNIT.rawValue
        if isKeyframe {
            buffer.pointee.mini_object.flags &= ~isDelta
        } else {
            buffer.pointee.mini_object.flags |= isDelta
        }
        return push(buffer, at: timestamp, decodedAt: UInt(decodedAt))
    }

    /// Queues the samples of a buffer again, without a copy.
    package func `repeat`(_ buffer: MediaBuffer, timestamp: UInt64) -> Bool {
        buffer.shallowCopy.map { push($0, at: timestamp) } ?? false
    }

    /// Requests a keyframe of the encoders downstream for the next buffer.
    package func requestKeyframe() {
        let any = UInt.max
        gst_element_send_event(
            element.pointer, gst_video_event_new_downstream_force_key_unit(any, any, any, 1, 0))
    }
}
