import MediaAuthoring
import Synchronization

/// The media that a node with an input is fed with. It waits for the node, so that nothing is dropped on a busy machine.
struct Feed: Sendable {
    /// The sizes of the frames, repeated in turn.
    var shapes = [FrameShape.usual]
    /// Ends the stream after so many frames or buffers. Nil: never.
    var count: Int?
    /// After so many frames or buffers, the next ones are missing for so many seconds.
    var gap: (after: Int, seconds: Double)?
}

/// Feeds one run, and records what becomes of its frames.
final class Feeder: UnitRecord {
    /// A frame that is due.
    struct Arrival {
        let shape: FrameShape
        let time: MediaTime
    }

    private struct State {
        var start: MediaTime?
        var next = 0
        var units: [MediaUnit] = []
        var patterns: [FrameShape: Picture] = [:]
        var mostHeld = 0
        var seconds: [Double] = []
        var last: Picture?
        var ended: MediaTime?
    }

    private let feed: Feed
    private let isSound: Bool
    private let clock: any StandClock
    private let state = Mutex(State())
    /// How many of the frames read so far are still referenced.
    fileprivate let references = Atomic(0)

    init(_ feed: Feed, isSound: Bool, _ clock: any StandClock) {
        self.feed = feed
        self.isSound = isSound
        self.clock = clock
    }

    static func format(_ shape: FrameShape, isSound: Bool) -> MediaFormat {
        isSound
            ? .rawAudio
            : PictureFormat(width: shape.width, height: shape.height, framesPerSecond: 30).media
    }

    var units: [MediaUnit] { state.withLock { $0.units } }
    /// When the node was told that the stream has ended, on the machine's clock.
    var ended: MediaTime? { state.withLock { $0.ended } }
    /// The seconds that each frame took to process, on the machine's clock.
    var seconds: [Double] { state.withLock { $0.seconds } }
    /// The samples of the last processed frame, without padding.
    var lastResult: [[UInt8]]? { state.withLock { $0.last }?.visible }
    var held: Int { references.load(ordering: .sequentiallyConsistent) }
    /// The most that were referenced when the node asked for another.
    var mostHeld: Int { state.withLock { $0.mostHeld } }

    /// Returns the next frame or buffer once it is due, and nil at the end of the stream.
    private func next() async throws -> Arrival? {
        let (number, start) = state.withLock { state in
            defer { state.next += 1 }
            let start = state.start ?? clock.now
            state.start = start
            state.mostHeld = max(state.mostHeld, held)
            return (state.next, start)
        }
        if let count = feed.count, number >= count {
            state.withLock { $0.ended = $0.ended ?? .current }
            return nil
        }
        let missing = feed.gap.map { number >= $0.after ? $0.seconds : 0 } ?? 0
        let time = start.advanced(by: Double(number) * (isSound ? 0.01 : 1 / 30) + missing)
        try await clock.wait(until: time)
        try Task.checkCancellation()
        return Arrival(shape: feed.shapes[number % feed.shapes.count], time: time)
    }

    private func pass(_ arrival: Arrival) {
        let format = Self.format(arrival.shape, isSound: isSound)
        let unit = MediaUnit(format: format, time: arrival.time, arrival: clock.now)
        state.withLock { $0.units.append(unit) }
    }

    private func pattern(_ shape: FrameShape) -> Picture {
        state.withLock { state in
            // I420 whose bytes have all values, also in the padding.
            let pattern =
                state.patterns[shape]
                ?? Picture(.i420, shape) { plane, length in
                    (0..<16).map { row in (0..<length).map { UInt8(truncatingIfNeeded: $0 * 5 + row * 37 + plane) } }
                }
            state.patterns[shape] = pattern
            return pattern
        }
    }

    /// Passes frame after frame to `process`, until the stream ends.
    func process(_ process: (inout MutableVideoFrame) throws -> Void) async throws {
        while let arrival = try await next() {
            let memory = PictureMemory(pattern(arrival.shape))
            var frame = MutableVideoFrame(
                width: arrival.shape.width, height: arrival.shape.height, captureTime: arrival.time,
                access: memory.withPlane)
            let began = MediaTime.current
            try process(&frame)
            let seconds = MediaTime.current.seconds(since: began)
            state.withLock { state in
                state.seconds.append(seconds)
                state.last = memory.picture
            }
            pass(arrival)
        }
    }

    /// The same as a stream, which also ends when its reader is cancelled.
    func stream<Media: RenderedMedia>(of media: Media.Type) -> RenderStream<Media> {
        RenderStream(
            AsyncStream {
                guard let arrival = try? await self.next() else { return nil }
                self.pass(arrival)
                return (self.isSound ? self.chunk(arrival) : self.frame(arrival)) as? Media
            })
    }

    private func chunk(_ arrival: Arrival) -> any RenderedMedia {
        // All values, the extremes among them.
        let samples = (0..<960).map { Int16(truncatingIfNeeded: $0 * 137 - 32_768) }
        return AudioChunk(
            samples: samples, sampleRate: 48_000, channels: 2, captureTime: arrival.time, rtpTimestamp: nil, level: -5)
    }

    private func frame(_ arrival: Arrival) -> any RenderedMedia {
        VideoFrame(
            width: arrival.shape.width, height: arrival.shape.height, captureTime: arrival.time, rtpTimestamp: nil,
            handedOver: clock.now, storage: FedFrame(pattern(arrival.shape), of: self))
    }
}

/// A frame for a renderer.
private final class FedFrame: VideoFrameStorage {
    private let picture: Picture
    private let feeder: Feeder

    init(_ picture: Picture, of feeder: Feeder) {
        (self.picture, self.feeder) = (picture, feeder)
        feeder.references.add(1, ordering: .sequentiallyConsistent)
    }

    deinit {
        feeder.references.subtract(1, ordering: .sequentiallyConsistent)
    }

    func withPlane<Result>(_ plane: VideoPlane, _ body: (RawSpan, Int) throws -> Result) rethrows -> Result {
        let bytes = picture.planes[plane.rawValue]
        return try body(bytes.span.bytes, picture.stride(of: plane.rawValue))
    }
}
