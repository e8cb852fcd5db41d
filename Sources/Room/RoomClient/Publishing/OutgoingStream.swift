internal import MediaGraph
internal import MediaNodes
internal import RTP
internal import RoomProtocol
internal import Synchronization

/// The source of packets of a stream, as far as the stream calls it.
protocol StreamInput: AnyObject, Sendable {
    func requestKeyframe()
    /// See `EncodedTrack.limitRate`.
    func limitRate(bitsPerSecond: Int, keepsSize: Bool)
    /// See `EncodedTrack.expectLoss`.
    func expectLoss(percent: Int)
    /// The layer of the stream that its packets are, which does not change.
    var layer: VideoLayer { get }
    /// See `EncodedTrack`.
    func layersChanged(_ quality: VideoQuality)
    func layersRefused()
}

extension StreamInput {
    var layer: VideoLayer { .full }
    func expectLoss(percent: Int) {}
    func layersChanged(_ quality: VideoQuality) {}
    func layersRefused() {}
}

/// One encoded stream of a graph, published in any number of rooms.
///
/// It outlives its input, and the pipeline of the input: another input of the same codec continues the stream, with
/// timestamps that count on. While an edit replaces the node of an input, the stream has two: the new one feeds it once it
/// is shown, and the former one again if the edit fails. A video that is sent in several sizes has further inputs beside, one for
/// each lower layer.
final class OutgoingStream: Sendable {
    private struct Input {
        let id: ObjectIdentifier
        var layer = VideoLayer.full
        /// Weak, because the node's elements hold this stream. A pipeline that could not be made leaves its inputs without
        /// a word.
        weak var source: (any StreamInput)?
        var hasBegun = false
        /// Whether it ended without a frame.
        var isEmpty = false
        /// Whether to pass its frames to the rooms.
        var isShown = false
        var feed = InputFeed()
    }

    private struct Limit {
        /// In bits per second.
        var rate: Int
        var keepsSize: Bool
    }

    private struct State {
        /// Its tracks that rooms have, or are about to get.
        var tracks: Set<ObjectIdentifier> = []
        /// The layers in which they were offered.
        var offered: [ObjectIdentifier: [VideoLayer]] = [:]
        var receivers: [ObjectIdentifier: TrackReceiver] = [:]
        /// The newest loss that each room expects, in percent. The highest one counts.
        var losses: [ObjectIdentifier: Int] = [:]
        /// The newest limit of each room, by layer. The least one counts.
        var limits: [VideoLayer: [ObjectIdentifier: Limit]] = [:]
        /// In the order in which they began.
        var inputs: [Input] = []
        /// Those of lower layers, likewise.
        var lower: [LowerInput] = []
        /// The layers of a stream without inputs.
        var planned: [VideoLayer] = []
        /// The most layers to send.
        var mostLayers = VideoLayer.allCases.count
        /// The last input, after it has gone.
        var former: Input?
        /// Whether receivers have nothing yet on which the next frames may depend.
        var needsKeyframe = true
        /// The capture time of the frame at which a keyframe was requested last.
        var askedAt: MediaTime?
        /// Callers that wait for the first frame.
        var waiting: [CheckedContinuation<RoomError?, Never>] = []
        /// Why the pipeline of the input has failed.
        var failure: RoomError?
        var hasEnded = false
        var streamState = StreamState.live
        var timeline = StreamTimeline()

        /// The place of the input that feeds the stream: the newest one that is shown.
        var place: Int? { inputs.lastIndex(where: \.isShown) ?? inputs.indices.first }
        var current: Input? { place.map { inputs[$0] } }
        var isFed: Bool { inputs.contains { $0.source != nil } }

        /// The input of a layer.
        func source(of layer: VideoLayer) -> Input? {
            layer == .full ? current : lower.last { $0.input.layer == layer && $0.input.isShown }?.input
        }

        /// Those that there are, the lowest first. Empty for one encoding.
        var layers: [VideoLayer] {
            let lower = Set(lower.filter { $0.input.source != nil }.map(\.input.layer))
            let all = inputs.isEmpty && lower.isEmpty ? planned : lower.sorted() + [.full]
            let allowed = Array(all.suffix(mostLayers))
            return allowed.count > 1 ? allowed : []
        }

        func isCurrent(_ input: any StreamInput) -> Bool { current?.id == ObjectIdentifier(input) }

        /// Changes the inputs. Says whether another one feeds the stream then.
        mutating func change(_ body: (inout [Input]) -> Void) -> Bool {
            let before = current
            body(&inputs)
            guard let now = current, now.id != before?.id else { return false }
            failure = nil
            timeline.pause()
            (needsKeyframe, askedAt) = (true, nil)
            return true
        }

        /// Whether a frame that is not passed asks for a keyframe.
        mutating func asksAgain(at time: MediaTime) -> Bool {
            guard current?.isShown == true, needsKeyframe else { return false }
            guard let askedAt else {
                askedAt = time
                return false
            }
            guard abs(time.seconds(since: askedAt)) >= OutgoingStream.patience else { return false }
            self.askedAt = time
            return true
        }
    }

    private struct LowerInput {
        var input: Input
        /// Whether the next frames may depend on some that were not passed, and the capture time at the last request.
        var needsKeyframe = true
        var askedAt: MediaTime?

        /// Whether to pass a frame, and whether to request a keyframe.
        mutating func takes(_ batch: RTPBatch) -> (passes: Bool, asks: Bool) {
            guard input.isShown else { return (false, false) }
            if batch.isKeyframe { (needsKeyframe, askedAt) = (false, nil) }
            guard needsKeyframe else { return (true, false) }
            let isDue = askedAt.map { abs(batch.captureTime.seconds(since: $0)) >= OutgoingStream.patience } ?? true
            if isDue { askedAt = batch.captureTime }
            return (false, isDue)
        }
    }

    /// Seconds between requests for a keyframe that does not come. An element that is about to start may lose a request.
    private static let patience = 0.5

    let codec: Codec
    private let state = Mutex(State())

    init(_ codec: Codec) { self.codec = codec }

    // MARK: - Input

    /// Connects an input to the stream. If another input feeds the stream, the new one waits for `show`.
    func begin(_ input: any StreamInput) {
        let new = Input(id: ObjectIdentifier(input), layer: input.layer, source: input)
        state.withLock { state in
            guard input.layer == .full else {
                state.lower.removeAll { $0.input.source == nil }
                state.lower.append(LowerInput(input: new))
                return state.timeline.isCommon = true
            }
            _ = state.change { inputs in
                inputs.removeAll { $0.source == nil }
                inputs.append(new)
            }
        }
    }

    /// Disconnects an input.
    func pause(_ input: any StreamInput) {
        var asks = false
        change { state in
            let id = ObjectIdentifier(input)
            let layers = state.layers
            state.lower.removeAll { $0.input.id == id }
            guard let gone = state.inputs.first(where: { $0.id == id }) else { return false }
            let isOther = state.change { inputs in inputs.removeAll { $0.id == id } }
            guard state.inputs.isEmpty else {
                asks = isOther && state.current?.isShown == true
                return false
            }
            state.former = gone
            // A room that gets the stream until the next input comes is offered them.
            state.planned = layers
            return true
        }
        if asks { requestKeyframe() }
    }

    /// The pipeline of the input has failed.
    func fail(_ error: RoomError) {
        change(failing: error) { state in
            state.failure = error
            return true
        }
        set(.waiting("failed"))
    }

    /// Changes the state. If `body` returns true, `firstFrame` returns.
    private func change(failing error: RoomError? = nil, _ body: (inout State) -> Bool) {
        let waiting = state.withLock { state in
            guard body(&state) else { return [CheckedContinuation<RoomError?, Never>]() }
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume(returning: error) }
    }

    /// Passes frames of an input to the rooms, video from a keyframe on. It then feeds the stream alone, unless a newer one
    /// does. Does nothing if the input has gone.
    func show(_ input: any StreamInput) {
        let asks = state.withLock { state in
            let lower = state.lower.firstIndex { $0.input.id == ObjectIdentifier(input) }
            if let lower { state.lower[lower].input.isShown = true }
            guard let place = state.inputs.firstIndex(where: { $0.id == ObjectIdentifier(input) }),
                !state.inputs[place].isShown
            else { return false }
            _ = state.change { $0[place].isShown = true }
            guard place == state.place else { return false }
            (state.needsKeyframe, state.askedAt) = (true, nil)
            return state.inputs[place].hasBegun
        }
        if asks { requestKeyframe() }
    }

    /// Takes over the nodes that feed an input. News of an input that has gone, or waits, do not change the stream's state.
    func set(_ feed: InputFeed, of input: any StreamInput) {
        let isCurrent = state.withLock { state in
            let lower = state.lower.firstIndex { $0.input.id == ObjectIdentifier(input) }
            if let lower { state.lower[lower].input.feed = feed }
            guard let place = state.inputs.firstIndex(where: { $0.id == ObjectIdentifier(input) }) else { return false }
            state.inputs[place].feed = feed
            return place == state.place
        }
        guard isCurrent else { return }
        set(feed.absence.map { StreamState(absence: $0) } ?? .live)
    }

    func set(_ streamState: StreamState) {
        let receivers = state.withLock { state in
            defer { state.streamState = streamState }
            return state.streamState == streamState ? [] : Array(state.receivers.values)
        }
        for receiver in receivers { receiver.stateChanged() }
    }

    var isFed: Bool { state.withLock { $0.isFed } }
    var hasBegun: Bool { state.withLock { ($0.current ?? $0.former)?.hasBegun ?? false } }
    var isEmpty: Bool { state.withLock { ($0.current ?? $0.former)?.isEmpty ?? false } }
    var isPublished: Bool { state.withLock { !$0.tracks.isEmpty } }
    var streamState: StreamState { state.withLock { $0.streamState } }
    var videoFormat: MediaFormat? { codec.media == .video ? state.withLock { $0.current?.feed.format } : nil }

    var encoderStatistics: MediaStatistics.VideoEncoder? { encoderStatistics(of: .full) }

    func encoderStatistics(of layer: VideoLayer) -> MediaStatistics.VideoEncoder? {
        state.withLock { $0.source(of: layer)?.feed.encoder }?()
    }

    var audioEncoderStatistics: MediaStatistics.AudioEncoder? {
        state.withLock { $0.current?.feed.audioEncoder }?()
    }

    // MARK: - Layers

    /// The layers of the video, the lowest first. Empty for one encoding.
    var layers: [VideoLayer] { state.withLock { $0.layers } }

    /// Sets the layers that the stream would have with an input.
    func plan(_ layers: [VideoLayer]) { state.withLock { $0.planned = layers } }

    /// Sets how many layers are sent at most.
    func limitLayers(_ count: Int) { state.withLock { $0.mostLayers = max(1, count) } }

    /// Whether a room has the video without this layer.
    func isPublished(without layer: VideoLayer) -> Bool {
        state.withLock { state in
            state.receivers.keys.contains { state.offered[$0].map { !$0.contains(layer) } ?? false }
        }
    }

    private func takeLower(_ batch: RTPBatch, from input: any StreamInput) {
        var batch = batch
        let (receivers, asks) = state.withLock { state -> ([TrackReceiver], Bool) in
            let place = state.lower.firstIndex { $0.input.id == ObjectIdentifier(input) }
            guard let place, state.source(of: input.layer)?.id == state.lower[place].input.id else {
                return ([], false)
            }
            let (passes, asks) = state.lower[place].takes(batch)
            guard passes, !state.hasEnded else { return ([], asks) }
            state.timeline.continue(with: &batch, clockRate: codec.clockRate)
            return (Array(state.receivers.values), false)
        }
        if asks { input.requestKeyframe() }
        for receiver in receivers { receiver.take(batch) }
    }

    fileprivate func layersChanged(_ quality: VideoQuality) {
        state.withLock { $0.current?.source }?.layersChanged(quality)
    }

    fileprivate func layersRefused() { state.withLock { $0.current?.source }?.layersRefused() }

    /// Called on a streaming thread of the input.
    func take(_ batch: RTPBatch, from input: any StreamInput) {
        guard input.layer == .full else { return takeLower(batch, from: input) }
        var batch = batch
        var (receivers, asks) = ([TrackReceiver](), false)
        change { state in
            if let place = state.inputs.firstIndex(where: { $0.id == ObjectIdentifier(input) }) {
                state.inputs[place].hasBegun = true
            }
            guard state.isCurrent(input) else { return false }
            state.timeline.continue(with: &batch, clockRate: codec.clockRate)
            let isShown = state.current?.isShown == true
            if isShown, batch.isKeyframe { state.needsKeyframe = false }
            if isShown, !state.needsKeyframe { receivers = Array(state.receivers.values) }
            asks = state.asksAgain(at: batch.captureTime)
            return true
        }
        if asks { requestKeyframe() }
        for receiver in receivers { receiver.take(batch) }
    }

    /// Called on a streaming thread of the input.
    func ended(_ input: any StreamInput) {
        change { state in
            if let place = state.inputs.firstIndex(where: { $0.id == ObjectIdentifier(input) }) {
                state.inputs[place].isEmpty = !state.inputs[place].hasBegun
            }
            return state.isCurrent(input)
        }
    }

    /// The pipeline of the inputs has ended.
    func inputEnded() {
        let input = state.withLock { $0.current?.source }
        if let input { ended(input) }
    }

    /// Returns when a frame has arrived, or when the input or the stream has ended. Without an input, returns immediately.
    ///
    /// - Throws: why the pipeline of the input has failed.
    func firstFrame() async throws(RoomError) {
        let failure = await withCheckedContinuation { continuation in
            let (isOver, failure) = state.withLock { state in
                if state.failure != nil { return (true, state.failure) }
                guard state.isFed, let input = state.current, !input.hasBegun, !input.isEmpty, !state.hasEnded else {
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
        change { state in
            state.hasEnded = true
            state.receivers = [:]
            return true
        }
    }

    // MARK: - Rooms

    /// A track for one more room.
    func track() -> any OutgoingTrack { StreamTrack(of: self) }

    fileprivate func add(_ track: ObjectIdentifier) {
        state.withLock { state in
            state.tracks.insert(track)
            state.offered[track] = state.layers
        }
    }

    fileprivate func connect(_ track: ObjectIdentifier, _ receiver: TrackReceiver?) {
        state.withLock { state in
            state.receivers[track] = receiver
            if receiver == nil {
                state.tracks.remove(track)
                state.offered[track] = nil
                state.losses[track] = nil
                for layer in state.limits.keys { state.limits[layer]?[track] = nil }
            }
        }
    }

    /// Limits the encoder of a stream to what all its rooms can take.
    fileprivate func limitRate(
        bitsPerSecond: Int, of layer: VideoLayer = .full, keepsSize: Bool = false, by track: ObjectIdentifier
    ) {
        let (least, source) = state.withLock { state in
            let own = Limit(rate: bitsPerSecond, keepsSize: keepsSize)
            state.limits[layer, default: [:]][track] = own
            // A room that nothing reaches any more drops what it gets. It must not stop the others.
            let positive = (state.limits[layer] ?? [:]).values.filter { $0.rate > 0 }
            var least = positive.min { $0.rate < $1.rate } ?? own
            // A room with further layers would lose one of two sizes.
            least.keepsSize = least.keepsSize || positive.contains(where: \.keepsSize)
            return (least, state.source(of: layer)?.source)
        }
        source?.limitRate(bitsPerSecond: least.rate, keepsSize: least.keepsSize)
    }

    /// Lets the encoder prepare its packets for the highest loss in a room.
    fileprivate func expectLoss(percent: Int, by track: ObjectIdentifier) {
        guard codec.media == .audio else { return }
        let (highest, source) = state.withLock { state in
            state.losses[track] = percent
            return (state.losses.values.max() ?? percent, state.source(of: .full)?.source)
        }
        source?.expectLoss(percent: highest)
    }

    fileprivate func endLimit(of layer: VideoLayer, by track: ObjectIdentifier) {
        state.withLock { $0.limits[layer]?[track] = nil }
    }

    func requestKeyframe(of layer: VideoLayer = .full) {
        guard codec.media == .video else { return }
        state.withLock { $0.source(of: layer)?.source }?.requestKeyframe()
    }
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
    var audioEncoderStatistics: MediaStatistics.AudioEncoder? { stream.audioEncoderStatistics }
    var streamState: StreamState { stream.streamState }

    func connect(_ receiver: TrackReceiver?) { stream.connect(ObjectIdentifier(self), receiver) }

    func requestKeyframe() { stream.requestKeyframe() }

    func limitRate(bitsPerSecond: Int) { stream.limitRate(bitsPerSecond: bitsPerSecond, by: ObjectIdentifier(self)) }

    func expectLoss(percent: Int) { stream.expectLoss(percent: percent, by: ObjectIdentifier(self)) }

    var layers: [VideoLayer] { stream.layers }

    func encoderStatistics(of layer: VideoLayer) -> MediaStatistics.VideoEncoder? {
        stream.encoderStatistics(of: layer)
    }

    func limitRate(bitsPerSecond: Int, of layer: VideoLayer, keepsSize: Bool) {
        stream.limitRate(bitsPerSecond: bitsPerSecond, of: layer, keepsSize: keepsSize, by: ObjectIdentifier(self))
    }

    func endLimit(of layer: VideoLayer) { stream.endLimit(of: layer, by: ObjectIdentifier(self)) }

    func requestKeyframe(of layer: VideoLayer) { stream.requestKeyframe(of: layer) }

    func layersChanged(_ quality: VideoQuality) { stream.layersChanged(quality) }

    func layersRefused() { stream.layersRefused() }
}
