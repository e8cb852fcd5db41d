import ArgumentParser
import Foundation
import PeerIO
import RTP
import RoomSimulation

@main struct Simulate: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "simulate", abstract: "Run rooms on virtual time, one for each seed.",
        subcommands: [Rooms.self, Calls.self, Random.self], defaultSubcommand: Rooms.self)
}

/// Runs a room with faults for many seeds, as scripts/soak does. Every hundredth seed encrypts with OpenSSL.
///
/// Prints a line for each broken promise, with its seed, and a summary. Exits with 1 if a promise was broken.
struct Rooms: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rooms", abstract: "Run rooms with faults on virtual time, one for each seed.",
        discussion: """
            Every hundredth seed encrypts with OpenSSL. Such a seed checks neither the waits for keyframes nor the gaps in \
            sequence numbers.
            """)

    @Option(help: "The first seed.") var first: UInt64 = 1
    @Option(help: "How many seeds (default: 100, or no limit with --seconds).") var count: UInt64?
    @Option(help: "Start no further room after this many seconds of real time.") var seconds: Double?
    @Option(help: "Clients of each room, 2 to 1000.") var clients = 12
    @Option(help: "The most videos that a client watches, 0 to 20.") var watched = 9
    @Option(help: "Clients that publish audio too.") var audio = 0
    @Option(help: "Faults of each room.") var faults = 6
    @Option(help: "Loops of the server, over which each room spreads, 1 to 16.") var loops = 1
    @Option(help: "Simulated seconds of each room, 40 to 86400. The last 24 are without faults.") var length: Int64 = 60
    @Flag(help: "All links are wired: 1 ms, no loss. Otherwise, the seed makes each wired, Wi-Fi or cellular.")
    var wired = false
    @Option(help: "Add finished seeds to this file, and skip those that it has of the same options and behaviour.")
    var record: String?

    @Option(
        help:
            "Print the table of losses and round trips, with so many simulated minutes for each row, and run no rooms.")
    var losses: Int?

    @Option(help: "Print the table of audio losses, with so many simulated minutes for each row, and run no rooms.")
    var audioLosses: Int?

    private static let usualCount: UInt64 = 100

    func validate() throws {
        func require(_ holds: Bool, _ option: String, _ range: String) throws {
            if !holds { throw ValidationError("--\(option) is out of range. Give \(range).") }
        }
        try require((40...86400).contains(length), "length", "40 to 86400 seconds")
        try require((2...1000).contains(clients), "clients", "2 to 1000")
        try require((0...20).contains(watched), "watched", "0 to 20, the most videos that a server sends to one client")
        try require((0...clients).contains(audio), "audio", "0 to the number of clients")
        try require((0...10_000).contains(faults), "faults", "0 to 10000")
        try require((1...16).contains(loops), "loops", "1 to 16")
        try require(seconds ?? 1 > 0, "seconds", "more than 0")
        let wanted = count ?? (seconds == nil ? Self.usualCount : 0)
        try require(!first.addingReportingOverflow(wanted).overflow, "first", "less: seeds end at \(UInt64.max)")
    }

    private var room: FaultyRoom {
        var room = FaultyRoom()
        room.clients = clients
        room.watched = watched
        room.audio = audio
        room.faults = faults
        room.loops = loops
        room.duration = .seconds(length)
        if wired { room.links = [.wired] }
        return room
    }

    func run() throws {
        if let audioLosses { return try AudioLossTable.print(minutes: audioLosses) }
        if let losses { return try LossTable.print(minutes: losses) }
        let began = EventLoop.now
        let room = room
        var results = Record(header: try header(room))
        if let record { try results.open(record) }
        let count = count ?? (seconds == nil ? Self.usualCount : .max - first)
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
    private func header(_ room: FaultyRoom) throws -> String {
        var probe = room
        probe.clients = min(clients, 4)
        probe.duration = .seconds(40)
        let digest = try probe.run(seed: 0).digest
        return
            "# simulate 2: \(clients) clients, \(watched) watched, \(audio) with audio, \(faults) faults, "
            + "\(loops) loops, \(length) s, \(wired ? "wired" : "mixed"), \(room.bounds.summary), "
            + "behaviour \(String(digest, radix: 16))"
    }
}

extension RoomBounds {
    fileprivate var summary: String {
        let times = [firstFrame, freeze, keyframe, lastFrame].map { "\($0.seconds)" }.joined(separator: "/")
        return "bounds \(times) s \(memory)"
    }
}
