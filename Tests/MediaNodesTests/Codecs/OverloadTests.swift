import Dispatch
import MediaGraph
import MediaNodes
import Synchronization
import TestFixtures
import Testing
import TestSupport

extension MediaNodesTests {
    @Suite struct OverloadTests {
        @Test("An encoder that is too slow drops the oldest frames, counts and reports them")
        func overload() async throws {
            let batches = Collected<RTPBatch>()
            let turn = DispatchSemaphore(value: 0)
            var bindings = NodeBindings()
            // A consumer that takes three frames' time for each frame delays the encoder as a slow machine would.
            bindings.rtpOutputs["video"] = { batch in
                batches.append(batch)
                turn.wait()
            }
            let clock = SteppedClock()
            let pipeline = try await MediaPipeline(
                MediaGraph {
                    Chain {
                        Node.testPattern("pattern", width: 320, height: 240, framesPerSecond: 60)
                        Node.videoEncoder("encoder")
                        Node.rtpOutput("video")
                    }
                }, bindings: bindings, on: clock)
            async let start: Void = pipeline.start()
            clock.crank()
            try await start
            await eventually("the first frame") { batches.count == 1 }
            for count in 2...30 {
                for _ in 0..<3 {
                    clock.waitForPending(1)
                    clock.crank()
                }
                clock.waitForPending(1)
                turn.signal()
                await eventually("\(count) frames") { batches.count == count }
            }
            let running = try #require(pipeline.statistics.encoders["encoder"])
            #expect(running.captured == 1 + 29 * 3)
            #expect(running.captured == running.encoded + running.droppedBeforeEncoder + running.inFlight)
            #expect(running.inFlight <= 4)
            #expect(!running.encoderKeepsUp)
            for _ in 0..<10 { turn.signal() }
            await pipeline.stop()
            let stopped = try #require(pipeline.statistics.encoders["encoder"])
            #expect(stopped.captured == stopped.encoded + stopped.droppedBeforeEncoder)
            #expect(stopped.inFlight == 0)
            #expect(stopped.encoded == batches.count)
            #expect(stopped.droppedBeforeEncoder > 50)
            // Encoded frames are fresh: at most the queue and the current frame are ahead of them.
            let gaps = zip(batches.all, batches.all.dropFirst()).map {
                $1.captureTime.milliseconds(since: $0.captureTime)
            }
            #expect(gaps[3..<29].allSatisfy { abs($0 - 50) < 0.01 }, "\(gaps)")
        }

        @Test("The bitrate follows a change during encoding", arguments: VideoCodec.allCases)
        func bitrate(codec: VideoCodec) async throws {
            let batches = Collected<Int>()
            var bindings = NodeBindings()
            bindings.rtpOutputs["video"] = { batches.append($0.bytes.count) }
            let clock = SteppedClock()
            let pipeline = try await MediaPipeline(
                MediaGraph {
                    Chain {
                        Node.file("clip", path: Checkout.clip)
                        Node.scale(width: 320)
                        Node.videoEncoder("encoder", codec: codec, bitrate: .kilobitsPerSecond(800))
                        Node.rtpOutput("video")
                    }
                }, bindings: bindings, on: clock)
            let most = Mutex(40)
            clock.run(pipeline, into: batches) { batches.count < most.withLock { $0 } }
            try await pipeline.start()
            await eventually("40 frames") { batches.count == 40 }
            try await pipeline.set("encoder", "bitrate", to: 100_000)
            #expect(pipeline.statistics.encoders["encoder"]?.targetBitsPerSecond == 100_000)
            most.withLock { $0 = 100 }
            await eventually("100 frames") { batches.count == 100 }
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
            let gate = Gate()
            bindings.frames["preview"] = { frame in
                frames.append(frame.captureTime)
                gate.wait()
            }
            let clock = SteppedClock()
            let pipeline = try await MediaPipeline(
                MediaGraph {
                    Chain {
                        Node.testPattern("pattern", width: 320, height: 240)
                        Tee { Node.frames("preview") }
                        Node.videoEncoder("encoder")
                        Node.rtpOutput("video")
                    }
                }, bindings: bindings, on: clock)
            // The preview has a thread of its own and takes the first frame before the second is captured.
            clock.run(pipeline, into: batches) { batches.count < 40 && (batches.count == 0 || frames.count == 1) }
            try await pipeline.start()
            await eventually("40 frames") { batches.count == 40 }
            // Every frame is encoded while the preview still shows the first.
            let times = batches.all
            #expect(zip(times, times.dropFirst()).allSatisfy { abs($1.milliseconds(since: $0) - 100 / 3) < 0.01 })
            #expect(frames.all == [times[0]])
            gate.open()
            await eventually("the two newest frames") { frames.count == 3 }
            await pipeline.stop()
            #expect(frames.all.prefix(3) == [times[0], times[38], times[39]])
        }

        @Test("A file without loop ends after all of it was encoded")
        func fileEnds() async throws {
            let events = Collected<MediaEvent>()
            var bindings = NodeBindings()
            bindings.events = { events.append($0) }
            let clock = SteppedClock()
            let pipeline = try await MediaPipeline(
                MediaGraph {
                    Chain {
                        Node.file("clip", path: Checkout.clip, loop: false)
                        Node.null("video")
                    }
                }, bindings: bindings, on: clock)
            clock.run()
            try await pipeline.start()
            await eventually("the end") { events.all.contains { if case .ended = $0 { true } else { false } } }
            await pipeline.stop()
            #expect(pipeline.statistics.videoRenderers["video"]?.framesRendered == 132)
            #expect(events.count == 2)
        }
    }
}
