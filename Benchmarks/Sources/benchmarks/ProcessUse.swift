internal import Foundation
internal import Glibc
internal import RTP

/// Processor time, memory and handles of another process, as the kernel counts them.
struct ProcessUse: Sendable {
    /// Processor time of all its threads, in nanoseconds, and of those that carry media. Threads that have ended count
    /// among the first only.
    var processorTime: UInt64
    var mediaTime: UInt64
    /// Memory that no other process shares, in KiB.
    var privateMemory: Int
    var threads: Int
    var descriptors: Int

    /// Throws if the process has ended.
    ///
    /// - Parameter mediaThreads: the beginning of the name (`comm`) of the threads that carry media.
    init(of process: Int32, mediaThreads: String) throws {
        let folder = "/proc/\(process)"
        let tasks = try FileManager.default.contentsOfDirectory(atPath: folder + "/task")
        var clock = clockid_t()
        var time = timespec()
        guard clock_getcpuclockid(process, &clock) == 0, clock_gettime(clock, &time) == 0 else {
            throw BenchmarkError("The server has ended.")
        }
        processorTime = UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
        mediaTime =
            tasks.filter { ProcessorTime.name(ofTask: "\(folder)/task/\($0)")?.hasPrefix(mediaThreads) ?? false }
            .reduce(0) { $0 + (ProcessorTime.nanoseconds(ofTask: "\(folder)/task/\($1)") ?? 0) }
        threads = tasks.count
        descriptors = try FileManager.default.contentsOfDirectory(atPath: folder + "/fd").count
        let memory = try String(contentsOfFile: folder + "/smaps_rollup", encoding: .utf8)
        privateMemory = memory.split(separator: "\n").reduce(0) { sum, line in
            line.hasPrefix("Private_") ? sum + (Int(line.filter(\.isNumber)) ?? 0) : sum
        }
    }
}

/// The times from sending to receiving.
final class LatencyLog {
    private var microseconds: [UInt32] = []

    func add(sent: MonotonicTime, received: MonotonicTime) {
        microseconds.append(UInt32(clamping: (received - sent).nanoseconds / 1000))
    }

    /// The time that this share of the packets needs at most, in milliseconds. Begins another measurement.
    func restart(_ shares: [Double]) -> [Double] {
        let sorted = microseconds.sorted()
        microseconds.removeAll(keepingCapacity: true)
        return shares.map { sorted.isEmpty ? 0 : Double(sorted[Int(Double(sorted.count - 1) * $0)]) / 1000 }
    }
}
