import Glibc
import GStreamerKit
import MediaGraph
import Synchronization
import TestFixtures
import Testing
import TestSupport

@testable import MediaNodes

/// Holds every frame until the test's condition is true.
private enum Turnstile: NodeType {
    static let opening = Mutex<(@Sendable () -> Bool)?>(nil)

    static let kind = NodeKind(
        "turnstile", .processor, "Delays frames for tests", inputs: [Port("in", [.rawVideo], encodings: ["I420"])],
        outputs: [Port("out", [.rawVideo], encodings: ["I420"])])

    static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan { .passing(request) }

    static func activate(_ instance: NodeInstance) throws(MediaError) -> (any RunningNode)? {
        let isOpen = opening.withLock { $0 }
        instance.element("pictures").source.onBuffer { _ in
            while isOpen?() == false { usleep(500) }
            return .pass
        }
        return nil
    }
}

extension MediaNodesTests {
    @Suite struct FrameFunctionTests {
        /// Draws another frame number over the existing one: 1000 more.
        private static let renumber: @Sendable (inout MutableVideoFrame) -> Void = { frame in
            let (width, height) = (frame.width, frame.height)
            frame.withPlane(.luma) { luma, stride in
                let number = BarCode.read(luma.bytes, stride: stride, width: width, height: height) ?? 0
                BarCode.draw(number + 1000, into: &luma, stride: stride, width: width, height: height)
            }
        }

        @Test("A frame function changes 720p frames without a copy if nothing else reads them")
        func soleReader() async throws {
            let graph = chain(
                .testPattern("pattern", width: 1280, height: 720, frames: 30), Node("frame-function", name: "blend"),
                .frames("view"))
            let watched = try await Watched(graph) { $0.frameFunctions["blend"] = Self.renumber }
            #expect(watched.pipeline.plan.node("blend")?.copiesPerFrame == 0)
            try await watched.pipeline.start()
            await eventually("the pattern to end") { watched.hasEnded }
            await watched.pipeline.stop()
            #expect(watched.pictures().map(\.number) == (1000..<1030).map { UInt32($0) })
            let counts = watched.pipeline.statistics.frameFunctions["blend"]
            #expect(counts?.frames == 30)
            #expect(counts?.copies == 0)
        }

        @Test("After a branch each frame is copied once, as the plan states, and the other branch keeps the original")
        func afterBranch() async throws {
            let graph = MediaGraph {
                Chain {
                    Node.testPattern("pattern", width: 1280, height: 720, framesPerSecond: 15, frames: 30)
                    Tee { Node.frames("original") }
                    Node("frame-function", name: "blend")
                    Node.frames("view")
                }
            }
            let clock = SteppedClock()
            let watched = try await Watched(graph, on: clock) { $0.frameFunctions["blend"] = Self.renumber }
            let plan = watched.pipeline.plan.node("blend")
            #expect(plan?.copiesPerFrame == 1)
            #expect(plan?.notes.contains { $0.contains("copied once") } == true)
            clock.run(watched.pipeline, emptying: watched.pipeline.watch())
            try await watched.pipeline.start()
            await eventually("the pattern to end") { watched.hasEnded }
            await watched.pipeline.stop()
            #expect(watched.pictures("original").allSatisfy { ($0.number ?? 1000) < 1000 })
            #expect(watched.pictures().allSatisfy { ($0.number ?? 0) >= 1000 })
            let counts = watched.pipeline.statistics.frameFunctions["blend"]
            #expect(counts?.frames == 30 && counts?.copies == 30)
        }

        /// A decoder keeps a frame until it has decoded those that refer to it: avdec_h264 releases one of this clip
        /// when the third or fourth after it has left. Changing it earlier needs a copy.
        @Test("Frames of a file are changed without a copy once the decoder has moved on")
        func decodedPictures() async throws {
            let aheadOf = Mutex<@Sendable () -> Int>({ 0 })
            let isOver = AtomicBool()
            Turnstile.opening.withLock { $0 = { isOver.value || aheadOf.withLock { $0 }() >= 5 } }
            let graph = chain(
                .file("clip", path: Checkout.clip), Node("turnstile"), Node("frame-function", name: "blend"),
                .frames("view"))
            let watched = try await Watched(graph, registry: .builtIn.adding([Turnstile.self])) { bindings in
                bindings.frameFunctions["blend"] = { frame in
                    let (width, height) = (frame.width, frame.height)
                    frame.withPlane(.luma) { luma, stride in
                        BarCode.draw(7, into: &luma, stride: stride, width: width, height: height)
                    }
                }
            }
            let watch = watched.pipeline.watch()
            aheadOf.withLock { $0 = { watch.sample().first { $0.node == "clip" }?.queued ?? 0 } }
            try await watched.pipeline.start()
            await eventually("pictures") { watched.pictures().count > 40 }
            isOver.raise()
            let counts = watched.pipeline.statistics.frameFunctions["blend"]
            await watched.pipeline.stop()
            #expect(watched.pictures().allSatisfy { $0.number == 7 })
            #expect(watched.pipeline.plan.node("blend")?.copiesPerFrame == 0)
            #expect(counts?.copies == 0, "of \(counts?.frames ?? -1) frames")
        }

        @Test("All three planes are writable, each with its own rows")
        func planes() async throws {
            let sizes = Mutex<[Int]>([])
            let graph = chain(.testPattern("pattern", frames: 3), Node("frame-function", name: "grey"), .frames("view"))
            let watched = try await Watched(graph) { bindings in
                bindings.frameFunctions["grey"] = { frame in
                    for plane in [VideoPlane.chromaBlue, .chromaRed] {
                        frame.withPlane(plane) { bytes, stride in
                            sizes.withLock { $0.append(bytes.byteCount / stride) }
                            for offset in 0..<bytes.byteCount {
                                bytes.storeBytes(of: 128, toByteOffset: offset, as: UInt8.self)
                            }
                        }
                    }
                }
            }
            try await watched.pipeline.start()
            await eventually("the pattern to end") { watched.hasEnded }
            await watched.pipeline.stop()
            #expect(sizes.withLock { $0 } == [240, 240, 240, 240, 240, 240])
            let picture = try #require(watched.pictures().last)
            let isGrey = picture.frame.withPlane(.chromaRed) { bytes, _ in
                (0..<bytes.byteCount).allSatisfy { bytes.unsafeLoad(fromByteOffset: $0, as: UInt8.self) == 128 }
            }
            #expect(isGrey)
        }

        @Test("A graph with an unbound frame function is refused by name")
        func unbound() async {
            let graph = chain(.testPattern("pattern"), Node("frame-function", name: "blend"), .frames("view"))
            let error = await #expect(throws: MediaError.self) { try await Watched(graph) }
            #expect(error?.code == MediaError.Code.graphInvalid)
            #expect(error?.message.contains("blend") == true)
        }
    }
}
