import MediaGraph
import PeerIO
import PeerLoop
import PeerSession
import RTP
import RoomProtocol
import Synchronization
import Testing
import TestSupport

@testable import ClientCore

/// The sessions of a client, each with a peer instead of the server. Both ends live on one loop, which delivers one
/// end's datagrams before it runs the next closure.
@Suite(.serialized) struct SessionMediaTests {
    @Test func `sequence numbers continue by one when an encoder restarts, from a number far below the wrap`()
        async throws
    {
        try await withSession({ try Uplink(loop: $0) }) { loop, call in
            await onLoop(loop) {
                for first in [40_000, 10, 40_002] {
                    for track in call.value.session.tracks { call.value.send(first..<(first + 2), on: track) }
                }
            }
            #expect(await eventually { await onLoop(loop) { call.value.received.count == 6 * Uplink.tracks } })
            let received = await onLoop(loop) { call.value.received }
            for numbers in Dictionary(grouping: received, by: \.ssrc).values.map({ $0.map(\.sequenceNumber) }) {
                #expect(numbers[0].rawValue < 0x4000)
                #expect(numbers.map { $0.distance(from: numbers[0]) } == [0, 1, 2, 3, 4, 5])
            }
        }
    }

    @Test(arguments: [true, false])
    func `the first packet of a frame carries the capture time, if the server accepts it`(isAccepted: Bool) async throws
    {
        try await withSession({ try Uplink(loop: $0, acceptsCaptureTimes: isAccepted) }) { loop, call in
            await onLoop(loop) {
                let track = call.value.session.tracks[0]
                for frame in 0..<60 {
                    call.value.send((2 * frame)..<(2 * frame + 2), on: track, captured: 1000 + UInt64(frame) * 20)
                }
            }
            #expect(await eventually { await onLoop(loop) { call.value.received.count == 120 } })
            let times = await onLoop(loop) { call.value.received.map(\.captureTime) }
            // One a second. The clock of the environment is that of the captures.
            let expected = (0..<120).map { packet -> AbsoluteCaptureTime? in
                guard isAccepted, packet == 0 || packet == 100 else { return nil }
                let captured = NTPTime(unixNanoseconds: (1000 + UInt64(packet / 2) * 20) * 1_000_000)
                return AbsoluteCaptureTime(captured, clockOffset: 0)
            }
            #expect(times == expected)
        }
    }

    @Test(arguments: [false, true])
    func `a sink gets the capture times of its stream, also of packets that overtook its assignment`(overtakes: Bool)
        async throws
    {
        try await withSession(Downlink.init) { loop, call in
            if overtakes { await onLoop(loop) { call.value.send(4...6, captured: .seconds(2)) } }
            await onLoop(loop) { call.value.assign(from: 4) }
            if !overtakes { await onLoop(loop) { call.value.send(4...6, captured: .seconds(2)) } }
            let sink = await onLoop(loop) { call.value.sink }
            #expect(await eventually { sink.numbers.count == 3 })
            let age = sink.clock?.age(of: RTPTimestamp(4 + 90_000), at: .zero) { _ in
                NTPTime(unixNanoseconds: 0).advanced(by: .seconds(4))
            }
            #expect(age?.time == .seconds(1) && age?.source == .captureTime)
        }
    }

    @Test func `a report about the stream before does not reach the next one in its receiver`() async throws {
        try await withSession(Downlink.init) { loop, call in
            await onLoop(loop) {
                call.value.assign(from: 1)
                call.value.send(1...3)
            }
            let (former, next) = await onLoop(loop) { (call.value.sink, Downlink.Sink()) }
            await onLoop(loop) { call.value.report() }
            #expect(await eventually { former.clock != nil })
            await onLoop(loop) {
                call.value.assign(from: 4, stream: 6, to: next)
                call.value.report()
            }
            // Its report has left before.
            await onLoop(loop) {
                call.value.stopReports()
                call.value.send(4...4)
            }
            #expect(await eventually { next.numbers == [4] })
            #expect(next.clock == nil)
            await onLoop(loop) { call.value.report() }
            #expect(await eventually { next.clock != nil })
        }
    }

    @Test func `the counters of a receiver go on over the streams that it carries`() async throws {
        try await withSession(Downlink.init) { loop, call in
            await onLoop(loop) {
                #expect(call.value.statistics == nil)
                call.value.assign(from: 1)
                call.value.send(1...3)
            }
            let (former, next) = await onLoop(loop) { (call.value.sink, Downlink.Sink()) }
            #expect(await eventually { former.numbers.count == 3 })
            await onLoop(loop) {
                let received = call.value.statistics
                #expect(received?.stream == 5 && received?.totals.framesDecoded == 3)
                call.value.assign(from: 4, stream: 6, to: next)
                call.value.send(4...5)
            }
            #expect(await eventually { next.numbers.count == 2 })
            await onLoop(loop) {
                let received = call.value.statistics
                #expect(received?.stream == 6 && received?.participant == "p-1" && received?.mid == "0")
                #expect(received?.totals.framesDecoded == 5 && received?.packetsReceived == 5)
                #expect(received?.codec?.codec == .vp8 && received?.lastPacketTime != nil)
            }
        }
    }

    @Test func `a report that overtakes the assignment of its stream reaches it`() async throws {
        try await withSession(Downlink.init) { loop, call in
            await onLoop(loop) {
                call.value.assign(from: 1)
                call.value.send(1...4)
                call.value.report()
            }
            let former = await onLoop(loop) { call.value.sink }
            #expect(await eventually { former.clock != nil })
            let next = Downlink.Sink()
            await onLoop(loop) {
                call.value.stopReports()
                call.value.assign(from: 4, stream: 6, to: next)
            }
            #expect(next.clock != nil)
        }
    }

    @Test func `a receiver reads the capture times that a later offer adds`() async throws {
        try await withSession({ try Downlink(loop: $0, offersCaptureTimes: false) }) { loop, call in
            await onLoop(loop) {
                call.value.assign(from: 1)
                call.value.offerAgain()
                call.value.send(1...2, captured: .seconds(2))
            }
            let sink = await onLoop(loop) { call.value.sink }
            #expect(await eventually { sink.numbers == [1, 2] })
            #expect(sink.clock != nil)
        }
    }

    @Test func `a sender carries the capture times that a later answer accepts`() async throws {
        try await withSession({ try Uplink(loop: $0, acceptsCaptureTimes: false) }) { loop, call in
            await onLoop(loop) {
                call.value.answerAgain()
                call.value.send(0..<2, on: call.value.session.tracks[0])
            }
            #expect(await eventually { await onLoop(loop) { call.value.received.count == 2 } })
            #expect(await onLoop(loop) { call.value.received.map { $0.captureTime != nil } } == [true, false])
        }
    }

    @Test func `a stream whose media overtakes its assignment is complete, without packets of the previous stream`()
        async throws
    {
        try await withSession(Downlink.init) { loop, call in
            await onLoop(loop) { call.value.send(1...6) }
            await onLoop(loop) { call.value.assign(from: 4) }
            await onLoop(loop) { call.value.send(7...8) }
            let sink = await onLoop(loop) { call.value.sink }
            #expect(await eventually { sink.numbers.count == 5 })
            #expect(sink.numbers == [4, 5, 6, 7, 8])
            #expect(await onLoop(loop) { call.value.keyframeRequests } == 0)
        }
    }

    @Test func `a client requests a keyframe if more media overtook the assignment than it keeps`() async throws {
        try await withSession(Downlink.init) { loop, call in
            // One turn reads only a share of a socket's buffer.
            for first in stride(from: 1, through: HeldPackets.capacity + 8, by: 8) {
                await onLoop(loop) { call.value.send(first...(first + 7)) }
            }
            await onLoop(loop) { call.value.assign(from: 1) }
            #expect(await eventually { await onLoop(loop) { call.value.keyframeRequests == 1 } })
        }
    }

    @Test func `a client that refuses the packets of a stream reports it once, and its session continues`()
        async throws
    {
        try await withSession(Downlink.init) { loop, call in
            await onLoop(loop) { call.value.assign(from: 40_000) }
            await onLoop(loop) { call.value.send(40_000...40_000) }
            let sink = await onLoop(loop) { call.value.sink }
            #expect(await eventually { sink.numbers == [40_000] })
            // During a cut the numbers advance so far that the client mistakes the rollover counter (RFC 3711 section
            // 3.3.1).
            await onLoop(loop) {
                call.value.cut(true)
                call.value.send(60_000...60_000)
                call.value.send(14_000...14_000)
            }
            await onLoop(loop) { call.value.cut(false) }
            var number = 14_000
            let isReported = await eventually {
                number += 1
                let next = number
                await onLoop(loop) { call.value.send(next...next) }
                return await onLoop(loop) { !call.value.problems.isEmpty }
            }
            #expect(isReported)
            let last = number
            await onLoop(loop) { call.value.send((last + 1)...(last + 50)) }
            await onLoop(loop) {}
            let problems = await onLoop(loop) { call.value.problems }
            #expect(problems.map(\.code) == [.streamRefused])
            #expect(problems.first?.message.hasPrefix("The client refuses stream 5 after ") == true)
            #expect(await onLoop(loop) { call.value.isSecured })
        }
    }

    private func withSession<Session: EndedOnLoop>(
        _ make: @escaping @Sendable (EventLoop) throws -> Session,
        _ body: (EventLoop, LoopBound<Session>) async throws -> Void
    ) async throws {
        let loop = EventLoop(name: "both ends")
        let call = try await onLoop(loop) { Result { LoopBound(try make(loop), loop: loop) } }.get()
        #expect(await eventually { await onLoop(loop) { call.value.isSecured } })
        try await body(loop, call)
        await onLoop(loop) { call.value.close() }
        loop.shutdown()
    }
}

private protocol EndedOnLoop: SendableMetatype {
    /// Whether media can flow.
    var isSecured: Bool { get }
    func close()
}

/// An RTP packet whose payload is its number.
private func packet(_ number: Int, type: UInt8) -> PacketBuffer {
    var packet = PacketBuffer()
    _ = packet.assignRTP(
        payloadType: type, sequenceNumber: SequenceNumber(UInt16(number)), timestamp: RTPTimestamp(UInt32(number)),
        ssrc: SSRC(1), payload: [UInt8(number >> 8), UInt8(number & 0xff)])
    return packet
}

/// A client's up session with some audio streams.
private final class Uplink: EndedOnLoop {
    static let tracks = 16

    private final class Track: EncodedTrack {
        let codec = Codec.opus
        var encoderStatistics: MediaStatistics.VideoEncoder? { nil }
        func requestKeyframe() {}
        func disconnect() {}
    }

    let session: UpSession
    private let server: Peer
    private(set) var received: [RTPHeader] = []

    init(loop: EventLoop, acceptsCaptureTimes: Bool = true) throws {
        session = try .lone(on: loop)
        for _ in 0..<Self.tracks { _ = session.addTrack(TrackOffer(Track())) }
        let offer = try SessionDescription(parsing: session.offer())
        let streams = try offer.media.map { try UpDescription.stream($0.mid, of: offer) }
        server = try Peer(
            loop: loop,
            configuration: PeerConfiguration(iceRole: .controlled, certificate: try Certificate(), cname: "server"))
        for stream in streams {
            _ = server.addReceiver(
                ReceiverConfiguration(
                    ssrc: stream.ssrc, mid: stream.mid, extensions: stream.extensions, clockRate: 48000,
                    payloadTypes: [stream.negotiated.payloadType], nack: false))
        }
        server.onMedia = { [unowned self] _, header, _, _ in received.append(header) }
        try server.start()
        try server.setRemote(try #require(offer.transport), dtlsRole: .server)
        var transport = server.local
        transport.setup = .passive
        var answer = UpDescription.answer(to: offer, taking: streams, sessionID: 2, transport: transport)
        if !acceptsCaptureTimes { for index in answer.media.indices { answer.media[index].extensions = [] } }
        try session.accept(
            Published(
                sdp: answer.serialized(), streams: streams.enumerated().map { .init(mid: $1.mid, stream: $0 + 1) }))
    }

    /// Accepts everything of another offer of the same streams.
    func answerAgain() {
        do {
            let offer = try SessionDescription(parsing: session.offer())
            let streams = try offer.media.map { try UpDescription.stream($0.mid, of: offer) }
            var transport = server.local
            transport.setup = .passive
            let answer = UpDescription.answer(to: offer, taking: streams, sessionID: 2, transport: transport)
            try session.accept(Published(sdp: answer.serialized(), streams: []))
        } catch {
            Issue.record("\(error)")
        }
    }

    var isSecured: Bool { session.profile != nil && server.isSecured }

    /// - Parameter milliseconds: when the frame was captured.
    func send(_ numbers: Range<Int>, on track: UpSession.Track, captured milliseconds: UInt64 = 1) {
        var batch = RTPBatch(
            captureTime: MediaTime(nanoseconds: milliseconds * 1_000_000),
            rtpTimestamp: UInt32(milliseconds * 48), isKeyframe: true)
        for number in numbers {
            let packet = packet(number, type: Codec.opus.payloadType)
            batch.bytes += packet.bytes.prefix(packet.count)
            batch.ends.append(batch.bytes.count)
        }
        session.send(batch, on: track)
    }

    func close() {
        session.close()
        server.close()
    }
}

/// A client's down session with one video receiver.
private final class Downlink: EndedOnLoop {
    final class Sink: IncomingSink, Sendable {
        private let taken = Mutex<[Int]>([])
        private let told = Mutex<StreamClock?>(nil)

        var numbers: [Int] { taken.withLock { $0 } }
        var clock: StreamClock? { told.withLock { $0 } }

        func clockChanged(_ clock: StreamClock) { told.withLock { $0 = clock } }

        func begin(_ stream: ClientCore.IncomingStream) {}
        func receive(_ packet: Span<UInt8>) {
            let number = Int(packet[packet.count - 2]) << 8 | Int(packet[packet.count - 1])
            taken.withLock { $0.append(number) }
        }
        /// Each packet is a frame.
        func fill(_ statistics: inout RoomStatistics.Received) { statistics.framesDecoded = numbers.count }
        func end() {}
    }

    let sink = Sink()
    private(set) var keyframeRequests = 0
    private(set) var problems: [RoomError] = []
    private let session: DownSession
    private let server: Peer
    private let sender: SenderID
    private let receiver = Receiver(mid: "0", media: .video, ssrc: SSRC(7000), retransmissionSSRC: nil)

    convenience init(loop: EventLoop) throws { try self.init(loop: loop, offersCaptureTimes: true) }

    init(loop: EventLoop, offersCaptureTimes: Bool) throws {
        server = try Peer(
            loop: loop,
            configuration: PeerConfiguration(iceRole: .controlling, certificate: try Certificate(), cname: "server"))
        sender = server.addSender(SenderConfiguration(ssrc: receiver.ssrc, clockRate: 90000))
        let peer = try Peer(
            loop: loop,
            configuration: PeerConfiguration(iceRole: .controlled, certificate: try Certificate(), cname: "client"))
        session = try DownSession(
            server: try ServerAddress("ws://127.0.0.1:1"), peer: peer, connectStarted: loop.now, seed: 1)
        server.onEvent = { [unowned self] event in if case .keyframeRequested = event { keyframeRequests += 1 } }
        session.onEvent = { [unowned self] event in if case .problem(let error) = event { problems.append(error) } }
        try server.start()
        let transport = try negotiate(1, offersCaptureTimes: offersCaptureTimes)
        try server.setRemote(try #require(transport), dtlsRole: .server)
    }

    private func negotiate(_ revision: Int, offersCaptureTimes: Bool) throws -> TransportDescription? {
        var offer = DownDescription.offer(
            sessionID: 1, revision: revision, receivers: [receiver], transport: server.local, cname: "server")
        // Without transport-wide numbers, no pacer delays the packets.
        offer.media[0].extensions.removeAll { $0.kind == .transportNumber || !offersCaptureTimes }
        let answer = try SessionDescription(parsing: try #require(try session.answer(offer, revision: revision)).sdp)
        server.setExtensions(DownDescription.acceptedExtensions(of: answer.media[0]), of: sender)
        return answer.transport
    }

    func offerAgain() {
        do { _ = try negotiate(2, offersCaptureTimes: true) } catch { Issue.record("\(error)") }
    }

    var isSecured: Bool { session.profile != nil && server.isSecured }

    /// - Parameter time: since 1970, of the first packet's capture.
    func send(_ numbers: ClosedRange<Int>, captured time: TimeInterval? = nil) {
        for number in numbers {
            let packet = packet(number, type: Codec.vp8.payloadType)
            guard var header = RTPHeader(parsing: packet) else { return }
            if let time, number == numbers.lowerBound {
                header.captureTime = AbsoluteCaptureTime(
                    NTPTime(unixNanoseconds: UInt64(time.nanoseconds)), clockOffset: 0)
            }
            server.send(packet, header: header, rewrite: Rewrite(keeping: header), via: sender)
        }
    }

    func cut(_ isCut: Bool) { server.impairment = isCut ? .cut : nil }

    /// Sends a report about the packets so far.
    func report() {
        server.clearClock(sender)
        server.setClock(sender, ntp: NTPTime(unixNanoseconds: 5), rtp: RTPTimestamp(0), at: server.loop.now)
    }

    func stopReports() { server.clearClock(sender) }

    /// Assigns a stream to the receiver.
    func assign(from first: UInt16, stream id: Int = 5, to sink: Sink? = nil) {
        let stream = AssignedStream(id: id, participant: "p-1", codec: .vp8) { [own = self.sink] _ in sink ?? own }
        #expect(session.assign(stream, to: "0", from: SequenceNumber(first)))
    }

    /// The receiver. Nil before its first packet.
    var statistics: SessionStatistics.Received? {
        session.statistics(session.figures(), index: 0, time: 0) { NTPTime(unixNanoseconds: $0.nanoseconds) }
            .received.first
    }

    func close() {
        session.close()
        server.close()
    }
}
