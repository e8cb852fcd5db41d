internal import CGLib
internal import CGStreamer
package import MediaGraph

/// What travels along a pad beside buffers; the rest is not looked at.
package enum PadEvent: Sendable {
    /// A new time line; `isTime` is false for one that counts bytes.
    case segment
    case streamStart
    case caps(Caps)
    case endOfStream
    case flushStart
    case flushStop
    case gap
    /// An RTP packet that the jitter buffer no longer waits for.
    case packetLost
    /// Upstream: a decoder or depayloader wants a keyframe.
    case forceKeyUnit
    /// Upstream: quality of service; a hint to drop frames.
    case qualityOfService
    /// Upstream: how long after its timestamp a sink renders media.
    case latency
    case other
}

/// An input or output of an element. The corresponding C type is `GstPad`.
// @unchecked: the pointer never changes, and a GstPad guards itself with its own locks.
package final class Pad: @unchecked Sendable {
    let pointer: UnsafeMutablePointer<GstPad>

    init(takingOwnership pointer: UnsafeMutablePointer<GstPad>) {
        self.pointer = pointer
    }

    deinit {
        gst_object_unref(pointer)
    }

    package var name: String {
        takeString(gst_object_get_name(asObject)) ?? ""
    }

    var asObject: UnsafeMutablePointer<GstObject> {
        UnsafeMutableRawPointer(pointer).assumingMemoryBound(to: GstObject.self)
    }

    /// Names of the pad, its element and the bins around that, innermost first.
    package var path: [String] { objectPath(asObject) }

    /// Sets a property that the program itself names; see `Element.set`.
    package func set(_ property: String, _ value: PropertyValue) throws(MediaError) {
        try properties.set(property, value)
    }

    /// Sets a property that somebody else names; see `Element.trySet`.
    package func trySet(_ property: String, _ value: PropertyValue) -> String? {
        properties.trySet(property, value, in: nil)
    }

    private var properties: PropertyHolder {
        PropertyHolder(UnsafeMutableRawPointer(pointer).assumingMemoryBound(to: GObject.self), name: fullName)
    }

    /// Nanoseconds that are added to the running time of everything that passes from now on.
    package var offset: Int64 {
        get { Int64(gst_pad_get_offset(pointer)) }
        set { gst_pad_set_offset(pointer, Int(newValue)) }
    }

    package var isLinked: Bool { gst_pad_is_linked(pointer) != 0 }

    /// Links this output to an input. False when that is refused; `tryLink` says why.
    package func link(_ sink: Pad) -> Bool {
        gst_pad_link(pointer, sink.pointer) == GST_PAD_LINK_OK
    }

    /// Links this output to an input; nil when that worked, else why it did not, in words.
    ///
    /// What the output has said about its stream so far (its start, format, segment and tags) is said again to the new
    /// input, ahead of the next buffer.
    package func tryLink(_ sink: Pad) -> String? {
        let answer = gst_pad_link(pointer, sink.pointer)
        if answer == GST_PAD_LINK_OK { return nil }
        let names = "\(fullName) cannot feed \(sink.fullName)"
        switch answer {
        case GST_PAD_LINK_WAS_LINKED:
            let taken = isLinked ? self : sink
            return "\(names): \(taken.fullName) is linked to \(taken.peer?.fullName ?? "something") already"
        case GST_PAD_LINK_NOFORMAT:
            return "\(names): one gives \(queriedCaps?.summary ?? "nothing"), the other takes "
                + "\(sink.queriedCaps?.summary ?? "nothing")"
        case GST_PAD_LINK_WRONG_HIERARCHY:
            return "\(names): they are not in the same bin"
        case GST_PAD_LINK_WRONG_DIRECTION:
            return "\(names): that is not from an output to an input"
        default:
            return "\(names): \(gst_pad_link_get_name(answer).map { String(cString: $0) } ?? "refused")"
        }
    }

    package func unlink(_ sink: Pad) {
        gst_pad_unlink(pointer, sink.pointer)
    }

    /// What the pad is linked to.
    package var peer: Pad? {
        gst_pad_get_peer(pointer).map(Pad.init(takingOwnership:))
    }

    /// Element and pad, such as `encoder.src`.
    package var fullName: String { path.prefix(2).reversed().joined(separator: ".") }

    package var isSource: Bool { gst_pad_get_direction(pointer) == GST_PAD_SRC }

    /// The format that was settled for the pad, or those that it could have; nil when nothing is known.
    package var caps: Caps? {
        (gst_pad_get_current_caps(pointer) ?? gst_pad_query_caps(pointer, nil)).map(Caps.init(takingOwnership:))
    }

    /// The format that was settled for the pad; nil before.
    package var settledCaps: Caps? {
        gst_pad_get_current_caps(pointer).map(Caps.init(takingOwnership:))
    }

    /// All formats that the pad could have now.
    package var queriedCaps: Caps? {
        gst_pad_query_caps(pointer, nil).map(Caps.init(takingOwnership:))
    }

    // MARK: Events

    /// Tells whatever this output feeds that timestamps are running times from now on. The pad keeps its own segment.
    package func sendPlainSegmentToPeer() {
        var segment = GstSegment()
        gst_segment_init(&segment, GST_FORMAT_TIME)
        guard let peer = gst_pad_get_peer(pointer) else { return }
        gst_pad_send_event(peer, gst_event_new_segment(&segment))
        gst_object_unref(peer)
    }

    /// Tells whatever this output feeds that nothing more comes.
    package func sendEndOfStreamToPeer() {
        guard let peer = gst_pad_get_peer(pointer) else { return }
        gst_pad_send_event(peer, gst_event_new_eos())
        gst_object_unref(peer)
    }

    /// Whether the end of the stream has passed here, so that nothing more is taken before a flush.
    package var isAtEndOfStream: Bool {
        asObject.pointee.flags & GST_PAD_FLAG_EOS.rawValue != 0
    }

    /// How late what comes out here is; nil when that is not known yet.
    package var latency: Latency? {
        let query = gst_query_new_latency()
        defer { gst_query_unref(query) }
        let isAnswered = isSource ? gst_pad_query(pointer, query) : gst_pad_peer_query(pointer, query)
        return isAnswered == 0 ? nil : Latency(query)
    }

    /// Moves everything that comes out here by so many nanoseconds of running time, from the next buffer on.
    package func shift(by nanoseconds: Int) {
        gst_pad_set_offset(pointer, nanoseconds)
    }

    /// Frees whoever is blocked pushing into this input, and refuses what comes later. For a pad that is about to go.
    package func refuseEverything() {
        gst_pad_send_event(pointer, gst_event_new_flush_start())
    }

    /// Undoes `refuseEverything`, for an input that something else is about to feed. Running time goes on.
    package func acceptAgain() {
        gst_pad_send_event(pointer, gst_event_new_flush_stop(0))
    }

    /// Tells the element that this input belongs to that nothing will come.
    package func sendEndOfStream() {
        gst_pad_send_event(pointer, gst_event_new_eos())
    }

    /// Asks for a keyframe: the element that this output belongs to, or whatever feeds this input.
    package func requestKeyframe() {
        let event = gst_video_event_new_upstream_force_key_unit(UInt.max, 1, 0)
        if isSource { gst_pad_send_event(pointer, event) } else { gst_pad_push_event(pointer, event) }
    }

    /// Asks the element that this output belongs to to start again at the beginning, throwing away what is under way.
    package func seekToStart() -> Bool {
        let flags = GST_SEEK_FLAG_FLUSH.rawValue | GST_SEEK_FLAG_ACCURATE.rawValue
        let event = gst_event_new_seek(
            1, GST_FORMAT_TIME, GstSeekFlags(rawValue: flags), GST_SEEK_TYPE_SET, 0, GST_SEEK_TYPE_NONE, -1)
        return gst_pad_send_event(pointer, event) != 0
    }

    /// How long the stream lasts, in nanoseconds, if that is known.
    package var duration: UInt64? {
        var duration: Int = 0
        guard gst_pad_query_duration(pointer, GST_FORMAT_TIME, &duration) != 0, duration > 0 else { return nil }
        return UInt64(duration)
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
        case GST_EVENT_GAP: self = .gap
        case GST_EVENT_QOS: self = .qualityOfService
        case GST_EVENT_LATENCY: self = .latency
        case GST_EVENT_CUSTOM_UPSTREAM, GST_EVENT_CUSTOM_DOWNSTREAM:
            if gst_video_event_is_force_key_unit(event) != 0 {
                self = .forceKeyUnit
            } else if gst_event_has_name(event, "GstRTPPacketLost") != 0 {
                self = .packetLost
            } else {
                self = .other
            }
        default: self = .other
        }
    }
}

/// Running time, in nanoseconds since the pipeline's start, of a timestamp in the pad's current segment.
func runningTime(of timestamp: UInt, at pad: UnsafeMutablePointer<GstPad>) -> UInt64? {
    guard let event = gst_pad_get_sticky_event(pad, GST_EVENT_SEGMENT, 0) else { return nil }
    defer { gst_event_unref(event) }
    var segment: UnsafePointer<GstSegment>?
    gst_event_parse_segment(event, &segment)
    guard let segment, segment.pointee.format == GST_FORMAT_TIME else { return nil }
    let time = gst_segment_to_running_time(segment, GST_FORMAT_TIME, timestamp)
    return time == UInt.max ? nil : UInt64(time)
}

func pushTitle(_ title: String, at pad: UnsafeMutablePointer<GstPad>) {
    let tags = gst_tag_list_new_empty()
    var holder = GValue()
    g_value_init(&holder, FundamentalType.string)
    defer { g_value_unset(&holder) }
    g_value_set_string(&holder, title)
    gst_tag_list_add_value(tags, GST_TAG_MERGE_REPLACE, "title", &holder)
    gst_pad_push_event(pad, gst_event_new_tag(tags))
}
