internal import Foundation
internal import MediaNodes
internal import Synchronization

/// The last changes of the quality of this program's video, in a file that `connectlive why` reads.
///
/// A file costs nothing while nothing changes, and needs no connection to a program that may be busy.
final class QualityChanges: Sendable {
    static let shared = QualityChanges(folder: RuntimeFolder.path)
    static let maximumCount = 10

    private static let times = Date.ISO8601FormatStyle(dateTimeSeparator: .space, timeZone: .current)
        .year().month().day().time(includingFractionalSeconds: false)

    private let folder: String
    private let lines = Mutex<[String]>([])

    init(folder: String) { self.folder = folder }

    /// Adds a change, and forgets the oldest beyond ten. Without a folder to write to, it does nothing.
    func note(_ change: String, at date: Date = Date()) {
        let text = lines.withLock { lines in
            lines.append("\(date.formatted(Self.times))  \(change.printable.replacing("\n", with: " "))\n")
            lines.removeFirst(max(0, lines.count - Self.maximumCount))
            return lines.joined()
        }
        guard folder != RuntimeFolder.path || RuntimeFolder.make() == nil else { return }
        Self.removeStale(in: folder)
        try? Data(text.utf8).write(to: URL(filePath: Self.path(of: Int(getpid()), in: folder)), options: .atomic)
    }

    /// The changes of all programs of this user that run, by process number.
    static func all(in folder: String = RuntimeFolder.path) -> [(pid: Int, changes: String)] {
        removeStale(in: folder)
        return programs(in: folder).compactMap { pid in
            (try? String(contentsOfFile: path(of: pid, in: folder), encoding: .utf8)).map { (pid, $0) }
        }
    }

    private static let prefix = "why-"

    private static func path(of pid: Int, in folder: String) -> String { "\(folder)/\(prefix)\(pid)" }

    private static func programs(in folder: String) -> [Int] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        return names.filter { $0.hasPrefix(prefix) }.compactMap { Int32($0.dropFirst(prefix.count)) }.filter { $0 > 0 }
            .map { Int($0) }.sorted()
    }

    /// Removes the files of programs that have ended.
    private static func removeStale(in folder: String) {
        for pid in programs(in: folder) where kill(pid_t(pid), 0) != 0 && errno == ESRCH {
            unlink(path(of: pid, in: folder))
        }
    }
}
