import MediaGraph
import MediaNodes
import RoomProtocol
import Synchronization
import TestSupport
import Testing

@testable import RoomClient

@Suite struct OutgoingStreamTests {
    private final class Input: StreamInput {
        private let count = Atomic<Int>(0)
        var requests: Int { count.load(ordering: .relaxed) }
        func requestKeyframe() { count.add(1, ordering: .relaxed) }
        func limitRate(bitsPerSecond: Int, keepsSize: Bool) {}
    }

    /// Passes frames of 25 per second.
    private func take(
        _ stream: OutgoingStream, _ input: Input, _ frames: ClosedRange<Int>, keyframe: Int? = nil
    ) {
        for index in frames {
            stream.take(
                RTPBatch(
                    captureTime: MediaTime(nanoseconds: UInt64(index) * 40_000_000), rtpTimestamp: UInt32(index) * 3600,
                    isKeyframe: index == keyframe), from: input)
        }
    }

    @Test func `a lost request for a keyframe is repeated until one comes`() {
        let (input, stream) = (Input(), OutgoingStream(.vp8))
        stream.begin(input)
        take(stream, input, 0...0, keyframe: 0)
        stream.show(input)
        #expect(input.requests == 1, "frames passed before")
        take(stream, input, 1...13)
        #expect(input.requests == 1, "the first request may still take effect")
        take(stream, input, 14...64)
        #expect(input.requests == 5, "twice a second")
        take(stream, input, 65...200, keyframe: 65)
        #expect(input.requests == 5, "it has come")
    }

    @Test func `a stream that no room shows asks for no keyframe`() {
        let (input, stream) = (Input(), OutgoingStream(.vp8))
        stream.begin(input)
        take(stream, input, 0...100)
        #expect(input.requests == 0)
    }

    /// The capture times of the frames that a room gets, in frames.
    private func numbers(of track: any OutgoingTrack) -> Collected<Int> {
        let seen = Collected<Int>()
        track.connect(
            TrackReceiver(take: { seen.append(Int($0.captureTime.nanoseconds / 40_000_000)) }, stateChanged: {}))
        return seen
    }

    @Test func `an input that replaces another one feeds the stream once it is shown`() {
        let (old, new, stream) = (Input(), Input(), OutgoingStream(.vp8))
        let track = stream.track()
        let seen = numbers(of: track)
        stream.begin(old)
        stream.show(old)
        take(stream, old, 0...2, keyframe: 0)
        stream.begin(new)
        take(stream, new, 1...2, keyframe: 1)
        take(stream, old, 3...3)
        #expect(seen.all == [0, 1, 2, 3], "it is not shown yet")
        stream.show(new)
        #expect(new.requests == 1)
        take(stream, old, 4...5, keyframe: 4)
        take(stream, new, 4...6, keyframe: 5)
        #expect(seen.all == [0, 1, 2, 3, 5, 6])
        stream.pause(old)
        take(stream, new, 7...7)
        #expect(seen.all.last == 7)
        #expect(stream.isFed)
        stream.pause(new)
        take(stream, new, 8...8, keyframe: 8)
        #expect(seen.all.last == 7)
        #expect(!stream.isFed)
        track.disconnect()
    }

    @Test func `an input whose replacement has failed feeds the stream again`() {
        let (old, new, stream) = (Input(), Input(), OutgoingStream(.vp8))
        let track = stream.track()
        let seen = numbers(of: track)
        stream.begin(old)
        stream.show(old)
        take(stream, old, 0...1, keyframe: 0)
        stream.begin(new)
        take(stream, new, 1...1)
        stream.show(new)
        stream.pause(new)
        #expect(old.requests == 1)
        take(stream, old, 2...4, keyframe: 3)
        #expect(seen.all == [0, 1, 3, 4])
        track.disconnect()
    }

    @Test func `a publication that comes late shows its own input, and not a newer one`() {
        let (old, late, new, stream) = (Input(), Input(), Input(), OutgoingStream(.vp8))
        let track = stream.track()
        let seen = numbers(of: track)
        stream.begin(old)
        stream.show(old)
        take(stream, old, 0...1, keyframe: 0)
        stream.begin(late)
        stream.pause(late)
        stream.begin(new)
        stream.show(late)
        take(stream, old, 2...3)
        #expect(seen.all == [0, 1, 2, 3], "the new input has no frame yet")
        stream.show(new)
        take(stream, new, 4...4, keyframe: 4)
        #expect(seen.all == [0, 1, 2, 3, 4])
        stream.show(old)
        take(stream, new, 5...5)
        #expect(seen.all.last == 5, "the newer one goes on")
        track.disconnect()
    }

    // MARK: - Layers

    private final class LayerInput: StreamInput {
        let layer: VideoLayer
        private let state = Mutex<(requests: Int, limit: Int?, keepsSize: Bool)>((0, nil, false))
        var keepsSize: Bool { state.withLock { $0.keepsSize } }
        var requests: Int { state.withLock { $0.requests } }
        var limit: Int? { state.withLock { $0.limit } }

        init(_ layer: VideoLayer) { self.layer = layer }

        func requestKeyframe() { state.withLock { $0.requests += 1 } }
        func limitRate(bitsPerSecond: Int, keepsSize: Bool) {
            state.withLock { ($0.limit, $0.keepsSize) = (bitsPerSecond, keepsSize) }
        }

        /// Each payloader counts from a number of its own.
        func frame(_ milliseconds: UInt64, isKeyframe: Bool = false) -> RTPBatch {
            RTPBatch(
                captureTime: MediaTime(nanoseconds: milliseconds * 1_000_000 + UInt64(layer.divisor - 1)),
                rtpTimestamp: UInt32(layer.divisor) * 1_000_000 &+ UInt32(truncatingIfNeeded: milliseconds * 90),
                isKeyframe: isKeyframe,
                layer: layer)
        }
    }

    private func layered() -> (OutgoingStream, [VideoLayer: LayerInput]) {
        let stream = OutgoingStream(.vp8)
        var inputs: [VideoLayer: LayerInput] = [:]
        for layer in VideoLayer.allCases {
            let input = LayerInput(layer)
            inputs[layer] = input
            stream.begin(input)
            stream.show(input)
        }
        return (stream, inputs)
    }

    @Test func `the layers of a frame have one timestamp, also after days`() throws {
        let (stream, inputs) = layered()
        let track = stream.track()
        #expect(track.layers == [.quarter, .half, .full])
        let frames = Mutex<[RTPBatch]>([])
        track.connect(TrackReceiver(take: { batch in frames.withLock { $0.append(batch) } }, stateChanged: {}))
        let times: [UInt64] = [0, 33, 67, 100, 86_400_000 * 30]
        for time in times {
            for input in inputs.values { stream.take(input.frame(time, isKeyframe: true), from: input) }
        }
        let all = frames.withLock { $0 }
        #expect(all.count == 15)
        let first = try #require(all.first).rtpTimestamp
        for frame in all {
            let milliseconds = frame.captureTime.nanoseconds / 1_000_000
            #expect(frame.rtpTimestamp &- first == UInt32(truncatingIfNeeded: milliseconds * 90))
        }
        track.disconnect()
    }

    @Test func `a layer begins at a keyframe, which is requested, and is limited alone`() throws {
        let (stream, inputs) = layered()
        let track = stream.track()
        let seen = numbers(of: track)
        let (half, full) = (try #require(inputs[.half]), try #require(inputs[.full]))
        stream.take(half.frame(0), from: half)
        #expect(half.requests == 1)
        stream.take(half.frame(400), from: half)
        #expect(half.requests == 1)
        stream.take(half.frame(600), from: half)
        #expect(half.requests == 2)
        stream.take(half.frame(640, isKeyframe: true), from: half)
        stream.take(half.frame(680), from: half)
        #expect(seen.all == [16, 17])
        track.limitRate(bitsPerSecond: 5, of: .half, keepsSize: true)
        #expect(half.limit == 5 && full.limit == nil)
        track.requestKeyframe(of: .quarter)
        #expect(inputs[.quarter]?.requests == 1)
        stream.pause(half)
        #expect(track.layers == [.quarter, .full])
        stream.limitLayers(1)
        #expect(track.layers.isEmpty)
        track.disconnect()
    }

    @Test func `a room with further layers keeps the size for all, and a limit that ends counts no longer`() throws {
        let (stream, inputs) = layered()
        let (first, second) = (stream.track(), stream.track())
        let full = try #require(inputs[.full])
        first.limitRate(bitsPerSecond: 100, of: .full, keepsSize: true)
        second.limitRate(bitsPerSecond: 200)
        #expect(full.limit == 100 && full.keepsSize, "each call with the values of both")
        first.limitRate(bitsPerSecond: 0, of: .full, keepsSize: true)
        second.limitRate(bitsPerSecond: 200)
        #expect(full.limit == 200 && !full.keepsSize)
        first.limitRate(bitsPerSecond: 100, of: .full, keepsSize: true)
        first.endLimit(of: .full)
        second.limitRate(bitsPerSecond: 200)
        #expect(full.limit == 200 && !full.keepsSize)
        first.disconnect()
        second.disconnect()
    }

    @Test func `a room that gets the video while its camera is off is offered the layers`() throws {
        let (stream, inputs) = layered()
        for layer in VideoLayer.allCases.reversed() { stream.pause(try #require(inputs[layer])) }
        #expect(stream.track().layers == [.quarter, .half, .full])
    }

    @Test func `timestamps of layers never stand still, and stay common`() throws {
        let (stream, inputs) = layered()
        let track = stream.track()
        let frames = Mutex<[RTPBatch]>([])
        track.connect(TrackReceiver(take: { batch in frames.withLock { $0.append(batch) } }, stateChanged: {}))
        // Another source may have captured its first frames earlier.
        for time: UInt64 in [1000, 1033, 1033, 900, 933] {
            for layer in VideoLayer.allCases.reversed() {
                let input = try #require(inputs[layer])
                stream.take(input.frame(time, isKeyframe: true), from: input)
            }
        }
        let all = frames.withLock { $0 }
        let steps = VideoLayer.allCases.map { layer in
            let own = all.filter { $0.layer == layer }.map(\.rtpTimestamp)
            return zip(own, own.dropFirst()).map { Int32(bitPattern: $1 &- $0) }
        }
        #expect(steps[0] == [2970, 90, 90, 2970])
        #expect(Set(steps).count == 1)
        track.disconnect()
    }

    @Test func `a room that has the video in one size lacks the layers that come later`() {
        let (stream, full) = (OutgoingStream(.vp8), LayerInput(.full))
        stream.begin(full)
        stream.show(full)
        let track = stream.track()
        track.connect(TrackReceiver(take: { _ in }, stateChanged: {}))
        #expect(!stream.isPublished(without: .full) || track.layers.isEmpty)
        let half = LayerInput(.half)
        stream.begin(half)
        #expect(stream.isPublished(without: .half))
        track.disconnect()
        #expect(!stream.isPublished(without: .half))
    }
}
