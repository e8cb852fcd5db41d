internal import CGLib
internal import CGStreamer
import Synchronization

/// What a probe answers for what it has seen.
package enum ProbeAnswer: Sendable {
    case pass
    case drop
    /// Pass this and look at nothing further.
    case passAndRemove
}

/// Something that looks at what travels through a pad, from when it is attached until it is removed or the pad goes.
///
/// Whoever has no need to remove it lets the value go: the probe stays. The value keeps its pad: a probe's own closure
/// that holds it holds both for ever, unless the probe is removed.
package final class Probe: Sendable {
    private let pad: Pad
    private let state: ProbeState

    fileprivate init(_ pad: Pad, _ state: ProbeState) {
        self.pad = pad
        self.state = state
    }

    /// Removes the probe; what it held back goes on. May be called often, from any thread, and from inside the probe.
    /// A call that is under way on a streaming thread comes to its end.
    package func remove() {
        if let number = state.remove() { gst_pad_remove_probe(pad.pointer, number) }
    }

    /// Whether it was removed, or has removed itself.
    package var isRemoved: Bool { state.isRemoved }
}

/// Sees to it that a probe is removed once: by its number, or by what its callback answers.
private final class ProbeState: Sendable {
    private enum Phase {
        /// The pad has not told the number yet; the callback may be called already.
        case attaching
        case attached(UInt)
        /// To be removed as soon as the number is known.
        case unwanted
        case removed
    }

    private let phase = Mutex(Phase.attaching)

    /// The number by which the caller has to remove the probe.
    func remove() -> UInt? {
        phase.withLock { phase in
            switch phase {
            case .attaching:
                phase = .unwanted
                return nil
            case .attached(let number):
                phase = .removed
                return number
            case .unwanted, .removed:
                return nil
            }
        }
    }

    /// The pad has told the number; answers it when the caller has to remove the probe at once. An idle probe that was
    /// called and has removed itself before has the number 0.
    func attached(_ number: UInt) -> UInt? {
        phase.withLock { phase in
            switch phase {
            case .attaching:
                phase = number == 0 ? .removed : .attached(number)
                return nil
            case .unwanted:
                phase = .removed
                return number == 0 ? nil : number
            case .attached, .removed:
                return nil
            }
        }
    }

    /// For the callback: whether it is its answer that removes the probe.
    func removesItself() -> Bool {
        phase.withLock { phase in
            switch phase {
            case .attaching, .attached:
                phase = .removed
                return true
            case .unwanted, .removed:
                return false
            }
        }
    }

    var isRemoved: Bool {
        phase.withLock { phase in
            switch phase {
            case .attaching, .attached: false
            case .unwanted, .removed: true
            }
        }
    }
}

/// A closure and the state of the probe that it belongs to, as C carries them around.
private final class Attached<Body: Sendable>: Sendable {
    private let state: ProbeState
    let body: Body

    init(_ state: ProbeState, _ body: Body) {
        self.state = state
        self.body = body
    }

    /// What to tell GStreamer so that the probe goes: nobody else may remove it at the same time.
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
            Box(Attached(state, body)).retained, releaseBox)
        if let unwanted = state.attached(number) { gst_pad_remove_probe(pointer, unwanted) }
        return Probe(self, state)
    }

    /// Calls `body` on the streaming thread for every buffer that passes; a list of buffers counts one by one and
    /// cannot be dropped.
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

    /// Calls `body` for every event that travels downstream, on the streaming thread.
    @discardableResult
    package func onEvent(_ body: @escaping @Sendable (PadEvent) -> ProbeAnswer) -> Probe {
        attach(
            GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM, GST_PAD_PROBE_TYPE_EVENT_FLUSH, to: body as EventBody, eventSeen)
    }

    /// Calls `body` for every event that travels upstream, on whatever thread sent it.
    @discardableResult
    package func onUpstreamEvent(_ body: @escaping @Sendable (PadEvent) -> ProbeAnswer) -> Probe {
        attach(GST_PAD_PROBE_TYPE_EVENT_UPSTREAM, to: body as EventBody, eventSeen)
    }

    /// Refuses every query that would wait in line behind buffers, such as an encoder's query for an allocator.
    ///
    /// A queue lets the thread that asks such a query wait until everything before it has left. Where the output of the
    /// queue is blocked, that thread would be blocked too.
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

    /// Calls `body` once, on the streaming thread, when the end of the stream arrives at this pad, or at once when it
    /// has passed already: how the end of one branch is told from the end of all. Everything before the end has been
    /// handled by the element then; the end itself has not.
    @discardableResult
    package func onEndOfStream(_ body: @escaping @Sendable () -> Void) -> Probe {
        let isCalled = Flag()
        let probe = onEvent { event in
            guard case .endOfStream = event else { return .pass }
            if !isCalled.exchange(true) { body() }
            return .passAndRemove
        }
        // An input takes note of the end only once its element is through with it; the output before it has then.
        if isAtEndOfStream || (!isSource && peer?.isAtEndOfStream == true), !isCalled.exchange(true) {
            probe.remove()
            body()
        }
        return probe
    }

    /// Calls `body` once when nothing is on its way through this output: at once on this thread, or soon on the
    /// streaming thread. Nothing comes through until `body` returns: the output may be relinked inside.
    @discardableResult
    package func whenIdle(_ body: @escaping @Sendable () -> Void) -> Probe {
        attach(GST_PAD_PROBE_TYPE_IDLE, to: body as PlainBody) { _, _, data in
            guard let attached = Box<Attached<PlainBody>>.value(at: data) else { return GST_PAD_PROBE_REMOVE }
            attached.body()
            return attached.removal
        }
    }

    /// Holds back everything that comes downstream through this pad, from the next buffer or event on, until the probe
    /// is removed. Flushing frees it too.
    ///
    /// `onBlocked` is called once, on the streaming thread, when there is something to hold back: nothing is on its way
    /// behind the pad then. The pad may be relinked and the probe removed inside, or later on another thread.
    package func block(_ onBlocked: @escaping @Sendable () -> Void = {}) -> Probe {
        let isCalled = Flag()
        let body: PlainBody = { if !isCalled.exchange(true) { onBlocked() } }
        return attach(GST_PAD_PROBE_TYPE_BLOCK_DOWNSTREAM, to: body) { _, _, data in
            Box<Attached<PlainBody>>.value(at: data)?.body()
            return GST_PAD_PROBE_OK
        }
    }

    /// Holds back everything from the first buffer on for which `isFirst` answers true, such as a keyframe; that buffer
    /// is held back too. Events and buffers before it pass.
    package func block(
        from isFirst: @escaping @Sendable (borrowing PassingBuffer) -> Bool,
        _ onBlocked: @escaping @Sendable () -> Void = {}
    ) -> Probe {
        let isCalled = Flag()
        // Whether what comes is held back.
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
            // A probe that holds back must not change the buffer: no slot.
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
