import ArgumentParser
import Foundation

/// The results of all seeds so far, and the file that keeps them for a later run.
struct Record {
    private let header: String
    private var results: [UInt64: SeedResult] = [:]
    private var file: FileHandle?

    init(header: String) { self.header = header }

    /// Reads the results of a file, and adds further ones to it. Creates it if it is missing.
    ///
    /// - Throws: if it has another header or a malformed line.
    mutating func open(_ path: String) throws {
        let url = URL(filePath: path)
        let text = (try? String(contentsOf: url, encoding: .utf8)) ?? ""
        // A run that was killed may have left half a line.
        var lines = text.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
        if let first = lines.popFirst(), first != header {
            throw ValidationError(
                "The record \(path) is of other rooms: \(Self.difference(String(first), header)). Give another file.")
        }
        for line in lines {
            guard let result = SeedResult(line: line) else {
                throw ValidationError("The record \(path) has a malformed line: '\(line)'. Remove it.")
            }
            results[result.seed] = result
        }
        let whole = ([Substring(header)] + lines).map { $0 + "\n" }.joined()
        do {
            if whole != text { try whole.write(to: url, atomically: true, encoding: .utf8) }
            file = try FileHandle(forWritingTo: url)
            try file?.seekToEnd()
        } catch {
            throw ValidationError("The record \(path) cannot be written. Check its folder and its permissions.")
        }
    }

    /// The first part of two headers that differs.
    private static func difference(_ old: String, _ new: String) -> String {
        let (old, new) = (old.components(separatedBy: ", "), new.components(separatedBy: ", "))
        let differing = zip(old, new).first { $0 != $1 }
        return differing.map { "it has '\($0)' instead of '\($1)'" }
            ?? "it has \(old.count) fields instead of \(new.count)"
    }

    func has(_ seed: UInt64) -> Bool { results[seed] != nil }

    mutating func add(_ result: SeedResult) throws {
        results[result.seed] = result
        try file?.write(contentsOf: Data((result.line + "\n").utf8))
    }

    var hasProblems: Bool { results.values.contains { $0.problem != nil } }

    var summary: String {
        let all = Array(results.values)
        let broken = all.filter { $0.problem != nil }.map(\.seed).sorted()
        func sum(_ figure: (SeedResult) -> Double) -> Double { all.reduce(0) { $0 + figure($1) } }
        func longest(_ figure: (SeedResult) -> Double) -> String { String(format: "%.0f", all.map(figure).max() ?? 0) }
        var firstFrames = SeedResult.Waits()
        var freezes = SeedResult.Waits()
        for result in all {
            firstFrames.add(result.firstFrames)
            freezes.add(result.freezes)
        }
        let share = String(format: "%.1f", 100 * (all.map(\.memoryShare).max() ?? 0))
        return """
            rooms: \(all.count); with a broken promise: \(broken.count)\(broken.isEmpty ? "" : " \(broken)")
            \(String(format: "%.1f", sum(\.seconds))) s of real time. \(all.count - broken.count) finished rooms: \(all.reduce(0) { $0 + $1.datagrams }) datagrams, \
            \(all.reduce(0) { $0 + $1.bytes }) bytes, \(all.reduce(0) { $0 + $1.keyframes }) keyframes, \
            \(all.reduce(0) { $0 + $1.shown }) frames shown
            deepest queue of a link: \(all.map(\.deepestQueue).max() ?? 0) bytes; packets in the server: \
            \(all.map(\.memory).max() ?? 0) bytes, \(share) % of the limit
            time to the first frame: \(firstFrames.distribution)
            longest freeze: \(freezes.distribution)
            longest waits that bounds judge: first frame \(longest(\.firstFrame)) ms, freeze \(longest(\.freeze)) ms, \
            keyframe \(longest(\.keyframe)) ms
            """
    }
}

extension SeedResult.Waits {
    /// Up to a tenth of a second too long.
    var distribution: String {
        let total = counts.values.reduce(0, +)
        guard total > 0 else { return "none" }
        let sorted = counts.sorted { $0.key < $1.key }
        func bound(of share: Double) -> String {
            var left = Int((Double(total) * share).rounded(.up))
            let bucket = sorted.first { entry in
                left -= entry.value
                return left <= 0
            }
            return "under \(((bucket?.key ?? 0) + 1) * 100) ms"
        }
        return "\(total) views: half \(bound(of: 0.5)), 95 % \(bound(of: 0.95)), 99 % \(bound(of: 0.99)), "
            + "99.9 % \(bound(of: 0.999)), all \(bound(of: 1))"
    }
}
