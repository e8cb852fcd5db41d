internal import CDatagrams
internal import CGLib
internal import Glibc
internal import RTP

/// One iteration of a GLib main context in its parts, so that a loop knows when it waits. On the loop's thread only, from
/// `init` to `end`.
final class SocketWait {
    private let context: OpaquePointer
    private var descriptors = [GPollFD](repeating: GPollFD(), count: 16)
    private var count = 0
    private var priority: gint = 0
    private var timeout: gint = 0

    init(context: OpaquePointer) {
        self.context = context
        let isFree = g_main_context_acquire(context) != 0
        precondition(isFree, "another thread runs the loop's context")
    }

    func end() { g_main_context_release(context) }

    /// Asks the sources for their descriptors and times.
    func prepare(mayWait: Bool) {
        g_main_context_prepare(context, &priority)
        while true {
            count = Int(
                g_main_context_query(context, priority, &timeout, &descriptors, gint(descriptors.count)))
            guard count > descriptors.count else { break }
            descriptors += [GPollFD](repeating: GPollFD(), count: count - descriptors.count)
        }
        if !mayWait { timeout = 0 }
    }

    /// Waits for a descriptor, the time of a source, or `end`. The kernel adds up to 50 µs.
    ///
    /// Timers are not a GLib source, because GLib wakes its own thread whenever the time of a source changes.
    func wait(until end: MonotonicTime, now: MonotonicTime) {
        var limit = timeout < 0 ? Int64.max : Int64(timeout) * 1_000_000
        if end != .never { limit = min(limit, max(0, (end - now).nanoseconds)) }
        descriptors.withUnsafeMutableBytes { bytes in
            // GPollFD is struct pollfd on Linux, as its documentation says.
            cdatagrams_wait(
                bytes.assumingMemoryBound(to: pollfd.self).baseAddress, count, limit == .max ? -1 : limit)
        }
    }

    /// Calls the sources that are ready.
    func dispatch() {
        if g_main_context_check(context, priority, &descriptors, gint(count)) != 0 { g_main_context_dispatch(context) }
    }
}
