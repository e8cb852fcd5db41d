import Foundation
import MediaGraph
import TestFixtures
import Testing
import TestSupport

@testable import MediaNodes

private let rate = 30

/// A separate test pattern for each recording, so that no two share an encoder.
private func recordings(_ names: [String], in folder: String) -> MediaGraph {
    MediaGraph {
        for name in names {
            Node.testPattern("pattern-\(name)", width: 160, height: 120, framesPerSecond: Double(rate))
            Node.recorder(name, path: "\(folder)/\(name)")
            Chain(from: "pattern-\(name)", port: "video") { Join(name, port: "video") }
            if name.hasPrefix("shared") {
                Chain(from: "pattern-\(name)", port: "audio") {
                    Node.opusEncoder("opus")
                    Tee { Join(name, port: "audio") }
                    Node.sound("ear")
                }
            } else {
                Chain(from: "pattern-\(name)", port: "audio") { Join(name, port: "audio") }
            }
        }
    }
}

extension MediaNodesTests {
    /// Recordings that share no encoder.
    @Suite struct RecordingStartTests {
        @Test("A recording has both streams from its beginning, in every container, and delays nothing else")
        func bothStreams() async throws {
            let folder = TemporaryFolder()
            let seen = Seen()
            let started = ["a.mp4", "a.mkv", "a.webm", "a.m3u8", "shared.mp4"]
            let joining = ["b.mp4", "b.mkv", "b.webm", "b.m3u8"]
            let graph = recordings(started, in: folder.path)
            let clock = SteppedClock()
            let pipeline = try await MediaPipeline(graph, bindings: seen.bindings(of: graph), on: clock)
            let watch = pipeline.watch()
            // Each pattern has a thread for video and one for audio.
            clock.run(pipeline, sources: 2 * started.count)
            try await pipeline.start()
            await eventually("sound beside the recording") { seen.sound.count > 0 }
            func lasts(_ seconds: Double, _ names: [String]) async {
                await eventually("\(seconds) s of \(names)") {
                    let recorders = pipeline.statistics.recorders
                    return names.allSatisfy { (recorders[$0]?.frames ?? 0) >= Int(seconds * Double(rate)) }
                }
            }
            await lasts(0.3, started)
            try await pipeline.apply(recordings(started + joining, in: folder.path), within: 5)
            await lasts(1.2, started + joining)
            await pipeline.stop()
            // Audio that a queue of a busy machine dropped is missing from the recordings.
            let dropped = watch.sample().flatMap(\.dropped).map(\.frames).reduce(0, +)
            let slack = dropped == 0 ? 0.15 : 0.5
            for name in started + joining {
                let recording = DecodedRecording("\(folder.path)/\(name)")
                #expect(recording.problem == nil, "\(name)")
                #expect(Double(recording.numbers.count) / Double(rate) >= 1.1, "\(name)")
                let span = (recording.times.last ?? 0) - (recording.times.first ?? 0) + 1 / Double(rate)
                #expect(
                    abs(recording.secondsOfSound - span) < slack,
                    "\(name): \(recording.secondsOfSound) s of sound, \(span) s of frames, \(dropped) dropped")
                let begin = try #require(recording.firstSound, "\(name)")
                #expect(abs(begin - (recording.times.first ?? 9)) < 1.5 / Double(rate), "\(name)")
            }
            #expect(pipeline.shortfalls.isEmpty)
        }

        @Test("A recording that an edit takes out, and whose end cannot be written, is reported with the reason")
        func takenOut() async throws {
            let folder = TemporaryFolder()
            let parts = folder.path + "/parts"
            try FileManager.default.createDirectory(atPath: parts, withIntermediateDirectories: false)
            let graph = MediaGraph {
                Chain {
                    Node.testPattern("pattern", width: 160, height: 120)
                    Node.null("end")
                }
            }
            let recorded = graph.adding {
                Node("recorder", name: "gone", settings: ["path": .text(parts + "/a.m3u8"), "segment": 60])
                Chain(from: "pattern", port: "video") { Join("gone", port: "video") }
            }
            let pipeline = try await MediaPipeline(recorded)
            try await pipeline.start()
            await eventually("a segment") { fileSize(parts + "/a-00000.ts") >= 0 }
            try FileManager.default.removeItem(atPath: parts)
            try await pipeline.apply(graph)
            #expect(pipeline.state == .running)
            await pipeline.stop()
            #expect(pipeline.shortfalls.map(\.code) == [MediaError.Code.fileUnwritable])
        }

        @Test("The playlist of a recording lasts as long as its frames, also if one of them has a segment to itself")
        func playlist() async throws {
            let folder = TemporaryFolder()
            let seen = Seen()
            let path = "\(folder.path)/a.m3u8"
            let graph = MediaGraph {
                Node.testPattern("pattern", width: 160, height: 120, framesPerSecond: Double(rate), frames: rate + 1)
                Node("recorder", settings: ["path": .text(path), "segment": 1])
                Chain(from: "pattern", port: "video") { Join("recorder", port: "video") }
                Chain(from: "pattern", port: "audio") { Join("recorder", port: "audio") }
            }
            let clock = SteppedClock()
            let pipeline = try await MediaPipeline(graph, bindings: seen.bindings(of: graph), on: clock)
            clock.run(pipeline, sources: 2, frames: rate + 1)
            try await pipeline.start()
            await eventually("the end") {
                seen.events.all.contains { if case .ended = $0 { true } else { false } }
            }
            await pipeline.stop()
            let text = try #require(FileAccess.text(of: path))
            let lengths = text.split(separator: "\n").filter { $0.hasPrefix("#EXTINF:") }
                .compactMap { Double($0.dropFirst(8).prefix { $0 != "," }) }
            let recording = DecodedRecording(path)
            #expect(recording.numbers.count == pipeline.statistics.recorders["recorder"]?.frames)
            #expect(lengths.allSatisfy { $0 > 0.03 }, "\(lengths)")
            // The last frame is assumed to last as long as the previous one, which is longer if a frame was dropped.
            let span = (recording.times.last ?? 0) - (recording.times.first ?? 0) + 1 / Double(rate)
            #expect((span - 0.01..<span + 0.2).contains(lengths.reduce(0, +)), "\(lengths) for \(span) s of frames")
            #expect(fileNames(in: folder.path).allSatisfy { $0 == "a.m3u8" || $0.hasSuffix(".ts") })
        }

        @Test("The last segment of a playlist is as long as what is left, and no longer than announced")
        func lastSegment() {
            func playlist(_ target: Int, _ last: String) -> String {
                "#EXTM3U\n#EXT-X-TARGETDURATION:\(target)\n\n#EXTINF:1.5,\na-0.ts\n#EXTINF:\(last),\na-1.ts\n#EXT-X-ENDLIST"
            }
            #expect(RecordingContainer.playlist(playlist(2, "0"), lasting: 1.75) == playlist(2, "0.25"))
            #expect(RecordingContainer.playlist(playlist(2, "2.25"), lasting: 4.0) == playlist(3, "2.5"))
            #expect(RecordingContainer.playlist(playlist(2, "0.5"), lasting: 1.0) == playlist(2, "0.5"))
            #expect(RecordingContainer.playlist("#EXTM3U\n", lasting: 1) == "#EXTM3U\n")
            for odd in ["1e300", "inf", "nan", "-1e300"] {
                _ = RecordingContainer.playlist(
                    "#EXT-X-TARGETDURATION:\(odd)\n#EXTINF:\(odd),\n#EXTINF:0,\n", lasting: 1)
            }
        }

        @Test("A recording that lacks a stream, or is empty, is reported when it ends")
        func lacksStream() async throws {
            let folder = TemporaryFolder()
            let graph = MediaGraph {
                Node.testPattern("pattern", width: 160, height: 120)
                Node.rtpInput("silent", codec: .opus)
                Node.recorder("mute", path: "\(folder.path)/mute.mkv")
                Node.recorder("empty", path: "\(folder.path)/empty.mkv")
                Node.recorder("spare", path: "\(folder.path)/spare.mkv").optional
                Node.recorder("hush", path: "\(folder.path)/hush.mkv")
                Chain(from: "pattern", port: "video") { Join("mute", port: "video") }
                Chain(from: "silent") { Join("mute", port: "audio") }
                Chain(from: "pattern", port: "video") { Join("hush", port: "video") }
                Chain(from: "pattern", port: "audio") {
                    Node("element:valve", settings: ["drop": true, "drop-mode": "forward-sticky-events"])
                    // AAC has a parser, for which an end without any frame is an error.
                    Node("aac-encoder")
                    Join("hush", port: "audio")
                }
                Chain(from: "silent") { Join("empty", port: "audio") }
                Chain(from: "silent") { Join("spare", port: "audio") }
            }
            let seen = Seen()
            let clock = SteppedClock()
            let pipeline = try await MediaPipeline(graph, bindings: seen.bindings(of: graph), on: clock)
            clock.run(pipeline, sources: 2)
            try await pipeline.start()
            await eventually("pictures") {
                ["mute", "hush"].allSatisfy { (pipeline.statistics.recorders[$0]?.frames ?? 0) >= 5 }
            }
            await pipeline.stop()
            let shortfalls = pipeline.shortfalls
            #expect(shortfalls.map(\.code) == Array(repeating: MediaError.Code.recordingIncomplete, count: 3))
            for name in ["mute", "hush"] {
                #expect(shortfalls.contains { $0.node == name && $0.message.contains("has no audio") }, "\(name)")
            }
            #expect(seen.failures.isEmpty, "\(seen.failures)")
            #expect(shortfalls.contains { $0.node == "empty" && $0.message.contains("is empty") })
            #expect(seen.warnings(MediaError.Code.recordingIncomplete).count == 4, "the optional one is a warning only")
        }
    }
}
