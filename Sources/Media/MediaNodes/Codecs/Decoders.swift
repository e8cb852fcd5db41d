import GStreamerKit
import MediaGraph

/// Decodes what its RTP input says is carried.
enum VideoDecoderNode {
    static func build(_ node: ResolvedNode, in assembly: Assembly) throws(MediaError) {
        let decoder = try makeDecoder(node, in: assembly)
        // Decoders of both codecs give I420 for what WebRTC senders send; for anything else this converts.
        let convert = try assembly.element("videoconvert", of: node)
        let filter = try assembly.filter(Assembly.rawVideo, of: node)
        try assembly.link(decoder, convert, filter)
        if let input = assembly.rtpInput(above: node.name) {
            decoder.source.onBuffer { _ in
                input.frameDecoded()
                return .pass
            }
        }
        assembly.accept("in", of: node, into: decoder)
        assembly.provide("out", of: node, from: filter)
    }

    private static func makeDecoder(_ node: ResolvedNode, in assembly: Assembly) throws(MediaError) -> Element {
        switch codec(above: node, in: assembly) {
        case .vp8:
            return try assembly.element("vp8dec", of: node, ["threads": 1])
        case .h264:
            // Frame threads would hold frames back; one thread decodes constrained baseline fast enough.
            let name = GStreamer.has("avdec_h264") ? "avdec_h264" : "openh264dec"
            let decoder = try assembly.element(name, of: node)
            if name == "avdec_h264" {
                decoder.set("max-threads", 1)
                decoder.set("output-corrupt", false)
            }
            return decoder
        }
    }

    private static func codec(above node: ResolvedNode, in assembly: Assembly) -> VideoCodec {
        let source = assembly.nearest(["rtp-input", "vp8-encoder", "h264-encoder"], above: node.name)
        switch source?.kind {
        case "h264-encoder": return .h264
        case "rtp-input": return source?.settings["codec"] == .text(VideoCodec.h264.rawValue) ? .h264 : .vp8
        default: return .vp8
        }
    }
}

enum AudioDecoderNode {
    static func build(_ node: ResolvedNode, in assembly: Assembly) throws(MediaError) {
        let decoder = try assembly.element("opusdec", of: node, ["use-inband-fec": true, "plc": true])
        let convert = try assembly.element("audioconvert", of: node)
        let resample = try assembly.element("audioresample", of: node)
        let filter = try assembly.filter(Assembly.rawAudio, of: node)
        try assembly.link(decoder, convert, resample, filter)
        if let input = assembly.rtpInput(above: node.name) {
            decoder.source.onBuffer { _ in
                input.frameDecoded()
                return .pass
            }
        }
        assembly.accept("in", of: node, into: decoder)
        assembly.provide("out", of: node, from: filter)
    }
}
