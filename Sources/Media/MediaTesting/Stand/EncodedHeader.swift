import MediaGraph

/// What the bytes of an encoded picture say about it themselves.
enum EncodedHeader {
    /// What is wrong with the bytes of a picture that is said to be of the format; nil where nothing can be seen.
    static func fault(of bytes: RawSpan, as format: MediaFormat, isKeyframe: Bool) -> String? {
        if bytes.byteCount == 0 { return "it has no bytes" }
        var size: (width: Int, height: Int)?
        switch format.encoding {
        case "vp8":
            let isKey = bytes[0] & 1 == 0
            if isKey != isKeyframe {
                return "it is said \(isKeyframe ? "" : "not ")to be a keyframe, and its header says otherwise"
            }
            // RFC 6386, section 9.1.
            guard isKey else { return nil }
            guard bytes.byteCount >= 10, bytes[3] == 0x9d, bytes[4] == 0x01, bytes[5] == 0x2a else {
                return "its bytes are no VP8"
            }
            size = (bytes.word(6, isLittle: true) & 0x3fff, bytes.word(8, isLittle: true) & 0x3fff)
        case "mjpeg":
            guard bytes.byteCount >= 4, bytes[0] == 0xff, bytes[1] == 0xd8 else { return "its bytes are no JPEG" }
            if !isKeyframe { return "it is said not to be a keyframe, as every JPEG is: it is dropped" }
            size = jpegSize(bytes)
        case "h264":
            guard let start = nextUnit(bytes, from: 0) else { return "it has no start code of H.264's Annex B" }
            var unit: Int? = start
            var isKey = false
            while let begin = unit, begin < bytes.byteCount {
                let type = bytes[begin] & 0x1f
                if type == 7 { size = SequenceParameters(bytes, from: begin + 1)?.size ?? size }
                if type == 5 { isKey = true }
                if (1...5).contains(type) { break }
                unit = nextUnit(bytes, from: begin)
            }
            if isKeyframe != isKey {
                return
                    "it is said \(isKeyframe ? "" : "not ")to be a keyframe, and has \(isKey ? "an" : "no") IDR picture"
            }
        default: return nil
        }
        guard let size, let width = format.width, let height = format.height, size != (width, height) else {
            return nil
        }
        return "it is \(size.width)x\(size.height), and \(width)x\(height) was stated"
    }

    /// Where the next unit begins behind a start code.
    private static func nextUnit(_ bytes: RawSpan, from begin: Int) -> Int? {
        var index = begin
        while index + 3 < bytes.byteCount {
            if bytes[index] == 0, bytes[index + 1] == 0, bytes[index + 2] == 1 { return index + 3 }
            index += 1
        }
        return nil
    }

    /// ITU-T T.81, B.2.2: the size stands in the frame header, whatever segments come before it.
    private static func jpegSize(_ bytes: RawSpan) -> (width: Int, height: Int)? {
        var index = 2
        while index + 9 <= bytes.byteCount, bytes[index] == 0xff {
            let marker = bytes[index + 1]
            if (0xc0...0xc2).contains(marker) {
                return (bytes.word(index + 7, isLittle: false), bytes.word(index + 5, isLittle: false))
            }
            index += 2 + bytes.word(index + 2, isLittle: false)
        }
        return nil
    }
}

extension RawSpan {
    fileprivate subscript(offset: Int) -> UInt8 {
        offset < byteCount ? unsafeLoad(fromByteOffset: offset, as: UInt8.self) : 0
    }

    fileprivate func word(_ offset: Int, isLittle: Bool) -> Int {
        isLittle ? Int(self[offset]) | Int(self[offset + 1]) << 8 : Int(self[offset]) << 8 | Int(self[offset + 1])
    }
}

/// The picture's size as H.264's sequence parameter set has it: ITU-T H.264, 7.3.2.1.1.
private struct SequenceParameters {
    let size: (width: Int, height: Int)

    /// Nil for a set that is cut short, or that carries scaling lists.
    init?(_ bytes: RawSpan, from begin: Int) {
        var reader = BitReader(bytes, from: begin)
        let profile = reader.bits(8)
        _ = reader.bits(16)
        _ = reader.golomb()
        var chroma = 1
        if [100, 110, 122, 244, 44, 83, 86, 118, 128].contains(profile) {
            chroma = reader.golomb()
            if chroma == 3 { _ = reader.bits(1) }
            _ = reader.golomb()
            _ = reader.golomb()
            _ = reader.bits(1)
            if reader.bits(1) == 1 { return nil }
        }
        _ = reader.golomb()
        switch reader.golomb() {
        case 0: _ = reader.golomb()
        case 1:
            _ = reader.bits(1)
            _ = reader.golomb()
            _ = reader.golomb()
            for _ in 0..<min(reader.golomb(), 255) { _ = reader.golomb() }
        default: break
        }
        _ = reader.golomb()
        _ = reader.bits(1)
        let columns = reader.golomb() + 1
        let mapRows = reader.golomb() + 1
        let isProgressive = reader.bits(1)
        if isProgressive == 0 { _ = reader.bits(1) }
        _ = reader.bits(1)
        var cropped = (width: 0, height: 0)
        if reader.bits(1) == 1 {
            let unit = (width: chroma == 1 || chroma == 2 ? 2 : 1, height: (chroma == 1 ? 2 : 1) * (2 - isProgressive))
            cropped.width = (reader.golomb() + reader.golomb()) * unit.width
            cropped.height = (reader.golomb() + reader.golomb()) * unit.height
        }
        guard !reader.isBeyond else { return nil }
        size = (columns * 16 - cropped.width, mapRows * (2 - isProgressive) * 16 - cropped.height)
    }
}

/// Bits of a unit of H.264, without the bytes that only keep start codes from appearing.
private struct BitReader {
    private var bytes: [UInt8] = []
    private var position = 0

    init(_ span: RawSpan, from begin: Int) {
        var zeros = 0
        for offset in begin..<min(span.byteCount, begin + 128) {
            let byte = span[offset]
            if zeros >= 2, byte == 3 {
                zeros = 0
                continue
            }
            zeros = byte == 0 ? zeros + 1 : 0
            bytes.append(byte)
        }
    }

    var isBeyond: Bool { position > bytes.count * 8 }

    mutating func bits(_ count: Int) -> Int {
        var value = 0
        for _ in 0..<count {
            let byte = position / 8 < bytes.count ? bytes[position / 8] : 0
            value = value << 1 | Int(byte >> (7 - UInt8(position % 8)) & 1)
            position += 1
        }
        return value
    }

    /// Unsigned Exp-Golomb.
    mutating func golomb() -> Int {
        var zeros = 0
        while zeros < 31, !isBeyond, bits(1) == 0 { zeros += 1 }
        return (1 << zeros) - 1 + bits(zeros)
    }
}
