package import MediaGraph
internal import MediaNodes

extension MediaRequest {
    package static let sourceNode = "source"
    package static let microphoneNode = "microphone"
    package static let voiceNode = "voice"
    package static let encoder = "encoder"
    package static let rotation = "rotation"
    package static let blend = "blend"
    package static let preview = "preview"
    package static let output = "output"

    /// The graph that captures this. Nil if nothing is to be captured.
    ///
    /// A pure function. The planner inserts an encoder if neither the source nor this graph encodes. `codec` is that of a
    /// stream which the graph has to continue, and `preferred` that of an encoder for which nobody has chosen one.
    package func graph(
        _ contents: Contents, continuing codec: VideoCodec? = nil, preferring preferred: VideoCodec = .vp8
    ) -> MediaGraph? {
        let hasVideo = contents.hasVideo && isVideoActive
        let hasAudio = contents.hasAudio && isAudioActive && mayCapture(capturing)
        // The process that feeds the source stays connected.
        guard hasVideo || hasAudio || source == .feed else { return nil }
        let codec = codec ?? self.codec
        let degradation = self.degradation ?? (chosenRate(contents) != nil && isHighDefinition == true ? .detail : nil)
        return MediaGraph {
            if hasVideo { videoChain(contents, codec, preferred) }
            if !hasVideo, !hasMicrophone {
                Chain {
                    sourceItself(contents)
                    Node.null("unseen")
                }
            }
            if hasAudio { audioChain }
            Node(
                PublishNode.localKind.name, name: Self.output,
                settings: [
                    "codec": codec.map { .text($0.rawValue) }, "degradation": degradation.map { .text($0.rawValue) },
                    "layers": layers > 1 ? .integer(layers) : nil,
                ].compactMapValues(\.self))
        }
    }

    private func videoChain(_ contents: Contents, _ codec: VideoCodec?, _ preferred: VideoCodec) -> Chain {
        Chain {
            sourceItself(contents)
            let degrees = turn(contents)
            if degrees != 0 { Node("rotate", name: Self.rotation, settings: ["degrees": .integer(degrees)]) }
            if isBlended { Node("frame-blend", name: Self.blend) }
            if isPreviewed { Tee(Self.preview, isOptional: true) { Node.frames(Self.preview) } }
            if let bitrate = bitrate ?? chosenRate(contents) {
                Node.videoEncoder(Self.encoder, codec: codec ?? preferred, bitrate: bitrate)
            }
            Join(Self.output, port: "video")
        }
    }

    /// Whether the audio is that of a microphone.
    private var hasMicrophone: Bool { source == .camera || source == .bypass }

    /// Whether the audio may be captured. That of files and test patterns always may.
    func mayCapture(_ use: SoundUse.Capturing) -> Bool { use.isAllowed || !hasMicrophone }

    /// Whether the audio is on: it is active, and the process may capture it.
    package var isAudioOn: Bool { isAudioActive && mayCapture(SoundUse.choice.value.capturing) }

    /// How far the camera's frames are turned clockwise, in degrees.
    func turn(_ contents: Contents) -> Int {
        guard source == .camera else { return 0 }
        let machine =
            switch rotationType {
            case .none: 0
            case .device: deviceTurn
            case .app: appTurn
            }
        // A camera that faces the user sees the machine turn in the other direction, and so does a mirror.
        let facesAway = camera == "back" || camera == nil && position == "back" && contents.camera != nil
        let isTurnedBack = facesAway == isMirrored
        return isTurnedBack ? (360 - machine) % 360 : machine
    }

    /// The size and the rate that the video will have. Frames of the program may have another shape.
    package func shape(_ contents: Contents?) -> VideoShape {
        if let shape = contents?.shape { return shape }
        let isUpended = contents.map { turn($0) % 180 != 0 } ?? false
        return VideoShape(
            width: isUpended ? height : width, height: isUpended ? width : height,
            framesPerSecond: framesPerSecond ?? 20)
    }

    /// The bitrate if another definition than that of the size is chosen.
    func chosenRate(_ contents: Contents) -> Bitrate? {
        let shape = shape(contents)
        guard bitrate == nil, let isHighDefinition, isHighDefinition != shape.isHighDefinition else { return nil }
        let usual = VideoBitrate.default(
            width: shape.width, height: shape.height, framesPerSecond: shape.framesPerSecond)
        return Bitrate(bitsPerSecond: isHighDefinition ? usual.bitsPerSecond * 2 : usual.bitsPerSecond / 2)
    }

    private var audioChain: Chain {
        guard hasMicrophone else {
            return Chain(from: Self.sourceNode, port: "audio") {
                Node.opusEncoder()
                Join(Self.output, port: "audio")
            }
        }
        return Chain {
            switch microphone {
            case .device(let device):
                Node.microphone(Self.microphoneNode, device: device, role: capturing.role)
            case .automatic, .none:
                Node.microphone(
                    Self.microphoneNode, bluetooth: capturing.mayBeBluetooth, role: capturing.role)
            }
            if let voice, voice.isOn, capturing.isProcessed {
                // It hears all that the rooms of the process play.
                Node.echoCancel(Self.voiceNode, heard: SoundGraph.label, controlsGain: voice.controlsGain)
            }
            Node.opusEncoder()
            Join(Self.output, port: "audio")
        }
    }

    private func sourceItself(_ contents: Contents) -> Node {
        switch source {
        case .camera:
            var node = Node.camera(
                Self.sourceNode, device: camera ?? contents.camera ?? "auto", width: width, height: height,
                framesPerSecond: framesPerSecond, mirror: isMirrored)
            if let failover { node.settings["failover"] = .text(failover) }
            if let cameraControls, !cameraControls.isEmpty { node.settings["controls"] = .text(cameraControls) }
            return node
        case .feed:
            return Node(
                "feed", name: Self.sourceNode,
                settings: [
                    "socket": .text(feedSocket), "width": .integer(width), "height": .integer(height),
                    "fps": .number(framesPerSecond ?? 20), "scale": true, "away": "end",
                ])
        case .file: return .file(Self.sourceNode, path: contents.file ?? file, loop: isLooping)
        case .bypass:
            return .programFrames(
                Self.sourceNode, width: width, height: height, framesPerSecond: framesPerSecond)
        case .testPattern:
            return .testPattern(
                Self.sourceNode, width: width, height: height, framesPerSecond: framesPerSecond ?? 20,
                frames: patternFrames)
        }
    }
}
