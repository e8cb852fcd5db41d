import GStreamerKit
import MediaGraph
import TestFixtures
import TestSupport
import Testing

@testable import MediaNodes

/// A machine with one file of H.264 and Opus.
private struct FileMachine: FileEnvironment {
    var video: EncodedFileVideo?

    func hasElement(_ factory: String) -> Bool { true }
    func canOpen(_ factory: String) -> Bool { true }
    func package(ofElement factory: String) -> String { "" }
    func windowSink() -> String? { "ximagesink" }
    func soundSink() -> String? { nil }
    func soundSource() -> String? { nil }
    func secondsPerFrame(_ element: ElementPlan, _ format: MediaFormat) -> Double { 0 }

    func camera(_ device: String) throws(MediaError) -> CameraChoice {
        throw MediaError(code: MediaError.Code.cameraAbsent, message: "There is none.")
    }

    func file(_ path: String) throws(MediaError) -> MediaFileInfo {
        MediaFileInfo(
            path: path, width: 64, height: 48, framesPerSecond: 30, hasAudio: true, duration: 10, videoEncoding: "h264",
            audioEncoding: "opus")
    }

    func encodedVideo(of path: String) -> EncodedFileVideo? { video }
}

extension MediaNodesTests {
    /// Files whose H.264 and Opus pass undecoded.
    @Suite struct PassingFileTests {
        private static func parameters(_ profile: String) throws -> SequenceParameters {
            try #require(SequenceParameters(frame: try EncodedFilm.h264(1, keyframeEvery: 1, profile: profile)[0]))
        }

        private static func graph(_ ends: [Node], format: String = "auto") -> MediaGraph {
            MediaGraph(
                nodes: [Node("file", settings: ["path": "/a.mkv", "format": .text(format)])] + ends,
                links: ends.flatMap { end in
                    (end.kind == "recorder" ? ["video", "audio"] : [end.name]).map {
                        Link(
                            from: PortReference(node: "file", port: $0),
                            to: PortReference(node: end.name, port: end.kind == "recorder" ? $0 : "in"))
                    }
                })
        }

        private static let room = [Node.rtpOutput("video"), Node.rtpOutput("audio")]

        /// The formats of the file's outputs, and the rejected alternatives.
        private func plan(
            _ graph: MediaGraph, profile: String = "constrained-baseline", keyframesEach seconds: Double = 2
        ) throws -> (formats: [String], passedOver: [String]) {
            let video = EncodedFileVideo(try Self.parameters(profile), keyframeInterval: seconds)
            let plan = try Planner(NodeRegistry.builtIn, FileMachine(video: video)).plan(graph)
            let file = try #require(plan.node("file"))
            return (["video", "audio"].compactMap { file.formats[$0]?.encoding }, file.passedOver)
        }

        @Test func `baseline H.264 and Opus pass to a room`() throws {
            let plan = try plan(Self.graph(Self.room))
            #expect(plan.formats == ["h264", "opus"])
            #expect(plan.passedOver.contains("I420 from h264: needs 1 encode and 1 decode"))
        }

        @Test func `another profile, or distant keyframes, keep H.264 out of a room, but not out of a recording`()
            throws
        {
            let high = try plan(Self.graph(Self.room), profile: "high")
            #expect(high.formats == ["I420", "opus"])
            #expect(high.passedOver.contains { $0.hasPrefix("its own h264: its profile is High") })
            let distant = try plan(Self.graph(Self.room), keyframesEach: 4.5)
            #expect(distant.formats == ["I420", "opus"])
            #expect(distant.passedOver.contains { $0.hasPrefix("its own h264: its keyframes are up to 4.5 s apart") })
            let recorder = Self.graph([.recorder(path: "/b.mkv")])
            #expect(try plan(recorder, profile: "high", keyframesEach: 9).formats == ["h264", "opus"])
        }

        @Test func `a preview and a request for raw media decode the file`() throws {
            #expect(try plan(Self.graph([.frames("video"), .sound("audio")])).formats == ["I420", "S16LE"])
            #expect(try plan(Self.graph(Self.room, format: "raw")).formats == ["I420", "S16LE"])
        }

        // MARK: Running

        private static let (rate, frames) = (25, 40)

        /// A film of 1.6 s with a keyframe each 0.4 s, and a beep with frames 0 and 25.
        private static func film(in folder: TemporaryFolder) async throws -> String {
            let path = folder.path + "/film.mkv"
            var encoder = Node.videoEncoder("h264", codec: .h264)
            encoder.settings["keyframe-interval"] = 10
            let graph = MediaGraph {
                Node.testPattern(
                    "pattern", width: 320, height: 240, framesPerSecond: Double(rate), frames: frames)
                Node.recorder("film", path: path)
                Chain(from: "pattern", port: "video") {
                    encoder
                    Join("film", port: "video")
                }
                Chain(from: "pattern", port: "audio") {
                    Node.opusEncoder("opus")
                    Join("film", port: "audio")
                }
            }
            let clock = SteppedClock()
            let seen = Seen()
            let pipeline = try await MediaPipeline(graph, bindings: seen.bindings(of: graph), on: clock)
            clock.run(pipeline, sources: 2, frames: frames)
            try await pipeline.start()
            await eventually("the film") { pipeline.state == .ended }
            await pipeline.stop()
            return path
        }

        /// Plays a film in a loop into a recording of so many frames.
        private func play(_ path: String, into recording: String, decodesAudio: Bool) async throws -> DecodedRecording {
            let graph = MediaGraph {
                Node.file("file", path: path)
                Node.recorder("copy", path: recording)
                Chain(from: "file", port: "video") { Join("copy", port: "video") }
                Chain(from: "file", port: "audio") {
                    if decodesAudio { Node.volume("volume", volume: 1) }
                    Join("copy", port: "audio")
                }
            }
            let seen = Seen()
            let pipeline = try await MediaPipeline(graph, seen: seen)
            let file = try #require(pipeline.plan.node("file"))
            #expect(file.formats["video"]?.encoding == "h264")
            #expect(file.formats["audio"]?.encoding == (decodesAudio ? "S16LE" : "opus"))
            try await pipeline.start()
            await eventually("two rounds and a half") {
                pipeline.statistics.recorders["copy"]?.frames ?? 0 >= Self.frames * 5 / 2
            }
            await pipeline.stop()
            #expect(seen.failures.isEmpty)
            return DecodedRecording(recording)
        }

        @Test func `a looping film in a room goes on with a keyframe and rising timestamps`() async throws {
            let folder = TemporaryFolder()
            let path = try await Self.film(in: folder)
            let receiving = MediaGraph {
                Chain {
                    Node.rtpInput("in", codec: .h264)
                    Node.videoDecoder()
                    Node.frames("view")
                }
            }
            let seen = Seen()
            let receiver = try await MediaPipeline(receiving, seen: seen)
            let input = try #require(receiver.rtpInput("in"))
            let sent = Collected<UInt32>()
            var outward = NodeBindings()
            outward.rtpOutputs["room"] = { batch in
                sent.append(batch.rtpTimestamp)
                input.push(batch.bytes, ends: batch.ends)
            }
            let publisher = try await MediaPipeline(
                MediaGraph {
                    Chain {
                        Node.file(path: path)
                        Node.rtpOutput("room")
                    }
                }, bindings: outward)
            #expect(publisher.plan.nodes.count == 2, "nothing decodes or encodes")
            try await receiver.start()
            try await publisher.start()
            await eventually("a round and a half") { seen.pictures.count >= Self.frames * 3 / 2 }
            await publisher.stop()
            await receiver.stop()
            #expect(seen.barCodes == (0..<seen.pictures.count).map { UInt32($0 % Self.frames) })
            let steps = zip(sent.all, sent.all.dropFirst()).map { Int(Int32(bitPattern: $1 &- $0)) }
            #expect(steps.allSatisfy { abs($0 - 90_000 / Self.rate) < 900 }, "\(steps)")
            #expect(seen.failures.isEmpty)
        }

        @Test("A looping film is copied into a recording, with its audio", arguments: [false, true])
        func loop(decodesAudio: Bool) async throws {
            let folder = TemporaryFolder()
            let path = try await Self.film(in: folder)
            let glance = try #require(EncodedVideoGlance.look(into: path, seconds: 2))
            #expect(glance.parameters.isBaseline && abs(glance.keyframeInterval - 0.4) < 0.05)
            let copy = try await play(path, into: folder.path + "/copy.mkv", decodesAudio: decodesAudio)
            #expect(copy.problem == nil)
            let expected = (0..<copy.numbers.count).map { UInt32($0 % Self.frames) }
            #expect(copy.numbers == expected, "each round from its first frame on")
            let steps = zip(copy.times, copy.times.dropFirst()).map { $1 - $0 }
            #expect(steps.allSatisfy { abs($0 - 1 / Double(Self.rate)) < 0.01 }, "\(steps)")
            // A round is longer than a second, so its beeps belong to the frames 0 and 25 of it.
            let marks = zip(copy.numbers, copy.times).filter { $0.0 == 0 || $0.0 == 25 }.map(\.1)
            let distances = copy.beeps.compactMap { beep in marks.map { beep - $0 }.min { abs($0) < abs($1) } }
            #expect(distances.count >= 3 && distances.allSatisfy { abs($0) < 0.04 }, "\(distances)")
        }
    }
}
