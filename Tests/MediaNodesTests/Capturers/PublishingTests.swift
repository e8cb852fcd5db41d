import MediaGraph
@testable import MediaNodes
import TestFixtures
import Testing
import TestSupport

extension MediaNodesTests {
    @Suite struct PublishingTests {
        @Test("A file is decoded and paced to a null renderer at its own size and rate")
        func fileToNull() async throws {
            let graph = MediaGraph {
                Chain {
                    Node.file("clip", path: Checkout.clip)
                    Node("frame-function", name: "seen")
                    Node.null("video")
                }
                Chain(from: "clip", port: "audio") { Node.null("sound") }
            }
            let times = Collected<MediaTime>()
            var bindings = NodeBindings()
            bindings.frameFunctions["seen"] = { times.append($0.captureTime) }
            let pipeline = try await MediaPipeline(graph, bindings: bindings)
            let start = ContinuousClock.now
            try await pipeline.start()
            await eventually("50 frames") { (pipeline.statistics.videoRenderers["video"]?.framesRendered ?? 0) >= 50 }
            let elapsed = (ContinuousClock.now - start) / .seconds(1)
            await pipeline.stop()
            let video = try #require(pipeline.statistics.videoRenderers["video"])
            #expect(video.width == 1280)
            #expect(video.height == 720)
            // 49 gaps of 40 ms: no frame is early, and a busy machine changes no timestamp.
            #expect(elapsed > 1.8)
            let due = times.all
            #expect(zip(due, due.dropFirst()).allSatisfy { abs($1.milliseconds(since: $0) - 40) < 1 })
            let sound = try #require(pipeline.statistics.audioRenderers["sound"])
            #expect(sound.secondsRendered > 1.5)
            #expect(sound.secondsAboveSilence > 0.5)
            #expect((sound.secondsSinceChunk ?? -1) >= 0)
        }

        @Test("A looping file has no gap in its timestamps, in video and audio")
        func fileLoops() async throws {
            let frames = Collected<MediaTime>()
            let sound = Collected<(MediaTime, Double)>()
            let graph = MediaGraph {
                Chain {
                    Node.file("clip", path: Checkout.clip)
                    Node.frames("view")
                }
                Chain(from: "clip", port: "audio") { Node.sound("sound") }
            }
            var bindings = NodeBindings()
            bindings.frames["view"] = { frames.append($0.captureTime) }
            bindings.audio["sound"] = { sound.append(($0.captureTime, $0.seconds)) }
            let pipeline = try await MediaPipeline(graph, bindings: bindings)
            try await pipeline.start()
            // One round has 132 frames.
            await eventually(within: 20, "150 frames") { frames.count >= 150 }
            await pipeline.stop()
            let times = frames.all
            for (earlier, later) in zip(times, times.dropFirst()) {
                let gap = later.milliseconds(since: earlier)
                #expect(gap > 39 && gap < 41)
            }
            let chunks = sound.all
            for (earlier, later) in zip(chunks, chunks.dropFirst()) {
                let gap = later.0.seconds(since: earlier.0) - earlier.1
                #expect(abs(gap) < 0.002)
            }
            #expect(chunks.count > 100)
        }

        @Test("The test pattern numbers its frames with a bar code and beeps in step")
        func testPattern() async throws {
            let numbers = Collected<UInt32?>()
            let sound = Collected<Double>()
            let graph = MediaGraph {
                Chain {
                    Node.testPattern("pattern", width: 320, height: 240, framesPerSecond: 30, frames: 30)
                    Node.frames("view")
                }
                Chain(from: "pattern", port: "audio") { Node.sound("sound") }
            }
            let events = Collected<MediaEvent>()
            var bindings = NodeBindings()
            bindings.frames["view"] = { numbers.append($0.barCode) }
            bindings.audio["sound"] = { sound.append($0.level) }
            bindings.events = { events.append($0) }
            let pipeline = try await MediaPipeline(graph, bindings: bindings)
            try await pipeline.start()
            await eventually("the end") { events.all.contains { if case .ended = $0 { true } else { false } } }
            await pipeline.stop()
            #expect(numbers.all == (0..<30).map { UInt32($0) })
            let levels = sound.all
            #expect(levels.filter { $0 > -15 }.count >= 4)
            #expect(levels.allSatisfy { $0 > -35 })
            #expect(levels.filter { $0 < -25 }.count > levels.count / 2)
        }

        @Test("An encoder passes one batch per frame, the first a keyframe", arguments: VideoCodec.allCases)
        func encoderToBatches(codec: VideoCodec) async throws {
            let batches = Collected<RTPBatch>()
            let graph = MediaGraph {
                Chain {
                    Node.testPattern("pattern", frames: 60)
                    Node.videoEncoder("encoder", codec: codec)
                    Node.rtpOutput("video", payloadType: 100, ssrc: 4711)
                }
            }
            let events = Collected<MediaEvent>()
            var bindings = NodeBindings()
            // The tenth waits for the request, because on a frozen machine all frames might be over by then.
            let gate = Gate()
            bindings.rtpOutputs["video"] = {
                batches.append($0)
                if batches.count == 10 { gate.wait() }
            }
            bindings.events = { events.append($0) }
            let pipeline = try await MediaPipeline(graph, bindings: bindings)
            try await pipeline.start()
            await eventually("10 batches") { batches.count >= 10 }
            try pipeline.requestKeyframe("encoder")
            gate.open()
            await eventually("the end") { events.all.contains { if case .ended = $0 { true } else { false } } }
            await pipeline.stop()
            let all = batches.all
            let statistics = try #require(pipeline.statistics.encoders["encoder"])
            #expect(statistics.captured == 60)
            #expect(statistics.captured == statistics.encoded + statistics.droppedBeforeEncoder)
            #expect(statistics.encoded == all.count)
            #expect(statistics.width == 640 && statistics.height == 480)
            #expect(statistics.targetBitsPerSecond == (codec == .vp9 ? 750_000 : 1_000_000))
            #expect(statistics.keyframes == 2)
            #expect(all.filter(\.isKeyframe).count == 2)
            #expect(all.first?.isKeyframe == true)
            for batch in all {
                for index in 0..<batch.count {
                    let packet = batch.bytes[batch.range(index)]
                    #expect(packet.count <= 1180)
                    #expect(packet.first == 0x80)
                    #expect(packet[packet.startIndex + 1] & 0x7f == 100)
                    #expect((packet[packet.startIndex + 1] & 0x80 != 0) == (index == batch.count - 1))
                    #expect(Array(packet.dropFirst(8).prefix(4)) == [0, 0, 0x12, 0x67])
                }
            }
            for (earlier, later) in zip(all, all.dropFirst()) {
                let ticks = later.rtpTimestamp &- earlier.rtpTimestamp
                let seconds = later.captureTime.seconds(since: earlier.captureTime)
                #expect(abs(Double(ticks) / 90_000 - seconds) < 0.001)
            }
            let seconds = try #require(all.last).captureTime.seconds(since: all[0].captureTime)
            let rate = Double(pipeline.statistics.rtpOutputs["video"]?.bytes ?? 0) * 8 / seconds
            #expect(rate < 1_600_000)
        }

        @Test("Opus packets have 20 ms")
        func opus() async throws {
            let batches = Collected<RTPBatch>()
            let graph = MediaGraph {
                Chain {
                    Node.testPattern("pattern", width: 128, height: 96, framesPerSecond: 10)
                    Node.null()
                }
                Chain(from: "pattern", port: "audio") {
                    Node.opusEncoder()
                    Node.rtpOutput("audio", payloadType: 111)
                }
            }
            var bindings = NodeBindings()
            bindings.rtpOutputs["audio"] = { batches.append($0) }
            let clock = SteppedClock()
            let pipeline = try await MediaPipeline(graph, bindings: bindings, on: clock)
            clock.run(pipeline, sources: 2, emptying: pipeline.watch())
            try await pipeline.start()
            await eventually("50 packets") { batches.count >= 50 }
            await pipeline.stop()
            // The first packet is shorter by the encoder's lookahead.
            let all = Array(batches.all.dropFirst())
            #expect(all.allSatisfy { $0.count == 1 && $0.isKeyframe })
            for (earlier, later) in zip(all, all.dropFirst()) {
                #expect(later.rtpTimestamp &- earlier.rtpTimestamp == 960)
            }
        }

        /// The packets of Opus of so many seconds of sound.
        private func packets(
            of encoder: Node, seconds: Double, silent: Bool = false,
            whileRunning body: (MediaPipeline, Collected<RTPBatch>) async throws -> Void = { _, _ in }
        ) async throws -> [RTPBatch] {
            let batches = Collected<RTPBatch>()
            let graph = MediaGraph {
                Chain {
                    Node.testPattern("pattern", width: 128, height: 96, framesPerSecond: 10)
                    Node.null()
                }
                Chain(from: "pattern", port: "audio") {
                    Node("volume", settings: ["mute": .flag(silent)])
                    encoder
                    Node.rtpOutput("audio", payloadType: 111)
                }
            }
            var bindings = NodeBindings()
            bindings.rtpOutputs["audio"] = { batches.append($0) }
            let clock = SteppedClock()
            let pipeline = try await MediaPipeline(graph, bindings: bindings, on: clock)
            clock.run(pipeline, sources: 2, emptying: pipeline.watch())
            try await pipeline.start()
            func last() -> Double {
                let all = batches.all
                return all.last.map { $0.captureTime.seconds(since: all[0].captureTime) } ?? 0
            }
            await eventually("sound") { last() >= seconds / 2 }
            try await body(pipeline, batches)
            await eventually("more sound") { last() >= seconds }
            await pipeline.stop()
            return batches.all
        }

        @Test func `with DTX, silence has a packet each 400 ms, and sound has all`() async throws {
            let encoder = Node("opus-encoder", settings: ["dtx": true])
            let silence = try await packets(of: encoder, seconds: 4, silent: true)
            let seconds = silence.last.map { $0.captureTime.seconds(since: silence[0].captureTime) } ?? 0
            // It begins after some packets.
            #expect(Double(silence.count) < 0.4 * 50 * seconds, "\(silence.count) in \(seconds) s")
            // The first packet is shorter by the encoder's lookahead.
            let pauses = zip(silence, silence.dropFirst()).map { $1.rtpTimestamp &- $0.rtpTimestamp }.dropFirst()
            #expect(pauses.allSatisfy { $0 % 960 == 0 && $0 <= 21 * 960 } && pauses.contains { $0 > 10 * 960 })
            // Without a gap in the numbers, nobody takes the pauses for losses.
            let numbers = silence.map { UInt16($0.bytes[2]) << 8 | UInt16($0.bytes[3]) }
            #expect(zip(numbers, numbers.dropFirst()).allSatisfy { $1 == $0 &+ 1 })
        }

        @Test func `without DTX, silence has all packets`() async throws {
            let silence = try await packets(of: .opusEncoder(), seconds: 2, silent: true)
            let pauses = zip(silence, silence.dropFirst()).map { $1.rtpTimestamp &- $0.rtpTimestamp }
            #expect(pauses.dropFirst().allSatisfy { $0 == 960 })
        }

        /// With in-band FEC, Opus needs its voice coder (RFC 6716, section 2.1.7): its configurations are below 16.
        private func hasVoiceCoder(_ batch: RTPBatch) -> Bool { batch.bytes[12] >> 3 < 16 }

        @Test(arguments: [nil, 10])
        func `an encoder follows the losses that a consumer reports, unless its settings state one`(
            stated: Int?
        ) async throws {
            // At 64 kbit/s, Opus needs it for a voice in any case.
            let encoder = Node.opusEncoder(bitrate: .kilobitsPerSecond(128), expectedLossPercent: stated)
            let all = try await packets(of: encoder, seconds: 4) { pipeline, _ in
                let output = try #require(pipeline.find(RTPOutputNode.self, "audio"))
                output.expectLoss(percent: 0)
            }
            #expect(hasVoiceCoder(all[10]))
            let last = try #require(all.last)
            #expect(hasVoiceCoder(last) == (stated != nil))
        }

        @Test func `an encoder follows the limit of a consumer, and its setting once the limit has ended`() async throws
        {
            let all = try await packets(of: .opusEncoder(), seconds: 4) { pipeline, batches in
                let output = try #require(pipeline.find(RTPOutputNode.self, "audio"))
                func bytes() -> Int { batches.all.last.map { $0.bytes.count - 12 } ?? 0 }
                // At a constant bitrate, each packet of 20 ms has 20 bytes for 8 kbit/s.
                await eventually("small packets") {
                    output.limitRate(bitsPerSecond: 8000)
                    return bytes() == 20
                }
                let counts = try #require(pipeline.statistics.audioEncoders["opus-encoder"])
                #expect(counts.wishedBitsPerSecond == 64_000 && counts.limitedBitsPerSecond == 8000)
                try await pipeline.set("opus-encoder", "bitrate", to: 32_000)
                let before = batches.count
                await eventually("small packets after the change") {
                    output.limitRate(bitsPerSecond: 8000)
                    return batches.count > before + 10 && bytes() == 20
                }
                await eventually("the bitrate of the settings") { bytes() == 80 }
            }
            #expect(all[10].bytes.count - 12 == 160)
        }
    }
}
