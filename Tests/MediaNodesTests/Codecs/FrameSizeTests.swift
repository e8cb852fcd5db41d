import GStreamerKit
import MediaGraph
import Synchronization
import TestFixtures
import TestSupport
import Testing

@testable import MediaNodes

extension MediaNodesTests {
    /// Encoders whose frames follow the network in size.
    @Suite struct FrameSizeTests {
        @Test(
            "A live change of size keeps one stream, which goes on at a keyframe of the new size",
            arguments: [VideoCodec.vp8, .h264])
        func oneStream(codec: VideoCodec) async throws {
            let widths = Collected<Int>()
            let losses = Collected<Void>()
            var inward = NodeBindings()
            inward.frames["view"] = { widths.append($0.width) }
            inward.events = { if case .keyframeNeeded = $0 { losses.append(()) } }
            let receiver = try await MediaPipeline(
                MediaGraph {
                    Chain {
                        Node.rtpInput("in", codec: codec, latency: 200)
                        Node.videoDecoder()
                        Node.frames("view")
                    }
                }, bindings: inward)
            let input = try #require(receiver.rtpInput("in"))
            let sent = Collected<(bytes: [UInt8], starts: [Int], isKeyframe: Bool)>()
            let changes = Collected<VideoQuality>()
            var outward = NodeBindings()
            outward.rtpOutputs["video"] = { batch in
                sent.append((batch.bytes, [0] + batch.ends.dropLast(), batch.isKeyframe))
                input.push(batch.bytes, ends: batch.ends)
            }
            outward.events = { if case .qualityChanged(_, let quality) = $0 { changes.append(quality) } }
            let publisher = try await MediaPipeline(
                MediaGraph {
                    Chain {
                        Node.testPattern("pattern", width: 640, height: 480, framesPerSecond: 20)
                        Node.videoEncoder("encoder", codec: codec)
                        Node.rtpOutput("video")
                    }
                }, bindings: outward)
            try await receiver.start()
            try await publisher.start()
            let encoder = try #require(publisher.graph.node("encoder"))
            /// Limits the encoder until a width arrives.
            func limit(_ bitsPerSecond: Int, until width: Int) async {
                await eventually(within: 30, "frames of \(width)") {
                    encoder.element("encoder").source.peer?.limitRate(bitsPerSecond: bitsPerSecond, source: 1)
                    return widths.all.suffix(10).allSatisfy { $0 == width } && widths.count >= 10
                }
            }
            await limit(2_000_000, until: 640)
            await limit(250_000, until: 480)
            let small = try #require(publisher.statistics.encoders["encoder"])
            #expect((small.width, small.height) == (480, 360) && small.limitation == .network)
            #expect(small.framesPerSecond == 20 && small.limitedBitsPerSecond == 250_000)
            #expect(small.targetBitsPerSecond == 250_000)
            await limit(2_000_000, until: 640)
            let full = try #require(publisher.statistics.encoders["encoder"])
            await publisher.stop()
            await receiver.stop()
            #expect(full.width == 640 && full.limitation != .network)
            // One keyframe for each size, and nothing was missing.
            #expect(full.keyframes == 3 && sent.all.count { $0.isKeyframe } == 3)
            #expect(losses.count == 0)
            #expect(receiver.statistics.rtpInputs["in"]?.packetsLost == 0)
            var order = widths.all
            order = order.enumerated().filter { $0.offset == 0 || order[$0.offset - 1] != $0.element }.map(\.element)
            #expect(order == [640, 480, 640])
            let headers = sent.all.flatMap { frame in frame.starts.map { Array(frame.bytes[$0..<$0 + 12]) } }
            #expect(Set(headers.map { $0[8...11] }).count == 1)
            let numbers = headers.map { UInt16($0[2]) << 8 | UInt16($0[3]) }
            #expect(zip(numbers, numbers.dropFirst()).allSatisfy { $1 == $0 &+ 1 })
            #expect(changes.all.map { "\($0.width)" } == ["480", "640"])
            #expect(changes.all.first?.description == "the network carries 250 kbit/s: 480x360 at 20")
        }

        @Test("Without a limit, frames reach the encoder as they are")
        func untouched() async throws {
            let (before, after, batches) = (Collected<UInt>(), Collected<UInt>(), Collected<Void>())
            var bindings = NodeBindings()
            bindings.rtpOutputs["video"] = { _ in batches.append(()) }
            let clock = SteppedClock()
            let pipeline = try await MediaPipeline(
                MediaGraph {
                    Chain {
                        Node.testPattern("pattern", width: 320, height: 240)
                        Node.videoEncoder("encoder")
                        Node.rtpOutput("video")
                    }
                }, bindings: bindings, on: clock)
            let encoder = try #require(pipeline.graph.node("encoder"))
            encoder.element("queue").source.watchBuffers { before.append($0.address) }
            encoder.element("encoder").sink.watchBuffers { after.append($0.address) }
            clock.run(pipeline) { batches.count < 20 }
            try await pipeline.start()
            await eventually("20 frames") { batches.count >= 20 }
            await pipeline.stop()
            #expect(before.all == after.all && before.count >= 20)
        }

        @Test("A recording keeps the size of its encoder, also one that an edit adds")
        func recording() async throws {
            let folder = TemporaryFolder()
            let batches = Collected<Void>()
            var bindings = NodeBindings()
            bindings.rtpOutputs["video"] = { _ in batches.append(()) }
            func graph(recorder: Bool) -> MediaGraph {
                MediaGraph {
                    Chain {
                        Node.testPattern("pattern", width: 640, height: 480, framesPerSecond: 20)
                        Node.videoEncoder("encoder")
                        if recorder { Tee { Node.recorder("recorder", path: folder.file("recording.webm")) } }
                        Node.rtpOutput("video")
                    }
                }
            }
            let clock = SteppedClock()
            let pipeline = try await MediaPipeline(graph(recorder: false), bindings: bindings, on: clock)
            #expect(pipeline.plan.node("encoder")?.element("scale") != nil)
            let encoder = try #require(pipeline.graph.node("encoder"))
            let most = Mutex(20)
            let limit = Mutex(200_000)
            clock.run(pipeline) {
                encoder.element("encoder").source.peer?.limitRate(
                    bitsPerSecond: limit.withLock { $0 }, source: 1)
                return batches.count < most.withLock { $0 }
            }
            try await pipeline.start()
            await eventually("a second") { batches.count >= 15 }
            most.withLock { $0 = .max }
            try await pipeline.apply(graph(recorder: true))
            func recorded(_ count: Int) async {
                await eventually("\(count) frames") {
                    (pipeline.statistics.recorders["recorder"]?.frames ?? 0) >= count
                }
            }
            await recorded(5)
            let before = pipeline.statistics.encoders["encoder"]?.width
            limit.withLock { $0 = 60_000 }
            await recorded(100)
            let after = pipeline.statistics.encoders["encoder"]?.width
            await pipeline.stop()
            #expect(pipeline.shortfalls.isEmpty)
            #expect(DecodedRecording(folder.file("recording.webm")).problem == nil)
            #expect(before == after)
        }
    }
}

extension PassingBuffer {
    /// Of its first byte.
    fileprivate var address: UInt {
        read { bytes in bytes.withUnsafeBytes { UInt(bitPattern: $0.baseAddress) } } ?? 0
    }
}

@Suite struct FrameSizePlanTests {
    private func plan(_ node: Node, behind source: Node, alsoTo others: Node...) throws -> NodePlan {
        let graph = MediaGraph {
            Chain {
                source
                node
                for other in others { Tee { other } }
                Node.rtpOutput("video")
            }
        }
        let plan = try Planner(NodeRegistry.builtIn, SystemEnvironment()).plan(graph)
        return try #require(plan.node("encoder"))
    }

    @Test func `the size follows if all consumers send to peers`() throws {
        let pattern = Node.testPattern("pattern")
        let encoder = Node.videoEncoder("encoder")
        #expect(try plan(encoder, behind: pattern).elements.map(\.factory).contains("videoscale"))
        let folder = TemporaryFolder()
        let both = try plan(encoder, behind: pattern, alsoTo: Node.recorder(path: folder.file("recording.mkv")))
        #expect(both.element("scale") == nil)
        #expect(try plan(encoder, behind: pattern, alsoTo: Node.rtpOutput("other")).element("scale") != nil)
    }

    @Test func `an inserted encoder follows too, and a recording beside it prevents that`() throws {
        func encoder(_ graph: MediaGraph) throws -> NodePlan {
            let plan = try Planner(NodeRegistry.builtIn, SystemEnvironment()).plan(graph)
            return try #require(plan.nodes.first { $0.adapts != nil })
        }
        let folder = TemporaryFolder()
        #expect(
            try encoder(
                MediaGraph {
                    Chain {
                        Node.testPattern("pattern")
                        Node.rtpOutput("video")
                    }
                }
            ).element("scale") != nil)
        #expect(
            try encoder(
                MediaGraph {
                    Chain {
                        Node.testPattern("pattern")
                        Tee { Node.recorder(path: folder.file("recording.mkv")) }
                        Node.rtpOutput("video")
                    }
                }
            ).element("scale") == nil)
    }
}
