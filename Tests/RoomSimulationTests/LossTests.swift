import RTP
import RoomSimulation
import TestSupport
import Testing

/// A publisher and a viewer on links that lose packets: the goals of repair. `simulate --losses 10` prints the whole table.
struct LossTests {
    /// - Parameter soak: the simulated minutes in `make soak`. `make test` has half of one.
    private func run(_ row: LossRow, soak: Int = 10) throws -> (missing: Double, freezes: Int, overhead: Double) {
        var (packets, missing, freezes, media, sent) = (0, 0, 0, 0, 0)
        for seed in 1...Soak.rounds(1, soak: soak) {
            let outcome = try row.run(seconds: Soak.isOn ? 60 : 30, seed: UInt64(seed))
            packets += outcome.packets
            missing += outcome.missing
            freezes += outcome.freezes.count
            media += outcome.mediaBytes
            sent += outcome.sentBytes
        }
        return (Double(missing) / Double(packets), freezes, Double(sent) / Double(media))
    }

    @Test(arguments: [LossRow.Place.viewer, .publisher])
    func `with 10 % loss at a round trip of 100 ms, one packet in a thousand is missing after 400 ms`(
        place: LossRow.Place
    ) throws {
        let outcome = try run(LossRow(place, loss: 0.1, roundTrip: 100))
        #expect(outcome.missing <= 0.001)
        // The goal is one in ten minutes, and half a minute has none.
        #expect(outcome.freezes <= (Soak.isOn ? 1 : 0))
        #expect(outcome.overhead < 1.2)
    }

    @Test(arguments: [LossRow.Place.viewer, .publisher])
    func `with 10 % loss at a round trip of 200 ms, a third repair is in time for most packets`(
        place: LossRow.Place
    ) throws {
        let outcome = try run(LossRow(place, loss: 0.1, roundTrip: 200))
        // Two repairs alone would leave 0.36 %. Half a minute has only 2600 packets.
        #expect(outcome.missing <= (Soak.isOn ? 0.003 : 0.006))
        #expect(outcome.overhead < 1.2)
    }

    @Test func `with 10 % loss on both links, repairs on one do not use up the time of the other`() throws {
        let outcome = try run(LossRow(.both, loss: 0.1, roundTrip: 200))
        #expect(outcome.missing <= 0.001)
        #expect(outcome.freezes <= 1)
    }

    /// Reports are lost, too, and few packets are sent while frames are left out. Taken for outages, such silences lowered the
    /// estimate until a video stood still for 20 s.
    @Test func `with 20 % loss, no freeze lasts for many seconds`() throws {
        let outcome = try LossRow(loss: 0.2, roundTrip: 20).run(seconds: 60, seed: 3)
        #expect(outcome.freezes.max() ?? .zero < .seconds(4))
    }

    @Test func `without loss, nothing is missing or noticeably delayed`() throws {
        let outcome = try LossRow(loss: 0, roundTrip: 100).run(seconds: 10, seed: 1)
        #expect(outcome.missing == 0 && outcome.freezes.isEmpty)
        // The pacer spreads the first frames, before its link is measured.
        #expect(outcome.delays[outcome.delays.count / 2] < .milliseconds(50))
    }
}
