internal import CGLib
internal import CGStreamer
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
    func removesItself() -> Bool {
        state.withLock { state in
            defer { state.isRemoved = true }
            return !state.isRemoved
        }
    }

    var isRemoved: Bool { state.withLock { $0.isRemoved } }
}

/// A closure and the state of its probe, for C.
private struct Attached<Body: Sendable>: Sendable {
    let state: ProbeState
    let body: Body

    /// The result that removes the probe, unless other code removes it.
    var removal: GstPadProbeReturn { state.removesItself() ? GST_PAD_PROBE_REMOVE : GST_PAD_PROBE_OK }

    func answer(_ answer: ProbeAnswer) -> GstPadProbeReturn {
        switch answer {
        case .pass: GST_PAD_PROBE_OK
        case .drop: GST_PAD_PROBE_DROP
        case .passAndRemove: removal
        }
    }
}

private typealias BufferBody = @Sendable (borrowing PassingBuffer) -> ProbeAnswer
private typealias EventBody = @Sendable (PadEvent) -> ProbeAnswer
private typealias PlainBody = @Sendable () -> Void

extension Pad {
    @discardableResult
    private func attach<Body: Sendable>(
        _ types: GstPadProbeType..., to body: Body, _ callback: GstPadProbeCallback
    ) -> Probe {
        let state = ProbeState()
        let number = gst_pad_add_probe(
            pointer, GstPadProbeType(rawValue: types.reduce(0) { $0 | $1.rawValue }), callback,
            Box(Attached(state: state, body: body)).retained, releaseBox)
        if let unwanted = state.attached(number) { gst_pad_remove_probe(pointer, unwanted) }
        return Probe(pad: self, state: state)
    }

    /// Calls `body` on the streaming thread for every buffer. Buffers of a list count separately and cannot be dropped.
    @discardableResult
    package func onBuffer(_ body: @escaping @Sendable (borrowing PassingBuffer) -> ProbeAnswer) -> Probe {
        attach(GST_PAD_PROBE_TYPE_BUFFER, GST_PAD_PROBE_TYPE_BUFFER_LIST, to: body as BufferBody) { pad, info, data in
            guard let pad, let info, let attached = Box<Attached<BufferBody>>.value(at: data) else {
                return GST_PAD_PROBE_OK
            }
            if info.pointee.type.rawValue & GST_PAD_PROBE_TYPE_BUFFER_LIST.rawValue != 0 {
                let list = OpaquePointer(info.pointee.data)
                for index in 0..<gst_buffer_list_length(list) {
                    guard let buffer = gst_buffer_list_get(list, index) else { continue }
                    let answer = attached.body(PassingBuffer(buffer: buffer, slot: nil, pad: pad))
                    if answer == .passAndRemove { return attached.removal }
                }
                return GST_PAD_PROBE_OK
            }
            let buffer = info.pointee.data.assumingMemoryBound(to: GstBuffer.self)
            return attached.answer(attached.body(PassingBuffer(buffer: buffer, slot: info, pad: pad)))
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
        attach(
            GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM, GST_PAD_PROBE_TYPE_EVENT_FLUSH, to: body as EventBody, eventSeen)
    }

    /// Calls `body` once on the streaming thread, before the first downstream event passes, or the query for seeking with
    /// which a muxer begins.
    @discardableResult
    package func onFirstUse(_ body: @escaping @Sendable () -> Void) -> Probe {
        attach(
            GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM, GST_PAD_PROBE_TYPE_QUERY_DOWNSTREAM, to: body as PlainBody
        ) { _, info, data in
            guard let info, let attached = Box<Attached<PlainBody>>.value(at: data) else { return GST_PAD_PROBE_OK }
            if info.pointee.type.rawValue & GST_PAD_PROBE_TYPE_QUERY_DOWNSTREAM.rawValue != 0 {
                let query = info.pointee.data.assumingMemoryBound(to: GstQuery.self)
                guard query.pointee.type == GST_QUERY_SEEKING else { return GST_PAD_PROBE_OK }
            }
            attached.body()
            return attached.removal
        }
    }

    /// Calls `body` for every upstream event, on the sending thread.
    @discardableResult
    package func onUpstreamEvent(_ body: @escaping @Sendable (PadEvent) -> ProbeAnswer) -> Probe {
        attach(GST_PAD_PROBE_TYPE_EVENT_UPSTREAM, to: body as EventBody, eventSeen)
    }

    /// Refuses every serialized query, such as an encoder's query for an allocator.
    ///
    /// A queue blocks the querying thread until everything before the query has left. If the queue's output is blocked,
    /// so would be that thread.
    @discardableResult
    package func refuseSerializedQueries() -> Probe {
        attach(GST_PAD_PROBE_TYPE_QUERY_DOWNSTREAM, to: {} as PlainBody) { _, info, _ in
            guard let query = info?.pointee.data?.assumingMemoryBound(to: GstQuery.self) else {
                return GST_PAD_PROBE_OK
            }
            let isSerialized =
                gst_query_type_get_flags(query.pointee.type).rawValue & GST_QUERY_TYPE_SERIALIZED.rawValue != 0
            return isSerialized ? GST_PAD_PROBE_DROP : GST_PAD_PROBE_OK
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
        attach(GST_PAD_PROBE_TYPE_IDLE, to: body as PlainBody) { _, _, data in
            guard let attached = Box<Attached<PlainBody>>.value(at: data) else { return GST_PAD_PROBE_REMOVE }
            attached.body()
            return attached.removal
        }
    }

    /// Blocks all downstream media at this pad, from the next buffer or event on, until the probe is removed. A flush
    /// also frees it.
    ///
    /// Calls `onBlocked` once, on the streaming thread, when media is blocked. Nothing is then in transit downstream of
    /// the pad. The pad may be relinked and the probe removed in it, or later on another thread.
    package func block(_ onBlocked: @escaping @Sendable () -> Void = {}) -> Probe {
        let isCalled = AtomicBool()
        let body: PlainBody = { if !isCalled.exchange(true) { onBlocked() } }
        return attach(GST_PAD_PROBE_TYPE_BLOCK_DOWNSTREAM, to: body) { _, _, data in
            Box<Attached<PlainBody>>.value(at: data)?.body()
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
        // Whether to block the buffer.
        let body: @Sendable (borrowing PassingBuffer) -> Bool = { buffer in
            guard isCalled.value || isFirst(buffer) else { return false }
            if !isCalled.exchange(true) { onBlocked() }
            return true
        }
        return attach(
            GST_PAD_PROBE_TYPE_BLOCK, GST_PAD_PROBE_TYPE_BUFFER, GST_PAD_PROBE_TYPE_BUFFER_LIST, to: body
        ) { pad, info, data in
            typealias Body = @Sendable (borrowing PassingBuffer) -> Bool
            guard let pad, let info, let attached = Box<Attached<Body>>.value(at: data) else {
                return GST_PAD_PROBE_PASS
            }
            let isList = info.pointee.type.rawValue & GST_PAD_PROBE_TYPE_BUFFER_LIST.rawValue != 0
            guard
                let buffer = isList
                    ? gst_buffer_list_get(OpaquePointer(info.pointee.data), 0)
                    : info.pointee.data.assumingMemoryBound(to: GstBuffer.self)
            else { return GST_PAD_PROBE_PASS }
            // A blocking probe must not change the buffer: no slot.
            let isHeldBack = attached.body(PassingBuffer(buffer: buffer, slot: nil, pad: pad))
            return isHeldBack ? GST_PAD_PROBE_OK : GST_PAD_PROBE_PASS
        }
    }
}

private let eventSeen: GstPadProbeCallback = { _, info, data in
    guard let info, let attached = Box<Attached<EventBody>>.value(at: data) else { return GST_PAD_PROBE_OK }
    let event = info.pointee.data.assumingMemoryBound(to: GstEvent.self)
    return attached.answer(attached.body(PadEvent(event)))
}
