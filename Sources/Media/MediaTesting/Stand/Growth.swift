import Glibc
import MediaAuthoring

/// The allowed growth of a process's resources over some rounds.
struct Allowance {
    var descriptors: Int
    var threads: Int
    var bytes: Int
}

/// How long threads have to end, in seconds.
struct Settling {
    /// Threads of other pools.
    var seconds = 2.0
    /// Threads of Dispatch, which end after five idle seconds. Frequent polling would keep it busy.
    var nap = 6.0
}

/// The growth of this process's resources over some rounds.
struct Growth {
    let rounds: Int
    let before: Holdings
    let after: Holdings
    let allowed: Allowance
    /// Rounds before these that were not judged.
    var warmUp = 0

    /// Allocators and thread pools need some rounds to settle. Growth that occurs once may belong to a pool, after a
    /// stall of the machine; a leak grows again.
    static func measured(
        warmUp: Int, rounds: Int, _ allowed: Allowance, _ settling: Settling, _ body: () async throws -> Void
    ) async throws -> Growth {
        for _ in 0..<warmUp { try await body() }
        func again(after warmUp: Int) async throws -> Growth {
            let before = Holdings.now
            for _ in 0..<rounds { try await body() }
            let after = await Holdings.settled(before, allowed, settling)
            return Growth(rounds: rounds, before: before, after: after, allowed: allowed, warmUp: warmUp)
        }
        let growth = try await again(after: warmUp)
        return growth.isFlat ? growth : try await again(after: warmUp + rounds)
    }

    private var bytes: Int { after.bytes - before.bytes }
    private var isMemoryJudged: Bool { !Sanitizers.isOn }
    private var hasMoreThreads: Bool { after.threads.count > before.threads.count + allowed.threads }

    var isFlat: Bool {
        after.descriptors <= before.descriptors + allowed.descriptors && !hasMoreThreads
            && (bytes <= allowed.bytes || !isMemoryJudged)
    }

    var words: String {
        "in \(warmUp + rounds) rounds, of which \(warmUp) to settle, descriptors went from \(before.descriptors) to \(after.descriptors), threads from "
            + "\(before.threads.count) to \(after.threads.count)\(newThreads), resident memory by \(bytes / 1024) KiB"
            + (isMemoryJudged ? "" : ", which is not judged: the sanitizer keeps what is freed")
    }

    /// The names of new threads, if there are too many.
    private var newThreads: String {
        guard hasMoreThreads else { return "" }
        var counts: [String: Int] = [:]
        for name in after.threads { counts[name, default: 0] += 1 }
        for name in before.threads { counts[name, default: 0] -= 1 }
        let new = counts.filter { $0.value > 0 }.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
        return " (new: " + new.map { "\($0.value) \"\($0.key)\"" }.joined(separator: ", ") + ")"
    }
}

/// The sanitizers of this process.
enum Sanitizers {
    /// The address sanitizer holds up to 256 MB of freed memory to detect its use. The thread sanitizer keeps a shadow
    /// of all memory ever used.
    static let isOn = dlsym(nil, "__asan_init") != nil || dlsym(nil, "__tsan_init") != nil
}

/// The resources of this process.
struct Holdings {
    let descriptors: Int
    /// Names of the threads.
    let threads: [String]
    let bytes: Int

    static var now: Holdings {
        Holdings(descriptors: paths("/proc/self/fd/*").count, threads: threadNames, bytes: residentBytes)
    }

    /// The resources once they are as before, or once threads have had time to end.
    static func settled(
        _ before: Holdings, _ allowed: Allowance, _ settling: Settling = Settling()
    ) async -> Holdings {
        let isFlat = await MachineClock().waits(settling.seconds) {
            let now = Holdings.now
            return now.threads.count <= before.threads.count + allowed.threads
                && now.descriptors <= before.descriptors + allowed.descriptors
        }
        if !isFlat { try? await Task.sleep(for: .seconds(settling.nap)) }
        return now
    }

    private static func paths(_ pattern: String) -> [String] {
        var found = glob_t()
        defer { globfree(&found) }
        guard glob(pattern, 0, nil, &found) == 0 else { return [] }
        return (0..<Int(found.gl_pathc)).compactMap { index in found.gl_pathv[index].map { String(cString: $0) } }
    }

    private static var threadNames: [String] {
        paths("/proc/self/task/*/comm").compactMap { read($0)?.split(separator: "\n").first.map(String.init) }
    }

    private static var residentBytes: Int {
        let fields = (read("/proc/self/statm") ?? "").split(separator: " ")
        return fields.count > 1 ? (Int(fields[1]) ?? 0) * Int(getpagesize()) : 0
    }

    /// The beginning of a file. The kernel's information on a process fits in a line.
    private static func read(_ path: String) -> String? {
        guard let file = fopen(path, "r") else { return nil }
        defer { fclose(file) }
        var line = [UInt8](repeating: 0, count: 128)
        let length = fread(&line, 1, line.count, file)
        return String(decoding: line.prefix(length), as: UTF8.self)
    }
}
