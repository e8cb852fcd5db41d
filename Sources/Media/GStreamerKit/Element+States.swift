internal import CGLib
internal import CGStreamer
import MediaGraph

/// The state of an element. The corresponding C type is `GstState`.
package enum ElementState: Int, Sendable {
    case null = 1
    case ready
    case paused
    case playing

    var value: GstState { GstState(UInt32(rawValue)) }

    init?(_ state: GstState) {
        self.init(rawValue: Int(state.rawValue))
    }
}

/// States. Except for reading, none of these may be called on a streaming thread of the element.
extension Element {
    /// Changes the element's state, through the states between. Blocks if the element does. Returns false if it refuses;
    /// the bus has the reason. A change to `paused` or `playing` may continue in the background.
    @discardableResult
    package func setState(_ state: ElementState) -> Bool {
        gst_element_set_state(pointer, state.value) != GST_STATE_CHANGE_FAILURE
    }

    /// The state that the element is in.
    package var state: ElementState {
        var state = GST_STATE_NULL
        gst_element_get_state(pointer, &state, nil, 0)
        return ElementState(state) ?? .null
    }

    /// Whether a state change is in progress, which the driver may delay.
    package var isChangingState: Bool {
        var pending = GST_STATE_VOID_PENDING
        gst_element_get_state(pointer, nil, &pending, 0)
        return pending != GST_STATE_VOID_PENDING
    }

    /// Brings the element to READY and back to NULL: whether its device or display can be opened.
    package func canOpen() -> Bool {
        defer { close() }
        return setState(.ready)
    }

    package func close() { setState(.null) }

    /// Changes an element of a running pipeline to the pipeline's state. Returns false if it refuses; the bus has the
    /// reason.
    @discardableResult
    package func followPipeline() -> Bool {
        gst_element_sync_state_with_parent(pointer) != 0
    }

    /// Lets a file sink open its file when its first data arrives: opening empties a file. Call this before it plays, when
    /// its input is linked.
    package func openWithFirstData(_ path: String) {
        guard let output = sink.peer else { preconditionFailure("a sink without a source writes nothing") }
        // A failed start brings all elements of a pipeline to READY, also those whose state is locked.
        _ = trySet("location", "/dev/null")
        output.onFirstUse { [self] in
            gst_element_set_locked_state(pointer, 1)
            close()
            _ = trySet("location", .text(path))
            gst_element_set_locked_state(pointer, 0)
            followPipeline()
        }
    }
}

/// Whether media is live, and its latency. In nanoseconds.
package struct Latency: Sendable, Equatable {
    package let isLive: Bool
    package let minimum: UInt64
    /// How much can be buffered. Nil means no limit.
    package let maximum: UInt64?

    init?(_ query: UnsafeMutablePointer<GstQuery>?) {
        guard let query else { return nil }
        var isLive: gboolean = 0
        var minimum: UInt = 0
        var maximum: UInt = 0
        gst_query_parse_latency(query, &isLive, &minimum, &maximum)
        self.isLive = isLive != 0
        self.minimum = UInt64(minimum)
        self.maximum = maximum == UInt.max ? nil : UInt64(maximum)
    }
}
