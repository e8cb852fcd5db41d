import Testing
import TestSupport

/// A file that gst-launch writes. No live source is in it, so that a busy machine drops no frame.
enum OfflineFilm {
    static func write(_ pipeline: String, in folder: TemporaryFolder) throws {
        let program = try RunningProgram(
            "/usr/bin/gst-launch-1.0", ["-q"] + pipeline.split(separator: " ").map(String.init), folder: folder)
        let result = try program.finish(seconds: 60)
        try #require(result.status == 0, "\(result.output)\(result.error)")
    }
}
