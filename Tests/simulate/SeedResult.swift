import Foundation
import PeerIO
import RTP
import RoomSimulation

/// The result of one seed, and its line in a record.
struct SeedResult {
    /// Counts of waits, by their tenth of a second.
    struct Waits {
        private(set) var counts: [Int: Int] = [:]

        mutating func add(milliseconds: Double) { counts[Int(milliseconds / 100), default: 0] += 1 }

        mutating func add(_ others: Waits) { counts.merge(others.counts, uniquingKeysWith: +) }

        init() {}

        init?(_ text: Substring) {
            for item in text.split(separator: ",") where item != "-" {
                let parts = item.split(separator: ":").compactMap { Int($0) }
                guard parts.count == 2 else { return nil }
                counts[parts[0]] = parts[1]
            }
        }

        var text: String {
            counts.isEmpty
                ? "-" : counts.sorted { $0.key < $1.key }.map { "\($0.key):\($0.value)" }.joined(separator: ",")
        }
    }

    var seed: UInt64
    var digest: UInt64 = 0
    /// Real time.
    var seconds = 0.0
    /// In the order of their columns.
    var datagrams = 0, bytes = 0, keyframes = 0, shown = 0, deepestQueue = 0, memory = 0
    /// In milliseconds, those that bounds judge.
    var firstFrame = 0.0, freeze = 0.0, keyframe = 0.0
    var memoryShare = 0.0
    /// Of all viewers, disturbed ones included.
    var firstFrames = Waits(), freezes = Waits()
    var problem: String?

    init(running room: FaultyRoom, seed: UInt64) {
        self.seed = seed
        let encryption: Simulation.Encryption =
            seed.isMultiple(of: 100) ? .engine { try OpenSSLSRTP(keys: &$0) } : .checked
        let began = EventLoop.now
        do throws(SimulationFailure) {
            fill(with: try room.run(seed: seed, encryption: encryption))
        } catch {
            problem = "at \(error.time.seconds) s: \(error.problem)"
        }
        seconds = (EventLoop.now - began).seconds
    }

    private mutating func fill(with report: SimulationReport) {
        digest = report.digest
        datagrams = report.datagrams
        bytes = report.bytes
        keyframes = report.keyframes
        shown = report.viewers.reduce(0) { $0 + $1.shown }
        deepestQueue = report.deepestQueue
        memory = report.extremes.memoryBytes
        firstFrame = report.extremes.firstFrame.milliseconds
        freeze = report.extremes.freeze.milliseconds
        keyframe = report.extremes.keyframe.milliseconds
        memoryShare = report.extremes.memory
        for viewer in report.viewers {
            if let first = viewer.firstFrame { firstFrames.add(milliseconds: first.milliseconds) }
            freezes.add(milliseconds: viewer.longestFreeze.milliseconds)
        }
    }

    // MARK: - The line

    var line: String {
        let counts = [datagrams, bytes, keyframes, shown, deepestQueue, memory].map { "\($0)" }
        let figures = [seconds, firstFrame, freeze, keyframe, memoryShare].map { String(format: "%.3f", $0) }
        return
            (["\(seed)", String(digest, radix: 16)] + counts + figures
            + [firstFrames.text, freezes.text, problem ?? "-"]).joined(separator: "\t")
    }

    init?(line: Substring) {
        let columns = line.split(separator: "\t", maxSplits: 15)
        guard columns.count == 16, let seed = UInt64(columns[0]), let digest = UInt64(columns[1], radix: 16),
            let firstFrames = Waits(columns[13]), let freezes = Waits(columns[14])
        else { return nil }
        let counts = columns[2..<8].compactMap { Int($0) }
        let figures = columns[8..<13].compactMap { Double($0) }
        guard counts.count == 6, figures.count == 5 else { return nil }
        self.seed = seed
        self.digest = digest
        (datagrams, bytes, keyframes) = (counts[0], counts[1], counts[2])
        (shown, deepestQueue, memory) = (counts[3], counts[4], counts[5])
        (seconds, firstFrame, freeze, keyframe) = (figures[0], figures[1], figures[2], figures[3])
        memoryShare = figures[4]
        self.firstFrames = firstFrames
        self.freezes = freezes
        problem = columns[15] == "-" ? nil : String(columns[15])
    }
}
