import Foundation
import TestSupport
import Testing

@testable import connectlive

@Suite struct QualityChangesTests {
    private let folder = TemporaryFolder()

    @Test func `the last ten changes of a program are kept with their times, and those of ended programs are removed`()
        throws
    {
        let ended = try FinishedProcess.number()
        try Data("old\n".utf8).write(to: URL(filePath: "\(folder.path)/why-\(ended)"))
        let changes = QualityChanges(folder: folder.path)
        for number in 1...12 {
            changes.note("the network carries \(number) kbit/s", at: Date(timeIntervalSince1970: 0))
        }
        let programs = QualityChanges.all(in: folder.path)
        #expect(programs.map(\.pid) == [Int(getpid())])
        let lines = programs.first?.changes.split(separator: "\n") ?? []
        #expect(lines.count == 10 && lines.first?.hasSuffix("  the network carries 3 kbit/s") == true)
        #expect(lines.last?.hasSuffix("  the network carries 12 kbit/s") == true)
        #expect(lines.allSatisfy { $0.prefix(19).wholeMatch(of: /[0-9-]{10} [0-9:]{8}/) != nil }, "\(lines)")
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).count == 1)
    }

    @Test func `a program has a name, and tells once what two of its rooms say`() {
        let changes = QualityChanges(folder: folder.path)
        changes.name("publish in the room lobby as p-1")
        for _ in 1...2 { changes.note("The server is back after 2.0 s.", at: Date(timeIntervalSince1970: 0)) }
        let program = QualityChanges.all(in: folder.path).first
        #expect(program?.title == "publish in the room lobby as p-1")
        #expect(program?.changes.split(separator: "\n").count == 1)
        changes.nameParticipant("p-2")
        changes.note("The server is back after 3.0 s.")
        #expect(QualityChanges.all(in: folder.path).first?.title == "publish in the room lobby as p-2")
        #expect(QualityChanges.all(in: folder.path).first?.changes.split(separator: "\n").count == 2)
    }

    @Test func `a change cannot write lines of its own`() {
        let changes = QualityChanges(folder: folder.path)
        changes.note("one\nanother")
        #expect(QualityChanges.all(in: folder.path).first?.changes.split(separator: "\n").count == 1)
    }
}

private enum FinishedProcess {
    /// The number of a process that has ended.
    static func number() throws -> Int32 {
        let process = Process()
        process.executableURL = URL(filePath: "/bin/true")
        try process.run()
        process.waitUntilExit()
        return process.processIdentifier
    }
}
