import PeerLoop
import RTP
import RoomProtocol
import Testing

@testable import ServerCore

/// Keeps the packets of a recording.
final class Tape: RecordingSink {
    struct Packet: Equatable {
        var number: Int
        var marker: Bool
        /// In milliseconds.
        var time: Double
        var payload: [UInt8]
    }

    private(set) var packets: [Packet] = []
    private(set) var batches = 0
    private(set) var start: MonotonicTime?
    private(set) var end: RecordingEnd?
    var isFull = false
    var isHalfEmpty: Bool { !isFull }

    func write(_ packets: RecordedPackets) -> Bool {
        guard !isFull else { return false }
        batches += 1
        start = packets.start
        var offset = 0
        for packet in packets.packets {
            let bytes = Array(packets.bytes[offset..<(offset + packet.length)])
            offset += packet.length
            self.packets.append(
                Packet(
                    number: Int(bytes[2]) << 8 | Int(bytes[3]), marker: bytes[1] & 0x80 != 0,
                    time: packet.time.milliseconds,
                    payload: Array(bytes[12...])))
        }
        return true
    }

    func end(_ end: RecordingEnd) { self.end = end }

    /// The last byte of each payload, with which a test marks its packets.
    var marks: [Int] { packets.map { Int($0.payload.last ?? 0) } }
}

/// A recorded stream without sessions, on virtual time.
final class RecordedCall {
    let loop = Loop(now: MonotonicTime(nanoseconds: 1_000_000_000))
    let sources: [StubSource]
    let stream: PublishedStream
    let tape = Tape()
    let clock: CaptureClock

    init(_ codec: Codec = .vp8, layers: Int = 1, isScalable: Bool = false, clock: CaptureClock = CaptureClock()) {
        sources = (0..<layers).map { _ in StubSource() }
        self.clock = clock
        var info = StreamInfo(id: 7, media: codec.media, codec: codec.rawValue, extraValue: "", layers: layers)
        info.isScalable = isScalable
        stream = PublishedStream(info, codec: codec, participant: "p-1", loop: loop, sources: sources)
        stream.begin()
        stream.record(to: tape, clock: clock)
    }

    func advance(_ milliseconds: Int) { loop.advance(by: .milliseconds(Int64(milliseconds))) }

    /// Forwards a packet, a whole frame, with a timestamp in milliseconds. `mark` is its last byte, and `unit` the type of its unit
    /// of H.264.
    func send(
        _ number: Int, at milliseconds: Int, mark: Int? = nil, layer: Int = 0, epoch: Int = 0, keyframe: Bool = false,
        padding: Bool = false, unit: UInt8 = 1, filling: Int = 0, marker: Bool = true
    ) {
        var payload: [UInt8] = stream.codec == .h264 ? [unit] : []
        if stream.codec == .vp8 {
            payload = [0x10, keyframe ? 0 : 1, 0, 0]
            let (width, height) = (160 << layer, 90 << layer)
            let size = [width & 0xff, width >> 8, height & 0xff, height >> 8].map { UInt8($0) }
            if keyframe { payload += [0x9d, 0x01, 0x2a] + size }
        }
        // A layer frame in one packet, with its layer and TL0PICIDX (RFC 9628, section 4.2), and the first byte of its header.
        if stream.codec == .vp9 {
            payload = [keyframe ? 0x2c : 0x6c, UInt8(layer << 1), 0, keyframe && layer == 0 ? 0x80 : 0x84]
        }
        payload += [UInt8](repeating: 0, count: filling)
        payload.append(UInt8(truncatingIfNeeded: mark ?? number))
        var packet = PacketBuffer()
        let ticks = milliseconds * Int(stream.codec.clockRate) / 1000
        _ = packet.assignRTP(
            payloadType: stream.codec.payloadType, sequenceNumber: SequenceNumber(UInt16(truncatingIfNeeded: number)),
            timestamp: RTPTimestamp(UInt32(truncatingIfNeeded: ticks)), ssrc: SSRC(1), marker: marker,
            payload: padding ? [] : payload)
        guard let header = RTPHeader(parsing: packet) else {
            Issue.record("not RTP")
            return
        }
        let carrier = stream.info.isScalable ? 0 : layer
        stream.layers[carrier].forward(packet, header: header, at: StreamPosition(epoch: epoch, number: number))
    }

    /// Sends frames of some layers for so many milliseconds, 25 a second, with timestamps that go on with the time.
    func deliver(_ layers: [Int], from first: inout Int, milliseconds: Int, keyframes: Bool = true) {
        for step in 0..<(milliseconds / 40) {
            for layer in layers {
                let asked = sources[layer].keyframeRequests
                send(
                    first, at: first * 40, mark: layer, layer: layer,
                    keyframe: keyframes && (step == 0 || asked > answered[layer]))
                answered[layer] = asked
            }
            first += 1
            advance(40)
        }
    }
    private var answered = [0, 0, 0]

    /// A report of the publisher: its wall clock is `wall`, in milliseconds, when its stream is at `milliseconds`.
    func report(wall: Int, at milliseconds: Int, layer: Int = 0) {
        stream.layers[layer].setClock(
            SenderClock(
                ntp: NTPTime(unixNanoseconds: UInt64(wall) * 1_000_000),
                rtp: RTPTimestamp(UInt32(truncatingIfNeeded: milliseconds * Int(stream.codec.clockRate) / 1000)),
                at: loop.now, clockRate: stream.codec.clockRate))
    }

    func end() { stream.end() }
}
