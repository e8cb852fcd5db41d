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
        let before = await Holdings.settled(nil, judged)
        for _ in 0..<judged { try await examination.reopen() }
        let after = await Holdings.settled(before, judged)
        let growth = after.bytes - before.bytes
        let isMemoryJudged = !Sanitizers.keepMemory
        let words =
            "in \(judged) rounds descriptors went from \(before.descriptors) to \(after.descriptors), threads from "
            + "\(before.threads) to \(after.threads), resident memory by \(growth / 1024) KiB"
            + (isMemoryJudged ? "" : ", which is not judged: the sanitizer keeps what is freed")
        // A leak is one in each round; others in this process may come and go.
        let limit = Holdings.slack(judged)
        let memory = examination.stand.memoryLimit
        let isFlat =
            after.descriptors <= before.descriptors + limit && after.threads <= before.threads + limit
            && (growth <= memory || !isMemoryJudged)
        return isFlat ? .passed(words) : .failed(words)
    }
}

extension Examination {
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
    let threads: Int
    let bytes: Int

    static var now: Holdings {
        Holdings(descriptors: count("/proc/self/fd"), threads: count("/proc/self/task"), bytes: residentBytes)
    }

    /// By how many descriptors and threads the count may be off.
    static func slack(_ rounds: Int) -> Int { min(8, max(3, rounds / 10)) }

    /// What is held once it is as it was before: threads of pools go a moment later, and those of Dispatch when there has
    /// been nothing to do for five seconds. Looking often is something to do.
    static func settled(_ before: Holdings?, _ rounds: Int) async -> Holdings {
        guard let before else { return now }
        let limit = slack(rounds)
        let isFlat = await waits(2) {
            let now = Holdings.now
            return now.threads <= before.threads + limit && now.descriptors <= before.descriptors + limit
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

    private static var residentBytes: Int {
        guard let file = fopen("/proc/self/statm", "r") else { return 0 }
        defer { fclose(file) }
        var line = [UInt8](repeating: 0, count: 128)
        let length = fread(&line, 1, line.count, file)
        let fields = String(decoding: line.prefix(length), as: UTF8.self).split(separator: " ")
        return fields.count > 1 ? (Int(fields[1]) ?? 0) * Int(getpagesize()) : 0
    }
}
