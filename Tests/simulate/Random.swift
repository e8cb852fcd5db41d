import ArgumentParser
import Foundation
import PeerIO
import RTP
import RoomSimulation

/// Runs rooms whose applications make random calls, as scripts/soak does.
///
/// Prints a line for each broken promise, with its seed, and a summary. Exits with 1 if a promise was broken.
struct Random: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "random", abstract: "Run rooms with random calls on virtual time, one for each seed.",
        discussion: "Every third seed has a server with three loops.")

    @Option(help: "The first seed.") var first: UInt64 = 1
    @Option(help: "How many seeds.") var count: UInt64 = 100
    @Option(help: "Clients of each room, 2 to 20.") var clients = 4
    @Option(help: "Groups of one to four calls in each room, 1 to 10000.") var rounds = 20

    func validate() throws {
        guard (2...20).contains(clients) else { throw ValidationError("--clients is out of range. Give 2 to 20.") }
        guard (1...10_000).contains(rounds) else {
            throw ValidationError("--rounds is out of range. Give 1 to 10000.")
        }
        guard !first.addingReportingOverflow(count).overflow else {
            throw ValidationError("--first is out of range. Give less: seeds end at \(UInt64.max).")
        }
    }

    func run() throws {
        let began = EventLoop.now
        var outcomes: [RandomCalls.Outcome] = []
        var failures = 0
        for seed in first..<(first + count) {
            var room = RandomCalls()
            room.clients = clients
            room.rounds = rounds
            room.loops = seed.isMultiple(of: 3) ? 3 : 1
            do throws(SimulationFailure) {
                outcomes.append(try room.run(seed: seed))
            } catch {
                failures += 1
                print("Seed \(seed) at \(error.time.seconds) s: \(error.problem)")
            }
        }
        func sum(_ count: (RandomCalls.Outcome) -> Int) -> Int { outcomes.reduce(0) { $0 + count($1) } }
        func longest(_ milliseconds: (RandomCalls.Outcome) -> Double) -> String {
            String(format: "%.0f ms", outcomes.map(milliseconds).max() ?? 0)
        }
        print(
            """
            rooms: \(count); with a broken promise: \(failures)
            \(sum(\.calls)) calls, \(sum(\.overtaken)) of them overtaken by the end of their stream, \
            \(sum(\.framesShown)) frames shown
            longest settling \(longest(\.longestSettling.milliseconds)), oldest frame \(longest(\.oldestFrame.milliseconds)), \
            \(String(format: "%.0f", (EventLoop.now - began).seconds)) s of real time
            """)
        if failures > 0 { throw ExitCode.failure }
    }
}
