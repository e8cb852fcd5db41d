internal import ClientCore
internal import PeerLoop
internal import PeerSession
internal import RTP
internal import RoomProtocol

/// One layer of a video with simulcast.
public struct VideoLayer: Sendable {
    /// In pixels.
    public var width: Int
    /// In pixels.
    public var height: Int
    /// Packets of each frame except keyframes.
    public var packetsPerFrame: Int
    /// Nil means twice as many as in other frames.
    public var packetsPerKeyframe: Int?
    /// The number of frames from a keyframe to the next one, as in a recording. Nil means that they come on request
    /// alone.
    public var keyframeInterval: Int?
    /// Bytes of a packet's payload, at least 48.
    public var payload: Int
    /// Whether it has sender reports.
    public var hasClock = true
    /// Whether its keyframes carry their capture time.
    public var hasCaptureTimes = false

    /// A layer of this size in pixels, with packets of `payload` bytes.
    public init(width: Int, height: Int, packetsPerFrame: Int = 1, payload: Int) {
        self.width = width
        self.height = height
        self.packetsPerFrame = packetsPerFrame
        self.payload = payload
    }

    /// 160x90 at 100 kbit/s, 320x180 at 400 kbit/s, and 640x360 at 1.6 Mbit/s: lowest first.
    public static let three = [
        VideoLayer(width: 160, height: 90, payload: 500),
        VideoLayer(width: 320, height: 180, packetsPerFrame: 2, payload: 1000),
        VideoLayer(width: 640, height: 360, packetsPerFrame: 8, payload: 1000),
    ]
}

/// A browser that publishes one camera with simulcast (RFC 8853). Its up session is its own, not that of the client's engine.
///
/// A frame has the same number in all layers. Timestamps begin anywhere in each.
final class LayeredCamera {
    private struct Encoder {
        let source: UInt32
        let rid: String
        let layer: VideoLayer
        let sender: SenderID
        let firstTimestamp: UInt32
        var pictureID: UInt16
        var number: SequenceNumber
        /// Whether the server wants it, and whether this machine is fast enough for it.
        var isWanted = true
        var isDelivered = true
        var isKeyframeWanted = true
        var frames = 0
        var keyframeRequests = 0

        /// Of frames without headers, in bits per second.
        var rate: Double { Double(layer.packetsPerFrame * layer.payload * 8 * LayeredCamera.framesPerSecond) }
    }

    static let framesPerSecond = 25
    private static let rids = ["q", "h", "f"]
    private static let extensions = [
        HeaderExtension(id: 1, .captureTime), HeaderExtension(id: 2, .transportNumber), HeaderExtension(id: 4, .mid),
        HeaderExtension(id: 5, .streamID), HeaderExtension(id: 6, .repairedStreamID),
    ]

    private let peer: Peer
    private unowned let client: SimulatedClient
    private unowned let simulation: World
    private unowned let connection: RoomConnection
    private var encoders: [Encoder] = []
    private var frame: UInt32 = 0
    private var captureTimes: [UInt32: MonotonicTime] = [:]
    private lazy var timer = simulation.loop.makeTimer { [unowned self] in sendFrame() }
    private(set) var stream: Int?
    /// The rids that the server asked for last. Nil before.
    private(set) var asked: [String]?
    /// The rate of a layer at most, in bits per second, as the server told it.
    private(set) var limit: Int?
    private var isReversed: Bool

    init(
        _ layers: [VideoLayer], of client: SimulatedClient, on connection: RoomConnection, peer: Peer,
        in simulation: World
    ) {
        self.client = client
        self.connection = connection
        self.peer = peer
        self.simulation = simulation
        isReversed = Bool.random(using: &simulation.random)
        for (index, layer) in layers.enumerated() {
            let ssrc = 2 + UInt32.random(in: 0..<1 << 30, using: &simulation.random) * 2
            let sender = peer.addSender(
                SenderConfiguration(
                    ssrc: SSRC(ssrc), retransmissionSSRC: SSRC(ssrc + 1), clockRate: 90000,
                    retransmissionPayloadTypes: [96: 97], mid: "0", rid: Self.rids[index], history: 1024))
            encoders.append(
                Encoder(
                    source: simulation.nextSource(), rid: Self.rids[index], layer: layer, sender: sender,
                    firstTimestamp: .random(in: 0 ... .max, using: &simulation.random),
                    pictureID: .random(in: 0...0x7fff, using: &simulation.random),
                    number: SequenceNumber(.random(in: 0..<0x4000, using: &simulation.random))))
        }
        peer.onEvent = { [unowned self] in handle($0) }
        connection.onServerMessage = { [unowned self] in receive($0) }
    }

    func publish(then: @escaping (Result<Int, RoomError>) -> Void) {
        do throws(TransportError) {
            try peer.start()
        } catch {
            return then(.failure(RoomError(.offerRefused, error.message)))
        }
        var media = MediaDescription(
            kind: .video, mid: "0", direction: .sendonly, formats: Codec.formats([.vp8]), extensions: Self.extensions,
            transport: peer.local)
        media.formats[0].feedback.append(TransportSequence.feedback)
        media.simulcast = Simulcast(isSending: true, rids: encoders.map(\.rid))
        let offer = SessionDescription(sessionID: 1, media: [media]).serialized()
        connection.request(.publish(Publish(sdp: offer, streams: [.init(mid: "0")]))) { [weak self] result in
            guard let self, case .success(.published(let published)) = result else {
                return then(result.map { _ in 0 })
            }
            then(accept(published))
        }
    }

    private func accept(_ published: Published) -> Result<Int, RoomError> {
        guard let answer = try? SessionDescription(parsing: published.sdp), let transport = answer.transport,
            let id = published.streams.first?.stream
        else { return .failure(RoomError(.answerRefused, "The answer has no stream.")) }
        if answer.media[0].simulcast?.rids != encoders.map(\.rid) {
            simulation.fail("The server's answer does not accept the layers of \(client.name).")
        }
        stream = id
        for encoder in encoders {
            peer.setExtensions(HeaderExtensionIDs(answer.media[0].extensions), of: encoder.sender)
        }
        try? peer.setRemote(transport, dtlsRole: transport.setup == .active ? .server : .client)
        return .success(id)
    }

    private func receive(_ message: ServerMessage) {
        switch message {
        case .candidate(let body) where body.session == .up:
            if body.candidate.isEmpty { peer.remoteCandidatesEnded() } else { peer.addRemoteCandidate(body.candidate) }
        case .streamLimit(let limit) where limit.stream == stream:
            (asked, self.limit) = (limit.layers, limit.bitsPerSecond)
            for index in encoders.indices {
                let isWatched = limit.layers?.contains(encoders[index].rid) ?? true
                // As the web page does.
                let isWanted = index == 0 || isWatched && share(of: encoders[index]) >= 0.5
                // A layer that comes back begins with a keyframe.
                if isWanted, !encoders[index].isWanted { encoders[index].isKeyframeWanted = true }
                encoders[index].isWanted = isWanted
            }
        default: break
        }
    }

    private func handle(_ event: PeerEvent) {
        switch event {
        case .localCandidate(let candidate): connection.send(.candidate(Candidate(session: .up, candidate: candidate)))
        case .gatheringDone: connection.send(.candidate(Candidate(session: .up, candidate: "")))
        case .secured: timer.arm(at: simulation.loop.now)
        case .keyframeRequested(let sender):
            for index in encoders.indices where encoders[index].sender == sender {
                encoders[index].isKeyframeWanted = true
                encoders[index].keyframeRequests += 1
            }
        case .connected, .rerouted, .disconnected, .pathLost, .roundTrip, .sendingRate, .lossBeyondRepair,
            .mediaRefused, .unauthenticated, .senderReport, .bye, .closed, .failed:
            break
        }
    }

    private func sendFrame() {
        let now = simulation.loop.now
        timer.arm(at: now + TimeInterval(nanoseconds: 1_000_000_000 / Int64(Self.framesPerSecond)))
        captureTimes[frame] = now
        captureTimes[frame &- 256] = nil
        for index in isReversed ? encoders.indices.reversed() : Array(encoders.indices) {
            if encoders[index].isWanted, encoders[index].isDelivered { send(&encoders[index], captured: now) }
        }
        frame += 1
    }

    /// The part of its rate that a layer has.
    private func share(of encoder: Encoder) -> Double { min(1, limit.map { Double($0) / encoder.rate } ?? 1) }

    private func send(_ encoder: inout Encoder, captured: MonotonicTime) {
        let isDue = encoder.layer.keyframeInterval.map { frame % UInt32($0) == 0 } ?? false
        let isKeyframe = encoder.isKeyframeWanted || isDue
        encoder.isKeyframeWanted = false
        if isKeyframe { client.countKeyframe() }
        let bytes = Double(encoder.layer.packetsPerFrame * encoder.layer.payload) * share(of: encoder)
        let packets = max(1, Int((bytes / Double(encoder.layer.payload)).rounded(.up)))
        let count = isKeyframe ? encoder.layer.packetsPerKeyframe ?? packets * 2 : packets
        let payload = share(of: encoder) < 1 ? max(48, Int(bytes) / packets) : encoder.layer.payload
        let ticks = UInt64(captured.nanoseconds) * 9 / 100_000
        let timestamp = RTPTimestamp(encoder.firstTimestamp &+ UInt32(truncatingIfNeeded: ticks))
        if encoder.layer.hasClock {
            peer.setClock(encoder.sender, ntp: client.wallClock(at: captured), rtp: timestamp, at: captured)
        }
        for index in 0..<count {
            var bytes: [UInt8] = []
            FramePart(
                source: encoder.source, generation: 0, frame: frame, isKeyframe: isKeyframe, index: UInt8(index),
                count: UInt8(count)
            ).write(
                pictureID: encoder.pictureID, payload: payload,
                size: isKeyframe && index == 0 ? encoder.layer : nil, into: &bytes)
            var packet = PacketBuffer()
            guard
                packet.assignRTP(
                    payloadType: 96, sequenceNumber: encoder.number, timestamp: timestamp, ssrc: SSRC(1),
                    marker: index == count - 1, payload: bytes), var header = RTPHeader(parsing: packet)
            else { return }
            if isKeyframe, index == 0, encoder.layer.hasCaptureTimes {
                header.captureTime = AbsoluteCaptureTime(client.wallClock(at: captured), clockOffset: nil)
            }
            peer.send(packet, header: header, rewrite: Rewrite(keeping: header), via: encoder.sender)
            encoder.number = encoder.number.advanced(by: 1)
        }
        encoder.pictureID = (encoder.pictureID + 1) & 0x7fff
        encoder.frames += 1
    }

    /// The machine is too slow for a layer, or fast enough again.
    func setDelivered(_ isDelivered: Bool, layer: Int) {
        encoders[layer].isDelivered = isDelivered
        encoders[layer].isKeyframeWanted = true
    }

    /// One for each layer.
    var sources: [UInt32] { encoders.map(\.source) }

    /// The layer that has sent a part of a frame. Nil for one of another video.
    func layer(of part: FramePart) -> Int? { encoders.firstIndex { $0.source == part.source } }

    func captureTime(of part: FramePart) -> MonotonicTime? { captureTimes[part.frame] }

    /// Frames that each layer has sent.
    var frames: [Int] { encoders.map(\.frames) }

    /// The server's requests for keyframes of each layer.
    var keyframeRequests: [Int] { encoders.map(\.keyframeRequests) }

    func end() {
        timer.disarm()
        peer.close()
    }
}
