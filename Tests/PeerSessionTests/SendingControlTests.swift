import CongestionControl
import RTP
import Synchronization
import Testing

@testable import PeerSession

/// A call whose first end sends over a bottleneck, with transport-wide numbers or to an end that makes estimates.
final class PacedCall {
    static let numbers = HeaderExtensionIDs(transportNumber: 2)
    static let sendTimes = HeaderExtensionIDs(sendTime: 3)

    enum Feedback { case numbers, sendTimes, losses, none }

    let call: Call
    let video: Stream
    let audio: Stream
    /// The newest target in bits per second.
    private(set) var target: Int?
    /// The targets with the times of their events.
    private(set) var targets: [(at: TimeInterval, rate: Int)] = []
    private var frames = 0

    /// - Parameter rate: of the bottleneck in bits per second
    init(seed: UInt64 = 1, rate: Int?, delay: TimeInterval = .milliseconds(25), feedback: Feedback = .numbers) {
        call = Call(seed: seed, path: Path(delay: delay))
        call.paths[0].rate = rate
        video = Stream.video(call, takesEstimates: [.sendTimes, .losses].contains(feedback))
        audio = Stream.audio(call)
        switch feedback {
        case .numbers:
            for sender in [video.sender, audio.sender] {
                call.a.setExtensions(Self.numbers, of: sender, now: call.now)
            }
            for receiver in [video.receiver, audio.receiver] { call.b.setExtensions(Self.numbers, of: receiver) }
        case .sendTimes:
            call.a.setExtensions(Self.sendTimes, of: video.sender, now: call.now)
            call.b.setExtensions(Self.sendTimes, of: video.receiver)
        case .losses, .none: break
        }
    }

    /// Sends video that follows the target, up to `most` bits per second, 30 frames/s, and audio.
    ///
    /// - Parameter first: the target before there is one
    func send(for time: TimeInterval, most: Int, withAudio: Bool = true, first: Int = 300_000) {
        call.a.setDemand(bitsPerSecond: most + 60_000, now: call.now)
        var credit = 0
        call.every(.microseconds(33_333), count: Int(time.nanoseconds / 33_333_000)) { [unowned self] _ in
            follow()
            let rate = min(most, max(0, (target ?? first) - 60_000))
            credit = min(credit + rate / 30 / 8, 20_000)
            let packets = credit / 1180
            credit -= packets * 1180
            if packets > 0 { video.send(packets) }
        }
        if withAudio {
            call.every(.milliseconds(20), count: Int(time.nanoseconds / 20_000_000)) { [unowned self] _ in audio.send()
            }
        }
        call.run(for: time)
        follow()
    }

    private func follow() {
        let all = call.events[0]
        for case .sendingRate(let rate) in all[min(frames, all.count)...] {
            target = rate
            targets.append((call.elapsed, rate))
        }
        frames = all.count
    }

    var sending: SendingStatistics? { call.a.statistics.sending }

    /// The longest wait of a share of the datagrams since a time, in the bottleneck.
    func queue(_ share: Double, since start: TimeInterval) -> TimeInterval {
        let waits = call.waits[0].filter { $0.at - call.start >= start }.map(\.wait).sorted()
        return waits.isEmpty ? .zero : waits[min(waits.count - 1, Int(Double(waits.count) * share))]
    }
}

@Suite struct SendingControlTests {
    @Test("Without transport-wide numbers, packets leave at once, and nothing is estimated")
    func uncontrolled() {
        let paced = PacedCall(rate: nil, feedback: .none)
        paced.call.secure()
        paced.video.send(100)
        #expect(paced.call.a.outgoingCount >= 100)
        paced.call.run(for: .seconds(1))
        #expect(paced.video.missing == 0 && paced.sending == nil && !paced.call.a.isPaced)
        #expect(!paced.call.events[0].contains { if case .sendingRate = $0 { true } else { false } })
        #expect(paced.call.a.statistics(of: paced.video.sender)?.paddingPackets == 0)
    }

    @Test("A peer without transport-wide numbers that estimates the path is sent no more than that, in order")
    func receiverEstimates() throws {
        let paced = PacedCall(rate: 700_000, feedback: .none)
        paced.call.secure()
        let peer = try Voice(paced.call, to: .a)
        let bitsPerSecond = Mutex<UInt64>(2_000_000)
        paced.call.every(.milliseconds(200), count: 200) { _ in
            peer.say([
                .receiverEstimate(
                    ReceiverEstimate(sender: SSRC(99), bitsPerSecond: bitsPerSecond.withLock { $0 }, sources: []))
            ])
        }
        paced.send(for: .seconds(5), most: 1_500_000, withAudio: false)
        #expect(paced.call.a.isPaced && paced.target == 2_000_000)
        #expect(!paced.call.a.isCongested)
        bitsPerSecond.withLock { $0 = 400_000 }
        paced.send(for: .seconds(10), most: 1_500_000)
        #expect(paced.target == 400_000)
        // So a server leaves frames out, or forwards a lower layer.
        #expect(paced.call.a.isCongested)
        #expect(paced.queue(0.95, since: .seconds(10)) < .milliseconds(50))
        #expect(paced.call.a.statistics(of: paced.video.sender)?.paddingPackets == 0)
    }

    @Test("80 % of the link is known 500 ms after the session is secured, before there is media")
    func probes() throws {
        for rate in [500_000, 1_000_000, 3_000_000] {
            let paced = PacedCall(rate: rate)
            paced.call.secure()
            paced.call.run(for: .milliseconds(500))
            let estimate = try #require(paced.sending).estimatedBitsPerSecond
            #expect(estimate >= rate * 8 / 10 && estimate <= rate * 105 / 100, "\(rate): \(estimate)")
        }
    }

    @Test("Probes repeat recent packets once there are any, and receivers take no repeat for media")
    func padding() throws {
        let paced = PacedCall(rate: 3_000_000)
        paced.call.secure()
        paced.call.run(for: .seconds(1))
        let first = try #require(paced.call.a.statistics(of: paced.video.sender))
        // Padding alone has at most 255 bytes.
        #expect(first.paddingPackets > 0 && first.paddingBytes < 300 * first.paddingPackets)
        paced.send(for: .seconds(12), most: 1_700_000)
        // The pacer holds the last packets.
        paced.call.run(for: .milliseconds(300))
        let sent = try #require(paced.call.a.statistics(of: paced.video.sender))
        let packets = sent.paddingPackets - first.paddingPackets
        #expect(packets > 0 && sent.paddingBytes - first.paddingBytes > 800 * packets)
        #expect(sent.retransmittedPackets == 0)
        #expect(paced.video.repeated == 0 && paced.video.missing == 0)
        #expect(paced.call.b.statistics(of: paced.video.receiver)?.packets == paced.video.count)
    }

    @Test("The frames of a second are spread over time, and audio does not wait for them")
    func paces() {
        let paced = PacedCall(rate: 2_000_000)
        paced.call.secure()
        paced.send(for: .seconds(5), most: 1_500_000)
        let before = (paced.video.count, paced.audio.count)
        // A keyframe of 100 kB: at once it would fill the queue for 400 ms.
        let start = paced.call.elapsed
        paced.video.send(90)
        paced.audio.send()
        #expect(paced.call.a.outgoingCount < 45)
        paced.call.run(for: .milliseconds(80))
        #expect(paced.audio.received[before.1] == 1)
        #expect(paced.video.received[before.0...].count { $0 > 0 } < 45)
        paced.call.run(for: .milliseconds(70))
        #expect(paced.sending?.heldBytes == 0, "Nothing is held longer than 150 ms.")
        paced.call.run(for: .seconds(2))
        #expect(paced.video.received[before.0...].allSatisfy { $0 == 1 })
        #expect(paced.queue(1, since: start) < .milliseconds(330))
    }

    @Test("Numbers are in the order of sending, also of audio that overtakes video")
    func numbers() {
        let paced = PacedCall(rate: nil)
        var numbers: [SequenceNumber] = []
        let before = paced.call.onMedia
        paced.call.onMedia = { end, id, header, packet in
            if let number = TransportSequence.read(id: 2, header, in: packet) { numbers.append(number) }
            before(end, id, header, packet)
        }
        paced.call.secure()
        paced.send(for: .seconds(2), most: 500_000)
        paced.video.send(60)
        paced.audio.send()
        paced.call.run(for: .seconds(1))
        #expect(paced.video.missing + paced.audio.missing == 0)
        #expect(numbers.count == paced.video.count + paced.audio.count)
        #expect(zip(numbers, numbers.dropFirst()).allSatisfy { $1.distance(from: $0) > 0 })
    }

    @Test("A requested packet passes the pacer, and arrives")
    func repairs() {
        let paced = PacedCall(seed: 3, rate: 2_000_000)
        paced.call.paths[0].loss = 0.02
        paced.call.secure()
        paced.send(for: .seconds(10), most: 800_000)
        paced.call.run(for: .seconds(1))
        let sent = paced.call.a.statistics(of: paced.video.sender)
        #expect((sent?.retransmittedPackets ?? 0) > 5)
        #expect(paced.video.missing == 0)
        #expect(paced.call.a.statistics.dropped.unprotectable == 0)
    }

    @Test("The target follows a link that falls from 2 Mbit/s to 500 kbit/s and returns, with a short queue")
    func fallingLink() throws {
        let paced = PacedCall(rate: 2_000_000)
        paced.call.secure()
        paced.send(for: .seconds(20), most: 4_000_000)
        #expect(try #require(paced.target) > 1_400_000)
        paced.call.paths[0].rate = 500_000
        paced.send(for: .seconds(20), most: 4_000_000)
        let low = try #require(paced.target)
        #expect((350_000...525_000).contains(low), "\(low)")
        #expect(paced.queue(0.95, since: .seconds(30)) < .milliseconds(100))
        paced.call.paths[0].rate = 2_000_000
        paced.send(for: .seconds(20), most: 4_000_000)
        #expect(try #require(paced.target) > 1_400_000)
        #expect(paced.audio.missing < 10)
        #expect(paced.audio.slowest < .milliseconds(1200))
    }

    @Test("While nothing arrives, the target is 0, and the call goes on when the path does")
    func outage() throws {
        let paced = PacedCall(rate: 1_000_000)
        paced.call.secure()
        paced.send(for: .seconds(10), most: 2_000_000)
        let before = try #require(paced.target)
        paced.call.paths[0].isCut = true
        paced.send(for: .seconds(3), most: 2_000_000)
        #expect(paced.target == 0)
        paced.call.paths[0].isCut = false
        paced.send(for: .seconds(6), most: 2_000_000)

        #expect(try #require(paced.target) > before * 7 / 10)
    }

    @Test(arguments: [false, true])
    func `a path without any report is congested after 3 s of media, also if it is another path`(isOther: Bool) {
        let paced = PacedCall(rate: nil)
        paced.call.secure()
        if isOther {
            paced.send(for: .seconds(5), most: 1_000_000)
            paced.call.a.routeChanged(now: paced.call.now)
        }
        paced.call.paths[1].isCut = true
        paced.send(for: .milliseconds(2500), most: 1_000_000)
        #expect(!paced.call.a.isCongested)
        paced.send(for: .seconds(1), most: 1_000_000)
        #expect(paced.call.a.isCongested)
        paced.call.paths[1].isCut = false
        paced.send(for: .seconds(1), most: 1_000_000)
        #expect(!paced.call.a.isCongested)
    }

    @Test func `a queue of the former path is no congestion of the next one`() {
        let paced = PacedCall(rate: 300_000)
        paced.call.secure()
        // 940 kbit/s, whatever the target is.
        paced.call.every(.milliseconds(40), count: 75) { _ in paced.video.send(4) }
        paced.call.run(for: .seconds(3))
        #expect(paced.call.a.isCongested)
        paced.call.a.routeChanged(now: paced.call.now)
        #expect(!paced.call.a.isCongested)
    }

    @Test func `a report about more packets than are known counts, and so does the one that follows it`() {
        let control = SendingControl(CongestionController.Settings(), burst: .milliseconds(5))
        let start = MonotonicTime(nanoseconds: 10_000_000_000)
        /// Reports the newest packets, of which the last one arrived.
        func report(_ count: UInt16, at time: MonotonicTime) {
            let base = control.controller.nextNumber.advanced(by: -Int(count))
            control.received(
                TransportFeedback(
                    sender: SSRC(1), media: SSRC(2), base: base, count: count, referenceTime: 0, number: 0,
                    arrivals: [TransportFeedback.Arrival(offset: count - 1, ticks: 1)]), now: time)
        }
        // Nothing arrives for 4 s.
        for index in 0..<10_000 {
            control.controller.sent(bytes: 1000, now: start + .microseconds(Int64(index) * 400))
        }
        let end = start + .seconds(4)
        report(9000, at: end)
        #expect(control.lastReport == end)
        for _ in 0..<20 { control.controller.sent(bytes: 1000, now: end) }
        report(20, at: end + .milliseconds(5))
        #expect(control.lastReport == end + .milliseconds(5))
    }

    @Test("Video without audio goes on after an outage", arguments: [2, 4, 6, 8])
    func outageOfVideo(seconds: Int64) throws {
        let paced = PacedCall(rate: 1_000_000)
        paced.call.secure()
        paced.send(for: .seconds(10), most: 2_000_000, withAudio: false)
        let before = try #require(paced.target)
        paced.call.paths[0].isCut = true
        paced.send(for: .seconds(seconds), most: 2_000_000, withAudio: false)
        paced.call.paths[0].isCut = false
        paced.send(for: .seconds(6), most: 2_000_000, withAudio: false)

        #expect(try #require(paced.target) > before * 7 / 10)
    }

    @Test("The target is news at least once a second, and not with each packet")
    func news() {
        let paced = PacedCall(rate: 2_000_000)
        paced.call.secure()
        paced.send(for: .seconds(20), most: 1_000_000)
        let late = paced.targets.filter { $0.at > .seconds(5) }.map(\.at)
        #expect(zip(late, late.dropFirst()).allSatisfy { $1 - $0 <= .milliseconds(1200) })
        #expect(late.count < 100)
    }

    @Test("A stall of this end does not count as a queue of the path")
    func stall() throws {
        let paced = PacedCall(rate: 2_000_000)
        paced.call.secure()
        paced.send(for: .seconds(10), most: 1_000_000)
        let before = try #require(paced.sending)
        paced.call.stop(.a)
        paced.call.run(for: .seconds(2))
        paced.call.a.stalled(for: .seconds(2), now: paced.call.now)
        paced.call.goOn()
        paced.send(for: .milliseconds(500), most: 1_000_000)
        let after = try #require(paced.sending)
        #expect(after.targetBitsPerSecond > before.targetBitsPerSecond * 9 / 10)
        #expect(try #require(after.roundTrip) < .milliseconds(120))
        #expect(after.queue < .milliseconds(50))
    }

    @Test("Packets that a stream has sent leave before its end")
    func removal() {
        let paced = PacedCall(rate: nil)
        paced.call.secure()
        paced.call.run(for: .seconds(6))
        paced.video.send(100)
        paced.call.a.removeSender(paced.video.sender, now: paced.call.now)
        paced.call.run(for: .seconds(1))
        #expect(paced.video.missing == 0)
        #expect(paced.sending?.heldBytes == 0)
    }

    @Test("An end that sends no media sends no probes, and reports what arrives")
    func reports() {
        let paced = PacedCall(rate: nil)
        paced.call.secure()
        paced.send(for: .seconds(2), most: 300_000)
        #expect(!paced.call.b.isPaced && paced.call.b.statistics.sending == nil)
        // A report each 50 to 250 ms.
        #expect((8...60).contains(paced.call.timeouts[1]), "\(paced.call.timeouts)")
    }
}
