import Foundation
import RTP
import RoomSimulation
import Testing
import TestSupport

/// Rooms with faults, each with the frames that its viewers saw. The file under version control shows each change of
/// behaviour to reviewers.
struct ScoreboardTests {
    @Test func `simulated rooms behave as the scoreboard says`() throws {
        var lines = [
            "# seed: datagrams, bytes, keyframes, frames shown, first frame (median, longest), longest freeze, "
                + "deepest queue of a link, packets in the server, digest"
        ]
        for seed in UInt64(1)...6 {
            var room = FaultyRoom()
            room.clients = 4
            lines.append(Self.line(of: try room.run(seed: seed)))
        }
        let board = lines.joined(separator: "\n") + "\n"
        let kept = try? Checkout.text("Tests/RoomSimulationTests/scoreboard.txt")
        guard board != kept else { return }
        let out = Checkout.folder.appending(path: "out")
        try FileManager.default.createDirectory(at: out, withIntermediateDirectories: true)
        try board.write(to: out.appending(path: "scoreboard.txt"), atomically: true, encoding: .utf8)
        Issue.record(
            """
            Simulated rooms behave differently. If that is intended, review the difference and commit it: \
            cp out/scoreboard.txt Tests/RoomSimulationTests/scoreboard.txt
            \(board)
            """)
    }

    private static func line(of report: SimulationReport) -> String {
        let first = report.viewers.compactMap { $0.firstFrame?.milliseconds }.sorted()
        let freeze = report.viewers.map(\.longestFreeze.milliseconds).max() ?? 0
        let shown = report.viewers.reduce(0) { $0 + $1.shown }
        return "\(report.seed): \(report.datagrams), \(report.bytes), \(report.keyframes), \(shown), "
            + "\(Int(first[first.count / 2])) ms, \(Int(first.last ?? 0)) ms, \(Int(freeze)) ms, "
            + "\(report.deepestQueue) bytes, \(report.extremes.memoryBytes) bytes, "
            + String(report.digest, radix: 16)
    }
}
