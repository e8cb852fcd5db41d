internal import CGLib
internal import CGStreamer
import Synchronization

/// What a contained input did before, and whether its errors stop there.
private final class Containment: Sendable {
    let original: GstPadChainFunction
    /// Whether the pad also takes buffers after its end, and drops them.
    let containsEnd = Flag()
    let isContained: Mutex<@Sendable () -> Bool>

    init(original: GstPadChainFunction, isContained: @escaping @Sendable () -> Bool) {
        self.original = original
        self.isContained = Mutex(isContained)
    }
}

extension Pad {
    /// Lets an error behind this input end there: while `isContained` answers true, whoever pushes into the pad is told
    /// that all is well, so that a tee goes on feeding its other branches. Where nothing is on its way through the pad;
    /// what was said before for the same pad no longer holds.
    ///
    /// The function that takes buffers is wrapped, not a probe: a probe sees a buffer before it is taken and never what
    /// came of it. Lists of buffers are taken buffer by buffer by pads that have no function for lists of their own.
    package func containErrors(while isContained: @escaping @Sendable () -> Bool) {
        containment?.isContained.withLock { $0 = isContained }
    }

    /// Drops buffers that come after the element has ended its stream, instead of answering that the stream has ended:
    /// a tee takes that answer for the end of all its branches.
    package func containEnd() {
        containment?.containsEnd.raise()
    }

    /// The wrapper of the pad's chain function, made when it is first wanted; nil for a pad without such a function.
    private var containment: Containment? {
        guard let original = pointer.pointee.chainfunc else { return nil }
        if unsafeBitCast(original, to: Int.self) == unsafeBitCast(containedChain, to: Int.self) {
            return Box<Containment>.value(at: pointer.pointee.chaindata)
        }
        let containment = Containment(original: original, isContained: { false })
        gst_pad_set_chain_function_full(pointer, containedChain, Box(containment).retained, releaseBox)
        return containment
    }
}

/// Hands a buffer on and keeps an error of what follows to itself.
private let containedChain: GstPadChainFunction = { pad, parent, buffer in
    guard let pad, let containment = Box<Containment>.value(at: pad.pointee.chaindata) else { return GST_FLOW_ERROR }
    let result = containment.original(pad, parent, buffer)
    if result == GST_FLOW_EOS, containment.containsEnd.value { return GST_FLOW_OK }
    guard result.rawValue <= GST_FLOW_NOT_NEGOTIATED.rawValue else { return result }
    return containment.isContained.withLock { $0 }() ? GST_FLOW_OK : result
}
