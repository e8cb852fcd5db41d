import MediaGraph
import TestFixtures
import Testing
import TestSupport

@testable import MediaNodes

extension MediaNodesTests {
    /// Files with only audio and only video, and the test pattern's flash.
    @Suite struct FileNodeTests {
        /// A WAV file with this many tenths of a second of a square wave.
        private func wav(tenths: Int) -> [UInt8] {
            let samples = 800 * tenths
            func little(_ value: Int, _ count: Int) -> [UInt8] { (0..<count).map { UInt8(value >> ($0 * 8) & 0xff) } }
            var bytes: [UInt8] = Array("RIFF".utf8) + little(36 + samples * 2, 4) + Array("WAVEfmt ".utf8)
            bytes += little(16, 4) + little(1, 2) + little(1, 2) + little(8000, 4) + little(16000, 4)
            bytes += little(2, 2) + little(16, 2) + Array("data".utf8) + little(samples * 2, 4)
            for index in 0..<samples { bytes += little(index / 10 % 2 == 0 ? 9000 : 0xffff - 9000, 2) }
            return bytes
        }

        private func hearing(_ path: String, loop: Bool) -> MediaGraph {
            MediaGraph(
                nodes: [.file(path: path, loop: loop), .sound("ear")],
                links: [
                    Link(from: PortReference(node: "file", port: "audio"), to: PortReference(node: "ear", port: "in"))
                ])
        }

        @Test("An audio file is played in real time to its end")
        func soundAlone() async throws {
            let folder = TemporaryFolder()
            let path = folder.path + "/sound.wav"
            writeFile(wav(tenths: 10), to: path)
            let clock = SteppedClock()
            let start = clock.now
            let waits = Collected<Double>()
            let seen = Seen()
            let graph = hearing(path, loop: false)
            var bindings = seen.bindings(of: graph)
            bindings.audio["ear"] = { chunk in
                seen.sound.append(chunk)
                waits.append(clock.now.seconds(since: chunk.captureTime))
            }
            let pipeline = try await MediaPipeline(graph, bindings: bindings, on: clock)
            clock.run()
            try await pipeline.start()
            await eventually("the end") { seen.events.all.contains { if case .ended = $0 { true } else { false } } }
            let seconds = seen.sound.all.map(\.seconds).reduce(0, +)
            #expect(abs(seconds - 1) < 0.05)
            #expect(waits.all.allSatisfy { $0 == 0 }, "\(waits.all)")
            let last = try #require(seen.sound.all.last)
            #expect(abs(clock.now.seconds(since: start) + last.seconds - 1) < 0.05)
            await pipeline.stop()
        }

        @Test("Each frame of a video file is shown at its time")
        func videoAlone() async throws {
            let clock = SteppedClock()
            let start = clock.now
            let watched = try await Watched(chain(.file(path: Checkout.clip), .frames("view")), on: clock)
            clock.run { _ in watched.count() < 40 }
            try await watched.pipeline.start()
            await eventually("40 frames") { watched.count() == 40 }
            await watched.pipeline.stop()
            let pictures = watched.pictures()
            #expect(pictures.first?.captureTime == start)
            #expect(pictures.allSatisfy { $0.wait == 0 }, "\(pictures.map(\.wait))")
            let steps = zip(pictures, pictures.dropFirst()).map { $1.handedOver.seconds(since: $0.handedOver) }
            #expect(steps.allSatisfy { abs($0 - 1 / 25) < 0.001 }, "\(steps)")
        }

        @Test("An audio file repeats without a gap")
        func soundLoop() async throws {
            let folder = TemporaryFolder()
            let path = folder.path + "/sound.wav"
            writeFile(wav(tenths: 2), to: path)
            let seen = Seen()
            let clock = SteppedClock()
            let graph = hearing(path, loop: true)
            let pipeline = try await MediaPipeline(graph, bindings: seen.bindings(of: graph), on: clock)
            clock.run { _ in seen.sound.count < 1000 }
            try await pipeline.start()
            await eventually("five rounds") { seen.sound.all.map(\.seconds).reduce(0, +) > 1 }
            await pipeline.stop()
            let chunks = seen.sound.all
            for (first, second) in zip(chunks, chunks.dropFirst()) {
                #expect(abs(second.captureTime.seconds(since: first.captureTime) - first.seconds) < 0.002)
            }
            // The wave is never silent, and a gap would be.
            var (silent, longest) = (0, 0)
            for sample in chunks.flatMap(\.samples) {
                silent = abs(Int(sample)) < 1000 ? silent + 1 : 0
                longest = max(longest, silent)
            }
            #expect(longest < 96, "\(longest) samples, of two channels, are silent")
            #expect(seen.failures.isEmpty)
        }

        @Test("An unused stream of a file is not decoded")
        func oneOfBoth() async throws {
            let seen = Seen()
            let pipeline = try await MediaPipeline(hearing(Checkout.clip, loop: true), seen: seen)
            #expect(pipeline.plan.nodes[0].elements.contains { $0.properties["caps"] == "audio/x-raw(ANY)" })
            try await pipeline.start()
            await eventually("sound") { seen.sound.count > 20 }
            await pipeline.stop()
            #expect(seen.failures.isEmpty)
        }

        @Test("A file without video, or without media, is refused by the plan")
        func noPictures() async throws {
            let folder = TemporaryFolder()
            let path = folder.path + "/sound.wav"
            writeFile(wav(tenths: 1), to: path)
            let graph = MediaGraph {
                Chain {
                    Node.file(path: path)
                    Node.frames("view")
                }
            }
            #expect(
                (#expect(throws: MediaError.self) {
                    try Planner(NodeRegistry.builtIn, SystemEnvironment()).plan(graph)
                })?.code == "file.no-video")
        }

        @Test("Video and audio of the test pattern flash and beep within a frame, and the bar code stays readable")
        func flash() async throws {
            let seen = Seen()
            let graph = MediaGraph(
                nodes: [.testPattern(width: 320, height: 240, framesPerSecond: 50), .frames("view"), .sound("ear")],
                links: [
                    Link(
                        from: PortReference(node: "test-pattern", port: "video"),
                        to: PortReference(node: "view", port: "in")),
                    Link(
                        from: PortReference(node: "test-pattern", port: "audio"),
                        to: PortReference(node: "ear", port: "in")),
                ])
            let clock = SteppedClock()
            let pipeline = try await MediaPipeline(graph, bindings: seen.bindings(of: graph), on: clock)
            // Video and audio have a thread each.
            clock.run(pending: 2) { _ in seen.pictures.count < 150 }
            try await pipeline.start()
            await eventually("two flashes with their beeps") { seen.pictures.count == 150 && seen.distances.count >= 2 }
            await pipeline.stop()
            #expect(seen.distances.allSatisfy { abs($0) < 20 }, "\(seen.distances)")
            #expect(seen.pictures.all.allSatisfy { $0.barCode != nil })
            let numbers = seen.pictures.all.compactMap(\.barCode)
            #expect(numbers == (0..<150).map { UInt32($0) })
        }
    }
}
