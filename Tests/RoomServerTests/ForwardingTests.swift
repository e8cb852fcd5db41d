import PeerIO
import PeerLoop
import PeerSession
import RTP
import RoomProtocol
import Testing
import TestSupport

@testable import RoomServer
@testable import ServerCore

@Suite(.serialized) struct ForwardingTests {
    private func withDownlink(
        payloadType: UInt8 = 96, extensions: HeaderExtensionIDs = HeaderExtensionIDs(), codec: Codec = .vp8,
        _ body: (EventLoop, LoopBound<Downlink>) async throws -> Void
    ) async throws {
        let loop = EventLoop(name: "both ends")
        let call = try await onLoop(loop) {
            Result {
                LoopBound(
                    try Downlink(loop: loop, payloadType: payloadType, extensions: extensions, codec: codec), loop: loop
                )
            }
        }.get()
        #expect(await eventually { await onLoop(loop) { call.value.client.isSecured } })
        try await body(loop, call)
        await onLoop(loop) { call.value.close() }
        loop.shutdown()
    }

    @Test func `a subscriber misses neither padding nor packets that are too long to forward`() async throws {
        try await withDownlink { loop, call in
            await onLoop(loop) {
                let stream = call.value.assignNewStream()
                let tooLong = call.value.peer.maximumPayloadLength + 1
                call.value.forward(vp8(1, keyframe: true), 1, on: stream)
                call.value.forward(vp8(2, payload: 0), 2, on: stream)
                call.value.forward(vp8(3), 3, on: stream)
                call.value.forward(vp8(4, payload: tooLong), 4, on: stream)
                call.value.forward(vp8(5), 5, on: stream)
            }
            #expect(await eventually { await onLoop(loop) { call.value.client.received.count == 3 } })
            let numbers = await onLoop(loop) { call.value.client.received.map(\.sequenceNumber) }
            #expect(numbers.map { $0.distance(from: numbers[0]) } == [0, 1, 2])
        }
    }

    @Test func `no packet of the previous stream is retransmitted after a switch`() async throws {
        try await withDownlink { loop, call in
            let first = await onLoop(loop) { LoopBound(call.value.assignNewStream(), loop: loop) }
            await onLoop(loop) { call.value.forward(vp8(1, keyframe: true), 1, on: first.value) }
            #expect(await eventually { await onLoop(loop) { call.value.client.received.count == 1 } })
            await onLoop(loop) {
                call.value.peer.impairment = .cut
                call.value.forward(vp8(2), 2, on: first.value)
            }
            await onLoop(loop) {
                call.value.peer.impairment = nil
                let second = call.value.assignNewStream()
                call.value.forward(vp8(1, keyframe: true), 1, on: second)
            }
            // The client requests the lost packet until it gives up.
            #expect(await eventually { await onLoop(loop) { call.value.client.lossesBeyondRepair == 1 } })
            let numbers = await onLoop(loop) { call.value.client.received.map(\.sequenceNumber) }
            #expect(numbers.map { $0.distance(from: numbers[0]) } == [0, 2])
        }
    }

    @Test func `a lost packet is retransmitted under the payload types of the client's answer`() async throws {
        try await withDownlink(payloadType: 100) { loop, call in
            let stream = await onLoop(loop) { LoopBound(call.value.assignNewStream(), loop: loop) }
            await onLoop(loop) { call.value.forward(vp8(1, keyframe: true), 1, on: stream.value) }
            #expect(await eventually { await onLoop(loop) { call.value.client.received.count == 1 } })
            await onLoop(loop) {
                call.value.peer.impairment = .cut
                call.value.forward(vp8(2), 2, on: stream.value)
            }
            await onLoop(loop) {
                call.value.peer.impairment = nil
                call.value.forward(vp8(3), 3, on: stream.value)
            }
            let isRepaired = await eventually(within: 5) {
                await onLoop(loop) { call.value.client.received.count == 3 }
            }
            #expect(isRepaired)
            #expect(await onLoop(loop) { call.value.client.received.allSatisfy { $0.payloadType == 100 } })
        }
    }

    @Test(arguments: [nil, 13 as UInt8])
    func `capture times are forwarded under the id of each subscriber, and to none without one`(id: UInt8?) async throws
    {
        let time = AbsoluteCaptureTime(NTPTime(rawValue: 0xe5f1_2233_4455_6677), clockOffset: 0)
        try await withDownlink(extensions: HeaderExtensionIDs(captureTime: id)) { loop, call in
            let stream = await onLoop(loop) { LoopBound(call.value.assignNewStream(), loop: loop) }
            await onLoop(loop) {
                call.value.forward(vp8(1, keyframe: true), 1, captured: time, on: stream.value)
                call.value.forward(vp8(2), 2, on: stream.value)
            }
            #expect(await eventually { await onLoop(loop) { call.value.client.received.count == 2 } })
            let received = await onLoop(loop) { call.value.client.received }
            #expect(received.map(\.captureTime) == [id == nil ? nil : time, nil])
            #expect(received.map(\.hasExtension) == [id != nil, false])
        }
    }

    @Test func `a later answer may refuse capture times`() async throws {
        let time = AbsoluteCaptureTime(NTPTime(rawValue: 0xe5f1_2233_4455_6677), clockOffset: 0)
        try await withDownlink(extensions: HeaderExtensionIDs(captureTime: 1)) { loop, call in
            await onLoop(loop) {
                let stream = call.value.assignNewStream()
                call.value.forward(vp8(1, keyframe: true), 1, captured: time, on: stream)
                // Packets of a turn are written at its end.
                loop.sendEarly()
                call.value.accept(HeaderExtensionIDs())
                call.value.forward(vp8(2, keyframe: true), 2, captured: time, on: stream)
            }
            #expect(await eventually { await onLoop(loop) { call.value.client.received.count == 2 } })
            #expect(await onLoop(loop) { call.value.client.received.map(\.captureTime) } == [time, nil])
        }
    }

    @Test func `a keyframe carries its capture time, even if its publisher does not send it`() async throws {
        let time = AbsoluteCaptureTime(NTPTime(rawValue: 0xe5f1_2233_4455_6677), clockOffset: 0)
        try await withDownlink(extensions: HeaderExtensionIDs(captureTime: 1)) { loop, call in
            let stream = await onLoop(loop) { LoopBound(call.value.assignNewStream(), loop: loop) }
            await onLoop(loop) {
                call.value.forward(vp8(1, keyframe: true), 1, captured: time, on: stream.value)
                call.value.forward(vp8(2), 2, on: stream.value)
                call.value.forward(vp8(4, keyframe: true), 3, on: stream.value)
                // Too long after the last one.
                call.value.forward(vp8(200, keyframe: true), 4, on: stream.value)
            }
            #expect(await eventually { await onLoop(loop) { call.value.client.received.count == 4 } })
            let times = await onLoop(loop) { call.value.client.received.map(\.captureTime) }
            #expect(times == [time, nil, time.advanced(by: .milliseconds(100)), nil])
        }
    }

    @Test func `the first packet of another speaker carries its capture time`() async throws {
        let ids = HeaderExtensionIDs(captureTime: 1)
        let times = [0xe5f1_2233_4455_6677, 0xe6f1_2233_4455_6677].map {
            AbsoluteCaptureTime(NTPTime(rawValue: $0), clockOffset: 0)
        }
        try await withDownlink(payloadType: 111, extensions: ids, codec: .opus) { loop, call in
            await onLoop(loop) {
                let streams = [call.value.makeStream(), call.value.makeStream()]
                // Nobody hears them yet.
                for (stream, time) in zip(streams, times) {
                    call.value.forward(vp8(1, as: .opus), 1, captured: time, on: stream)
                }
                for stream in streams {
                    call.value.assign(stream)
                    call.value.forward(vp8(9, as: .opus), 2, on: stream)
                    call.value.forward(vp8(10, as: .opus), 3, on: stream)
                }
            }
            #expect(await eventually { await onLoop(loop) { call.value.client.received.count == 4 } })
            let received = await onLoop(loop) { call.value.client.received.map(\.captureTime) }
            // Eight times 62.5 ms later.
            #expect(received == times.flatMap { [$0.advanced(by: .milliseconds(500)), nil] })
        }
    }

    @Test func `each epoch of a stream is reported by its own clock`() async throws {
        try await withDownlink { loop, call in
            let stream = await onLoop(loop) { LoopBound(call.value.assignNewStream(), loop: loop) }
            // More than the reports of 10 s, which come about once a second.
            let beginnings = 30
            for epoch in 0..<beginnings {
                let clock = await onLoop(loop) {
                    call.value.forward(vp8(1, keyframe: true), 1, epoch: epoch, on: stream.value)
                    let clock = stream.value.layers[0].clock
                    stream.value.layers[0].setClock(
                        SenderClock(
                            ntp: NTPTime(rawValue: UInt64(epoch + 1) << 32), rtp: RTPTimestamp(3000), at: loop.now,
                            clockRate: 90000))
                    return clock
                }
                #expect(clock == nil)
                await onLoop(loop) {}
            }
            #expect(await eventually { await onLoop(loop) { call.value.client.senderReports >= beginnings } })
        }
    }
}

/// A server's down session with one receiver, and the client at its other end. The test forwards the packets of a
/// publisher that has no session. On the loop only.
private final class Downlink {
    let client: MediaSession
    let peer: Peer
    private let consumer: Consumer
    private let publisher: Peer
    private let codec: Codec
    private var streams = 0

    /// - Parameter payloadType: of the codec in the client's answer. That of its retransmissions is one more.
    init(loop: EventLoop, payloadType: UInt8, extensions: HeaderExtensionIDs, codec: Codec) throws {
        self.codec = codec
        let settings = SessionSettings(loop: loop, certificate: try Certificate(), scope: .loopback, impairment: nil)
        publisher = try settings.makePeer(.controlled, .here)
        peer = try settings.makePeer(.controlling, .here)
        let receiver = Receiver(mid: "0", media: codec.media, ssrc: SSRC(7000), retransmissionSSRC: SSRC(7001))
        consumer = Consumer(
            receiver, peer: peer, firstSequenceNumber: SequenceNumber(100), history: 512,
            replays: ReplayPace(loop: loop))
        client = try MediaSession(loop: loop, role: .controlled)
        _ = client.peer.addReceiver(
            ReceiverConfiguration(
                ssrc: receiver.ssrc, retransmissionSSRC: receiver.retransmissionSSRC, mid: receiver.mid,
                extensions: extensions, clockRate: codec.clockRate, payloadTypes: [payloadType],
                retransmissionPayloadTypes: [payloadType: payloadType + 1], nack: true))
        let negotiated = NegotiatedCodec(
            codec: codec, payloadType: payloadType, retransmissionPayloadType: payloadType + 1, parameters: "")
        consumer.accept([negotiated], extensions)
        peer.onEvent = { [unowned self] event in if case .secured = event { consumer.secured() } }
        try settings.start(peer)
        try settings.connect(peer, to: client.peer.local, as: .server)
        try client.peer.setRemote(peer.local, dtlsRole: .client)
    }

    func assignNewStream() -> PublishedStream {
        let stream = makeStream()
        assign(stream)
        return stream
    }

    func accept(_ extensions: HeaderExtensionIDs) { consumer.accept(extensions) }

    func assign(_ stream: PublishedStream) { consumer.assign(stream) }

    func makeStream() -> PublishedStream {
        streams += 1
        let receiver = publisher.addReceiver(
            ReceiverConfiguration(
                mid: String(streams), clockRate: 90000, payloadTypes: [96], nack: false))
        return PublishedStream(
            StreamInfo(id: streams, media: codec.media, codec: codec.rawValue, extraValue: ""), codec: codec,
            participant: "p-1", loop: publisher.loop,
            sources: [SessionSource(peer: publisher, receiver: receiver) { _, _ in }])
    }

    func forward(
        _ packet: consuming PacketBuffer, _ number: Int, epoch: Int = 0, captured: AbsoluteCaptureTime? = nil,
        on stream: PublishedStream
    ) {
        guard var header = RTPHeader(parsing: packet) else { return }
        header.captureTime = captured
        stream.layers[0].forward(packet, header: header, at: StreamPosition(epoch: epoch, number: number))
    }

    func close() {
        consumer.release()
        for peer in [publisher, peer, client.peer] { peer.close() }
    }
}
