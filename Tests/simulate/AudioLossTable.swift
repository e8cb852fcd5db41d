import Foundation
import RTP
import RoomSimulation

/// The table of audio frames of 20 ms that a listener does not hear as they were sent, by the ways to repair them.
///
/// The rooms are simulated with the code of the product, so with as many copies as the losses call for. The other columns follow
/// from the datagrams that arrived: nothing else depends on which copies they have.
enum AudioLossTable {
    private static let heading = """
        | loss | burst | round trip | plain | in-band FEC, or one copy (RED) | two copies (RED) | as built | as built, and FEC | \
        requests, 60 ms | requests, 400 ms | more bits: as built | requests, 400 ms |
        |---|---|---|---|---|---|---|---|---|---|---|---|
        """
    /// Of 64 kbit/s, the encoder's default.
    private static let payload = 160
    private static let packets = 50.0

    /// Prints the rows, each of `minutes` simulated minutes.
    static func print(minutes: Int) throws {
        Swift.print(heading)
        for burst in [1.0, 2, 4] {
            for loss in [0.01, 0.02, 0.05, 0.1, 0.2] {
                for roundTrip in [20, 100, 200] as [Int64] {
                    let row = LossRow(loss: loss, burst: burst, roundTrip: roundTrip)
                    Swift.print(
                        line(
                            row,
                            try (0..<minutes).map {
                                try row.runAudio(seconds: 60, seed: UInt64($0 + 1), payload: payload)
                            }))
                }
            }
        }
    }

    private static func line(_ row: LossRow, _ outcomes: [AudioLog.Outcome]) -> String {
        let all = Double(outcomes.reduce(0) { $0 + $1.arrivals.count })
        func percent(_ count: Int) -> String { String(format: "%.2f %%", 100 * Double(count) / all) }
        /// Packets of which neither they nor one of so many later ones arrived.
        func missing(copies: Int) -> Int {
            outcomes.reduce(0) { sum, outcome in
                let arrivals = outcome.arrivals
                return sum
                    + arrivals.indices.count { index in
                        !arrivals[index..<min(index + copies + 1, arrivals.count)].contains(true)
                    }
            }
        }
        let bytes = Double(outcomes.reduce(0) { $0 + $1.bytes })
        let copied = Double(outcomes.reduce(0) { $0 + $1.copiedBytes })
        let plain = bytes - copied
        func more(_ extra: Double) -> String { String(format: "%.0f %%", 100 * extra / plain) }
        let requests = [60.0, 400].map { Requests(wait: $0, row: row) }
        let repaired = requests.map { requests in
            var requests = requests
            for outcome in outcomes { for hasArrived in outcome.arrivals where !hasArrived { requests.repair() } }
            return requests
        }
        let cells = [
            "\(Int((row.loss * 100).rounded())) %", row.burst > 1 ? "\(Int(row.burst))" : "single",
            "\(row.roundTrip) ms", percent(missing(copies: 0)), percent(missing(copies: 1)),
            percent(missing(copies: 2)), percent(outcomes.reduce(0) { $0 + $1.missing }),
            percent(outcomes.reduce(0) { $0 + $1.missingDespiteFEC }),
            percent(repaired[0].missing), percent(repaired[1].missing), more(copied),
            more(Double(repaired[1].repeats) * plain / all),
        ]
        return "| " + cells.joined(separator: " | ") + " |"
    }

    /// Requests and repeats of lost packets, which the rooms do not have for audio.
    private struct Requests {
        /// In milliseconds.
        let wait: Double
        let row: LossRow
        private(set) var missing = 0
        private(set) var repeats = 0
        private var random = RandomSource(seed: 1)

        /// The next packet shows the loss after 20 ms, and 10 ms more show that the packet is not late.
        private static let first = 30.0
        private static let slack = 20.0

        init(wait: Double, row: LossRow) { (self.wait, self.row) = (wait, row) }

        /// A repeat comes long after a burst, so its loss does not depend on it.
        mutating func repair() {
            let roundTrip = Double(row.roundTrip)
            var time = Self.first
            while time + roundTrip <= wait {
                if Double.random(in: 0..<1, using: &random) >= row.loss {
                    repeats += 1
                    if Double.random(in: 0..<1, using: &random) >= row.loss { return }
                }
                time += roundTrip + Self.slack
            }
            missing += 1
        }
    }
}
