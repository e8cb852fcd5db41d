import Foundation
import Synchronization

/// How long programs were kept from the processor while others had it, as the kernel counts it, and how long all of the
/// machine stood still, by how much later than asked a short sleep ends.
///
/// A program that is slow of its own accord, that waits, blocks or sleeps, gets nothing added: only threads that could
/// run and were not let run count.
final class Starvation: Sendable {
    private struct State {
        /// Nanoseconds in which a thread waited for a processor, by process and thread.
        var waited: [Int32: [String: Double]] = [:]
        /// Seconds in which the machine stood still.
        var stood = 0.0
        var isEnded = false
    }

    private static let nap = 0.005
    private static let napsBetweenLooks = 20
    /// Seconds by which a sleep may end late without anything having stood still.
    private static let unremarkable = 0.02

    private let processes: [Int32]
    private let state = Mutex(State())
    private let stolenBefore: Double

    init(of processes: [Int32]) {
        self.processes = processes
        stolenBefore = Self.stolen
        Thread.detachNewThread { [weak self] in
            // Threads take what is known of them along when they end.
            while self?.look() == true {
                for _ in 0..<Self.napsBetweenLooks { self?.nap() }
            }
        }
    }

    private func nap() {
        let begin = ContinuousClock.now
        Thread.sleep(forTimeInterval: Self.nap)
        let late = (ContinuousClock.now - begin) / .seconds(1) - Self.nap
        if late > Self.unremarkable { state.withLock { $0.stood += late } }
    }

    private func look() -> Bool {
        for process in processes {
            let folder = "/proc/\(process)/task"
            for thread in (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? [] {
                guard let text = try? String(contentsOfFile: "\(folder)/\(thread)/schedstat", encoding: .utf8),
                    let waited = text.split(separator: " ").dropFirst().first.flatMap({ Double($0) })
                else { continue }
                state.withLock { $0.waited[process, default: [:]][thread] = waited }
            }
        }
        return !state.withLock { $0.isEnded }
    }

    /// Seconds that the machine's host took from it.
    private static var stolen: Double {
        let text = (try? String(contentsOfFile: "/proc/stat", encoding: .utf8)) ?? ""
        let fields = text.split(separator: "\n").first?.split(separator: " ").compactMap { Double($0) } ?? []
        return fields.count > 7 ? fields[7] / 100 : 0
    }

    /// Seconds until now: of each program what its unluckiest thread waited, and what the host took.
    func end() -> Double {
        let (waited, stood) = state.withLock { state in
            state.isEnded = true
            return (state.waited.values.map { ($0.values.max() ?? 0) / 1e9 }.reduce(0, +), state.stood)
        }
        // Where the host says what it took, that is most of what stood still.
        return waited + max(stood, Self.stolen - stolenBefore)
    }
}
