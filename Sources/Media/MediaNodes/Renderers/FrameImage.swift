internal import GStreamerKit
public import MediaGraph

/// Frames as PNG images.
public enum FrameImage {
    /// Encodes a picture. Blocks for some tens of milliseconds: not on a GStreamer thread.
    ///
    /// Throws `element.missing` when the PNG encoder is not installed.
    public static func png(of frame: VideoFrame) throws(MediaError) -> [UInt8] {
        try ImageEncoder.png(of: frame.buffer)
    }

    /// Encodes a picture and writes it to a file, replacing what was there. Blocks like `png(of:)`.
    ///
    /// Throws `file.unwritable` as well.
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
