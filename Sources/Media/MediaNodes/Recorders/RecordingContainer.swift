import MediaGraph

/// The kinds of recordings, what they hold, and what writes them.
///
/// All of them can be played to the last second when the process is killed: Matroska and WebM are written cluster by
/// cluster, MP4 fragment by fragment, HLS segment by segment.
enum RecordingContainer: String, CaseIterable, Sendable {
    case matroska
    case mp4
    case webm
    case hls

    /// How much of an MP4 is lost at most when the process is killed.
    private static let fragmentMilliseconds = 500

    /// What ends the playlist of a recording that is complete.
    static let endOfPlaylist = "#EXT-X-ENDLIST"

    /// What a recorder's settings say.
    init(format: String, path: String) {
        self = RecordingContainer(rawValue: format) ?? RecordingContainer(path: path)
    }

    /// What the file's name says; Matroska, which holds everything, when it says nothing that is known.
    init(path: String) {
        let name = path.lowercased()
        if name.hasSuffix(".webm") {
            self = .webm
        } else if name.hasSuffix(".mp4") || name.hasSuffix(".m4v") || name.hasSuffix(".mov") {
            self = .mp4
        } else if name.hasSuffix(".m3u8") {
            self = .hls
        } else {
            self = .matroska
        }
    }

    var title: String {
        switch self {
        case .matroska: "Matroska"
        case .mp4: "MP4"
        case .webm: "WebM"
        case .hls: "HLS"
        }
    }

    /// Codecs of pictures, the one that raw pictures are encoded with first.
    var videoEncodings: [String] {
        switch self {
        case .matroska: ["h264", "vp8", "vp9", "av1", "h265", "mjpeg"]
        // VP9 is left out: GStreamer 1.22 crashes when it writes it. AV1 is written well; GStreamer's own reader of that
        // version leaves out pictures up to the next keyframe where the distance between pictures changes.
        case .mp4: ["h264", "av1", "h265"]
        case .webm: ["vp8", "vp9", "av1"]
        case .hls: ["h264"]
        }
    }

    var audioEncodings: [String] {
        switch self {
        case .matroska: ["opus", "aac", "pcmu", "pcma", "flac", "mp3", "vorbis"]
        case .mp4: ["opus", "aac"]
        case .webm: ["opus", "vorbis"]
        case .hls: ["aac"]
        }
    }

    /// The element that writes the container, and its settings.
    var muxer: (factory: String, properties: [String: SettingValue]) {
        switch self {
        case .matroska: ("matroskamux", ["writing-app": "connectlive"])
        case .webm: ("webmmux", ["writing-app": "connectlive"])
        case .mp4: ("mp4mux", ["fragment-duration": .integer(Self.fragmentMilliseconds)])
        // It changes its own state when its first picture comes. Without this the whole pipeline would do that with it,
        // and a source that an edit starts would wait for it.
        case .hls: ("hlssink2", ["async-handling": true])
        }
    }

    func inputPad(isVideo: Bool) -> String {
        let name = isVideo ? "video" : "audio"
        return self == .hls ? name : "\(name)_%u"
    }

    /// Whether it remembers by how much one side began after the other; a fragmented MP4 of GStreamer 1.22 does not.
    var keepsOffsets: Bool { self != .mp4 }

    /// A complete playlist whose last segment lasts up to the end of the recording.
    static func playlist(_ text: String, lasting seconds: Double) -> String {
        let (length, target) = ("#EXTINF:", "#EXT-X-TARGETDURATION:")
        var lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        func value(_ line: String, _ tag: String) -> Double {
            Double(line.dropFirst(tag.count).prefix { $0 != "," }) ?? 0
        }
        let segments = lines.indices.filter { lines[$0].hasPrefix(length) }
        guard let last = segments.last else { return text }
        let left = seconds - segments.dropLast().map { value(lines[$0], length) }.reduce(0, +)
        guard left > value(lines[last], length) else { return text }
        lines[last] = "\(length)\(left),"
        // No segment may be longer, to the nearest second (RFC 8216 section 4.3.3.1).
        if let line = lines.firstIndex(where: { $0.hasPrefix(target) }) {
            lines[line] = "\(target)\(Int(max(value(lines[line], target), left.rounded())))"
        }
        return lines.joined(separator: "\n")
    }

    /// Where HLS writes: segments next to the playlist, named after it. All of them are kept and listed.
    func playlist(_ path: String, seconds: Int) -> [String: SettingValue] {
        let base = path.hasSuffix(".m3u8") ? String(path.dropLast(5)) : path
        return [
            "playlist-location": .text(path),
            // The element reads it as a format of C.
            "location": .text(base.replacing("%", with: "%%") + "-%05d.ts"),
            "target-duration": .integer(seconds), "playlist-length": 0, "max-files": 0,
            // GStreamer 1.22 gets the time of a request wrong where timestamps were moved: the gate asks instead.
            "send-keyframe-requests": false,
        ]
    }
}
