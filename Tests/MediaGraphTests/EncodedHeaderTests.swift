import MediaGraph
import Testing

@Suite struct EncodedHeaderTests {
    private func fault(_ bytes: [UInt8], _ encoding: String, isKeyframe: Bool? = nil) -> String? {
        EncodedHeader.fault(
            of: bytes.span.bytes,
            as: MediaFormat(.encodedVideo, encoding, width: 64, height: 48, framesPerSecond: 30), isKeyframe: isKeyframe
        )
    }

    private let jpeg: [UInt8] = [0xff, 0xd8, 0xff, 0xc0, 0, 11, 8, 0, 48, 0, 64, 1, 1, 0x11, 0, 0xff, 0xd9]
    private let vp8: [UInt8] = [0x10, 0, 0, 0x9d, 0x01, 0x2a, 64, 0, 48, 0]

    @Test("A frame of the stated format passes")
    func right() {
        #expect(fault(jpeg, "mjpeg", isKeyframe: true) == nil)
        #expect(fault(vp8, "vp8", isKeyframe: true) == nil)
        #expect(fault([0, 0, 0, 1, 0x65, 0x88, 4], "h264", isKeyframe: true) == nil)
        #expect(fault([0, 0, 1, 0x41, 0x9a, 2], "h264", isKeyframe: false) == nil)
    }

    @Test("A frame of another codec is reported")
    func otherCodec() {
        #expect(fault(jpeg, "h264")?.contains("is a JPEG") == true)
        #expect(fault(jpeg, "vp8")?.contains("is a JPEG") == true)
        #expect(fault([0, 0, 0, 1, 0x65, 0x88, 4], "mjpeg")?.contains("is H.264") == true)
        #expect(fault([1, 2, 0, 0, 1, 0x65], "h264")?.contains("start code") == true)
    }

    @Test("Another size or frame type than stated is reported")
    func contradictions() {
        #expect(fault([0x10, 0, 0, 0x9d, 0x01, 0x2a, 32, 0, 24, 0], "vp8") == "it is 32x24 instead of 64x48")
        #expect(fault([0, 0, 0, 1, 0x65, 0x88, 4], "h264", isKeyframe: false)?.contains("has an IDR slice") == true)
        #expect(fault([0, 0, 0, 1, 0x41, 0x9a, 2], "h264", isKeyframe: true)?.contains("no IDR slice") == true)
    }

    @Test("B-frames of H.264 are refused")
    func bidirectional() {
        #expect(fault([0, 0, 0, 1, 0x01, 0xa0, 4], "h264")?.contains("B-frame") == true)
    }

    @Test("Truncated frames are not read beyond their end")
    func truncated() {
        for picture in [jpeg, vp8, [0, 0, 0, 1, 0x67, 0x64, 0, 0x1f, 0xac, 0xd9, 0, 0, 0, 1, 0x65, 0x88]] {
            for count in 0...picture.count {
                for encoding in ["mjpeg", "vp8", "h264"] { _ = fault(Array(picture.prefix(count)), encoding) }
            }
        }
    }
}
