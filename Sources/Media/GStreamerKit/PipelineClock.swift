internal import CGLib
internal import CGStreamer
package import MediaGraph

/// The clock that a pipeline's sources and sinks wait for. The corresponding C type is `GstClock`.
// @unchecked: the pointer never changes, and a GstClock has its own locks.
package final class PipelineClock: @unchecked Sendable {
    /// CLOCK_MONOTONIC, the clock of every pipeline outside of tests.
    package static let monotonic: PipelineClock = {
        GStreamer.load()
        guard let clock = gst_system_clock_obtain() else { preconditionFailure("GStreamer has no system clock") }
        return PipelineClock(takingOwnership: clock)
    }()

    let pointer: UnsafeMutablePointer<GstClock>

    private init(takingOwnership pointer: UnsafeMutablePointer<GstClock>) {
        self.pointer = pointer
    }

    /// Retains a `GstClock` that other code made, such as the stepped clock of tests.
    package init(gstClock: UnsafeMutableRawPointer) {
        pointer = gstClock.assumingMemoryBound(to: GstClock.self)
        gst_object_ref(pointer)
    }

    deinit { gst_object_unref(pointer) }

    package var now: MediaTime { MediaTime(nanoseconds: UInt64(gst_clock_get_time(pointer))) }
}
