import MediaGraph

/// The formats of recordings, their codecs, and the elements that write them.
///
/// A killed process loses only the newest part: Matroska and WebM are written by clusters, MP4 by fragments, HLS by
/// segments.
enum RecordingContainer: String, CaseIterable, Sendable {
    case matroska
    case mp4
    case webm
    case hls

    /// The longest part of an MP4 that is lost when the process is killed.
    private static let fragmentMilliseconds = 500

    /// The last line of the playlist of a complete recording.
    static let endOfPlaylist = "#EXT-X-ENDLIST"

    /// The format of a recorder's settings.
    init(format: String, path: String) {
        self = RecordingContainer(rawValue: format) ?? RecordingContainer(path: path)
    }

    /// The format of the file's name. Matroska, which can hold all codecs, for an unknown extension.
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

    /// Video codecs, the one for raw video first.
    var videoEncodings: [String] {
        switch self {
        case .matroska: ["h264", "vp8", "vp9", "av1", "h265", "mjpeg"]
        // Without VP9: GStreamer 1.22 crashes when it writes it. AV1 is written correctly; GStreamer's own reader of
        // that version skips frames up to the next keyframe if the distance between frames changes.
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

    /// The element that writes the container, and its properties.
    var muxer: (factory: String, properties: [String: SettingValue]) {
        switch self {
        case .matroska: ("matroskamux", ["writing-app": "connectlive"])
        case .webm: ("webmmux", ["writing-app": "connectlive"])
        case .mp4: ("mp4mux", ["fragment-duration": .integer(Self.fragmentMilliseconds)])
        // It changes its own state at its first frame. Without this, the whole pipeline would change with it, and a
        // source started by an edit would wait for it.
        case .hls: ("hlssink2", ["async-handling": true])
        }
    }

    func inputPad(isVideo: Bool) -> String {
        let name = isVideo ? "video" : "audio"
        return self == .hls ? name : "\(name)_%u"
    }

    /// Whether it stores how much later one stream began than the other. A fragmented MP4 of GStreamer 1.22 does not.
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

    /// The path of an HLS recording's segment, which is next to the playlist and named after it.
    static func segment(_ number: Int, of path: String) -> String {
        let digits = String(number)
        let zeros = String(repeating: "0", count: max(0, 5 - digits.count))
        return (path.hasSuffix(".m3u8") ? String(path.dropLast(5)) : path) + "-\(zeros)\(digits).ts"
    }

    /// The number in the location of a segment.
    static func numberOfSegment(at location: String) -> Int {
        location.lastIndex(of: "-").flatMap { Int(location[location.index(after: $0)...].dropLast(3)) } ?? 0
    }

    /// Removes the segments of an earlier recording, which are numbered without a gap. Takes seconds for thousands of them.
    static func removeSegments(of path: String) {
        var number = 0
        while FileAccess.remove(segment(number, of: path)) { number += 1 }
    }

    /// The name of a recording's segments up to their number, as a URI relative to the playlist. Only the characters with a
    /// meaning of their own are percent-encoded (RFC 3986 section 2.1): players accept others as they are, and some do not
    /// decode the names of local files.
    static func uri(ofSegmentsOf path: String) -> String {
        let name = path.split(separator: "/").last.map(String.init) ?? ""
        let stem = name.hasSuffix(".m3u8") ? name.dropLast(5) : name[...]
        let uri = stem.utf8.reduce(into: [UInt8]()) { uri, byte in
            if byte >= 0x20, byte != 0x7f, !"%#?:\"\\".utf8.contains(byte) {
                uri.append(byte)
            } else {
                uri += Array("%\(byte < 16 ? "0" : "")\(String(byte, radix: 16, uppercase: true))".utf8)
            }
        }
        return String(decoding: uri, as: UTF8.self)
    }

    /// The first segment in a playlist that is missing or empty; nil if all of them have data.
    static func lackingSegment(in playlist: String, of path: String) -> String? {
        let count = playlist.split(separator: "\n").count { !$0.hasPrefix("#") }
        return (0..<count).lazy.map { segment($0, of: path) }.first { !FileAccess.hasData($0) }
    }

    /// Where HLS writes. All segments are kept and listed.
    func playlist(_ path: String, seconds: Int) -> [String: SettingValue] {
        [
            "playlist-location": .text(path),
            // The playlist lists its last component. The element reads it as a C format string.
            "location": .text(Self.uri(ofSegmentsOf: path).replacing("%", with: "%%") + "-%05d.ts"),
            "target-duration": .integer(seconds), "playlist-length": 0, "max-files": 0,
            // GStreamer 1.22 computes a wrong time for the request if timestamps were shifted. The gate requests
            // instead.
            "send-keyframe-requests": false,
        ]
    }
}
