import GStreamerKit
import Glibc
import MediaGraph
import TestFixtures
import Testing
import TestSupport

@testable import MediaNodes

extension MediaNodesTests {
    @Suite struct ElementNodeTests {
        private let registry = NodeRegistry.builtIn

        private func kind(_ element: String) throws -> NodeKind {
            try #require(registry.kind(named: "element:\(element)"), "\(element)")
        }

        private func plan(_ graph: MediaGraph) throws -> GraphPlan {
            try Planner(registry, SystemEnvironment()).plan(graph)
        }

        /// Runs `test-pattern ! elements ! frames` for this many frames.
        private func pictures(
            _ count: Int, of graph: MediaGraph, into output: String = "out"
        ) async throws -> [VideoFrame] {
            let frames = Collected<VideoFrame>()
            var bindings = NodeBindings()
            bindings.frames[output] = { frames.append($0) }
            let pipeline = try await MediaPipeline(graph, bindings: bindings)
            try await pipeline.start()
            await eventually("\(count) frames arrive") { frames.count >= count }
            await pipeline.stop()
            return frames.all
        }

        private func pattern(_ nodes: Node...) -> MediaGraph {
            MediaGraph {
                Chain {
                    Node.testPattern("source", width: 320, height: 240)
                    for node in nodes { node }
                    Node.frames("out")
                }
            }
        }

        // MARK: Kinds

        @Test("An element's pads are ports, its properties typed settings with ranges and defaults")
        func balanceKind() throws {
            let balance = try kind("videobalance")
            #expect(balance.group == .element)
            #expect(balance.inputs.map(\.name) == ["in"] && balance.outputs.map(\.name) == ["out"])
            #expect(balance.inputs[0].kinds.contains(.rawVideo) && balance.inputs[0].isRequired)
            let saturation = try #require(balance.setting("saturation"))
            #expect(saturation.domain == .number(0...2))
            #expect(saturation.defaultValue == .number(1))
            #expect(saturation.isChangeable)
            #expect(balance.setting("name") == nil)
        }

        @Test("Several pads are several ports; request pads are numbered; codecs are named")
        func kinds() throws {
            let overlay = try kind("textoverlay")
            #expect(overlay.inputs.map(\.name).sorted() == ["text", "video"])
            #expect(overlay.input("text")?.isRequired == false)
            #expect(overlay.input("video")?.isRequired == true)
            #expect(overlay.setting("text")?.isChangeable == true)
            let mixer = try kind("compositor")
            #expect(mixer.inputs.map(\.name) == ["in"] && mixer.inputs[0].isRepeated)
            #expect(mixer.setting("in2.xpos")?.defaultValue == .integer(0))
            let muxer = try kind("matroskamux")
            #expect(muxer.input("video1")?.kinds.contains(.encodedVideo) == true)
            #expect(muxer.input("audio1")?.encodings.contains("opus") == true)
            #expect(muxer.outputs[0].kinds == [.data])
            let encoder = try kind("jpegenc")
            #expect(encoder.outputs == [Port("out", [.encodedVideo], encodings: ["mjpeg"])])
            #expect(encoder.setting("quality")?.domain == .integer(0...100))
            let source = try kind("uridecodebin")
            #expect(source.inputs.isEmpty && source.outputs.map(\.name) == ["video", "audio"])
            let sink = try kind("fakesink")
            #expect(sink.outputs.isEmpty && sink.inputs[0].kinds.contains(.encodedAudio))
        }

        @Test("Every installed filter, codec and muxer has a kind whose defaults fit its settings")
        func everyKind() {
            var count = 0
            for entry in ElementFactoryNames.plain {
                guard let kind = registry.kind(named: "element:\(entry)") else {
                    Issue.record("\(entry) makes no kind")
                    continue
                }
                let settings = kind.settings.filter { $0.defaultValue != nil && !$0.name.contains(".") }
                let node = Node(
                    kind.name,
                    settings: Dictionary(
                        uniqueKeysWithValues: settings.compactMap { setting in
                            setting.defaultValue.map { (setting.name, $0) }
                        }))
                let problems = MediaGraph(nodes: [node]).validate(with: registry).filter { $0.kind == .badSetting }
                #expect(problems.isEmpty, "\(problems)")
                #expect(Set(kind.inputs.map(\.name)).count == kind.inputs.count, "\(entry): \(kind.inputs)")
                #expect(Set(kind.outputs.map(\.name)).count == kind.outputs.count, "\(entry)")
                count += 1
            }
            #expect(count > 300)
        }

        // MARK: Running

        @Test("A filter changes frames; its output is planned like its input")
        func balance() async throws {
            let graph = pattern(.element("videobalance", ["saturation": 0]))
            let planned = try plan(graph)
            #expect(
                planned.node("videobalance")?.formats["out"]
                    == .rawVideo(width: 320, height: 240, framesPerSecond: 30))
            let frame = try #require(try await pictures(3, of: graph).last)
            let isGrey = frame.withPlane(.chromaRed) { bytes, stride in
                (0..<60).allSatisfy { row in
                    (0..<160).allSatisfy { bytes.unsafeLoad(fromByteOffset: row * stride + $0, as: UInt8.self) == 128 }
                }
            }
            #expect(isGrey)
        }

        @Test("An element that changes the size is planned with its output size")
        func size() async throws {
            let graph = pattern(.element("videocrop", ["left": 20, "top": 40]))
            #expect(
                try plan(graph).node("videocrop")?.formats["out"]
                    == .rawVideo(width: 300, height: 200, framesPerSecond: 30))
            let frame = try #require(try await pictures(1, of: graph).first)
            #expect(frame.width == 300 && frame.height == 200)
        }

        @Test("Text is drawn; the overlay's side input may stay unlinked")
        func overlay() async throws {
            let graph = pattern(
                .element("textoverlay", ["text": "Hello", "valignment": "center", "font-desc": "Sans 48"]))
            // Not the first: the pattern begins with a white flash of three frames, which would hide text.
            let plain = try #require(try await pictures(10, of: pattern()).last)
            let drawn = try #require(try await pictures(10, of: graph).last)
            func bright(_ frame: VideoFrame) -> Int {
                frame.withPlane(.luma) { bytes, stride in
                    (100..<140).reduce(0) { sum, row in
                        sum
                            + (0..<320).count {
                                bytes.unsafeLoad(fromByteOffset: row * stride + $0, as: UInt8.self) > 230
                            }
                    }
                }
            }
            #expect(bright(drawn) > bright(plain) + 100)
        }

        @Test("Audio is converted to an element's format and back")
        func echo() async throws {
            let graph = MediaGraph {
                Chain {
                    Node.testPattern("source", width: 64, height: 64)
                    Node.null()
                }
                Chain(from: "source", port: "audio") {
                    Node.element("audioecho", ["delay": 200_000_000, "intensity": 0.5])
                    Node.sound("out")
                }
            }
            let node = try #require(try plan(graph).node("audioecho"))
            #expect(node.formats["out"] == .rawAudio)
            #expect(node.elements.contains { $0.factory == "audioconvert" })
            let chunks = Collected<AudioChunk>()
            var bindings = NodeBindings()
            bindings.audio["out"] = { chunks.append($0) }
            let pipeline = try await MediaPipeline(graph, bindings: bindings)
            try await pipeline.start()
            await eventually("sound comes") { chunks.count >= 50 }
            await pipeline.stop()
            #expect(chunks.all.allSatisfy { $0.sampleRate == 48_000 && $0.channels == 2 })
        }

        @Test("An encoder's output has its codec and the frame size")
        func jpeg() async throws {
            let graph = pattern(.element("jpegenc", ["quality": 50]), .element("jpegdec"))
            let planned = try plan(graph)
            #expect(
                planned.node("jpegenc")?.formats["out"]
                    == MediaFormat(.encodedVideo, "mjpeg", width: 320, height: 240, framesPerSecond: 30))
            #expect(planned.node("jpegdec")?.formats["out"]?.kind == .rawVideo)
            #expect(planned.encoders.contains("jpegenc"))
            #expect(try await pictures(3, of: graph).last?.width == 320)
        }

        @Test("Request pads accept settings: two videos side by side")
        func compositor() async throws {
            let graph = MediaGraph {
                Chain {
                    Node.testPattern("left", width: 160, height: 120)
                    Node.element("compositor", name: "mixer", ["background": "black", "in2.xpos": 160])
                    Node.frames("out")
                }
                Chain {
                    Node.testPattern("right", width: 160, height: 120)
                    Join("mixer")
                }
            }
            #expect(graph.validate(with: registry).isEmpty)
            // Once the last input's frames arrive, the mixer has the size that they need.
            let frames = try await pictures(20, of: graph)
            #expect(frames.last?.width == 320 && frames.last?.height == 120)
        }

        @Test("Properties of an element and its pads change live, and are refused with a message")
        func changing() async throws {
            let frames = Collected<VideoFrame>()
            var bindings = NodeBindings()
            bindings.frames["out"] = { frames.append($0) }
            let pipeline = try await MediaPipeline(
                pattern(
                    .element("videobalance", ["saturation": 0]), .element("compositor", name: "mixer", ["in1.alpha": 1])
                ),
                bindings: bindings)
            try await pipeline.start()
            func saturation() -> Int {
                frames.all.last?.withPlane(.chromaRed) { bytes, stride in
                    (0..<160).map { abs(Int(bytes.unsafeLoad(fromByteOffset: $0, as: UInt8.self)) - 128) }.max() ?? 0
                } ?? 0
            }
            await eventually("grey frames arrive") { frames.count > 3 }
            #expect(saturation() == 0)
            try await pipeline.set("videobalance", "saturation", to: 2)
            await eventually("colours come") { saturation() > 20 }
            try await pipeline.set("mixer", "in1.alpha", to: 0)
            await eventually("the color disappears") { saturation() == 0 }
            await #expect(throws: MediaError.self) { try await pipeline.set("videobalance", "saturation", to: 7) }
            await #expect(throws: MediaError.self) { try await pipeline.set("mixer", "max-threads", to: 2) }
            await pipeline.stop()
        }

        @Test("Video and audio of pads that appear later are paced on one timeline")
        func appearing() async throws {
            let graph = MediaGraph {
                Chain {
                    Node.element("uridecodebin", name: "clip", ["uri": .text("file://\(Checkout.clip)")])
                    Node.frames("out")
                }
                Chain(from: "clip", port: "audio") { Node.sound("sound") }
            }
            let frames = Collected<VideoFrame>()
            let chunks = Collected<AudioChunk>()
            var bindings = NodeBindings()
            bindings.frames["out"] = { frames.append($0) }
            bindings.audio["sound"] = { chunks.append($0) }
            let clock = SteppedClock()
            let pipeline = try await MediaPipeline(graph, bindings: bindings, on: clock)
            // Each stream has a thread that waits for its frames' times.
            clock.run(pending: 2) { _ in frames.count < 26 }
            try await pipeline.start()
            await eventually("a second of frames") { frames.count == 26 }
            await pipeline.stop()
            #expect(chunks.count > 20)
            // 25 a second, each at its time.
            let times = frames.all.map(\.captureTime)
            #expect(zip(times, times.dropFirst()).allSatisfy { abs($1.milliseconds(since: $0) - 40) < 1 })
            let waits = frames.all.map { $0.handedOver.milliseconds(since: $0.captureTime) }
            #expect(waits.allSatisfy { $0 == 0 }, "\(waits)")
            let sound = try #require(chunks.all.first)
            #expect(abs(sound.captureTime.milliseconds(since: times[0])) < 100)
        }

        @Test("Bytes of a file flow between elements; demuxed streams are decoded")
        func demuxing() async throws {
            let graph = MediaGraph {
                Chain {
                    Node.element("filesrc", ["location": .text(Checkout.clip)])
                    Node.element("qtdemux")
                    Node.frames("out")
                }
            }
            let planned = try plan(graph)
            #expect(planned.node("filesrc")?.formats["out"]?.kind == .data)
            #expect(planned.node("qtdemux")?.formats["video"] == .rawVideo())
            #expect(try await pictures(10, of: graph).first?.width == 1280)
        }

        @Test("Starting and stopping elements leaks no object, thread, memory or file descriptor")
        func cycles() async {
            // One leaked frame of 320x240 per round would be 23 MB.
            let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
                let graph = MediaGraph {
                    Chain {
                        Node.element("videotestsrc", ["is-live": true])
                        Node.element("videobalance", ["saturation": 0])
                        Node.element("compositor", ["in1.alpha": 0.5])
                        Node.null()
                    }
                    Chain {
                        Node.element("audiotestsrc", ["is-live": false])
                        Node.element("audioecho")
                        Node.null("silence")
                    }
                }
                try await Repeated.judge(soak: 200, kilobytes: 16_000) {
                    let pipeline = try await Repeated.seen(MediaPipeline(graph))
                    try await pipeline.start()
                    await pipeline.stop()
                }
            }
            Repeated.show(result)
        }

        @Test("A muxer and a file as nodes write a complete file")
        func recording() async throws {
            let folder = TemporaryFolder()
            let path = folder.path + "/out.mkv"
            let frames = Collected<VideoFrame>()
            let graph = MediaGraph {
                Chain {
                    Node.testPattern("source", width: 160, height: 120)
                    Tee { Node.frames("out") }
                    Node.videoEncoder("encoder", codec: .vp8)
                    Node.element("matroskamux")
                    Node.element("filesink", ["location": .text(path)])
                }
            }
            var bindings = NodeBindings()
            bindings.frames["out"] = { frames.append($0) }
            let pipeline = try await MediaPipeline(graph, bindings: bindings)
            try await pipeline.start()
            await eventually("a second of frames") { frames.count >= 30 }
            await pipeline.stop()
            let info = try MediaFile.inspect(path)
            // A file without a written end does not state its length.
            #expect(info.width == 160 && info.duration > 0.5, "\(info)")
        }

        // MARK: Errors

        private func problems(_ node: Node) -> [GraphProblem] {
            pattern(node).validate(with: registry)
        }

        @Test("A missing element is reported with its package, a misspelt one with a suggestion")
        func missing() {
            let missing = problems(.element("libcamerasrc")).first
            #expect(missing?.message.contains("libcamerasrc is not installed") == true)
            #expect(missing?.message.contains("gstreamer1.0-libcamera") == true)
            #expect(problems(.element("videobalanse")).first?.message.contains("did you mean videobalance?") == true)
        }

        @Test("An optional branch whose element is missing is omitted, and the rest runs")
        func optional() async throws {
            func graph(_ factory: String) -> MediaGraph {
                MediaGraph {
                    Chain {
                        Node.testPattern("source", width: 64, height: 64)
                        Tee("extra", isOptional: true) {
                            Node.element(factory)
                            Node.null()
                        }
                        Node.frames("out")
                    }
                }
            }
            let lacking = graph("libcamerasrc")
            #expect(lacking.validate(with: registry).isEmpty)
            let planned = try plan(lacking)
            #expect(planned.omitted.map(\.code) == ["element.missing"])
            #expect(planned.omitted.first?.reason.contains("gstreamer1.0-libcamera") == true)
            #expect(planned.nodes.map(\.name).sorted() == ["out", "source"])
            #expect(try await pictures(3, of: lacking).count >= 3)
            // An unknown word remains an error.
            #expect(graph("videobalanse").validate(with: registry).count == 1)
        }

        @Test("Misspelt properties, wrong types, numbers out of range and unknown words are refused by name")
        func settings() {
            #expect(
                problems(.element("videobalance", ["saturaton": 0.2])).map(\.message) == [
                    "\"videobalance\" (element:videobalance) has no setting \"saturaton\"; did you mean \"saturation\"?"
                ])
            #expect(
                problems(.element("videobalance", ["saturation": "much"])).first?.message.contains(
                    "saturation is \"much\"; expected a number from 0 to 2") == true)
            #expect(
                problems(.element("videobalance", ["saturation": 3])).first?.message.contains("outside 0 to 2") == true)
            #expect(
                problems(.element("textoverlay", ["halignment": "centre"])).first?.message.contains(
                    "did you mean \"center\"?") == true)
            #expect(problems(.element("compositor", ["in1.xpos": "far"])).count == 1)
        }

        @Test("Text with a required form is checked while planning")
        func forms() {
            let error = #expect(throws: MediaError.self) {
                try plan(pattern(.element("capsfilter", ["caps": "video/x-raw,,"])))
            }
            #expect(error?.code == "graph.invalid")
            #expect(error?.message.contains("it must be a format such as") == true)
        }

        @Test("Incompatible formats are reported while planning")
        func clash() {
            let error = #expect(throws: MediaError.self) {
                try plan(pattern(.element("capsfilter", ["caps": "video/x-raw,width=64"])))
            }
            #expect(error?.code == "graph.format-clash")
            #expect(error?.node == "capsfilter")
        }
    }
}

/// Elements that can be created without hardware or a display.
enum ElementFactoryNames {
    static let plain = ElementFactory.all().filter { entry in
        ["Filter/", "Codec/", "Generic"].contains { entry.classification.contains($0) }
            && !entry.classification.contains("Hardware")
    }.map(\.name)
}
