internal import CGLib
internal import RTP

/// A GLib source without a file descriptor that wakes its context for the next timer. GLib counts its time in
/// microseconds of CLOCK_MONOTONIC and polls in milliseconds, rounded up.
struct Alarm {
    private let source: UnsafeMutablePointer<GSource>
    private let functions: UnsafeMutablePointer<GSourceFuncs>

    init(context: OpaquePointer) {
        functions = .allocate(capacity: 1)
        functions.initialize(to: GSourceFuncs())
        functions.pointee.dispatch = { source, _, _ in
            // Disarmed until the end of the turn.
            if let source { g_source_set_ready_time(source, -1) }
            return 1
        }
        guard let source = g_source_new(functions, guint(MemoryLayout<GSource>.size)) else {
            fatalError("GLib made no source")
        }
        self.source = source
        g_source_attach(source, context)
    }

    func ring(at time: MonotonicTime) {
        g_source_set_ready_time(source, time == .never ? -1 : gint64((time.nanoseconds + 999) / 1000))
    }

    func remove() {
        g_source_destroy(source)
        g_source_unref(source)
        functions.deallocate()
    }
}
