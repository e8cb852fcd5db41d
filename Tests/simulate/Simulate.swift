import ArgumentParser
import Foundation
import PeerIO
import RTP
import RoomSimulation

/// Runs a room with faults for many seeds, as scripts/soak does. Every hundredth seed encrypts with OpenSSL.
///
/// Prints a line for each broken promise, with its seed, and a summary. Exits with 1 if a promise was broken.
@main struct Simulate: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "simulate", abstract: "Run rooms with faults on virtual time, one for each seed.")

    @Option(help: "The first seed.") var first: UInt64 = 1
    @Option(help: "How many seeds. Without it and --seconds, 100.") var count: UInt64?
    @Option(help: "Start no further room after this many seconds.") var seconds: Double?
    @Option(help: "Clients of each room.") var clients = 12
    @Option(help: "The most videos that a client watches.") var watched = 9
    @Option(help: "Clients that publish audio too.") var audio = 0
    @Option(help: "Faults of each room.") var faults = 6
    @Option(help: "Simulated seconds of each room, 32 or more, 20 of them without faults.") var length: Int64 = 60
    @Flag(help: "All clients are on a network without loss.") var wired = false
    @Option(help: "Add finished seeds to this file, and skip those that it has of the same options and behaviour.")
    var record: String?

    func validate() throws {
        guard length >= 32 else { throw ValidationError("--length \(length) is too short. Give 32 seconds or more.") }
        guard clients >= 2 else { throw ValidationError("--clients \(clients) is too few. Give 2 or more.") }
    }

    private var room: FaultyRoom {
        var room = FaultyRoom()
        room.clients = clients
        room.watched = watched
        room.audio = audio
        room.faults = faults
        room.duration = .seconds(length)
        if wired { room.links = [.wired] }
        return room
    }

    func run() throws {
        let began = EventLoop.now
        let room = room
        var results = Record(header: header(room))
        if let record { try results.open(record) }
        let count = count ?? (seconds == nil ? 100 : .max - first)
        for seed in first..<(first + count) where !results.has(seed) {
            if let seconds, (EventLoop.now - began).seconds >= seconds { break }
            let result = SeedResult(running: room, seed: seed)
            if let problem = result.problem { print("Seed \(seed) \(problem)") }
            try results.add(result)
        }
        print(results.summary)
        if results.hasProblems { throw ExitCode.failure }
    }

    /// Names the options, and the behaviour by the digest of a room.
    private func header(_ room: FaultyRoom) -> String {
        var probe = room
        probe.clients = min(clients, 4)
        probe.duration = .seconds(32)
        let digest = (try? probe.run(seed: 0))?.digest ?? 0
        return
            "# simulate 1: \(clients) clients, \(watched) watched, \(audio) with audio, \(faults) faults, \(length) s, "
            + "\(wired ? "wired" : "mixed"), behaviour \(String(digest, radix: 16)), \(room.bounds)"
    }
}
