import Glibc
import MediaGraph

extension ConformanceCheck {
    static let reopening = ConformanceCheck(
        "reopening", "Opened and closed 500 times, it leaves no file descriptor, no thread and no memory behind."
    ) { examination in
        let rounds = examination.options.reopenings
        let judged = rounds - rounds / 5
        // Allocators and pools of threads take some rounds to settle.
        for _ in 0..<rounds / 5 { try await examination.reopen() }
        var growth = try await examination.growth(in: judged)
        // What grew once and stays may be a pool's, after a moment in which the machine stood still; a leak grows again.
        if !growth.isFlat { growth = try await examination.growth(in: judged) }
        return growth.isFlat ? .passed(growth.words) : .failed(growth.words)
    }
}

/// What so many reopenings left behind.
private struct Growth {
    let rounds: Int
    let before: Holdings
    let after: Holdings
    let memoryLimit: Int

    private var bytes: Int { after.bytes - before.bytes }
    private var isMemoryJudged: Bool { !Sanitizers.keepMemory }

    /// A leak is one in each round; others in this process may come and go.
    var isFlat: Bool {
        let limit = Holdings.slack(rounds)
        return after.descriptors <= before.descriptors + limit && after.threads.count <= before.threads.count + limit
            && (bytes <= memoryLimit || !isMemoryJudged)
    }

    var words: String {
        "in \(rounds) rounds descriptors went from \(before.descriptors) to \(after.descriptors), threads from "
            + "\(before.threads.count) to \(after.threads.count)\(newThreads), resident memory by \(bytes / 1024) KiB"
            + (isMemoryJudged ? "" : ", which is not judged: the sanitizer keeps what is freed")
    }

    /// Which ones, where they are too many.
    private var newThreads: String {
        guard after.threads.count > before.threads.count + Holdings.slack(rounds) else { return "" }
        var counts: [String: Int] = [:]
        for name in after.threads { counts[name, default: 0] += 1 }
        for name in before.threads { counts[name, default: 0] -= 1 }
        let new = counts.filter { $0.value > 0 }.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
        return " (new: " + new.map { "\($0.value) \"\($0.key)\"" }.joined(separator: ", ") + ")"
    }
}

extension Examination {
    fileprivate func growth(in rounds: Int) async throws -> Growth {
        let before = Holdings.now
        for _ in 0..<rounds { try await reopen() }
        let after = await Holdings.settled(before, rounds)
        return Growth(rounds: rounds, before: before, after: after, memoryLimit: stand.memoryLimit)
    }

    fileprivate func reopen() async throws {
        let run = try await open()
        let lack = try await waitsInVain(for: 1, from: run)
        let outcome = run.outcome
        guard await run.stop() != nil else { throw Unwilling("it does not leave") }
        if let lack { throw Unwilling("nothing came within \(lack.rounded(to: 1)) s\(outcome.words)") }
    }
}

private struct Unwilling: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }
}

/// What this process was built with.
enum Sanitizers {
    /// The address sanitizer holds freed memory back, 256 MB of it, to see who still uses it; the thread sanitizer keeps a
    /// shadow of all that was ever touched.
    static let keepMemory = dlsym(nil, "__asan_init") != nil || dlsym(nil, "__tsan_init") != nil
}

/// What this process holds.
struct Holdings {
    let descriptors: Int
    /// Their names.
    let threads: [String]
    let bytes: Int

    static var now: Holdings {
        Holdings(descriptors: count("/proc/self/fd"), threads: threadNames, bytes: residentBytes)
    }

    /// By how many descriptors and threads the count may be off.
    static func slack(_ rounds: Int) -> Int { min(8, max(3, rounds / 10)) }

    /// What is held once it is as it was before: threads of pools go a moment later, and those of Dispatch when there has
    /// been nothing to do for five seconds. Looking often is something to do.
    static func settled(_ before: Holdings, _ rounds: Int) async -> Holdings {
        let limit = slack(rounds)
        let isFlat = await waits(2) {
            let now = Holdings.now
            return now.threads.count <= before.threads.count + limit && now.descriptors <= before.descriptors + limit
        }
        if !isFlat { try? await Task.sleep(for: .seconds(6)) }
        return now
    }

    private static func count(_ folder: String) -> Int {
        guard let directory = opendir(folder) else { return 0 }
        defer { closedir(directory) }
        var entries = 0
        while readdir(directory) != nil { entries += 1 }
        return entries - 2
    }

    private static var threadNames: [String] {
        var found = glob_t()
        defer { globfree(&found) }
        guard glob("/proc/self/task/*/comm", 0, nil, &found) == 0 else { return [] }
        return (0..<Int(found.gl_pathc)).compactMap { index in
            let path = found.gl_pathv[index].map { String(cString: $0) } ?? ""
            return read(path)?.split(separator: "\n").first.map(String.init)
        }
    }

    private static var residentBytes: Int {
        let fields = (read("/proc/self/statm") ?? "").split(separator: " ")
        return fields.count > 1 ? (Int(fields[1]) ?? 0) * Int(getpagesize()) : 0
    }

    /// The beginning of a file: what the kernel says of a process fits in a line.
    private static func read(_ path: String) -> String? {
        guard let file = fopen(path, "r") else { return nil }
        defer { fclose(file) }
        var line = [UInt8](repeating: 0, count: 128)
        let length = fread(&line, 1, line.count, file)
        return String(decoding: line.prefix(length), as: UTF8.self)
    }
}
