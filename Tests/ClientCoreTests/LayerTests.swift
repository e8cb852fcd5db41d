import MediaGraph
import PeerIO
import PeerLoop
import PeerSession
import RTP
import RoomProtocol
import Testing
import TestSupport

@testable import ClientCore

/// A video in layers, as an up session offers and sends it.
@Suite(.serialized) struct LayerTests {
    @Test func `the offer names the layers, and leaves their SSRCs to the packets`() async throws {
        try await withUplink { call in
            let lines = call.offer.split(separator: "\r\n")
            for line in [
                "a=rid:q send", "a=rid:h send", "a=rid:f send", "a=simulcast:send q;h;f",
                "a=extmap:3 urn:ietf:params:rtp-hdrext:sdes:mid",
                "a=extmap:4 urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id",
                "a=extmap:5 urn:ietf:params:rtp-hdrext:sdes:repaired-rtp-stream-id",
            ] {
                #expect(lines.contains(Substring(line)), "\(line)")
            }
            #expect(!lines.contains { $0.hasPrefix("a=ssrc") })
        }
    }

    @Test func `each layer begins at a keyframe, and all of them are sent`() async throws {
        try await withUplink { call in
            call.session.sample(now: call.session.loop.now)
            #expect(call.track.limits.values.allSatisfy { $0.rate > 0 && $0.keepsSize })
            #expect(call.track.limits.count == 3)
            #expect(call.track.requests == [.quarter: 1, .half: 1])
            for layer in VideoLayer.allCases { call.send(layer, isKeyframe: false) }
            #expect(call.sent == [0, 0, 1])
            for layer in VideoLayer.allCases { call.send(layer, isKeyframe: true) }
            for layer in VideoLayer.allCases { call.send(layer, isKeyframe: false) }
            #expect(call.sent == [2, 2, 3])
        }
    }

    @Test func `the server's limit is for each layer, because a viewer gets one of them`() async throws {
        try await withUplink { call in
            call.session.setLimit(1_000_000, of: 1)
            let limits = call.track.limits
            #expect(limits[.half]?.rate == 1_000_000)
            #expect(limits[.full]?.rate == 0)
            let layers = call.session.published()[0].layers
            #expect(layers.map(\.isActive) == [true, true, false])
            #expect(layers[2].limitation == .subscribers)
            #expect(
                call.track.news.last
                    == "the networks of all subscribers carry 1000 kbit/s: 320x180 and 640x360, without 1280x720")
        }
    }

    @Test func `a link that carries more than half of the whole size gets it, beside the lower ones`() async throws {
        try await withUplink { call in
            call.session.setLimit(1_500_000, layers: ["q", "f"], of: 1)
            #expect(call.track.limits.mapValues(\.rate) == [.quarter: 1_500_000, .half: 0, .full: 1_500_000])
        }
    }

    @Test func `those who watch a layer that there is no longer get the lowest one`() async throws {
        try await withUplink { call in
            call.track.layers = [.half, .full]
            call.session.setLimit(nil, layers: ["q"], of: 1)
            #expect(call.track.limits[.half]?.rate ?? 0 > 0 && call.track.limits[.full]?.rate == 0)
            call.track.layers = []
            call.session.setLimit(nil, layers: ["q"], of: 1)
            #expect(call.track.limits[.full]?.rate ?? 0 > 0)
        }
    }

    @Test func `layers that nobody watches are not encoded, and return at a keyframe`() async throws {
        try await withUplink { call in
            call.session.setLimit(nil, layers: ["q", "later"], of: 1)
            #expect(call.track.limits.mapValues { $0.rate > 0 } == [.quarter: true, .half: false, .full: false])
            #expect(call.track.limits[.quarter]?.keepsSize == false, "alone, it follows the network with its size")
            for layer in VideoLayer.allCases { call.send(layer, isKeyframe: true) }
            #expect(call.sent == [1, 0, 0])
            #expect(call.track.news.last == "no viewer gets 640x360 and 1280x720: 320x180")
            call.session.setLimit(nil, of: 1)
            #expect(call.track.requests[.full] == 1)
            call.send(.full, isKeyframe: false)
            #expect(call.sent == [1, 0, 0])
            call.send(.full, isKeyframe: true)
            #expect(call.sent == [1, 0, 1])
        }
    }

    @Test(arguments: [false, true])
    func `a video that nobody watches pauses, with layers or without`(isLayered: Bool) async throws {
        try await withUplink(isLayered: isLayered) { call in
            call.session.setLimit(nil, layers: [], of: 1)
            #expect(call.track.limits.values.allSatisfy { $0.rate == 0 })
            call.send(.full, isKeyframe: true)
            #expect(call.sent.allSatisfy { $0 == 0 })
            call.session.setLimit(nil, layers: ["f"], of: 1)
            #expect(call.track.requests[.full] == 1)
            call.send(.full, isKeyframe: true)
            #expect(call.sent.last == 1)
        }
    }

    @Test func `an answer without layers gets the whole size alone`() async throws {
        try await withUplink(accepting: []) { call in
            #expect(call.track.isRefused)
            call.session.sample(now: call.session.loop.now)
            for layer in VideoLayer.allCases { call.send(layer, isKeyframe: true) }
            #expect(call.sent == [1])
            #expect(call.track.limits[.quarter] == nil && call.track.limits[.half] == nil)
            #expect(call.session.published()[0].layers.isEmpty)
        }
    }

    @Test func `an answer may accept some of the layers`() async throws {
        try await withUplink(accepting: ["q", "f"]) { call in
            for layer in VideoLayer.allCases { call.send(layer, isKeyframe: true) }
            #expect(call.session.published()[0].layers.map(\.rid) == ["q", "f"])
            #expect(call.sent == [1, 1])
        }
    }

    @Test func `an answer may accept a lower layer alone, which then follows the network with its size`() async throws {
        try await withUplink(accepting: ["h"]) { call in
            #expect(!call.track.isRefused)
            call.session.setLimit(400_000, of: 1)
            #expect((390_000...400_000).contains(call.track.limits[.half]?.rate ?? 0))
            #expect(call.track.limits[.half]?.keepsSize == false)
            #expect(call.track.limits[.full]?.rate == 0)
            for layer in VideoLayer.allCases { call.send(layer, isKeyframe: true) }
            #expect(call.sent == [1])
            call.session.setLimit(nil, of: 1)
            #expect(call.track.limits[.half]?.rate ?? 0 > 1_000_000)
            #expect(call.track.ended == [.quarter, .full], "their limits must not count for other rooms")
        }
    }

    @Test func `an answer that pauses a layer, or does not name layers in the packets, does not get it`() async throws {
        try await withUplink(accepting: ["q", "~h", "f"]) { call in
            #expect(call.session.published()[0].layers.map(\.rid) == ["q", "f"])
        }
        try await withUplink(isNamed: false) { call in
            #expect(call.track.isRefused)
            for layer in VideoLayer.allCases { call.send(layer, isKeyframe: true) }
            #expect(call.sent == [1])
        }
    }

    @Test func `one size that somebody watches again has no limit of 0 any longer`() async throws {
        try await withUplink(isLayered: false) { call in
            call.session.setLimit(nil, layers: [], of: 1)
            call.session.setLimit(nil, of: 1)
            #expect(call.track.limits[.full]?.rate ?? 0 > 0)
        }
    }

    @Test func `a layer that the graph has no longer gets no bits, and the others get its share`() async throws {
        try await withUplink { call in
            call.track.layers = [.half, .full]
            call.session.setLimit(700_000, of: 1)
            #expect(call.track.limits[.half]?.rate == 700_000)
            #expect(call.session.published()[0].layers.map(\.isActive) == [false, true, false])
        }
    }

    private func withUplink(
        isLayered: Bool = true, accepting rids: [String] = ["q", "h", "f"], isNamed: Bool = true,
        _ body: @escaping @Sendable (LayeredUplink) -> Void
    ) async throws {
        let loop = EventLoop(name: "layers")
        let call = try await onLoop(loop) {
            Result {
                LoopBound(
                    try LayeredUplink(loop: loop, isLayered: isLayered, accepting: rids, isNamed: isNamed), loop: loop)
            }
        }.get()
        #expect(await eventually { await onLoop(loop) { call.value.session.profile != nil } })
        await onLoop(loop) { body(call.value) }
        await onLoop(loop) { call.value.close() }
        loop.shutdown()
    }
}

private final class LayeredTrack: EncodedTrack {
    struct Limit: Equatable {
        var rate: Int
        var keepsSize: Bool
    }

    let codec = Codec.vp8
    var layers: [VideoLayer]
    private(set) var limits: [VideoLayer: Limit] = [:]
    private(set) var requests: [VideoLayer: Int] = [:]
    private(set) var news: [String] = []
    private(set) var isRefused = false

    init(_ layers: [VideoLayer]) { self.layers = layers }

    var encoderStatistics: MediaStatistics.VideoEncoder? { encoderStatistics(of: .full) }

    func encoderStatistics(of layer: VideoLayer) -> MediaStatistics.VideoEncoder? {
        var encoder = MediaStatistics.VideoEncoder()
        (encoder.width, encoder.height) = (layer.scaled(1280), layer.scaled(720))
        encoder.wishedBitsPerSecond = [.quarter: 300_000, .half: 1_000_000, .full: 2_200_000][layer] ?? 0
        return encoder
    }

    func limitRate(bitsPerSecond: Int) { limits[.full] = Limit(rate: bitsPerSecond, keepsSize: false) }
    func limitRate(bitsPerSecond: Int, of layer: VideoLayer, keepsSize: Bool) {
        limits[layer] = Limit(rate: bitsPerSecond, keepsSize: keepsSize)
    }
    func requestKeyframe() { requests[.full, default: 0] += 1 }
    func requestKeyframe(of layer: VideoLayer) { requests[layer, default: 0] += 1 }
    func layersChanged(_ quality: VideoQuality) { news.append("\(quality)") }
    func layersRefused() { isRefused = true }
    private(set) var ended: Set<VideoLayer> = []
    func endLimit(of layer: VideoLayer) { ended.insert(layer) }
    func disconnect() {}
}

/// A client's up session with one video, and a peer in place of the server that reports no arrivals.
private final class LayeredUplink {
    let session: UpSession
    let track: LayeredTrack
    let offer: String
    private let server: Peer
    private var frames: UInt64 = 0

    init(loop: EventLoop, isLayered: Bool, accepting rids: [String], isNamed: Bool) throws {
        session = try .lone(on: loop)
        track = LayeredTrack(isLayered ? VideoLayer.allCases : [])
        _ = session.addTrack(TrackOffer(track))
        offer = session.offer()
        let offered = try SessionDescription(parsing: offer)
        let stream = try UpDescription.stream("0", of: offered)
        server = try Peer(
            loop: loop,
            configuration: PeerConfiguration(iceRole: .controlled, certificate: try Certificate(), cname: "server"))
        try server.start()
        try server.setRemote(try #require(offered.transport), dtlsRole: .server)
        var transport = server.local
        transport.setup = .passive
        var answer = UpDescription.answer(to: offered, taking: [stream], sessionID: 2, transport: transport)
        answer.media[0].extensions.removeAll { $0.kind == .transportNumber }
        answer.media[0].simulcast =
            isLayered && !rids.isEmpty
            ? Simulcast(isSending: false, rids: rids.map { $0.replacing("~", with: "") }) : nil
        if !isNamed { answer.media[0].extensions.removeAll { $0.kind == .streamID } }
        var text = answer.serialized()
        for paused in rids where paused.hasPrefix("~") {
            text = text.replacing(";\(paused.dropFirst());", with: ";\(paused);")
        }
        try session.accept(Published(sdp: text, streams: [.init(mid: "0", stream: 1)]))
    }

    /// The frames that were sent of each layer, the lowest first.
    var sent: [Int] { session.tracks[0].encodings.map(\.framesSent) }

    func send(_ layer: VideoLayer, isKeyframe: Bool) {
        frames += 1
        var bytes = [UInt8](repeating: 0, count: 40)
        (bytes[0], bytes[1]) = (0x80, 0x80 | Codec.vp8.payloadType)
        (bytes[12], bytes[13], bytes[14]) = (0x90, 0x80, 0x80)
        session.send(
            RTPBatch(
                bytes: bytes, ends: [40], captureTime: MediaTime(nanoseconds: frames * 40_000_000), rtpTimestamp: 0,
                isKeyframe: isKeyframe, layer: layer), on: session.tracks[0])
    }

    func close() {
        session.close()
        server.close()
    }
}
