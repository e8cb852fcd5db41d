import MediaGraph
import MediaNodes
import Testing
import TestSupport

extension MediaNodesTests {
    /// Frames that the program pushes into the graph.
    @Suite struct BypassTests {
        private func watching(_ bypass: Node) -> MediaGraph {
            MediaGraph {
                Chain {
                    bypass
                    Node.frames("view")
                }
            }
        }

        private let grey = [UInt8](repeating: 128, count: 32 * 32)

        private func push(_ shade: UInt8, into input: FrameInput, at time: MediaTime) -> Bool {
            input.push(
                luma: [UInt8](repeating: shade, count: 64 * 64), chromaBlue: grey, chromaRed: grey, width: 64,
                height: 64, at: time)
        }

        @Test("Raw frames keep their capture time")
        func raw() async throws {
            let seen = Seen()
            let pipeline = try await MediaPipeline(
                watching(.bypass(width: 64, height: 64)), seen: seen)
            try await pipeline.start()
            let input = try #require(pipeline.frameInput("bypass"))
            var times: [MediaTime] = []
            for index in 0..<5 {
                let time = MediaTime.now
                times.append(time)
                #expect(push(UInt8(40 + index * 20), into: input, at: time))
                await eventually("frame \(index)") { seen.pictures.count == index + 1 }
            }
            #expect(seen.pictures.all.map(\.time) == times)
            #expect(seen.pictures.all.map { Int($0.brightness) } == [40, 60, 80, 100, 120])
            #expect(input.statistics.pushed == 5 && input.statistics.dropped == 0 && input.statistics.waiting == 0)
            await pipeline.stop()
            #expect(!push(40, into: input, at: .now))
        }

        @Test("A frame that does not match the node is refused and counted")
        func misfit() async throws {
            let pipeline = try await MediaPipeline(watching(.bypass(width: 128, height: 64)), seen: Seen())
            let input = try #require(pipeline.frameInput("bypass"))
            #expect(!push(40, into: input, at: .now), "it does not run yet")
            try await pipeline.start()
            #expect(!push(40, into: input, at: .now))
            #expect(!input.push(luma: [], chromaBlue: [], chromaRed: [], width: 128, height: 64, at: .now))
            #expect(!input.push(encoded: [0], at: .now))
            #expect(input.statistics.dropped >= 2)
            await pipeline.stop()
            #expect(pipeline.frameInput("view") == nil)
        }

        @Test("A frame captured in the future is refused and counted")
        func future() async throws {
            let pipeline = try await MediaPipeline(watching(.bypass(width: 64, height: 64)), seen: Seen())
            let input = try #require(pipeline.frameInput("bypass"))
            try await pipeline.start()
            for nanoseconds in [MediaTime.now.nanoseconds + 5_000_000_000, UInt64(Int.max) + 1, .max] {
                #expect(!push(40, into: input, at: MediaTime(nanoseconds: nanoseconds)))
            }
            #expect(input.statistics.dropped == 3)
            await pipeline.stop()
        }

        @Test("If raw frames are pushed too fast, the oldest are dropped")
        func overflow() async throws {
            let seen = Seen()
            let gate = Gate()
            let graph = watching(.bypass(width: 64, height: 64))
            var bindings = seen.bindings(of: graph)
            bindings.frames["view"] = { [pictures = seen.pictures] frame in
                pictures.append(Seen.Picture(frame))
                gate.wait()
            }
            let pipeline = try await MediaPipeline(graph, bindings: bindings)
            try await pipeline.start()
            let input = try #require(pipeline.frameInput("bypass"))
            let start = MediaTime.now.nanoseconds
            func pushOne(_ index: Int) {
                _ = push(UInt8(20 + index * 10), into: input, at: MediaTime(nanoseconds: start + UInt64(index) * 1000))
            }
            pushOne(0)
            await eventually("the first frame") { seen.pictures.count == 1 }
            for index in 1...8 { pushOne(index) }
            #expect(input.statistics.waiting <= 2)
            gate.open()
            await eventually("the newest frame") { seen.pictures.all.last?.brightness == 100 }
            #expect(seen.pictures.count <= 4)
            #expect(input.statistics.pushed == 9 && input.statistics.dropped == 9 - seen.pictures.count)
            await pipeline.stop()
        }

        @Test("Encoded frames pass from the first keyframe on, which is requested until then")
        func keyframe() async throws {
            let pictures = try await EncodedPictures.make("vp8", count: 6)
            try #require(pictures.count == 6)
            let seen = Seen()
            let pipeline = try await MediaPipeline(
                watching(.bypass(width: 320, height: 240, codec: .vp8)), seen: seen)
            #expect(pipeline.plan.nodes.contains { $0.node.kind == "video-decoder" })
            try await pipeline.start()
            let input = try #require(pipeline.frameInput("bypass"))
            #expect(!input.push(encoded: pictures[1], at: .now))
            await eventually("the wish") {
                seen.events.all.contains { if case .keyframeNeeded("bypass") = $0 { true } else { false } }
            }
            for picture in pictures { #expect(input.push(encoded: picture, at: .now)) }
            await eventually("all of them") { seen.pictures.count == 6 }
            #expect(seen.pictures.all.map(\.barCode) == [0, 1, 2, 3, 4, 5])
            await pipeline.stop()
        }

        @Test("If encoded frames are pushed too fast, all are dropped up to the next keyframe")
        func encodedOverflow() async throws {
            let pictures = try await EncodedPictures.make("vp8", count: 12)
            try #require(pictures.count == 12)
            let seen = Seen()
            let gate = Gate()
            let graph = watching(.bypass(width: 320, height: 240, codec: .vp8))
            var bindings = seen.bindings(of: graph)
            bindings.frames["view"] = { [pictures = seen.pictures] frame in
                pictures.append(Seen.Picture(frame))
                gate.wait()
            }
            let pipeline = try await MediaPipeline(graph, bindings: bindings)
            try await pipeline.start()
            let input = try #require(pipeline.frameInput("bypass"))
            var taken = 0
            for round in 0..<40 {
                if input.push(encoded: pictures[round == 0 ? 0 : 1 + round % 11], at: .now) { taken += 1 }
            }
            #expect(taken < 40 && input.statistics.waiting <= 15)
            #expect(seen.events.all.contains { if case .keyframeNeeded("bypass") = $0 { true } else { false } })
            gate.open()
            await eventually("the queue to empty") { input.statistics.waiting == 0 }
            #expect(!input.push(encoded: pictures[1], at: .now), "nothing passes before a keyframe")
            #expect(input.push(encoded: pictures[0], at: .now))
            #expect(input.push(encoded: pictures[1], at: .now))
            await eventually("the frames after it") { seen.pictures.all.last?.barCode == 1 }
            #expect(input.statistics.dropped == input.statistics.pushed - taken - 2)
            await pipeline.stop()
        }
    }
}
