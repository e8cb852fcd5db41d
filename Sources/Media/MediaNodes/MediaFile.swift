internal import GStreamerKit
public import MediaGraph

/// Reads the streams of media files.
public enum MediaFile {
    /// Reads the streams of a media file. Blocks for tens of milliseconds, 5 s at most.
    ///
    /// - Throws: `file.not-found`, `file.no-video`, `file.unreadable`, or `element.missing` for a format without an
    ///   installed decoder.
    public static func inspect(_ path: String) throws(MediaError) -> MediaFileInfo {
        let info = try contents(of: path)
        guard info.hasVideo else { throw noVideo(path) }
        return info
    }

    /// Like `inspect`, for a file that may have only audio. `trustingHeads` skips the decoding test, which needs most
    /// of the time. For callers that run the file next.
    static func contents(of path: String, trustingHeads: Bool = false) throws(MediaError) -> MediaFileInfo {
        switch FileDiscovery.discover(path, trustingHeads: trustingHeads) {
        case .notFound: throw notFound(path)
        case .unreadable(let reason): throw unreadable(path, reason)
        case .missingPlugin(let name): throw undecodable(path, name)
        case .found(let contents):
            guard contents.hasVideo || contents.hasAudio else {
                throw unreadable(path, "it has neither video nor audio")
            }
            return contents
        }
    }

    static func notFound(_ path: String) -> MediaError {
        MediaError(
            code: MediaError.Code.fileNotFound,
            message: "The file \(path) does not exist. Check the path; a relative one starts in the current folder.")
    }

    static func undecodable(_ path: String, _ missing: String) -> MediaError {
        // For a text file, GStreamer reports a missing "text/plain decoder".
        if missing.contains("text/") { return unreadable(path, "it is text") }
        return MediaError(
            code: MediaError.Code.elementMissing,
            message: "The file \(path) needs a decoder that is not installed: \(missing). On Debian, install "
                + "gstreamer1.0-libav or gstreamer1.0-plugins-bad.")
    }

    static func noVideo(_ path: String) -> MediaError {
        MediaError(
            code: MediaError.Code.fileNoVideo,
            message: "The file \(path) has no decodable video. Choose a file with video.")
    }

    static func unreadable(_ path: String, _ reason: String) -> MediaError {
        MediaError(
            code: MediaError.Code.fileUnreadable,
            message: "The file \(path) cannot be read as media: \(reason.trimmedSentence). Check that it is a media "
                + "file and that you may read it.")
    }
}

extension String {
    /// Without the final full stop, for use inside another sentence.
    package var trimmedSentence: String { hasSuffix(".") ? String(dropLast()) : self }
}
