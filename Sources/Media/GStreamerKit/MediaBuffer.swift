internal import CGLib
internal import CGStreamer
import MediaGraph

/// A buffer that was taken from a pad. The corresponding C type is `GstBuffer`.
// @unchecked: the buffer is only read once it is shared, and its reference count is atomic.
package final class MediaBuffer: @unchecked Sendable {
    private var buffer: UnsafeMutablePointer<GstBuffer>

    init(takingOwnership buffer: UnsafeMutablePointer<GstBuffer>) {
        self.buffer = buffer
    }

    /// The same samples, without a copy.
    package init(_ picture: VideoBuffer) {
        buffer = gst_buffer_ref(picture.buffer)
    }

    deinit {
        gst_buffer_unref(buffer)
    }

    /// A copy in memory of its own, which holds nothing of the device. Nil without memory.
    package var copied: MediaBuffer? {
        gst_buffer_copy_deep(buffer).map(MediaBuffer.init(takingOwnership:))
    }

    package var byteCount: Int { Int(gst_buffer_get_size(buffer)) }

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

extension PushSource {
    /// Queues a buffer without a copy, at a timestamp. Once for each buffer; `repeat` queues it again. Returns false if
    /// the element does not run.
    package func push(_ buffer: MediaBuffer, timestamp: UInt64) -> Bool {
        buffer.lent(at: timestamp).map { push($0, at: timestamp) } ?? false
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
