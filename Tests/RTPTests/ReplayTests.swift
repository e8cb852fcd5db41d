import Testing
import TestSupport

@testable import RTP

/// A published stream with one receiver that is there from the start and others that come later, as the room server
/// connects them.
private final class ReplayStage {
    /// A packet as a receiver gets it.
    struct Received: Equatable {
        /// The publisher's number.
        var number: Int
        var sequenceNumber: SequenceNumber
        var timestamp: RTPTimestamp
        var pictureID: UInt16?
        /// The low byte of the number, from the store.
        var byte: UInt8?
    }

    final class Receiver {
        var splice: Splice
        var replay: Replay?
        var received: [Received] = []
        var outcome: Replay.Outcome?

        init(first: UInt16) { splice = Splice(firstSequenceNumber: SequenceNumber(first)) }

        var numbers: [Int] { received.map(\.number) }

        /// Whether each packet's number follows that of the packet before.
        var isContiguous: Bool {
            zip(received, received.dropFirst()).allSatisfy {
                $1.sequenceNumber.distance(from: $0.sequenceNumber) == 1
            }
        }
    }

    let store = PacketStore()
    var recent = RecentPackets()
    var now = MonotonicTime.zero + .seconds(100)
    var epoch = 0
    private var newest = Int.min
    private var receivers: [Receiver] = []

    /// - Parameter replays: false for a receiver that waits for the next keyframe.
    func join(_ receiver: Receiver = Receiver(first: 100), replays: Bool = true) -> Receiver {
        receiver.splice.begin(clockRate: 90000, clock: nil, epoch: newest == .min ? nil : epoch)
        receiver.replay = replays ? recent.start(now: now).map { Replay(from: $0) } : nil
        receivers.append(receiver)
        return receiver
    }

    func leave(_ receiver: Receiver) {
        receiver.splice.end()
        receiver.replay = nil
        receivers.removeAll { $0 === receiver }
    }

    func beginEpoch() {
        epoch += 1
        newest = .min
        recent.forgetKeyframe()
        for receiver in receivers { receiver.replay = nil }
    }

    /// A packet of VP8, a complete frame.
    func publish(_ number: Int, keyframe: Bool = false, timestamp: UInt32? = nil, length: Int = 100) {
        let id = UInt16(number & 0x7fff)
        publish(
            number, timestamp: timestamp ?? UInt32(truncatingIfNeeded: number * 3000),
            [0x90, 0x80, 0x80 | UInt8(id >> 8), UInt8(id & 0xff), keyframe ? 0 : 1]
                + [UInt8](repeating: UInt8(number & 0xff), count: length - 5), as: .vp8)
    }

    /// A packet of padding, if the payload is empty.
    func publish(_ number: Int, timestamp: UInt32, _ payload: [UInt8], as codec: PayloadDescriptor.Codec) {
        var buffer = PacketBuffer()
        let fits = buffer.assignRTP(
            payloadType: 96, sequenceNumber: SequenceNumber(UInt16(truncatingIfNeeded: number)),
            timestamp: RTPTimestamp(timestamp), ssrc: SSRC(1), payload: payload)
        guard fits, let header = RTPHeader(parsing: buffer) else { preconditionFailure() }
        let packet = RecentPackets.Packet(
            position: StreamPosition(epoch: epoch, number: number), timestamp: header.timestamp, marker: true,
            isNewest: number > newest,
            payload: payload.isEmpty ? nil : PayloadDescriptor(parsing: buffer, header: header, as: codec),
            arrival: now)
        newest = max(newest, number)
        let index = store.add(
            buffer, header.payloadOffset..<header.payloadEnd, timestamp: header.timestamp, marker: true, now: now)
        recent.add(packet, at: index, length: payload.count)
        for receiver in receivers where receiver.replay == nil { deliver(index, packet, to: receiver) }
    }

    private func deliver(_ index: Int, _ packet: RecentPackets.Packet, to receiver: Receiver) {
        guard let payload = packet.payload else {
            _ = receiver.splice.leaveOut(packet.position, timestamp: packet.timestamp)
            return
        }
        let arrived = Splice.Packet(
            position: packet.position, timestamp: packet.timestamp, isNewest: packet.isNewest, payload: payload)
        guard let numbers = receiver.splice.take(arrived, now: packet.arrival) else { return }
        var pictureID: UInt16?
        if case .picture(let rewrite)? = numbers.patch { pictureID = rewrite.pictureID }
        receiver.received.append(
            Received(
                number: packet.position.number, sequenceNumber: numbers.sequenceNumber, timestamp: numbers.timestamp,
                pictureID: pictureID, byte: store.withPayload(index) { $0.count > 5 ? $0[5] : nil }))
    }

    /// Sends the share of a receiver that it may be sent now.
    func turn(_ receiver: Receiver) {
        guard var replay = receiver.replay else { return }
        let outcome = replay.run(recent, of: store, now: now) { deliver($0, $1, to: receiver) }
        receiver.outcome = outcome
        if case .more = outcome { receiver.replay = replay } else { receiver.replay = nil }
    }

    func finish(_ receiver: Receiver) {
        while receiver.replay != nil { turn(receiver) }
    }

    func pass(_ milliseconds: Int64) { now = now + .milliseconds(milliseconds) }
}

@Suite struct ReplayTests {
    @Test("A late receiver gets the last keyframe and what followed, then live packets, across wraps of both numbers")
    func late() {
        let stage = ReplayStage()
        stage.publish(65500)
        stage.publish(65501, keyframe: true)
        stage.publish(65502)
        stage.publish(65530, keyframe: true)
        for number in 65531..<65550 { stage.publish(number) }
        stage.pass(900)
        let receiver = stage.join(ReplayStage.Receiver(first: 65525))
        stage.finish(receiver)
        #expect(receiver.outcome == .caughtUp)
        for number in 65550..<65560 { stage.publish(number) }
        #expect(receiver.numbers == Array(65530..<65560))
        #expect(receiver.isContiguous)
        #expect(receiver.received.first?.sequenceNumber == SequenceNumber(65525))
        #expect(receiver.received.last?.sequenceNumber == SequenceNumber(18))
        for packet in receiver.received { #expect(packet.byte == UInt8(packet.number & 0xff)) }
    }

    @Test("A replay sends a share at once, and live packets that arrive meanwhile wait for their turn")
    func pace() {
        let stage = ReplayStage()
        stage.publish(1, keyframe: true)
        for number in 2...40 { stage.publish(number) }
        let receiver = stage.join()
        var turns = 0
        var live = 41
        while receiver.replay != nil {
            let before = receiver.received.count
            stage.turn(receiver)
            turns += 1
            #expect(receiver.received.count - before <= Replay.share)
            if case .more(let time) = receiver.outcome { #expect(time == stage.now + Replay.interval) }
            stage.pass(2)
            if live <= 50 {
                for _ in 0..<3 {
                    stage.publish(live)
                    live += 1
                }
            }
        }
        #expect(turns == (live - 1 + Replay.share - 1) / Replay.share)
        #expect(receiver.numbers == Array(1..<live))
        #expect(receiver.isContiguous)
    }

    @Test("Nothing is replayed from a keyframe that is too old, or has too many packets or bytes behind it")
    func limits() {
        for (count, length, isPossible) in [
            (512, 100, true), (513, 100, false), (512, 1024, true), (512, 1025, false),
        ] {
            let stage = ReplayStage()
            stage.publish(0, keyframe: true, length: length)
            for number in 1..<count { stage.publish(number, length: length) }
            let receiver = stage.join()
            #expect((receiver.replay != nil) == isPossible, "\(count) packets of \(length) bytes")
            stage.finish(receiver)
            #expect(receiver.received.count == (isPossible ? count : 0))
        }
        for (age, isPossible) in [(Int64(1000), true), (1001, false)] {
            for packets in [[Int64](), [500]] {
                let stage = ReplayStage()
                stage.publish(0, keyframe: true)
                for time in packets {
                    stage.pass(time)
                    stage.publish(1)
                }
                stage.pass(age - packets.reduce(0, +))
                #expect((stage.join().replay != nil) == isPossible, "a keyframe of \(age) ms")
            }
        }
    }

    @Test("Memory grows with the packets that a receiver can begin with")
    func memory() {
        let slow = ReplayStage()
        for number in 0..<1000 {
            slow.publish(number, keyframe: number % 500 == 0)
            slow.pass(10)
        }
        #expect(slow.recent.capacity == 256)
        let fast = ReplayStage()
        for number in 0..<3000 { fast.publish(number, keyframe: number == 0) }
        #expect(fast.recent.capacity == 1024)
        // With room for live packets until the receiver comes to them.
        fast.publish(3000, keyframe: true)
        for number in 3001..<3512 { fast.publish(number) }
        let receiver = fast.join()
        for number in 3512..<4000 { fast.publish(number) }
        fast.finish(receiver)
        #expect(receiver.numbers == Array(3000..<4000))
    }

    @Test("A lost packet that arrives later, before or after a receiver joins, gets its place")
    func repaired() {
        for isRepairedBefore in [true, false] {
            let stage = ReplayStage()
            stage.publish(10, keyframe: true)
            stage.publish(12)
            stage.publish(13)
            if isRepairedBefore { stage.publish(11) }
            let receiver = stage.join()
            stage.finish(receiver)
            if !isRepairedBefore { stage.publish(11) }
            stage.publish(14)
            #expect(receiver.numbers == [10, 12, 13, 11, 14])
            #expect(receiver.received.map(\.sequenceNumber.rawValue) == [100, 102, 103, 101, 104])
        }
    }

    @Test("A packet from before the keyframe is not sent, and packets that overtook a keyframe follow it")
    func reordered() {
        let stage = ReplayStage()
        stage.publish(10, keyframe: true)
        stage.publish(9)
        stage.publish(11)
        stage.publish(14)
        stage.publish(13, keyframe: true)
        let receiver = stage.join()
        stage.finish(receiver)
        #expect(receiver.numbers == [13, 14])
        #expect(receiver.received.map(\.sequenceNumber.rawValue) == [100, 101])
        stage.publish(15)
        #expect(receiver.numbers == [13, 14, 15])
    }

    @Test("A keyframe of 150 packets whose first one is repaired last is replayed whole, from its first packet")
    func repairedFirst() {
        let stage = ReplayStage()
        for number in 0..<10 { stage.publish(number) }
        for number in 11..<160 { stage.publish(number, timestamp: 30000) }
        stage.publish(10, keyframe: true, timestamp: 30000)
        let receiver = stage.join()
        stage.finish(receiver)
        #expect(receiver.numbers == [10] + Array(11..<160))
        #expect(receiver.isContiguous)
    }

    @Test("A receiver does not begin at a repaired keyframe if packets that overtook it are no longer here")
    func overtakersGone() {
        let stage = ReplayStage()
        for number in 0..<10 { stage.publish(number) }
        for number in 11..<700 { stage.publish(number) }
        stage.publish(10, keyframe: true)
        #expect(stage.join().replay == nil)
        // Nor if packets were left out while nobody watched.
        let unwatched = ReplayStage()
        for number in 0..<3 { unwatched.publish(number) }
        unwatched.recent.forgetKeyframe()
        for number in 5..<8 { unwatched.publish(number) }
        unwatched.publish(3, keyframe: true)
        #expect(unwatched.join().replay == nil)
    }

    @Test("A late packet of an older keyframe does not replace a newer one")
    func olderKeyframe() {
        let stage = ReplayStage()
        stage.publish(10, keyframe: true)
        stage.publish(12, keyframe: true)
        stage.publish(11, keyframe: true)
        stage.publish(13)
        let receiver = stage.join()
        stage.finish(receiver)
        #expect(receiver.numbers == [12, 13])
    }

    @Test("Padding among the replayed packets leaves no gap")
    func padding() {
        let stage = ReplayStage()
        stage.publish(10, keyframe: true)
        stage.publish(11, timestamp: 0, [], as: .vp8)
        stage.publish(12)
        let receiver = stage.join()
        stage.publish(13, timestamp: 0, [], as: .vp8)
        stage.publish(14)
        stage.finish(receiver)
        #expect(receiver.numbers == [10, 12, 14])
        #expect(receiver.isContiguous)
    }

    @Test("A restart of the stream ends a replay, and nobody begins at a keyframe from before it")
    func restart() {
        let stage = ReplayStage()
        stage.publish(1000, keyframe: true)
        for number in 1001..<1030 { stage.publish(number) }
        let receiver = stage.join()
        stage.turn(receiver)
        stage.beginEpoch()
        stage.publish(5)
        #expect(stage.join().replay == nil)
        stage.publish(6, keyframe: true)
        let late = stage.join()
        stage.finish(late)
        stage.publish(7)
        #expect(receiver.numbers == Array(1000..<(1000 + Replay.share)) + [6, 7])
        #expect(receiver.isContiguous)
        #expect(late.numbers == [6, 7])
    }

    @Test("A receiver that changes to another stream continues its numbers, timestamps and picture ids by a replay")
    func change() throws {
        let (first, second) = (ReplayStage(), ReplayStage())
        first.publish(1, keyframe: true)
        for number in 2...20 { first.publish(number) }
        let receiver = first.join()
        first.turn(receiver)
        first.leave(receiver)
        first.publish(21)
        second.pass(600)
        second.publish(500, keyframe: true)
        second.publish(501)
        second.pass(300)
        _ = second.join(receiver)
        second.finish(receiver)
        second.publish(502)
        #expect(receiver.numbers == Array(1...Replay.share) + [500, 501, 502])
        #expect(receiver.isContiguous)
        let last = receiver.received[Replay.share - 1]
        let joined = receiver.received[Replay.share]
        // From arrival to arrival, whenever the receiver joins.
        #expect(joined.timestamp.distance(from: last.timestamp) == 600 * 90)
        #expect(receiver.received.suffix(3).map(\.pictureID) == [9, 10, 11])
        #expect(receiver.received[Replay.share + 2].timestamp.distance(from: joined.timestamp) == 6000)
    }

    @Test("A replay of a keyframe from before the last packet of the previous stream does not turn timestamps back")
    func changeToAnOlderKeyframe() {
        let (first, second) = (ReplayStage(), ReplayStage())
        second.publish(500, keyframe: true)
        second.publish(501)
        first.pass(400)
        first.publish(1, keyframe: true)
        let receiver = first.join()
        first.finish(receiver)
        first.leave(receiver)
        second.pass(400)
        _ = second.join(receiver)
        second.finish(receiver)
        #expect(receiver.numbers == [1, 500, 501])
        #expect(receiver.received[1].timestamp.distance(from: receiver.received[0].timestamp) == 1)
        #expect(receiver.received[2].timestamp.distance(from: receiver.received[1].timestamp) == 3000)
    }

    @Test("A replay that is overtaken by a flood of live packets ends before it skips one")
    func overtaken() {
        let stage = ReplayStage()
        stage.publish(0, keyframe: true)
        for number in 1..<20 { stage.publish(number) }
        let receiver = stage.join()
        stage.turn(receiver)
        for number in 20..<2000 { stage.publish(number) }
        stage.finish(receiver)
        #expect(receiver.outcome == .overtaken)
        #expect(receiver.numbers == Array(0..<Replay.share))
        // Nor when only the payloads are gone.
        let large = ReplayStage()
        large.publish(0, keyframe: true, length: 1400)
        for number in 1..<20 { large.publish(number, length: 1400) }
        let other = large.join()
        for number in 20..<900 { large.publish(number, length: 1400) }
        large.finish(other)
        #expect(other.outcome == .overtaken)
    }

    @Test("A keyframe of H.264 begins with its parameter sets, and not with a later slice")
    func parameterSets() {
        let stage = ReplayStage()
        func publish(_ number: Int, _ type: UInt8, timestamp: UInt32) {
            stage.publish(number, timestamp: timestamp, [type, 1, 2, 3, 4, 5], as: .h264)
        }
        for (number, type) in [(1, UInt8(7)), (2, 8), (3, 5), (4, 5)] { publish(number, type, timestamp: 9000) }
        publish(5, 1, timestamp: 12000)
        let receiver = stage.join()
        stage.finish(receiver)
        #expect(receiver.numbers == [1, 2, 3, 4, 5])
        stage.recent.forgetKeyframe()
        publish(6, 5, timestamp: 9000)
        #expect(stage.join().replay == nil, "nothing begins inside a keyframe")
        publish(7, 7, timestamp: 15000)
        #expect(stage.join().replay != nil)
    }

    @Test("Receivers that join at any time get the packets that a receiver from the start gets, as it gets them")
    func anyTime() {
        for seed: UInt64 in 1...10 { run(seed) }
    }

    private func run(_ seed: UInt64) {
        var random = Seeded(seed)
        let stage = ReplayStage()
        let first = stage.join(replays: false)
        var late: [(receiver: ReplayStage.Receiver, isReplayed: Bool)] = []
        var delayed: [Int] = []
        var number = 65000
        for frame in 0..<600 {
            stage.pass(5)
            let isKeyframe = frame % 150 == 0
            for part in 0..<Int.random(in: 1...4, using: &random) {
                number += 1
                let isStart = isKeyframe && part == 0
                switch Int.random(in: 0..<100, using: &random) {
                case 0..<3 where !isStart: delayed.append(number)
                case 3..<5 where !isStart: break
                case 5..<8 where !isStart: stage.publish(number, timestamp: 0, [], as: .vp8)
                default: stage.publish(number, keyframe: isStart)
                }
            }
            if !delayed.isEmpty, Bool.random(using: &random) { stage.publish(delayed.removeFirst()) }
            if frame % 25 == 10 {
                let receiver = stage.join()
                late.append((receiver, receiver.replay != nil))
            }
            for (receiver, _) in late { stage.turn(receiver) }
        }
        #expect(late.count { $0.isReplayed } == late.count, "keyframes are 750 ms apart")
        for (receiver, _) in late {
            stage.finish(receiver)
            guard let start = receiver.received.first?.number else {
                Issue.record("seed \(seed): a receiver got nothing")
                continue
            }
            let expected = first.received.drop { $0.number != start }.filter { $0.number >= start }
            guard receiver.numbers == expected.map(\.number), let base = expected.first else {
                Issue.record("seed \(seed): other packets from \(start) on")
                continue
            }
            let isSame = zip(receiver.received, expected).allSatisfy {
                $0.sequenceNumber.distance(from: SequenceNumber(100))
                    == $1.sequenceNumber.distance(from: base.sequenceNumber)
                    && $0.timestamp == $1.timestamp && $0.byte == $1.byte
            }
            #expect(isSame, "seed \(seed): other numbers from \(start) on")
        }
    }
}
