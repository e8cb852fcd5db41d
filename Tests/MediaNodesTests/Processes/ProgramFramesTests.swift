import GStreamerKit
import MediaGraph
import Testing
import TestSupport

@testable import MediaNodes

/// These tests have a type of the other name.
private typealias Drawn = GStreamerKit.Picture

extension MediaNodesTests {
    /// Frames of any size that the program captures.
    @Suite struct ProgramFramesTests {
        private let entrance = FrameEntrance()
        private let events = Collected<MediaEvent>()

        private struct Sight: Sendable, Equatable {
            var width, height: Int
            var code: UInt32?
        }

        private let seen = Collected<Sight>()

        private func pipeline(_ width: Int, _ height: Int, fps: Double = 240) async throws -> MediaPipeline {
            var bindings = NodeBindings()
            bindings.frames["view"] = { [seen] frame in
                seen.append(Sight(width: frame.width, height: frame.height, code: frame.barCode))
            }
            bindings.events = { [events] in events.append($0) }
            return try await MediaPipeline(
                MediaGraph {
                    Chain {
                        Node.programFrames("source", width: width, height: height, framesPerSecond: fps)
                        Node.frames("view")
                    }
                }, bindings: bindings, registry: .builtIn.adding([entrance.node]))
        }

        private func picture(_ width: Int, _ height: Int, code: UInt32) throws -> Drawn {
            var picture = try #require(Drawn("I420", width: width, height: height))
            picture.draw { frame in
                frame.fill(luma: 100)
                frame.draw(barCode: code)
            }
            return picture
        }

        @Test(arguments: [
            (640, 480, 320, 240, 320, 240), (640, 480, 480, 640, 480, 640), (640, 480, 1280, 720, 640, 360),
            (480, 640, 1280, 720, 640, 360), (640, 480, 720, 1280, 360, 640), (640, 480, 641, 359, 640, 358),
            (640, 480, 33, 19, 32, 18), (640, 480, 4000, 2, 640, 16), (640, 480, 4000, 3000, 640, 480),
        ])
        func `frames keep their shape within the largest size`(
            width: Int, height: Int, from: Int, by: Int, expected: Int, expectedHeight: Int
        ) {
            #expect(FrameBound(width, height).size(of: from, by) == (expected, expectedHeight))
        }

        @Test func `a start waits for no frame, and the program's frames then show in their sizes`() async throws {
            let pipeline = try await pipeline(320, 240)
            try await pipeline.start()
            await eventually("the slate") { seen.count > 0 }
            #expect(seen.all.first == Sight(width: 320, height: 240, code: nil))
            let sizes = [(320, 240), (240, 320), (176, 144), (320, 180), (160, 90)]
            for (index, (width, height)) in sizes.enumerated() {
                let code = UInt32(100 + index)
                // A frame that comes while the source opens may be late for it.
                await eventually("frame \(code)") {
                    if let picture = try? picture(width, height, code: code) { entrance.push(picture, at: .now) }
                    return seen.all.contains(Sight(width: width, height: height, code: code))
                }
            }
            #expect(events.all.contains { if case .deviceWaiting("source", _) = $0 { true } else { false } })
            #expect(events.all.contains { if case .deviceReturned("source") = $0 { true } else { false } })
            await pipeline.stop()
        }

        @Test(arguments: ["NV12", "BGRA"]) func `other formats arrive as I420`(format: String) async throws {
            var picture = try #require(Drawn(format, width: 64, height: 48))
            picture.draw { frame in
                for plane in VideoPlane.allCases {
                    // White in BGRA; in NV12, light grey.
                    frame.withPlane(plane) { bytes, _ in
                        for offset in 0..<bytes.byteCount {
                            let value: UInt8 = format == "BGRA" ? 255 : plane == .luma ? 235 : 128
                            bytes.storeBytes(of: value, toByteOffset: offset, as: UInt8.self)
                        }
                    }
                }
            }
            let lumas = Collected<Int>()
            var bindings = NodeBindings()
            bindings.frames["view"] = { frame in
                lumas.append(
                    Int(frame.withPlane(.luma) { bytes, _ in bytes.unsafeLoad(fromByteOffset: 1000, as: UInt8.self) }))
            }
            entrance.push(picture, at: nil)
            let pipeline = try await MediaPipeline(
                MediaGraph {
                    Chain {
                        Node.programFrames("source", width: 64, height: 48, framesPerSecond: 20)
                        Node.frames("view")
                    }
                }, bindings: bindings, registry: .builtIn.adding([entrance.node]))
            try await pipeline.start()
            await eventually("the frame") { lumas.all.contains { abs($0 - 235) <= 2 } }
            await pipeline.stop()
        }

        @Test func `a frame that was passed shortly before the start shows, and a turned one is upright`() async throws
        {
            entrance.push(
                try #require(try picture(160, 120, code: 7).turned(clockwise: 270)), turning: 90, at: .now)
            let pipeline = try await pipeline(320, 240)
            try await pipeline.start()
            await eventually("the frame") { seen.all.contains(Sight(width: 160, height: 120, code: 7)) }
            await pipeline.stop()
            #expect(entrance.counts == .init(pushed: 1, dropped: 1))
        }

        @Test func `frames above the rate are dropped and counted`() async throws {
            let pipeline = try await pipeline(320, 240, fps: 10)
            entrance.push(try picture(160, 120, code: 1), at: nil)
            try await pipeline.start()
            await eventually("the first frame") { seen.all.contains { $0.code == 1 } }
            let before = entrance.counts
            for code in 2..<12 as Range<UInt32> { entrance.push(try picture(160, 120, code: code), at: nil) }
            let after = entrance.counts
            #expect(after.pushed == before.pushed + 10)
            // They came within one period, unless the machine stood still.
            #expect(after.dropped > before.dropped)
            await pipeline.stop()
        }

        @Test func `two pipelines get the same frames, and none after their stop`() async throws {
            let (first, second) = (try await pipeline(320, 240), try await pipeline(160, 160))
            try await first.start()
            try await second.start()
            await eventually("both sizes") {
                if let picture = try? picture(320, 240, code: 9) { entrance.push(picture, at: .now) }
                return seen.all.contains { $0.width == 320 && $0.code == 9 }
                    && seen.all.contains { $0.width == 160 && $0.height == 120 }
            }
            await first.stop()
            await second.stop()
            let dropped = entrance.counts.dropped
            entrance.push(try picture(320, 240, code: 10), at: .now)
            #expect(entrance.counts.dropped == dropped + 1)
        }
    }

    /// Frames that a function replaces.
    @Suite struct FrameBlendTests {
        private let blend = FrameBlend()
        private let seen = Collected<UInt32?>()
        private let events = Collected<MediaEvent>()

        private func pipeline() async throws -> MediaPipeline {
            var bindings = NodeBindings()
            bindings.frames["view"] = { [seen] in seen.append($0.barCode) }
            bindings.events = { [events] in events.append($0) }
            return try await MediaPipeline(
                MediaGraph {
                    Chain {
                        Node.testPattern(width: 320, height: 240, framesPerSecond: 60)
                        Node("frame-blend", name: "blend")
                        Node.frames("view")
                    }
                }, bindings: bindings, registry: .builtIn.adding([blend.node]))
        }

        private var warnings: [String] {
            events.all.compactMap { if case .warning("blend", let text) = $0 { text } else { nil } }
        }

        @Test func `a function draws into frames, replaces them, or leaves them`() async throws {
            let pipeline = try await pipeline()
            try await pipeline.start()
            await eventually("frames without a function") { seen.all.contains { $0 != nil && $0 != 5 } }
            blend.function = { frame in
                var frame = frame
                frame.draw { $0.draw(barCode: 1_000_000) }
                return frame
            }
            await eventually("drawn frames") { seen.all.contains(1_000_000) }
            blend.function = { frame in
                var other = Drawn("I420", width: frame.width, height: frame.height)
                other?.draw { $0.draw(barCode: 2_000_000) }
                return other
            }
            await eventually("other frames") { seen.all.contains(2_000_000) }
            blend.function = { _ in nil }
            await eventually("unchanged frames") { seen.all.last.map { ($0 ?? 0) < 1_000_000 } == true }
            #expect(pipeline.statistics.frameFunctions["blend"]?.dropped == 0 || warnings.isEmpty)
            #expect(warnings.isEmpty)
            await pipeline.stop()
        }

        @Test func `a frame of another size or format leaves the captured one, with one warning`() async throws {
            blend.function = { frame in Drawn("BGRA", width: frame.width, height: frame.height) }
            let pipeline = try await pipeline()
            try await pipeline.start()
            await eventually("frames") { seen.count > 3 }
            blend.function = { frame in Drawn("I420", width: frame.width / 2, height: frame.height) }
            let count = seen.count
            await eventually("more frames") { seen.count > count + 3 }
            await pipeline.stop()
            #expect(warnings.count == 1 && warnings[0].contains("BGRA 320x240"))
            #expect(seen.all.allSatisfy { $0 != nil })
        }

        @Test func `while the function is busy, frames are dropped and counted`() async throws {
            let gate = Gate()
            blend.function = { _ in
                gate.wait()
                return nil
            }
            let pipeline = try await pipeline()
            let start = Task { try await pipeline.start() }
            await eventually("drops") { (pipeline.statistics.frameFunctions["blend"]?.dropped ?? 0) > 5 }
            gate.open()
            try await start.value
            await eventually("frames") { seen.count > 0 }
            await pipeline.stop()
        }
    }
}
