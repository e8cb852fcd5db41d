import RTP
import RoomSimulation
import TestSupport
import Testing

/// Calls over links that change all the time. `make soak STAGES=calls` runs ten hours.
struct ChangingCallTests {
    @Test(arguments: 1...UInt64(Soak.rounds(1, soak: 10)))
    func `media returns after each cut, and a call is as good as before when its links are`(seed: UInt64) throws {
        var call = ChangingCall()
        call.duration = .seconds(Int64(Soak.rounds(130, soak: 3600)))
        let outcome = try call.run(seed: seed)
        #expect(outcome.cuts >= 2 && outcome.changes >= 2 && outcome.checks >= 1, "\(outcome)")
    }

    @Test func `a call repeats with its seed, and a bound that does not hold fails it`() throws {
        var call = ChangingCall()
        call.duration = .seconds(20)
        #expect(try call.run(seed: 5) == call.run(seed: 5))
        call.duration = .seconds(60)
        call.bounds.resumption = .milliseconds(1)
        call.bounds.longResumption = .milliseconds(1)
        let failure = #expect(throws: SimulationFailure.self) { try call.run(seed: 7) }
        #expect(
            failure?.seed == 7 && failure?.problem.contains("after a cut") == true, "\(String(describing: failure))")
    }
}
