internal import ClientCore
internal import MediaGraph
internal import PeerLoop
internal import RTP
internal import RoomProtocol

/// A microphone with its encoder: a packet every 20 ms.
final class AudioSource: EncodedTrack {
    static let interval = TimeInterval.milliseconds(20)
    /// Bytes of a packet's payload: 24 kbit/s.
    private static let payload = 60

    let codec = Codec.opus
    let encoderStatistics: MediaStatistics.VideoEncoder? = nil
    let id: UInt32
    private unowned let simulation: World
    private weak var connection: RoomConnection?
    private var mid = ""
    private var number: UInt32 = 0
    private var nextPacket = MonotonicTime.never
    private static let rememberedPackets = 1024
    private var captureTimes = [MonotonicTime](repeating: .never, count: rememberedPackets)
    private lazy var timer = simulation.loop.makeTimer { [unowned self] in send() }

    init(in simulation: World) {
        self.simulation = simulation
        id = simulation.nextSource()
    }

    func begin(on connection: RoomConnection, mid: String) {
        self.mid = mid
        self.connection = connection
        nextPacket = simulation.loop.now
        timer.arm(at: nextPacket)
    }

    private func send() {
        guard let connection else { return }
        // 48 kHz.
        let timestamp = number &* 960
        var batch = RTPBatch(
            captureTime: MediaTime(nanoseconds: simulation.loop.now.nanoseconds), rtpTimestamp: timestamp,
            isKeyframe: false)
        batch.bytes = [0x80, Codec.opus.payloadType, 0, 0]
        for word in [timestamp, 1, id, number] { Self.append(word, to: &batch.bytes) }
        batch.bytes += Array(repeating: 0, count: RTPHeader.minimumLength + Self.payload - batch.bytes.count)
        batch.ends = [batch.bytes.count]
        connection.send(batch, mid: mid)
        captureTimes[Int(number) % Self.rememberedPackets] = simulation.loop.now
        number += 1
        nextPacket = nextPacket + Self.interval
        timer.arm(at: nextPacket)
    }

    /// When a packet was captured. Nil if it is not one of the newest.
    func captureTime(of packet: UInt32) -> MonotonicTime? {
        guard packet < number, number - packet <= UInt32(Self.rememberedPackets) else { return nil }
        return captureTimes[Int(packet) % Self.rememberedPackets]
    }

    private static func append(_ word: UInt32, to bytes: inout [UInt8]) {
        for shift in stride(from: UInt32(24), through: 0, by: -8) { bytes.append(UInt8(word >> shift & 0xff)) }
    }

    /// The source and the number of a packet's payload.
    static func contents(of payload: Span<UInt8>) -> (source: UInt32, number: UInt32)? {
        guard payload.count >= 8 else { return nil }
        func word(_ start: Int) -> UInt32 { (0..<4).reduce(0) { $0 << 8 | UInt32(payload[start + $1]) } }
        return (word(0), word(4))
    }

    func end() {
        timer.disarm()
        connection = nil
    }

    func requestKeyframe() {}

    func disconnect() { end() }
}
