import GStreamerKit
import MediaGraph

/// Decodes pictures of the codec that comes in.
enum VideoDecoderNode: NodeType {
    static let kind = NodeKind.videoDecoder

    static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        let input = request.input("in") ?? MediaFormat(.encodedVideo, "vp8")
        let choice = try request.environment.firstUsable(of: DecoderTable.video(input.encoding))
        var plan = NodePlan(request.node)
        plan.notes.append("\(choice.factory) decodes")
        plan.passedOver = choice.passedOver
        plan.add(choice.factory, as: "decoder", DecoderTable.properties(choice.factory))
        plan.inputs["in"] = ElementPad("decoder")
        if let parser = DecoderTable.parser(input.encoding) {
            try request.environment.require(parser)
            plan.add(parser, as: "parser")
            plan.link("parser", "decoder")
            plan.inputs["in"] = ElementPad("parser")
        }
        // Decoders in software give I420 for what conferences send; for anything else this converts.
        plan.add("videoconvert", as: "convert")
        plan.addFilter(RawFormat.video, as: "format")
        plan.link("decoder", "convert", "format")
        plan.outputs["out"] = ElementPad("format")
        plan.formats["out"] = .rawVideo(
            width: input.width, height: input.height, framesPerSecond: input.framesPerSecond)
        if let decoder = plan.element("decoder") {
            plan.latency = request.environment.secondsPerFrame(decoder, input)
        }
        return plan
    }

    static func activate(_ instance: NodeInstance) throws(MediaError) -> (any RunningNode)? {
        guard let input = instance.nearest(RTPInputNode.self) else { return nil }
        instance.element("decoder").source.onBuffer { _ in
            input.frameDecoded()
            return .pass
        }
        return nil
    }
}

/// Decodes sound of the codec that comes in.
enum AudioDecoderNode: NodeType {
    static let kind = NodeKind.audioDecoder

    /// What a lost packet is repaired with comes in the next one; conferences send one every 20 ms.
    private static let opusPacket = 0.02

    static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        let input = request.input("in") ?? MediaFormat(.encodedAudio, "opus")
        let choice = try request.environment.firstUsable(of: DecoderTable.audio(input.encoding))
        var plan = NodePlan(request.node)
        plan.passedOver = choice.passedOver
        plan.add(choice.factory, as: "decoder", DecoderTable.properties(choice.factory))
        plan.inputs["in"] = ElementPad("decoder")
        if let parser = DecoderTable.parser(input.encoding) {
            try request.environment.require(parser)
            plan.add(parser, as: "parser")
            plan.link("parser", "decoder")
            plan.inputs["in"] = ElementPad("parser")
        }
        plan.add("audioconvert", as: "convert")
        plan.add("audioresample", as: "resample")
        plan.addFilter(RawFormat.audio, as: "format")
        plan.link("decoder", "convert", "resample", "format")
        plan.outputs["out"] = ElementPad("format")
        plan.formats["out"] = .rawAudio
        if choice.factory == "opusdec" { plan.allowances["out"] = opusPacket }
        return plan
    }

    static func activate(_ instance: NodeInstance) throws(MediaError) -> (any RunningNode)? {
        let decoder = instance.element("decoder")
        if decoder.factory == "opusdec" {
            // Left to itself it announces 120 ms, the longest that Opus allows, and loudspeakers wait as long.
            decoder.source.answerLatencyQueries(asking: decoder.sink, adding: opusPacket)
        }
        guard let input = instance.nearest(RTPInputNode.self) else { return nil }
        instance.element("decoder").source.onBuffer { _ in
            input.frameDecoded()
            return .pass
        }
        return nil
    }
}
