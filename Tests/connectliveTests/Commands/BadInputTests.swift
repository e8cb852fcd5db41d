import Foundation
import Testing
import TestSupport

@Suite(.serialized) struct BadInputTests {
    @Test func `a missing file is refused before any connection`() throws {
        let result = try CommandLineTool.run(
            ["publish", "--room", "r", "--file", "nothing.mp4"], folder: TemporaryFolder())
        #expect(result.status == 1)
        #expect(result.error.contains("nothing.mp4"))
        #expect(result.error.contains("[file.not-found]"))
    }

    @Test func `control characters in a message do not reach the terminal`() throws {
        let result = try CommandLineTool.run(["validate", "\u{1b}[2J\u{9b}31m.yaml"], folder: TemporaryFolder())
        #expect(result.status == 1)
        #expect(result.error.contains("\u{fffd}[2J\u{fffd}31m.yaml"), "\(result.error)")
    }

    @Test func `a file without video is refused before any connection`() throws {
        let folder = TemporaryFolder()
        // A second of silence as a WAV file.
        let samples = [UInt8](repeating: 0, count: 16000)
        func little(_ value: Int, _ bytes: Int) -> [UInt8] { (0..<bytes).map { UInt8(value >> ($0 * 8) & 255) } }
        let wave =
            Array("RIFF".utf8) + little(36 + samples.count, 4) + Array("WAVEfmt ".utf8) + little(16, 4) + little(1, 2)
            + little(1, 2) + little(8000, 4) + little(16000, 4) + little(2, 2) + little(16, 2) + Array("data".utf8)
            + little(samples.count, 4) + samples
        try Data(wave).write(to: URL(fileURLWithPath: folder.file("sound.wav")))
        let result = try CommandLineTool.run(["publish", "--room", "r", "--file", "sound.wav"], folder: folder)
        #expect(result.status == 1)
        #expect(result.error.contains("[file.no-video]"), "\(result.error)")
    }

    @Test func `a missing camera is refused before any connection`() throws {
        let result = try CommandLineTool.run(
            ["publish", "--room", "r", "--camera", "/dev/video77"], folder: TemporaryFolder())
        #expect(result.status == 1)
        #expect(result.error.contains("/dev/video77"))
        #expect(result.error.contains("connectlive devices"), "\(result.error)")
        #expect(result.error.contains("[camera.absent]"), "\(result.error)")
    }

    @Test func `without a server, or with an unreachable one, there is a message`() throws {
        let folder = TemporaryFolder()
        let none = try CommandLineTool.run(["view", "--room", "r"], folder: folder)
        #expect(none.status == 1)
        #expect(none.error.contains("[1103]"), "\(none.error)")
        let unreachable = try CommandLineTool.run(
            ["view", "--room", "r", "--server", "ws://127.0.0.1:1", "--service-id", "a", "--service-secret", "b"],
            folder: folder, seconds: 12)
        #expect(unreachable.status == 1)
        #expect(unreachable.error.contains("[1305]"), "\(unreachable.error)")
        #expect(unreachable.error.contains("127.0.0.1:1"))
    }

    @Test func `a wrong secret is refused`() throws {
        let server = try TestServer()
        let result = try CommandLineTool.run(
            ["view", "--room", "r", "--service-secret", "wrong"], folder: server.folder)
        #expect(result.status == 1)
        #expect(result.error.contains("[-11003]"), "\(result.error)")
    }

    @Test func `a taken port is refused`() throws {
        let server = try TestServer()
        let result = try CommandLineTool.run(
            ["serve", "--listen", "127.0.0.1:\(server.port)"], folder: TemporaryFolder())
        #expect(result.status == 1)
        #expect(result.error.contains("[server.port-in-use]"), "\(result.error)")
    }

    @Test func `a report that cannot be written is refused at the start`() throws {
        let result = try CommandLineTool.run(
            ["view", "--room", "r", "--report", "/nowhere/r.json"], folder: TemporaryFolder())
        #expect(result.status == 1)
        #expect(result.error.contains("[file.unwritable]"), "\(result.error)")
        let folder = TemporaryFolder()
        let other = try CommandLineTool.run(["publish", "--room", "r", "--report", folder.path], folder: folder)
        #expect(other.status == 1)
        #expect(other.error.contains("it is a folder"), "\(other.error)")
    }
}
