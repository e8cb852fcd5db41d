import FrameSocket
import MediaGraph

extension FrameFormat {
    /// What is wrong with an encoded picture of this format, as far as its header shows it; nil for raw pictures. Bytes
    /// that begin wrongly are not handed to a decoder.
    func fault(of picture: [UInt8]) -> String? {
        let name: String
        switch encoding {
        case .mjpeg: name = "mjpeg"
        case .vp8: name = "vp8"
        case .h264: name = "h264"
        case .i420, .nv12, .bgrx, .bgra, .rgba, .yuy2: return nil
        }
        let stated = MediaFormat(
            .encodedVideo, name, width: width, height: height, framesPerSecond: framesPerSecond)
        return EncodedHeader.fault(of: picture.span.bytes, as: stated, isKeyframe: nil)
    }
}
