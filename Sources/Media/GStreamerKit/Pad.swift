internal import CGLib
internal import CGStreamer
package import MediaGraph

/// An event on a pad. Others are ignored.
package enum PadEvent: Sendable {
    /// A new segment. `isTime` is false if it counts bytes.
    case segment
    case streamStart
    case caps(Caps)
    case endOfStream
    case flushStart
    case flushStop
    /// Upstream: a decoder or depayloader requests a keyframe.
    case forceKeyUnit
    /// Upstream: a consumer limits the encoder to this bitrate, because its network carries no more. It may say what the
    /// video keeps then.
    case rateLimit(source: UInt64, bitsPerSecond: Int, degradation: Degradation?, keepsSize: Bool)
    /// Upstream: a consumer cannot take another size.
    case sizeHold
    /// Upstream: a consumer expects that this share of the packets is lost, in percent.
    case expectedLoss(source: UInt64, percent: Int)
    /// Upstream: an element may take another format.
    case reconfigure
    /// Upstream: how long after its timestamp a sink renders media, in seconds.
    case latency(Double)
    case other
}

/// An input or output of an element. The corresponding C type is `GstPad`.
// @unchecked: the pointer never changes, and a GstPad has its own locks.
package final class Pad: GStreamerObject, @unchecked Sendable {
    let pointer: UnsafeMutablePointer<GstPad>

    init(takingOwnership pointer: UnsafeMutablePointer<GstPad>) {
        self.pointer = pointer
        super.init(takingOwnership: pointer)
    }

    override var title: String { fullName }

    /// Nanoseconds added to the running time of all further media.
    package var offset: Int {
        get { gst_pad_get_offset(pointer) }
        set { gst_pad_set_offset(pointer, newValue) }
    }

    package var isLinked: Bool { gst_pad_is_linked(pointer) != 0 }

    /// Links this output to an input. Returns false if that is refused; `tryLink` returns the reason.
    package func link(_ sink: Pad) -> Bool {
        gst_pad_link(pointer, sink.pointer) == GST_PAD_LINK_OK
    }

    /// Links this output to an input. Returns nil on success, else the reason.
    ///
    /// The output's stream state (its start, format, segment and tags) is repeated to the new input before the next
    /// buffer.
    package func tryLink(_ sink: Pad) -> String? {
        let answer = gst_pad_link(pointer, sink.pointer)
        if answer == GST_PAD_LINK_OK { return nil }
        let names = "\(fullName) cannot feed \(sink.fullName)"
        switch answer {
        case GST_PAD_LINK_WAS_LINKED:
            let taken = isLinked ? self : sink
            return "\(names): \(taken.fullName) is already linked to \(taken.peer?.fullName ?? "another pad")"
        case GST_PAD_LINK_NOFORMAT:
            return "\(names): the formats \(queriedCaps?.summary ?? "nothing") and "
                + "\(sink.queriedCaps?.summary ?? "nothing") have nothing in common"
        case GST_PAD_LINK_WRONG_HIERARCHY:
            return "\(names): they are not in the same bin"
        case GST_PAD_LINK_WRONG_DIRECTION:
            return "\(names): a link must go from an output to an input"
        default:
            return "\(names): \(gst_pad_link_get_name(answer).map { String(cString: $0) } ?? "refused")"
        }
    }

    package func unlink(_ sink: Pad) {
        gst_pad_unlink(pointer, sink.pointer)
    }

    /// The linked pad.
    package var peer: Pad? {
        gst_pad_get_peer(pointer).map(Pad.init(takingOwnership:))
    }

    /// Element and pad, such as `encoder.src`.
    package var fullName: String { path.prefix(2).reversed().joined(separator: ".") }

    package var isSource: Bool { gst_pad_get_direction(pointer) == GST_PAD_SRC }

    /// The negotiated format, or the possible ones. Nil if nothing is known.
    package var caps: Caps? { settledCaps ?? queriedCaps }

    /// The negotiated format. Nil before negotiation.
    package var settledCaps: Caps? {
        gst_pad_get_current_caps(pointer).map(Caps.init(takingOwnership:))
    }

    /// All currently possible formats.
    package var queriedCaps: Caps? {
        gst_pad_query_caps(pointer, nil).map(Caps.init(takingOwnership:))
    }

    // MARK: Events

    /// Whether the end of the stream has passed here, so that nothing more is taken before a flush.
    package var isAtEndOfStream: Bool {
        object.pointee.flags & GST_PAD_FLAG_EOS.rawValue != 0
    }

    /// The latency of this output. Nil if it is not known yet.
    package var latency: Latency? {
        let query = gst_query_new_latency()
        defer { gst_query_unref(query) }
        let isAnswered = isSource ? gst_pad_query(pointer, query) : gst_pad_peer_query(pointer, query)
        return isAnswered == 0 ? nil : Latency(query)
    }

    /// Frees threads that are blocked pushing into this input, and refuses further media. For a pad that is being
    /// removed.
    package func refuseEverything() {
        gst_pad_send_event(pointer, gst_event_new_flush_start())
    }

    /// Undoes `refuseEverything`, for an input that gets another source. Running time continues.
    package func acceptAgain() {
        gst_pad_send_event(pointer, gst_event_new_flush_stop(0))
    }

    /// Sends this input's element the end of the stream.
    package func sendEndOfStream() {
        gst_pad_send_event(pointer, gst_event_new_eos())
    }

    /// Requests a keyframe from this output's element, or from the element upstream of this input.
    package func requestKeyframe() {
        let event = gst_video_event_new_upstream_force_key_unit(UInt.max, 1, 0)
        if isSource { gst_pad_send_event(pointer, event) } else { gst_pad_push_event(pointer, event) }
    }

    /// Limits the encoder upstream of this input to a bitrate. Other elements ignore it.
    ///
    /// - Parameters:
    ///   - source: tells this consumer from others of the encoder.
    ///   - degradation: the property that the video keeps; nil leaves it to the encoder.
    ///   - keepsSize: whether the frames keep their size, because the video comes in several.
    package func limitRate(
        bitsPerSecond: Int, source: UInt64, degradation: Degradation? = nil, keepsSize: Bool = false
    ) {
        let wish =
            (degradation.map { ", \(RateLimit.degradation)=(string)\($0.rawValue)" } ?? "")
            + (keepsSize ? ", \(RateLimit.keepsSize)=(boolean)true" : "")
        pushUpstream(
            "\(RateLimit.name), \(RateLimit.rate)=(gint64)\(bitsPerSecond), \(RateLimit.source)=(guint64)\(source)\(wish);"
        )
    }

    /// Tells the encoder upstream of this input which share of its packets will be lost. Other elements ignore it.
    ///
    /// - Parameter source: tells this consumer from others of the encoder.
    package func expectLoss(percent: Int, source: UInt64) {
        pushUpstream(
            "\(ExpectedLoss.name), \(ExpectedLoss.percent)=(gint)\(percent), \(ExpectedLoss.source)=(guint64)\(source);"
        )
    }

    /// Tells the encoder upstream of this input that no other size can be taken. Other elements ignore it.
    package func holdSize() { pushUpstream("\(SizeHold.name);") }

    private func pushUpstream(_ text: String) {
        guard let structure = gst_structure_from_string(text, nil) else { return }
        gst_pad_push_event(pointer, gst_event_new_custom(GST_EVENT_CUSTOM_UPSTREAM, structure))
    }

    /// Asks this output's element to restart at the beginning, which discards media in transit.
    package func seekToStart() -> Bool {
        let flags = GST_SEEK_FLAG_FLUSH.rawValue | GST_SEEK_FLAG_ACCURATE.rawValue
        let event = gst_event_new_seek(
            1, GST_FORMAT_TIME, GstSeekFlags(rawValue: flags), GST_SEEK_TYPE_SET, 0, GST_SEEK_TYPE_NONE, -1)
        return gst_pad_send_event(pointer, event) != 0
    }

    /// The stream's duration in nanoseconds, if known.
    package var duration: UInt64? {
        var duration: Int = 0
        guard gst_pad_query_duration(pointer, GST_FORMAT_TIME, &duration) != 0, duration > 0 else { return nil }
        return UInt64(duration)
    }
}

/// The names of the event with a bitrate's limit. GStreamer has none.
private enum RateLimit {
    static let name = "connectlive-rate-limit"
    static let rate = "bits-per-second"
    static let source = "source"
    static let degradation = "degradation"
    static let keepsSize = "keeps-size"

    static func read(_ event: UnsafeMutablePointer<GstEvent>) -> PadEvent? {
        guard let structure = gst_event_get_structure(event), gst_structure_has_name(structure, name) != 0 else {
            return nil
        }
        var (bits, consumer): (gint64, guint64) = (0, 0)
        guard gst_structure_get_int64(structure, rate, &bits) != 0,
            gst_structure_get_uint64(structure, source, &consumer) != 0
        else { return nil }
        let degradation = gst_structure_get_string(structure, degradation).flatMap {
            Degradation(rawValue: String(cString: $0))
        }
        var keepsSize: gboolean = 0
        gst_structure_get_boolean(structure, Self.keepsSize, &keepsSize)
        return .rateLimit(
            source: UInt64(consumer), bitsPerSecond: Int(bits), degradation: degradation, keepsSize: keepsSize != 0)
    }
}

/// The name of the event of a consumer that cannot take another size.
private enum SizeHold {
    static let name = "connectlive-size-hold"

    static func read(_ event: UnsafeMutablePointer<GstEvent>) -> PadEvent? {
        guard let structure = gst_event_get_structure(event), gst_structure_has_name(structure, name) != 0 else {
            return nil
        }
        return .sizeHold
    }
}

/// The names of the event with an expected loss.
private enum ExpectedLoss {
    static let name = "connectlive-expected-loss"
    static let percent = "percent"
    static let source = "source"

    static func read(_ event: UnsafeMutablePointer<GstEvent>) -> PadEvent? {
        guard let structure = gst_event_get_structure(event), gst_structure_has_name(structure, name) != 0 else {
            return nil
        }
        var (value, consumer): (gint, guint64) = (0, 0)
        guard gst_structure_get_int(structure, percent, &value) != 0,
            gst_structure_get_uint64(structure, source, &consumer) != 0
        else { return nil }
        return .expectedLoss(source: UInt64(consumer), percent: Int(value))
    }
}

extension PadEvent {
    init(_ event: UnsafeMutablePointer<GstEvent>) {
        switch event.pointee.type {
        case GST_EVENT_SEGMENT: self = .segment
        case GST_EVENT_STREAM_START: self = .streamStart
        case GST_EVENT_CAPS:
            var caps: UnsafeMutablePointer<GstCaps>?
            gst_event_parse_caps(event, &caps)
            self = caps.map { .caps(Caps(takingOwnership: gst_caps_ref($0))) } ?? .other
        case GST_EVENT_EOS: self = .endOfStream
        case GST_EVENT_FLUSH_START: self = .flushStart
        case GST_EVENT_FLUSH_STOP: self = .flushStop
        case GST_EVENT_LATENCY:
            var latency: GstClockTime = 0
            gst_event_parse_latency(event, &latency)
            self = .latency(Double(latency) / 1e9)
        case GST_EVENT_CUSTOM_UPSTREAM, GST_EVENT_CUSTOM_DOWNSTREAM:
            self =
                gst_video_event_is_force_key_unit(event) != 0
                ? .forceKeyUnit : RateLimit.read(event) ?? SizeHold.read(event) ?? ExpectedLoss.read(event) ?? .other
        case GST_EVENT_RECONFIGURE: self = .reconfigure
        default: self = .other
        }
    }
}
