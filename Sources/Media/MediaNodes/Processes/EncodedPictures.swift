import FrameSocket

/// What can be told of an encoded picture by its first bytes, without decoding it.
enum EncodedPicture {
    /// The size that a JPEG or a keyframe of VP8 states; nil where it states none.
    static func size(_ bytes: [UInt8], _ encoding: FrameFormat.Encoding) -> (width: Int, height: Int)? {
        switch encoding {
        case .mjpeg: JPEGSplitter.size(bytes)
        case .vp8: vp8Size(bytes)
        default: nil
        }
    }

    /// RFC 6386, section 9.1: behind the frame tag a keyframe has a start code and 14 bits each of width and height.
    private static func vp8Size(_ bytes: [UInt8]) -> (width: Int, height: Int)? {
        guard bytes.count >= 10, bytes[0] & 1 == 0, Array(bytes[3..<6]) == [0x9d, 0x01, 0x2a] else { return nil }
        return (Int(bytes[6]) | Int(bytes[7] & 0x3f) << 8, Int(bytes[8]) | Int(bytes[9] & 0x3f) << 8)
    }

    /// Why a picture cannot be what was stated; nil where it can. What begins wrongly is not handed to a decoder.
    static func problem(_ bytes: [UInt8], _ stated: FrameFormat) -> String? {
        let size = size(bytes, stated.encoding)
        if let size, size != (stated.width, stated.height) {
            return "a picture of \(size.width)x\(size.height) came"
        }
        switch stated.encoding {
        case .mjpeg:
            if size == nil || !bytes.starts(with: [0xff, 0xd8]) { return "what came is no JPEG" }
        case .vp8:
            if bytes.count < 4 || bytes[0] & 1 == 0 && size == nil { return "what came is no picture of VP8" }
        case .h264:
            if !(bytes.starts(with: [0, 0, 1]) || bytes.starts(with: [0, 0, 0, 1])) {
                return "what came does not begin with a start code of Annex B"
            }
        default: break
        }
        return nil
    }
}
