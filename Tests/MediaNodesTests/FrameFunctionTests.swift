import MediaGraph
import MediaNodes
import Synchronization
import Testing

extension MediaNodesTests {
    @Suite struct FrameFunctionTests {
        /// Draws another frame number over the one that is there: 1000 more.
        private static let renumber: @Sendable (inout MutableVideoFrame) -> Void = { frame in
            let (width, height) = (frame.width, frame.height)
            frame.withPlane(.luma) { luma, stride in
                let number = BarCode.read(luma.bytes, stride: stride, width: width, height: height) ?? 0
                BarCode.draw(number + 1000, into: &luma, stride: stride, width: width, height: height)
            }
        }

        @Test("A frame function changes 720p pictures without a copy when nobody else reads them")
        func soleReader() async throws {
            let graph = chain(
                .testPattern("pattern", width: 1280, height: 720, frames: 30), .frameFunction("blend"), .frames("view"))
            let watched = try Watched(graph) { $0.frameFunctions["blend"] = Self.renumber }
            #expect(watched.pipeline.plan.node("blend")?.copiesPerFrame == 0)
            try await watched.pipeline.start()
            await eventually("the pattern to end") { watched.hasEnded }
            await watched.pipeline.stop()
            #expect(watched.pictures().map(\.number) == (1000..<1030).map { UInt32($0) })
            let counts = watched.pipeline.statistics.frameFunctions["blend"]
            #expect(counts?.frames == 30)
            #expect(counts?.copies == 0)
        }

        @Test("After a branch each picture is copied once, the plan says so, and the other branch keeps the original")
        func afterBranch() async throws {
            let graph = MediaGraph {
                Chain {
                    Node.testPattern("pattern", width: 1280, height: 720, framesPerSecond: 15, frames: 30)
                    Tee { Node.frames("original") }
                    Node.frameFunction("blend")
                    Node.frames("view")
                }
            }
            let watched = try Watched(graph) { $0.frameFunctions["blend"] = Self.renumber }
            let plan = watched.pipeline.plan.node("blend")
            #expect(plan?.copiesPerFrame == 1)
            #expect(plan?.notes.contains { $0.contains("copied once") } == true)
            try await watched.pipeline.start()
            await eventually("the pattern to end") { watched.hasEnded }
            await watched.pipeline.stop()
            #expect(watched.pictures("original").allSatisfy { ($0.number ?? 1000) < 1000 })
            #expect(watched.pictures().allSatisfy { ($0.number ?? 0) >= 1000 })
            let counts = watched.pipeline.statistics.frameFunctions["blend"]
            #expect(counts?.frames == counts?.copies && counts?.frames ?? 0 >= 28)
        }

        @Test("Pictures of a file are changed without a copy: its decoder keeps none of those that it gives")
        func decodedPictures() async throws {
            let graph = chain(.file("clip", path: clip), .frameFunction("blend"), .frames("view"))
            let watched = try Watched(graph) { bindings in
                bindings.frameFunctions["blend"] = { frame in
                    let (width, height) = (frame.width, frame.height)
                    frame.withPlane(.luma) { luma, stride in
                        BarCode.draw(7, into: &luma, stride: stride, width: width, height: height)
                    }
                }
            }
            try await watched.pipeline.start()
            await eventually("pictures") { watched.pictures().count > 40 }
            await watched.pipeline.stop()
            #expect(watched.pictures().allSatisfy { $0.number == 7 })
            #expect(watched.pipeline.plan.node("blend")?.copiesPerFrame == 0)
            // Somebody may still look at the very first.
            let counts = watched.pipeline.statistics.frameFunctions["blend"]
            #expect(counts?.copies ?? 40 <= 1, "\(counts?.copies ?? -1) copies of \(counts?.frames ?? -1) pictures")
        }

        @Test("All three planes can be written, each with its own rows")
        func planes() async throws {
            let sizes = Mutex<[Int]>([])
            let graph = chain(.testPattern("pattern", frames: 3), .frameFunction("grey"), .frames("view"))
            let watched = try Watched(graph) { bindings in
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

        @Test("A graph with a frame function that nothing is bound to is refused, naming it")
        func unbound() {
            let graph = chain(.testPattern("pattern"), .frameFunction("blend"), .frames("view"))
            let error = #expect(throws: MediaError.self) { try Watched(graph) }
            #expect(error?.code == MediaError.Code.graphInvalid)
            #expect(error?.message.contains("blend") == true)
        }
    }
}
