internal import Foundation
internal import Glibc

/// The distribution of many measurements of one quantity.
struct Summary: Codable, Sendable {
    var samples: Int
    var min: Double
    var median: Double
    /// 95 of 100 were as small or smaller.
    var p95: Double
    var max: Double

    /// Nil of nothing.
    init?(_ values: [Double]) {
        guard !values.isEmpty else { return nil }
        let sorted = values.sorted()
        let middle = sorted.count / 2
        samples = sorted.count
        min = sorted[0]
        median = sorted.count % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
        p95 = sorted[Swift.min(sorted.count - 1, sorted.count * 95 / 100)]
        max = sorted[sorted.count - 1]
    }
}

/// Processor time as the scheduler accounts it, to the nanosecond.
enum ProcessorTime {
    /// Of the threads of a process that have this name (`comm`, 15 characters). Nil when there is none.
    static func nanoseconds(ofThreads name: String, in process: Int32) -> UInt64? {
        let tasks = "/proc/\(process)/task"
        var total: UInt64?
        for task in (try? FileManager.default.contentsOfDirectory(atPath: tasks)) ?? [] {
            guard self.name(ofTask: "\(tasks)/\(task)") == name,
                let running = nanoseconds(ofTask: "\(tasks)/\(task)")
            else { continue }
            total = (total ?? 0) + running
        }
        return total
    }

    /// Of the thread with this folder in /proc. Nil when it has ended.
    static func nanoseconds(ofTask folder: String) -> UInt64? {
        read(folder + "/schedstat")?.split(separator: " ").first.flatMap { UInt64($0) }
    }

    static func name(ofTask folder: String) -> String? { read(folder + "/comm") }

    /// Of this process, in seconds, the kernel's work for it included.
    static var ofThisProcess: Double {
        var time = timespec()
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    private static func read(_ path: String) -> String? {
        guard let data = FileManager.default.contents(atPath: path) else { return nil }
        return String(decoding: data, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
    }
}

/// What `malloc-counter` has counted in another process.
struct AllocationCounts: Sendable {
    /// Allocations of the thread that is watched, the bytes asked for, and the blocks that it freed.
    var allocations: UInt64
    var bytes: UInt64
    var frees: UInt64
    /// Of the allocations, those that libsrtp2 and the cryptography under it made.
    var cryptography: UInt64

    /// Nil when the file is not there or too short.
    init?(file: String) {
        guard let data = FileManager.default.contents(atPath: file), data.count >= 40 else { return nil }
        func number(_ index: Int) -> UInt64 {
            data.dropFirst(index * 8).prefix(8).reversed().reduce(0) { $0 << 8 | UInt64($1) }
        }
        (allocations, bytes, frees, cryptography) = (number(0), number(1), number(2), number(4))
    }
}
