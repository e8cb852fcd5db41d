internal import CGStreamer
import MediaGraph

/// Frames of one format, in memory that is reused when a frame is released.
// @unchecked: the pool's functions are thread-safe, and the format never changes.
package final class PicturePool: @unchecked Sendable {
    private let pool: UnsafeMutablePointer<GstBufferPool>
    private let format: VideoFormat

    /// `caps` must be one raw format with its size, otherwise the result is nil.
    package init?(_ caps: Caps) {
        guard let format = VideoFormat(caps: caps), let pool = gst_video_buffer_pool_new() else { return nil }
        self.format = format
        self.pool = pool
        let settings = gst_buffer_pool_get_config(pool)
        gst_buffer_pool_config_set_params(settings, caps.pointer, UInt32(format.info.size), 0, 0)
        guard gst_buffer_pool_set_config(pool, settings) != 0, gst_buffer_pool_set_active(pool, 1) != 0 else {
            gst_object_unref(pool)
            return nil
        }
    }

    deinit {
        gst_buffer_pool_set_active(pool, 0)
        gst_object_unref(pool)
    }

    /// A frame drawn by `body`. The caller owns it.
    func draw(
        at time: MediaTime, _ body: (inout MutableVideoFrame) throws -> Void
    ) throws -> UnsafeMutablePointer<GstBuffer>? {
        var acquired: UnsafeMutablePointer<GstBuffer>?
        guard gst_buffer_pool_acquire_buffer(pool, &acquired, nil) == GST_FLOW_OK, let buffer = acquired else {
            return nil
        }
        var isDrawn = false
        defer { if !isDrawn { gst_buffer_unref(buffer) } }
        isDrawn = try EditablePicture.edit(buffer, format) { try $0.draw(at: time, body) } != nil
        return isDrawn ? buffer : nil
    }
}
