import GStreamerKit
public import MediaGraph

/// A network camera: its encoded video and audio, passed through.
enum RTSPNode: NodeType {
    /// From a frame's arrival until it leaves the depayloader, measured over loopback.
    private static let depayloading = 0.015
    /// How many milliseconds media may be late over TCP before the jitter buffer treats the delay as a restart. It does
    /// so for each stream separately, and then video and audio are out of step until the camera's next reports. It
    /// waits for no packet that the camera itself omitted (`closeGaps`).
    private static let longestStall = 800
    /// The timeout of rtspsrc in microseconds.
    private static let giveUp = 5_000_000
    /// After a stall, TCP delivers some seconds at once.
    static let capacity = SourceTrack.Capacity(frames: 300, bytes: 32 << 20)
    static let videos = ["h264", "vp8", "h265", "mjpeg"]
    static let audios = ["opus", "aac", "pcmu", "pcma"]

    static let kind = NodeKind(
        "rtsp", .capturer, "A network camera over RTSP, as encoded by the camera",
        outputs: [
            Port("video", [.encodedVideo], encodings: videos, isRequired: false),
            Port("audio", [.encodedAudio], encodings: audios, isRequired: false),
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
            SettingContract(
                "away", Camera.Away.settingDomain, default: "freeze",
                "Output while the camera is away: the last keyframe, or a grey slate, with silence; end ends the node with "
                    + "an error"),
            SettingContract(
                "video", .choice(videos),
                "The camera's video; lets the graph start without the camera, with width and height"),
            SettingContract(
                "audio", .choice(audios), "The camera's audio; lets the graph start without the camera"),
            SettingContract("width", .integer(16...8192), unit: "pixels", "Width of the camera's frames"),
            SettingContract("height", .integer(16...8192), unit: "pixels", "Height of the camera's frames"),
            SettingContract(
                "sample-rate", .integer(7350...96_000), unit: "Hz", "Sample rate of the camera's audio"),
            SettingContract("channels", .integer(1...2), "Channels of the camera's audio"),
        ] + Slate.settings)

    static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        try request.requireSomeOutput()
        let text = request.text("url")
        guard let address = RTSPAddress(text) else { throw RTSPFailure.badAddress }
        try request.environment.require("rtspsrc")
        var plan = NodePlan(request.node)
        var device = DevicePlan(name: address.url, wish: "")
        let promise: [String: MediaFormat]
        do throws(MediaError) {
            let camera = try request.environment.networkCamera(
                text, verifyingCertificate: request.flag("verify-certificate"))
            let wishes = RTSPWishes(request)
            let (bound, _) = try planCamera(camera, at: address, request, wishes)
            device.take(bound)
            device.outputs = request.ports.compactMap { bound.outputs[$0]?.element }
            promise = bound.formats
            plan.notes = bound.notes
            plan.passedOver = bound.passedOver
            plan.passedOver += camera.filter { !request.usedOutputs.contains($0.isVideo ? "video" : "audio") }.map {
                "the \($0.payloadFormat) stream of \(address) is not requested, because nothing reads it"
            }
        } catch {
            guard isAway(error), !request.node.isOptional, request.text("away") != "end" else { throw error }
            promise = try promised(request, insteadOf: error)
            device.absence = error.message
        }
        device.wish = request.ports.compactMap { promise[$0].map { "\($0)" } }.joined(separator: " and ")
        if let waiting = device.waiting { plan.notes.append(waiting) }
        if let video = promise["video"], request.text("away") != "end" { device.slate = try Slate.plan(request, video) }
        for port in request.ports {
            if let format = promise[port] { try planHead(&plan, port, format, request.environment) }
        }
        note(address, request.text("transport"), in: &plan)
        plan.latency = depayloading
        plan.device = device
        return plan
    }

    private static func planHead(
        _ plan: inout NodePlan, _ port: String, _ format: MediaFormat, _ environment: any PlanEnvironment
    ) throws(MediaError) {
        SourceHead.plan(
            &plan, format, caps: format.headCaps, latency: depayloading, as: "\(port)-source", capacity: capacity)
        if let encoding = Encoding.named(format.encoding) {
            try plan.appendParser(of: encoding, prefix: "\(port)-", environment)
        }
        plan.setOutput(port, format)
        plan.notes.append("the \(port) is \(format.encoding), passed through")
        if Encoding.named(format.encoding)?.repeater != nil {
            plan.notes.append(
                "a viewer that joins, a branch that is added, and the return after a loss wait for the camera's next keyframe. "
                    + "Shorten its interval in the camera, or put a video-decoder and an encoder behind the node")
        }
    }

    private static func note(_ address: RTSPAddress, _ transport: String, in plan: inout NodePlan) {
        plan.notes.append(
            "\(address) is read over \(transport); the camera decides when to send keyframes and "
                + "accepts no requests")
        if address.isEncrypted, transport == "udp" {
            plan.notes.append(
                "TLS protects the requests only: media over udp is not encrypted; tcp carries both in TLS")
        }
    }

    // MARK: Absence

    /// Whether an error says that a camera is not there, and may be there later.
    static func isAway(_ error: MediaError) -> Bool {
        [MediaError.Code.rtspUnreachable, MediaError.Code.rtspRefused, MediaError.Code.rtspNotFound].contains(
            error.code)
    }

    /// The formats that the settings promise for a camera that is not there. Throws `error`, with the settings that are
    /// missing.
    private static func promised(
        _ request: NodeRequest, insteadOf error: MediaError
    ) throws(MediaError) -> [String: MediaFormat] {
        var missing: [String] = []
        var formats: [String: MediaFormat] = [:]
        for port in request.ports {
            let needed =
                port == "video"
                ? ["video", "width", "height"]
                : request.text("audio") == "aac" ? ["sample-rate", "channels"] : ["audio"]
            missing += needed.filter { !request.isGiven($0) }
            formats[port] = RTSPWishes(request).format(of: port)
        }
        guard missing.isEmpty else {
            throw MediaError(
                code: error.code,
                message: "\(error.message) To start without it, set \(missing.joined(separator: ", ")).",
                cause: error.cause)
        }
        return formats
    }

    // MARK: The camera

    /// Plans the elements of a camera that is there, from `source` to one element for each used output. Returns also the
    /// m-line of each used output, because a camera may offer several streams of one kind.
    ///
    /// - Parameter wishes: the encodings to find. Those of the first plan decide for later ones.
    static func planCamera(
        _ camera: NetworkCamera, at address: RTSPAddress, _ request: NodeRequest, _ wishes: RTSPWishes
    ) throws(MediaError) -> (plan: NodePlan, lines: [String: Int]) {
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
            ].merging(request.flag("verify-certificate") ? [:] : ["tls-validation-flags": "no-flags"]) { $1 })
        var lines: [String: Int] = [:]
        for port in request.ports {
            let line = try add(port, of: camera, at: address, to: &plan, request, wishes)
            lines[port] = line
            plan.passedOver += camera.filter { $0.isVideo == (port == "video") && $0.line != line }.map {
                "m-line \($0.line + 1) (\($0.payloadFormat)) of \(address) is not requested, because m-line \(line + 1) is "
                    + "the node's \(port)"
            }
        }
        return (plan, lines)
    }

    /// Adds the elements of the first stream that fits. Returns its m-line.
    private static func add(
        _ port: String, of camera: NetworkCamera, at address: RTSPAddress, to plan: inout NodePlan,
        _ request: NodeRequest, _ wishes: RTSPWishes
    ) throws(MediaError) -> Int {
        let streams = camera.filter { $0.isVideo == (port == "video") }
        let wished = wishes.encoding(of: port)
        let known = streams.compactMap { stream in
            Encoding.all.first { $0.isVideo == stream.isVideo && $0.depayloaders[stream.payloadFormat] != nil }
                .map { (stream, $0) }
        }
        let promised = known.first { (wished == nil || $0.1.name == wished) && wishes.accept($0.0, $0.1) }
        let sound = port == "audio" ? wishes.sound : nil
        guard let (stream, encoding) = promised ?? (sound == nil ? nil : known.first),
            let depayloader = encoding.depayloaders[stream.payloadFormat]
        else {
            throw RTSPFailure.noStream(address, port, offered: streams.map { wishes.name($0) }, wished: wished)
        }
        try request.environment.require(depayloader)
        plan.add(depayloader, as: port)
        if encoding.name == "opus" {
            // The depayloader does not state the lengths of packets.
            try request.environment.require("opusparse")
            plan.append("opusparse", as: "\(port)-parser")
        } else if let parser = encoding.parser {
            try request.environment.require(parser)
            plan.append(parser, as: "\(port)-parser", encoding.parserProperties)
        }
        if promised == nil, let sound {
            plan.notes.append(
                "The network camera \(address) sends its audio as \(wishes.name(stream)) now. It is decoded, and encoded as "
                    + "\(sound.encoding) at \(sound.sampleRate ?? 8000) Hz as before.")
            try plan.appendConversion(of: encoding, to: sound, prefix: "\(port)-", request.environment)
            plan.appendFilter(Encoding.named(sound.encoding)?.headCaps ?? "", as: "\(port)-format")
            plan.setOutput(port, sound)
            return stream.line
        }
        plan.appendFilter(encoding.headCaps, as: "\(port)-format")
        var format = MediaFormat(
            stream.isVideo ? .encodedVideo : .encodedAudio, encoding.name, width: stream.width,
            height: stream.height, framesPerSecond: stream.framesPerSecond,
            sampleRate: stream.isVideo ? nil : stream.clockRate, channels: stream.channels)
        if stream.isVideo { (format.width, format.height) = wishes.size(insteadOf: (stream.width, stream.height)) }
        plan.setOutput(port, format)
        return stream.line
    }

    static func activate(_ instance: NodeInstance) throws(MediaError) -> (any RunningNode)? {
        KeptNetworkCamera(instance)
    }
}

/// The streams that the settings of a node wish for, as far as they do.
struct RTSPWishes {
    private let settings: [String: SettingValue]
    /// Audio that was promised before.
    private(set) var sound: MediaFormat?

    init(_ request: some NodeSettings) { settings = request.node.settings }

    /// Those of a promise, for a camera that opens again.
    init(_ promise: [String: MediaFormat]) {
        settings = promise.mapValues { .text($0.encoding) }
        sound = promise["audio"]
    }

    /// Whether a stream fits the promise. Opus always has the same rate, and a stream of LATM may not state that of its AAC
    /// (RFC 6416, 7.1).
    func accept(_ stream: NetworkCameraStream, _ encoding: Encoding) -> Bool {
        guard let sound, !stream.isVideo, encoding.name != "opus", stream.payloadFormat != "MP4A-LATM" else {
            return true
        }
        return stream.clockRate ?? 8000 == sound.sampleRate ?? 8000 && stream.channels ?? 1 == sound.channels ?? 1
    }

    /// A stream in messages.
    func name(_ stream: NetworkCameraStream) -> String {
        guard sound != nil, !stream.isVideo, let rate = stream.clockRate else { return stream.payloadFormat }
        return "\(stream.payloadFormat) at \(rate) Hz, \(stream.channels == 2 ? "stereo" : "mono")"
    }

    func encoding(of port: String) -> String? { settings[port]?.text }

    func size(insteadOf size: (Int?, Int?)) -> (Int?, Int?) {
        (settings["width"]?.integer ?? size.0, settings["height"]?.integer ?? size.1)
    }

    /// The format that the settings promise. Nil if they do not state the encoding.
    func format(of port: String) -> MediaFormat? {
        guard let encoding = encoding(of: port) else { return nil }
        guard port == "audio" else {
            return MediaFormat(
                .encodedVideo, encoding, width: settings["width"]?.integer, height: settings["height"]?.integer)
        }
        return MediaFormat(
            .encodedAudio, encoding,
            sampleRate: settings["sample-rate"]?.integer ?? (encoding == "opus" ? 48_000 : 8000),
            channels: settings["channels"]?.integer ?? (encoding == "opus" ? 2 : 1))
    }
}

extension NodeRequest {
    /// The linked outputs, the most important one first.
    fileprivate var ports: [String] { ["video", "audio"].filter(usedOutputs.contains) }
}

extension Encoding {
    /// The caps in which a stream reaches the head of its node: complete frames that state their own parameters.
    fileprivate var headCaps: String {
        switch name {
        case "aac": "audio/mpeg,mpegversion=4,stream-format=adts"
        default: caps
        }
    }
}

extension MediaFormat {
    /// The caps of the head of a stream. A packet of Opus has up to two channels, whatever its description says.
    fileprivate var headCaps: String {
        switch encoding {
        case "aac": "audio/mpeg,mpegversion=4,stream-format=adts"
        case "opus": "audio/x-opus,rate=48000,channels=2,channel-mapping-family=0,stream-count=1,coupled-count=1"
        case "pcmu", "pcma":
            "\(Encoding.named(encoding)?.caps ?? ""),rate=\(sampleRate ?? 8000),channels=\(channels ?? 1)"
        // The parser reads the size. A camera that returns may have another one.
        case "h264", "h265", "mjpeg":
            MediaFormat(.encodedVideo, encoding, framesPerSecond: framesPerSecond).pushedCaps
        default: pushedCaps
        }
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

    static func noStream(_ address: RTSPAddress, _ port: String, offered: [String], wished: String?) -> MediaError {
        let names = offered.joined(separator: " and ")
        let has =
            offered.isEmpty
            ? "sends no \(port)"
            : "sends its \(port) as \(names)" + (wished.map { " instead of \($0)" } ?? ", which is not supported")
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
                + "network.")
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
    /// The protocol below RTP.
    public enum Transport: String, SettingChoice {
        /// Loses nothing.
        case tcp
        /// Does not wait for lost packets.
        case udp
    }

    public var handle: NodeHandle

    /// A network camera by its address. Nil values are the defaults, which `connectlive nodes rtsp` lists.
    ///
    /// - Parameters:
    ///   - url: an address such as `rtsp://user:password@camera/stream`, or `rtsps://` for TLS.
    ///   - latency: the longest delay of media: over UDP the wait for a packet, over TCP the delay that a window allows for.
    ///   - verifiesCertificate: whether the certificate of an `rtsps://` camera has to be valid for this machine.
    ///   - video: the camera's encoding. With `width` and `height`, the graph starts without the camera.
    ///   - audio: the camera's encoding, with which the graph starts without the camera.
    ///   - sampleRate: in Hz.
    public init(
        url: String, transport: Transport? = nil, latency: Duration? = nil, verifiesCertificate: Bool? = nil,
        away: Camera.Away? = nil, video: String? = nil, width: Int? = nil, height: Int? = nil, audio: String? = nil,
        sampleRate: Int? = nil, channels: Int? = nil, slateText: String? = nil, slateImage: String? = nil
    ) {
        handle = NodeHandle(
            RTSPNode.kind,
            [
                "url": url, "transport": transport, "latency": latency?.inMilliseconds,
                "verify-certificate": verifiesCertificate, "away": away, "video": video, "width": width,
                "height": height,
                "audio": audio, "sample-rate": sampleRate, "channels": channels, "slate-text": slateText,
                "slate-image": slateImage,
            ])
    }

    /// The first video stream.
    public var video: NodeOutput { output(named: "video") }
    /// The first audio stream.
    public var audio: NodeOutput { output(named: "audio") }
}
