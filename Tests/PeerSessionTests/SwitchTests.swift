import PeerSession
import RTP
import Testing
import TestSupport

/// A server that carries one of two streams on a receiver, and a client that switches between them. Assignments travel
/// slower or faster than media.
private final class SwitchStage {
    final class Assignment {
        let stream: Int
        let first: SequenceNumber
        /// The frame at which the server joined the stream, and its result.
        var joined: Int?
        var keyframeParts: Set<UInt8> = []

        init(stream: Int, first: SequenceNumber) {
            self.stream = stream
            self.first = first
        }
    }

    private struct Publisher {
        var number: Int
        var frame = 0
        var isKeyframeWanted = false
    }

    let call: Call
    let sender: SenderID
    let receiver: ReceiverID
    private var random: Seeded
    private var splice: Splice
    private var publishers: [Publisher]
    private var carried: Assignment?
    private var assigned: Assignment?
    private var held = HeldPackets()
    private(set) var assignments: [Assignment] = []
    private(set) var delivered = 0
    /// Packets that went to a wrong stream, or that belong to the receiver's previous stream.
    private(set) var foreign = 0
    private(set) var overtaken = 0

    init(seed: UInt64) {
        random = Seeded(seed)
        call = Call(seed: seed, path: Path(loss: 0.05, reordering: 0.02))
        call.secure()
        let stream = Stream.video(call)
        sender = stream.sender
        receiver = stream.receiver
        splice = Splice(firstSequenceNumber: Splice.randomStart(using: &random))
        publishers = [Publisher(number: 70_000), Publisher(number: 130_000)]
        call.onMedia = { [unowned self] _, _, header, packet in take(packet, header) }
    }

    func run(switches: Int) {
        var time = call.elapsed
        for _ in 0..<switches {
            call.at(time) { [unowned self] in change() }
            time = time + .milliseconds(Int64.random(in: 300...400, using: &random))
        }
        let frames = Int((time - call.elapsed).milliseconds / 10) + 30
        call.every(.milliseconds(10), count: frames) { [unowned self] _ in
            for index in publishers.indices { publish(index) }
        }
        call.run(for: time - call.elapsed + .milliseconds(300))
    }

    /// The client releases its stream and requests another; the server's response arrives later.
    private func change() {
        assigned = nil
        let request = call.elapsed + .milliseconds(20)
        let answer = request + .milliseconds(Int64.random(in: 5...90, using: &random))
        call.at(request) { [unowned self] in
            splice.end()
            call.a.forget(sender)
            let stream = Int.random(in: 0...1, using: &random)
            let assignment = Assignment(stream: stream, first: splice.nextSequenceNumber)
            carried = assignment
            assignments.append(assignment)
            splice.begin(clockRate: 90000, clock: nil)
            publishers[stream].isKeyframeWanted = true
            call.at(answer) { [unowned self] in assign(assignment) }
        }
    }

    private func assign(_ assignment: Assignment) {
        let first = call.b.discard(before: assignment.first, on: receiver, now: call.now)
        assigned = assignment
        for packet in held.take(from: first) {
            overtaken += 1
            deliver(Array(packet.bytes.dropFirst(RTPHeader.minimumLength)))
        }
    }

    private func publish(_ index: Int) {
        let isKeyframe = publishers[index].isKeyframeWanted
        publishers[index].isKeyframeWanted = false
        publishers[index].frame += 1
        for part: UInt8 in 0..<3 {
            publishers[index].number += 1
            if carried?.stream == index { forward(index, part, isKeyframe: isKeyframe) }
        }
    }

    private func forward(_ index: Int, _ part: UInt8, isKeyframe: Bool) {
        let publisher = publishers[index]
        var packet = PacketBuffer()
        let frame = [UInt8(publisher.frame >> 8), UInt8(publisher.frame & 0xff)]
        let isFilled = packet.assignRTP(
            payloadType: 96, sequenceNumber: SequenceNumber(0), timestamp: RTPTimestamp(UInt32(publisher.frame) * 900),
            ssrc: SSRC(1), payload: [part == 0 ? 0x10 : 0, isKeyframe ? 0 : 1, UInt8(index)] + frame + [part])
        guard isFilled, let header = RTPHeader(parsing: packet),
            let payload = PayloadDescriptor(parsing: packet, header: header, as: .vp8)
        else { preconditionFailure() }
        let arrived = Splice.Packet(
            position: StreamPosition(epoch: 0, number: publisher.number), timestamp: header.timestamp, isNewest: true,
            payload: payload)
        guard let numbers = splice.take(arrived, now: call.now) else { return }
        if carried?.joined == nil { carried?.joined = publisher.frame }
        let rewrite = Rewrite(
            payloadType: 96, sequenceNumber: numbers.sequenceNumber, timestamp: numbers.timestamp, marker: part == 2,
            patch: numbers.patch)
        call.a.send(packet, header: header, rewrite: rewrite, via: sender, now: call.now)
    }

    private func take(_ packet: borrowing PacketBuffer, _ header: RTPHeader) {
        guard let position = call.positions.last else { return }
        guard assigned != nil else { return held.hold(packet, header, at: position) }
        deliver((header.payloadOffset..<header.payloadEnd).map { packet.bytes[$0] })
    }

    private func deliver(_ payload: [UInt8]) {
        guard let assigned, payload.count == 6 else { return }
        delivered += 1
        let frame = Int(payload[3]) << 8 | Int(payload[4])
        guard Int(payload[2]) == assigned.stream, let joined = assigned.joined, frame >= joined else {
            foreign += 1
            return
        }
        if frame == joined { assigned.keyframeParts.insert(payload[5]) }
    }
}

@Suite struct SwitchTests {
    @Test("After 200 switches under 5 % loss no receiver got a packet of another stream, and each got its keyframe")
    func switches() {
        let stage = SwitchStage(seed: 11)
        stage.run(switches: 200)
        #expect(stage.assignments.count == 200)
        #expect(stage.foreign == 0)
        #expect(stage.overtaken > 100, "media overtook assignments")
        #expect(stage.assignments.count { $0.keyframeParts.count < 3 } == 0)
        let givenUp = stage.call.events[1].count { $0 == .lossBeyondRepair(stage.receiver) }
        #expect(givenUp == 0, "packets were asked for in vain")
    }

    @Test("After an interruption, requests for earlier packets get empty ones")
    func withheld() {
        let call = Call()
        call.secure()
        let stream = Stream.video(call, first: 0)
        var lengths: [UInt16: Int] = [:]
        call.onMedia = { _, _, header, _ in lengths[header.sequenceNumber.rawValue] = header.payloadLength }
        stream.send()
        call.run(for: .milliseconds(100))
        call.paths[0].isCut = true
        stream.send()
        call.run(for: .milliseconds(100))
        call.paths[0].isCut = false
        call.a.withholdSent(stream.sender)
        stream.send()
        call.run(for: .milliseconds(300))
        #expect(lengths == [0: 1100, 1: 0, 2: 1100])
    }

    @Test("A sender that is silent or has no clock sends no reports; one with a new clock reports immediately")
    func reports() {
        let call = Call()
        call.secure()
        let stream = Stream.video(call)
        func reports() -> Int {
            call.events[1].count { if case .senderReport = $0 { true } else { false } }
        }
        call.a.setClock(stream.sender, ntp: NTPTime(unixNanoseconds: 1), rtp: RTPTimestamp(0), at: call.now)
        call.every(.milliseconds(20), count: 250) { _ in stream.send() }
        call.run(for: .seconds(5))
        #expect(reports() >= 3)
        call.run(for: .seconds(4))
        let afterSilence = reports()
        call.run(for: .seconds(20))
        #expect(reports() == afterSilence)
        stream.send()
        call.a.forget(stream.sender)
        call.every(.milliseconds(20), count: 250) { _ in stream.send() }
        call.run(for: .seconds(5))
        #expect(reports() == afterSilence, "the clock of the stream before")
        call.a.setClock(stream.sender, ntp: NTPTime(unixNanoseconds: 5), rtp: RTPTimestamp(0), at: call.now)
        call.run(for: .milliseconds(100))
        #expect(reports() == afterSilence + 1)
    }
}
