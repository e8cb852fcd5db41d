import Dispatch
import GStreamerKit
import MediaGraph
import Synchronization
import Testing
import TestSupport

@testable import MediaNodes

/// Passes frames until it is broken, then fails like a device.
private enum BreakingNode: NodeType {
    static let isBroken = Mutex<AtomicBool?>(nil)

    static let kind = NodeKind(
        "test-breaking", .processor, "Passes frames until it is broken", inputs: [Port("in", [.rawVideo])],
        outputs: [Port("out", [.rawVideo])])

    static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        var plan = NodePlan(request.node)
        plan.add("identity", as: "identity")
        plan.inputs["in"] = ElementPad("identity")
        plan.outputs["out"] = ElementPad("identity")
        plan.formats["out"] = request.input("in")
        return plan
    }

    static func activate(_ instance: NodeInstance) throws(MediaError) -> (any RunningNode)? {
        let isBroken = isBroken.withLock { $0 }
        let reporter = instance.reporter
        let name = instance.name
        instance.element("identity").sink.onBuffer { _ in
            guard isBroken?.value == true else { return .pass }
            reporter.fail(
                MediaError(code: MediaError.Code.elementFailed, message: "\"\(name)\" is broken as the test wants."),
                name)
            return .drop
        }
        return nil
    }
}

/// The frames that reached a mixer's input in time, by number. A mixer waits one frame for them, and does not show
/// frames that arrive later because the machine stalled.
private final class Arrivals: Sendable {
    private let inTime = Mutex<Set<UInt32>>([])

    /// Frames of 640x480 from now on.
    init(at input: String, of watched: Watched) throws {
        let mixer = try #require(watched.pipeline.graph.node("mixer"))
        let pad = try #require(mixer.element("mix").pad("sink_\(input.dropFirst(2))"))
        // Downstream of the input's queue: frames that it dropped did not arrive.
        pad.onBuffer { [self] buffer in
            let number = buffer.read { BarCode.read($0, stride: 640, width: 640, height: 480) } ?? nil
            // The mixer's own work is part of its frame interval of 33 ms.
            if let number, MediaTime.now.milliseconds(since: buffer.time) < 20 {
                inTime.withLock { _ = $0.insert(number) }
            }
            return .pass
        }
    }

    var all: Set<UInt32> { inTime.withLock { $0 } }

    /// Punctual frames between the first and the last shown one that were not shown.
    func lost(_ shown: [UInt32]) -> Set<UInt32> {
        guard let first = shown.first, let last = shown.last, first <= last else { return [] }
        return all.filter { (first...last).contains($0) }.subtracting(shown)
    }

    /// Whether each number follows its predecessor, or repeats or skips only where a frame was late.
    func isUnbroken(_ shown: [UInt32]) -> Bool {
        let all = all
        return zip(shown, shown.dropFirst()).allSatisfy { before, next in
            next == before + 1 || next >= before && !all.contains(before + 1) && lost([before, next]).isEmpty
        }
    }
}

extension Array where Element: Equatable {
    /// How often each is shown in a row, without the first and the last, which may have begun earlier or last longer.
    fileprivate var runs: [Int] {
        var runs: [Int] = []
        for (index, element) in enumerated() {
            if index > 0, self[index - 1] == element { runs[runs.count - 1] += 1 } else { runs.append(1) }
        }
        return Array<Int>(runs.dropFirst().dropLast())
    }
}

extension MediaNodesTests {
    @Suite struct MixerTests {
        /// Two test patterns into a mixer; `first` is also watched directly.
        private func two(
            _ mixer: Node, firstFrames: Int = 0, secondFrames: Int = 0, secondRate: Double = 30,
            secondSize: (Int, Int) = (640, 480), behindSecond: Node? = nil
        ) -> MediaGraph {
            MediaGraph {
                Chain {
                    Node.testPattern("first", frames: firstFrames)
                    Tee { Node.frames("direct") }
                    mixer
                    Node.frames("view")
                }
                Chain {
                    Node.testPattern(
                        "second", width: secondSize.0, height: secondSize.1, framesPerSecond: secondRate,
                        frames: secondFrames)
                    if let behindSecond { behindSecond }
                    Join(mixer.name)
                }
            }
        }

        private let grid = Node("mixer", settings: ["layout": "grid", "width": 1280, "height": 480])

        @Test("A grid shows each input in its place, whatever its size and rate")
        func grid() async throws {
            let watched = try await Watched(two(grid, secondRate: 15))
            let arrivals = try Arrivals(at: "in1", of: watched)
            try await watched.pipeline.start()
            await eventually("frames of both") { watched.pictures().count >= 90 }
            await watched.pipeline.stop()
            #expect(watched.failure == nil)
            let pictures = watched.pictures().dropFirst(30)
            #expect(pictures.allSatisfy { $0.width == 1280 && $0.height == 480 })
            let left = pictures.compactMap { $0.number(x: 0, y: 0, width: 640, height: 480) }
            let right = pictures.compactMap { $0.number(x: 640, y: 0, width: 640, height: 480) }
            #expect(left.count == pictures.count && right.count == pictures.count)
            // 30 frames/s on the left, each shown once; 15 on the right, each shown twice. A frame that is late
            // on a busy machine leaves the previous one visible for longer.
            #expect(left.runs.median == 1)
            #expect(right.runs.median == 2)
            #expect(arrivals.isUnbroken(left))
            // The rate of the faster input is the rate of the output.
            #expect(watched.pipeline.plan.node("mixer")?.formats["out"]?.framesPerSecond == 30)
        }

        @Test("A mixer delays a frame by at most one of its own frames")
        func latency() async throws {
            let watched = try await Watched(two(grid))
            try await watched.pipeline.start()
            await eventually("frames of both") { watched.pictures().count >= 90 }
            await watched.pipeline.stop()
            var direct: [UInt32: MediaTime] = [:]
            for picture in watched.pictures("direct") { direct[picture.number ?? 0] = picture.handedOver }
            var seen: Set<UInt32> = []
            let added = watched.pictures().dropFirst(10).compactMap { picture -> Double? in
                guard let number = picture.number(x: 0, y: 0, width: 640, height: 480),
                    seen.insert(number).inserted, let before = direct[number]
                else { return nil }
                return picture.handedOver.milliseconds(since: before)
            }
            let median = try #require(added.median)
            #expect(median < 34, "a frame waits \(median) ms")
            #expect(watched.pipeline.plan.node("mixer")?.latency ?? 1 < 0.034)
        }

        @Test("An input that ends leaves the frame to the other, which loses nothing")
        func endingInput() async throws {
            let watched = try await Watched(two(grid, firstFrames: 90, secondFrames: 30))
            let arrivals = try Arrivals(at: "in1", of: watched)
            try await watched.pipeline.start()
            await eventually("the end of both") { watched.hasEnded }
            await watched.pipeline.stop()
            #expect(watched.failure == nil)
            // Alone, the first fills 1280x480 as far as its aspect ratio allows: its left edge moves to the left of the
            // middle.
            let alone = watched.pictures().suffix(20)
            #expect(alone.allSatisfy { $0.number(x: 320, y: 0, width: 640, height: 480) != nil })
            let numbers = watched.pictures().compactMap {
                $0.number(x: 0, y: 0, width: 640, height: 480) ?? $0.number(x: 320, y: 0, width: 640, height: 480)
            }
            // The first and the last may arrive before the mixer begins and as it ends.
            let lost = arrivals.all.subtracting(numbers)
            #expect(lost.count <= 2, "\(lost.sorted()) of \(arrivals.all.count) that came in time were not shown")
            #expect(numbers == numbers.sorted())
        }

        @Test("A stalled input costs the others no frame, and continues in its place")
        func stallingInput() async throws {
            let isHeld = AtomicBool()
            let release = DispatchSemaphore(value: 0)
            let watched = try await Watched(two(grid, behindSecond: Node("frame-function", name: "hold"))) { bindings in
                bindings.frameFunctions["hold"] = { _ in
                    if isHeld.value { release.wait() }
                }
            }
            let arrivals = try Arrivals(at: "in1", of: watched)
            try await watched.pipeline.start()
            func right() -> UInt32 {
                watched.pictures().last?.number(x: 640, y: 0, width: 640, height: 480) ?? 0
            }
            await eventually("frames of both") { right() > 10 }
            _ = isHeld.exchange(true)
            let before = watched.pictures().count
            await eventually("two seconds without the second") { watched.pictures().count >= before + 60 }
            let during = watched.pictures()[(before + 5)...]
            let left = during.compactMap { $0.number(x: 0, y: 0, width: 640, height: 480) }
            #expect(arrivals.isUnbroken(left), "\(left), in time \(arrivals.all.sorted())")
            // Its last frame stays visible.
            #expect(Set(during.compactMap { $0.number(x: 640, y: 0, width: 640, height: 480) }).count == 1)
            _ = isHeld.exchange(false)
            release.signal()
            let held = right()
            await eventually("the second to go on") { right() > held + 5 }
            await watched.pipeline.stop()
            #expect(watched.failure == nil)
        }

        @Test("Layout, corner and main input change live")
        func changeLayout() async throws {
            let watched = try await Watched(two(Node("mixer"), secondSize: (320, 240)))
            try await watched.pipeline.start()
            let plan = watched.pipeline.plan.node("mixer")
            #expect(plan?.formats["out"] == .rawVideo(width: 640, height: 480, framesPerSecond: 30))
            await eventually("the first to fill the frame") { watched.pictures().last?.number != nil }
            // In its own size, the second's number is readable.
            try await watched.set("mixer", "inset", 0.5)
            func second(_ x: Int, _ y: Int) -> Bool {
                watched.pictures().last?.number(x: x, y: y, width: 320, height: 240) != nil
            }
            await eventually("the second at the bottom right") { second(640 - 16 - 320, 480 - 16 - 240) }
            try await watched.set("mixer", "corner", "bottom-left")
            await eventually("the second at the bottom left") { second(16, 480 - 16 - 240) }
            try await watched.set("mixer", "margin", 0)
            await eventually("the second in the very corner") { second(0, 240) }
            try await watched.set("mixer", "layout", "grid")
            // Half the width for each; the second's 320x240 fits unscaled, in the middle.
            await eventually("the second beside the first") { second(320, 120) }
            await watched.pipeline.stop()
            #expect(watched.failure == nil)
        }

        @Test("An optional input that fails leaves its place to the other, which loses nothing and does not wait")
        func failingInput() async throws {
            let isBroken = AtomicBool()
            let graph = MediaGraph {
                Chain {
                    Node.testPattern("first")
                    grid
                    Node.frames("view")
                }
                Chain {
                    Node.testPattern("second").optional
                    Node("test-breaking", name: "breaking").optional
                    Join("mixer")
                }
            }
            BreakingNode.isBroken.withLock { $0 = isBroken }
            let watched = try await Watched(graph, registry: NodeRegistry.builtIn.adding([BreakingNode.self]))
            let arrivals = try Arrivals(at: "in1", of: watched)
            try await watched.pipeline.start()
            await eventually("frames of both") {
                (watched.pictures().last?.number(x: 640, y: 0, width: 640, height: 480) ?? 0) > 10
            }
            _ = isBroken.exchange(true)
            await eventually("the first alone") {
                watched.pictures().last?.number(x: 320, y: 0, width: 640, height: 480) != nil
            }
            let before = watched.pictures().count
            await eventually("a second of it") { watched.pictures().count > before + 30 }
            await watched.pipeline.stop()
            #expect(watched.failure == nil)
            let numbers = watched.pictures().compactMap {
                $0.number(x: 0, y: 0, width: 640, height: 480) ?? $0.number(x: 320, y: 0, width: 640, height: 480)
            }
            #expect(numbers == numbers.sorted())
            #expect(arrivals.lost(numbers) == [])
            let inTime = arrivals.all
            let waits = watched.pictures()[before...].filter {
                $0.number(x: 320, y: 0, width: 640, height: 480).map(inTime.contains) == true
            }.map { $0.handedOver.milliseconds(since: $0.captureTime) }
            #expect(waits.median ?? 100 < 25, "frames wait \(waits.median ?? -1) ms")
        }

        @Test("An input is added and removed live, and the other continues")
        func inputComesAndGoes() async throws {
            let alone = MediaGraph {
                Chain {
                    Node.testPattern("first")
                    grid
                    Node.frames("view")
                }
            }
            let watched = try await Watched(alone)
            let arrivals = try Arrivals(at: "in1", of: watched)
            try await watched.pipeline.start()
            func shows(_ x: Int) -> Bool {
                watched.pictures().last?.number(x: x, y: 0, width: 640, height: 480) != nil
            }
            await eventually("the first alone") { shows(320) }
            let both = alone.adding {
                Chain {
                    Node.testPattern("second")
                    Join("mixer")
                }
            }
            try await watched.pipeline.apply(both)
            await eventually("both") { shows(0) && shows(640) }
            try await watched.pipeline.apply(alone)
            await eventually("the first alone again") { shows(320) }
            await watched.pipeline.stop()
            #expect(watched.failure == nil)
            let numbers = watched.pictures().compactMap {
                $0.number(x: 0, y: 0, width: 640, height: 480) ?? $0.number(x: 320, y: 0, width: 640, height: 480)
            }
            let lost = arrivals.lost(numbers)
            #expect(numbers == numbers.sorted())
            #expect(lost.count <= 4, "\(lost.sorted()) of the first came in time and were not shown")
        }

        @Test("Places in a grid do not overlap; insets stay inside and on top")
        func places() {
            for count in 1...12 {
                let inputs = Array(1...count)
                var settings = MixerLayout.Settings(isGrid: true, width: 1280, height: 720)
                let tiles = MixerLayout.places(of: inputs, settings)
                #expect(tiles.count == count)
                #expect(Set(tiles.values.map { "\($0.x),\($0.y)" }).count == count)
                settings.isGrid = false
                let places = MixerLayout.places(of: inputs, settings)
                #expect(places[1] == MixerLayout.Place(width: 1280, height: 720))
                let small = places.filter { $0.key != 1 }.values.sorted { $0.x < $1.x }
                #expect(small.allSatisfy { $0.x >= 0 && $0.x + $0.width <= 1280 && $0.depth > 0 })
                #expect(zip(small, small.dropFirst()).allSatisfy { $0.x + $0.width <= $1.x })
                #expect(small.allSatisfy { $0.x % 2 == 0 && $0.y % 2 == 0 && $0.width % 2 == 0 && $0.height % 2 == 0 })
            }
            // Each inset keeps its aspect ratio, and none is taller than an inset of the output's aspect ratio.
            let shaped = MixerLayout.places(
                of: [1, 2, 3], shapes: [2: 1, 3: 2], MixerLayout.Settings(width: 1280, height: 720))
            #expect(shaped[2] == MixerLayout.Place(x: 1084, y: 524, width: 180, height: 180, depth: 1))
            #expect(shaped[3] == MixerLayout.Place(x: 748, y: 544, width: 320, height: 160, depth: 2))
            // The main input has ended: the first available one fills the frame.
            var settings = MixerLayout.Settings(width: 640, height: 480)
            settings.main = 3
            #expect(MixerLayout.places(of: [1, 2, 3], settings)[3]?.width == 640)
            #expect(MixerLayout.places(of: [1, 2], settings)[1]?.width == 640)
        }

        // MARK: Sound

        @Test("Two inputs are added; the audio continues without a gap when one of them ends")
        func audioMixer() async throws {
            let graph = MediaGraph {
                Chain { Node.testPattern("first", frames: 90) }
                Chain(from: "first", port: "audio") {
                    Node("audio-mixer", name: "mix")
                    Node("level", settings: ["interval": 0.05])
                    Node.sound("ear")
                }
                Chain(from: "first", port: "video") { Node("null") }
                Chain { Node.testPattern("second", frames: 30) }
                Chain(from: "second", port: "audio") { Join("mix") }
                Chain(from: "second", port: "video") { Node("null", name: "null-2") }
            }
            let watched = try await Watched(graph)
            try await watched.pipeline.start()
            await eventually("the end of both") { watched.hasEnded }
            await watched.pipeline.stop()
            #expect(watched.failure == nil)
            let sound = watched.sound()
            let seconds = sound.map(\.seconds).reduce(0, +)
            #expect(abs(seconds - 3) < 0.15, "\(seconds) s of sound")
            let steps = zip(sound, sound.dropFirst()).map { $1.captureTime.seconds(since: $0.captureTime) - $0.seconds }
            #expect(steps.allSatisfy { abs($0) < 0.001 }, "the largest gap is \(steps.max() ?? 0) s")
            // Two equal tones are at most 6 dB louder than one; measured between beeps, from the second that both last.
            func loudness(_ range: ClosedRange<Double>) -> Double {
                let start = sound.first?.captureTime ?? MediaTime(nanoseconds: 0)
                let chosen = sound.filter { range.contains($0.captureTime.seconds(since: start)) }
                return chosen.map(\.level).max() ?? -120
            }
            #expect(loudness(0.4...0.8) > loudness(2.4...2.8) + 3)
        }
    }
}
