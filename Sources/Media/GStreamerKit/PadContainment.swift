internal import CGLib
internal import CGStreamer
import Synchronization

/// The effect of an error downstream of a pad.
package enum ErrorContainment: Sendable {
    /// The error goes upstream, and stops the elements that feed the pad.
    case none
    /// The error ends at the pad, and is posted on the bus as an error of the pad's element.
    case reported
    /// The error ends at the pad, and is not posted.
    case silent
}

/// The original functions of a contained input, and the rules for its errors and its end.
private final class Containment: Sendable {
    let chain: GstPadChainFunction
    let chainList: GstPadChainListFunction?
    let answer = Mutex<@Sendable () -> ErrorContainment>({ .none })
    /// Whether the pad also accepts buffers after its end, and drops them.
    let containsEnd = AtomicBool()
    private let hasReported = AtomicBool()

    init(_ chain: @escaping GstPadChainFunction, _ chainList: GstPadChainListFunction?) {
        self.chain = chain
        self.chainList = chainList
    }

    /// The result to return upstream: `GST_FLOW_OK` for a contained one. Reports the first contained error of a pad. An
    /// end that the element returns counts as an error: a tee takes it for the end of all its branches.
    func contain(_ result: GstFlowReturn, at pad: UnsafeMutablePointer<GstPad>) -> GstFlowReturn {
        if result == GST_FLOW_EOS, containsEnd.value { return GST_FLOW_OK }
        guard result.rawValue <= GST_FLOW_EOS.rawValue else { return result }
        switch answer.withLock({ $0 })() {
        case .none: return result
        case .silent: return GST_FLOW_OK
        case .reported:
            if !hasReported.exchange(true) { report(result, at: pad) }
            return GST_FLOW_OK
        }
    }

    /// Posts the message that a source or queue posts when an error ends its stream.
    private func report(_ result: GstFlowReturn, at pad: UnsafeMutablePointer<GstPad>) {
        guard let element = gst_pad_get_parent_element(pad) else { return }
        defer { gst_object_unref(element) }
        let reason = String(cString: gst_flow_get_name(result))
        gst_element_message_full(
            element, GST_MESSAGE_ERROR, gst_stream_error_quark(), Int32(GST_STREAM_ERROR_FAILED.rawValue),
            g_strdup("Internal data stream error."), g_strdup("streaming stopped, reason \(reason)"), #fileID,
            #function, Int32(#line))
    }
}

/// The key under which a pad stores its containment.
private let containmentKey = "connectlive-containment"

extension Pad {
    /// Contains errors and ends downstream of this input, as `answer` decides: the pad returns success upstream, so that a tee
    /// continues to feed its other branches. This holds for buffers and for lists of buffers.
    ///
    /// Call it while nothing flows through the pad; a later call replaces `answer`. The pad's functions are wrapped,
    /// because a probe sees a buffer before the pad accepts it, never the result. GStreamer's `errorignore` is no
    /// replacement: it reports nothing, and costs an element in every branch.
    package func containErrors(_ answer: @escaping @Sendable () -> ErrorContainment) {
        containment?.answer.withLock { $0 = answer }
    }

    /// Drops buffers that arrive after the element has ended its stream. Otherwise the pad returns the end of the
    /// stream, which a tee takes for the end of all its branches.
    package func containEnd() {
        containment?.containsEnd.raise()
    }

    /// The wrapper of the pad's functions, created on first use; nil for a pad without a chain function.
    private var containment: Containment? {
        if let existing = Box<Containment>.value(at: g_object_get_data(asGObject, containmentKey)) { return existing }
        guard let chain = pointer.pointee.chainfunc else { return nil }
        let containment = Containment(chain, pointer.pointee.chainlistfunc)
        g_object_set_data_full(asGObject, containmentKey, Box(containment).retained, releaseBox)
        gst_pad_set_chain_function_full(pointer, containedChain, Box(containment).retained, releaseBox)
        if containment.chainList != nil {
            gst_pad_set_chain_list_function_full(pointer, containedChainList, Box(containment).retained, releaseBox)
        }
        return containment
    }
}

private let containedChain: GstPadChainFunction = { pad, parent, buffer in
    guard let pad, let containment = Box<Containment>.value(at: pad.pointee.chaindata) else { return GST_FLOW_ERROR }
    return containment.contain(containment.chain(pad, parent, buffer), at: pad)
}

private let containedChainList: GstPadChainListFunction = { pad, parent, list in
    guard let pad, let containment = Box<Containment>.value(at: pad.pointee.chainlistdata),
        let chainList = containment.chainList
    else { return GST_FLOW_ERROR }
    return containment.contain(chainList(pad, parent, list), at: pad)
}
