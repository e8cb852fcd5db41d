import RTP
import Testing

@testable import ServerCore

@Suite struct ClientLivenessTests {
    private let start = MonotonicTime.zero + .seconds(100)

    @Test func `media is asked for after nine seconds without signalling, and a silent client is then due`() {
        var liveness = ClientLiveness(now: start)
        liveness.heard(now: start + .seconds(1))
        #expect(liveness.verdict(now: start + .milliseconds(9900), hasJoined: true) == .alive)
        #expect(liveness.verdict(now: start + .seconds(10), hasJoined: true) == .askForMedia)
        #expect(liveness.silenceEnds == start + .seconds(10))
    }

    @Test func `media keeps a client for twenty seconds without signalling, and no longer`() {
        var liveness = ClientLiveness(now: start)
        liveness.heardMedia(at: start + .seconds(15))
        #expect(liveness.verdict(now: start + .seconds(19), hasJoined: true) == .alive)
        liveness.heardMedia(at: start + .seconds(20))
        #expect(liveness.verdict(now: start + .seconds(20), hasJoined: true) == .gone)
    }

    @Test func `a connection that does not join is gone after ten seconds`() {
        var liveness = ClientLiveness(now: start)
        liveness.heard(now: start + .seconds(10))
        #expect(liveness.verdict(now: start + .seconds(10), hasJoined: false) == .alive)
        #expect(liveness.verdict(now: start + .milliseconds(10_100), hasJoined: false) == .gone)
    }
}
