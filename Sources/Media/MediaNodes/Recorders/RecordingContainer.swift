import MediaGraph

/// A format of recordings: its codecs, and the element that writes it.
///
/// A killed process loses only the newest part: Matroska and WebM are written by clusters, MP4 by fragments, HLS by
/// segments.
struct RecordingContainer: Sendable {
    /// The name in a recorder's settings.
    let name: String
    let title: String
    private let extensions: [String]
    /// Video codecs, the one for raw video first.
    let videoEncodings: [String]
    /// Audio codecs, the one for raw audio first.
    let audioEncodings: [String]
    let muxer: String
    let properties: [String: SettingValue]
    /// Whether it stores how much later one stream began than the other. A fragmented MP4 of GStreamer 1.22 does not.
    var keepsOffsets = true

    static let all = [matroska, mp4, webm, hls]

    /// Can hold all codecs.
    static let matroska = RecordingContainer(
        name: "matroska", title: "Matroska", extensions: ["mkv", "mka"],
        videoEncodings: ["h264", "vp8", "vp9", "av1", "h265", "mjpeg"],
        audioEncodings: ["opus", "aac", "pcmu", "pcma", "flac", "mp3", "vorbis"],
        muxer: "matroskamux", properties: ["writing-app": "connectlive"])

    /// Without VP9: GStreamer 1.22 crashes when it writes it. AV1 is written correctly; GStreamer's own reader of that
    /// version skips frames up to the next keyframe if the distance between frames changes. A killed process loses up to
    /// one fragment.
    private static let mp4 = RecordingContainer(
        name: "mp4", title: "MP4", extensions: ["mp4", "m4v", "mov"], videoEncodings: ["h264", "av1", "h265"],
        audioEncodings: ["opus", "aac"], muxer: "mp4mux", properties: ["fragment-duration": 500], keepsOffsets: false)

    private static let webm = RecordingContainer(
        name: "webm", title: "WebM", extensions: ["webm"], videoEncodings: ["vp8", "vp9", "av1"],
        audioEncodings: ["opus", "vorbis"], muxer: "webmmux", properties: ["writing-app": "connectlive"])

    /// The element changes its own state at its first frame. Without the property, the whole pipeline would change with
    /// it, and a source started by an edit would wait for it.
    private static let hls = RecordingContainer(
        name: "hls", title: "HLS", extensions: ["m3u8"], videoEncodings: ["h264"], audioEncodings: ["aac"],
        muxer: "hlssink2", properties: ["async-handling": true])

    /// The format of a recorder's settings, else that of the file's name. Matroska for an unknown extension.
    static func named(_ format: String, path: String) -> RecordingContainer {
        let path = path.lowercased()
        return all.first { $0.name == format }
            ?? all.first { $0.extensions.contains { path.hasSuffix(".\($0)") } } ?? matroska
    }

    /// Extensions of other containers and streams, which a player would expect in a file of that name.
    private static let foreign: Set = [
        "3gp", "aac", "ac3", "aif", "aiff", "avi", "flac", "flv", "gif", "m2ts", "m4a", "mp2", "mp3", "mpeg",
        "mpg", "mxf", "oga", "ogg", "ogv", "opus", "ts", "wav", "wma", "wmv",
    ]

    /// The extension of a file's name, if it is that of a container that recorders do not write.
    static func foreignExtension(of path: String) -> String? {
        let parts = (path.split(separator: "/").last ?? "").split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count > 1, let last = parts.last?.lowercased() else { return nil }
        return foreign.contains(last) ? last : nil
    }

    var isHLS: Bool { name == "hls" }

    func inputPad(isVideo: Bool) -> String {
        let name = isVideo ? "video" : "audio"
        return isHLS ? name : "\(name)_%u"
    }

    // MARK: HLS

    /// The last line of the playlist of a complete recording.
    static let endOfPlaylist = "#EXT-X-ENDLIST"

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
        // Another process may have written the playlist.
        guard left > value(lines[last], length), left <= seconds else { return text }
        lines[last] = "\(length)\(left),"
        // No segment may be longer, to the nearest second (RFC 8216 section 4.3.3.1).
        if let line = lines.firstIndex(where: { $0.hasPrefix(target) }), value(lines[line], target) < left.rounded() {
            lines[line] = "\(target)\(Int(left.rounded()))"
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
