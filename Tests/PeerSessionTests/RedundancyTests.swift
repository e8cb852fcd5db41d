import PeerSession
import RTP
import TestSupport
import Testing

/// Opus from end a to end b, a packet each 20 ms, with or without RED.
private final class Speech {
    private static let type: UInt8 = 111
    private static let redundant: UInt8 = 63

    let sender: SenderID
    let receiver: ReceiverID
    private let call: Call
    private let first: UInt16
    private let length: Int
    private(set) var count = 0
    /// How often each packet arrived.
    private(set) var received: [Int] = []
    /// The longest time from a packet until it arrived, by itself or as a copy.
    private(set) var slowest = TimeInterval.zero
    private var sentAt: [MonotonicTime] = []
    /// The datagrams of each payload type.
    private(set) var sent: [UInt8: Int] = [:]
    private(set) var copiesSentAt: [MonotonicTime] = []

    init(_ call: Call, first: UInt16 = 65_500, length: Int = 80, accepts: Bool = true, hasFeedback: Bool = true) {
        (self.call, self.first, self.length) = (call, first, length)
        var sending = SenderConfiguration(ssrc: SSRC(2000), clockRate: 48000, isAudio: true)
        if accepts { sending.redundancyPayloadTypes = [Self.type: Self.redundant] }
        sender = call.a.addSender(sending, now: call.now)
        receiver = call.b.addReceiver(
            ReceiverConfiguration(
                ssrc: SSRC(2000), mid: "a", clockRate: 48000, payloadTypes: [Self.type],
                redundancyPayloadTypes: [Self.type: Self.redundant], nack: false))
        if hasFeedback {
            let numbers = HeaderExtensionIDs(transportNumber: 2)
            call.a.setExtensions(numbers, of: sender, now: call.now)
            call.b.setExtensions(numbers, of: receiver)
        }
        call.onMedia = { [unowned self] _, _, header, packet in take(header, packet) }
        call.inspect = { [unowned self, unowned call] end, bytes in
            guard end == .a, bytes[0] >= 128, !(192...223).contains(bytes[1]) else { return }
            sent[bytes[1] & 0x7f, default: 0] += 1
            if bytes[1] & 0x7f == Self.redundant { copiesSentAt.append(call.now) }
        }
    }

    func play(seconds: Int) {
        call.every(.milliseconds(20), count: seconds * 50) { [self] _ in send() }
        call.run(for: .seconds(Int64(seconds)) + .milliseconds(500))
    }

    func send() {
        var payload = [UInt8](repeating: UInt8(truncatingIfNeeded: count), count: length)
        payload[0] = 0xf8
        for byte in 0..<4 { payload[1 + byte] = UInt8(truncatingIfNeeded: count >> (8 * byte)) }
        var packet = PacketBuffer()
        let ticks = UInt32(truncatingIfNeeded: call.elapsed.nanoseconds / 1000 * 48 / 1000)
        precondition(
            packet.assignRTP(
                payloadType: Self.type, sequenceNumber: SequenceNumber(first).advanced(by: count),
                timestamp: RTPTimestamp(ticks), ssrc: SSRC(7), payload: payload))
        guard let header = RTPHeader(parsing: packet) else { preconditionFailure() }
        count += 1
        sentAt.append(call.now)
        received.append(0)
        call.a.send(packet, header: header, rewrite: Rewrite(keeping: header), via: sender, now: call.now)
    }

    private func take(_ header: RTPHeader, _ packet: borrowing PacketBuffer) {
        var number = 0
        for byte in 0..<4 { number |= Int(packet.bytes[header.payloadOffset + 1 + byte]) << (8 * byte) }
        guard number < count, header.payloadLength == length, packet.count == header.payloadEnd else {
            Issue.record("A packet that was never sent: \(number)")
            return
        }
        #expect(header.sequenceNumber == SequenceNumber(first).advanced(by: number))
        #expect(header.payloadType == Self.type && header.ssrc == SSRC(2000))
        received[number] += 1
        slowest = max(slowest, call.now - sentAt[number])
    }

    /// The share of packets that never arrived, from a second on.
    func missing(from second: Int = 0) -> Double {
        let counted = received.dropFirst(second * 50)
        return Double(counted.count { $0 == 0 }) / Double(counted.count)
    }

    var repeated: Int { received.count { $0 > 1 } }
}

@Suite struct RedundancyTests {
    @Test(arguments: [1, 2, 3])
    func `at 10 % loss, one packet in five hundred is missing, and none comes twice`(seed: Int) throws {
        let call = Call(seed: UInt64(seed), path: Path(loss: 0.1))
        call.secure()
        let speech = Speech(call)
        speech.play(seconds: 120)
        // Two copies: 0.1 % are left. The first reports take a few seconds.
        #expect(speech.missing(from: 15) < 0.004)
        #expect(speech.repeated == 0)
        // Two packets after its own, and the path.
        #expect(speech.slowest <= .milliseconds(60))
        let receiving = try #require(call.b.statistics(of: speech.receiver))
        #expect(receiving.recoveredFromCopies > 400 && receiving.recovered == receiving.recoveredFromCopies)
        // Reports still show the network's loss, or copies would end while they are needed.
        #expect(abs(Double(receiving.lost) / Double(speech.count) - 0.1) < 0.02)
        #expect(call.b.statistics.dropped.malformed == 0)
    }

    @Test func `a clean path carries no copies`() throws {
        let call = Call()
        call.secure()
        let speech = Speech(call)
        speech.play(seconds: 30)
        #expect(speech.sent[63] == nil && speech.missing() == 0)
        #expect(try #require(call.a.statistics(of: speech.sender)).redundantBytes == 0)
    }

    @Test func `copies begin within seconds of the losses, and end after them`() throws {
        let call = Call()
        call.secure()
        let speech = Speech(call)
        speech.play(seconds: 10)
        call.paths[0].loss = 0.1
        speech.play(seconds: 5)
        #expect(speech.sent[63] ?? 0 > 50)
        call.paths[0].loss = 0
        speech.play(seconds: 40)
        let before = speech.sent[63] ?? 0
        speech.play(seconds: 10)
        #expect(speech.sent[63] == before)
    }

    @Test func `a peer that accepts no RED gets none`() {
        let call = Call(path: Path(loss: 0.1))
        call.secure()
        let speech = Speech(call, accepts: false)
        speech.play(seconds: 30)
        #expect(speech.sent[63] == nil && speech.missing() > 0.05)
    }

    @Test func `with duplicated and reordered packets, each arrives once`() {
        let call = Call(seed: 2, path: Path(loss: 0.1, duplication: 0.2, reordering: 0.2, detour: .milliseconds(45)))
        call.secure()
        let speech = Speech(call)
        speech.play(seconds: 60)
        #expect(speech.repeated == 0 && speech.missing(from: 15) < 0.02)
    }

    @Test func `packets with copies are at most as long as others may be`() throws {
        let call = Call(path: Path(loss: 0.1))
        call.secure()
        let speech = Speech(call, length: 600)
        var longest = 0
        let inspect = call.inspect
        call.inspect = { end, bytes in
            inspect(end, bytes)
            if end == .a { longest = max(longest, bytes.count) }
        }
        speech.play(seconds: 60)
        // A second copy does not fit into 1400 bytes.
        #expect(longest > 1200 && longest <= 1400 + 32)
        #expect(speech.missing(from: 15) < 0.03)
    }

    @Test func `copies in a packet that came as a copy before are not lost`() {
        let call = Call(path: Path(loss: 0.1))
        call.secure()
        let speech = Speech(call)
        speech.play(seconds: 20)
        call.paths[0].isCut = true
        var datagrams: [[UInt8]] = []
        call.inspect = { end, bytes in
            if end == .a, bytes[0] >= 128, bytes[1] & 0x7f == 63 || bytes[1] & 0x7f == 111 { datagrams.append(bytes) }
        }
        call.every(.milliseconds(20), count: 4) { _ in speech.send() }
        call.run(for: .milliseconds(70))
        #expect(datagrams.count == 4)
        // The last one has copies of the two before. The third one has copies of the first two.
        call.deliver(datagrams[3], to: .b)
        #expect(Array(speech.received.suffix(4)) == [0, 1, 1, 1])
        call.deliver(datagrams[2], to: .b)
        #expect(Array(speech.received.suffix(4)) == [1, 1, 1, 1])
        call.deliver(datagrams[0], to: .b)
        #expect(Array(speech.received.suffix(4)) == [1, 1, 1, 1])
    }

    @Test func `silence does not make the expected loss sink`() throws {
        let call = Call(path: Path(loss: 0.1))
        call.secure()
        let speech = Speech(call)
        speech.play(seconds: 20)
        let before = try #require(call.a.statistics(of: speech.sender)).expectedLoss
        #expect(before.copies == 2)
        call.run(for: .seconds(60))
        let after = try #require(call.a.statistics(of: speech.sender)).expectedLoss
        #expect(after.copies == 2)
    }

    @Test func `without transport-wide feedback, a packet has one copy at most`() throws {
        let call = Call(path: Path(loss: 0.1))
        call.secure()
        let speech = Speech(call, hasFeedback: false)
        speech.play(seconds: 30)
        let sent = try #require(call.a.statistics(of: speech.sender))
        #expect(sent.expectedLoss.copies == 2 && sent.redundantPackets > 500)
        // Two headers and the copy.
        #expect(sent.redundantBytes == sent.redundantPackets * (4 + 1 + 80))
    }

    @Test func `with estimates of the receiver alone, a packet has one copy at most`() throws {
        let call = Call(path: Path(loss: 0.1))
        call.secure()
        let speech = Speech(call, hasFeedback: false)
        let peer = try Voice(call, to: .a)
        call.every(.milliseconds(500), count: 60) { _ in
            peer.say([.receiverEstimate(ReceiverEstimate(sender: SSRC(99), bitsPerSecond: 1_000_000, sources: []))])
        }
        speech.play(seconds: 30)
        let sent = try #require(call.a.statistics(of: speech.sender))
        #expect(call.a.isPaced && sent.expectedLoss.copies == 2 && sent.redundantPackets > 500)
        #expect(sent.redundantBytes == sent.redundantPackets * (4 + 1 + 80))
    }

    @Test func `copies end as soon as there is a queue, and return some seconds after it`() throws {
        let call = Call(path: Path(loss: 0.1))
        call.paths[1].loss = 0
        call.secure()
        let speech = Speech(call)
        speech.play(seconds: 20)
        // Audio needs less without copies, and more with them.
        call.paths[0].rate = 70_000
        let begun = call.now
        speech.play(seconds: 2)
        let longest = try #require(call.waits[0].filter { $0.at >= begun }.map(\.wait).max())
        #expect(longest > .milliseconds(50) && longest < .milliseconds(250), "\(longest)")
        call.paths[0].rate = nil
        speech.play(seconds: 8)
        let copies = speech.copiesSentAt.filter { $0 >= begun }
        let pause = try #require(zip(copies, copies.dropFirst()).map { $1 - $0 }.max())
        #expect(pause >= .seconds(3) && pause < .seconds(6), "\(pause)")
    }

    @Test func `copies end while no feedback arrives`() {
        let call = Call(path: Path(loss: 0.1))
        call.secure()
        let speech = Speech(call)
        speech.play(seconds: 20)
        call.paths[1].isCut = true
        speech.play(seconds: 8)
        let before = speech.sent[63] ?? 0
        speech.play(seconds: 2)
        #expect(before > 500 && speech.sent[63] == before)
    }

    @Test func `copies of another stream on the same sender are never sent`() {
        let call = Call(path: Path(loss: 0.1))
        call.secure()
        let speech = Speech(call)
        speech.play(seconds: 20)
        #expect(speech.sent[63] ?? 0 > 500)
        call.a.forget(speech.sender)
        let plain = speech.sent[111] ?? 0
        speech.send()
        call.flush()
        #expect(speech.sent[111] == plain + 1)
    }
}
