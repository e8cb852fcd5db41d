import GStreamerKit
public import MediaGraph

/// A network camera: its encoded video and audio, passed through.
struct RTSPNode: NodeType, RunningNode {
    /// A camera that is silent for this long is lost, because it sends video and audio continuously.
    private static let silenceLimit = 5.0
    /// From a frame's arrival until it leaves the depayloader, measured over loopback.
    private static let depayloading = 0.015
    /// How many milliseconds media may be late over TCP before the jitter buffer treats the delay as a restart. It does
    /// so for each stream separately, and then video and audio are out of step until the camera's next reports. The
    /// jitter buffer also waits this long for packets that the camera itself omitted, which TCP does not repair.
    private static let longestStall = 800
    /// The timeout of rtspsrc in microseconds.
    private static let giveUp = 5_000_000

    private let address: String
    private let watchdog: Watchdog
    /// Whether the end was requested.
    private let isFinishing: AtomicBool

    static let kind = NodeKind(
        "rtsp", .capturer, "A network camera over RTSP, as encoded by the camera",
        outputs: [
            Port("video", [.encodedVideo], encodings: ["h264", "vp8", "h265", "mjpeg"], isRequired: false),
            Port("audio", [.encodedAudio], encodings: ["opus", "aac", "pcmu", "pcma"], isRequired: false),
        ],
        settings: [
            SettingContract("url", .text, isRequired: true, "Address of the camera's stream").written(
                #"[Rr][Tt][Ss][Pp][Ss]?://[^\s]+"#,
                "rtsp://user:password@host:554/path, or rtsps:// for TLS"
            ).example("rtsp://camera/stream"),
            SettingContract(
                "transport", RTSP.Transport.settingDomain, default: "tcp",
                "tcp loses nothing; udp does not wait for lost packets"),
            SettingContract(
                "latency", .integer(0...5000), default: 100, unit: "ms",
                "Longest delay of media: over udp the wait for a packet, over tcp the delay that a window allows for"),
            SettingContract(
                "verify-certificate", .flag, default: true,
                "Whether the certificate of an rtsps:// camera has to be valid for this machine; most cameras sign their own"
            ),
        ])

    static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        try request.requireSomeOutput()
        let text = request.text("url")
        guard let address = RTSPAddress(text) else { throw RTSPFailure.badAddress }
        try request.environment.require("rtspsrc")
        let isVerified = request.flag("verify-certificate")
        let camera = try request.environment.networkCamera(text, verifyingCertificate: isVerified)
        var plan = NodePlan(request.node)
        let transport = request.text("transport")
        let latency = request.integer("latency")
        // User and password are set when the element is created, because a plan may be printed.
        plan.add(
            "rtspsrc", as: "source",
            [
                "location": .text(address.url), "protocols": .text(transport),
                "latency": .integer(transport == "tcp" ? max(longestStall, latency) : latency),
                "tcp-timeout": .integer(giveUp),
                "timeout": .integer(giveUp),
            ].merging(isVerified ? [:] : ["tls-validation-flags": "no-flags"]) { $1 })
        for port in ["video", "audio"] where request.usedOutputs.contains(port) {
            try add(port, of: camera, at: address, to: &plan, request)
        }
        for stream in camera where !request.usedOutputs.contains(stream.isVideo ? "video" : "audio") {
            plan.passedOver.append(
                "the \(stream.payloadFormat) stream of \(address) is not requested, because nothing reads it")
        }
        plan.notes.append(
            "\(address) is read over \(transport); the camera decides when to send keyframes and "
                + "accepts no requests")
        if address.isEncrypted, transport == "udp" {
            plan.notes.append(
                "TLS protects the requests only: media over udp is not encrypted; tcp carries both in TLS")
        }
        plan.latency = depayloading
        return plan
    }

    private static func add(
        _ port: String, of camera: NetworkCamera, at address: RTSPAddress, to plan: inout NodePlan,
        _ request: NodeRequest
    ) throws(MediaError) {
        let streams = camera.filter { $0.isVideo == (port == "video") }
        let usable = streams.lazy.compactMap { stream in
            Encoding.all.first { $0.isVideo == stream.isVideo && $0.depayloaders[stream.payloadFormat] != nil }
                .map { (stream, $0) }
        }.first
        guard let (stream, encoding) = usable, let depayloader = encoding.depayloaders[stream.payloadFormat] else {
            throw RTSPFailure.noStream(address, port, offered: streams.map(\.payloadFormat))
        }
        try request.environment.require(depayloader)
        plan.add(depayloader, as: port)
        if encoding.name == "opus" {
            // The depayloader does not state the number of channels, which containers require.
            try request.environment.require("opusparse")
            plan.append("opusparse", as: "\(port)-parser")
        }
        try plan.appendParser(of: encoding, prefix: "\(port)-", request.environment)
        plan.setOutput(
            port,
            MediaFormat(
                stream.isVideo ? .encodedVideo : .encodedAudio, encoding.name, width: stream.width,
                height: stream.height, framesPerSecond: stream.framesPerSecond,
                sampleRate: stream.isVideo ? nil : stream.clockRate, channels: stream.channels))
        plan.notes.append("the \(port) is \(encoding.name), passed through")
    }

    static func activate(_ instance: NodeInstance) throws(MediaError) -> (any RunningNode)? {
        guard let address = RTSPAddress(instance.text("url")) else { return nil }
        let source = instance.element("source")
        if let user = address.user { try source.set("user-id", .text(user)) }
        if let password = address.password { try source.set("user-pw", .text(password)) }
        let (reporter, name) = (instance.reporter, instance.name)
        let watchdog = Watchdog(
            instance, limit: silenceLimit, lost: RTSPFailure.lost(address.url, "it stopped sending"))
        let isFinishing = AtomicBool()
        let ports = ["video", "audio"].filter { instance.has($0) }
        source.onStreamOffered { ports.contains($0) }
        let inputs = Dictionary(uniqueKeysWithValues: ports.map { ($0, instance.element($0).sink) })
        // The jitter buffer would answer with the longest stall.
        let latency = Double(instance.integer("latency")) / 1000
        for input in inputs.values { input.answerLatencyQueries(seconds: latency, isLive: true) }
        source.onPadAdded { pad in
            guard let media = pad.caps?.structures.first?.text("media"), let input = inputs[media], !input.isLinked
            else { return }
            _ = pad.link(input)
        }
        for port in ports {
            let output = instance.element("\(port)-format").source
            let hasBegun = AtomicBool(port == "audio")
            output.onBuffer { buffer in
                watchdog.feed()
                // Frames before the first keyframe are not decodable.
                if hasBegun.value { return .pass }
                if buffer.isKeyframe { hasBegun.raise() }
                return buffer.isKeyframe ? .pass : .drop
            }
            output.onEndOfStream {
                if !isFinishing.value { reporter.fail(RTSPFailure.lost(address.url, "it ended the stream"), name) }
            }
        }
        return RTSPNode(address: address.url, watchdog: watchdog, isFinishing: isFinishing)
    }

    func finish() {
        isFinishing.raise()
        watchdog.stop()
    }

    func explain(_ failure: PipelineFailure, missing: String?) -> MediaError? {
        watchdog.isFed
            ? RTSPFailure.lost(address, failure.message) : RTSPFailure.unreachable(address, failure.message)
    }

    var stalled: MediaError? {
        RTSPFailure.unreachable(address, "it responded but sent nothing for \(Limits().start.short) s")
    }
}

/// Errors of network cameras. Addresses are printed without user and password.
enum RTSPFailure {
    /// The text is not repeated: it may contain a password.
    static let badAddress = MediaError(
        code: MediaError.Code.rtspBadAddress,
        message: "The url is not the address of a network camera. Write rtsp://user:password@host:554/path, or "
            + "rtsps:// for TLS.")

    static func unreachable(_ address: String, _ reason: String) -> MediaError {
        MediaError(
            code: MediaError.Code.rtspUnreachable,
            message:
                "The network camera \(address) is unreachable: \(reason.trimmedSentence). Check the address, and that "
                + "the camera is on and in this network.")
    }

    static func noStream(_ address: RTSPAddress, _ port: String, offered: [String]) -> MediaError {
        let has =
            offered.isEmpty
            ? "sends no \(port)" : "sends its \(port) as \(offered.joined(separator: " and ")), which is not supported"
        return MediaError(
            code: MediaError.Code.rtspNoStream,
            message:
                "The network camera \(address) \(has). Leave the port \(port) unconnected, or choose another stream "
                + "or codec in the camera's settings.")
    }

    static func lost(_ address: String, _ reason: String) -> MediaError {
        MediaError(
            code: MediaError.Code.rtspLost,
            message:
                "The network camera \(address) stopped sending: \(reason.trimmedSentence). Check its power and "
                + "network, then start again.")
    }

    static func described(_ failure: RTSPProbe.Failure, at address: RTSPAddress) -> MediaError {
        switch failure {
        case .unreachable(let reason): unreachable(address.url, reason)
        case .untrusted(let reason):
            MediaError(
                code: "rtsp.certificate",
                message:
                    "The certificate of the network camera \(address) is not trusted: \(reason). Install the "
                    + "certificate of its issuer on this machine, or set verify-certificate to false.")
        case .unauthorized(let wereGiven):
            MediaError(
                code: MediaError.Code.rtspUnauthorized,
                message: wereGiven
                    ? "The network camera \(address) rejects this user and password. Check both in its settings."
                    : "The network camera \(address) requires a user and a password. Write rtsp://user:password@host/."
            )
        case .unknownScheme(let scheme):
            MediaError(
                code: MediaError.Code.rtspUnauthorized,
                message:
                    "The network camera \(address) requires authentication by \(scheme), which is not supported. "
                    + "Switch it to Digest (MD5) or Basic in its settings.")
        case .notFound:
            MediaError(
                code: MediaError.Code.rtspNotFound,
                message: "The network camera has no stream \(address). Look up the path in its manual or settings.")
        case .status(let number, let reason):
            MediaError(
                code: MediaError.Code.rtspRefused,
                message:
                    "The network camera \(address) refused to describe its stream (\(number) \(reason)). It may have "
                    + "too many clients; try again later.")
        }
    }
}

/// A network camera's encoded video and audio.
public struct RTSP: MediaNode {
    public enum Transport: String, SettingChoice {
        /// Loses nothing.
        case tcp
        /// Does not wait for lost packets.
        case udp
    }

    public var handle: NodeHandle

    /// - Parameters:
    ///   - url: an address such as `rtsp://user:password@camera/stream`, or `rtsps://` for TLS.
    ///   - latency: the longest delay of media: over UDP the wait for a packet, over TCP the delay that a window allows for.
    ///   - verifiesCertificate: whether the certificate of an `rtsps://` camera has to be valid for this machine.
    public init(
        url: String, transport: Transport? = nil, latency: Duration? = nil, verifiesCertificate: Bool? = nil
    ) {
        handle = NodeHandle(
            RTSPNode.kind,
            [
                "url": url, "transport": transport, "latency": latency?.inMilliseconds,
                "verify-certificate": verifiesCertificate,
            ])
    }

    public var video: NodeOutput { output(named: "video") }
    public var audio: NodeOutput { output(named: "audio") }
}

extension Node {
    /// A network camera's encoded video and audio. `url` is an address such as `rtsp://user:password@camera/stream`.
    package static func rtsp(_ name: String = "rtsp", url: String) -> Node {
        Node(RTSPNode.kind, name, ["url": url])
    }
}
