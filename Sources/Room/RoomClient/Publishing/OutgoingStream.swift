internal import MediaGraph
internal import MediaNodes
internal import RTP
internal import RoomProtocol
internal import Synchronization

/// The source of packets of a stream, as far as the stream calls it.
protocol StreamInput: AnyObject, Sendable {
    func requestKeyframe()
    /// See `EncodedTrack.limitRate`.
    func limitRate(bitsPerSecond: Int)
}

extension RTPOutputNode: StreamInput {}

/// One encoded stream of a graph, published in any number of rooms.
///
/// It outlives its input, and the pipeline of the input: another input of the same codec continues the stream, with
/// timestamps that count on.
final class OutgoingStream: Sendable {
    private struct State {
        /// Its tracks that rooms have, or are about to get.
        var tracks: Set<ObjectIdentifier> = []
        var receivers: [ObjectIdentifier: TrackReceiver] = [:]
        /// The newest limit of each room in bits per second. The least one counts.
        var limits: [ObjectIdentifier: Int] = [:]
        /// Whether an input feeds the stream.
        var isFed = false
        var hasBegun = false
        /// Whether the input ended without a frame.
        var isEmpty = false
        /// Whether to pass frames to the rooms.
        var isShown = false
        /// Whether receivers have nothing yet on which the next frames may depend.
        var needsKeyframe = true
        /// Callers that wait for the first frame.
        var waiting: [CheckedContinuation<RoomError?, Never>] = []
        /// Why the pipeline of the input has failed.
        var failure: RoomError?
        var hasEnded = false
        var streamState = StreamState.live
        var feed = InputFeed()
        var timeline = Timeline()
    }

    private struct Output: Sendable {
        weak var input: (any StreamInput)?
    }

    let codec: Codec
    private let state = Mutex(State())
    /// Weak, because the node's elements hold this stream.
    private let output = Mutex(Output())

    init(_ codec: Codec) { self.codec = codec }

    // MARK: - Input

    /// Connects an input to the stream.
    func begin(_ input: any StreamInput) {
        output.withLock { $0.input = input }
        state.withLock { state in
            state.isFed = true
            state.hasBegun = false
            state.isEmpty = false
            state.failure = nil
            state.timeline.pause()
        }
    }

    /// Disconnects the input.
    func pause() {
        let waiting = state.withLock { state in
            state.isFed = false
            state.isShown = false
            state.feed = InputFeed()
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume(returning: nil) }
    }

    /// The pipeline of the input has failed.
    func fail(_ error: RoomError) {
        let waiting = state.withLock { state in
            state.failure = error
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume(returning: error) }
        set(.waiting("failed"))
    }

    /// Passes frames to the rooms, video from a keyframe on.
    func show() {
        let isNews = state.withLock { state in
            defer { state.isShown = true }
            if !state.isShown { state.needsKeyframe = true }
            return !state.isShown
        }
        if isNews, hasBegun { requestKeyframe() }
    }

    /// Takes over what feeds the input. News of an input that has gone are ignored.
    func set(_ feed: InputFeed) {
        let isFed = state.withLock { state in
            if state.isFed { state.feed = feed }
            return state.isFed
        }
        guard isFed else { return }
        set(feed.absence.map { StreamState(absence: $0) } ?? .live)
    }

    func set(_ streamState: StreamState) {
        let receivers = state.withLock { state in
            defer { state.streamState = streamState }
            return state.streamState == streamState ? [] : Array(state.receivers.values)
        }
        for receiver in receivers { receiver.stateChanged() }
    }

    /// A pipeline that could not be made leaves its inputs without a word.
    var isFed: Bool { state.withLock { $0.isFed } && output.withLock { $0.input != nil } }
    var hasBegun: Bool { state.withLock { $0.hasBegun } }
    var isEmpty: Bool { state.withLock { $0.isEmpty } }
    var isPublished: Bool { state.withLock { !$0.tracks.isEmpty } }
    var streamState: StreamState { state.withLock { $0.streamState } }
    var videoFormat: MediaFormat? { codec.media == .video ? state.withLock { $0.feed.format } : nil }

    var encoderStatistics: MediaStatistics.VideoEncoder? { state.withLock { $0.feed.encoder }?() }

    /// Called on a streaming thread.
    func take(_ batch: RTPBatch) {
        var batch = batch
        let (receivers, waiting) = state.withLock { state in
            state.hasBegun = true
            state.timeline.continue(with: &batch, clockRate: codec.clockRate)
            defer { state.waiting = [] }
            if state.isShown, batch.isKeyframe { state.needsKeyframe = false }
            return (state.isShown && !state.needsKeyframe ? Array(state.receivers.values) : [], state.waiting)
        }
        for continuation in waiting { continuation.resume(returning: nil) }
        for receiver in receivers { receiver.take(batch) }
    }

    /// Called on a streaming thread.
    func inputEnded() {
        let waiting = state.withLock { state in
            state.isEmpty = !state.hasBegun
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume(returning: nil) }
    }

    /// Returns when a frame has arrived, or when the input or the stream has ended. Without an input, returns immediately.
    ///
    /// - Throws: why the pipeline of the input has failed.
    func firstFrame() async throws(RoomError) {
        let hasInput = isFed
        let failure = await withCheckedContinuation { continuation in
            let (isOver, failure) = state.withLock { state in
                if state.failure != nil { return (true, state.failure) }
                guard hasInput, state.isFed, !state.hasBegun, !state.isEmpty, !state.hasEnded else {
                    return (true, nil)
                }
                state.waiting.append(continuation)
                return (false, nil)
            }
            if isOver { continuation.resume(returning: failure) }
        }
        if let failure { throw failure }
    }

    func end() {
        let waiting = state.withLock { state in
            state.hasEnded = true
            state.receivers = [:]
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume(returning: nil) }
    }

    // MARK: - Rooms

    /// A track for one more room.
    func track() -> any OutgoingTrack { StreamTrack(of: self) }

    fileprivate func add(_ track: ObjectIdentifier) { state.withLock { _ = $0.tracks.insert(track) } }

    fileprivate func connect(_ track: ObjectIdentifier, _ receiver: TrackReceiver?) {
        state.withLock { state in
            state.receivers[track] = receiver
            if receiver == nil {
                state.tracks.remove(track)
                state.limits[track] = nil
            }
        }
    }

    /// Limits the encoder of a stream to what all its rooms can take.
    fileprivate func limitRate(bitsPerSecond: Int, by track: ObjectIdentifier) {
        guard codec.media == .video else { return }
        let least = state.withLock { state in
            state.limits[track] = bitsPerSecond
            return state.limits.values.min() ?? bitsPerSecond
        }
        output.withLock { $0.input }?.limitRate(bitsPerSecond: least)
    }

    func requestKeyframe() { if codec.media == .video { output.withLock { $0.input }?.requestKeyframe() } }
}

/// A stream in one room.
private final class StreamTrack: OutgoingTrack {
    private let stream: OutgoingStream

    init(of stream: OutgoingStream) {
        self.stream = stream
        stream.add(ObjectIdentifier(self))
    }

    deinit { stream.connect(ObjectIdentifier(self), nil) }

    var codec: Codec { stream.codec }
    var encoderStatistics: MediaStatistics.VideoEncoder? { stream.encoderStatistics }
    var videoFormat: MediaFormat? { stream.videoFormat }
    var streamState: StreamState { stream.streamState }

    func connect(_ receiver: TrackReceiver?) { stream.connect(ObjectIdentifier(self), receiver) }

    func requestKeyframe() { stream.requestKeyframe() }

    func limitRate(bitsPerSecond: Int) { stream.limitRate(bitsPerSecond: bitsPerSecond, by: ObjectIdentifier(self)) }
}

/// The RTP timestamps of a stream. Those of each input start at a random number; here they continue the former ones, by the
/// time between the two captures.
private struct Timeline {
    private var last: (captured: MediaTime, timestamp: UInt32)?
    /// Added to the timestamps of the input. Nil before its first frame.
    private var shift: UInt32?

    /// Another input follows.
    mutating func pause() { shift = nil }

    mutating func `continue`(with batch: inout RTPBatch, clockRate: UInt32) {
        let shift = shift ?? distance(to: batch, clockRate: clockRate)
        self.shift = shift
        batch.moveTimestamps(by: shift)
        last = (batch.captureTime, batch.rtpTimestamp)
    }

    private func distance(to batch: RTPBatch, clockRate: UInt32) -> UInt32 {
        guard let last else { return 0 }
        // Timestamps that stand still would join two frames to one.
        let seconds = max(0.001, batch.captureTime.seconds(since: last.captured))
        let elapsed = UInt32(truncatingIfNeeded: Int64((seconds * Double(clockRate)).rounded()))
        return last.timestamp &+ elapsed &- batch.rtpTimestamp
    }
}

extension RTPBatch {
    fileprivate mutating func moveTimestamps(by shift: UInt32) {
        guard shift != 0 else { return }
        rtpTimestamp &+= shift
        for index in 0..<count {
            // RFC 3550, section 5.1.
            let field = range(index).lowerBound + 4
            for byte in 0..<4 { bytes[field + byte] = UInt8(truncatingIfNeeded: rtpTimestamp >> (24 - 8 * byte)) }
        }
    }
}

/// The streams of a node's inputs, and those that wait for their next input.
final class OutgoingStreams: Sendable {
    private let lasting = Mutex<[OutgoingStream]>([])

    /// The streams that last beyond their inputs.
    var all: [OutgoingStream] { lasting.withLock { $0 } }

    /// A stream for another input: one that lasts and has none, or a new one.
    func stream(for codec: Codec) -> OutgoingStream {
        all.first { $0.codec == codec && !$0.isFed } ?? OutgoingStream(codec)
    }

    /// The stream of a medium: the one with an input, if an edit is replacing another one.
    func stream(of media: StreamMedia) -> OutgoingStream? {
        let streams = all.filter { $0.codec.media == media }
        return streams.first(where: \.isFed) ?? streams.first
    }

    func lasts(_ stream: OutgoingStream) -> Bool { all.contains { $0 === stream } }

    /// Keeps streams beyond their inputs.
    func keep(_ streams: [OutgoingStream]) {
        lasting.withLock { lasting in
            for stream in streams where !lasting.contains(where: { $0 === stream }) { lasting.append(stream) }
        }
    }

    /// Ends the streams that have neither an input nor a room.
    func dropUnused() {
        lasting.withLock { lasting in lasting.removeAll { !$0.isFed && !$0.isPublished } }
    }
}
