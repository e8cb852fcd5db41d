import PeerSession
import RTP
import RoomProtocol
import Testing

@testable import RoomServer

/// Packets of made-up VP8 streams: one packet a frame, 33 ms apart.
private func packet(
    _ sequence: UInt16, timestamp: UInt32, keyframe: Bool = false, pictureID: UInt16 = 0, isNewest: Bool = true
) throws -> ForwardedPacket {
    var buffer = PacketBuffer()
    let payload: [UInt8] = [0x90, 0x80, 0x80 | UInt8(pictureID >> 8), UInt8(pictureID & 0xff), keyframe ? 0 : 1, 0, 0]
    let fits = buffer.assignRTP(
        payloadType: 96, sequenceNumber: SequenceNumber(sequence), timestamp: RTPTimestamp(timestamp), ssrc: SSRC(1),
        payload: payload)
    #expect(fits)
    let parsed = RTPHeader(parsing: buffer)
    let header = try #require(parsed)
    let descriptor = VP8PayloadDescriptor(parsing: buffer, header: header)
    let vp8 = try #require(descriptor)
    return ForwardedPacket(header: header, isNewest: isNewest, isKeyframeStart: vp8.isKeyframeStart, vp8: vp8)
}

private func time(_ milliseconds: Int64) -> MonotonicTime { .zero + .milliseconds(milliseconds) }

@Suite struct StreamRewriterTests {
    @Test func `nothing is sent before a keyframe and the first stream keeps its numbers`() throws {
        var rewriter = StreamRewriter()
        rewriter.begin(.vp8, payloadType: 96)
        #expect(rewriter.rewrite(try packet(100, timestamp: 9000), now: time(0)) == nil)
        let first = rewriter.rewrite(try packet(101, timestamp: 12000, keyframe: true), now: time(33))
        #expect(first?.sequenceNumber == SequenceNumber(101))
        #expect(first?.timestamp == RTPTimestamp(12000))
        #expect(rewriter.timestampOffset == 0)
    }

    @Test func `a second stream continues the numbers of the first across their wrap`() throws {
        var rewriter = StreamRewriter()
        rewriter.begin(.vp8, payloadType: 96)
        _ = rewriter.rewrite(
            try packet(65535, timestamp: .max - 100, keyframe: true, pictureID: 0x7fff), now: time(0))
        rewriter.end()
        rewriter.begin(.vp8, payloadType: 96)
        let joined = try #require(
            rewriter.rewrite(try packet(7, timestamp: 500, keyframe: true, pictureID: 3), now: time(1000)))
        #expect(joined.sequenceNumber == SequenceNumber(0))
        #expect(joined.timestamp == RTPTimestamp(.max - 100).advanced(by: 90_000))
        #expect(joined.vp8?.pictureID == 0)
        let next = try #require(rewriter.rewrite(try packet(8, timestamp: 3500, pictureID: 4), now: time(1033)))
        #expect(next.sequenceNumber == SequenceNumber(1))
        #expect(next.timestamp.distance(from: joined.timestamp) == 3000)
        #expect(next.vp8?.pictureID == 1)
    }

    @Test func `a packet that arrives late keeps its place and one from before the start is left out`() throws {
        var rewriter = StreamRewriter()
        rewriter.begin(.vp8, payloadType: 96)
        _ = rewriter.rewrite(try packet(10, timestamp: 0, keyframe: true), now: time(0))
        _ = rewriter.rewrite(try packet(12, timestamp: 6000), now: time(66))
        #expect(rewriter.rewrite(try packet(11, timestamp: 3000), now: time(70))?.sequenceNumber == SequenceNumber(11))
        #expect(rewriter.rewrite(try packet(9, timestamp: 0), now: time(71)) == nil)
    }

    @Test func `after the numbers have come round nothing is mistaken for older than the start`() throws {
        var rewriter = StreamRewriter()
        rewriter.begin(.vp8, payloadType: 96)
        for index in 0..<200_000 {
            let forwarded = try packet(
                UInt16(truncatingIfNeeded: index), timestamp: UInt32(index * 3000), keyframe: index == 0)
            guard rewriter.rewrite(forwarded, now: time(Int64(index * 33))) != nil else {
                Issue.record("packet \(index) was left out")
                return
            }
        }
    }

    @Test func `a keyframe whose first packet was repaired is passed over`() throws {
        var rewriter = StreamRewriter()
        rewriter.begin(.vp8, payloadType: 96)
        #expect(rewriter.rewrite(try packet(10, timestamp: 0, keyframe: true, isNewest: false), now: time(0)) == nil)
        #expect(rewriter.isAwaitingStart)
        #expect(rewriter.rewrite(try packet(20, timestamp: 3000, keyframe: true), now: time(33)) != nil)
    }

    @Test func `audio starts at once`() throws {
        var rewriter = StreamRewriter()
        rewriter.begin(.opus, payloadType: 111)
        #expect(rewriter.rewrite(try packet(5, timestamp: 960), now: time(0))?.payloadType == 111)
    }
}
