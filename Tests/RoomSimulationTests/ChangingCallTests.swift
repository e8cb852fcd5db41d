import RTP
import RoomSimulation
import TestSupport
import Testing

/// Calls over links that change all the time. `make soak STAGES=calls` runs ten hours.
struct ChangingCallTests {
    @Test(arguments: 1...UInt64(Soak.rounds(2, soak: 10)))
    func `media returns after each cut, and a call is as good as before when its links are`(seed: UInt64) throws {
        var call = ChangingCall()
        call.duration = .seconds(Int64(Soak.rounds(230, soak: 3600)))
        let outcome = try call.run(seed: seed)
        #expect(outcome.cuts >= 5 && outcome.changes >= 5 && outcome.checks >= 2, "\(outcome)")
    }

    @Test func `a call repeats with its seed`() throws {
        var call = ChangingCall()
        call.duration = .seconds(60)
        #expect(try call.run(seed: 5) == call.run(seed: 5))
        #expect(try call.run(seed: 5).digest != call.run(seed: 6).digest)
    }

    @Test func `a bound that does not hold fails the call, with its seed`() throws {
        var call = ChangingCall()
        call.duration = .seconds(120)
        call.bounds.latency = .milliseconds(1)
        let failure = #expect(throws: SimulationFailure.self) { try call.run(seed: 7) }
        #expect(failure?.seed == 7 && failure?.problem.contains("latency") == true, "\(String(describing: failure))")
    }
}
