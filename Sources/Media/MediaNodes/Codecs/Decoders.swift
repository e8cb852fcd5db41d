import GStreamerKit
package import MediaGraph

/// Decodes video of any codec.
enum VideoDecoderNode: NodeType {
    static let kind = NodeKind(
        "video-decoder", .codec, "Decodes video of any codec",
        inputs: [Port("in", [.encodedVideo], encodings: Encoding.video)],
        outputs: .rawVideoOut)

    static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        let input = request.input("in") ?? MediaFormat(.encodedVideo, "vp8")
        var plan = NodePlan(request.node)
        plan.notes.append("\(try plan.addDecoder(of: input, request.environment)) decodes")
        // Software decoders output I420 for the formats of conferences. This converts all others.
        plan.add("videoconvert", as: "convert")
        plan.addFilter(RawFormat.video, as: "format")
        plan.chain(
            to: .rawVideo(width: input.width, height: input.height, framesPerSecond: input.framesPerSecond))
        if let decoder = plan.element("decoder") {
            plan.latency = request.environment.secondsPerFrame(decoder, input)
        }
        return plan
    }

    static func activate(_ instance: NodeInstance) throws(MediaError) -> (any RunningNode)? {
        instance.countDecodedFrames()
        return nil
    }
}

/// Decodes audio of any codec.
enum AudioDecoderNode: NodeType {
    static let kind = NodeKind(
        "audio-decoder", .codec, "Decodes audio of any codec, and conceals lost Opus packets",
        inputs: [Port("in", [.encodedAudio], encodings: Encoding.audio)],
        outputs: .rawAudioOut)

    /// The repair of a lost packet is in the next one. Conferences send one every 20 ms.
    private static let opusPacket = 0.02

    static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        let input = request.input("in") ?? MediaFormat(.encodedAudio, "opus")
        var plan = NodePlan(request.node)
        let factory = try plan.addDecoder(of: input, request.environment)
        plan.add("audioconvert", as: "convert")
        plan.add("audioresample", as: "resample")
        plan.addFilter(RawFormat.audio, as: "format")
        plan.chain(to: .rawAudio)
        if factory == "opusdec" { plan.allowances["out"] = opusPacket }
        return plan
    }

    static func activate(_ instance: NodeInstance) throws(MediaError) -> (any RunningNode)? {
        let decoder = instance.element("decoder")
        if decoder.factory == "opusdec" {
            // By default it announces 120 ms, the longest that Opus allows, and loudspeakers would wait that long.
            decoder.source.answerLatencyQueries(asking: decoder.sink, adding: opusPacket)
        }
        instance.countDecodedFrames()
        return nil
    }
}

extension NodePlan {
    /// Adds the first usable decoder of a codec, after its parser if it needs one. Returns the decoder's element. Throws
    /// `element.missing`.
    fileprivate mutating func addDecoder(
        of input: MediaFormat, _ environment: any PlanEnvironment
    ) throws(MediaError) -> String {
        let encoding = Encoding.named(input.encoding)
        let choice = try environment.firstUsable(of: encoding?.decoders(of: input) ?? [])
        passedOver = choice.passedOver
        if let encoding, encoding.isParsedToDecode, let parser = encoding.parser {
            try environment.require(parser)
            add(parser, as: "parser")
        }
        add(choice.factory, as: "decoder", Encoding.decoderProperties(choice.factory))
        return choice.factory
    }
}

extension NodeInstance {
    /// Counts frames from the room at the RTP input that they came through.
    fileprivate func countDecodedFrames() {
        guard let input = nearest(RTPInputNode.self) else { return }
        element("decoder").source.watchBuffers { _ in input.frameDecoded() }
    }
}

/// A decoder of video of any codec. The planner inserts one where a node needs it.
public struct VideoDecoder: MediaNode {
    public var handle: NodeHandle

    /// A decoder of video.
    public init() { handle = NodeHandle(VideoDecoderNode.kind) }
}

/// A decoder of audio of any codec. The planner inserts one where a node needs it.
public struct AudioDecoder: MediaNode {
    public var handle: NodeHandle

    /// A decoder of audio.
    public init() { handle = NodeHandle(AudioDecoderNode.kind) }
}

extension Node {
    /// A decoder of video of any codec.
    package static func videoDecoder(_ name: String = "video-decoder") -> Node {
        Node(VideoDecoderNode.kind, name)
    }

    /// A decoder of audio of any codec.
    package static func audioDecoder(_ name: String = "audio-decoder") -> Node {
        Node(AudioDecoderNode.kind, name)
    }
}
