import PeerLoop
import RTP
import RoomProtocol
import Testing

@testable import ServerCore

/// A stream of VP9 with three spatial layers, without sessions.
@Suite struct SpatialStreamTests {
    private let loop = Loop(now: MonotonicTime(nanoseconds: 1_000_000_000))
    private let stream: PublishedStream

    init() {
        let source = StubSource()
        var info = StreamInfo(id: 7, media: .video, codec: "VP9", extraValue: "", layers: 3)
        info.isScalable = true
        stream = PublishedStream(
            info, codec: .vp9, participant: "p-1", loop: loop, sources: [source, source, source])
        stream.begin()
    }

    private func advance(_ seconds: Double) { loop.advance(by: .milliseconds(Int64(seconds * 1000))) }

    /// Forwards a packet, which is a whole layer frame. `widths` are those of a scalability structure, of frames of 16:9.
    private func send(_ layer: Int, number: Int, timestamp: UInt32, bytes: Int = 500, widths: [Int] = []) {
        var payload: [UInt8] = [
            0xec | (widths.isEmpty ? 0 : 2), 0x80 | UInt8(number >> 8 & 0x7f), UInt8(number & 0xff), UInt8(layer) << 1,
            0,
        ]
        if !widths.isEmpty {
            payload.append(UInt8(widths.count - 1) << 5 | 0x10)
            for width in widths {
                for side in [width, width * 9 / 16] { payload += [UInt8(side >> 8), UInt8(side & 0xff)] }
            }
        }
        payload += [0x86] + [UInt8](repeating: 0, count: bytes)
        var packet = PacketBuffer()
        let isShort = packet.assignRTP(
            payloadType: 100, sequenceNumber: SequenceNumber(UInt16(truncatingIfNeeded: number)),
            timestamp: RTPTimestamp(timestamp), ssrc: SSRC(1), payload: payload)
        #expect(isShort)
        guard let header = RTPHeader(parsing: packet) else { return }
        stream.layers[0].forward(packet, header: header, at: StreamPosition(epoch: 0, number: number))
    }

    /// Lets layers deliver 25 frames a second.
    private func deliver(_ layers: Int, from first: Int, seconds: Double) {
        for step in 0..<Int(seconds * 25) {
            for layer in 0..<layers {
                send(layer, number: first + 3 * step + layer, timestamp: UInt32(3600 * step), bytes: 75 << (2 * layer))
            }
            advance(0.04)
        }
    }

    private var rates: [Double?] { stream.layers.map(\.knownRate) }

    @Test func `a layer that the publisher stops keeps its rate`() throws {
        deliver(3, from: 0, seconds: 2)
        let before = try rates.map { try #require($0) }
        #expect(before[2] > 2 * before[1] && before[1] > 2 * before[0], "\(before)")
        deliver(2, from: 1000, seconds: 5)
        let after = try rates.map { try #require($0) }
        #expect(zip(before, after).allSatisfy { abs($0 - $1) < $0 / 10 }, "\(before) \(after)")
    }

    @Test func `a layer that has had no packets has no rate`() {
        deliver(2, from: 0, seconds: 2)
        #expect(rates[1] != nil && rates[2] == nil, "\(rates)")
    }

    @Test func `sizes come with any frame that has them, and a stopped layer has none`() {
        func widths() -> [Int?] { stream.layers.map { $0.knownSize?.width } }
        send(0, number: 0, timestamp: 0, widths: [160, 320, 640])
        #expect(widths() == [160, 320, 640])
        send(0, number: 3, timestamp: 3600)
        #expect(widths() == [160, 320, 640])
        send(0, number: 6, timestamp: 7200, widths: [320, 640])
        #expect(widths() == [320, 640, nil])
    }

    @Test func `spatial layers keep their order, whatever sizes they state`() {
        send(0, number: 0, timestamp: 0, widths: [640, 320, 160])
        advance(1)
        #expect(stream.ranking == [0, 1, 2])
    }
}
