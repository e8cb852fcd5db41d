internal import CGLib
internal import CGStreamer

/// What a probe answers for what it has seen.
package enum ProbeAnswer: Sendable {
    case pass
    case drop
}

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
        let object = UnsafeMutableRawPointer(pointer).assumingMemoryBound(to: GstObject.self)
        return takeString(gst_object_get_name(object)) ?? ""
    }

    package func set(_ property: String, _ value: Int) {
        var holder = GValue()
        // 6 << 2 is G_TYPE_INT; GObject converts to what the property is.
        g_value_init(&holder, 6 << 2)
        defer { g_value_unset(&holder) }
        g_value_set_int(&holder, Int32(clamping: value))
        g_object_set_property(
            UnsafeMutableRawPointer(pointer).assumingMemoryBound(to: GObject.self), property, &holder)
    }

    package var isLinked: Bool { gst_pad_is_linked(pointer) != 0 }

    package func link(_ sink: Pad) -> Bool {
        gst_pad_link(pointer, sink.pointer) == GST_PAD_LINK_OK
    }

    package func unlink(_ sink: Pad) {
        gst_pad_unlink(pointer, sink.pointer)
    }

    /// The format that was settled for the pad, or those that it could have; nil when nothing is known.
    package var caps: Caps? {
        (gst_pad_get_current_caps(pointer) ?? gst_pad_query_caps(pointer, nil)).map(Caps.init(takingOwnership:))
    }

    /// All formats that the pad could have now.
    package var queriedCaps: Caps? {
        gst_pad_query_caps(pointer, nil).map(Caps.init(takingOwnership:))
    }

    // MARK: Probes

    /// Calls `body` on the streaming thread for every buffer that passes; a list of buffers counts one by one and
    /// cannot be dropped.
    package func onBuffer(_ body: @escaping @Sendable (borrowing PassingBuffer) -> ProbeAnswer) {
        let types = GST_PAD_PROBE_TYPE_BUFFER.rawValue | GST_PAD_PROBE_TYPE_BUFFER_LIST.rawValue
        gst_pad_add_probe(
            pointer, GstPadProbeType(rawValue: types),
            { pad, info, data in
                guard let pad, let info,
                    let body = Box<@Sendable (borrowing PassingBuffer) -> ProbeAnswer>.value(at: data)
                else { return GST_PAD_PROBE_OK }
                if info.pointee.type.rawValue & GST_PAD_PROBE_TYPE_BUFFER_LIST.rawValue != 0 {
                    let list = OpaquePointer(info.pointee.data)
                    for index in 0..<gst_buffer_list_length(list) {
                        guard let buffer = gst_buffer_list_get(list, index) else { continue }
                        _ = body(PassingBuffer(buffer: buffer, slot: nil, pad: pad))
                    }
                    return GST_PAD_PROBE_OK
                }
                let buffer = info.pointee.data.assumingMemoryBound(to: GstBuffer.self)
                let answer = body(PassingBuffer(buffer: buffer, slot: info, pad: pad))
                return answer == .drop ? GST_PAD_PROBE_DROP : GST_PAD_PROBE_OK
            }, Box(body).retained, releaseBox)
    }

    /// Calls `body` for every event that travels downstream, on the streaming thread.
    package func onEvent(_ body: @escaping @Sendable (PadEvent) -> ProbeAnswer) {
        let types = GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM.rawValue | GST_PAD_PROBE_TYPE_EVENT_FLUSH.rawValue
        addEventProbe(types, body)
    }

    /// Calls `body` for every event that travels upstream, on whatever thread sent it.
    package func onUpstreamEvent(_ body: @escaping @Sendable (PadEvent) -> ProbeAnswer) {
        addEventProbe(GST_PAD_PROBE_TYPE_EVENT_UPSTREAM.rawValue, body)
    }

    private func addEventProbe(_ types: UInt32, _ body: @escaping @Sendable (PadEvent) -> ProbeAnswer) {
        gst_pad_add_probe(
            pointer, GstPadProbeType(rawValue: types),
            { _, info, data in
                guard let info, let body = Box<@Sendable (PadEvent) -> ProbeAnswer>.value(at: data) else {
                    return GST_PAD_PROBE_OK
                }
                let event = info.pointee.data.assumingMemoryBound(to: GstEvent.self)
                return body(PadEvent(event)) == .drop ? GST_PAD_PROBE_DROP : GST_PAD_PROBE_OK
            }, Box(body).retained, releaseBox)
    }

    /// Calls `body` once when nothing is on its way through this output: at once on this thread, or soon on the
    /// streaming thread.
    package func whenIdle(_ body: @escaping @Sendable () -> Void) {
        gst_pad_add_probe(
            pointer, GST_PAD_PROBE_TYPE_IDLE,
            { _, _, data in
                Box<@Sendable () -> Void>.value(at: data)?()
                return GST_PAD_PROBE_REMOVE
            }, Box(body).retained, releaseBox)
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

    /// Frees whoever is blocked pushing into this input, and refuses what comes later. For a pad that is about to go.
    package func refuseEverything() {
        gst_pad_send_event(pointer, gst_event_new_flush_start())
    }

    /// Tells the element that this input belongs to that nothing will come.
    package func sendEndOfStream() {
        gst_pad_send_event(pointer, gst_event_new_eos())
    }

    /// Asks the element that this output belongs to for a keyframe.
    package func requestKeyframe() {
        gst_pad_send_event(pointer, gst_video_event_new_upstream_force_key_unit(UInt.max, 1, 0))
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
    // 16 << 2 is G_TYPE_STRING.
    g_value_init(&holder, 16 << 2)
    defer { g_value_unset(&holder) }
    g_value_set_string(&holder, title)
    gst_tag_list_add_value(tags, GST_TAG_MERGE_REPLACE, "title", &holder)
    gst_pad_push_event(pad, gst_event_new_tag(tags))
}
