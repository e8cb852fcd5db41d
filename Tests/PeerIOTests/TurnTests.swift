import PeerSession
import RTP
import Testing

@testable import PeerIO

struct TurnTests {
    @Test("a turn reads its share of a burst, and the other end gets the whole burst all the same")
    func datagramShare() async throws {
        let loop = EventLoop(name: "burst")
        let call = try await Call.begin(on: loop)
        #expect(await call.isSecured())
        let count = 8 * EventLoop.datagramShare
        let turns = await onLoop(loop) { call.answerer.value.countTurns(of: loop) }
        // They leave in one turn of the loop, and so they wait in the socket together.
        await call.sendVideo(count, perTurn: count, length: 100)
        #expect(await eventually { await onLoop(loop) { turns.value.sum == count } })
        #expect(await onLoop(loop) { turns.value.most } <= EventLoop.datagramShare)
        await call.close()
        loop.shutdown()
    }
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
