import Foundation
import MediaGraph
import RoomProtocol
import TestSupport
import Testing

@testable import RTP
@testable import RoomRecording
@testable import ServerCore

/// Recordings whose disk takes nothing for a while.
@Suite(.timeLimit(.minutes(1))) struct BlockedDiskTests {
    private let folder = TemporaryFolder()
    private let disk = BlockableDisk()
    private let lines = Collected<String>()

    private func files(limit: Int = 100, capacity: Int = 64 * 1024) throws -> RecordingFolder {
        var settings = disk.settings
        settings.capacity = capacity
        return try RecordingFolder(folder.path, limit: limit, settings: settings, log: log(to: lines))
    }

    /// Writes until the file has no room. Returns the packets that wait.
    private func fill(_ file: WrittenFile) -> Int {
        var written = 0
        while written < 100_000, file.write(10) { written += 10 }
        return written
    }

    private func onlyReport() throws -> RecordingReport {
        try report("\(folder.path)/\(folder.names(".json").first ?? "")")
    }

    @Test func `packets that wait are bounded by the memory that they take, not by their bytes alone`() async throws {
        let files = try files(capacity: 8 * 1024 * 1024)
        let file = try WrittenFile(in: files)
        let waiting = fill(file)
        #expect(waiting > 10_000 && waiting * 512 <= 8 * 1024 * 1024, "\(waiting)")
        #expect(!file.sink.isHalfEmpty)
        disk.take(waiting)
        try await requireEventually("room") { file.sink.isHalfEmpty }
        file.sink.end(RecordingEnd())
        try await requireEventually("the end") { files.count == 0 }
        let report = try onlyReport()
        #expect(report.packets == waiting && report.error == nil)
        #expect(abs(report.seconds - Double(waiting - 1) * 0.02) < 0.001)
    }

    @Test func `dropped packets are logged, and a disk that takes nothing for long ends the recording`() async throws {
        let files = try files(limit: 1)
        let file = try WrittenFile(in: files)
        #expect(file.write(1))
        try await file.reach(1)
        let waiting = fill(file)
        try await requireEventually("the warning") { lines.all.contains { $0.hasPrefix("warning recording drops") } }
        #expect(!file.write(10))
        disk.take(1)
        try await file.reach(2)
        disk.fireTimers()
        #expect(file.failures.count == 0)
        disk.fireTimers()
        let error = try #require(file.failures.all.first)
        #expect(error.code == .recordingFailed && error.message.contains("took nothing for 30 s"), "\(error)")
        #expect(lines.all.count { $0.hasPrefix("warning recording drops") } == 1, "\(lines.all)")
        #expect(lines.all.contains { $0.hasPrefix("warning recording failed") }, "\(lines.all)")
        file.sink.end(RecordingEnd(dropped: 20))
        // The place is taken as long as a thread waits for the disk.
        try await requireEventually("the reason of the next refusal") {
            let refusal = #expect(throws: RoomError.self) { try WrittenFile(8, in: files) }
            return refusal?.message.contains("1 of them have ended, and wait for its disk") == true
        }
        disk.take(waiting)
        try await requireEventually("a free place") { files.count == 0 }
        let report = try onlyReport()
        #expect(report.error?.code == "recording.failed" && report.dropped == 20)
        // The last one was on its way.
        #expect(report.packets == 2 && report.seconds == 0.02, "\(report)")
    }

    @Test func `an end is written however long it takes, as long as the disk takes some of it`() async throws {
        let files = try files()
        let file = try WrittenFile(in: files)
        #expect(file.write(10))
        try await file.reach(1)
        file.sink.end(RecordingEnd())
        try await requireEventually("a timer") { disk.runningTimers == 1 }
        for packet in 2...10 {
            disk.take(1)
            try await file.reach(packet)
            disk.fireTimers()
        }
        #expect(disk.runningTimers == 1)
        disk.take(1)
        try await requireEventually("the end") { files.count == 0 }
        let report = try onlyReport()
        #expect(report.error == nil && report.packets == 10)
    }

    @Test func `an end that the disk does not take fails after its time, and with the server's`() async throws {
        let files = try files()
        let (first, second) = (try WrittenFile(1, in: files), try WrittenFile(2, in: files))
        for file in [first, second] {
            #expect(file.write(10))
            try await file.reach(1)
            file.sink.end(RecordingEnd())
        }
        try await requireEventually("both timers") { disk.runningTimers == 2 }
        second.sink.giveUp()
        try await requireEventually("its failure") { lines.all.contains { $0.hasPrefix("warning recording failed") } }
        disk.fireTimers()
        try await requireEventually("both failures") {
            lines.all.count { $0.hasPrefix("warning recording failed") } == 2
        }
        disk.take(20)
        try await requireEventually("both ends") { files.count == 0 }
        let reports = try folder.names(".json").map { try report("\(folder.path)/\($0)") }
        #expect(reports.count == 2 && reports.allSatisfy { $0.error?.code == "recording.failed" }, "\(reports)")
    }

    @Test func `a disk that is full already leaves nothing`() async throws {
        let place = folder.path + "/disk"
        mkdir(place, 0o700)
        try #require(mount("tmpfs", place, "tmpfs", 0, "size=4k") == 0)
        defer {
            umount2(place, Int32(MNT_DETACH))
            rmdir(place)
        }
        try Data(repeating: 1, count: 4096).write(to: URL(filePath: place + "/other"))
        let files = try RecordingFolder(place, log: quiet())
        let file = try WrittenFile(in: files)
        #expect(file.write(1))
        try await requireEventually("the failure") { file.failures.count == 1 }
        #expect(file.failures.all.first?.message.contains("disk is full") == true, "\(file.failures.all)")
        file.sink.end(RecordingEnd())
        try await requireEventually("the end") { files.count == 0 }
        #expect(folder.names("", in: place) == ["other"])
    }

    @Test func `the clock is read for each participant whose other recordings have ended`() async throws {
        let reads = Collected<Bool>()
        var settings = RecordingSettings()
        // The machine's clock steps by an hour between two reads.
        settings.readClock = {
            reads.append(true)
            return RecordingClock(date: Date(timeIntervalSince1970: Double(reads.count - 1) * 3600), at: .zero)
        }
        let files = try RecordingFolder(folder.path, settings: settings, log: quiet())
        let first = try WrittenFile(1, participant: "p-1", in: files)
        let others = [(2, "p-1"), (3, "p-2")].map { try? WrittenFile($0, participant: $1, in: files) }
        for file in others {
            #expect(file?.write(1) == true)
            file?.sink.end(RecordingEnd())
        }
        try await requireEventually("the ends") { files.count == 1 }
        first.sink.end(RecordingEnd())
        try await requireEventually("the end") { files.count == 0 }
        let last = try WrittenFile(4, participant: "p-1", in: files)
        #expect(last.write(1))
        last.sink.end(RecordingEnd())
        try await requireEventually("the end") { files.count == 0 }
        #expect(
            folder.names(".json") == [
                "19700101T000001.000Z_kitchen_p-1_2-audio.json", "19700101T010001.000Z_kitchen_p-2_3-audio.json",
                "19700101T020001.000Z_kitchen_p-1_4-audio.json",
            ])
    }
}
