internal import CGStreamer
import MediaGraph

/// Pictures of one format in memory that is used again once whoever was given it lets it go.
// @unchecked: the pool's own functions may be called from any thread, and the format is never changed.
package final class PicturePool: @unchecked Sendable {
    private let pool: UnsafeMutablePointer<GstBufferPool>
    private let format: VideoFormat

    /// `caps` say one raw format with its size. Nil when they do not.
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

    /// A picture that `body` has drawn, which the caller owns.
    func draw(
        at time: MediaTime, _ body: (inout MutableVideoFrame) throws -> Void
    ) throws -> UnsafeMutablePointer<GstBuffer>? {
        var acquired: UnsafeMutablePointer<GstBuffer>?
        guard gst_buffer_pool_acquire_buffer(pool, &acquired, nil) == GST_FLOW_OK, let buffer = acquired else {
            return nil
        }
        guard let picture = EditablePicture(buffer, format) else {
            gst_buffer_unref(buffer)
            return nil
        }
        var frame = MutableVideoFrame(
            width: format.width, height: format.height, captureTime: time, access: picture.withPlane)
        do {
            try body(&frame)
        } catch {
            picture.close()
            gst_buffer_unref(buffer)
            throw error
        }
        picture.close()
        return buffer
    }
}
