import RTP
import Testing

@Suite struct FrameSizeTests {
    private func size(_ payload: [UInt8], as codec: PayloadDescriptor.Codec) -> FrameSize? {
        var packet = PacketBuffer()
        guard
            packet.assignRTP(
                payloadType: 96, sequenceNumber: SequenceNumber(1), timestamp: RTPTimestamp(0), ssrc: SSRC(1),
                payload: payload), let header = RTPHeader(parsing: packet)
        else { return nil }
        return PayloadDescriptor(parsing: packet, header: header, as: codec)?.size(packet, header: header)
    }

    @Test func `the size of VP8 is that of its keyframe's header`() {
        let keyframe: [UInt8] = [0x10, 0x10, 0, 0, 0x9d, 0x01, 0x2a, 0x80, 0x42, 0x68, 0x01, 0]
        #expect(size(keyframe, as: .vp8) == FrameSize(width: 640, height: 360))
        for length in 0..<keyframe.count - 1 { #expect(size(Array(keyframe.prefix(length)), as: .vp8) == nil) }
        #expect(size([0x10, 0x11] + keyframe.dropFirst(2), as: .vp8) == nil)
    }

    /// Of x264 for 640x360, baseline: 40 by 23 macroblocks, 8 rows cropped.
    private static let parameters: [UInt8] = [
        0x67, 0x42, 0xc0, 0x1e, 0xd9, 0x00, 0xa0, 0x2f, 0xf9, 0x70, 0x11, 0x00, 0x00, 0x03, 0x00, 0x01, 0x00, 0x00,
        0x03, 0x00, 0x3c, 0x0f, 0x16, 0x2e, 0x48,
    ]

    @Test func `the size of H264 is that of its parameter set, alone or aggregated, without what is cropped`() {
        let expected = FrameSize(width: 640, height: 360)
        #expect(size(Self.parameters, as: .h264) == expected)
        let aggregate: [UInt8] = [0x78, 0, 2, 0x09, 0xf0, 0, UInt8(Self.parameters.count)] + Self.parameters
        #expect(size(aggregate, as: .h264) == expected)
        #expect(size([0x65, 1, 2, 3], as: .h264) == nil)
    }

    @Test func `any beginning and any change of a parameter set is read without a trap`() {
        for length in 0..<Self.parameters.count { _ = size(Array(Self.parameters.prefix(length)), as: .h264) }
        for index in 1..<Self.parameters.count {
            for value in stride(from: 0, through: 255, by: 5) {
                var changed = Self.parameters
                changed[index] = UInt8(value)
                _ = size(changed, as: .h264)
            }
        }
        #expect(size([0x67, 66, 0, 30] + [UInt8](repeating: 0, count: 100), as: .h264) == nil)
    }
}
