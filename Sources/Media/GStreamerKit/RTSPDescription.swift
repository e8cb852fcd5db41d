internal import CGLib
internal import CGStreamer
import MediaGraph

extension NetworkCamera {
    /// Reads a session description (RFC 8866) as cameras write them; the rest of a malformed one is ignored.
    init(sessionDescription text: String) {
        GStreamer.load()
        var message: UnsafeMutablePointer<GstSDPMessage>?
        gst_sdp_message_new(&message)
        defer { gst_sdp_message_free(message) }
        let bytes = [UInt8](text.utf8)
        if !bytes.isEmpty { gst_sdp_message_parse_buffer(bytes, UInt32(bytes.count), message) }
        self = (0..<gst_sdp_message_medias_len(message)).compactMap { index in
            gst_sdp_message_get_media(message, index).flatMap { NetworkCameraStream($0) }
        }
    }
}

extension NetworkCameraStream {
    /// Nil for a stream that is neither video nor audio over RTP, or whose payload format is unknown.
    fileprivate init?(_ media: UnsafePointer<GstSDPMedia>) {
        func text(_ value: UnsafePointer<CChar>?) -> String? { value.map { String(cString: $0) } }
        func attribute(_ name: String) -> String? { text(gst_sdp_media_get_attribute_val(media, name)) }
        // m=video 0 RTP/AVP 96
        guard let name = text(gst_sdp_media_get_media(media)), name == "video" || name == "audio",
            text(gst_sdp_media_get_proto(media))?.hasPrefix("RTP/") == true,
            let type = text(gst_sdp_media_get_format(media, 0)).flatMap({ UInt8($0) }), type < 128
        else { return nil }
        let isVideo = name == "video"
        // a=rtpmap:96 H264/90000
        let caps = gst_sdp_media_get_caps_from_media(media, Int32(type)).map { Caps(takingOwnership: $0) }
        let map = caps?.structures.first
        // Payload types below 96 need no rtpmap (RFC 3551, section 6).
        let fixed = gst_rtp_payload_info_for_pt(type)?.pointee
        guard let format = map?.text("encoding-name") ?? text(fixed?.encoding_name), !format.isEmpty else { return nil }
        let channels = (map?.text("encoding-params") ?? text(fixed?.encoding_parameters)).flatMap { Int($0) }

        // a=x-dimensions:1920,1080 or a=framesize:96 1920-1080 (3GPP TS 26.234)
        let size = (attribute("x-dimensions") ?? attribute("framesize"))?.split(separator: " ").last?
            .split { $0 == "," || $0 == "-" }.compactMap { Int($0) }.filter { (1...16_384).contains($0) }
        let isSize = size?.count == 2
        let rate = attribute("framerate").flatMap { Double($0) }
        self.init(
            isVideo: isVideo, payloadFormat: format.uppercased(),
            clockRate: map?.integer("clock-rate") ?? fixed.map { Int($0.clock_rate) },
            channels: isVideo ? nil : channels ?? 1, width: isSize ? size?[0] : nil, height: isSize ? size?[1] : nil,
            framesPerSecond: rate.flatMap { $0 > 0 && $0 <= 240 ? $0 : nil })
    }
}

extension Element {
    /// Calls `body` for each stream that an rtspsrc is offered, on a GStreamer thread. The argument is `video`, `audio` or
    /// another media type; true requests the stream.
    package func onStreamOffered(_ body: @escaping @Sendable (_ media: String) -> Bool) {
        onSignal("select-stream", of: pointer) { arguments, result in
            let structure = gst_value_get_caps(arguments + 2).flatMap { gst_caps_get_structure($0, 0) }
            let media = structure.flatMap { gst_structure_get_string($0, "media") }
            g_value_set_boolean(result, media.map { body(String(cString: $0)) } ?? true ? 1 : 0)
        }
    }
}
