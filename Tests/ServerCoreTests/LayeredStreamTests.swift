import PeerLoop
import RTP
import RoomProtocol
import Testing

@testable import ServerCore

/// A stream with simulcast, without sessions.
@Suite struct LayeredStreamTests {
    private let loop = Loop(now: MonotonicTime(nanoseconds: 1_000_000_000))
    private let sources = [StubSource(), StubSource(), StubSource()]
    private let stream: PublishedStream

    init() {
        stream = PublishedStream(
            StreamInfo(id: 7, media: .video, codec: "VP8", extraValue: "", layers: 3), codec: .vp8, participant: "p-1",
            loop: loop, sources: sources)
        stream.begin()
    }

    private func advance(_ seconds: Double) { loop.advance(by: .milliseconds(Int64(seconds * 1000))) }

    /// Forwards a packet of VP8. A keyframe has a size.
    private func send(
        _ layer: Int, number: Int, timestamp: UInt32, bytes: Int = 1000, size: (width: Int, height: Int)? = nil
    ) {
        var payload: [UInt8] = [0x10, size == nil ? 1 : 0, 0, 0]
        if let size {
            payload += [
                0x9d, 0x01, 0x2a, UInt8(size.width & 0xff), UInt8(size.width >> 8), UInt8(size.height & 0xff),
                UInt8(size.height >> 8),
            ]
        }
        payload += [UInt8](repeating: 0, count: bytes - payload.count)
        var packet = PacketBuffer()
        let isShort = packet.assignRTP(
            payloadType: 96, sequenceNumber: SequenceNumber(UInt16(truncatingIfNeeded: number)),
            timestamp: RTPTimestamp(timestamp), ssrc: SSRC(1), marker: true, payload: payload)
        #expect(isShort)
        guard let header = RTPHeader(parsing: packet) else { return }
        stream.layers[layer].forward(packet, header: header, at: StreamPosition(epoch: 0, number: number))
    }

    /// Lets a layer deliver 50 packets a second.
    private func deliver(_ layers: [Int: Int], from first: Int, seconds: Double) {
        for step in 0..<Int(seconds * 50) {
            for (layer, bytes) in layers {
                send(
                    layer, number: first + step, timestamp: UInt32(1800 * (first + step)), bytes: bytes,
                    size: step == 0 ? (160 << layer, 90 << layer) : nil)
            }
            advance(0.02)
        }
    }

    @Test func `a layer that nobody watches runs until it is measured, for ten seconds at most`() {
        advance(9)
        #expect(sources[0].limits.isEmpty)
        deliver([0: 200, 1: 500], from: 0, seconds: 1)
        #expect(sources[0].limits.isEmpty)
        advance(5)
        #expect(sources[0].limits.last == [0])
        #expect(stream.layers.map { $0.knownSize?.width } == [160, 320, nil])
        #expect((215_000...230_000).contains(stream.layers[1].knownRate ?? 0), "\(stream.layers[1].knownRate ?? 0)")
    }

    @Test func `the first half second, with its keyframe, does not count once there is another one`() {
        for number in 0..<10 { send(1, number: number, timestamp: 0, bytes: 1200, size: (320, 180)) }
        deliver([1: 500], from: 10, seconds: 1.2)
        #expect((215_000...230_000).contains(stream.layers[1].knownRate ?? 0), "\(stream.layers[1].knownRate ?? 0)")
    }

    @Test func `the rate of a layer that ended long ago is at most three and a half times that of the layer below`() {
        deliver([0: 200, 2: 1400], from: 0, seconds: 2)
        deliver([1: 200], from: 0, seconds: 2)
        func rate(_ rank: Int) -> Double { stream.expectedRate(rank: rank, unknown: 1) }
        #expect(rate(2) > 3.5 * rate(1))
        deliver([0: 200, 1: 200], from: 200, seconds: 11)
        #expect(abs(rate(2) - 3.5 * rate(1)) < 1)
    }

    @Test func `a keyframe begins once, however many of its packets look like the first`() {
        send(0, number: 1, timestamp: 100, size: (160, 90))
        send(0, number: 2, timestamp: 100, size: (320, 180))
        #expect(stream.layers[0].size?.width == 160)
        send(0, number: 3, timestamp: 200, size: (320, 180))
        #expect(stream.layers[0].size?.width == 320)
    }

    @Test func `layers of one size keep their order until their rates differ by a quarter`() {
        func rank(_ rates: [Double]) -> [Int] {
            for (layer, rate) in zip(stream.layers, rates) {
                layer.set(LayerMeasurement(rate: rate, size: FrameSize(width: 640, height: 360)))
            }
            advance(0.3)
            return stream.ranking
        }
        #expect(rank([300_000, 200_000, 100_000]) == [2, 1, 0])
        #expect(rank([300_000, 200_000, 220_000]) == [2, 1, 0])
        #expect(rank([300_000, 200_000, 260_000]) == [1, 2, 0])
        #expect(rank([300_000, 245_000, 200_000]) == [1, 2, 0])
    }

    @Test func `a layer that is wanted again has three seconds to begin, however short it was off`() {
        var delivery = LayerDelivery()
        func time(_ milliseconds: Int) -> MonotonicTime {
            MonotonicTime(nanoseconds: UInt64(100_000 + milliseconds) * 1_000_000)
        }
        func isSilent(_ milliseconds: Int, isWanted: Bool = true, last: Int) -> Bool {
            delivery.update(
                isWanted: isWanted, last: time(last), others: time(milliseconds), now: time(milliseconds))
            return delivery.isSilent
        }
        #expect(!isSilent(0, last: 0))
        #expect(!isSilent(100, last: 100))
        #expect(!isSilent(200, isWanted: false, last: 200))
        // Its publisher waits for a keyframe.
        for moment in stride(from: 300, to: 3300, by: 100) { #expect(!isSilent(moment, last: 200), "\(moment)") }
        #expect(isSilent(3300, last: 200))
    }

    @Test func `a layer that stops again soon has to deliver for twice as long each time, up to a minute`() {
        var delivery = LayerDelivery()
        var time = 0
        func update(isDelivering: Bool) {
            time += 1
            let now = MonotonicTime(nanoseconds: UInt64(100_000 + 100 * time) * 1_000_000)
            let last = isDelivering ? now : MonotonicTime(nanoseconds: 1)
            delivery.update(isWanted: true, last: last, others: now, now: now)
        }
        /// Tenths of a second until it counts again.
        func proof() -> Int {
            update(isDelivering: false)
            #expect(delivery.isSilent)
            let start = time
            while delivery.isSilent { update(isDelivering: true) }
            return time - start - 1
        }
        update(isDelivering: true)
        #expect((0..<8).map { _ in proof() } == [10, 20, 40, 80, 160, 320, 600, 600])
        for _ in 0..<160 { update(isDelivering: true) }
        #expect(proof() == 10)
    }
}
