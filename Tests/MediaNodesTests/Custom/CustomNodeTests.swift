import Dispatch
import Glibc
import MediaGraph
import MediaNodes
import Synchronization
import Testing
import TestSupport

/// Grey frames with a bar code: a minimal capturer.
private struct Numbered: Capturer {
    static let summary = "Numbered grey frames"
    @Setting("Frames per second", in: 1...60, unit: "frames/s") var fps = 30
    @Setting("How bright", in: 16...235, isChangeable: true) var shade = 100
    @Setting("How many; without end when 0", in: 0...1000) var frames = 0

    func format() -> PictureFormat { PictureFormat(width: 320, height: 180, framesPerSecond: Double(fps)) }

    func capture(into output: CaptureOutput<PictureFormat>) async throws {
        var number: UInt32 = 0
        while frames == 0 || number < UInt32(frames) {
            try await output.draw { picture in
                picture.fill(luma: UInt8(shade))
                picture.draw(barCode: number)
            }
            number += 1
        }
    }
}

private struct Packed: Capturer {
    static let summary = "Blue frames, four bytes per pixel"

    func format() -> PictureFormat { PictureFormat(.bgrx, width: 64, height: 48, framesPerSecond: 30) }

    func capture(into output: CaptureOutput<PictureFormat>) async throws {
        while true {
            try await output.draw { picture in
                picture.withPlane(.packed) { bytes, _ in
                    for offset in stride(from: 0, to: bytes.byteCount, by: 4) {
                        bytes.storeBytes(of: 0x0000_00ff, toByteOffset: offset, as: UInt32.self)
                    }
                }
            }
        }
    }
}

private struct Beeps: Capturer {
    static let summary = "A square wave"

    func format() -> SoundFormat { SoundFormat() }

    func capture(into output: CaptureOutput<SoundFormat>) async throws {
        while true {
            try await output.fill { samples in
                for index in 0..<samples.count { samples[index] = index / 96 % 2 == 0 ? 8000 : -8000 }
            }
        }
    }
}

private struct Faulty: Capturer {
    enum Way: String, SettingChoice { case early, late, flood, deaf, tiny }
    static let summary = "Breaks in the way that is asked for"
    @Setting("How") var way: Way

    struct Broken: Error {}
    static let gate = DispatchSemaphore(value: 0)

    func format() throws -> PictureFormat {
        if way == .early { throw MediaError(code: "faulty.absent", message: "There is nothing to capture.") }
        return PictureFormat(width: way == .tiny ? 0 : 64, height: 48, framesPerSecond: 30)
    }

    func capture(into output: CaptureOutput<PictureFormat>) async throws {
        try output.send { _ in }
        switch way {
        case .late: throw Broken()
        case .flood: while true { try output.send { _ in } }
        case .deaf:
            // Blocks until the test has seen the stop return, and ignores cancellation.
            Self.gate.wait()
        case .early, .tiny: break
        }
    }
}

private struct Brighter: Processor {
    static let summary = "Adds to the luma below the bar code"
    @Setting("How much", in: 0...100, isChangeable: true) var amount = 50
    private var seen = 0

    init() {}

    mutating func process(_ picture: inout MutableVideoFrame) throws {
        seen += 1
        let (amount, half) = (amount, picture.height / 2)
        picture.withPlane(.luma) { luma, stride in
            for offset in half * stride..<luma.byteCount {
                let value: UInt8 = luma.bytes.unsafeLoad(fromByteOffset: offset, as: UInt8.self)
                luma.storeBytes(of: UInt8(min(235, Int(value) + amount)), toByteOffset: offset, as: UInt8.self)
            }
        }
    }
}

private let rendered = Collected<UInt32>()
private let hasRendered = Atomic(false)

private struct Collecting: Renderer {
    static let summary = "Keeps the numbers of what it is given"

    func render(_ media: RenderStream<VideoFrame>) async throws {
        for await picture in media {
            if let number = picture.barCode { rendered.append(number) }
        }
        hasRendered.store(true, ordering: .relaxed)
    }
}

extension MediaNodesTests {
    @Suite struct CustomNodeTests {
        private static let caption = ElementsNode(
            "captioned-pattern", "A pattern with a text over it",
            elements: [
                ElementsNode.Element("videotestsrc", as: "pattern", ["is-live": true]),
                ElementsNode.Element("textoverlay", as: "caption", ["text": "hello"]),
            ],
            exposing: ["foreground": "pattern.foreground-color", "text": "caption.text"],
            gives: .rawVideo(width: 320, height: 180, framesPerSecond: 30))

        private let registry: NodeRegistry

        init() throws {
            registry = try NodeRegistry.builtIn.adding(
                .capturer(Numbered.init), .capturer(Packed.init), .capturer(Beeps.init), .capturer(Faulty.init),
                .processor(Brighter.init), .renderer(Collecting.init), .elements(Self.caption))
        }

        private func run(_ graph: MediaGraph, _ seen: Seen) async throws -> MediaPipeline {
            try await MediaPipeline(graph, bindings: seen.bindings(of: graph), registry: registry)
        }

        @Test("A kind's name, settings, defaults, ranges and ports come from the type")
        func contract() throws {
            let kind = try #require(registry.kind(named: "numbered"))
            #expect(kind.group == .capturer)
            #expect(kind.summary == "Numbered grey frames")
            #expect(kind.settings.map(\.name) == ["fps", "shade", "frames"])
            #expect(kind.setting("fps")?.domain == .integer(1...60))
            #expect(kind.setting("fps")?.defaultValue == 30)
            #expect(kind.setting("fps")?.unit == "frames/s")
            #expect(kind.setting("shade")?.isChangeable == true)
            #expect(kind.outputs.map(\.name) == ["video"])
            let way = registry.kind(named: "faulty")?.setting("way")
            #expect(way?.isRequired == true)
            #expect(way?.domain == .choice(["early", "late", "flood", "deaf", "tiny"]))
        }

        @Test("A capturer's frames arrive in order, at its rate, on the common clock")
        func capturer() async throws {
            let seen = Seen()
            let pipeline = try await run(chain(Numbered.node(["frames": 45]), .frames("view")), seen)
            let before = MediaTime.now
            try await pipeline.start()
            await eventually("the end") { pipeline.state == .ended }
            await pipeline.stop()
            let numbers = seen.pictures.all.compactMap(\.barCode)
            #expect(numbers == Array(numbers.sorted()))
            #expect(numbers.count >= 40)
            let times = seen.pictures.all.map(\.time)
            #expect(times.allSatisfy { $0 > before && $0 < .now })
            // Each timestamp is the due time: a whole multiple of the period.
            let periods = zip(times, times.dropFirst()).map { $1.seconds(since: $0) * 30 }
            #expect(periods.allSatisfy { abs($0 - $0.rounded()) < 0.001 && $0 > 0.5 })
        }

        @Test("A capturer's pixel format is converted if a consumer needs another")
        func packed() async throws {
            let seen = Seen()
            let pipeline = try await run(chain(Packed.node(), .frames("view")), seen)
            #expect(pipeline.plan.nodes.contains { $0.node.kind == "convert" })
            try await pipeline.start()
            await eventually("pictures") { seen.pictures.count > 5 }
            await pipeline.stop()
            // Blue by BT.601.
            #expect(seen.pictures.all.allSatisfy { abs($0.brightness - 41) < 4 })
        }

        @Test("Audio written by a capturer has no gaps")
        func sound() async throws {
            let seen = Seen()
            let pipeline = try await run(chain(Beeps.node(), .sound("ear")), seen)
            try await pipeline.start()
            await eventually("sound") { seen.sound.count > 50 }
            await pipeline.stop()
            let chunks = seen.sound.all
            #expect(chunks.allSatisfy { abs($0.level - -12.2) < 0.5 })
            let gaps = zip(chunks, chunks.dropFirst()).map {
                $1.captureTime.seconds(since: $0.captureTime) - $0.seconds
            }
            #expect(gaps.count { abs($0) > 0.001 } <= gaps.count / 10)
        }

        @Test("A live setting reaches the running capturer and processor")
        func settings() async throws {
            let seen = Seen()
            let pipeline = try await run(chain(Numbered.node(), Brighter.node(), .frames("view")), seen)
            try await pipeline.start()
            await eventually("pictures") { seen.pictures.all.last.map { abs($0.brightness - 140) < 15 } ?? false }
            try await pipeline.set("numbered", "shade", to: 30)
            await eventually("darker frames") { (seen.pictures.all.last?.brightness ?? 255) < 90 }
            try await pipeline.set("brighter", "amount", to: 0)
            await eventually("unchanged frames") { (seen.pictures.all.last?.brightness ?? 255) < 45 }
            let error = await #expect(throws: MediaError.self) { try await pipeline.set("numbered", "shade", to: 300) }
            #expect(error?.code == "graph.invalid")
            await pipeline.stop()
        }

        @Test("A renderer receives frames in order, and a stop ends it")
        func renderer() async throws {
            let seen = Seen()
            let pipeline = try await run(chain(Numbered.node(), Collecting.node()), seen)
            try await pipeline.start()
            await eventually("pictures") { rendered.count > 20 }
            await pipeline.stop()
            let hasLeft = hasRendered.load(ordering: .relaxed)
            #expect(hasLeft, "it has left when the stop returns")
            #expect(rendered.all == rendered.all.sorted())
        }

        @Test("A node around elements has the elements' settings, which can change live")
        func elements() async throws {
            let kind = try #require(registry.kind(named: "captioned-pattern"))
            #expect(kind.settings.map(\.name) == ["foreground", "text"])
            #expect(kind.setting("text")?.defaultValue == "hello")
            let seen = Seen()
            let pipeline = try await run(
                chain(Node("captioned-pattern", settings: ["text": "welcome"]), .frames("view")), seen)
            try await pipeline.start()
            await eventually("pictures") { seen.pictures.count > 5 }
            try await pipeline.set("captioned-pattern", "text", to: "farewell")
            await pipeline.stop()
            #expect(seen.pictures.all.first.map { ($0.width, $0.height) } ?? (0, 0) == (320, 180))
        }

        @Test(
            "A failing capturer is reported by its own error, or by one with its name",
            arguments: [
                ("early", "faulty.absent"), ("late", "node.failed"), ("flood", "node.flood"), ("tiny", "node.format"),
            ])
        func faults(_ way: String, _ code: String) async throws {
            let seen = Seen()
            var error: MediaError?
            do {
                let pipeline = try await run(chain(Faulty.node(["way": .text(way)]), .frames("view")), seen)
                try await pipeline.start()
                await eventually("the failure") { !seen.failures.isEmpty }
                error = seen.failures.first
                await pipeline.stop()
            } catch let thrown as MediaError {
                error = thrown
            }
            #expect(error?.code == code, "\(error?.description ?? "nothing")")
            #expect(error?.node == "faulty")
        }

        @Test("A capturer that ignores its cancellation is abandoned and reported")
        func deaf() async throws {
            let seen = Seen()
            let pipeline = try await run(chain(Faulty.node(["way": "deaf"]), .frames("view")), seen)
            try await pipeline.start()
            // A stop that waited for the capturer would never return.
            await pipeline.stop()
            Faulty.gate.signal()
            let warnings = seen.events.all.compactMap { if case .warning(_, let text) = $0 { text } else { nil } }
            #expect(warnings.contains { $0.contains("node.stuck") })
        }

        @Test("A missing setting and a used name are refused with a message")
        func refusals() async {
            let missing = await #expect(throws: MediaError.self) {
                _ = try await MediaPipeline(chain(Faulty.node(), .null("end")), registry: registry)
            }
            #expect(missing?.message.contains("way") == true)
            let taken = #expect(throws: MediaError.self) { _ = try registry.adding(.capturer(Numbered.init)) }
            #expect(taken?.code == "node.name-taken")
        }
    }
}
