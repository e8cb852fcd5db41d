import Glibc
import MediaGraph
import TestSupport
@testable import MediaNodes
import TestFixtures
import Testing

/// HLS recordings: a playlist, and its segments beside it.
extension MediaNodesTests {
    @Suite struct PlaylistTests {
        private func graph(_ path: String, frames: Int) -> MediaGraph {
            MediaGraph {
                Chain {
                    Node.testPattern("pattern", width: 160, height: 120, framesPerSecond: 30, frames: frames)
                    Node("recorder", settings: ["path": .text(path), "segment": 1])
                }
            }
        }

        /// Records until the pattern's end. Returns the number of recorded frames.
        private func record(_ path: String, in folder: TemporaryFolder, frames: Int) async throws -> Int {
            let events = Collected<MediaEvent>()
            var bindings = NodeBindings()
            bindings.events = { events.append($0) }
            let clock = SteppedClock()
            let pipeline = try await MediaPipeline(graph(path, frames: frames), bindings: bindings, on: clock)
            clock.run(pipeline)
            try await pipeline.start()
            await eventually("the end") { events.all.contains { if case .ended = $0 { true } else { false } } }
            await pipeline.stop()
            #expect(pipeline.shortfalls.isEmpty, "\(pipeline.shortfalls)")
            // Complete while the pipeline still exists, because a process may end with it.
            #expect(fileNames(in: folder.path).allSatisfy { !$0.hasPrefix(".") })
            let recorded = pipeline.statistics.recorders["recorder"]?.frames ?? 0
            #expect(recorded == frames)
            return recorded
        }

        @Test("A recording replaces an earlier one with all its segments", arguments: [20, 40])
        func replaces(frames: Int) async throws {
            let folder = TemporaryFolder()
            let path = folder.path + "/a.m3u8"
            _ = try await record(path, in: folder, frames: 100)
            writeFile([1, 2, 3], to: folder.path + "/a-note.ts")
            let recorded = try await record(path, in: folder, frames: frames)
            #expect(DecodedRecording(path).numbers.count == recorded)
            let segments = ["a-00000.ts", "a-00001.ts"].prefix(frames / 30 + 1)
            #expect(fileNames(in: folder.path).sorted() == segments + ["a-note.ts", "a.m3u8"])
        }

        @Test("A file with the name of a segment does not keep the segment from being written")
        func strayFiles() async throws {
            let folder = TemporaryFolder()
            let path = folder.path + "/a.m3u8"
            writeFile([], to: folder.path + "/a-00000.ts")
            writeFile([1, 2, 3], to: folder.path + "/a-00002.ts")
            let recorded = try await record(path, in: folder, frames: 80)
            #expect(DecodedRecording(path).numbers.count == recorded)
        }

        @Test("A second recording does not replace one that runs")
        func runningRecording() async throws {
            let folder = TemporaryFolder()
            let path = folder.path + "/a.m3u8"
            let pipeline = try await MediaPipeline(graph(path, frames: 0))
            try await pipeline.start()
            // By then hlssink2 has replaced the playlist.
            await eventually("two segments") { fileSize(folder.path + "/a-00001.ts") > 0 }
            let second = try await MediaPipeline(graph(path, frames: 20))
            let error = await #expect(throws: MediaError.self) { try await second.start() }
            #expect(error?.code == MediaError.Code.fileConflict)
            await pipeline.stop()
            #expect(pipeline.shortfalls.isEmpty, "\(pipeline.shortfalls)")
            _ = try await record(path, in: folder, frames: 20)
        }

        // RFC 8216 section 4.1, RFC 3986 section 3.3
        @Test(
            "Every name of a recording can be played",
            arguments: ["take #1.m3u8", "50%.m3u8", "100%25 %n.m3u8", "why?.m3u8", "a:b.m3u8", "Gespräch.m3u8"])
        func names(name: String) async throws {
            let folder = TemporaryFolder()
            let path = folder.path + "/" + name
            let recorded = try await record(path, in: folder, frames: 40)
            let recording = DecodedRecording(path)
            #expect(recording.problem == nil)
            #expect(recording.numbers.count == recorded)
            let text = try #require(FileAccess.text(of: path))
            let uris = text.split(separator: "\n").filter { !$0.hasPrefix("#") }
            #expect(uris.count == 2)
            #expect(uris.allSatisfy { !$0.contains { "#?:".contains($0) } })
            #expect(fileNames(in: folder.path).contains(name.dropLast(5) + "-00000.ts"))
        }

        @Test("A recording that lacks a segment, or has an empty one, is incomplete", arguments: [true, false])
        func lacksSegment(isEmpty: Bool) async throws {
            let folder = TemporaryFolder()
            let segment = folder.path + "/a-00000.ts"
            let clock = SteppedClock()
            let pipeline = try await MediaPipeline(graph(folder.path + "/a.m3u8", frames: 0), on: clock)
            let second = folder.path + "/a-00001.ts"
            clock.run(pipeline) { fileSize(second) <= 0 }
            try await pipeline.start()
            await eventually("two segments") { fileSize(second) > 0 }
            if isEmpty { truncate(segment, 0) } else { unlink(segment) }
            await pipeline.stop()
            #expect(pipeline.shortfalls.map(\.code) == [MediaError.Code.recordingIncomplete])
            #expect(pipeline.shortfalls.first?.message.contains(segment) == true, "\(pipeline.shortfalls)")
        }
    }
}
