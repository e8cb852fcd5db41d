import Foundation
import RTP
import RoomSimulation

/// The table of residual losses, freezes, times to repair and delays.
enum LossTable {
    static let heading = """
        | losses on the link of | loss | burst | round trip | left out by the server | missing after 400 ms | never arrived | \
        freezes over 250 ms a minute | longest | time to repair: median, 95 % | added delay: median, 95 % | \
        frames shown | bytes sent by bytes of media |
        |---|---|---|---|---|---|---|---|---|---|---|---|---|
        """

    /// Prints the rows, each of `minutes` simulated minutes.
    static func print(minutes: Int) throws {
        Swift.print(heading)
        var rows: [LossRow] = []
        for burst in [1.0, 4.0] {
            for loss in [0.01, 0.02, 0.05, 0.1, 0.2] {
                for roundTrip in [20, 100, 200] as [Int64] {
                    rows.append(LossRow(loss: loss, burst: burst, roundTrip: roundTrip))
                }
            }
        }
        for place in [LossRow.Place.publisher, .both] {
            for roundTrip in [20, 100, 200] as [Int64] {
                rows.append(LossRow(place, loss: 0.1, roundTrip: roundTrip))
            }
        }
        for row in rows {
            Swift.print(line(row, try (0..<minutes).map { try row.run(seconds: 60, seed: UInt64($0 + 1)) }))
        }
    }

    private static func line(_ row: LossRow, _ outcomes: [PacketLog.Outcome]) -> String {
        let packets = Double(outcomes.reduce(0) { $0 + $1.packets })
        let left = Double(outcomes.reduce(0) { $0 + $1.leftOut })
        func percent(_ count: Int) -> String { String(format: "%.3f %%", 100 * Double(count) / packets) }
        let freezes = outcomes.flatMap(\.freezes)
        let repairs = outcomes.flatMap(\.repairs).sorted()
        let delays = outcomes.flatMap(\.delays).sorted()
        func at(_ share: Double, _ times: [RTP.TimeInterval]) -> String {
            times.isEmpty ? "-" : String(Int(times[Int(Double(times.count - 1) * share)].milliseconds.rounded()))
        }
        let shown = Double(outcomes.reduce(0) { $0 + $1.framesShown })
        let sent = Double(outcomes.reduce(0) { $0 + $1.framesSent })
        let media = Double(outcomes.reduce(0) { $0 + $1.mediaBytes })
        let bytes = Double(outcomes.reduce(0) { $0 + $1.sentBytes })
        let cells = [
            row.place.rawValue, "\(Int((row.loss * 100).rounded())) %", row.burst > 1 ? "\(Int(row.burst))" : "single",
            "\(row.roundTrip) ms",
            String(format: "%.1f %%", 100 * left / (left + packets)), percent(outcomes.reduce(0) { $0 + $1.missing }),
            percent(outcomes.reduce(0) { $0 + $1.lost }),
            String(format: "%.2f", Double(freezes.count) / Double(outcomes.count)),
            freezes.max().map { "\(Int($0.milliseconds)) ms" } ?? "-",
            "\(at(0.5, repairs)), \(at(0.95, repairs)) ms", "\(at(0.5, delays)), \(at(0.95, delays)) ms",
            String(format: "%.1f %%", 100 * shown / sent), String(format: "%.2f", bytes / media),
        ]
        return "| " + cells.joined(separator: " | ") + " |"
    }
}
