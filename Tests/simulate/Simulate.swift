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
    @Option(help: "Faults of each room.") var faults = 6
    @Option(help: "Simulated seconds of each room, 32 or more, 20 of them without faults.") var length: Int64 = 60
    @Flag(help: "All clients are on a network without loss.") var wired = false

    func validate() throws {
        guard length >= 32 else { throw ValidationError("--length \(length) is too short. Give 32 seconds or more.") }
        guard clients >= 2 else { throw ValidationError("--clients \(clients) is too few. Give 2 or more.") }
    }

    func run() throws {
        let began = EventLoop.now
        var room = FaultyRoom()
        room.clients = clients
        room.faults = faults
        room.duration = .seconds(length)
        if wired { room.links = [.wired] }
        var board = Scoreboard(room: room)
        let count = count ?? (seconds == nil ? 100 : .max - first)
        for seed in first..<(first + count) {
            if let seconds, (EventLoop.now - began).seconds >= seconds { break }
            board.run(seed)
        }
        print(board.summary(seconds: (EventLoop.now - began).seconds))
        if !board.failures.isEmpty { throw ExitCode.failure }
    }
}

/// The results of all rooms together.
struct Scoreboard {
    private let room: FaultyRoom

    init(room: FaultyRoom) { self.room = room }

    private(set) var failures: [SimulationFailure] = []

    private var rooms = 0
    private var datagrams = 0
    private var keyframes = 0
    private var simulated = 0.0
    private var firstFrames: [Double] = []
    private var freezes: [Double] = []

    mutating func run(_ seed: UInt64) {
        let encryption: Simulation.Encryption =
            seed.isMultiple(of: 100) ? .engine { try OpenSSLSRTP(keys: &$0) } : .checked
        rooms += 1
        do throws(SimulationFailure) {
            let report = try room.run(seed: seed, encryption: encryption)
            datagrams += report.datagrams
            keyframes += report.keyframes
            simulated += report.time.seconds
            firstFrames += report.viewers.compactMap { $0.firstFrame?.milliseconds }
            freezes += report.viewers.map(\.longestFreeze.milliseconds)
        } catch {
            failures.append(error)
            print(error)
        }
    }

    func summary(seconds: Double) -> String {
        func line(_ name: String, _ values: [Double]) -> String {
            let sorted = values.sorted()
            guard !sorted.isEmpty else { return "\(name): none" }
            let shares = [0.5, 0.95, 0.99, 1].map { share in
                String(format: "%.0f", sorted[min(sorted.count - 1, Int(Double(sorted.count) * share))])
            }
            return "\(name), ms: median \(shares[0]), 95 % \(shares[1]), 99 % \(shares[2]), longest \(shares[3])"
        }
        return """
            \(rooms) rooms, \(failures.count) with a broken promise
            \(Int(simulated)) simulated seconds in \(String(format: "%.1f", seconds)) s, \(datagrams) datagrams, \
            \(keyframes) keyframes
            \(line("first frame", firstFrames))
            \(line("longest freeze of a viewer", freezes))
            """
    }
}
