import Dispatch
import Foundation
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

        @Test func `a file that does not surely pass is decoded for every reader, and the plan says why`() throws {
            let good = EncodedFileVideo(try Self.parameters("constrained-baseline"), keyframeInterval: 2)
            func expect(_ reason: String, _ change: (inout EncodedFileVideo) throws -> Void) throws {
                var video = good
                try change(&video)
                for ends in [Self.room, [.recorder(path: "/b.mkv")]] {
                    let plan = try Planner(NodeRegistry.builtIn, FileMachine(video: video)).plan(Self.graph(ends))
                    let file = try #require(plan.node("file"))
                    #expect(file.formats["video"]?.encoding == "I420")
                    #expect(file.formats["audio"]?.encoding == "opus")
                    #expect(
                        file.passedOver.contains { $0.hasPrefix("its own h264: \(reason)") }, "\(file.passedOver)")
                }
            }
            try expect("its profile is High") { $0.parameters = try Self.parameters("high") }
            try expect("its keyframes are up to 4.5 s apart") { $0.keyframeInterval = 4.5 }
            try expect("only MP4, MOV and Matroska") { $0.container = nil }
            try expect("its first seconds took longer to read than 2 s") { $0.isRead = false }
            try expect("some of its frames have no time") { $0.hasAllTimes = false }
            try expect("it does not begin with a keyframe") { $0.beginsWithKeyframe = false }
            try expect("the file gave no keyframe") { $0.parameters = nil }
        }

        /// Writes frames of H.264, 30 in a second, into a container.
        private static func mux(_ frames: [[UInt8]], _ muxer: String, into path: String) throws {
            let isOver = DispatchSemaphore(value: 0)
            let pipeline = Pipeline { message in
                if case .endOfStream = message { isOver.signal() }
            }
            let source = try PushSource()
            let elements = [
                source.element, try Element("h264parse"), try Element(muxer),
                try Element("filesink", ["location": .text(path)]),
            ]
            for element in elements { pipeline.add(element) }
            for (from, to) in zip(elements, elements.dropFirst()) { try from.link(to) }
            source.setFormat(
                Caps("video/x-h264,stream-format=byte-stream,alignment=au,width=64,height=48,framerate=30/1"))
            _ = pipeline.play()
            for (number, frame) in frames.enumerated() {
                _ = source.push(frame.span.bytes, timestamp: UInt64(number) * 1_000_000_000 / 30)
            }
            source.endOfStream()
            #expect(isOver.wait(timeout: .now() + 20) == .success)
            pipeline.stop()
        }

        @Test func `the glance tells containers, first frames and distances of keyframes`() throws {
            let folder = TemporaryFolder()
            let frames = try EncodedFilm.h264(60, keyframeEvery: 15)
            func look(_ frames: [[UInt8]], _ muxer: String) throws -> EncodedFileVideo {
                let path = "\(folder.path)/\(muxer)"
                try Self.mux(frames, muxer, into: path)
                return try #require(EncodedVideoGlance.look(into: path, seconds: 5))
            }
            for (muxer, container) in [
                ("matroskamux", EncodedFileVideo.Container.matroska), ("mp4mux", .mp4),
            ] {
                let video = try look(frames, muxer)
                #expect(video.container == container && video.isRead && video.beginsWithKeyframe && video.hasAllTimes)
                #expect(abs(video.keyframeInterval - 0.5) < 0.05 && video.parameters?.isBaseline == true)
            }
            #expect(try look(frames, "avimux").container == nil)
            #expect(try look(frames, "mpegtsmux").container == nil)
            // A film that has lost its keyframes after the first.
            let rare = try look(frames.indices.filter { $0 == 0 || $0 % 15 != 0 }.map { frames[$0] }, "matroskamux")
            #expect(rare.keyframeInterval > 1.7)
        }

        @Test func `the glance counts no frame without IDR as a keyframe`() throws {
            let folder = TemporaryFolder()
            // The first keyframe, then points of recovery that only a decoder from there on reads.
            let frames = try EncodedFilm.h264(150, keyframeEvery: 30, refreshesGradually: true)
            #expect(frames.count { H264Unit.isKeyframe($0) } == 1)
            for muxer in ["matroskamux", "mp4mux"] {
                let path = "\(folder.path)/\(muxer)"
                try Self.mux(frames, muxer, into: path)
                let video = try #require(EncodedVideoGlance.look(into: path, seconds: 5))
                #expect(video.keyframeInterval > 4 && video.beginsWithKeyframe)
            }
        }

        @Test func `a preview and a request for raw media decode the file`() throws {
            #expect(try plan(Self.graph([.frames("video"), .sound("audio")])).formats == ["I420", "S16LE"])
            #expect(try plan(Self.graph(Self.room, format: "raw")).formats == ["I420", "S16LE"])
        }

        /// An element of EBML (RFC 8794) with a size of four bytes.
        private static func element(_ id: [UInt8], _ content: [UInt8]) -> [UInt8] {
            id + [0x10] + [16, 8, 0].map { UInt8(truncatingIfNeeded: content.count >> $0) } + content
        }

        /// A Matroska file of Opus whose packets last as long as a file can state.
        private static var endlessPackets: [UInt8] {
            let head: [UInt8] = Array("OpusHead".utf8) + [1, 2, 0, 0, 0x80, 0xbb, 0, 0, 0, 0, 0]
            var track = element([0xd7], [1])
            track += element([0x73, 0xc5], [1])
            track += element([0x83], [2])
            track += element([0x86], Array("A_OPUS".utf8))
            track += element([0x63, 0xa2], head)
            var sound = element([0xb5], [0x47, 0x3b, 0x80, 0])
            sound += element([0x9f], [2])
            track += element([0xe1], sound)
            var cluster = element([0xe7], [0])
            for time in stride(from: 0, to: 1000, by: 20) {
                let high = UInt8(time >> 8)
                let low = UInt8(time & 0xff)
                var group = element([0xa1], [0x81, high, low, 0, 0xfc, 0xff, 0xfe])
                group += element([0x9b], [0x00, 0x00, 0x10, 0xc6, 0xf7, 0xa0, 0xb5, 0xed])
                cluster += element([0xa0], group)
            }
            var segment = element([0x15, 0x49, 0xa9, 0x66], element([0x2a, 0xd7, 0xb1], [0x0f, 0x42, 0x40]))
            segment += element([0x16, 0x54, 0xae, 0x6b], element([0xae], track))
            segment += element([0x1f, 0x43, 0xb6, 0x75], cluster)
            let header = element([0x1a, 0x45, 0xdf, 0xa3], element([0x42, 0x82], Array("matroska".utf8)))
            return header + element([0x18, 0x53, 0x80, 0x67], segment)
        }

        @Test func `packets that state an endless duration are played`() async throws {
            let folder = TemporaryFolder()
            let (path, copy) = (folder.file("endless.mka"), folder.file("copy.mka"))
            try Data(Self.endlessPackets).write(to: URL(fileURLWithPath: path))
            let graph = MediaGraph(
                nodes: [Node("file", settings: ["path": .text(path), "loop": false]), .recorder("disk", path: copy)],
                links: [
                    Link(
                        from: PortReference(node: "file", port: "audio"), to: PortReference(node: "disk", port: "audio")
                    )
                ])
            let seen = Seen()
            let pipeline = try await MediaPipeline(graph, seen: seen)
            try await pipeline.start()
            await eventually("the end") { seen.hasEnded || !seen.failures.isEmpty }
            await pipeline.stop()
            #expect(seen.failures.isEmpty)
        }

        @Test func `a file that was cut off is played up to there, with a warning`() async throws {
            let folder = TemporaryFolder()
            try Self.mux(try EncodedFilm.h264(180, keyframeEvery: 15), "matroskamux", into: folder.file("whole.mkv"))
            let whole = try Data(contentsOf: URL(fileURLWithPath: folder.file("whole.mkv")))
            let path = folder.file("cut.mkv")
            try whole.prefix(whole.count / 4).write(to: URL(fileURLWithPath: path))
            let graph = MediaGraph {
                Chain {
                    Node.file(path: path, loop: false)
                    Node.null("end")
                }
            }
            let seen = Seen()
            let pipeline = try await MediaPipeline(graph, seen: seen)
            try await pipeline.start()
            await eventually("the end") { seen.hasEnded }
            await pipeline.stop()
            #expect(
                seen.events.all.contains {
                    if case .warning("file", let words) = $0 {
                        words.contains("of the 6 s that it states")
                    } else {
                        false
                    }
                })
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
            clock.run(pipeline, sources: 2, frames: frames, emptying: pipeline.watch())
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
                    if decodesAudio { Node("volume", settings: ["volume": 1]) }
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

        @Test func `no packet of audio is missing at the start of a round`() async throws {
            let folder = TemporaryFolder()
            let path = try await Self.film(in: folder)
            let sent = Collected<UInt32>()
            var outward = NodeBindings()
            outward.rtpOutputs["room"] = { sent.append($0.rtpTimestamp) }
            let publisher = try await MediaPipeline(
                MediaGraph {
                    Node.file("file", path: path)
                    Chain(from: "file", port: "audio") { Node.rtpOutput("room") }
                }, bindings: outward)
            #expect(publisher.plan.node("file")?.formats["audio"]?.encoding == "opus")
            try await publisher.start()
            await eventually("two rounds and a half") { sent.count > 200 }
            await publisher.stop()
            // Of 20 ms; the first and the last of a round are cut, because they begin before and end after its audio.
            let steps = zip(sent.all, sent.all.dropFirst()).map { Int(Int32(bitPattern: $1 &- $0)) }
            #expect(steps.allSatisfy { (200...1000).contains($0) }, "\(steps)")
        }

        @Test("A looping film is copied into a recording, with its audio", arguments: [false, true])
        func loop(decodesAudio: Bool) async throws {
            let folder = TemporaryFolder()
            let path = try await Self.film(in: folder)
            let glance = try #require(EncodedVideoGlance.look(into: path, seconds: 2))
            #expect(glance.parameters?.isBaseline == true && abs(glance.keyframeInterval - 0.4) < 0.05)
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
