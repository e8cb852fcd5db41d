import Dispatch
import MediaGraph
import MediaNodes
import Synchronization
import TestFixtures
import Testing
import TestSupport

extension MediaNodesTests {
    @Suite struct NetworkTests {
        @Test("Reordered and duplicate packets deliver every frame once and in order")
        func reordered() async throws {
            // A frozen machine must not determine the latency.
            let loopback = try await Loopback(
                codec: .vp8, frames: 60, bitrate: .kilobitsPerSecond(2000), latency: 2000
            ) { batch, input in
                for index in (0..<batch.count).reversed() {
                    let packet = Array(batch.bytes[batch.range(index)])
                    input.push(packet, ends: [packet.count])
                    input.push(packet, ends: [packet.count])
                }
            }
            try await loopback.start()
            await eventually("the end") { loopback.hasEnded }
            await eventually("the last frame") { loopback.rendered.count >= loopback.sent.count }
            await loopback.stop()
            #expect(loopback.rendered.all.map(\.rtpTimestamp) == loopback.sent.all.map { Optional($0.rtpTimestamp) })
            #expect(loopback.receiver.statistics.rtpInputs["in"]?.packetsLost == 0)
        }

        @Test("A packet repaired within the latency costs no frame", arguments: VideoCodec.allCases)
        func repaired(codec: VideoCodec) async throws {
            let counter = Mutex(0)
            // Packets in order leave immediately. A frozen machine must not determine the latency.
            let loopback = try await Loopback(codec: codec, frames: 90, latency: 5000) { batch, input in
                for index in 0..<batch.count {
                    let packet = Array(batch.bytes[batch.range(index)])
                    let isLate = counter.withLock { count in
                        count += 1
                        return count % 20 == 19
                    }
                    if isLate {
                        DispatchQueue.global().asyncAfter(deadline: .now() + 0.06) {
                            input.push(packet, ends: [packet.count])
                        }
                    } else {
                        input.push(packet, ends: [packet.count])
                    }
                }
            }
            try await loopback.start()
            await eventually("the end") { loopback.hasEnded }
            await eventually("the last frame") { loopback.rendered.count >= loopback.sent.count }
            await loopback.stop()
            // By the numbers in the frames, because frames that arrive in a burst after a stall may share a time.
            let numbers = loopback.rendered.all.compactMap(\.number)
            #expect(loopback.rendered.count == loopback.sent.count)
            // The first keyframe of VP9 may be too coarse for its number.
            #expect(numbers.count >= loopback.sent.count - (codec == .vp9 ? 1 : 0))
            #expect(zip(numbers, numbers.dropFirst()).allSatisfy(<), "\(numbers)")
        }

        @Test("Without a latency, frames wait as long as repairs take, and none is lost or out of order")
        func playoutDelay() async throws {
            // The frames so far, and the one that is late: it arrives behind the four after it.
            let progress = Mutex<(count: Int, late: (@Sendable () -> Void)?)>((0, nil))
            let arrivals = Collected<(timestamp: UInt32, time: MediaTime)>()
            let loopback = try await Loopback(codec: .vp8, frames: 124, latency: nil) { batch, input in
                let push: @Sendable () -> Void = {
                    arrivals.append((batch.rtpTimestamp, MediaTime(nanoseconds: DispatchTime.now().uptimeNanoseconds)))
                    input.push(batch.bytes, ends: batch.ends)
                }
                let late = progress.withLock { progress -> (@Sendable () -> Void)? in
                    progress.count += 1
                    if progress.count % 10 == 9 { progress.late = push }
                    return progress.count % 10 == 3 ? progress.late.take() : nil
                }
                if progress.withLock({ $0.count % 10 }) != 9 { push() }
                late?()
            }
            try await loopback.start()
            await eventually("the end") { loopback.hasEnded }
            progress.withLock { $0.late.take() }?()
            await eventually("the last frame") { loopback.rendered.count >= loopback.sent.count }
            let delay = try #require(loopback.receiver.statistics.rtpInputs["in"]?.playoutDelay)
            await loopback.stop()
            let numbers = try loopback.rendered.all.map { try #require($0.number) }
            #expect(numbers.count == loopback.sent.count)
            #expect(zip(numbers, numbers.dropFirst()).allSatisfy(<), "\(numbers)")
            #expect(delay >= 0.1 && delay <= 0.4)
            // Frames 109 and 119 are late. Frame 116 was there in time, as all before it, and waited. A busy machine encodes fewer.
            let sent = loopback.sent.all
            try #require(sent.count > 40)
            let timestamp = sent[(sent.count - 4) / 10 * 10 - 5].rtpTimestamp
            let frame = try #require(loopback.rendered.all.last { $0.rtpTimestamp == timestamp })
            let arrival = try #require(arrivals.all.last { $0.timestamp == timestamp })
            #expect(frame.handedOver.seconds(since: arrival.time) > 0.05)
        }

        @Test("After unrepaired loss, nothing corrupt is shown until a keyframe", arguments: VideoCodec.allCases)
        func lost(codec: VideoCodec) async throws {
            let generator = Mutex(Seeded(7))
            let loopback = try await Loopback(codec: codec, frames: 150, latency: 30) { batch, input in
                for index in 0..<batch.count {
                    let isLost = generator.withLock { Int.random(in: 0..<100, using: &$0) < 3 }
                    if isLost { continue }
                    let packet = Array(batch.bytes[batch.range(index)])
                    input.push(packet, ends: [packet.count])
                }
            }
            loopback.whenKeyframeNeeded { [weak loopback] in try? loopback?.publisher.requestKeyframe("encoder") }
            try await loopback.start()
            await eventually("the end") { loopback.hasEnded }
            // Nothing more arrives after the jitter buffer has given up the last lost packet.
            try await Task.sleep(for: .milliseconds(300))
            await loopback.stop()
            let sent = loopback.sent.all
            let order = Dictionary(uniqueKeysWithValues: sent.enumerated().map { ($1.rtpTimestamp, $0) })
            let shown = loopback.rendered.all.compactMap { $0.rtpTimestamp.flatMap { order[$0] } }
            #expect(shown.count == loopback.rendered.count)
            #expect(loopback.rendered.all.allSatisfy { $0.number != nil })
            #expect(shown.count < sent.count)
            #expect(shown.count > sent.count / 3)
            var previous = -1
            for index in shown {
                // The first frame after a gap is a keyframe.
                #expect(index == previous + 1 || (index > previous && sent[index].isKeyframe))
                previous = index
            }
            #expect((loopback.receiver.statistics.rtpInputs["in"]?.packetsLost ?? 0) > 0)
        }

        @Test("A late receiver waits for a keyframe and requests it repeatedly", arguments: VideoCodec.allCases)
        func lateJoin(codec: VideoCodec) async throws {
            let count = Mutex(0)
            let loopback = try await Loopback(codec: codec, frames: 0) { batch, input in
                let number = count.withLock { count in
                    count += 1
                    return count
                }
                if number > 10 { input.push(batch.bytes, ends: batch.ends) }
            }
            let asked = Collected<Bool>()
            loopback.whenKeyframeNeeded { asked.append(true) }
            try await loopback.start()
            await eventually("three requests") { asked.count >= 3 }
            #expect(loopback.rendered.count == 0)
            try loopback.publisher.requestKeyframe("encoder")
            await eventually("a frame") { loopback.rendered.count > 5 }
            let requests = asked.count
            await eventually("more frames") { loopback.rendered.count > 20 }
            #expect(asked.count <= requests + 1)
            await loopback.stop()
        }

        @Test("A stream that begins with a keyframe requests none")
        func noNeedlessRequest() async throws {
            let loopback = try await Loopback(codec: .vp8, frames: 20)
            try await loopback.start()
            await eventually("the end") { loopback.hasEnded }
            await eventually("the last frame") { loopback.rendered.count >= loopback.sent.count }
            await loopback.stop()
            #expect(loopback.receiver.statistics.rtpInputs["in"]?.keyframesNeeded == 0)
        }

        @Test("Packets before the start are dropped and counted; malformed ones and those after the end do no harm")
        func overflowAndGarbage() async throws {
            let graph = MediaGraph {
                Chain {
                    Node("rtp-input", name: "in", settings: ["codec": "vp8", "capacity": 16])
                    Node.videoDecoder()
                    Node.null("view")
                }
            }
            let pipeline = try await MediaPipeline(graph)
            let input = try #require(pipeline.rtpInput("in"))
            #expect(pipeline.rtpInput("out") == nil)
            input.push([1, 2, 3], ends: [3])
            #expect(pipeline.statistics.rtpInputs["in"]?.packetsDropped == 1)
            try await pipeline.start()
            var generator = Seeded(3)
            for length in 0..<200 {
                var packet = (0..<length).map { _ in UInt8.random(in: 0...255, using: &generator) }
                if length > 1 {
                    packet[0] = 0x80
                    packet[1] = 96
                }
                input.push(packet, ends: [length])
            }
            #expect(pipeline.statistics.rtpInputs["in"]?.packetsReceived == 201)
            await pipeline.stop()
            input.push([1, 2, 3], ends: [3])
        }

        @Test("Audio survives Opus, and a lost packet is concealed")
        func opus() async throws {
            let receiving = MediaGraph {
                Chain {
                    Node.rtpInput("in", codec: .opus)
                    Node.audioDecoder()
                    Node.null("end")
                }
            }
            let clock = SteppedClock()
            let receiver = try await MediaPipeline(receiving, on: clock)
            let input = try #require(receiver.rtpInput("in"))
            let count = Mutex(0)
            var bindings = NodeBindings()
            bindings.rtpOutputs["audio"] = { batch in
                let number = count.withLock { count in
                    count += 1
                    return count
                }
                if number % 25 != 0 { input.push(batch.bytes, ends: batch.ends) }
            }
            let publishing = MediaGraph {
                Chain {
                    Node.testPattern("pattern", width: 64, height: 64, framesPerSecond: 5)
                    Node.null()
                }
                Chain(from: "pattern", port: "audio") {
                    Node.opusEncoder()
                    Node.rtpOutput("audio", payloadType: 111)
                }
            }
            let publisher = try await MediaPipeline(publishing, bindings: bindings, on: clock)
            // At the pace of the audio encoder, whose queue drops audio on a busy machine.
            clock.run(publisher, sources: 2) { [weak publisher] in
                let sent = count.withLock { $0 }
                let captured = publisher?.statistics.audioEncoders["opus-encoder"]?.seconds ?? 0
                return sent < 110 && captured < Double(sent) * 0.02 + 0.1
            }
            try await receiver.start()
            try await publisher.start()
            await eventually("more than two seconds of sound") {
                (receiver.statistics.audioRenderers["end"]?.secondsRendered ?? 0) >= 2.18
            }
            await publisher.stop()
            await receiver.stop()
            let sound = try #require(receiver.statistics.audioRenderers["end"])
            #expect(sound.secondsAboveSilence > 0.98 * sound.secondsRendered)
            let encoded = try #require(publisher.statistics.audioEncoders["opus-encoder"])
            #expect(abs(encoded.seconds - sound.secondsRendered) < 0.2 && encoded.level > -60)
            // About as loud as it was, over the whole of it.
            let ratio = (sound.energy / sound.secondsRendered) / (encoded.energy / encoded.seconds)
            #expect((0.7...1.3).contains(ratio), "\(ratio)")
            #expect(receiver.statistics.rtpInputs["in"]?.packetsLost == 4)
        }

        @Test func `pauses of an encoder with DTX are silence, and no losses`() async throws {
            let receiving = MediaGraph {
                Chain {
                    Node.rtpInput("in", codec: .opus)
                    Node.audioDecoder()
                    Node.null("end")
                }
            }
            let clock = SteppedClock()
            let receiver = try await MediaPipeline(receiving, on: clock)
            let input = try #require(receiver.rtpInput("in"))
            let times = Collected<MediaTime>()
            var bindings = NodeBindings()
            bindings.rtpOutputs["audio"] = { batch in
                times.append(batch.captureTime)
                input.push(batch.bytes, ends: batch.ends)
            }
            let publishing = MediaGraph {
                Chain {
                    Node.testPattern("pattern", width: 64, height: 64, framesPerSecond: 5)
                    Node.null()
                }
                Chain(from: "pattern", port: "audio") {
                    Node("volume", settings: ["mute": true])
                    Node("opus-encoder", settings: ["dtx": true])
                    Node.rtpOutput("audio", payloadType: 111)
                }
            }
            @Sendable func seconds() -> Double {
                let all = times.all
                return all.last.map { $0.seconds(since: all[0]) } ?? 0
            }
            let publisher = try await MediaPipeline(publishing, bindings: bindings, on: clock)
            clock.run(publisher, sources: 2) { seconds() < 4 }
            try await receiver.start()
            try await publisher.start()
            await eventually("four seconds, most of them without packets") {
                seconds() >= 4 && (receiver.statistics.rtpInputs["in"]?.framesDecoded ?? 0) >= times.count - 2
            }
            await publisher.stop()
            await receiver.stop()
            let received = try #require(receiver.statistics.rtpInputs["in"])
            #expect(times.count < 80 && received.packetsLost == 0 && received.packetsReceived == times.count)
            // Concealment would make sound of the pauses.
            let sound = try #require(receiver.statistics.audioRenderers["end"])
            #expect(sound.secondsAboveSilence < 0.05)
        }
    }
}
