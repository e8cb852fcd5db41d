internal import MediaGraph
internal import MediaNodes
internal import RTP
internal import RoomProtocol
internal import Synchronization

/// Publishes encoded media into a room, as a participant of its own.
///
/// `start()` of the pipeline returns when the streams are published. An input that ends without a frame, such as the
/// audio of a file without audio, is not published. The server requests a keyframe when a participant subscribes. The
/// request goes upstream to the encoder, camera or peer.
///
/// Inputs can be added and removed while the participant stays. A stream without input stays published, without packets,
/// for the next input of its codec. While the device of an input's source is away, the room sees that the stream waits.
final class PublishNode: NodeType, PublishingNode {
    static let kind = NodeKind(
        "publish", .transport, "Publishes to a room, as a participant of its own",
        inputs: [
            Port("video", [.encodedVideo], encodings: ["vp8", "h264"], isRequired: false),
            Port("audio", [.encodedAudio], encodings: ["opus"], isRequired: false),
        ],
        settings: RoomAccess.settings + [
            SettingContract("label", .text, default: "", "Free text that all participants see beside the streams")
        ])

    /// Leaves room for header extensions, RTX and SRTP in a datagram of 1280 bytes.
    private static let packetLength = 1180

    private struct Input {
        let track: GraphTrack
        let output: RTPOutputNode
    }

    private struct State {
        var inputs: [String: Input] = [:]
        /// Every published track, with or without an input.
        var published: [GraphTrack] = []
        /// Nil until the room is entered.
        var engine: RoomEngine?
        var hasAppeared = false
        var hasFailed = false
    }

    private let name: String
    private let state = Mutex(State())
    private let label: String
    private let stay: RoomStay
    private let reporter: Reporter
    private let isOptional: Bool
    /// Whether the start waits for this node.
    private let isAwaited: Bool

    static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        do throws(RoomError) {
            _ = try RoomAccess(request.text)
        } catch {
            throw MediaError(error, node: request.name)
        }
        guard !request.inputs.isEmpty else {
            throw MediaError(
                code: MediaError.Code.graphInvalid,
                message: "\"\(request.name)\" has nothing to publish. Link an output to its port video or audio.",
                node: request.name)
        }
        var plan = NodePlan(request.node)
        plan.inputsComeAndGo = true
        for (port, format) in request.inputs {
            guard let codec = Codec(node: format.encoding) else {
                preconditionFailure("a publish node received \(format.encoding)")
            }
            try RTPOutputNode.add(
                to: &plan, input: port,
                ["pt": .integer(Int(codec.payloadType)), "mtu": .integer(packetLength)], request)
            guard codec == .h264 else { continue }
            // A camera or file may send its decoder configuration only once, but later subscribers need it too. The
            // parser repeats it, and leaves configurations of our encoder unchanged.
            try request.environment.require("h264parse")
            plan.add("h264parse", as: "\(port)-parser", ["config-interval": -1])
            plan.link("\(port)-parser", "\(port)-payloader")
            plan.inputs[port] = ElementPad("\(port)-parser")
        }
        return plan
    }

    static func activate(_ instance: NodeInstance) throws(MediaError) -> (any RunningNode)? {
        let access: RoomAccess
        do throws(RoomError) {
            access = try RoomAccess(instance.text)
        } catch {
            throw MediaError(error, node: instance.name)
        }
        if !instance.mayStayEmpty { instance.reporter.await(instance.name) }
        return try PublishNode(instance, access)
    }

    private init(_ instance: NodeInstance, _ access: RoomAccess) throws(MediaError) {
        name = instance.name
        reporter = instance.reporter
        isOptional = instance.plan.node.isOptional
        isAwaited = !instance.mayStayEmpty
        label = instance.text("label")
        let (reporter, name) = (reporter, name)
        // A publisher has no receivers, and ignores the server's own assignments.
        var options = RoomOptions(receivers: ReceiverPool(initial: 0, maximum: 0, growth: 1))
        options.sound = { _, _ in nil }
        stay = RoomStay(access, options: options) { event in
            guard case .ended(_, let error) = event else { return }
            let why = error ?? RoomError(.roomReleased, "The room connection ended.")
            reporter.fail(MediaError(why, node: name), name)
        }
        for input in instance.plan.inputs.keys.sorted() { try add(input, of: instance) }
    }

    func add(_ input: String, of instance: NodeInstance) throws(MediaError) {
        let codec = codec(of: instance, input)
        let track = state.withLock { state in
            state.published.first { track in
                track.codec == codec && !state.inputs.values.contains { $0.track === track }
            } ?? GraphTrack(codec)
        }
        // The timestamps of a stream continue those of an earlier input.
        let output = try RTPOutputNode(
            instance, input: input, timestampOffset: track.timestampOffset,
            handOver: { [track] batch in track.take(batch) }, onEnd: { [track] in track.inputEnded() })
        track.begin(output)
        state.withLock { $0.inputs[input] = Input(track: track, output: output) }
    }

    func remove(_ input: String) {
        let track = state.withLock { $0.inputs.removeValue(forKey: input) }?.track
        track?.pause()
        track?.set(.live)
    }

    func sourceChanged(of input: String, absence: MediaError?) {
        state.withLock { $0.inputs[input] }?.track.set(absence.map { StreamState(absence: $0) } ?? .live)
    }

    func appear(_ done: @escaping @Sendable (MediaError?) -> Void) {
        state.withLock { $0.hasAppeared = true }
        Task.detached { [self] in
            do throws(RoomError) {
                try await publish()
                done(nil)
            } catch {
                guard !stay.isLeaving else { return }
                state.withLock { $0.hasFailed = true }
                done(MediaError(error, node: name))
            }
        }
    }

    private func publish() async throws(RoomError) {
        let engine = try await enteredRoom()
        let (new, old) = state.withLock { state in
            let tracks = state.inputs.sorted { $0.key > $1.key }.map(\.value.track)
            func isPublished(_ track: GraphTrack) -> Bool { state.published.contains { $0 === track } }
            return (tracks.filter { !isPublished($0) }, tracks.filter(isPublished))
        }
        for track in old { track.show() }
        for track in new { track.show() }
        // An offer cannot be changed, so it waits until each input has a frame or has ended.
        for track in new { await track.firstFrame() }
        let filled = new.filter { !$0.isEmpty }
        guard !filled.isEmpty else { return }
        for track in new where track.isEmpty {
            reporter.warn(
                name, "Publishing without \(track.codec.media.rawValue), because that input ended without a frame.")
        }
        _ = try await engine.publish(filled.map { Publication($0, extraValue: label) }) {}
        state.withLock { $0.published += filled }
    }

    private func enteredRoom() async throws(RoomError) -> RoomEngine {
        if let engine = state.withLock({ $0.engine }) { return engine }
        let engine = try await stay.enter()
        state.withLock { $0.engine = engine }
        return engine
    }

    private var inputs: [Input] { state.withLock { $0.inputs.sorted { $0.key > $1.key }.map(\.value) } }

    func finish() {
        stay.leave()
        for input in inputs { input.track.end() }
    }

    func reportShortfall() {
        let isShort = state.withLock { $0.hasAppeared && !$0.hasFailed && $0.published.isEmpty }
        guard isShort, isAwaited, !reporter.hasFailed else { return }
        let why =
            inputs.contains { $0.track.hasBegun }
            ? "the run ended before the room accepted the streams. Check the server, or publish for longer."
            : "no frame arrived. Check the nodes upstream of it."
        let error = MediaError(RoomError(.publishRefused, "Nothing was published, because \(why)"), node: name)
        if isOptional { reporter.warn(name, "\(error)") } else { reporter.fallShort(error, name) }
    }

    var stalled: MediaError? {
        let late = inputs.map(\.track).filter { !$0.hasBegun && !$0.isEmpty }.map { $0.codec.media.rawValue }
        guard !late.isEmpty else {
            return MediaError(
                RoomError(.publishRefused, "The server did not accept the streams in time. Try again."), node: name)
        }
        return MediaError(
            code: MediaError.Code.pipelineStalled,
            message: "No \(late.joined(separator: " and no ")) arrived at \"\(name)\" within 8 s. Check the nodes "
                + "upstream of it.",
            node: name)
    }

    func report(into statistics: inout MediaStatistics, as name: String) {
        for (input, part) in state.withLock({ $0.inputs }) {
            part.output.report(into: &statistics, as: "\(name).\(input)")
        }
    }
}

private func codec(of instance: NodeInstance, _ input: String) -> Codec {
    switch instance.plan.element("\(input)-payloader")?.factory {
    case "rtph264pay": .h264
    case "rtpopuspay": .opus
    default: .vp8
    }
}

extension Codec {
    /// The codec by its name in graphs.
    init?(node name: String) {
        guard let codec = Self.allCases.first(where: { $0.nodeName == name }) else { return nil }
        self = codec
    }

    var nodeName: String { rawValue.lowercased() }
}

/// A published stream, fed by an input of its codec.
private final class GraphTrack: OutgoingTrack {
    private struct State {
        var receiver: TrackReceiver?
        var hasBegun = false
        /// Whether the input ended without a frame.
        var isEmpty = false
        /// Whether to pass frames to the room.
        var isShown = false
        /// Callers that wait for the first frame.
        var waiting: [CheckedContinuation<Void, Never>] = []
        var hasEnded = false
        var streamState = StreamState.live
    }

    private struct Output: Sendable {
        weak var node: RTPOutputNode?
    }

    let codec: Codec
    /// The RTP timestamp at running time 0. The payloader takes the highest number for "random".
    let timestampOffset = UInt32.random(in: 0..<UInt32.max)
    private let state = Mutex(State())
    /// Weak, because the node's elements hold this track.
    private let output = Mutex(Output())

    init(_ codec: Codec) { self.codec = codec }

    /// Connects an input to the track.
    func begin(_ node: RTPOutputNode) {
        output.withLock { $0.node = node }
        state.withLock { state in
            state.hasBegun = false
            state.isEmpty = false
        }
    }

    /// Disconnects the input from the track.
    func pause() { state.withLock { $0.isShown = false } }

    /// Passes frames to the room, video from a keyframe on.
    func show() {
        let isNews = state.withLock { state in
            defer { state.isShown = true }
            return !state.isShown
        }
        if isNews, hasBegun { requestKeyframe() }
    }

    func set(_ streamState: StreamState) {
        let receiver = state.withLock { state in
            defer { state.streamState = streamState }
            return state.streamState == streamState ? nil : state.receiver
        }
        receiver?.stateChanged()
    }

    var streamState: StreamState { state.withLock { $0.streamState } }

    var encoderStatistics: MediaStatistics.VideoEncoder? { nil }
    var hasBegun: Bool { state.withLock { $0.hasBegun } }
    var isEmpty: Bool { state.withLock { $0.isEmpty } }

    /// Called on a streaming thread.
    func take(_ batch: RTPBatch) {
        let (receiver, waiting) = state.withLock { state in
            state.hasBegun = true
            defer { state.waiting = [] }
            return (state.isShown ? state.receiver : nil, state.waiting)
        }
        for continuation in waiting { continuation.resume() }
        receiver?.take(batch)
    }

    /// Called on a streaming thread.
    func inputEnded() {
        let waiting = state.withLock { state in
            state.isEmpty = !state.hasBegun
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }

    /// Returns when a frame has arrived, or when the input or the track has ended.
    func firstFrame() async {
        await withCheckedContinuation { continuation in
            let isOver = state.withLock { state in
                guard !state.hasBegun, !state.isEmpty, !state.hasEnded else { return true }
                state.waiting.append(continuation)
                return false
            }
            if isOver { continuation.resume() }
        }
    }

    func end() {
        let waiting = state.withLock { state in
            state.hasEnded = true
            state.receiver = nil
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }

    func connect(_ receiver: TrackReceiver?) { state.withLock { $0.receiver = receiver } }

    func requestKeyframe() { if codec.media == .video { output.withLock { $0.node }?.requestKeyframe() } }
}
