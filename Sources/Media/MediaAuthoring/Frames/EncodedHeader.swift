/// Reads the headers of encoded frames without decoding them.
public enum EncodedHeader {
    /// Returns the fault of an encoded frame as a clause about "it"; nil if the header shows none.
    ///
    /// Reads `mjpeg`, `vp8` (RFC 6386, section 9.1), `vp9` (VP9 bitstream specification, section 6.2) and `h264` as Annex B. All other encodings pass. `isKeyframe` is
    /// the sender's statement; nil if it made none.
    public static func fault(of bytes: RawSpan, as format: MediaFormat, isKeyframe: Bool?) -> String? {
        if bytes.byteCount == 0 { return "it has no bytes" }
        let header: Header
        do throws(Fault) {
            guard let read = try read(bytes, format.encoding) else { return nil }
            header = read
        } catch {
            return error.words
        }
        if let isKeyframe, isKeyframe != header.isKeyframe {
            return header.contradiction
        }
        guard let size = header.size, let width = format.width, let height = format.height, size != (width, height)
        else { return nil }
        return "it is \(size.width)x\(size.height) instead of \(width)x\(height)"
    }

    /// Whether decoding can begin with this frame. False for a frame with a fault, and for codecs that are not known here.
    public static func isKeyframe(_ bytes: RawSpan, encoding: String) -> Bool {
        ((try? read(bytes, encoding)) ?? nil)?.isKeyframe ?? false
    }

    private static func read(_ bytes: RawSpan, _ encoding: String) throws(Fault) -> Header? {
        switch encoding {
        case "vp8": try vp8(bytes)
        case "vp9": try vp9(bytes)
        case "mjpeg": try jpeg(bytes)
        case "h264": try h264(bytes)
        default: nil
        }
    }

    private struct Fault: Error { let words: String }

    private struct Header {
        var size: (width: Int, height: Int)?
        var isKeyframe: Bool
        /// The fault of a frame whose sender states the opposite of `isKeyframe`.
        var contradiction: String
    }

    private static func isJPEG(_ bytes: RawSpan) -> Bool { bytes[0] == 0xff && bytes[1] == 0xd8 && bytes[2] == 0xff }

    private static func vp8(_ bytes: RawSpan) throws(Fault) -> Header {
        if isJPEG(bytes) { throw Fault(words: "it is a JPEG instead of VP8") }
        let isKey = bytes[0] & 1 == 0
        let contradiction = "it is \(isKey ? "not " : "")marked as a keyframe, and its header states the opposite"
        guard isKey else { return Header(isKeyframe: false, contradiction: contradiction) }
        guard bytes.byteCount >= 10, bytes[3] == 0x9d, bytes[4] == 0x01, bytes[5] == 0x2a else {
            throw Fault(words: "it is not VP8")
        }
        let size = (bytes.word(6, isLittle: true) & 0x3fff, bytes.word(8, isLittle: true) & 0x3fff)
        return Header(size: size, isKeyframe: true, contradiction: contradiction)
    }

    private static func vp9(_ bytes: RawSpan) throws(Fault) -> Header {
        guard bytes[0] >> 6 == 2 else { throw Fault(words: "it is not VP9") }
        // Bits: the profile, `show_existing_frame` and `frame_type`. Profile 3 has another one before those.
        let isKey = bytes[0] & 0x30 == 0x30 ? bytes[0] & 0x06 == 0 : bytes[0] & 0x0c == 0
        return Header(
            isKeyframe: isKey,
            contradiction: "it is \(isKey ? "not " : "")marked as a keyframe, and its header states the opposite")
    }

    private static func jpeg(_ bytes: RawSpan) throws(Fault) -> Header {
        if beginsWithStartCode(bytes) { throw Fault(words: "it is H.264 instead of JPEG") }
        guard bytes.byteCount >= 4, bytes[0] == 0xff, bytes[1] == 0xd8 else {
            throw Fault(words: "it is not a JPEG")
        }
        return Header(
            size: jpegSize(bytes), isKeyframe: true,
            contradiction: "it is not marked as a keyframe, but every JPEG is one")
    }

    private static func h264(_ bytes: RawSpan) throws(Fault) -> Header {
        if isJPEG(bytes) { throw Fault(words: "it is a JPEG instead of H.264") }
        guard beginsWithStartCode(bytes) else {
            throw Fault(words: "it does not begin with a start code of H.264 Annex B")
        }
        var header = Header(isKeyframe: false, contradiction: "it is marked as a keyframe, but has no IDR slice")
        var unit = nextUnit(bytes, from: 0)
        while let begin = unit, begin < bytes.byteCount {
            let type = bytes[begin] & 0x1f
            if type == 7 { header.size = SequenceParameters(bytes, from: begin + 1)?.size ?? header.size }
            if type == 5 {
                header.isKeyframe = true
                header.contradiction = "it is not marked as a keyframe, but has an IDR slice"
            }
            if type == 1, isBidirectional(bytes, from: begin + 1) {
                throw Fault(
                    words: "it is a B-frame, which is not sent in display order; encode without B-frames")
            }
            if (1...5).contains(type) { break }
            unit = nextUnit(bytes, from: begin)
        }
        return header
    }

    /// ITU-T H.264, 7.3.3: the number of the slice's first macroblock, then the slice's type.
    private static func isBidirectional(_ bytes: RawSpan, from begin: Int) -> Bool {
        var reader = BitReader(bytes, from: begin)
        _ = reader.golomb()
        return reader.golomb() % 5 == 1 && !reader.isBeyond
    }

    private static func beginsWithStartCode(_ bytes: RawSpan) -> Bool {
        var zeros = 0
        while zeros < bytes.byteCount, bytes[zeros] == 0 { zeros += 1 }
        return zeros >= 2 && bytes[zeros] == 1
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

    /// ITU-T T.81, B.2.2: the frame header has the size, whatever segments come before it.
    private static func jpegSize(_ bytes: RawSpan) -> (width: Int, height: Int)? {
        var index = 2
        while index + 9 <= bytes.byteCount, bytes[index] == 0xff {
            let marker = bytes[index + 1]
            if marker == 0xff {
                index += 1
                continue
            }
            // Three numbers of this range are no frame headers.
            if (0xc0...0xcf).contains(marker), ![0xc4, 0xc8, 0xcc].contains(marker) {
                return (bytes.word(index + 7, isLittle: false), bytes.word(index + 5, isLittle: false))
            }
            if marker == 0xda || marker == 0xd9 { return nil }
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

/// The frame size in H.264's sequence parameter set: ITU-T H.264, 7.3.2.1.1.
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
