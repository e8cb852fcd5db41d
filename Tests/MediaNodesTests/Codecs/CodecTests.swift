import Dispatch
import GStreamerKit
import MediaGraph
import TestSupport
@testable import MediaNodes
import Synchronization
import TestFixtures
import Testing

/// A machine with the elements that a test lists, and nothing else.
struct MadeUpMachine: PlanEnvironment {
    var elements: Set<String>
    /// Installed, but without the hardware for it.
    var unusable: Set<String> = []

    func hasElement(_ factory: String) -> Bool { elements.contains(factory) }
    func canOpen(_ factory: String) -> Bool { !unusable.contains(factory) }
    func package(ofElement factory: String) -> String { "a-package" }
    func windowSink() -> String? { nil }
    func soundSink() -> String? { nil }
    func soundSource() -> String? { nil }
    func secondsPerFrame(_ element: ElementPlan, _ format: MediaFormat) -> Double { 0 }

    func camera(_ device: String) throws(MediaError) -> CameraChoice {
        throw MediaError(code: MediaError.Code.cameraAbsent, message: "none")
    }

    func file(_ path: String) throws(MediaError) -> MediaFileInfo {
        throw MediaError(code: MediaError.Code.fileNotFound, message: "none")
    }
}

/// A source that is encoded by an element that is not one of our nodes.
private enum EncodedSource: NodeType {
    static let kind = NodeKind(
        "encoded-source", .capturer, "Encoded media for tests",
        outputs: [
            Port("video", [.encodedVideo], isRequired: false), Port("audio", [.encodedAudio], isRequired: false),
        ],
        settings: [
            SettingContract("encoder", .text, isRequired: true, "The element"),
            SettingContract("encoding", .text, isRequired: true, "Output encoding"),
        ])

    static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        var plan = NodePlan(request.node)
        let isVideo = MediaKind(ofEncoding: request.text("encoding")) == .encodedVideo
        plan.add(isVideo ? "videotestsrc" : "audiotestsrc", as: "source", ["is-live": true])
        plan.addFilter(
            isVideo
                ? "video/x-raw,format=I420,width=320,height=240,framerate=30/1"
                : "audio/x-raw,rate=8000,channels=1,format=S16LE", as: "format")
        plan.add(request.text("encoder"), as: "encoder")
        plan.link("source", "format", "encoder")
        let port = isVideo ? "video" : "audio"
        plan.outputs[port] = ElementPad("encoder")
        plan.formats[port] = MediaFormat(isVideo ? .encodedVideo : .encodedAudio, request.text("encoding"))
        return plan
    }
}

/// Rounds timestamps down to nanoseconds of multiples of a thirtieth of a second.
private enum Rounding: NodeType {
    static let kind = NodeKind(
        "rounding", .processor, "Rounds timestamps for tests", inputs: [Port("in", [.rawVideo], encodings: ["I420"])],
        outputs: [Port("out", [.rawVideo], encodings: ["I420"])])

    static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan { .passing(request) }

    static func activate(_ instance: NodeInstance) throws(MediaError) -> (any RunningNode)? {
        let number = Counter()
        instance.element("pictures").source.onBuffer { buffer in
            buffer.retime(to: UInt64(number.next()) * 1_000_000_000 / 30)
            return .pass
        }
        return nil
    }
}

/// Leaves out the frames 100 to 110.
private enum Gap: NodeType {
    static let frames = 100..<111
    static let kind = NodeKind(
        "gap", .processor, "Drops some frames for tests", inputs: [Port("in", [.rawVideo], encodings: ["I420"])],
        outputs: [Port("out", [.rawVideo], encodings: ["I420"])],
        settings: [
            SettingContract("duration", .integer(1...12), default: 1, unit: "frames", "Duration of the frame before it")
        ])

    static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan { .passing(request) }

    static func activate(_ instance: NodeInstance) throws(MediaError) -> (any RunningNode)? {
        let (number, frameCount) = (Counter(), UInt64(instance.integer("duration")))
        instance.element("pictures").source.onBuffer { buffer in
            let index = number.next()
            if index + 1 == frames.lowerBound { buffer.setDuration(frameCount * 40_000_000) }
            return frames.contains(index) ? .drop : .pass
        }
        return nil
    }
}

/// Leaves out every other frame.
private enum Half: NodeType {
    static let kind = NodeKind(
        "half", .processor, "Drops half of the frames for tests",
        inputs: [Port("in", [.rawVideo], encodings: ["I420"])],
        outputs: [Port("out", [.rawVideo], encodings: ["I420"])])

    static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan { .passing(request) }

    static func activate(_ instance: NodeInstance) throws(MediaError) -> (any RunningNode)? {
        let number = Counter()
        instance.element("pictures").source.onBuffer { _ in number.next().isMultiple(of: 2) ? .pass : .drop }
        return nil
    }
}

private func encoder(_ codec: String) -> Node {
    Node("\(codec)-encoder", name: "encoder")
}

private func plan(_ node: Node, on machine: MadeUpMachine) throws -> NodePlan {
    let registry = NodeRegistry.builtIn
    let kind = try #require(registry.kind(named: node.kind))
    return try registry.plan(
        NodeRequest(
            node, kind, inputs: [("in", .rawVideo(width: 640, height: 480, framesPerSecond: 30))],
            environment: machine))
}

@Suite struct EncoderChoiceTests {
    @Test("Hardware is preferred to software, and the plan lists the rejected encoders with reasons")
    func preference() throws {
        let everything = MadeUpMachine(
            elements: ["nvh264enc", "vah264enc", "x264enc", "openh264enc"], unusable: ["nvh264enc"])
        let plan = try plan(encoder("h264"), on: everything)
        #expect(plan.element("encoder")?.factory == "vah264enc")
        #expect(plan.passedOver.contains { $0.contains("nvh264enc") && $0.contains("cannot be opened") })
        #expect(plan.passedOver.contains { $0.contains("qsvh264enc is not installed") })
        #expect(!plan.passedOver.contains { $0.contains("x264enc") })
        // It accepts only NV12, to which the planner converts.
        let input = NodeRegistry.builtIn.input("in", of: encoder("h264"), running: nil, on: everything)
        #expect(input?.encodings == ["NV12"])
        #expect(plan.notes.contains { $0.contains("vah264enc encodes, in hardware") })
    }

    @Test(
        "Each codec has a software encoder at the end of its table",
        arguments: [
            ("h264", ["x264enc", "openh264enc"], "x264enc"), ("h264", ["openh264enc"], "openh264enc"),
            ("vp8", ["vp8enc"], "vp8enc"), ("vp9", ["vp9enc"], "vp9enc"), ("av1", ["av1enc"], "av1enc"),
            ("vp8", ["vp8enc", "v4l2vp8enc"], "v4l2vp8enc"), ("vp9", ["vaapivp9enc", "vp9enc"], "vaapivp9enc"),
            ("av1", ["av1enc", "qsvav1enc"], "qsvav1enc"),
        ])
    func software(codec: String, installed: [String], chosen: String) throws {
        let plan = try plan(encoder(codec), on: MadeUpMachine(elements: Set(installed)))
        #expect(plan.element("encoder")?.factory == chosen)
        #expect(plan.formats["out"]?.encoding == codec)
        #expect(plan.formats["out"]?.bitsPerSecond ?? 0 > 100_000)
    }

    @Test("Without any encoder, the last one's package is named")
    func nothing() throws {
        #expect {
            _ = try plan(encoder("av1"), on: MadeUpMachine(elements: []))
        } throws: { error in
            (error as? MediaError)?.code == MediaError.Code.elementMissing && "\(error)".contains("a-package")
        }
    }

    @Test("An element can be named; an unknown one is refused with the known ones")
    func named() throws {
        let machine = MadeUpMachine(elements: ["x264enc", "openh264enc", "nvh264enc"])
        var node = encoder("h264")
        node.settings["element"] = "openh264enc"
        #expect(try plan(node, on: machine).element("encoder")?.factory == "openh264enc")
        node.settings["element"] = "vp8enc"
        #expect { _ = try plan(node, on: machine) } throws: { "\($0)".contains("x264enc") }
    }

    @Test("Every element of the tables has a bitrate property with its own unit")
    func rates() {
        for codec in EncodedVideo.all {
            for element in codec.elements {
                let (name, value) = element.rateProperty(750_000, keyframeInterval: 60)
                switch element.rate {
                case .bitsPerSecond: #expect(value == 750_000, "\(element.factory)")
                case .kilobitsPerSecond: #expect(value == 750, "\(element.factory)")
                case .controls: #expect(name == "extra-controls" && "\(value)".contains("video_bitrate=(int)750000"))
                }
                if !element.isHardware {
                    #expect(element.properties(keyframeInterval: 60).values.contains(60), "\(element.factory)")
                }
            }
        }
    }

    @Test(
        "Decoders also come from the table, hardware first",
        arguments: ["vp8", "vp9", "h264", "h265", "av1", "mjpeg"])
    func decoders(encoding: String) throws {
        let table = try #require(Encoding.named(encoding)).decoders
        let registry = NodeRegistry.builtIn
        for chosen in table {
            let rest = table[(table.firstIndex(of: chosen) ?? 0)...]
            let machine = MadeUpMachine(elements: Set(rest).union(["h265parse", "av1parse"]))
            let plan = try registry.plan(
                NodeRequest(
                    .videoDecoder(), VideoDecoderNode.kind, inputs: [("in", MediaFormat(.encodedVideo, encoding))],
                    environment: machine))
            #expect(plan.element("decoder")?.factory == chosen)
        }
    }

    @Test("VP9 from a peer, which may have spatial layers, is decoded by libvpx")
    func spatialLayers() throws {
        let machine = MadeUpMachine(elements: ["vavp9dec", "vp9dec", "rtpjitterbuffer", "rtpvp9depay"])
        let input = Node.rtpInput("in", codec: .vp9)
        let received = try NodeRegistry.builtIn.plan(
            NodeRequest(input, RTPInputNode.kind, inputs: [], environment: machine))
        for (format, chosen) in [(received.formats["out"], "vp9dec"), (MediaFormat(.encodedVideo, "vp9"), "vavp9dec")] {
            let plan = try NodeRegistry.builtIn.plan(
                NodeRequest(
                    .videoDecoder(), VideoDecoderNode.kind, inputs: [("in", try #require(format))], environment: machine
                ))
            #expect(plan.element("decoder")?.factory == chosen)
        }
    }
}

extension MediaNodesTests {
    @Suite struct CodecTests {
        @Test("Encoded media can be decoded", arguments: ["vp8", "vp9", "h264", "av1"])
        func pictures(codec: String) async throws {
            let seen = Collected<UInt32?>()
            var bindings = NodeBindings()
            bindings.frames["seen"] = { seen.append($0.barCode) }
            let clock = SteppedClock()
            let pipeline = try await MediaPipeline(
                MediaGraph {
                    Chain {
                        Node.testPattern("pattern", width: 320, height: 240, frames: 60)
                        encoder(codec)
                        // The planner inserts the decoder.
                        Node.frames("seen")
                    }
                }, bindings: bindings, on: clock)
            clock.run(pipeline)
            try await pipeline.start()
            await eventually("60 frames") { seen.count == 60 }
            await pipeline.stop()
            // One in ten may be unreadable.
            #expect(seen.all.enumerated().count { $1 == UInt32($0) } > 54, "\(seen.all)")
        }

        /// Media of an element that is not one of our nodes, decoded.
        private func decoding(
            _ element: String, _ encoding: String, _ port: String, into end: Node, _ bindings: NodeBindings,
            _ clock: SteppedClock
        ) async throws -> MediaPipeline {
            let source = Node(
                "encoded-source", name: "source", settings: ["encoder": .text(element), "encoding": .text(encoding)])
            return try await MediaPipeline(
                MediaGraph {
                    source
                    Chain(from: "source", port: port) { end }
                }, bindings: bindings, registry: .builtIn.adding([EncodedSource.self]), on: clock)
        }

        @Test(
            "Media of other encoders can be decoded",
            arguments: [("jpegenc", "mjpeg"), ("x265enc", "h265"), ("openh264enc", "h264"), ("vp9enc", "vp9")])
        func foreignPictures(element: String, encoding: String) async throws {
            let seen = Collected<Picture>()
            var bindings = NodeBindings()
            bindings.frames["seen"] = { seen.append(Picture($0)) }
            let clock = SteppedClock()
            let pipeline = try await decoding(element, encoding, "video", into: .frames("seen"), bindings, clock)
            clock.run { _ in seen.count < 10 }
            try await pipeline.start()
            await eventually("10 frames") { seen.count >= 10 }
            await pipeline.stop()
            let pictures = seen.all
            #expect(pictures.allSatisfy { $0.width == 320 && $0.height == 240 })
            let steps = zip(pictures, pictures.dropFirst()).map { $1.captureTime.milliseconds(since: $0.captureTime) }
            #expect(steps.allSatisfy { abs($0 - 100.0 / 3) < 0.01 }, "\(steps)")
            // The first bar is white, and the last one blue.
            for picture in pictures {
                #expect(picture.luma(x: 10, y: 50, width: 20, height: 20).allSatisfy { abs(Int($0) - 235) < 12 })
                #expect(picture.luma(x: 290, y: 50, width: 20, height: 20).allSatisfy { abs(Int($0) - 41) < 12 })
            }
        }

        @Test(
            "Audio of each codec can be decoded",
            arguments: [("mulawenc", "pcmu"), ("alawenc", "pcma"), ("voaacenc", "aac"), ("flacenc", "flac")])
        func foreignSound(element: String, encoding: String) async throws {
            let heard = Collected<AudioChunk>()
            var bindings = NodeBindings()
            bindings.audio["heard"] = { heard.append($0) }
            let clock = SteppedClock()
            let pipeline = try await decoding(element, encoding, "audio", into: .sound("heard"), bindings, clock)
            clock.run { _ in heard.count < 100 }
            try await pipeline.start()
            await eventually("sound") { heard.all.count { $0.level > -20 } >= 10 }
            await pipeline.stop()
            // The source's 440 Hz, which cross zero twice a period, without gaps. AAC begins quietly.
            let chunks = heard.all.dropFirst(3)
            for (first, second) in zip(chunks, chunks.dropFirst()) {
                #expect(abs(second.captureTime.seconds(since: first.captureTime) - first.seconds) < 0.001)
            }
            let samples = chunks.flatMap(\.samples)
            let left = stride(from: 0, to: samples.count, by: 2).map { samples[$0] }
            let crossings = zip(left, left.dropFirst()).count { ($0 < 0) != ($1 < 0) }
            let hertz = Double(crossings) / 2 / (Double(left.count) / 48_000)
            #expect(abs(hertz - 440) < 10, "\(hertz) Hz")
        }

        @Test("A keyframe follows a request, with every codec", arguments: ["vp8", "vp9", "h264", "av1"])
        func keyframes(codec: String) async throws {
            let folder = TemporaryFolder()
            let path = "\(folder.path)/a.mkv"
            let clock = SteppedClock()
            let pipeline = try await MediaPipeline(
                MediaGraph {
                    Chain {
                        Node.testPattern("pattern", width: 320, height: 240)
                        encoder(codec)
                        Node.recorder("recorder", path: path)
                    }
                }, on: clock)
            // Whether each encoded frame is a keyframe.
            let frames = Collected<Bool>()
            let recorder = try #require(pipeline.graph.node("recorder"))
            let input = try #require(recorder.plan.inputs.values.first)
            recorder.pad(input, isOutput: false).onBuffer { buffer in
                frames.append(buffer.isKeyframe)
                return .pass
            }
            let most = Mutex(20)
            clock.run(pipeline, into: frames) { frames.count < most.withLock { $0 } }
            try await pipeline.start()
            func statistics() -> MediaStatistics.VideoEncoder { pipeline.statistics.encoders["encoder"] ?? .init() }
            await eventually("20 frames") { frames.count == 20 }
            for wanted in 2...4 {
                let before = frames.count
                try pipeline.requestKeyframe("encoder")
                most.withLock { $0 = before + 15 }
                await eventually("15 frames more") { frames.count == before + 15 }
                #expect(frames.all.dropFirst(before).firstIndex(of: true) == before)
                #expect(frames.all.count { $0 } == wanted)
            }
            #expect(statistics().keyframes == 4)
            await pipeline.stop()
            let recording = DecodedRecording(path)
            #expect(recording.problem == nil)
            #expect(recording.numbers.count == statistics().encoded)
        }

        @Test("AV1 keeps its bitrate if timestamps are not a whole number of frames apart")
        func unevenTimestamps() async throws {
            let film = try await Film("av1", bitrate: 300_000, framesPerSecond: 30, through: Node("rounding"))
            try await film.pipeline.start()
            await eventually(within: 60, "5 s") { film.sizes.count >= 150 }
            await film.pipeline.stop()
            let rate = film.bitsPerSecond(1..<5)
            print("300 kbit/s:", rate / 1000)
            #expect(rate < 400_000)
        }

        @Test(
            "After a gap, frames have the bits of others, and their own times and durations",
            arguments: ["vp8", "vp9", "h264"], [1, 12])
        func gap(codec: String, duration: Int) async throws {
            let gap = Node("gap", settings: ["duration": .integer(duration)])
            let film = try await Film(codec, bitrate: 600_000, framesPerSecond: 25, through: gap)
            try await film.pipeline.start()
            await eventually(within: 60, "6 s") { film.sizes.count >= 150 }
            await film.pipeline.stop()
            let steps = zip(film.times.all, film.times.all.dropFirst()).map { $1 - $0 }
            let first = try #require(steps.firstIndex(of: 12 * 40_000_000)) + 1
            #expect(steps.filter { $0 == 40_000_000 }.count == steps.count - 1)
            let sizes = film.sizes.all
            let rates = [first - 26, first + 1].map { sizes[$0..<$0 + 25].reduce(0, +) * 8 / 1000 }
            print(
                codec, "before and after the gap:", rates, "kbit/s;", sizes[first - 1], sizes[first], "bytes next to it"
            )
            // The scene has changed, but no bits were saved up: with them, these were 15 and 2.7 times as much with VP8.
            #expect(sizes[first - 1] < rates[0] * 1000 / 8 / 25 * 8)
            #expect(sizes[first] < rates[0] * 1000 / 8 / 25 * 8)
            #expect(rates[1] < rates[0] * 2)
            #expect(film.durations.all[first - 1] == UInt64(duration) * 40_000_000)
        }

        @Test("With half of the frames, a frame gets twice the bits, and a keyframe no more than before")
        func half() async throws {
            let film = try await Film("vp8", bitrate: 600_000, framesPerSecond: 30, through: Node("half"))
            try await film.pipeline.start()
            await eventually(within: 60, "100 frames") { film.sizes.count >= 100 }
            let element = try #require(film.pipeline.graph.node("encoder")).element("encoder")
            let (bitrate, keyframe) = (element.integer("target-bitrate"), element.integer("max-intra-bitrate"))
            await film.pipeline.stop()
            #expect(abs(bitrate - 1_200_000) < 150_000)
            #expect(abs(bitrate / 100 * keyframe - 3_600_000) < 40_000)
        }

        @Test("The bitrate is kept, and follows a change during encoding", arguments: ["vp9", "av1"])
        func bitrate(codec: String) async throws {
            let film = try await Film(codec, bitrate: 600_000, framesPerSecond: 25, stopsAt: 4)
            try await film.play { try await film.pipeline.set("encoder", "bitrate", to: 150_000) }
            await film.pipeline.stop()
            let (before, after) = (film.bitsPerSecond(1..<4), film.bitsPerSecond(5..<8))
            print(codec, "600 kbit/s:", before / 1000, "150 kbit/s:", after / 1000)
            #expect(before > 300_000 && before < 800_000)
            #expect(after < 220_000)
        }

        @Test("An encoder halves its bitrate when its consumer's network has no room", arguments: ["vp8", "h264"])
        func limit(codec: String) async throws {
            let film = try await Film(codec, bitrate: 600_000, framesPerSecond: 25, stopsAt: 4)
            let statistics = try await film.play(limitedTo: 300_000)
            let (before, after) = (film.bitsPerSecond(1..<4), film.bitsPerSecond(5..<8))
            print(codec, "600 kbit/s:", before / 1000, "limited to 300 kbit/s:", after / 1000)
            #expect(before > 400_000 && before < 800_000)
            #expect(after > 200_000 && after < 345_000)
            #expect(statistics.wishedBitsPerSecond == 600_000 && statistics.limitedBitsPerSecond == 300_000)
            #expect(statistics.targetBitsPerSecond == 300_000 && statistics.droppedForRate == 0)
        }

        @Test("With room for a sixth of its bitrate, an encoder skips half of the frames", arguments: ["vp8", "h264"])
        func skipping(codec: String) async throws {
            let film = try await Film(codec, bitrate: 600_000, framesPerSecond: 25, stopsAt: 4)
            let statistics = try await film.play(limitedTo: 100_000)
            let after = film.sizes.all[125..<200].reduce(0, +) * 8 / 6
            print(codec, "limited to 100 kbit/s:", after / 1000)
            #expect(after > 70_000 && after < 125_000)
            #expect(abs(statistics.droppedForRate - (statistics.captured - 100) / 2) <= 6)
            #expect(
                statistics.captured == statistics.encoded + statistics.droppedBeforeEncoder
                    + statistics.droppedForRate + statistics.inFlight)
        }
    }
}

/// The clip, encoded as fast as the machine can. Its frames wait for the encoder and for no clock, and none is dropped,
/// so that every machine encodes the same.
private struct Film {
    let pipeline: MediaPipeline
    /// Bytes of each frame.
    let sizes = Collected<Int>()
    /// Timestamps of each frame.
    let times = Collected<UInt64>()
    /// Durations of each frame, 0 for none.
    let durations = Collected<UInt64>()
    /// Whether the frames wait, for `goesOn`, at the second where the film stops.
    private let isWaiting = AtomicBool()
    private let goesOn = DispatchSemaphore(value: 0)
    private let folder = TemporaryFolder()
    private let rate: Int

    init(
        _ codec: String, bitrate: Int, framesPerSecond rate: Int, through node: Node? = nil,
        stopsAt second: Int? = nil
    ) async throws {
        self.rate = rate
        var encoder = encoder(codec)
        encoder.settings["bitrate"] = .integer(bitrate)
        let path = "\(folder.path)/film.mkv"
        pipeline = try await MediaPipeline(
            MediaGraph {
                Chain {
                    Node.file("clip", path: Checkout.clip)
                    Node.scale(width: 480, framesPerSecond: Double(rate))
                    if let node { node }
                    encoder
                    Node.recorder("recorder", path: path)
                }
            }, registry: .builtIn.adding([Rounding.self, Gap.self, Half.self]))
        let source = try #require(pipeline.graph.node("clip"))
        let node = try #require(pipeline.graph.node("encoder"))
        try source.element("pace").set("sync", false)
        try node.element("queue").set("leaky", "no")
        let (sizes, times, durations, isWaiting, goesOn, count) = (
            sizes, times, durations, isWaiting, goesOn, Counter()
        )
        node.element("encoder").source.onBuffer { buffer in
            sizes.append(buffer.byteCount)
            times.append(buffer.timestamp ?? 0)
            durations.append(buffer.duration ?? 0)
            return .pass
        }
        node.element("queue").source.onBuffer { _ in
            if Int(count.next()) == second.map({ $0 * rate }) {
                isWaiting.raise()
                goesOn.wait()
            }
            return .pass
        }
    }

    /// Plays up to the stop, and after a change up to 200 frames. `renew` is called again and again meanwhile.
    func play(_ change: () async throws -> Void, renew: () -> Void = {}) async throws {
        try await pipeline.start()
        await eventually(within: 60, "the stop") { isWaiting.value }
        try await change()
        goesOn.signal()
        await eventually(within: 60, "200 frames") {
            renew()
            return sizes.count >= 200
        }
    }

    /// The same with a limit from the stop on. Returns the encoder's counters.
    func play(limitedTo bitsPerSecond: Int) async throws -> MediaStatistics.VideoEncoder {
        try await play {
            try limit(bitsPerSecond)
        } renew: {
            try? limit(bitsPerSecond)
        }
        let statistics = try #require(pipeline.statistics.encoders["encoder"])
        await pipeline.stop()
        return statistics
    }

    /// Limits the encoder as a consumer does.
    private func limit(_ bitsPerSecond: Int) throws {
        let node = try #require(pipeline.graph.node("encoder"))
        node.element("encoder").source.peer?.limitRate(bitsPerSecond: bitsPerSecond, source: 1)
    }

    func bitsPerSecond(_ seconds: Range<Int>) -> Int {
        let frames = sizes.all[seconds.lowerBound * rate..<seconds.upperBound * rate]
        return frames.reduce(0, +) * 8 / seconds.count
    }
}
