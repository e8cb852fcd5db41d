import Foundation
import TestSupport
import Testing

/// A Chromium on the server's page, which publishes its fake camera and shows everyone.
final class BrowserMember {
    struct Seen {
        var stream: Int
        var number: UInt32
        var tick: Int
    }

    private let program: RunningProgram
    private let folder = TemporaryFolder()

    init(page: String, seeing videos: Int, hearing audios: Int) throws {
        program = try interopProgram(
            "chromium.py",
            ["--page", page, "--seconds", "60", "--until-expected", "--expect-video-from-others", "\(videos)"]
                // Chromium paints each frame of a tile with the CPU.
                + ["--expect-audio", "\(audios)", "--expect-publishing", "5", "--window", "800x600"]
                + ["--then-read", folder.file("end")])
    }

    /// Returns when it has seen and heard everyone.
    func waitUntilSeeing() throws { _ = try program.waitForText("reading", seconds: 90) }

    /// Ends the browser when it has once more seen so many videos of others, and heard everyone. Returns the codes that its tiles
    /// showed before.
    func finish(seeing videos: Int) throws -> [Seen] {
        try Data("\(videos)".utf8).write(to: URL(fileURLWithPath: folder.file("end")), options: .atomic)
        let result = try program.finish(seconds: 90)
        try #require(result.status == 0, "\(result.output)\(result.error)")
        let line = result.output.split(separator: "\n").last ?? ""
        let report = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
        let read = try #require(report?["read"] as? [[Int]])
        return read.map { Seen(stream: $0[0], number: UInt32($0[1]), tick: $0[2]) }
    }

    /// - Parameter publishers: those of all streams
    func problems(in seen: [Seen], allKnown publishers: [Int: Int]) -> [String] {
        seen.compactMap { each in
            guard let publisher = publishers[each.stream] else { return nil }
            return FrameCode.problem(each.number, of: publisher, at: each.tick).map {
                "browser, stream \(each.stream): \($0)"
            }
        }
    }
}
