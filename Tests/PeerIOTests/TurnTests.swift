import PeerSession
import RTP
import Testing
import TestSupport

@testable import PeerIO
import PeerLoop

struct TurnTests {
    @Test("a share ends with its pieces or its time, and its first piece always runs")
    func share() {
        let start = MonotonicTime.zero + .seconds(1)
        var quick = TurnShare(of: 3, at: start)
        let mayGoOn = (0..<3).map { _ in quick.spend(at: start) }
        #expect(mayGoOn == [true, true, false])
        var slow = TurnShare(of: 3, at: start)
        let mayGoOnAfterwards = slow.spend(at: start + TurnShare.time)
        #expect(!mayGoOnAfterwards)
        #expect(slow.used == 1)
    }

    @Test("a turn reads its share of a burst, and the other end still receives the whole burst")
    func datagramShare() async throws {
        let loop = EventLoop(name: "burst")
        let call = try await Call.begin(on: loop)
        #expect(await call.isSecured())
        let count = 8 * EventLoop.datagramShare
        let turns = await onLoop(loop) { call.answerer.value.countTurns(of: loop) }
        // All are sent in one turn of the loop, so that they wait in the socket together.
        await call.sendVideo(count, perTurn: count, length: 100)
        #expect(await eventually { await onLoop(loop) { turns.value.sum == count } })
        #expect(await onLoop(loop) { turns.value.most } <= EventLoop.datagramShare)
        await call.close()
        loop.shutdown()
    }

    @Test("answers leave while a long turn still reads")
    func earlySend() async throws {
        let loop = EventLoop(name: "long turn", turnClock: { .zero })
        var calls: [Call] = []
        for _ in 0..<4 { calls.append(try await Call.begin(on: loop)) }
        for call in calls { try #require(await call.isSecured()) }
        let ready = calls
        let log = await onLoop(loop) { answerEachPacket(of: ready, on: loop) }
        // One turn sends them all, so that one turn reads them all.
        await onLoop(loop) {
            for call in ready {
                for number in 0..<EventLoop.datagramShare {
                    call.send(number, via: call.videoSender, of: call.offerer, type: 96, length: 100)
                }
            }
        }
        #expect(await eventually { await onLoop(loop) { log.value.count == 4 * EventLoop.datagramShare } })
        let seen = await onLoop(loop) { log.value }
        #expect(Set(seen.map(\.turn)).count == 1)
        #expect((seen.last?.sent ?? 0) >= EventLoop.datagramsBetweenSends)
        for call in calls { await call.close() }
        loop.shutdown()
    }

    /// Each answerer answers each packet. For each, logs the turn and the number of datagrams that the answerers had
    /// sent.
    private func answerEachPacket(of calls: [Call], on loop: EventLoop) -> LoopBound<[(turn: Int, sent: Int)]> {
        let log = LoopBound<[(turn: Int, sent: Int)]>([], loop: loop)
        @Sendable func sent() -> Int {
            calls.reduce(0) { $0 + $1.answerer.value.peer.statistics.datagramsSent }
        }
        let before = sent()
        for call in calls {
            call.answerer.value.peer.onMedia = { _, header, _, _ in
                log.value.append((loop.turn, sent() - before))
                let number = Int(header.sequenceNumber.rawValue)
                call.send(number, via: call.audioSender, of: call.answerer, type: 111, length: 80)
            }
        }
        return log
    }

    @Test("a turn sends the answers to datagrams before its timers fire and messages are handled")
    func mediaFirst() async throws {
        let loop = EventLoop(name: "media first")
        let call = try await Call.begin(on: loop)
        try #require(await call.isSecured())
        let log = await onLoop(loop) { LoopBound<[String]>([], loop: loop) }
        await onLoop(loop) {
            let member = Member { log.value.append("sent") }
            call.answerer.value.peer.onMedia = { _, _, _, _ in
                loop.execute { log.value.append("message") }
                loop.schedule(at: loop.now) { log.value.append("timer") }
                loop.atEndOfTurn(member)
            }
        }
        await call.sendVideo(1)
        #expect(await eventually { await onLoop(loop) { log.value.count == 3 } })
        #expect(await onLoop(loop) { log.value } == ["sent", "timer", "message"])
        await call.close()
        loop.shutdown()
    }

    @Test("a batch that fills a system call is sent before its turn ends")
    func fullBatch() async throws {
        let loop = EventLoop(name: "full batch")
        let call = try await Call.begin(on: loop)
        try #require(await call.isSecured())
        let sent = await onLoop(loop) {
            let peer = call.offerer.value.peer
            let before = peer.statistics.datagramsSent
            for number in 0..<Outbox.capacity {
                call.send(number, via: call.videoSender, of: call.offerer, type: 96, length: 100)
            }
            return peer.statistics.datagramsSent - before
        }
        #expect(sent == Outbox.capacity)
        await call.close()
        loop.shutdown()
    }
}

private final class Member: TurnMember {
    private let action: () -> Void

    init(_ action: @escaping () -> Void) { self.action = action }

    func endTurn() { action() }
}

extension End {
    /// Counts the packets of each turn from here on.
    fileprivate func countTurns(of loop: EventLoop) -> LoopBound<TurnHistogram> {
        let turns = LoopBound(TurnHistogram(), loop: loop)
        peer.onMedia = { _, _, _, _ in turns.value.count[loop.turn, default: 0] += 1 }
        return turns
    }
}

private struct TurnHistogram {
    var count: [Int: Int] = [:]
    var sum: Int { count.values.reduce(0, +) }
    var most: Int { count.values.max() ?? 0 }
}
