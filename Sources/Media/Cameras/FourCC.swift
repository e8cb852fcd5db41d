/// A pixel format's code of four characters, as V4L2 numbers it (`V4L2_PIX_FMT_…`): `YUYV`, `MJPG`.
package struct FourCC: Sendable, Hashable, Codable, CustomStringConvertible, ExpressibleByStringLiteral {
    /// As in `v4l2_pix_format.pixelformat`.
    package let code: UInt32

    package init(code: UInt32) {
        self.code = code
    }

    /// Nil unless the text has one to four ASCII characters, and perhaps `-BE` for a big-endian format.
    package init?(text: String) {
        let isBigEndian = text.hasSuffix("-BE") && text.count > 4
        let letters = Array((isBigEndian ? String(text.dropLast(3)) : text).utf8)
        guard (1...4).contains(letters.count), letters.allSatisfy({ (32..<127).contains($0) }) else { return nil }
        var code: UInt32 = isBigEndian ? Self.bigEndian : 0
        for place in 0..<4 { code |= UInt32(place < letters.count ? letters[place] : 32) << (8 * place) }
        self.code = code
    }

    package init(stringLiteral text: String) {
        guard let code = FourCC(text: text) else { preconditionFailure("\(text) is not a code of four characters.") }
        self = code
    }

    package init(from decoder: any Decoder) throws {
        self = try decoded(decoder, "a code of four characters", FourCC.init(text:))
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }

    /// Without trailing spaces; a big-endian format ends in `-BE`.
    package var description: String {
        var letters = (0..<4).map { UInt8(truncatingIfNeeded: code >> (8 * $0)) & 0x7f }
        while letters.last == 32 { letters.removeLast() }
        let text = String(decoding: letters.map { $0 < 32 ? UInt8(ascii: "?") : $0 }, as: UTF8.self)
        return code & Self.bigEndian == 0 ? text : text + "-BE"
    }

    private static let bigEndian: UInt32 = 1 << 31

    // MARK: Known formats

    /// GStreamer's name: `YUY2` for `YUYV`, `MJPG` for the two kinds of JPEG, `H264`. Nil for a format without a name.
    package var name: String? { Self.known[self]?.name }

    /// The usual code of a format by GStreamer's name. Nil for a name that no code has.
    package init?(name: String) {
        let usual = ["MJPG", "H264", "YUYV", "YU12", "YV12", "NV12", "NV21", "BGR4", "BA24"].compactMap(
            FourCC.init(text:))
        let codes = usual + Self.known.keys.sorted { $0.code < $1.code }
        guard let code = codes.first(where: { $0.name == name }) else { return nil }
        self = code
    }

    /// Bits of a pixel over all planes. Nil for compressed and unknown formats.
    package var bitsPerPixel: Int? { Self.known[self]?.bits }

    /// Bits of a pixel in the first plane, which decide its stride. Nil for compressed and unknown formats.
    package var bitsInFirstPlane: Int? {
        guard let bits = bitsPerPixel else { return nil }
        return Self.planar.contains(self) ? 8 : bits
    }

    package var isJPEG: Bool { name == "MJPG" }
    package var isH264: Bool { name == "H264" }

    private static let planar: Set<FourCC> = [
        "YU12", "YV12", "YM12", "YM21", "NV12", "NV21", "NM12", "NM21", "NV16", "NV61", "NV24", "422P",
    ]

    private static let known: [FourCC: (name: String, bits: Int?)] = [
        "YU12": ("I420", 12), "YM12": ("I420", 12), "YV12": ("YV12", 12), "YM21": ("YV12", 12),
        "NV12": ("NV12", 12), "NM12": ("NV12", 12), "NV21": ("NV21", 12), "NM21": ("NV21", 12),
        "YUYV": ("YUY2", 16), "UYVY": ("UYVY", 16), "YVYU": ("YVYU", 16), "VYUY": ("VYUY", 16),
        "NV16": ("NV16", 16), "NV61": ("NV61", 16), "NV24": ("NV24", 24), "422P": ("Y42B", 16),
        "RGB3": ("RGB", 24), "BGR3": ("BGR", 24),
        "RGB4": ("xRGB", 32), "BX24": ("xRGB", 32), "BA24": ("ARGB", 32),
        "BGR4": ("BGRx", 32), "XR24": ("BGRx", 32), "AR24": ("BGRA", 32),
        "XB24": ("RGBx", 32), "AB24": ("RGBA", 32),
        "RGBP": ("RGB16", 16), "RGBO": ("RGB15", 16), "XR15": ("RGB15", 16),
        "GREY": ("GRAY8", 8), "Y16": ("GRAY16_LE", 16), "Y16-BE": ("GRAY16_BE", 16),
        "MJPG": ("MJPG", nil), "JPEG": ("MJPG", nil), "H264": ("H264", nil), "HEVC": ("H265", nil),
    ]
}
