import CongestionControl
import PeerLoop
import PeerSession
import RTP
import RoomProtocol

@testable import ClientCore
@testable import RoomSimulation

/// A browser that publishes VP9 with three spatial layers, each with three temporal ones, under one SSRC (RFC 9628).
///
/// A layer frame depends on an earlier one of its spatial layer, and on the one below it. Nothing is encoded.
final class SpatialCamera {
    static let framesPerSecond = 25
    static let temporalLayers = 3
    /// Packets of a frame, their bytes, and the size, lowest layer first: 100 kbit/s, 400 kbit/s and 1.6 Mbit/s.
    static let layers: [(packets: Int, bytes: Int, width: Int, height: Int)] = [
        (1, 500, 160, 90), (2, 1000, 320, 180), (8, 1000, 640, 360),
    ]

    private let client: SimulatedClient
    private let connection: RoomConnection
    private let peer: Peer
    private let sender: SenderID
    private var number = SequenceNumber(100)
    private var pictureID: UInt16 = 0x7ff0
    private var tl0: UInt8 = 250
    private var frame: UInt32 = 0
    private var isKeyframeWanted = true
    private lazy var timer = client.simulation.loop.makeTimer { [unowned self] in sendPicture() }
    private(set) var keyframes = 0
    /// The spatial layers that are sent. The others are left out, as a browser does while bandwidth is short.
    var sentLayers = 3

    init(_ client: SimulatedClient, of connection: RoomConnection) throws {
        (self.client, self.connection) = (client, connection)
        peer = try client.makePeer(connection.upRequest())
        sender = peer.addSender(
            SenderConfiguration(
                ssrc: SSRC(700), retransmissionSSRC: SSRC(701), clockRate: 90000,
                retransmissionPayloadTypes: [Codec.vp9.payloadType: Codec.vp9.payloadType + 1], mid: "0", history: 1024)
        )
        peer.onEvent = { [unowned self] in handle($0) }
        connection.onServerMessage = { [unowned self] in receive($0) }
    }

    func publish(spatialLayers: Int? = 3) throws {
        try peer.start()
        var media = MediaDescription(
            kind: .video, mid: "0", direction: .sendonly, formats: Codec.formats([.vp9]),
            extensions: [HeaderExtension(id: 2, .transportNumber)], ssrcs: [SSRC(700)],
            retransmissionSSRC: SSRC(701), transport: peer.local)
        media.formats[0].feedback.append(TransportSequence.feedback)
        let offer = SessionDescription(sessionID: 1, media: [media]).serialized()
        connection.request(
            .publish(Publish(sdp: offer, streams: [.init(mid: "0", spatialLayers: spatialLayers)]))
        ) { [weak self] result in
            guard let self, case .success(.published(let published)) = result,
                let answer = try? SessionDescription(parsing: published.sdp), let transport = answer.transport
            else { return }
            peer.setExtensions(HeaderExtensionIDs(answer.media[0].extensions), of: sender)
            try? peer.setRemote(transport, dtlsRole: transport.setup == .active ? .server : .client)
        }
    }

    private func receive(_ message: ServerMessage) {
        guard case .candidate(let body) = message, body.session == .up else { return }
        if body.candidate.isEmpty { peer.remoteCandidatesEnded() } else { peer.addRemoteCandidate(body.candidate) }
    }

    private func handle(_ event: PeerEvent) {
        switch event {
        case .localCandidate(let candidate): connection.send(.candidate(Candidate(session: .up, candidate: candidate)))
        case .gatheringDone: connection.send(.candidate(Candidate(session: .up, candidate: "")))
        case .secured: timer.arm(at: client.simulation.loop.now)
        case .keyframeRequested: isKeyframeWanted = true
        default: break
        }
    }

    private func sendPicture() {
        let now = client.simulation.loop.now
        timer.arm(at: now + TimeInterval(nanoseconds: 1_000_000_000 / Int64(Self.framesPerSecond)))
        let isKeyframe = isKeyframeWanted
        if isKeyframe {
            (isKeyframeWanted, frame) = (false, 0)
            keyframes += 1
        }
        let place = TemporalPlace(frame, of: Self.temporalLayers)
        if place.layer == 0 { tl0 &+= 1 }
        let timestamp = RTPTimestamp(UInt32(truncatingIfNeeded: UInt64(now.nanoseconds) * 9 / 100_000))
        peer.setClock(sender, ntp: client.wallClock(at: now), rtp: timestamp, at: now)
        for layer in 0..<sentLayers { send(layer, place, isKeyframe: isKeyframe, timestamp) }
        pictureID = (pictureID + 1) & 0x7fff
        frame += 1
    }

    private func send(_ layer: Int, _ place: TemporalPlace, isKeyframe: Bool, _ timestamp: RTPTimestamp) {
        let shape = Self.layers[layer]
        for index in 0..<shape.packets {
            let isFirst = index == 0
            let isLast = index == shape.packets - 1
            let hasStructure = isKeyframe && isFirst && layer == 0
            // I and L, then P, B, E and V.
            var bytes: [UInt8] = [
                0xa0 | (isKeyframe ? 0 : 0x40) | (isFirst ? 8 : 0) | (isLast ? 4 : 0) | (hasStructure ? 2 : 0),
                0x80 | UInt8(pictureID >> 8), UInt8(pictureID & 0xff),
                // A frame of the highest temporal layer is none behind which others could follow.
                place.layer << 5 | (place.layer < 2 ? 0x10 : 0) | UInt8(layer) << 1 | (layer > 0 ? 1 : 0), tl0,
            ]
            if hasStructure {
                bytes.append(UInt8(sentLayers - 1) << 5 | 0x10)
                for size in Self.layers[..<sentLayers] {
                    for side in [size.width, size.height] { bytes += [UInt8(side >> 8), UInt8(side & 0xff)] }
                }
            }
            bytes.append(isKeyframe ? 0x82 : 0x86)
            bytes += [UInt8(frame >> 24), UInt8(frame >> 16 & 0xff), UInt8(frame >> 8 & 0xff), UInt8(frame & 0xff)]
            bytes += [UInt8(index), UInt8(shape.packets), UInt8(place.distance)]
            bytes += [UInt8](repeating: 0, count: shape.bytes - bytes.count)
            var packet = PacketBuffer()
            guard
                packet.assignRTP(
                    payloadType: Codec.vp9.payloadType, sequenceNumber: number, timestamp: timestamp, ssrc: SSRC(1),
                    marker: isLast && layer == sentLayers - 1, payload: bytes),
                let header = RTPHeader(parsing: packet)
            else { return }
            peer.send(packet, header: header, rewrite: Rewrite(keeping: header), via: sender)
            number = number.advanced(by: 1)
        }
    }

    func end() {
        timer.disarm()
        peer.close()
    }
}

/// A decoder of such a video: it counts the frames that it shows, and the layer frames that it could not decode.
final class SpatialViewer: IncomingSink {
    struct Picture {
        var id: UInt16
        var tl0: UInt8
        var temporal: UInt8
        /// The highest spatial layer.
        var spatial = 0
        var isKeyframe: Bool
        var timestamp: UInt32
    }

    private let requestKeyframe: () -> Void
    private var packets: [Int: [UInt8]] = [:]
    private var next: Int?
    private var highest = 0
    private var needsKeyframe = true
    private var parts = 0
    private var isMarked = true
    /// The frames of each spatial layer that were decoded since a keyframe.
    private var decoded: [Set<UInt32>] = [[], [], []]
    private var current: (picture: Picture, frame: UInt32)?
    private(set) var pictures: [Picture] = []
    /// Whole layer frames that depend on one that did not come.
    private(set) var undecodable = 0
    private(set) var incomplete = 0
    /// Frames whose last packet had no marker.
    private(set) var unmarked = 0
    private(set) var lost = 0

    init(requestKeyframe: @escaping () -> Void) { self.requestKeyframe = requestKeyframe }

    func begin(_ stream: IncomingStream) {}
    func clockChanged(_ clock: StreamClock) {}
    func sample(now: MonotonicTime) {}
    func fill(_ statistics: inout RoomStatistics.Received) {}
    func end() {}

    /// The highest spatial layer of the newest frame.
    var layer: Int? { pictures.last?.spatial }

    func receive(_ packet: Span<UInt8>) {
        guard packet.count >= RTPHeader.minimumLength else { return }
        let wire = Int(packet[2]) << 8 | Int(packet[3])
        if next == nil { (highest, next) = (wire + 0x10000, wire + 0x10000) }
        let number = highest + Int(Int16(truncatingIfNeeded: wire - highest & 0xffff))
        highest = max(highest, number)
        guard number >= next ?? number else { return }
        packets[number] = packet.indices.map { packet[$0] }
        while var next {
            if packets[next] == nil, packets.count > 200, let first = packets.keys.min() {
                lost += first - next
                (next, needsKeyframe, parts) = (first, true, 0)
                requestKeyframe()
            }
            guard let bytes = packets.removeValue(forKey: next) else { break }
            self.next = next + 1
            take(bytes)
        }
    }

    private func take(_ bytes: [UInt8]) {
        var packet = PacketBuffer()
        guard packet.assign(bytes), let header = RTPHeader(parsing: packet),
            let descriptor = VP9PayloadDescriptor(parsing: packet, header: header)
        else { return }
        let start = header.payloadOffset + descriptor.length + 1
        let frame = (0..<4).reduce(UInt32(0)) { $0 << 8 | UInt32(bytes[start + $1]) }
        let (index, count, distance) = (Int(bytes[start + 4]), Int(bytes[start + 5]), UInt32(bytes[start + 6]))
        let spatial = Int(descriptor.spatialLayer)
        let isKeyframe = !descriptor.isInterPicture
        let timestamp = header.timestamp.rawValue
        if current?.picture.timestamp != timestamp {
            if !isMarked { unmarked += 1 }
            isMarked = false
            if let done = current, !needsKeyframe { pictures.append(done.picture) }
            if parts > 0 { incomplete += 1 }
            parts = 0
            if isKeyframe { (needsKeyframe, decoded) = (false, [[], [], []]) }
            current = (
                Picture(
                    id: descriptor.pictureID ?? 0, tl0: descriptor.tl0PictureIndex ?? 0,
                    temporal: descriptor.temporalLayer, isKeyframe: isKeyframe, timestamp: timestamp), frame
            )
        }
        guard index == parts else {
            incomplete += 1
            return
        }
        parts += 1
        isMarked = header.marker
        guard parts == count else { return }
        parts = 0
        guard !needsKeyframe else { return }
        let hasBase = spatial == 0 || decoded[spatial - 1].contains(frame)
        guard hasBase, isKeyframe || decoded[spatial].contains(frame &- distance) else { return undecodable += 1 }
        decoded[spatial].insert(frame)
        let before = current?.picture.spatial ?? 0
        current?.picture.spatial = max(before, spatial)
    }
}
