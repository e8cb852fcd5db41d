import MediaGraph
import MediaNodes
import Testing

extension MediaNodesTests {
    @Suite struct OverloadTests {
        @Test("An encoder that is too slow drops the oldest frames, counts and reports them")
        func overload() async throws {
            let batches = Collected<RTPBatch>()
            var bindings = NodeBindings()
            // A consumer that takes 50 ms per frame delays the encoder as a slow machine would.
            bindings.rtpOutputs["video"] = { batch in
                batches.append(batch)
                var spin = ContinuousClock.now + .milliseconds(50)
                while ContinuousClock.now < spin { spin = spin + .zero }
            }
            let pipeline = try await MediaPipeline(
                MediaGraph {
                    Chain {
                        Node.testPattern("pattern", width: 320, height: 240, framesPerSecond: 60)
                        Node.videoEncoder("encoder")
                        Node.rtpOutput("video")
                    }
                }, bindings: bindings)
            try await pipeline.start()
            await eventually("30 frames") { batches.count >= 30 }
            let running = try #require(pipeline.statistics.encoders["encoder"])
            #expect(running.captured == running.encoded + running.droppedBeforeEncoder + running.inFlight)
            #expect(running.inFlight <= 4)
            #expect(!running.encoderKeepsUp)
            await pipeline.stop()
            let stopped = try #require(pipeline.statistics.encoders["encoder"])
            #expect(stopped.captured == stopped.encoded + stopped.droppedBeforeEncoder)
            #expect(stopped.inFlight == 0)
            #expect(stopped.encoded == batches.count)
            #expect(stopped.droppedBeforeEncoder > 30)
            // Encoded frames are fresh: at most the queue and the current frame are ahead of them.
            let gaps = zip(batches.all, batches.all.dropFirst()).map {
                $1.captureTime.milliseconds(since: $0.captureTime)
            }
            #expect((gaps.median ?? 0) > 40)
        }

        @Test("The bitrate follows a change during encoding", arguments: VideoCodec.allCases)
        func bitrate(codec: VideoCodec) async throws {
            let batches = Collected<Int>()
            var bindings = NodeBindings()
            bindings.rtpOutputs["video"] = { batches.append($0.bytes.count) }
            let pipeline = try await MediaPipeline(
                MediaGraph {
                    Chain {
                        Node.file("clip", path: clip)
                        Node.scale(width: 320)
                        Node.videoEncoder("encoder", codec: codec, bitrate: .kilobitsPerSecond(800))
                        Node.rtpOutput("video")
                    }
                }, bindings: bindings)
            try await pipeline.start()
            await eventually("40 frames") { batches.count >= 40 }
            try await pipeline.setBitrate(.kilobitsPerSecond(100), "encoder")
            #expect(pipeline.statistics.encoders["encoder"]?.targetBitsPerSecond == 100_000)
            await eventually("100 frames") { batches.count >= 100 }
            await pipeline.stop()
            let before = batches.all[10..<40].reduce(0, +) * 8 * 25 / 30
            let after = batches.all[60..<100].reduce(0, +) * 8 * 25 / 40
            print("\(codec) bit/s before", before, "after", after)
            #expect(after < before / 2)
            #expect(after < 200_000)
        }

        @Test("A preview does not delay the encoder")
        func preview() async throws {
            let batches = Collected<MediaTime>()
            let frames = Collected<MediaTime>()
            var bindings = NodeBindings()
            bindings.rtpOutputs["video"] = { batches.append($0.captureTime) }
            bindings.frames["preview"] = { frame in
                frames.append(frame.captureTime)
                let end = ContinuousClock.now + .milliseconds(150)
                while ContinuousClock.now < end {}
            }
            let pipeline = try await MediaPipeline(
                MediaGraph {
                    Chain {
                        Node.testPattern("pattern", width: 320, height: 240)
                        Tee { Node.frames("preview") }
                        Node.videoEncoder("encoder")
                        Node.rtpOutput("video")
                    }
                }, bindings: bindings)
            try await pipeline.start()
            await eventually("40 frames") { batches.count >= 40 }
            await pipeline.stop()
            func distance(_ times: [MediaTime]) -> Double? {
                zip(times, times.dropFirst()).map { $1.milliseconds(since: $0) }.median
            }
            // Every frame is encoded, and one in five is seen. A frozen machine loses some of both, now and then.
            let encoded = try #require(distance(batches.all))
            let seen = try #require(distance(frames.all))
            #expect(encoded < 40, "\(encoded) ms from frame to frame")
            #expect(seen > 120 && seen < 240, "\(seen) ms from frame to frame")
        }

        @Test("A file without loop ends after all of it was encoded")
        func fileEnds() async throws {
            let events = Collected<MediaEvent>()
            var bindings = NodeBindings()
            bindings.events = { events.append($0) }
            let pipeline = try await MediaPipeline(
                MediaGraph {
                    Chain {
                        Node.file("clip", path: clip, loop: false)
                        Node.null("video")
                    }
                }, bindings: bindings)
            try await pipeline.start()
            await eventually("the end") { events.all.contains { if case .ended = $0 { true } else { false } } }
            await pipeline.stop()
            #expect(pipeline.statistics.videoRenderers["video"]?.framesRendered == 132)
            #expect(events.count == 2)
        }
    }
}
