import GStreamerKit
import MediaGraph

/// Decodes pictures of the codec that comes in.
enum VideoDecoderNode: NodeType {
    static let kind = NodeKind.videoDecoder

    static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        let input = request.input("in") ?? MediaFormat(.encodedVideo, "vp8")
        var plan = NodePlan(request.node)
        switch input.encoding {
        case "h264":
            let choice = try request.environment.firstUsable(of: ["avdec_h264", "openh264dec"])
            // Frame threads would hold frames back; one thread decodes constrained baseline fast enough.
            let isLibav = choice.factory == "avdec_h264"
            plan.add(
                choice.factory, as: "decoder", isLibav ? ["max-threads": 1, "output-corrupt": false] : [:])
            plan.passedOver = choice.passedOver
        default:
            try request.environment.require("vp8dec")
            plan.add("vp8dec", as: "decoder", ["threads": 1])
        }
        // Decoders of both codecs give I420 for what WebRTC senders send; for anything else this converts.
        plan.add("videoconvert", as: "convert")
        plan.addFilter(RawFormat.video, as: "format")
        plan.link("decoder", "convert", "format")
        plan.inputs["in"] = ElementPad("decoder")
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

    static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        try request.environment.require("opusdec")
        var plan = NodePlan(request.node)
        plan.add("opusdec", as: "decoder", ["use-inband-fec": true, "plc": true])
        plan.add("audioconvert", as: "convert")
        plan.add("audioresample", as: "resample")
        plan.addFilter(RawFormat.audio, as: "format")
        plan.link("decoder", "convert", "resample", "format")
        plan.inputs["in"] = ElementPad("decoder")
        plan.outputs["out"] = ElementPad("format")
        plan.formats["out"] = .rawAudio
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
