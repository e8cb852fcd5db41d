import Foundation
import MediaGraph
import PeerLoop
import RoomProtocol
import TestFixtures
import TestSupport
import Testing

@testable import RTP
@testable import RoomRecording
@testable import ServerCore

/// The files of recorded streams, which a reader decodes.
@Suite(.timeLimit(.minutes(2))) struct RecordingFileTests {
    @Test(arguments: [Codec.vp8, .vp9, .h264]) func `a file has every frame at its time`(codec: Codec) async throws {
        let folder = TemporaryFolder()
        let rehearsal = try Rehearsal(codec, in: try RecordingFolder(folder.path, log: quiet()))
        rehearsal.play(try await takes(codec.rawValue.lowercased(), frames: 90))
        await rehearsal.end()
        let file = try #require(folder.names(".mkv").first)
        let recording = DecodedRecording("\(folder.path)/\(file)")
        #expect(recording.problem == nil)
        #expect(recording.numbers.compactMap { $0 }.count == 90)
        #expect(recording.isContinuous(but: 0))
        let errors = recording.times.enumerated().map { abs($1 - Double($0) / 30) }
        #expect(errors.allSatisfy { $0 < 0.002 }, "\(errors.max() ?? 0)")
        let report = try report("\(folder.path)/\(folder.names(".json").first ?? "")")
        #expect(report.file == file && report.room == "kitchen" && report.stream == 7 && report.error == nil)
        #expect(report.codec == codec.rawValue && report.media == "video" && report.missing == 0 && report.dropped == 0)
        #expect(abs(report.seconds - 89.0 / 30) < 0.01)
        #expect(file.contains("_kitchen_p-4f1c_7-video.mkv"))
        #expect(rehearsal.failures.count == 0)
    }

    @Test func `audio with pauses has its whole length`() async throws {
        let folder = TemporaryFolder()
        let rehearsal = try Rehearsal(.opus, in: try RecordingFolder(folder.path, log: quiet()))
        let sound = try await takes("opus", frames: 60)
        rehearsal.play(sound, every: 0.02)
        let end = Double(sound.count) * 0.02
        rehearsal.play(sound, from: end + 5, every: 0.02)
        await rehearsal.end()
        let recording = DecodedRecording("\(folder.path)/\(folder.names(".mkv").first ?? "")")
        #expect(recording.problem == nil)
        // One beep at each beginning of the pattern's second: the first is there when the sound begins.
        let distance = recording.beeps.last.map { $0 - (recording.beeps.first ?? 0) } ?? 0
        #expect(abs(distance - (end + 5)) < 0.03, "\(recording.beeps)")
    }

    @Test func `the report of a video has its last sort, and that of audio none`() async throws {
        let folder = TemporaryFolder()
        let files = try RecordingFolder(folder.path, log: quiet())
        let video = try Rehearsal(.vp8, in: files, number: 1)
        video.play(try await takes("vp8", frames: 3))
        video.stream.apply(StreamChange(sort: "3 crop"))
        video.stream.apply(StreamChange(sort: "5 fit"))
        video.stream.end()
        let audio = try Rehearsal(.opus, in: files, number: 2)
        audio.play(try await takes("opus", frames: 3), every: 0.02)
        await audio.end()
        let reports = try folder.names(".json").map { try report("\(folder.path)/\($0)") }
        #expect(reports.sorted { $0.stream < $1.stream }.map(\.sort) == ["5 fit", nil])
    }

    @Test func `lost frames leave a gap of their length, and no broken frame`() async throws {
        let folder = TemporaryFolder()
        let rehearsal = try Rehearsal(.vp8, in: try RecordingFolder(folder.path, log: quiet()))
        let first = try await takes("vp8", frames: 30)
        rehearsal.play(first)
        rehearsal.lose(3)
        // Frames that depend on lost ones, and a keyframe.
        rehearsal.play(Array(first[10..<20]), from: 2)
        rehearsal.play(first, from: 4)
        await rehearsal.end()
        let recording = DecodedRecording("\(folder.path)/\(folder.names(".mkv").first ?? "")")
        #expect(recording.problem == nil)
        #expect(recording.numbers == (0..<30).map { UInt32($0) } + (0..<30).map { UInt32($0) })
        #expect(abs((recording.times.dropFirst(30).first ?? 0) - 4) < 0.002)
        let report = try report("\(folder.path)/\(folder.names(".json").first ?? "")")
        #expect(report.missing == 3)
    }

    @Test(arguments: [Codec.vp8, .h264]) func `a video that changes its size goes on in the same file`(
        codec: Codec
    ) async throws {
        let folder = TemporaryFolder()
        let rehearsal = try Rehearsal(codec, in: try RecordingFolder(folder.path, log: quiet()))
        let name = codec.rawValue.lowercased()
        rehearsal.play(try await takes(name, frames: 30))
        rehearsal.play(try await takes(name, frames: 30, width: 320, height: 240), from: 1)
        rehearsal.play(try await takes(name, frames: 30), from: 2)
        await rehearsal.end()
        #expect(folder.names(".mkv").count == 1)
        let recording = DecodedRecording("\(folder.path)/\(folder.names(".mkv").first ?? "")")
        #expect(recording.problem == nil)
        let numbers = (0..<30).map { UInt32($0) }
        #expect(recording.numbers == numbers + numbers + numbers)
    }

    @Test func `the part of a recording that a killed server leaves is playable`() async throws {
        let folder = TemporaryFolder()
        let rehearsal = try Rehearsal(.vp8, in: try RecordingFolder(folder.path, log: quiet()))
        rehearsal.play(try await takes("vp8", frames: 90))
        let copy = "\(folder.path)/copy.webm"
        try await requireEventually("two seconds in the file") {
            guard let file = folder.names(".mkv").first else { return false }
            // Written data belongs to the kernel.
            try? FileManager.default.removeItem(atPath: copy)
            try FileManager.default.copyItem(atPath: "\(folder.path)/\(file)", toPath: copy)
            return DecodedRecording(copy).numbers.count > 60
        }
        #expect(DecodedRecording(copy).isContinuous(but: 0))
        #expect(folder.names(".json").isEmpty)
        await rehearsal.end()
        #expect(folder.names(".json").count == 1 && folder.names(".part").isEmpty)
    }

    @Test func `two files of one publisher tell by their dates how to align them`() async throws {
        let folder = TemporaryFolder()
        let files = try RecordingFolder(folder.path, log: quiet())
        let clock = CaptureClock()
        let video = try Rehearsal(.vp8, in: files, number: 1, clock: clock)
        let audio = try Rehearsal(.opus, in: files, number: 2, clock: clock)
        let began = Date()
        // Both are at second 3 of the publisher's clock when their streams are at 2.0 and 2.5: the audio began half a second earlier.
        for (rehearsal, at) in [(video, 2.0), (audio, 2.5)] {
            let takes = try await takes(rehearsal === video ? "vp8" : "opus", frames: 10)
            rehearsal.play(takes, every: 0.02)
            let stream = rehearsal.stream
            stream.layers[0].setClock(
                SenderClock(
                    ntp: NTPTime(unixNanoseconds: 3_000_000_000),
                    rtp: RTPTimestamp(UInt32(at * Double(stream.codec.clockRate))), at: video.loop.now + .seconds(2),
                    clockRate: stream.codec.clockRate))
        }
        video.stream.end()
        await audio.end()
        let dates = folder.names(".mkv").compactMap { MatroskaDate.read("\(folder.path)/\($0)") }
        try #require(dates.count == 2)
        #expect(abs(abs(dates[1].timeIntervalSince(dates[0])) - 0.5) < 0.001, "\(dates)")
        #expect(dates.allSatisfy { abs($0.timeIntervalSince(began)) < 20 }, "\(dates) \(began)")
        for name in folder.names(".json") {
            let report = try report("\(folder.path)/\(name)")
            let date = try #require(MatroskaDate.read("\(folder.path)/\(report.file)"))
            #expect(RecordingReport.text(date).prefix(22) == report.start.prefix(22))
        }
    }

    /// The stream may end before the loop hears of the failure.
    @Test(arguments: [false, true])
    func `a full disk ends the recording with its cause, and what is recorded is playable`(
        endsFirst: Bool
    ) async throws {
        let folder = TemporaryFolder()
        let disk = folder.path + "/disk"
        mkdir(disk, 0o700)
        try #require(mount("tmpfs", disk, "tmpfs", 0, "size=44k") == 0)
        defer {
            umount2(disk, Int32(MNT_DETACH))
            rmdir(disk)
        }
        let lines = Collected<String>()
        let files = try RecordingFolder(disk, log: log(to: lines))
        let rehearsal = try Rehearsal(.vp8, in: files)
        let takes = try await takes("vp8", frames: 150, width: 320, height: 240)
        rehearsal.play(takes)
        rehearsal.lose(3)
        rehearsal.play(Array(takes.prefix(60)), from: 6)
        try await requireEventually("the failure") { rehearsal.failures.count == 1 }
        let error = try #require(rehearsal.failures.all.first)
        #expect(error.code == .recordingFailed && error.message.contains("disk is full"), "\(error)")
        if endsFirst { rehearsal.stream.end() } else { #expect(rehearsal.stream.stopRecording()) }
        try await requireEventually("the report") { files.count == 0 }
        let report = try report("\(disk)/\(folder.names(".json", in: disk).first ?? "")")
        #expect(folder.names(".part", in: disk).isEmpty)
        #expect(report.error?.code == "recording.failed" && report.missing == 3, "\(report)")
        #expect(lines.all.contains { $0.hasPrefix("warning recording failed") }, "\(lines.all)")
        let recording = DecodedRecording("\(disk)/\(folder.names(".mkv", in: disk).first ?? "")")
        #expect(recording.numbers.count > 5 && recording.isContinuous(but: 0), "\(recording.numbers.count)")
        await rehearsal.end()
    }

    @Test func `a recording keeps the clock of its beginning up to its end`() async throws {
        let folder = TemporaryFolder()
        let ended = Collected<Bool>()
        let clock = RecordingClock(date: Date(timeIntervalSince1970: 1_764_396_374.25), at: .zero)
        let stream = RecordedStream(room: try RoomName("kitchen"), participant: "p-4f1c", stream: 7, codec: .opus)
        let file = RecordingFile(
            stream, in: folder.path, clock: clock, settings: RecordingSettings(), log: quiet(), failed: { _ in },
            ended: { _ in ended.append(true) })
        var packets = RecordedPackets()
        packets.append(
            [0xf8, 0xff, 0xfe], Splice.Numbers(sequenceNumber: SequenceNumber(0), timestamp: RTPTimestamp(0)),
            payloadType: Codec.opus.payloadType, marker: true, at: .zero)
        packets.start = MonotonicTime(nanoseconds: 1_000_000_000)
        #expect(file.write(packets))
        file.end(RecordingEnd(start: MonotonicTime(nanoseconds: 1_500_000_000)))
        try await requireEventually("the end") { ended.count == 1 }
        let name = try #require(folder.names(".json").first)
        #expect(name == "20251129T060615.250Z_kitchen_p-4f1c_7-audio.json")
        #expect(try report("\(folder.path)/\(name)").start == "2025-11-29T06:06:15.750000Z")
    }

    @Test func `a stream without packets leaves no file`() async throws {
        let folder = TemporaryFolder()
        let rehearsal = try Rehearsal(.vp8, in: try RecordingFolder(folder.path, log: quiet()))
        await rehearsal.end()
        #expect(folder.names("").isEmpty)
        #expect(rehearsal.folder.count == 0)
    }
}

/// The folder of a server's recordings.
struct RecordingFolderTests {
    @Test func `a folder that does not exist is created, for its owner and group alone`() throws {
        let folder = TemporaryFolder()
        let path = folder.path + "/a/b"
        _ = try RecordingFolder(path, log: quiet())
        let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
        #expect(mode == 0o750)
    }

    @Test(arguments: ["file", "file/below", "/proc/recordings"])
    func `a folder that cannot be used is refused with its reason`(name: String) throws {
        let folder = TemporaryFolder()
        #expect(FileManager.default.createFile(atPath: folder.path + "/file", contents: nil))
        let path = name.hasPrefix("/") ? name : "\(folder.path)/\(name)"
        let error = #expect(throws: RoomError.self) { _ = try RecordingFolder(path, log: quiet()) }
        #expect(error?.code == .recordingUnavailable)
        #expect(error?.message.contains(path) == true, "\(String(describing: error))")
    }

    @Test func `further recordings than the limit are refused until one ends`() async throws {
        let folder = TemporaryFolder()
        let files = try RecordingFolder(folder.path, limit: 2, log: quiet())
        let first = try Rehearsal(.vp8, in: files, number: 1)
        let second = try Rehearsal(.vp8, in: files, number: 2)
        let error = #expect(throws: RoomError.self) { _ = try Rehearsal(.vp8, in: files, number: 3) }
        #expect(error?.code == .recordingUnavailable)
        first.stream.end()
        try await requireEventually("a free place") { files.count == 1 }
        let third = try Rehearsal(.vp8, in: files, number: 3)
        second.stream.end()
        await third.end()
        #expect(files.count == 0)
    }

    @Test func `a recording never overwrites a file or follows a link`() throws {
        let folder = TemporaryFolder()
        let (file, link) = ("\(folder.path)/file", "\(folder.path)/link")
        #expect(FileManager.default.createFile(atPath: file, contents: Data("here".utf8)))
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: "\(folder.path)/elsewhere")
        for path in [file, link] { #expect(RecordingFile.create(path) == EEXIST) }
        #expect(FileManager.default.contents(atPath: file) == Data("here".utf8))
        #expect(folder.names("elsewhere").isEmpty)
        #expect(RecordingFile.create("\(folder.path)/new") == nil)
    }
}
