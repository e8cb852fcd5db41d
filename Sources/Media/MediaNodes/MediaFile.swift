internal import GStreamerKit
public import MediaGraph

public enum MediaFile {
    /// Looks into a file. Blocks for some tens of milliseconds, 5 s at most.
    ///
    /// Throws `file.not-found`, `file.no-video`, `file.unreadable`, or `element.missing` when it holds a format that
    /// nothing installed decodes.
    public static func inspect(_ path: String) throws(MediaError) -> MediaFileInfo {
        let info = try contents(of: path)
        guard info.hasVideo else { throw noVideo(path) }
        return info
    }

    /// The same of a file that may hold sound alone. `trustingHeads` does not try whether what the file says that it
    /// holds can be decoded, which takes most of the time: for what runs the file next, and finds out.
    static func contents(of path: String, trustingHeads: Bool = false) throws(MediaError) -> MediaFileInfo {
        switch FileDiscovery.discover(path, trustingHeads: trustingHeads) {
        case .notFound: throw notFound(path)
        case .unreadable(let reason): throw unreadable(path, reason)
        case .missingPlugin(let name): throw undecodable(path, name)
        case .found(let contents):
            guard contents.hasVideo || contents.hasAudio else {
                throw unreadable(path, "it holds neither picture nor sound")
            }
            return contents
        }
    }

    static func notFound(_ path: String) -> MediaError {
        MediaError(
            code: MediaError.Code.fileNotFound,
            message: "The file \(path) does not exist; check the path and the folder it is relative to.")
    }

    static func undecodable(_ path: String, _ missing: String) -> MediaError {
        // For a text file GStreamer misses a "text/plain decoder".
        if missing.contains("text/") { return unreadable(path, "it is text") }
        return MediaError(
            code: MediaError.Code.elementMissing,
            message: "The file \(path) needs a decoder that is not installed (\(missing)); on Debian look in "
                + "gstreamer1.0-libav and gstreamer1.0-plugins-bad.")
    }

    static func noVideo(_ path: String) -> MediaError {
        MediaError(
            code: MediaError.Code.fileNoVideo,
            message: "The file \(path) holds no video that can be decoded; choose a file with pictures.")
    }

    static func unreadable(_ path: String, _ reason: String) -> MediaError {
        MediaError(
            code: MediaError.Code.fileUnreadable,
            message: "The file \(path) cannot be read as media (\(reason.trimmedSentence)); check that it is a media "
                + "file and may be read.")
    }
}

extension String {
    /// Without the full stop at its end, to stand inside another sentence.
    var trimmedSentence: String { hasSuffix(".") ? String(dropLast()) : self }
}
