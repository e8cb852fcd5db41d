import MediaGraph
import MediaNodes
import Synchronization
import Testing
import TestSupport

/// The test's reaction to a keyframe request.
final class KeyframeWish: Sendable {
    let action = Mutex<(@Sendable () -> Void)?>(nil)

    func call() {
        action.withLock { $0 }?()
    }
}

/// A publishing pipeline whose packets go directly into a receiving one.
final class Loopback: Sendable {
    struct Rendered: Sendable {
        let number: UInt32?
        let rtpTimestamp: UInt32?
        let captureTime: MediaTime
        let handedOver: MediaTime
    }

    let publisher: MediaPipeline
    let receiver: MediaPipeline
    let sent = Collected<RTPBatch>()
    let rendered = Collected<Rendered>()
    let publisherEvents = Collected<MediaEvent>()
    let receiverEvents = Collected<MediaEvent>()
    private let keyframeWish: KeyframeWish

    /// Without `latency`, the receiver has a playout delay. `carry` gets each batch and the receiver's input, and may lose packets.
    init(
        codec: VideoCodec, frames: Int, bitrate: Bitrate? = nil, latency: Int? = 200,
        carry: @escaping @Sendable (RTPBatch, PacketInput) -> Void = { $1.push($0.bytes, ends: $0.ends) }
    ) async throws {
        let receiving = MediaGraph {
            Chain {
                Node.rtpInput("in", codec: codec, latency: latency)
                Node.videoDecoder()
                Node.frames("view")
            }
        }
        let rendered = rendered
        let receiverEvents = receiverEvents
        var bindings = NodeBindings()
        bindings.frames["view"] = {
            rendered.append(
                Rendered(
                    number: $0.barCode, rtpTimestamp: $0.rtpTimestamp, captureTime: $0.captureTime,
                    handedOver: $0.handedOver))
        }
        let wish = KeyframeWish()
        keyframeWish = wish
        bindings.events = {
            receiverEvents.append($0)
            if case .keyframeNeeded = $0 { wish.call() }
        }
        receiver = try await MediaPipeline(receiving, bindings: bindings)
        let input = try #require(receiver.rtpInput("in"))
        let publishing = MediaGraph {
            Chain {
                Node.testPattern("pattern", frames: frames)
                Node.videoEncoder("encoder", codec: codec, bitrate: bitrate)
                Node.rtpOutput("video")
            }
        }
        let sent = sent
        let publisherEvents = publisherEvents
        var outward = NodeBindings()
        outward.rtpOutputs["video"] = { batch in
            sent.append(batch)
            carry(batch, input)
        }
        outward.events = { publisherEvents.append($0) }
        publisher = try await MediaPipeline(publishing, bindings: outward)
    }

    func start() async throws {
        try await receiver.start()
        try await publisher.start()
    }

    func stop() async {
        await publisher.stop()
        await receiver.stop()
    }

    /// Sets the reaction to a receiver that needs a keyframe.
    func whenKeyframeNeeded(_ action: @escaping @Sendable () -> Void) {
        keyframeWish.action.withLock { $0 = action }
    }

    var hasEnded: Bool {
        publisherEvents.all.contains { if case .ended = $0 { true } else { false } }
    }

    /// Milliseconds from capture to renderer, for each rendered frame, matched by RTP timestamp.
    var latencies: [Double] {
        let captured = Dictionary(sent.all.map { ($0.rtpTimestamp, $0.captureTime) }, uniquingKeysWith: { $1 })
        return rendered.all.compactMap { frame in
            frame.rtpTimestamp.flatMap { captured[$0] }.map { frame.handedOver.milliseconds(since: $0) }
        }
    }
}

extension MediaNodesTests {
    @Suite struct LoopbackTests {
        @Test("Every encoded frame is rendered once and in order", arguments: VideoCodec.allCases)
        func everyFrame(codec: VideoCodec) async throws {
            let loopback = try await Loopback(codec: codec, frames: 90)
            try await loopback.start()
            await eventually("the end") { loopback.hasEnded }
            await eventually("the last frame") { loopback.rendered.count >= loopback.sent.count }
            await loopback.stop()
            let encoder = try #require(loopback.publisher.statistics.encoders["encoder"])
            #expect(encoder.captured == 90)
            #expect(encoder.captured == encoder.encoded + encoder.droppedBeforeEncoder)
            #expect(encoder.inFlight == 0)
            let rendered = loopback.rendered.all
            #expect(rendered.count == encoder.encoded)
            let numbers = rendered.compactMap(\.number)
            // The first keyframe of VP9 may be too coarse for it.
            #expect(numbers.count >= (codec == .vp9 ? rendered.count - 1 : rendered.count))
            #expect(zip(numbers, numbers.dropFirst()).allSatisfy { $0 < $1 })
            #expect(rendered.map(\.rtpTimestamp) == loopback.sent.all.map { Optional($0.rtpTimestamp) })
            let input = try #require(loopback.receiver.statistics.rtpInputs["in"])
            #expect(input.packetsLost == 0 && input.packetsDropped == 0)
            #expect(input.framesReceived == encoder.encoded)
            #expect(input.framesDecoded == encoder.encoded)
            let latency = loopback.latencies.sorted()
            print("\(codec) capture to renderer, ms: median", latency.median ?? -1, "max", latency.last ?? -1)
        }

        @Test("The bar code is readable at 300 kbit/s", arguments: [VideoCodec.vp8, .h264])
        func lowBitrate(codec: VideoCodec) async throws {
            let loopback = try await Loopback(codec: codec, frames: 90, bitrate: .kilobitsPerSecond(300))
            try await loopback.start()
            await eventually("the end") { loopback.hasEnded }
            await eventually("the last frame") { loopback.rendered.count >= loopback.sent.count }
            await loopback.stop()
            let rendered = loopback.rendered.all
            #expect(rendered.count == loopback.sent.count)
            #expect(rendered.count > 45)
            print(loopback.publisher.statistics.encoders)
            #expect(rendered.allSatisfy { $0.number != nil })
        }
    }
}
