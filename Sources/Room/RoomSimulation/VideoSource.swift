internal import ClientCore
internal import MediaGraph
internal import PeerLoop
internal import RTP
internal import RoomProtocol

/// A camera with its encoder.
final class VideoSource: EncodedTrack {
    let codec = Codec.vp8
    /// Nil for a camera that encodes as it likes.
    var encoderStatistics: MediaStatistics.VideoEncoder? {
        guard format.followsRate else { return nil }
        var statistics = MediaStatistics.VideoEncoder()
        statistics.wishedBitsPerSecond = format.bitsPerSecond
        statistics.limitedBitsPerSecond = limit
        return statistics
    }
    private var limit: Int?
    /// Packets that the limit allows and that were not sent.
    private var credit = 0.0
    var streamState = StreamState.live
    let id: UInt32
    private(set) var stream: Int?
    private let format: VideoFormat
    unowned let client: SimulatedClient
    private unowned let simulation: World
    private weak var connection: RoomConnection?
    private(set) var mid = ""
    private var generation: UInt16 = 0
    private var frame: UInt32 = 0
    /// The newest keyframe.
    private var keyframe: UInt32 = 0
    private var pictureID: UInt16
    private var firstTimestamp: UInt32
    private var isKeyframeWanted = true
    private static let rememberedFrames = 256
    private var captureTimes = [(generation: UInt16, frame: UInt32, time: MonotonicTime)](
        repeating: (0, 0, .never), count: rememberedFrames)
    private var nextFrame = MonotonicTime.never
    private lazy var timer = simulation.loop.makeTimer { [unowned self] in send() }
    /// When a packet of it first reached the server. Nil before.
    private(set) var flowsSince: MonotonicTime?
    /// When it last restarted.
    private(set) var lastRestart = MonotonicTime.zero
    /// When it sent its last frame.
    private(set) var lastSent = MonotonicTime.zero

    init(_ format: VideoFormat, of client: SimulatedClient, in simulation: World) {
        self.format = format
        self.client = client
        self.simulation = simulation
        id = simulation.nextSource()
        firstTimestamp = UInt32.random(in: 0 ... .max, using: &simulation.random)
        pictureID = UInt16.random(in: 0...0x7fff, using: &simulation.random)
    }

    func begin(stream: Int, on connection: RoomConnection, mid: String) {
        self.stream = stream
        self.mid = mid
        self.connection = connection
        simulation.published(stream, by: self)
        nextFrame = simulation.loop.now
        timer.arm(at: nextFrame)
    }

    /// The client has joined again, and the stream has another id.
    func renumber(_ stream: Int) { self.stream = stream }

    private func send() {
        guard let connection else { return }
        let now = simulation.loop.now
        let packets = packetsOfFrame()
        guard packets > 0 || isKeyframeWanted && limit != 0 else {
            nextFrame = nextFrame + frameInterval
            return timer.arm(at: nextFrame)
        }
        let isKeyframe = isKeyframeWanted
        isKeyframeWanted = false
        if isKeyframe { client.countKeyframe() }
        let captured = now + (.zero - format.encodingTime)
        captureTimes[Int(frame) % Self.rememberedFrames] = (generation, frame, captured)
        let ticks = UInt64(captured.nanoseconds) * 9 / 100_000
        let timestamp = firstTimestamp &+ UInt32(truncatingIfNeeded: ticks)
        var batch = RTPBatch(
            captureTime: MediaTime(nanoseconds: captured.nanoseconds), rtpTimestamp: timestamp, isKeyframe: isKeyframe)
        let count = isKeyframe ? format.packetsPerKeyframe : packets
        if isKeyframe { keyframe = frame }
        let temporal = format.temporalLayers > 1 ? TemporalPlace(frame - keyframe, of: format.temporalLayers) : nil
        let isSync = temporal?.isSync(frame - keyframe, of: format.temporalLayers) ?? false
        for index in 0..<count {
            let isLast = index == count - 1
            batch.bytes += [0x80, (isLast ? 0x80 : 0) | Codec.vp8.payloadType, 0, 0]
            for shift in stride(from: 24, through: 0, by: -8) {
                batch.bytes.append(UInt8(truncatingIfNeeded: timestamp >> UInt32(shift)))
            }
            batch.bytes += [0, 0, 0, 1]
            FramePart(
                source: id, generation: generation, frame: frame, isKeyframe: isKeyframe, index: UInt8(index),
                count: UInt8(count), distance: UInt8(temporal?.distance ?? 1)
            ).write(
                pictureID: pictureID & 0x7fff, payload: format.payload, temporal: temporal, isSync: isSync,
                into: &batch.bytes)
            batch.ends.append(batch.bytes.count)
        }
        simulation.packetLog?.sent(
            FramePart(
                source: id, generation: generation, frame: frame, isKeyframe: isKeyframe, index: 0, count: UInt8(count)),
            at: now)
        connection.send(batch, mid: mid)
        frame += 1
        pictureID = (pictureID + 1) & 0x7fff
        lastSent = now
        nextFrame = nextFrame + frameInterval
        timer.arm(at: nextFrame)
    }

    /// The packets of the next frame, 0 to skip it.
    private func packetsOfFrame() -> Int {
        guard format.followsRate, let limit, limit < format.bitsPerSecond else { return format.packetsPerFrame }
        credit += Double(format.packetsPerFrame) * Double(limit) / Double(format.bitsPerSecond)
        let whole = min(Int(credit), format.packetsPerFrame)
        credit = min(credit - Double(whole), Double(format.packetsPerFrame))
        return whole
    }

    func limitRate(bitsPerSecond: Int) { limit = bitsPerSecond }

    /// The encoder restarts: it begins with a keyframe, and with any timestamp and picture id.
    func restart() {
        lastRestart = simulation.loop.now
        generation += 1
        frame = 0
        firstTimestamp = UInt32.random(in: 0 ... .max, using: &simulation.random)
        pictureID = UInt16.random(in: 0...0x7fff, using: &simulation.random)
        isKeyframeWanted = true
    }

    var description: String {
        let state =
            connection == nil ? "which ended" : "last frame \(frame) at \((lastSent - simulation.loop.began).seconds) s"
        return "published by \(client.name), \(state)"
    }

    func end() {
        timer.disarm()
        connection = nil
    }

    /// When a frame was captured. Nil if it is not one of the newest.
    func captureTime(of part: FramePart) -> MonotonicTime? {
        let entry = captureTimes[Int(part.frame) % Self.rememberedFrames]
        return entry.generation == part.generation && entry.frame == part.frame ? entry.time : nil
    }

    /// Whether it sends frames.
    var isLive: Bool { connection != nil }
    var frameInterval: TimeInterval { TimeInterval(nanoseconds: 1_000_000_000 / Int64(format.framesPerSecond)) }

    func flow(now: MonotonicTime) { flowsSince = flowsSince ?? now }

    func requestKeyframe() { isKeyframeWanted = true }

    func disconnect() { end() }
}
