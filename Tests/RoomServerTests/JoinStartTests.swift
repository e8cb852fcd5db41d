import PeerIO
import PeerLoop
import PeerSession
import RTP
import RoomFixtures
import RoomProtocol
import Testing
import TestSupport

@testable import RoomServer
@testable import ServerCore

@Suite(.serialized) struct JoinStartTests {
    private func withStage(
        receivers: Int, _ body: (EventLoop, LoopBound<JoinStage>) async throws -> Void
    ) async throws {
        let loop = EventLoop(name: "all ends")
        let stage = try await onLoop(loop) {
            Result { LoopBound(try JoinStage(loop: loop, receivers: receivers), loop: loop) }
        }.get()
        let result: Result<Void, any Error>
        do {
            try #require(await eventually { await onLoop(loop) { stage.value.isSecured } })
            try await body(loop, stage)
            result = .success(())
        } catch { result = .failure(error) }
        await onLoop(loop) { stage.value.close() }
        loop.shutdown()
        try result.get()
    }

    /// Assigns the stream to the first receiver, which gets the keyframe 1 and the packets up to `last`.
    private func start(_ stage: LoopBound<JoinStage>, _ last: Int = 20) async throws {
        await onLoop(stage.loop) {
            stage.value.assign(0)
            stage.value.forward(1, keyframe: true)
            for number in 2...last { stage.value.forward(number) }
        }
        try #require(await eventually { await stage.numbers(0).count == last })
    }

    @Test func `a late subscriber begins at the last keyframe while the publisher is silent and not asked`()
        async throws
    {
        try await withStage(receivers: 2) { loop, stage in
            try await start(stage)
            await onLoop(loop) { stage.value.assign(1) }
            #expect(await eventually { await stage.numbers(1).count == 20 })
            await onLoop(loop) { stage.value.forward(21) }
            #expect(await eventually { await stage.numbers(1).count == 21 })
            #expect(await stage.numbers(1) == Array(0..<21))
            #expect(await stage.timestamps(1) == (1...21).map { UInt32($0 * 3000) })
            #expect(await onLoop(loop) { stage.value.publisher.keyframeRequests } == 1)
        }
    }

    @Test func `200 subscribers that join one after the other cost the publisher at most one keyframe a second`()
        async throws
    {
        try await withStage(receivers: 201) { loop, stage in
            try await start(stage)
            try #require(await eventually { await onLoop(loop) { stage.value.publisher.keyframeRequests } == 1 })
            await onLoop(loop) { stage.value.answerKeyframeRequests() }
            let began = EventLoop.now
            await withCheckedContinuation { done in
                loop.execute { stage.value.assignOneByOne(1...200, every: .milliseconds(2)) { done.resume() } }
            }
            #expect(
                await eventually {
                    await onLoop(loop) { (1...200).allSatisfy { stage.value.sent(on: $0) >= 20 } }
                })
            let requests = await onLoop(loop) { stage.value.publisher.keyframeRequests }
            // The last request may be older than the count.
            #expect(requests <= 1 + Int((EventLoop.now - began).seconds))
        }
    }

    @Test func `a replay is sent in shares, and drops nothing while live packets arrive`() async throws {
        try await withStage(receivers: 2) { loop, stage in
            try await start(stage, 400)
            let isReady = await onLoop(loop) {
                stage.value.assign(1)
                // The message that assigns the stream can still name its first sequence number.
                return stage.value.sent(on: 1) == 0 && !stage.value.isAwaitingStart(1)
            }
            #expect(isReady)
            for number in 401...450 {
                await onLoop(loop) { stage.value.forward(number) }
            }
            #expect(await eventually { await stage.numbers(1).count == 450 })
            #expect(await stage.numbers(0) == Array(0..<450))
            #expect(await stage.numbers(1) == Array(0..<450))
            let dropped = await onLoop(loop) { stage.value.subscriber.statistics.session.dropped.outgoingFull }
            #expect(dropped == 0)
        }
    }

    @Test func `lost packets of a replay are retransmitted`() async throws {
        try await withStage(receivers: 2) { loop, stage in
            try await start(stage, 100)
            // After the first share: a client learns of a stream by the first packet that arrives.
            _ = await stage.duringReplay(on: 1) { stage in
                stage.impairNextTurn(Impairment(seed: 3, outgoingLoss: 0.3))
            }
            // The replay has ended when a live packet arrives.
            var number = 100
            let hasCaughtUp = await eventually {
                number += 1
                let next = number
                await onLoop(loop) { stage.value.forward(next) }
                return await stage.timestamps(1).contains { $0 > 100 * 3000 }
            }
            #expect(hasCaughtUp)
            let next = number + 1
            await onLoop(loop) {
                stage.value.subscriber.impairment = nil
                stage.value.forward(next)
            }
            #expect(await eventually { await stage.numbers(1).count == next })
            #expect(await stage.numbers(1).sorted() == Array(0..<next))
            #expect(await onLoop(loop) { stage.value.publisher.keyframeRequests } == 1)
        }
    }

    @Test func `a receiver that changes to another stream during a replay gets no more of the first`() async throws {
        try await withStage(receivers: 2) { loop, stage in
            try await start(stage, 100)
            let sent = await stage.duringReplay(on: 1) { stage in
                stage.assign(1, stream: 1)
                stage.forward(7, keyframe: true, stream: 1)
            }
            #expect(sent == Replay.share)
            await onLoop(loop) { stage.value.forward(8, stream: 1) }
            #expect(await eventually { await stage.numbers(1).count == sent + 2 })
            #expect(await stage.numbers(1) == Array(0..<(sent + 2)))
        }
    }

    @Test func `a receiver that is released during a replay gets nothing more`() async throws {
        try await withStage(receivers: 3) { loop, stage in
            try await start(stage, 100)
            let sent = await stage.duringReplay(on: 1) { stage in
                stage.release(1)
                stage.assign(2)
            }
            #expect(sent == Replay.share)
            // A timer of the released receiver would have run earlier.
            #expect(await eventually { await stage.numbers(2).count == 100 })
            #expect(await stage.numbers(1) == Array(0..<sent))
        }
    }

    @Test func `a restart during a replay requests a keyframe, at which the subscriber continues`() async throws {
        try await withStage(receivers: 3) { loop, stage in
            try await start(stage, 100)
            let sent = await stage.duringReplay(on: 1) { stage in
                stage.forward(50, epoch: 1)
                stage.assign(2)
            }
            #expect(sent == Replay.share)
            #expect(await eventually { await onLoop(loop) { stage.value.publisher.keyframeRequests } == 2 })
            await onLoop(loop) { stage.value.forward(51, keyframe: true, epoch: 1) }
            #expect(await eventually { await stage.numbers(1).count == sent + 1 })
            #expect(await stage.numbers(1) == Array(0...sent))
            #expect(await stage.numbers(0) == Array(0...100))
            #expect(await eventually { await stage.timestamps(2) == [51 * 3000] })
        }
    }

    /// The server requests a keyframe once a second at most, and keeps the packets that long without a subscriber, too.
    @Test func `a late subscriber begins at the last keyframe, though nobody watched since`() async throws {
        try await withStage(receivers: 2) { loop, stage in
            try await start(stage)
            await onLoop(loop) {
                stage.value.release(0)
                stage.value.forward(21)
                stage.value.assign(1)
                stage.value.forward(22)
            }
            #expect(await eventually { await stage.numbers(1).count == 22 })
            #expect(await stage.timestamps(1).last == 22 * 3000)
        }
    }

    @Test func `a subscriber whose replay is overtaken continues at the next keyframe without a gap`() async throws {
        try await withStage(receivers: 2) { loop, stage in
            try await start(stage, 100)
            let sent = await stage.duringReplay(on: 1) { stage in
                for number in 101...2000 { stage.forward(number) }
            }
            #expect(await eventually { await onLoop(loop) { stage.value.publisher.keyframeRequests } == 2 })
            await onLoop(loop) { stage.value.forward(2001, keyframe: true) }
            #expect(await eventually { await stage.numbers(1).count > sent })
            #expect(await stage.numbers(1) == Array(0...sent))
            // It is the same stream, so its timestamps tell the time that is missing.
            #expect(await stage.timestamps(1).last == 2001 * 3000)
        }
    }

    @Test func `the keyframe is requested before the subscriber's session is secured, and starts it`() async throws {
        try await withMedia { server, grant, loop in
            let publisher = try MediaClient(server, grant, loop: loop)
            let (up, streams) = try await publisher.publish()
            #expect(await eventually { await onLoop(loop) { up.value.isSecured } })
            let viewer = try MediaClient(server, grant, loop: loop)
            viewer.raw.sendMessage(.subscribe(ViewOfStream(stream: streams[0])))
            #expect(await eventually { await onLoop(loop) { up.value.keyframeRequests == 1 } })
            let down = try await viewer.answer()
            // The newest is young enough, however long the handshake takes.
            let isStarted = await eventually {
                await onLoop(loop) {
                    if !down.value.isSecured { up.value.send(next: 1, keyframe: true) }
                    return !down.value.received.isEmpty
                }
            }
            #expect(isStarted)
            #expect(await onLoop(loop) { up.value.keyframeRequests } == 1)
            for client in [publisher, viewer] { await client.close() }
        }
    }

    @Test func `a second subscriber of a room gets the keyframe that the first one got`() async throws {
        try await withMedia { server, grant, loop in
            let publisher = try MediaClient(server, grant, loop: loop)
            let (up, streams) = try await publisher.publish()
            #expect(await eventually { await onLoop(loop) { up.value.isSecured } })
            let viewers = try (0..<2).map { _ in try MediaClient(server, grant, loop: loop) }
            let first = try await viewers[0].watch()
            let second = try await viewers[1].watch()
            try viewers[0].subscribe(streams[0])
            #expect(await eventually { await onLoop(loop) { up.value.keyframeRequests == 1 } })
            await onLoop(loop) { up.value.send(next: 1, keyframe: true) }
            await onLoop(loop) { up.value.send(next: 30) }
            #expect(await eventually { await onLoop(loop) { first.value.received.count == 31 } })
            try viewers[1].subscribe(streams[0])
            #expect(await eventually { await onLoop(loop) { second.value.received.count == 31 } })
            await onLoop(loop) { up.value.send(next: 1) }
            // The pacer of each session sends it when its link has room.
            let isWhole = await eventually {
                await onLoop(loop) { [first, second].allSatisfy { $0.value.received.count == 32 } }
            }
            #expect(isWhole)
            let timestamps = await onLoop(loop) { [first, second].map { $0.value.received.map(\.timestamp) } }
            #expect(timestamps[0] == timestamps[1])
            #expect(await onLoop(loop) { up.value.keyframeRequests } == 1)
            for client in [publisher] + viewers { await client.close() }
        }
    }
}

/// A publisher with a real session, and one subscriber's session with many receivers, which the test assigns. The test
/// forwards the publisher's packets itself. On the loop only.
private final class JoinStage {
    let publisher: MediaSession
    let subscriber: Peer
    private let client: MediaSession
    private let loop: EventLoop
    private let up: UpSession
    private let streams: [PublishedStream]
    private var consumers: [Consumer] = []
    private var firsts: [SequenceNumber] = []
    private var joining: LoopTimer?

    init(loop: EventLoop, receivers count: Int) throws {
        self.loop = loop
        let settings = SessionSettings(loop: loop, certificate: try Certificate(), scope: .loopback, impairment: nil)
        publisher = try MediaSession(loop: loop, role: .controlling)
        up = try UpSession(participant: "p-1", settings: settings, place: .here) { _ in }
        let publish = publisher.offer([.vp8, .vp8])
        var ids = 0
        let (answer, streams) = try up.publish(publish, offer: try SessionDescription(parsing: publish.sdp)) {
            ids += 1
            return ids
        }
        self.streams = streams
        try publisher.connect(by: answer)
        subscriber = try settings.makePeer(.controlling, .here)
        client = try MediaSession(loop: loop, role: .controlled)
        for index in 0..<count {
            let receiver = Receiver(
                mid: String(index), media: .video, ssrc: SSRC(UInt32(10_000 + index)),
                retransmissionSSRC: SSRC(UInt32(20_000 + index)))
            _ = client.peer.addReceiver(
                ReceiverConfiguration(
                    ssrc: receiver.ssrc, retransmissionSSRC: receiver.retransmissionSSRC,
                    mid: receiver.mid, clockRate: 90000, payloadTypes: [96], retransmissionPayloadTypes: [96: 97],
                    nack: true))
            consumers.append(
                Consumer(
                    receiver, peer: subscriber, firstSequenceNumber: settings.nextSequenceNumber(), history: 512,
                    replays: ReplayPace(loop: loop)))
            firsts.append(consumers[index].nextSequenceNumber)
            consumers[index].accept([
                NegotiatedCodec(codec: .vp8, payloadType: 96, retransmissionPayloadType: 97, parameters: "")
            ])
        }
        subscriber.onEvent = { [unowned self] event in
            if case .secured = event { for consumer in consumers { consumer.secured() } }
        }
        try settings.start(subscriber)
        try settings.connect(subscriber, to: client.peer.local, as: .server)
        try client.peer.setRemote(subscriber.local, dtlsRole: .client)
    }

    var isSecured: Bool { publisher.isSecured && client.isSecured && subscriber.isSecured }

    func assign(_ index: Int, stream: Int = 0) { consumers[index].assign(streams[stream]) }

    /// The packets of this turn are not affected.
    func impairNextTurn(_ impairment: Impairment) {
        loop.schedule(at: loop.now) { [unowned self] in subscriber.impairment = impairment }
    }

    func release(_ index: Int) { consumers[index].release() }

    func assignOneByOne(_ range: ClosedRange<Int>, every interval: TimeInterval, then done: @escaping () -> Void) {
        var next = range.lowerBound
        joining = loop.makeTimer { [unowned self] in
            assign(next)
            next += 1
            if next > range.upperBound { done() } else { joining?.arm(at: loop.now + interval) }
        }
        joining?.arm(at: loop.now)
    }

    func forward(_ number: Int, keyframe: Bool = false, epoch: Int = 0, stream: Int = 0) {
        let packet = vp8(number, keyframe: keyframe)
        guard let header = RTPHeader(parsing: packet) else { return }
        streams[stream].layers[0].forward(packet, header: header, at: StreamPosition(epoch: epoch, number: number))
    }

    /// Forwards a keyframe and 19 more packets for each request.
    func answerKeyframeRequests() {
        var number = 1000
        publisher.onKeyframeRequest = { [unowned self] in
            for offset in 0..<20 { forward(number + offset, keyframe: offset == 0) }
            number += 20
        }
    }

    func isAwaitingStart(_ index: Int) -> Bool { consumers[index].isAwaitingStart }

    /// Packets sent on a receiver.
    func sent(on index: Int) -> Int { consumers[index].nextSequenceNumber.distance(from: firsts[index]) }

    func received(on index: Int) -> [RTPHeader] {
        client.received.filter { $0.ssrc == consumers[index].receiver.ssrc }
    }

    /// The sequence numbers that a receiver got, counted from its first.
    func numbers(on index: Int) -> [Int] {
        received(on: index).map { $0.sequenceNumber.distance(from: firsts[index]) }
    }

    func close() {
        publisher.onKeyframeRequest = nil
        joining = nil
        for consumer in consumers { consumer.release() }
        for peer in [subscriber, client.peer, publisher.peer] { peer.close() }
        up.close()
    }
}

extension LoopBound<JoinStage> {
    /// Assigns the stream to a receiver, and runs the closure after the first share of the replay. Returns how many
    /// packets the receiver had been sent.
    fileprivate func duringReplay(on index: Int, _ body: @escaping @Sendable (JoinStage) -> Void) async -> Int {
        await withCheckedContinuation { done in
            loop.execute {
                value.assign(index)
                // Timers run in the order of their times.
                loop.schedule(at: loop.now) {
                    let sent = value.sent(on: index)
                    body(value)
                    done.resume(returning: sent)
                }
            }
        }
    }

    fileprivate func numbers(_ index: Int) async -> [Int] { await onLoop(loop) { value.numbers(on: index) } }

    fileprivate func timestamps(_ index: Int) async -> [UInt32] {
        await onLoop(loop) { value.received(on: index).map(\.timestamp.rawValue) }
    }
}
