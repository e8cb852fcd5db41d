internal import CGLib
internal import CGStreamer
package import MediaGraph
import Synchronization

/// The result of a probe.
package enum ProbeAnswer: Sendable {
    case pass
    case drop
    /// Pass this buffer and end the probe.
    case passAndRemove
}

/// A probe on a pad, from its attachment until it is removed or the pad is released.
///
/// Releasing the value does not remove the probe. The value retains its pad, so a probe's closure that retains the
/// value retains both until the probe is removed.
package struct Probe: Sendable {
    fileprivate let pad: Pad
    fileprivate let state: ProbeState

    /// Removes the probe and releases held media. Callable repeatedly, on any thread, and inside the probe. A running
    /// call on a streaming thread finishes.
    package func remove() {
        if let number = state.remove() { gst_pad_remove_probe(pad.pointer, number) }
    }

    /// Whether the probe was removed.
    package var isRemoved: Bool { state.isRemoved }
}

/// Ensures that a probe is removed once, either by its number or by its callback's result.
private final class ProbeState: Sendable {
    private struct State {
        /// Nil until the pad has returned it. The callback may run before.
        var number: UInt?
        var isRemoved = false
        /// Whether to remove the probe as soon as the number is known.
        var isUnwanted = false
    }

    private let state = Mutex(State())

    /// The number with which the caller has to remove the probe.
    func remove() -> UInt? {
        state.withLock { state in
            if state.isRemoved { return nil }
            state.isRemoved = true
            state.isUnwanted = state.number == nil
            return state.number
        }
    }

    /// Sets the number. Returns it if the caller has to remove the probe now. An idle probe that was called and has
    /// removed itself before has the number 0.
    func attached(_ number: UInt) -> UInt? {
        state.withLock { state in
            state.number = number
            if number == 0 { state.isRemoved = true }
            return state.isUnwanted && number != 0 ? number : nil
        }
    }

    /// For the callback: whether its result removes the probe.
    private func removesItself() -> Bool {
        state.withLock { state in
            defer { state.isRemoved = true }
            return !state.isRemoved
        }
    }

    var isRemoved: Bool { state.withLock { $0.isRemoved } }

    /// The result that removes the probe, unless other code removes it.
    var removal: GstPadProbeReturn { removesItself() ? GST_PAD_PROBE_REMOVE : GST_PAD_PROBE_OK }

    func result(_ answer: ProbeAnswer) -> GstPadProbeReturn {
        switch answer {
        case .pass: GST_PAD_PROBE_OK
        case .drop: GST_PAD_PROBE_DROP
        case .passAndRemove: removal
        }
    }
}

/// The reaction to a probe's call. The state is that of the probe.
private typealias ProbeBody =
    @Sendable (UnsafeMutablePointer<GstPad>, UnsafeMutablePointer<GstPadProbeInfo>, ProbeState) -> GstPadProbeReturn
private typealias AttachedProbe = Box<(body: ProbeBody, state: ProbeState)>

extension Pad {
    @discardableResult
    private func attach(_ types: GstPadProbeType..., body: @escaping ProbeBody) -> Probe {
        let state = ProbeState()
        let number = gst_pad_add_probe(
            pointer, GstPadProbeType(rawValue: types.reduce(0) { $0 | $1.rawValue }),
            { pad, info, data in
                guard let pad, let info, let attached = AttachedProbe.value(at: data) else { return GST_PAD_PROBE_OK }
                return attached.body(pad, info, attached.state)
            }, AttachedProbe((body, state)).retained, releaseBox)
        if let unwanted = state.attached(number) { gst_pad_remove_probe(pointer, unwanted) }
        return Probe(pad: self, state: state)
    }

    /// Calls `body` on the streaming thread for every buffer. Buffers of a list count separately and cannot be dropped.
    @discardableResult
    package func onBuffer(_ body: @escaping @Sendable (borrowing PassingBuffer) -> ProbeAnswer) -> Probe {
        attach(GST_PAD_PROBE_TYPE_BUFFER, GST_PAD_PROBE_TYPE_BUFFER_LIST) { pad, info, state in
            guard let list = info.list else {
                let buffer = info.pointee.data.assumingMemoryBound(to: GstBuffer.self)
                return state.result(body(PassingBuffer(buffer: buffer, slot: info, pad: pad)))
            }
            for index in 0..<gst_buffer_list_length(list) {
                guard let buffer = gst_buffer_list_get(list, index) else { continue }
                let answer = body(PassingBuffer(buffer: buffer, slot: nil, pad: pad))
                if answer == .passAndRemove { return state.removal }
            }
            return GST_PAD_PROBE_OK
        }
    }

    /// Like `onBuffer`, for a `body` that lets every buffer pass.
    @discardableResult
    package func watchBuffers(_ body: @escaping @Sendable (borrowing PassingBuffer) -> Void) -> Probe {
        onBuffer { buffer in
            body(buffer)
            return .pass
        }
    }

    /// Passes every buffer to `body` with its time on the monotonic clock, on the streaming thread, and none downstream.
    /// Buffers of a list pass downstream.
    @discardableResult
    package func takeBuffers(_ body: @escaping @Sendable (MediaBuffer, MediaTime) -> Void) -> Probe {
        attach(GST_PAD_PROBE_TYPE_BUFFER) { pad, info, _ in
            guard let buffer = info.pointee.data?.assumingMemoryBound(to: GstBuffer.self) else {
                return GST_PAD_PROBE_OK
            }
            let time = PassingBuffer(buffer: buffer, slot: info, pad: pad).time
            body(MediaBuffer(takingOwnership: buffer), time)
            return GST_PAD_PROBE_HANDLED
        }
    }

    /// Like `onEvent`, for a `body` that lets every event pass.
    @discardableResult
    package func watchEvents(_ body: @escaping @Sendable (PadEvent) -> Void) -> Probe {
        onEvent { event in
            body(event)
            return .pass
        }
    }

    /// Calls `body` on the streaming thread for every downstream event.
    @discardableResult
    package func onEvent(_ body: @escaping @Sendable (PadEvent) -> ProbeAnswer) -> Probe {
        attach(GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM, GST_PAD_PROBE_TYPE_EVENT_FLUSH) { _, info, state in
            state.result(body(PadEvent(info.event)))
        }
    }

    /// Replaces the segments that leave this output by a single one in which timestamps are running times. The output
    /// itself keeps its own. Call before the pad is linked.
    package func replaceSegments() {
        let isReplaced = AtomicBool()
        attach(GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM) { pad, info, _ in
            guard info.event.pointee.type == GST_EVENT_SEGMENT else { return GST_PAD_PROBE_OK }
            // A thread may push a segment before the pad is linked. GStreamer sends it again before the next buffer.
            if let input = gst_pad_get_peer(pad) {
                defer { gst_object_unref(input) }
                if !isReplaced.exchange(true) {
                    var segment = GstSegment()
                    gst_segment_init(&segment, GST_FORMAT_TIME)
                    gst_pad_send_event(input, gst_event_new_segment(&segment))
                }
            }
            return GST_PAD_PROBE_DROP
        }
    }

    /// Calls `body` once on the streaming thread, before the first downstream event passes, or the query for seeking with
    /// which a muxer begins.
    @discardableResult
    package func onFirstUse(_ body: @escaping @Sendable () -> Void) -> Probe {
        attach(GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM, GST_PAD_PROBE_TYPE_QUERY_DOWNSTREAM) { _, info, state in
            if let query = info.query, query.pointee.type != GST_QUERY_SEEKING { return GST_PAD_PROBE_OK }
            body()
            return state.removal
        }
    }

    /// Calls `body` for every upstream event, on the sending thread.
    @discardableResult
    package func onUpstreamEvent(_ body: @escaping @Sendable (PadEvent) -> ProbeAnswer) -> Probe {
        attach(GST_PAD_PROBE_TYPE_EVENT_UPSTREAM) { _, info, state in state.result(body(PadEvent(info.event))) }
    }

    /// Refuses every serialized query, such as an encoder's query for an allocator.
    ///
    /// A queue blocks the querying thread until everything before the query has left. If the queue's output is blocked,
    /// so would be that thread.
    @discardableResult
    package func refuseSerializedQueries() -> Probe {
        attach(GST_PAD_PROBE_TYPE_QUERY_DOWNSTREAM) { _, info, _ in
            guard let query = info.query else { return GST_PAD_PROBE_OK }
            let flags = gst_query_type_get_flags(query.pointee.type).rawValue
            return flags & GST_QUERY_TYPE_SERIALIZED.rawValue != 0 ? GST_PAD_PROBE_DROP : GST_PAD_PROBE_OK
        }
    }

    /// Replaces the answers to upstream queries for the latency. Nil leaves a query to the elements.
    func onLatencyQuery(
        _ answer: @escaping @Sendable () -> (isLive: Bool, minimum: UInt, maximum: UInt)?
    ) {
        attach(GST_PAD_PROBE_TYPE_QUERY_UPSTREAM) { _, info, _ in
            guard let query = info.query, query.pointee.type == GST_QUERY_LATENCY, let answer = answer() else {
                return GST_PAD_PROBE_OK
            }
            gst_query_set_latency(query, answer.isLive ? 1 : 0, answer.minimum, answer.maximum)
            return GST_PAD_PROBE_HANDLED
        }
    }

    /// Calls `body` once when the end of the stream arrives at this pad, on the streaming thread, or immediately if it
    /// has passed. This distinguishes the end of one branch from the end of all. The element has then handled
    /// everything before the end, but not the end itself.
    @discardableResult
    package func onEndOfStream(_ body: @escaping @Sendable () -> Void) -> Probe {
        let isCalled = AtomicBool()
        let probe = onEvent { event in
            guard case .endOfStream = event else { return .pass }
            if !isCalled.exchange(true) { body() }
            return .passAndRemove
        }
        // An input registers the end only after its element has handled it. The output upstream has by then.
        if isAtEndOfStream || (!isSource && peer?.isAtEndOfStream == true), !isCalled.exchange(true) {
            probe.remove()
            body()
        }
        return probe
    }

    /// Calls `body` once while nothing is in transit through this output: immediately on this thread, or soon on the
    /// streaming thread. Nothing passes until `body` returns, so it may relink the output.
    @discardableResult
    package func whenIdle(_ body: @escaping @Sendable () -> Void) -> Probe {
        attach(GST_PAD_PROBE_TYPE_IDLE) { _, _, state in
            body()
            return state.removal
        }
    }

    /// Blocks all downstream media at this pad, from the next buffer or event on, until the probe is removed. A flush
    /// also frees it.
    ///
    /// Calls `onBlocked` once, on the streaming thread, when media is blocked. Nothing is then in transit downstream of
    /// the pad. The pad may be relinked and the probe removed in it, or later on another thread.
    package func block(_ onBlocked: @escaping @Sendable () -> Void = {}) -> Probe {
        let isCalled = AtomicBool()
        return attach(GST_PAD_PROBE_TYPE_BLOCK_DOWNSTREAM) { _, _, _ in
            if !isCalled.exchange(true) { onBlocked() }
            return GST_PAD_PROBE_OK
        }
    }

    /// Blocks everything from the first buffer on for which `isFirst` returns true, such as a keyframe, including that
    /// buffer. Earlier events and buffers pass.
    package func block(
        from isFirst: @escaping @Sendable (borrowing PassingBuffer) -> Bool,
        _ onBlocked: @escaping @Sendable () -> Void = {}
    ) -> Probe {
        let isCalled = AtomicBool()
        return attach(GST_PAD_PROBE_TYPE_BLOCK, GST_PAD_PROBE_TYPE_BUFFER, GST_PAD_PROBE_TYPE_BUFFER_LIST) {
            pad, info, _ in
            let first = info.list.map { gst_buffer_list_get($0, 0) }
            guard let buffer = first ?? info.pointee.data.assumingMemoryBound(to: GstBuffer.self) else {
                return GST_PAD_PROBE_PASS
            }
            // A blocking probe must not change the buffer: no slot.
            guard isCalled.value || isFirst(PassingBuffer(buffer: buffer, slot: nil, pad: pad)) else {
                return GST_PAD_PROBE_PASS
            }
            if !isCalled.exchange(true) { onBlocked() }
            return GST_PAD_PROBE_OK
        }
    }
}

extension UnsafeMutablePointer<GstPadProbeInfo> {
    fileprivate func has(_ type: GstPadProbeType) -> Bool { pointee.type.rawValue & type.rawValue != 0 }

    /// The list of buffers; nil for a single buffer.
    fileprivate var list: OpaquePointer? { has(GST_PAD_PROBE_TYPE_BUFFER_LIST) ? OpaquePointer(pointee.data) : nil }

    fileprivate var event: UnsafeMutablePointer<GstEvent> { pointee.data.assumingMemoryBound(to: GstEvent.self) }

    /// Nil for another object.
    fileprivate var query: UnsafeMutablePointer<GstQuery>? {
        has(GST_PAD_PROBE_TYPE_QUERY_BOTH) ? pointee.data?.assumingMemoryBound(to: GstQuery.self) : nil
    }
}
