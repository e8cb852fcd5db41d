internal import GStreamerKit
public import MediaGraph

/// Frames as PNG images.
public enum FrameImage {
    /// Encodes a frame. Blocks for tens of milliseconds, so do not call it on a GStreamer thread.
    ///
    /// - Throws: `element.missing` if the PNG encoder is not installed.
    public static func png(of frame: VideoFrame) throws(MediaError) -> [UInt8] {
        try ImageEncoder.png(of: frame.buffer)
    }

    /// Encodes a frame and writes it to a file, which it replaces. Blocks like `png(of:)`.
    ///
    /// - Throws: `element.missing`, or `file.unwritable`.
    public static func writePNG(_ frame: VideoFrame, to path: String) throws(MediaError) {
        let bytes = try png(of: frame)
        if let reason = ImageEncoder.write(bytes, to: path) {
            throw MediaError(
                code: MediaError.Code.fileUnwritable,
                message: "The image \(path) cannot be written: \(reason). Choose another path.")
        }
    }
}

extension VideoFrame {
    /// The frame's memory as a GStreamer buffer. Every frame of the graph has such memory.
    var buffer: VideoBuffer {
        guard let buffer = storage as? VideoBuffer else { preconditionFailure("a frame of unknown memory") }
        return buffer
    }
}
