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
    private let memory = Mutex(Memory())

    private struct Memory {
        /// Such as `publish in the room lobby as p-1`.
        var title: String?
        var lines: [String] = []
    }

    init(folder: String) { self.folder = folder }

    /// Names the program for `connectlive why`.
    func name(_ title: String) {
        memory.withLock { $0.title = title.printable.replacing("\n", with: " ") }
    }

    /// The program goes on as another participant.
    func nameParticipant(_ id: String) {
        memory.withLock { memory in
            guard let title = memory.title, let end = title.range(of: " as ", options: .backwards) else { return }
            memory.title = title[..<end.upperBound] + id.printable
        }
    }

    /// Adds a change, and forgets the oldest beyond ten. Once, if two rooms of the program tell the same. Without a folder to
    /// write to, it does nothing.
    func note(_ change: String, at date: Date = Date()) {
        let text = memory.withLock { memory -> String? in
            let line = "\(date.formatted(Self.times))  \(change.printable.replacing("\n", with: " "))\n"
            guard line != memory.lines.last else { return nil }
            memory.lines.append(line)
            memory.lines.removeFirst(max(0, memory.lines.count - Self.maximumCount))
            return (memory.title.map { "\(Self.titleMark)\($0)\n" } ?? "") + memory.lines.joined()
        }
        guard let text else { return }
        guard folder != RuntimeFolder.path || RuntimeFolder.make() == nil else { return }
        Self.removeStale(in: folder)
        try? Data(text.utf8).write(to: URL(filePath: Self.path(of: Int(getpid()), in: folder)), options: .atomic)
    }

    /// The changes of all programs of this user that run, by process number.
    static func all(in folder: String = RuntimeFolder.path) -> [(pid: Int, title: String?, changes: String)] {
        removeStale(in: folder)
        return programs(in: folder).compactMap { pid in
            guard let text = try? String(contentsOfFile: path(of: pid, in: folder), encoding: .utf8) else { return nil }
            guard text.hasPrefix(titleMark), let end = text.firstIndex(of: "\n") else { return (pid, nil, text) }
            return (pid, String(text[..<end].dropFirst(titleMark.count)), String(text[text.index(after: end)...]))
        }
    }

    private static let titleMark = "# "

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
