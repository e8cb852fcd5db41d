import RTP
import Testing
import TestSupport

@testable import PeerSession

/// A sender and a receiver of packets of which every third carries its capture time.
private final class Carrier {
    static let receivedID: UInt8 = 9
    let call: Call
    private let sender: SenderID
    let receiver: ReceiverID
    private var packet = PacketBuffer()
    private var sent: [AbsoluteCaptureTime?] = []
    private(set) var received: [Int: AbsoluteCaptureTime] = [:]
    private(set) var arrived = 0
    private(set) var extended = 0

    /// - Parameter extensions: those that the peer accepts.
    init(_ extensions: HeaderExtensionIDs, mid: String? = nil, path: Path = Path()) {
        call = Call(path: path)
        call.secure()
        sender = call.a.addSender(
            SenderConfiguration(
                ssrc: SSRC(1000), retransmissionSSRC: SSRC(1001), clockRate: 90000,
                retransmissionPayloadTypes: [96: 97], mid: mid), now: call.now)
        call.a.setExtensions(extensions, of: sender, now: call.now)
        receiver = call.b.addReceiver(
            ReceiverConfiguration(
                ssrc: SSRC(1000), retransmissionSSRC: SSRC(1001), mid: "v",
                extensions: HeaderExtensionIDs(captureTime: Self.receivedID), clockRate: 90000, payloadTypes: [96],
                retransmissionPayloadTypes: [96: 97], nack: true))
        call.onMedia = { [unowned self] _, _, header, packet in
            let number = Int(packet.bytes[header.payloadOffset]) << 8 | Int(packet.bytes[header.payloadOffset + 1])
            arrived += 1
            if header.hasExtension { extended += 1 }
            #expect(header.payloadLength == 2)
            received[number] = header.captureTime
        }
    }

    func run(_ count: Int) {
        call.every(.milliseconds(10), count: count) { [unowned self] number in
            let fits = packet.assignRTP(
                payloadType: 96, sequenceNumber: SequenceNumber(UInt16(number)), timestamp: RTPTimestamp(5),
                ssrc: SSRC(1), payload: [UInt8(number >> 8), UInt8(number & 0xff)])
            guard fits, var header = RTPHeader(parsing: packet) else { return }
            if number % 3 == 0 {
                header.captureTime = AbsoluteCaptureTime(
                    NTPTime(rawValue: UInt64(number) << 32), clockOffset: number % 2 == 0 ? nil : Int64(-number))
            }
            sent.append(header.captureTime)
            call.a.send(packet, header: header, rewrite: Rewrite(keeping: header), via: sender, now: call.now)
        }
        call.run(for: .milliseconds(Int64(count) * 10 + 1000))
    }

    var isComplete: Bool { arrived == sent.count && sent.indices.allSatisfy { received[$0] == sent[$0] } }
}

@Suite struct CaptureTimeTests {
    @Test(arguments: [nil, "v0"])
    func `capture times reach the receiver under the negotiated id, lost packets included`(mid: String?) {
        let ids = HeaderExtensionIDs(mid: mid == nil ? nil : 4, captureTime: Carrier.receivedID)
        let carrier = Carrier(ids, mid: mid, path: Path(loss: 0.1))
        carrier.run(300)
        #expect(carrier.isComplete)
    }

    @Test func `a peer that has not accepted the extension gets none`() {
        let carrier = Carrier(HeaderExtensionIDs())
        carrier.run(30)
        #expect(carrier.arrived == 30 && carrier.extended == 0)
    }

    @Test func `a receiver reads the extension under its own id only`() {
        let carrier = Carrier(HeaderExtensionIDs(captureTime: Carrier.receivedID - 1))
        carrier.run(30)
        #expect(carrier.arrived == 30 && carrier.extended == 10 && carrier.received.isEmpty)
    }

    @Test func `a receiver reads the extension under the id of a later description`() {
        let carrier = Carrier(HeaderExtensionIDs(captureTime: Carrier.receivedID - 1))
        carrier.call.b.setExtensions(HeaderExtensionIDs(captureTime: Carrier.receivedID - 1), of: carrier.receiver)
        carrier.run(30)
        #expect(carrier.isComplete)
    }

    @Test func `the counted bytes are those of the packets`() throws {
        let carrier = Carrier(HeaderExtensionIDs(captureTime: Carrier.receivedID))
        carrier.run(6)
        // Two of them with 4 bytes and an element of 9 or 17 bytes, in whole words.
        let bytes = try #require(carrier.bytes)
        #expect(bytes == 6 * (12 + 2) + (4 + 12) + (4 + 20))
    }
}

extension Carrier {
    fileprivate var bytes: Int? { call.a.statistics(of: sender)?.bytes }
}

@Suite struct RoundTripTests {
    @Test func `an end that only receives measures the round trip without losses, and its reports tell it`() throws {
        let call = Call(path: Path(delay: .milliseconds(35)))
        call.secure()
        let stream = Stream.video(call)
        call.every(.milliseconds(20), count: 500) { _ in stream.send() }
        call.run(for: .seconds(10))
        let roundTrip = try #require(call.b.statistics.roundTrip)
        #expect(abs(roundTrip.milliseconds - 70) < 0.1)
        let reports = call.events[1].compactMap { event -> SenderReport? in
            if case .senderReport(_, let report) = event { report } else { nil }
        }
        // The first precedes the other end's question.
        #expect(reports.count > 5 && reports.first?.roundTrip == nil)
        #expect(reports.dropFirst(3).allSatisfy { abs(($0.roundTrip ?? .zero).milliseconds - 70) < 0.1 })
    }

    @Test func `a report tells which packet of the stream came before it`() throws {
        let call = Call()
        call.secure()
        let stream = Stream.video(call, first: 40)
        call.every(.milliseconds(20), count: 200) { _ in stream.send() }
        call.run(for: .seconds(5))
        let packets = call.events[1].compactMap { event -> Int? in
            if case .senderReport(_, let report) = event { report.after?.number } else { nil }
        }
        #expect(packets.first == 40 + 65536)
        #expect(packets.count > 3 && zip(packets, packets.dropFirst()).allSatisfy { $0 <= $1 })
        #expect(packets.last == 239 + 65536)
    }

    @Test func `a report that tells when the last packet was sent counts from the arrival of that packet`() throws {
        let call = Call()
        call.secure()
        let stream = Stream.video(call)
        let voice = try Voice(call, to: .b)
        let timestamp = RTPTimestamp(UInt32(call.elapsed.nanoseconds / 1000 * 90_000 / 1_000_000))
        var arrival: MonotonicTime?
        let before = call.onMedia
        call.onMedia = { end, id, header, packet in
            if header.timestamp == timestamp { arrival = call.now }
            before(end, id, header, packet)
        }
        stream.send()
        call.run(for: .milliseconds(300))
        func report(_ rtp: RTPTimestamp, _ ntp: UInt64 = 1 << 40) -> SenderReport? {
            let information = SenderInformation(
                ssrc: SSRC(1000), ntp: NTPTime(rawValue: ntp), rtp: rtp, packetCount: 1, octetCount: 1100)
            call.flush()
            let earlier = call.events[1].count
            voice.say([.senderReport(information, [])])
            call.flush()
            return call.events[1].dropFirst(earlier).lazy.compactMap { event -> SenderReport? in
                if case .senderReport(_, let report) = event { report } else { nil }
            }.first
        }
        #expect(try #require(report(timestamp)).arrival == #require(arrival))
        #expect(try #require(report(timestamp.advanced(by: 1))).arrival == call.now)
        // It has no clock.
        #expect(report(timestamp, 0) == nil)
    }

    @Test func `a machine that stood still for seconds slows no repair`() throws {
        let call = Call()
        call.secure()
        let stream = Stream.video(call)
        call.every(.milliseconds(20), count: 2000) { _ in if call.stopped == nil { stream.send() } }
        for end in [Call.End.a, .b] {
            call.run(for: .seconds(8))
            call.stop(end)
            call.run(for: .milliseconds(2700))
            call.goOn()
            call.run(for: .seconds(2))
            for session in call.sessions {
                #expect(try #require(session.statistics.roundTrip) < .milliseconds(65), "\(end) stood still")
            }
        }
    }

    @Test func `a reply that was kept longer than the report is old says nothing`() throws {
        let call = Call()
        call.secure()
        let stream = Stream.video(call)
        stream.send()
        call.run(for: .seconds(3))
        let before = try #require(call.b.statistics.roundTrip)
        // To the first report, with a clock that went on while this machine was suspended.
        let reply = ExtendedReport.Reply(ssrc: SSRC(1), lastReference: 0x1_0000, delay: 3600 << 16)
        try Voice(call, to: .b).say([
            .receiverReport(SSRC(1000), []), .extendedReport(.init(ssrc: SSRC(1000), replies: [reply])),
        ])
        #expect(call.b.statistics.roundTrip == before)
        // The same reply without the delay is one.
        try Voice(call, to: .b).say([
            .receiverReport(SSRC(1000), []),
            .extendedReport(
                .init(ssrc: SSRC(1000), replies: [.init(ssrc: SSRC(1), lastReference: 0x1_0000, delay: 2 << 16)])),
        ])
        #expect(call.b.statistics.roundTrip != before)
    }

    @Test func `a reply to a time that this end never sent says nothing`() throws {
        let call = Call()
        call.secure()
        let stream = Stream.video(call)
        stream.send()
        call.run(for: .seconds(3))
        let voice = try Voice(call, to: .b)
        let before = call.b.statistics.roundTrip
        for reference: UInt32 in [0, 1, .max] {
            let reply = ExtendedReport.Reply(ssrc: SSRC(1), lastReference: reference, delay: 0)
            voice.say([.receiverReport(SSRC(1000), []), .extendedReport(.init(ssrc: SSRC(1000), replies: [reply]))])
        }
        #expect(call.b.statistics.roundTrip == before)
    }
}
