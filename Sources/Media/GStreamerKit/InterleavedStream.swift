internal import CGLib
internal import CGStreamer
import Synchronization

/// The sequence numbers of a stream that comes over one TCP connection (RFC 2326, section 10.12).
///
/// Nothing on the way loses or reorders its packets. A number that is missing was left out by the sender, and comes no more.
/// A relay may still pass on packets as UDP brought them: from the first one that returns into a gap, further gaps stay.
struct InterleavedNumbers {
    /// A number that is behind the newest by more begins a new sequence.
    private static let longestReturn = 100

    private var newest: UInt16?
    /// The latest numbers that were missing, the newest last.
    private var gaps: [UInt16] = []
    /// Whether the numbers may come out of order.
    private var isReordered = false
    /// The numbers that were missing so far.
    private(set) var missing: UInt16 = 0

    /// Returns the number without the gaps before it, and whether one ends here. Packets that return to an earlier number keep
    /// their place, so that a jitter buffer takes them for late ones.
    mutating func take(_ number: UInt16) -> (number: UInt16, endsGap: Bool) {
        guard let newest else {
            self.newest = number
            return (number, false)
        }
        let step = Int(Int16(bitPattern: number &- newest))
        if step > 0 || step < -Self.longestReturn { self.newest = number }
        if step < 0, step >= -Self.longestReturn, gaps.contains(number) { isReordered = true }
        guard step > 1, !isReordered else { return (number &- missing, false) }
        let latest = min(step - 1, Self.longestReturn)
        gaps = Array((gaps + (1...latest).reversed().map { number &- UInt16($0) }).suffix(Self.longestReturn))
        missing &+= UInt16(step - 1)
        return (number &- missing, true)
    }
}

extension Element {
    /// Lets the jitter buffers of an `rtspsrc` over TCP pass each packet on when it is there, without a wait for missing ones.
    /// Depayloaders learn of the gaps.
    package func closeGaps() {
        onSignal("new-manager", of: pointer) { arguments, _ in
            guard let manager = g_value_get_object(arguments + 1)?.assumingMemoryBound(to: GstElement.self) else {
                return
            }
            onSignal("new-jitterbuffer", of: manager) { arguments, _ in
                guard let buffer = g_value_get_object(arguments + 1)?.assumingMemoryBound(to: GstElement.self) else {
                    return
                }
                GapCloser.attach(to: buffer)
            }
        }
    }
}

/// Closes the gaps in the numbers of a jitter buffer's packets, and marks those after a gap when they leave.
final class GapCloser: Sendable {
    private struct State {
        var numbers = InterleavedNumbers()
        /// The new numbers of packets that end a gap, the oldest first.
        var ends: [UInt16] = []
    }

    /// The most gaps in a jitter buffer.
    private static let capacity = 256
    /// Of the sequence number in a packet (RFC 3550, section 5.1).
    private static let place: gsize = 2

    private let state = Mutex(State())

    static func attach(to jitterBuffer: UnsafeMutablePointer<GstElement>) {
        guard let input = gst_element_get_static_pad(jitterBuffer, "sink"),
            let output = gst_element_get_static_pad(jitterBuffer, "src")
        else { return }
        let closer = GapCloser()
        gst_pad_add_probe(
            input, GST_PAD_PROBE_TYPE_BUFFER,
            { _, info, data in
                guard let info, let closer = Box<GapCloser>.value(at: data) else { return GST_PAD_PROBE_OK }
                closer.enter(info)
                return GST_PAD_PROBE_OK
            }, Box(closer).retained, releaseBox)
        gst_pad_add_probe(
            output, GST_PAD_PROBE_TYPE_BUFFER,
            { _, info, data in
                guard let info, let closer = Box<GapCloser>.value(at: data) else { return GST_PAD_PROBE_OK }
                closer.leave(info)
                return GST_PAD_PROBE_OK
            }, Box(closer).retained, releaseBox)
        gst_object_unref(input)
        gst_object_unref(output)
    }

    private func enter(_ info: UnsafeMutablePointer<GstPadProbeInfo>) {
        guard let number = Self.number(of: info) else { return }
        let new = state.withLock { state in
            let (new, endsGap) = state.numbers.take(number)
            if endsGap, state.ends.count < Self.capacity { state.ends.append(new) }
            return new
        }
        guard new != number, let buffer = Self.writable(info) else { return }
        var bytes = [UInt8(new >> 8), UInt8(new & 0xff)]
        gst_buffer_fill(buffer, Self.place, &bytes, gsize(bytes.count))
    }

    private func leave(_ info: UnsafeMutablePointer<GstPadProbeInfo>) {
        guard state.withLock({ !$0.ends.isEmpty }), let number = Self.number(of: info) else { return }
        let endsGap = state.withLock { state in
            // Those before it were dropped in the jitter buffer.
            let isMarked = state.ends.contains(number)
            state.ends.removeAll { Int16(bitPattern: $0 &- number) <= 0 }
            return isMarked
        }
        guard endsGap, let buffer = Self.writable(info) else { return }
        buffer.pointee.mini_object.flags |= GST_BUFFER_FLAG_DISCONT.rawValue
    }

    private static func number(of info: UnsafeMutablePointer<GstPadProbeInfo>) -> UInt16? {
        guard let buffer = info.pointee.data?.assumingMemoryBound(to: GstBuffer.self) else { return nil }
        var bytes: [UInt8] = [0, 0]
        guard gst_buffer_extract(buffer, place, &bytes, gsize(bytes.count)) == bytes.count else { return nil }
        return UInt16(bytes[0]) << 8 | UInt16(bytes[1])
    }

    /// The buffer of a probe, for writing.
    private static func writable(_ info: UnsafeMutablePointer<GstPadProbeInfo>) -> UnsafeMutablePointer<GstBuffer>? {
        guard let data = info.pointee.data else { return nil }
        let object = gst_mini_object_make_writable(data.assumingMemoryBound(to: GstMiniObject.self))
        info.pointee.data = UnsafeMutableRawPointer(object)
        return UnsafeMutableRawPointer(object)?.assumingMemoryBound(to: GstBuffer.self)
    }
}
