internal import MediaGraph
internal import MediaNodes
internal import RTP
internal import RoomProtocol
internal import Synchronization

/// Receives the video and audio of one participant. When that one leaves, it receives the next publisher, unless the
/// setting names one.
///
/// The pipeline's `start()` waits until the room is entered, not for a publisher.
final class SubscribeNode: NodeType, RunningNode {
    static let kind = NodeKind(
        "subscribe", .transport, "Receives the video and audio of one participant of a room",
        outputs: [
            Port("video", [.encodedVideo], encodings: ["vp8", "h264", "vp9"], isRequired: false),
            Port("audio", [.encodedAudio], encodings: ["opus"], isRequired: false),
        ],
        settings: RoomAccess.settings + [
            SettingContract(
                "participant", .text, default: "",
                "Id of the participant to receive (default: the first publisher)"),
            SettingContract(
                "own", .flag, default: true,
                "Whether to receive participants of this same program too; false avoids hearing oneself"),
            SettingContract("codec", .choice(["vp8", "h264", "vp9"]), default: "vp8", "Codec of the video"),
            SettingContract(
                "latency", .integer(0...5000), unit: "ms",
                "Longest wait for the repair of a lost packet of video, without a playout delay of video and audio "
                    + "(default: up to 400 ms, and delays that follow jitter and repairs)"),
        ])

    /// How many packets may wait: three keyframes of 4K.
    private static let capacity = 2048

    private struct State {
        /// The participants of the room, in order of arrival.
        var present: [ParticipantInfo] = []
        var chosen: String?
        /// The video stream in a receiver.
        var video: Int?
    }

    private let name: String
    private let wanted: String
    private let takesOwn: Bool
    private let codec: Codec
    private let reporter: Reporter
    private let access: RoomAccess
    private let state = Mutex(State())
    private let parts: Mutex<[String: RTPInputNode]>
    private let stay = Mutex<RoomStay?>(nil)
    private let engine = Mutex<RoomEngine?>(nil)

    static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        _ = try RoomAccess(of: request)
        var plan = NodePlan(request.node)
        guard let codec = Codec(node: request.text("codec")) else {
            preconditionFailure("a subscribe node has the codec \(request.text("codec"))")
        }
        if request.usedOutputs.contains("video") {
            try RTPInputNode.add(
                to: &plan, output: "video", codec: codec.nodeName, payloadType: Int(codec.payloadType),
                latency: request.optionalInteger("latency"), request)
        }
        if request.usedOutputs.contains("audio") {
            try RTPInputNode.add(
                to: &plan, output: "audio", codec: "opus", payloadType: Int(Codec.opus.payloadType),
                latency: nil, request)
        }
        let fixed = request.optionalInteger("latency")
        let uneven =
            fixed == nil ? "; \(RTPInputNode.longestAudioLatency) ms if it arrives unevenly and is played" : ""
        let video = fixed ?? RTPInputNode.videoLatency
        plan.notes.append(
            "Packets in order are passed on immediately. The node waits for a missing one, up to \(video) ms (video) or "
                + "\(RTPInputNode.audioLatency) ms (audio\(uneven)).")
        return plan
    }

    static func activate(_ instance: NodeInstance) throws(MediaError) -> (any RunningNode)? {
        let access = try RoomAccess(of: instance)
        instance.reporter.await(instance.name)
        return SubscribeNode(instance, access)
    }

    private init(_ instance: NodeInstance, _ access: RoomAccess) {
        name = instance.name
        self.access = access
        reporter = instance.reporter
        wanted = instance.text("participant")
        takesOwn = instance.flag("own")
        codec = Codec(node: instance.text("codec")) ?? .vp8
        parts = Mutex([:])
        for output in ["video", "audio"] where instance.has("\(output)-source") {
            let part = RTPInputNode(
                instance, output: output, capacity: Self.capacity
            ) { [weak self] in
                if output == "video" { self?.requestKeyframe() }
            }
            parts.withLock { $0[output] = part }
        }
    }

    func part(behind output: String) -> any RunningNode { parts.withLock { $0[output] } ?? self }

    private var all: [RTPInputNode] { parts.withLock { $0.sorted { $0.key < $1.key }.map(\.value) } }

    func prepare() {
        for part in all { part.prepare() }
        var options = RoomOptions(receivers: ReceiverPool(initial: 1, maximum: 1, growth: 1))
        let wantsSound = parts.withLock { $0["audio"] != nil }
        options.sound = { [weak self] participant, _ in
            guard wantsSound, let self else { return nil }
            return .packets(Tap(self, participant, "audio"))
        }
        let stay = RoomStay(
            access, options: options, onNews: { [reporter, name] in reporter.warn(name, $0) },
            onEvent: { [weak self] event in self?.handle(event) })
        self.stay.withLock { $0 = stay }
        Task.detached { [self] in
            do throws(RoomError) {
                let engine = try await stay.enter()
                self.engine.withLock { $0 = engine }
                // Only the loop chooses.
                engine.post { _ in self.choose() }
                reporter.isReady(name)
            } catch {
                if !stay.isLeaving { reporter.fail(MediaError(error, node: name), name) }
            }
        }
    }

    func finish() {
        stay.withLock { $0 }?.leave()
        for part in all { part.finish() }
    }

    var stalled: MediaError? {
        MediaError(RoomError(.serverUnreachable, "The room was not entered in time. Try again."), node: name)
    }

    func report(into statistics: inout MediaStatistics, as name: String) {
        statistics.outages[name] = stay.withLock { $0 }?.outage
        for (output, part) in parts.withLock({ $0 }) { part.report(into: &statistics, as: "\(name).\(output)") }
    }

    // MARK: - Choosing a participant

    /// Called on the engine's loop.
    private func handle(_ event: RoomEvent) {
        switch event {
        case .connected(_, let others):
            state.withLock { $0.present = others }
            if !wanted.isEmpty, let absence = AbsentParticipant.words(wanted, among: others.map(\.id)) {
                reporter.warn(name, "\(absence) \"\(name)\" waits for it.")
            }
        case .participantEntered(let info): state.withLock { $0.present.append(info) }
        case .streamPublished(let participant, let stream):
            state.withLock { state in
                guard let index = state.present.firstIndex(where: { $0.id == participant }) else { return }
                state.present[index].streams.append(stream)
            }
        case .streamUnpublished(let participant, let stream): forget(stream, of: participant)
        case .participantLeft(let info): forget(info.id)
        case .ended(_, let error):
            let why = error ?? RoomError(.roomReleased, "The room connection ended.")
            return reporter.fail(MediaError(why, node: name), name)
        case .subscriptionEnded(_, let stream, let error):
            if state.withLock({ $0.video == stream }) { reporter.fail(MediaError(error, node: name), name) }
            return
        case .connecting, .reconnecting, .joinedAgain, .reconnected, .mediaInterrupted, .mediaRestored, .republished,
            .streamChanged, .qualityChanged, .userMessage, .audioHeard, .audioUnheard, .loudspeaker, .statistics,
            .problem:
            return
        }
        choose()
    }

    /// Without its video, the chosen participant counts as gone, so that another one or its next video is chosen.
    private func forget(_ stream: StreamInfo, of participant: String) {
        state.withLock { state in
            for index in state.present.indices where state.present[index].id == participant {
                state.present[index].streams.removeAll { $0.id == stream.id }
            }
            guard state.chosen == participant, state.video == stream.id else { return }
            state.chosen = nil
            state.video = nil
        }
    }

    private func forget(_ participant: String) {
        state.withLock { state in
            state.present.removeAll { $0.id == participant }
            guard state.chosen == participant else { return }
            state.chosen = nil
            state.video = nil
        }
    }

    /// Chooses a participant, if one publishes, and subscribes to its video. Called on the engine's loop.
    private func choose() {
        guard let engine = engine.withLock({ $0 }) else { return }
        let wantsVideo = parts.withLock { $0["video"] != nil }
        let media: StreamMedia = wantsVideo ? .video : .audio
        let candidates = state.withLock { state in
            state.chosen != nil ? [] : state.present.filter(isWanted)
        }
        for candidate in candidates {
            let streams = candidate.streams.filter { $0.media == media }
            guard let stream = streams.first(where: { !wantsVideo || $0.codec == codec.rawValue }) else {
                if let other = streams.first, !wanted.isEmpty { refuse(other, of: candidate.id) }
                continue
            }
            state.withLock { $0.chosen = candidate.id }
            if wantsVideo { subscribe(stream, of: candidate.id, engine) }
            return
        }
    }

    private func isWanted(_ participant: ParticipantInfo) -> Bool {
        wanted.isEmpty ? takesOwn || !OwnParticipants.contains(participant.id) : participant.id == wanted
    }

    private func subscribe(_ stream: StreamInfo, of participant: String, _ engine: RoomEngine) {
        engine.subscribe(stream.id, to: .packets(Tap(self, participant, "video"))) { [weak self] result in
            guard let self, case .failure(let error) = result else { return }
            // If the participant left meanwhile, its event follows and another one is chosen.
            let isThere = state.withLock { $0.chosen == participant }
            if isThere, error.code != .noSuchStream { reporter.fail(MediaError(error, node: name), name) }
        }
    }

    /// Requests a keyframe of the subscribed video. Callable on any thread.
    private func requestKeyframe() {
        guard let video = state.withLock({ $0.video }) else { return }
        engine.withLock { $0 }?.requestKeyframe(of: video)
    }

    private func refuse(_ stream: StreamInfo, of participant: String) {
        let theirs = Codec(rawValue: stream.codec)?.nodeName ?? stream.codec
        reporter.fail(
            MediaError(
                code: MediaError.Code.formatClash,
                message:
                    "\"\(name)\" receives \(codec.nodeName), but the video of participant \(participant) is "
                    + "\(theirs). Set codec to \(theirs).", node: name), name)
    }

    /// Passes one stream's packets into the graph while its participant is the chosen one.
    private final class Tap: IncomingSink, Sendable {
        private struct Node: Sendable {
            weak var node: SubscribeNode?
        }

        private let owner: Mutex<Node>
        private let participant: String
        private let output: String

        init(_ node: SubscribeNode, _ participant: String, _ output: String) {
            owner = Mutex(Node(node: node))
            self.participant = participant
            self.output = output
        }

        private var node: SubscribeNode? { owner.withLock { $0.node } }

        func begin(_ stream: IncomingStream) {
            guard output == "video", let node else { return }
            node.state.withLock { $0.video = stream.id }
            node.requestKeyframe()
        }

        func receive(_ packet: Span<UInt8>) {
            guard let node, node.state.withLock({ $0.chosen == participant }) else { return }
            node.parts.withLock { $0[output] }?.push(packet.bytes)
        }

        func end() {}
    }
}
