import RTP
import TestSupport
import Testing

@testable import CongestionControl

@Suite struct PacerTests {
    /// Runs the pacer up to a time, in milliseconds, and lists what it granted when.
    private func run(_ pacer: Pacer, until end: Double) -> [(at: Double, grant: Pacer.Grant)] {
        var grants: [(at: Double, grant: Pacer.Grant)] = []
        var now = at(0)
        while now <= at(end) {
            while let grant = pacer.next(now: now) {
                grants.append(((now - at(0)).milliseconds, grant))
                if case .padding(let bytes, _) = grant { pacer.paddingSent(bytes: bytes, now: now) }
            }
            now = max(pacer.nextTimeout, now + .microseconds(10))
        }
        return grants
    }

    private func handles(_ grants: [(at: Double, grant: Pacer.Grant)]) -> [Int] {
        grants.compactMap { if case .packet(let handle, _, _, _) = $0.grant { handle } else { nil } }
    }

    @Test("Audio leaves immediately, then come retransmissions and video, then padding")
    func priorities() {
        let pacer = Pacer(rate: .kilobits(1000))
        for (handle, kind) in [PacketKind.padding, .video, .video, .retransmission, .audio].enumerated() {
            pacer.enqueue(handle: handle, bytes: 1250, kind: kind, now: at(0))
        }
        let grants = run(pacer, until: 100)
        #expect(handles(grants) == [4, 3, 1, 2, 0])
        #expect(grants.first?.at == 0)
        #expect(pacer.queuedPackets == 0 && pacer.queuedBytes == 0)
        #expect(pacer.nextTimeout == .never)
    }

    @Test("Packets leave at the pacing rate")
    func rate() {
        let pacer = Pacer(rate: .kilobits(1000))
        for handle in 0..<8 { pacer.enqueue(handle: handle, bytes: 1250, kind: .video, now: at(0)) }
        let times = run(pacer, until: 200).map(\.at)
        for (index, time) in times.enumerated() { #expect(abs(time - Double(index) * 10) < 0.1) }
    }

    @Test("The packets of a burst leave together, and the next burst when they are paid for")
    func bursts() {
        for (burst, packets) in [(5, 1), (20, 4), (40, 8)] {
            let pacer = Pacer(rate: .kilobits(2000), burst: .milliseconds(Int64(burst)))
            for handle in 0..<16 { pacer.enqueue(handle: handle, bytes: 1250, kind: .video, now: at(0)) }
            let times = run(pacer, until: 200).map(\.at)
            #expect(times.count == 16 && Set(times.map { ($0 * 10).rounded() }).count == 16 / packets, "\(times)")
            for (index, time) in times.enumerated() {
                #expect(abs(time - Double(index / packets * packets) * 5) < 0.2)
            }
        }
    }

    /// Sends random packets at random times. Returns the handles in the order of sending, with the times.
    private func sendRandomly(seed: UInt64, admits: Bool) -> [String] {
        var random = Seeded(seed)
        let pacer = Pacer(rate: .kilobits(1500), burst: .milliseconds(20))
        var sent: [String] = []
        var time = 0.0
        for handle in 0..<400 {
            let now = at(time)
            if handle % 100 == 50 {
                pacer.setRates(pacing: .kilobits(Double.random(in: 200...3000, using: &random)), padding: .zero)
            }
            let bytes = Int.random(in: 100...1200, using: &random)
            let kind: PacketKind = [.audio, .video, .video, .retransmission].randomElement(using: &random) ?? .video
            if admits, pacer.admit(bytes: bytes, kind: kind, now: now) {
                sent.append("\(handle) at \(time)")
            } else {
                pacer.enqueue(handle: handle, bytes: bytes, kind: kind, now: now)
            }
            let end =
                time + [0, 0, 0, Double.random(in: 0...25, using: &random)][Int.random(in: 0..<4, using: &random)]
            while time <= end {
                while case .packet(let handle, _, _, _)? = pacer.next(now: at(time)) {
                    sent.append("\(handle) at \(time)")
                }
                guard pacer.nextTimeout <= at(end) else { break }
                time = max(time + 0.01, (pacer.nextTimeout - at(0)).milliseconds)
            }
            time = end
        }
        return sent
    }

    @Test("A packet that the pacer admits leaves when it would leave if it were queued")
    func admission() {
        for seed in 1...50 as ClosedRange<UInt64> {
            let (admitted, queued) = (sendRandomly(seed: seed, admits: true), sendRandomly(seed: seed, admits: false))
            let first = zip(admitted, queued).first { $0 != $1 }
            #expect(first == nil && admitted.count == queued.count, "seed \(seed): \(first.map { "\($0)" } ?? "")")
        }
    }

    @Test("A pause saves up no burst")
    func pause() {
        let pacer = Pacer(rate: .kilobits(1000))
        for handle in 0..<2 { pacer.enqueue(handle: handle, bytes: 1250, kind: .video, now: at(0)) }
        _ = run(pacer, until: 50)
        for handle in 2..<8 { pacer.enqueue(handle: handle, bytes: 1250, kind: .video, now: at(5000)) }
        var count = 0
        while pacer.next(now: at(5000)) != nil { count += 1 }
        #expect(count == 1)
    }

    @Test("No packet is held for more than 150 ms: a keyframe leaves faster than the rate")
    func keyframe() {
        let pacer = Pacer(rate: .kilobits(500))
        for handle in 0..<60 { pacer.enqueue(handle: handle, bytes: 1250, kind: .video, now: at(0)) }
        let grants = run(pacer, until: 200)
        #expect(grants.count == 60)
        #expect((grants.last?.at ?? 0) <= 150.1)
        #expect((grants.last?.at ?? 0) > 120)
        // It is spread over that time.
        #expect(grants.filter { $0.at < 75 }.count < 45)
    }

    @Test("Random packets are never held longer than 150 ms, audio not at all, and all leave once")
    func hold() {
        var random = Seeded(8)
        let pacer = Pacer(rate: .kilobits(300))
        var (longest, longestOfAudio) = (TimeInterval.zero, TimeInterval.zero)
        var waiting: [Int: (since: MonotonicTime, kind: PacketKind)] = [:]
        var now = at(0)
        for handle in 0..<4000 {
            let kind = PacketKind.allCases[Int.random(in: 0..<3, using: &random)]
            pacer.enqueue(handle: handle, bytes: .random(in: 60...1250, using: &random), kind: kind, now: now)
            waiting[handle] = (now, kind)
            let end = now + .microseconds(.random(in: 0...12_000, using: &random))
            while now < end {
                while let grant = pacer.next(now: now) {
                    guard case .packet(let handle, _, _, _) = grant, let held = waiting.removeValue(forKey: handle)
                    else { continue }
                    if held.kind == .audio {
                        longestOfAudio = max(longestOfAudio, now - held.since)
                    } else {
                        longest = max(longest, now - held.since)
                    }
                }
                now = min(end, max(pacer.nextTimeout, now + .microseconds(100)))
            }
        }
        #expect(waiting.count == pacer.queuedPackets)
        #expect(longest <= .milliseconds(151))
        #expect(longestOfAudio == .zero)
    }

    @Test("A probe is sent at its rate with the packets that wait, and with padding")
    func probe() {
        let pacer = Pacer(rate: .kilobits(300))
        pacer.add(
            ProbeCluster(
                id: 3, rate: .kilobits(3000), duration: milliseconds(20), interval: milliseconds(2), requested: at(0)))
        for handle in 0..<2 { pacer.enqueue(handle: handle, bytes: 1250, kind: .video, now: at(0)) }
        let grants = run(pacer, until: 100)
        var bytes = 0
        for (_, grant) in grants {
            switch grant {
            case .packet(_, _, let length, let probe):
                #expect(probe == 3)
                bytes += length
            case .padding(let length, let probe):
                #expect(probe == 3)
                bytes += length
            }
        }
        #expect(bytes >= 7500 && bytes < 8600)
        let last = grants.last?.at ?? 0
        #expect(last > 15 && last < 21)
    }

    @Test("A probe ends when there is no padding to send, or when its packets are late")
    func abandoned() {
        let pacer = Pacer(rate: .kilobits(300))
        for id in 1...2 {
            pacer.add(
                ProbeCluster(
                    id: UInt16(id), rate: .kilobits(3000), duration: milliseconds(20), interval: milliseconds(2),
                    requested: at(0)))
        }
        let first = pacer.next(now: at(0))
        #expect(first == .padding(bytes: 750, probe: 1))
        pacer.paddingSent(bytes: 0, now: at(0))
        let second = pacer.next(now: at(0))
        #expect(second == .padding(bytes: 750, probe: 2))
        pacer.paddingSent(bytes: 750, now: at(0))
        #expect(pacer.next(now: at(50)) == nil)
        #expect(pacer.nextTimeout == .never)
    }

    @Test("Padding fills up to its rate when nothing waits")
    func padding() {
        let pacer = Pacer(rate: .kilobits(1000))
        pacer.setRates(pacing: .kilobits(1000), padding: .kilobits(400))
        var bytes = 0
        for (_, grant) in run(pacer, until: 1000) {
            if case .padding(let length, 0) = grant { bytes += length }
        }
        #expect(abs(bytes - 50_000) < 1000)
    }

    @Test("A stall of this process causes no burst")
    func stall() {
        let pacer = Pacer(rate: .kilobits(500))
        for handle in 0..<20 { pacer.enqueue(handle: handle, bytes: 1250, kind: .video, now: at(0)) }
        while pacer.next(now: at(0)) != nil {}
        pacer.stalled(for: milliseconds(1000), now: at(1000))
        var count = 0
        while pacer.next(now: at(1000)) != nil { count += 1 }
        #expect(count <= 1)
    }

    @Test("Packets of a stream that leave at once are paid for before others leave")
    func grant() {
        let pacer = Pacer(rate: .kilobits(500))
        for handle in 0..<6 { pacer.enqueue(handle: handle, bytes: 500, kind: .video, now: at(0)) }
        var granted: [Int] = []
        pacer.grant(
            where: { handle in
                if handle % 2 == 0 { granted.append(handle) }
                return handle % 2 == 0
            }, now: at(0))
        #expect(granted == [0, 2, 4])
        #expect(pacer.queuedBytes == 1500)
        // 1500 bytes take 24 ms.
        #expect(pacer.next(now: at(15)) == nil)
        #expect(handles(run(pacer, until: 100)) == [1, 3, 5])
    }
}
