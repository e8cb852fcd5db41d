internal import GStreamerKit
public import MediaGraph

/// Frames as images.
public enum FrameImage {
    /// Encodes a frame. Blocks for tens of milliseconds, so do not call it on a GStreamer thread.
    ///
    /// - Throws: `element.missing` if the PNG encoder is not installed.
    public static func png(of frame: VideoFrame) throws(MediaError) -> [UInt8] {
        try ImageEncoder.encode(frame.buffer, as: .png)
    }

    /// Encodes a frame and writes it to a file, which it replaces: as JPEG if the path ends in `.jpg` or `.jpeg`,
    /// otherwise as PNG. Blocks like `png(of:)`.
    ///
    /// - Throws: `element.missing`, or `file.unwritable`.
    public static func write(_ frame: VideoFrame, to path: String) throws(MediaError) {
        let bytes = try ImageEncoder.encode(frame.buffer, as: ImageEncoder.Format(path: path))
        if let reason = ImageEncoder.write(bytes, to: path) { throw unwritable(path, reason) }
    }

    static func unwritable(_ path: String, _ reason: String) -> MediaError {
        MediaError(
            code: MediaError.Code.fileUnwritable,
            message: "The image \(path) cannot be written: \(reason). Choose another path.")
    }
}

extension VideoFrame {
    /// The frame's memory as a GStreamer buffer. Every frame of the graph has such memory.
    var buffer: VideoBuffer {
        guard let buffer = storage as? VideoBuffer else { preconditionFailure("a frame of unknown memory") }
        return buffer
    }
}
