internal import CGLib
internal import CGStreamer
internal import Glibc
package import MediaGraph

/// Encodes single frames as image files.
package enum ImageEncoder {
    private static let limit = 10 * UInt(1_000_000_000)

    /// The file formats, and the elements that encode them.
    package enum Format: String {
        case png
        case jpeg

        package var factory: String { "\(rawValue)enc" }

        /// JPEG for a path that ends in `.jpg` or `.jpeg`, otherwise PNG.
        package init(path: String) {
            let name = path.lowercased()
            self = name.hasSuffix(".jpg") || name.hasSuffix(".jpeg") ? .jpeg : .png
        }
    }

    /// Blocks for some tens of milliseconds.
    package static func encode(_ picture: VideoBuffer, as format: Format) throws(MediaError) -> [UInt8] {
        // Names the package if the encoder is missing. The conversion would only fail.
        _ = try Element(format.factory)
        guard let caps = gst_video_info_to_caps(&picture.format.info) else {
            preconditionFailure("a frame without a format")
        }
        defer { gst_caps_unref(caps) }
        let target = Caps("image/\(format.rawValue)")
        guard let sample = gst_sample_new(picture.buffer, caps, nil, nil) else {
            preconditionFailure("GStreamer cannot create a sample")
        }
        defer { gst_sample_unref(sample) }
        var error: UnsafeMutablePointer<GError>?
        guard let converted = gst_video_convert_sample(sample, target.pointer, limit, &error) else {
            defer { g_clear_error(&error) }
            throw MediaError(
                code: MediaError.Code.elementFailed,
                message: "The frame cannot be encoded as \(format.rawValue.uppercased()).",
                cause: error.map { String(cString: $0.pointee.message) })
        }
        defer { gst_sample_unref(converted) }
        guard let buffer = gst_sample_get_buffer(converted) else { return [] }
        var bytes: [UInt8] = []
        append(buffer, to: &bytes)
        return bytes
    }

    /// Writes a file. Returns the reason for a failure.
    package static func write(_ bytes: [UInt8], to path: String) -> String? {
        guard let file = fopen(path, "wb") else { return String(cString: strerror(errno)) }
        let written = bytes.withUnsafeBytes { fwrite($0.baseAddress, 1, $0.count, file) }
        let problem = written < bytes.count ? String(cString: strerror(errno)) : nil
        if fclose(file) != 0, problem == nil { return String(cString: strerror(errno)) }
        return problem
    }
}
