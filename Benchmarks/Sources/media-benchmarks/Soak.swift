import Glibc
import MediaGraph
import MediaNodes
import Synchronization

/// One graph started and stopped, or edited, as often as asked; says after each tenth of the rounds what the process
/// holds.
enum Soak {
    static func starts(_ count: Int) async throws {
        let graph = MediaGraph {
            Chain {
                Node.testPattern("pattern", width: 160, height: 120, framesPerSecond: 120)
                Tee { Node.null("preview") }
                Node.videoEncoder("encoder", codec: .vp8)
                Node.null("end")
            }
        }
        try await rounds(count) { _ in
            let pipeline = try await MediaPipeline(graph)
            try await pipeline.start()
            await pipeline.stop()
        }
    }

    static func edits(_ count: Int) async throws {
        let plain = MediaGraph {
            Chain {
                Node.testPattern("pattern", width: 160, height: 120, framesPerSecond: 120)
                Node.null("preview")
            }
        }
        let encoding = plain.adding {
            Chain(from: "pattern") {
                Node.videoEncoder("encoder", codec: .vp8)
                Node.null("end")
            }
        }
        let pipeline = try await MediaPipeline(plain)
        try await pipeline.start()
        try await rounds(count) { round in
            try await pipeline.apply(round % 2 == 0 ? encoding : plain, within: 10)
        }
        await pipeline.stop()
    }

    private static func rounds(_ count: Int, _ body: (Int) async throws -> Void) async throws {
        let clock = ContinuousClock()
        let begin = clock.now
        for round in 0..<count {
            if round % max(count / 10, 1) == 0 { say(round, clock.now - begin) }
            try await body(round)
        }
        say(count, clock.now - begin)
    }

    private static func say(_ round: Int, _ time: Duration) {
        let milliseconds = Int(time / .milliseconds(1))
        MediaBenchmarks.say(
            "{\"rounds\":\(round),\"milliseconds\":\(milliseconds),\"threads\":\(entries("/proc/self/task")),"
                + "\"descriptors\":\(entries("/proc/self/fd")),\"kilobytes\":\(residentKilobytes)}")
    }

    private static func entries(_ folder: String) -> Int {
        guard let directory = opendir(folder) else { return -1 }
        defer { closedir(directory) }
        var entries = 0
        while readdir(directory) != nil { entries += 1 }
        // Itself, its parent, and for descriptors the one that reads it.
        return entries - (folder.hasSuffix("fd") ? 3 : 2)
    }

    private static var residentKilobytes: Int {
        guard let file = fopen("/proc/self/statm", "r") else { return -1 }
        defer { fclose(file) }
        var line = [UInt8](repeating: 0, count: 128)
        let length = fread(&line, 1, line.count, file)
        let fields = String(decoding: line.prefix(length), as: UTF8.self).split(separator: " ")
        return fields.count > 1 ? (Int(fields[1]) ?? -1) * 4 : -1
    }
}
