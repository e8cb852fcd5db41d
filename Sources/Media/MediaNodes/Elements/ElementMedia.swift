import GStreamerKit
import MediaGraph

/// The media of a pad, in the graph's terms.
struct ElementMedia {
    var kinds: Set<MediaKind> = []
    /// Pixel formats and codecs, best first. Empty means any.
    var encodings: [String] = []

    /// Common pixel formats. A pad that accepts all of them accepts any.
    private static let pixelFormats = [
        "I420", "NV12", "YV12", "NV21", "YUY2", "UYVY", "YVYU", "Y42B", "Y444", "GRAY8", "RGB", "BGR", "RGBA", "BGRA",
        "ARGB", "ABGR", "RGBx", "BGRx", "xRGB", "xBGR", "AYUV",
    ]

    init(of caps: Caps) {
        if caps.isAny {
            kinds = [.rawVideo, .rawAudio, .encodedVideo, .encodedAudio, .rtp, .data]
            return
        }
        let plain = caps.structuresInPlainMemory
        for structure in plain { kinds.insert(Self.kind(of: structure)) }
        // Frames in a graphics card's memory pass only between its own elements.
        if plain.count < caps.count { kinds.insert(.data) }
        encodings = Self.pixelFormats(in: plain) + unique(plain.compactMap { Encoding.of($0)?.name })
    }

    /// Empty if all common formats are accepted.
    private static func pixelFormats(in structures: [FormatStructure]) -> [String] {
        let pictures = structures.filter { $0.name == "video/x-raw" }
        if pictures.contains(where: { $0.texts("format").isEmpty }) { return [] }
        let named = Set(pictures.flatMap { $0.texts("format") })
        let usual = pixelFormats.filter(named.contains)
        if usual.count == pixelFormats.count { return [] }
        return usual.isEmpty ? named.sorted() : usual
    }

    static func kind(of structure: FormatStructure) -> MediaKind { MediaFormat(structure)?.kind ?? .data }

    /// Whether the media might be video, or audio, once it is known and decoded.
    static func mayHold(_ kind: MediaKind, _ caps: Caps) -> Bool {
        if caps.isAny { return true }
        let prefixes = kind == .rawVideo ? ["video/", "image/"] : ["audio/"]
        return caps.structures.contains { structure in
            structure.name == "application/x-rtp" || prefixes.contains { structure.name.hasPrefix($0) }
        }
    }
}

private func unique(_ words: [String]) -> [String] {
    var seen: Set<String> = []
    return words.filter { seen.insert($0).inserted }
}

extension MediaFormat {
    /// The format as GStreamer caps. Nil if there is no such form.
    var caps: String? {
        switch kind {
        case .rawVideo:
            return RawFormat.video(self)
        case .rawAudio:
            return RawFormat.audio
        case .encodedVideo, .encodedAudio:
            guard var text = Encoding.named(encoding)?.mediaType else { return nil }
            if let width { text += ",width=\(width)" }
            if let height { text += ",height=\(height)" }
            return text
        case .rtp:
            return "application/x-rtp"
        case .data, .applicationFrames:
            return nil
        }
    }

    /// The known properties of one of several formats, completed by those of the input.
    static func known(_ structure: FormatStructure, after input: MediaFormat?) -> MediaFormat {
        var format = MediaFormat(structure) ?? MediaFormat(.data, structure.name)
        switch format.kind {
        case .rawVideo:
            let offered = structure.texts("format")
            let preferred = [input?.kind == .rawVideo ? input?.encoding : nil, "I420"].compactMap { $0 }
            format.encoding = preferred.first { offered.isEmpty || offered.contains($0) } ?? offered[0]
        case .encodedVideo: break
        case .rawAudio: return .rawAudio
        case .rtp: return MediaFormat(.rtp, structure.texts("encoding-name").first ?? "RTP")
        default: return MediaFormat(format.kind, format.encoding)
        }
        format.width = fixed(structure.integers("width"), structure.isRange("width"), input?.width)
        format.height = fixed(structure.integers("height"), structure.isRange("height"), input?.height)
        let rates = structure.fractions("framerate")
        format.framesPerSecond =
            rates.count == 1 && !structure.isRange("framerate") && rates[0] > 0 ? rates[0] : input?.framesPerSecond
        return format
    }

    /// The only possible number, or the input's if it is one of several.
    private static func fixed(_ numbers: [Int], _ isRange: Bool, _ input: Int?) -> Int? {
        if numbers.count == 1, !isRange { return numbers[0] }
        guard let input else { return nil }
        if numbers.isEmpty { return input }
        let fits = isRange ? (numbers[0]...max(numbers[0], numbers[1])).contains(input) : numbers.contains(input)
        return fits ? input : nil
    }
}
