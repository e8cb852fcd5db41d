internal import MediaGraph
internal import MediaNodes
internal import RTP
internal import RoomProtocol
internal import Synchronization

/// Publishes encoded media: into a room of its own, as a participant of its own, or in the rooms that the program has
/// chosen for the streams.
///
/// With a room of its own, `start()` of the pipeline returns when the streams are published. An input that ends without a
/// frame, such as the audio of a file without audio, is not published. The server requests a keyframe when a participant
/// subscribes. The request goes upstream to the encoder, camera or peer.
///
/// Inputs can be added and removed while the participant stays. A stream without input stays published, without packets,
/// for the next input of its codec. While the device of an input's source is away, the room sees that the stream waits.
final class PublishNode: NodeType, PublishingNode {
    private static let inputs = [
        Port("video", [.encodedVideo], encodings: ["vp8", "h264"], isRequired: false),
        Port("audio", [.encodedAudio], encodings: ["opus"], isRequired: false),
        // The layers of the video, which `layers` links.
        Port("half", [.encodedVideo], encodings: ["vp8", "h264"], isRequired: false),
        Port("quarter", [.encodedVideo], encodings: ["vp8", "h264"], isRequired: false),
    ]

    private static let layers = SettingContract(
        "layers", .integer(1...VideoLayer.allCases.count), default: 1, isChangeable: true,
        "Sizes in which the video is encoded and sent (simulcast): 2 adds half of width and height, 3 also a quarter; viewers "
            + "get the largest one that their network carries")

    static let kind = NodeKind(
        "publish", .transport, "Publishes to a room, as a participant of its own",
        inputs: inputs,
        settings: RoomAccess.settings + [
            SettingContract("label", .text, default: "", "Free text that all participants see beside the streams"),
            Degradation.setting, layers,
        ])

    /// Leaves room for header extensions, RTX and SRTP in a datagram of 1280 bytes.
    private static let packetLength = 1180

    /// An input, and the stream that it feeds.
    private final class Input: StreamInput {
        let stream: OutgoingStream
        let layer: VideoLayer
        private let reporter: Reporter
        private let node: String
        private let payloader = Mutex<RTPOutputNode?>(nil)
        private let degradation: Policy

        init(
            _ name: String, of instance: NodeInstance, _ stream: OutgoingStream, _ degradation: Policy
        ) throws(MediaError) {
            self.stream = stream
            self.degradation = degradation
            (reporter, node) = (instance.reporter, instance.name)
            let layer = VideoLayer(rawValue: name) ?? .full
            self.layer = layer
            let output = try RTPOutputNode(
                instance, input: name,
                handOver: { [weak self] batch in
                    guard let self else { return }
                    var batch = batch
                    batch.layer = layer
                    self.stream.take(batch, from: self)
                },
                onEnd: { [weak self] in if let self { self.stream.ended(self) } })
            payloader.withLock { $0 = output }
            stream.begin(self)
        }

        var output: RTPOutputNode? { payloader.withLock { $0 } }

        func requestKeyframe() { output?.requestKeyframe() }

        func limitRate(bitsPerSecond: Int, keepsSize: Bool) {
            output?.limitRate(
                bitsPerSecond: bitsPerSecond, degradation: degradation.value.withLock { $0 }, keepsSize: keepsSize)
        }

        func expectLoss(percent: Int) { output?.expectLoss(percent: percent) }

        func layersChanged(_ quality: VideoQuality) { reporter.qualityChanged(node, quality) }

        func layersRefused() {
            reporter.warn(
                node,
                "The server takes one size of the video only, so it gets the whole one. Layers need a newer server.")
        }
    }

    /// The property that the videos keep. Nil leaves it to their encoders.
    private final class Policy: Sendable {
        let value: Mutex<Degradation?>

        init(_ value: Degradation?) { self.value = Mutex(value) }
    }

    private let name: String
    private let reporter: Reporter
    private let inputs = Mutex<[String: Input]>([:])
    private let streams: OutgoingStreams
    private let degradation: Policy
    private let mostLayers: Mutex<Int>
    /// The room of the node's own. Nil if the program publishes the streams.
    private let room: PublishingStay?

    static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        _ = try RoomAccess(of: request)
        return try planInputs(request)
    }

    /// The video's codecs, the preferred one first: H.264 where hardware encodes it, because that costs no processor.
    static func input(_ port: Port, of node: Node, on environment: any PlanEnvironment) -> Port {
        let preferred = VideoCodec.preferred(on: environment).rawValue
        guard port.encodings.contains(preferred) else { return port }
        return Port(
            port.name, port.kinds, encodings: [preferred] + port.encodings.filter { $0 != preferred },
            isRequired: port.isRequired)
    }

    private static func planInputs(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        guard !request.inputs.isEmpty else {
            throw MediaError(
                code: MediaError.Code.graphInvalid,
                message: "\"\(request.name)\" has nothing to publish. Link an output to its port video or audio.",
                node: request.name)
        }
        var plan = NodePlan(request.node)
        plan.inputsComeAndGo = true
        try checkLayers(request)
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

    /// Layers that a graph links itself need the codec of the video, and fewer pixels.
    private static func checkLayers(_ request: NodeRequest) throws(MediaError) {
        for (port, format) in request.inputs where VideoLayer(rawValue: port) != nil {
            guard let whole = request.input("video") else {
                throw MediaError(
                    code: MediaError.Code.graphInvalid,
                    message: "\"\(request.name)\".\(port) is a layer of the video, but nothing is linked to "
                        + "\"\(request.name)\".video. Link the video there.",
                    node: request.name)
            }
            let isSmaller = format.width.flatMap { width in whole.width.map { width < $0 } } ?? true
            guard format.encoding != whole.encoding || !isSmaller else { continue }
            throw MediaError(
                code: MediaError.Code.graphInvalid,
                message:
                    "\"\(request.name)\".\(port) gets \(format), but is a layer of \(whole). Give it the same codec "
                    + "in a smaller size, or set layers and leave the link out.",
                node: request.name)
        }
    }

    static func activate(_ instance: NodeInstance) throws(MediaError) -> (any RunningNode)? {
        let access = try RoomAccess(of: instance)
        if !instance.mayStayEmpty { instance.reporter.await(instance.name) }
        return try PublishNode(instance, OutgoingStreams(), PublishingStay(instance, access))
    }

    private init(
        _ instance: NodeInstance, _ streams: OutgoingStreams, _ room: PublishingStay? = nil
    ) throws(MediaError) {
        name = instance.name
        reporter = instance.reporter
        self.streams = streams
        self.room = room
        degradation = Policy(Degradation(rawValue: instance.text("degradation")))
        mostLayers = Mutex(instance.integer("layers"))
        for port in Self.inputs where instance.plan.inputs[port.name] != nil { try add(port.name, of: instance) }
    }

    func add(_ input: String, of instance: NodeInstance) throws(MediaError) {
        let video = VideoLayer(rawValue: input).flatMap { _ in inputs.withLock { $0["video"]?.stream } }
        let stream = video ?? streams.stream(for: codec(of: instance, input))
        stream.limitLayers(mostLayers.withLock { $0 })
        let added = try Input(input, of: instance, stream, degradation)
        inputs.withLock { $0[input] = added }
    }

    func remove(_ input: String) {
        guard let removed = inputs.withLock({ $0.removeValue(forKey: input) }) else { return }
        removed.stream.pause(removed)
        // A program that publishes the streams itself knows why they wait.
        if room != nil { removed.stream.set(.live) }
    }

    func feedChanged(of input: String, _ feed: InputFeed) {
        guard let input = inputs.withLock({ $0[input] }) else { return }
        input.stream.set(feed, of: input)
    }

    /// The inputs, video first.
    private var current: [PublishedInput] {
        let inputs = inputs.withLock { $0.sorted { $0.key > $1.key }.map(\.value) }
        return inputs.filter { $0.layer == .full }.map { whole in
            let layers = inputs.filter { $0.layer != .full && $0.stream === whole.stream }
            return PublishedInput([whole] + layers, of: whole.stream)
        }
    }

    private func warnOfLateLayers() {
        let isLate = inputs.withLock { inputs in
            inputs.values.contains { $0.layer != .full && $0.stream.isPublished(without: $0.layer) }
        }
        guard isLate else { return }
        reporter.warn(
            name,
            "The video is published in fewer layers than it has now. Unpublish it and publish it again to send the others too."
        )
    }

    /// Their streams.
    private var currentStreams: [OutgoingStream] { current.map(\.stream) }

    func appear(_ done: @escaping @Sendable (MediaError?) -> Void) {
        warnOfLateLayers()
        guard let room else {
            let current = current
            for input in current { input.show() }
            streams.keep(current.map(\.stream))
            return done(nil)
        }
        room.publish(current, of: streams, done)
    }

    func finish() {
        room?.leave()
        for stream in currentStreams where room != nil { stream.end() }
    }

    /// The whole video first, so that its stream remembers the layers.
    func stopped() {
        for input in inputs.withLock({ $0.values.sorted { $0.layer > $1.layer } }) { input.stream.pause(input) }
    }

    func reportShortfall() { room?.reportShortfall(currentStreams, of: streams) }

    var stalled: MediaError? { room?.stalled(currentStreams) }

    func report(into statistics: inout MediaStatistics, as name: String) {
        statistics.outages[name] = room?.outage
        for (input, part) in inputs.withLock({ $0 }) {
            part.output?.report(into: &statistics, as: "\(name).\(input)")
        }
    }
}

extension PublishNode {
    /// A kind whose nodes feed streams that the program publishes.
    static let localKind = NodeKind(
        "local-output", .transport, "Passes the local media to the rooms in which the program publishes it",
        inputs: inputs,
        settings: [
            SettingContract(
                "codec", .choice(["auto"] + VideoCodec.allCases.map(\.rawValue)), default: "auto", isChangeable: true,
                "Video codec for the inserted encoder, and for a source that encodes; auto is the one that costs least"),
            Degradation.setting, layers,
        ])

    /// The implementation of `localKind` for a set of streams.
    static func feeding(_ streams: OutgoingStreams) -> NodeImplementation {
        NodeImplementation(
            kind: localKind,
            input: { port, node, environment in
                guard port.kinds == [.encodedVideo] else { return port }
                guard case .text(let codec) = node.settings["codec"], codec != "auto" else {
                    return input(port, of: node, on: environment)
                }
                return Port(port.name, port.kinds, encodings: [codec], isRequired: port.isRequired)
            },
            plan: { request throws(MediaError) in try planInputs(request) },
            activate: { instance throws(MediaError) in try PublishNode(instance, streams) })
    }

    /// The codec matters for the plan only.
    func set(_ setting: String, to value: SettingValue) throws(MediaError) -> Bool {
        if setting == "degradation" {
            degradation.value.withLock { $0 = value.text.flatMap(Degradation.init) }
        }
        if setting == "layers", let count = value.integer {
            mostLayers.withLock { $0 = count }
            for stream in currentStreams { stream.limitLayers(count) }
        }
        return true
    }

    /// More encoders need an edit of the graph.
    func check(_ setting: String, to value: SettingValue) throws(MediaError) {
        guard setting == "layers", let count = value.integer else { return }
        let sizes = inputs.withLock { $0.keys.count { VideoLayer(rawValue: $0) != nil } } + 1
        guard count > sizes else { return }
        throw MediaError(
            code: MediaError.Code.graphInvalid,
            message:
                "\"\(name)\".layers cannot become \(count), because the graph that runs encodes \(sizes) of the video. "
                + "Apply a graph with that many. Frames below 480x270 have one, and those below 960x540 two.",
            node: name)
    }
}

private func codec(of instance: NodeInstance, _ input: String) -> Codec {
    switch instance.plan.element("\(input)-payloader")?.factory {
    case "rtph264pay": .h264
    case "rtpvp9pay": .vp9
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

    init(_ codec: VideoCodec) {
        switch codec {
        case .vp8: self = .vp8
        case .h264: self = .h264
        case .vp9: self = .vp9
        }
    }

    var nodeName: String { rawValue.lowercased() }
}

extension VideoCodec {
    /// Nil for a codec of audio.
    init?(_ codec: Codec) { self.init(rawValue: codec.nodeName) }
}
