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
        let range = gst_sdp_message_get_attribute_val(message, "range").map { String(cString: $0) }
        self = (0..<gst_sdp_message_medias_len(message)).compactMap { index in
            gst_sdp_message_get_media(message, index).flatMap {
                NetworkCameraStream($0, line: Int(index), range: range)
            }
        }
    }
}

extension NetworkCameraStream {
    /// Nil for a stream that is neither video nor audio over RTP, or whose payload format is unknown.
    fileprivate init?(_ media: UnsafePointer<GstSDPMedia>, line: Int, range: String?) {
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
        let stated = size?.count == 2 ? size.map { ($0[0], $0[1]) } : nil
        // The parameter sets are exact (RFC 6184, 8.1).
        let sets = format.uppercased() == "H264" ? map?.text("sprop-parameter-sets") : nil
        let frame = sets.flatMap { Self.sizeOfFrame(parameterSets: $0) } ?? stated
        let isLATM = format.uppercased() == "MP4A-LATM"
        let audio = map?.text("config").flatMap {
            isVideo ? nil : AACConfiguration(Self.bytes(hexadecimal: $0), isMultiplexed: isLATM)
        }
        // The clock of LATM may be that of its RTP timestamps only (RFC 6416, 7.1).
        let clock = (map?.integer("clock-rate") ?? fixed.map { Int($0.clock_rate) }).flatMap {
            isLATM && $0 == 90_000 ? nil : $0
        }
        let rate = attribute("framerate").flatMap { Double($0) }
        self.init(
            line: line, isVideo: isVideo, payloadFormat: format.uppercased(),
            clockRate: audio?.sampleRate ?? clock, channels: isVideo ? nil : audio?.channels ?? channels ?? 1,
            width: frame?.0, height: frame?.1,
            framesPerSecond: rate.flatMap { (0.1...240).contains($0) ? $0 : nil },
            length: Self.length(range: attribute("range") ?? range))
    }

    /// Base64, separated by commas.
    private static func sizeOfFrame(parameterSets: String) -> (Int, Int)? {
        let units = parameterSets.split(separator: ",").map { set -> [UInt8] in
            var count: gsize = 0
            guard let bytes = g_base64_decode(String(set), &count) else { return [] }
            defer { g_free(bytes) }
            return Array(UnsafeBufferPointer(start: bytes, count: Int(count)))
        }
        return units.lazy.filter { $0.first.map { $0 & 0x1f == 7 } ?? false }.compactMap {
            SequenceParameters(unit: $0)
        }
        .first { (1...16_384).contains($0.width) && (1...16_384).contains($0.height) }
        .map { ($0.width, $0.height) }
    }

    /// Empty if it is not hexadecimal.
    private static func bytes(hexadecimal text: String) -> [UInt8] {
        let digits = text.compactMap(\.hexDigitValue)
        guard digits.count == text.count else { return [] }
        return stride(from: 0, to: digits.count - 1, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
    }

    /// npt=0-12.5 (RFC 2326, 3.6)
    private static func length(range: String?) -> Double? {
        guard let range, range.hasPrefix("npt=") else { return nil }
        let ends = range.dropFirst(4).split(separator: "-", omittingEmptySubsequences: false)
        guard ends.count == 2, let start = Double(ends[0]), let end = Double(ends[1]), end > start,
            end.isFinite
        else { return nil }
        return end - start
    }
}

extension Element {
    /// Calls `body` for each stream that an rtspsrc is offered, on a GStreamer thread. The argument is the place of its
    /// m-line in the description, from 0; true requests the stream.
    package func onStreamOffered(_ body: @escaping @Sendable (_ line: Int) -> Bool) {
        onSignal("select-stream", of: pointer) { arguments, result in
            g_value_set_boolean(result, body(Int(g_value_get_uint(arguments + 1))) ? 1 : 0)
        }
    }
}

extension Pad {
    /// The place of the m-line of an rtspsrc's pad, by which it is named: `recv_rtp_src_1_2937_96` with the SSRC and the
    /// payload type, or `stream_1` without a jitter buffer. Nil for the pad of another element.
    package var streamLine: Int? { name.split(separator: "_").lazy.compactMap { Int($0) }.first }
}
