internal import MediaGraph
internal import MediaNodes
internal import RTP
internal import RoomProtocol
internal import Synchronization

/// Publishes encoded media into a room, as a participant of its own.
///
/// `start()` of the pipeline returns when the streams are published. The server asks for a keyframe when somebody
/// subscribes; the wish goes upstream to whatever encodes: an encoder, a camera, a peer.
final class PublishNode: NodeType, RunningNode {
    static let kind = NodeKind.publish

    /// Room in a datagram of 1280 for header extensions, RTX and SRTP.
    private static let packetLength = 1180

    let name: String
    private let tracks: [GraphTrack]
    private let outputs: [RTPOutputNode]
    private let label: String
    private let stay: RoomStay
    private let reporter: Reporter

    static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        do throws(RoomError) {
            _ = try RoomAccess(request.text)
        } catch {
            throw MediaError(error, node: request.name)
        }
        guard !request.inputs.isEmpty else {
            throw MediaError(
                code: MediaError.Code.graphInvalid,
                message: "\"\(request.name)\" has nothing to publish: link something to its video or its audio.",
                node: request.name)
        }
        var plan = NodePlan(request.node)
        for (port, format) in request.inputs {
            guard let codec = Codec(node: format.encoding) else {
                preconditionFailure("a publish node was given \(format.encoding)")
            }
            try RTPOutputNode.add(
                to: &plan, input: port,
                ["pt": .integer(Int(codec.payloadType)), "mtu": .integer(packetLength)], request)
            guard codec == .h264 else { continue }
            // A camera or a file may say only once how its pictures are to be decoded; whoever comes later must hear it
            // too. What our encoder has put before its keyframes already is left as it is.
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
            access = try RoomAccess { instance.setting($0)?.text ?? "" }
        } catch {
            throw MediaError(error, node: instance.name)
        }
        if !instance.mayStayEmpty { instance.reporter.await(instance.name) }
        return PublishNode(instance, access)
    }

    private init(_ instance: NodeInstance, _ access: RoomAccess) {
        name = instance.name
        reporter = instance.reporter
        label = instance.setting("label")?.text ?? ""
        var tracks: [GraphTrack] = []
        var outputs: [RTPOutputNode] = []
        for input in ["video", "audio"] where instance.has("\(input)-payloader") {
            let track = GraphTrack(codec(of: instance, input))
            let output = RTPOutputNode(instance, input: input, name: "\(instance.name).\(input)") { [track] batch in
                track.take(batch)
            }
            track.set(output)
            tracks.append(track)
            outputs.append(output)
        }
        self.tracks = tracks
        self.outputs = outputs
        let (reporter, name) = (reporter, name)
        // Watches nobody: no receivers, and what the server assigns by itself is ignored.
        var options = RoomOptions(receivers: ReceiverPool(initial: 0, maximum: 0, growth: 1))
        options.sound = { _, _ in nil }
        stay = RoomStay(access, options: options) { event in
            guard case .ended(_, let error) = event else { return }
            let why = error ?? RoomError(.roomReleased, "The room connection has ended.")
            reporter.fail(MediaError(why, node: name), name)
        }
    }

    func prepare() {
        Task.detached { [self] in
            do throws(RoomError) {
                let engine = try await stay.enter()
                _ = try await engine.publish(tracks.map { Publication($0, extraValue: label) }) { [tracks] in
                    for track in tracks { await track.firstFrame() }
                }
                reporter.isReady(name)
            } catch {
                if !stay.isLeaving { reporter.fail(MediaError(error, node: name), name) }
            }
        }
    }

    func finish() {
        stay.leave()
        for track in tracks { track.end() }
    }

    var stalled: MediaError? {
        let late = tracks.filter { !$0.hasBegun }.map { $0.codec.media.rawValue }
        guard !late.isEmpty else {
            return MediaError(
                RoomError(.publishRefused, "The server did not take the streams in time: try again."), node: name)
        }
        return MediaError(
            code: MediaError.Code.pipelineStalled,
            message: "No \(late.joined(separator: " and no ")) came to \"\(name)\" within 8 s; check what feeds it.",
            node: name)
    }

    func report(into statistics: inout MediaStatistics) {
        for output in outputs { output.report(into: &statistics) }
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
    /// The codec by the name that nodes have for it.
    init?(node name: String) {
        guard let codec = Self.allCases.first(where: { $0.nodeName == name }) else { return nil }
        self = codec
    }

    var nodeName: String { rawValue.lowercased() }
}

/// What comes to one input, as a room takes it.
private final class GraphTrack: OutgoingTrack {
    private struct State {
        var receiver: (@Sendable (RTPBatch) -> Void)?
        var hasBegun = false
        /// Whoever waits for the first frame.
        var waiting: [CheckedContinuation<Void, Never>] = []
        var hasEnded = false
    }

    private struct Output: Sendable {
        weak var node: RTPOutputNode?
    }

    let codec: Codec
    private let state = Mutex(State())
    /// Not kept: its elements hold this track.
    private let output = Mutex(Output())

    init(_ codec: Codec) { self.codec = codec }

    func set(_ node: RTPOutputNode) { output.withLock { $0.node = node } }

    var encoderStatistics: MediaStatistics.VideoEncoder? { nil }
    var hasBegun: Bool { state.withLock { $0.hasBegun } }

    /// On a streaming thread.
    func take(_ batch: RTPBatch) {
        let (receiver, waiting) = state.withLock { state in
            state.hasBegun = true
            defer { state.waiting = [] }
            return (state.receiver, state.waiting)
        }
        for continuation in waiting { continuation.resume() }
        receiver?(batch)
    }

    /// Returns when a frame has come, or none will.
    func firstFrame() async {
        await withCheckedContinuation { continuation in
            let isOver = state.withLock { state in
                guard !state.hasBegun, !state.hasEnded else { return true }
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

    func connect(_ receiver: (@Sendable (RTPBatch) -> Void)?) { state.withLock { $0.receiver = receiver } }

    func requestKeyframe() { output.withLock { $0.node }?.requestKeyframe() }

    /// The encoder above may feed others too: its rate is its own setting.
    func setBitrate(_ bitrate: Bitrate) {}
}
