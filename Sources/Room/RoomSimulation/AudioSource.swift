internal import ClientCore
internal import MediaGraph
internal import PeerLoop
internal import RTP
internal import RoomProtocol

/// A microphone with its encoder: a packet every 20 ms.
final class AudioSource: EncodedTrack {
    static let interval = TimeInterval.milliseconds(20)
    /// Bytes of a packet's payload: 24 kbit/s.
    static let usualPayload = 60
    /// Per second, of each byte of a packet's payload.
    private static let bitsPerByte = 8 * 50
    /// The first byte of a packet of Opus with one frame of 20 ms (RFC 6716, section 3.1).
    private static let opus: UInt8 = 0xf8
    private let payload: Int
    private let followsRate: Bool
    private var limit: Int?
    /// The level that its packets claim at a time, in negated dBov. Nil for packets without one, as earlier clients send.
    var loudness: ((MonotonicTime) -> UInt8?)?

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

    /// - Parameters:
    ///   - payload: bytes of a packet
    ///   - followsRate: whether packets become smaller when the client's link has no room for them
    init(in simulation: World, payload: Int, followsRate: Bool) {
        self.simulation = simulation
        self.payload = payload
        self.followsRate = followsRate
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
            isKeyframe: false, audioLevel: loudness?(simulation.loop.now))
        batch.bytes = [0x80, Codec.opus.payloadType, 0, 0]
        for word in [timestamp, 1] { Self.append(word, to: &batch.bytes) }
        batch.bytes.append(Self.opus)
        for word in [id, number] { Self.append(word, to: &batch.bytes) }
        let payload = limit.map { min(self.payload, $0 / Self.bitsPerByte) } ?? payload
        batch.bytes += Array(repeating: 0, count: RTPHeader.minimumLength + payload - batch.bytes.count)
        batch.ends = [batch.bytes.count]
        connection.send(batch, mid: mid)
        simulation.audioLog?.sent(number, of: id, at: simulation.loop.now)
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
        guard payload.count >= 9 else { return nil }
        func word(_ start: Int) -> UInt32 { (0..<4).reduce(0) { $0 << 8 | UInt32(payload[start + $1]) } }
        return (word(1), word(5))
    }

    func end() {
        timer.disarm()
        connection = nil
    }

    var audioEncoderStatistics: MediaStatistics.AudioEncoder? {
        guard followsRate else { return nil }
        var statistics = MediaStatistics.AudioEncoder()
        (statistics.wishedBitsPerSecond, statistics.limitedBitsPerSecond) = (payload * Self.bitsPerByte, limit)
        return statistics
    }

    /// The least is that of Opus.
    func limitRate(bitsPerSecond: Int) { limit = max(bitsPerSecond, 6000) }

    func requestKeyframe() {}

    func disconnect() { end() }
}
