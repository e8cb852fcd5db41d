import Foundation
import RTP

/// The effect of parity packets (RFC 8627, one row) beside requests: the code and the requests on patterns of losses.
enum ParityTable {
    /// A link with bursts, as the simulated ones have.
    private struct Channel {
        let loss: Double
        let burst: Double
        var random: RandomSource
        var wasLost = false

        mutating func loses() -> Bool {
            let goesOn = burst > 1 ? 1 - 1 / burst : loss
            let begins = burst > 1 ? loss * (1 - goesOn) / (1 - loss) : loss
            wasLost = Double.random(in: 0..<1, using: &random) < (wasLost ? goesOn : begins)
            return wasLost
        }
    }

    private struct Case {
        var loss: Double
        var burst: Double
        var packetsPerSecond: Double
        /// Media packets for each parity packet. Nil without.
        var group: Int?
        /// How often each repeat is sent.
        var copies = 1
    }

    /// In milliseconds after the loss of a packet, at a round trip of 200 ms and 25 frames/s, with both responses in time.
    private static let requests = [50.0, 150]
    private static let roundTrip = 200.0
    private static let packets = 1_000_000

    static func print() {
        Swift.print(
            """
            | loss | burst | packets a second | parity | copies of a repeat | missing after 400 ms | \
            time to repair: mean, 95 % | more packets |
            |---|---|---|---|---|---|---|---|
            """)
        for burst in [1.0, 4] {
            for loss in [0.02, 0.05, 0.1] {
                for rate in [50.0, 150] {
                    for (group, copies) in [(nil, 1), (nil, 2), (10, 1), (5, 1)] as [(Int?, Int)] {
                        line(
                            Case(loss: loss, burst: burst, packetsPerSecond: rate, group: group, copies: copies))
                    }
                }
            }
        }
    }

    private static func line(_ row: Case) {
        var channel = Channel(loss: row.loss, burst: row.burst, random: RandomSource(seed: 1))
        var repeats = Channel(loss: row.loss, burst: row.burst, random: RandomSource(seed: 2))
        var (times, missing, extra) = ([Double](), 0, 0)
        let group = row.group ?? 10
        for _ in 0..<(packets / group) {
            let lost = (0..<group).map { _ in channel.loses() }
            var parityArrives = false
            if row.group != nil {
                parityArrives = !channel.loses()
                extra += 1
            }
            let isRepaired = parityArrives && lost.count { $0 } == 1
            for (place, isLost) in lost.enumerated() where isLost {
                // The parity follows the last packet of the group.
                let byParity = isRepaired ? Double(group - place) * 1000 / row.packetsPerSecond : .infinity
                var best = byParity
                for request in requests where request < best {
                    if Double.random(in: 0..<1, using: &repeats.random) < row.loss { continue }
                    for _ in 0..<row.copies {
                        extra += 1
                        if !repeats.loses() { best = min(best, request + roundTrip) }
                    }
                }
                if best <= 400 { times.append(best) } else { missing += 1 }
            }
        }
        times.sort()
        let mean = times.reduce(0, +) / Double(max(1, times.count))
        let slow = times.isEmpty ? 0 : times[Int(Double(times.count - 1) * 0.95)]
        let cells = [
            "\(Int((row.loss * 100).rounded())) %", row.burst > 1 ? "\(Int(row.burst))" : "single",
            "\(Int(row.packetsPerSecond))", row.group.map { "1 in \($0)" } ?? "none", "\(row.copies)",
            String(format: "%.3f %%", 100 * Double(missing) / Double(packets)),
            "\(Int(mean)), \(Int(slow)) ms", String(format: "%.1f %%", 100 * Double(extra) / Double(packets)),
        ]
        Swift.print("| " + cells.joined(separator: " | ") + " |")
    }
}
