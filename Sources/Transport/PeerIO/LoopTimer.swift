internal import CGLib
package import RTP

/// A timer on an event loop, armed and disarmed any number of times. Used on the loop only.
package final class LoopTimer {
    /// When the action runs; `.never` while disarmed.
    package private(set) var deadline = MonotonicTime.never

    private unowned let loop: EventLoop
    private let action: () -> Void
    // The heap keeps one live entry for a timer. Arming for later leaves it where it is: it is moved when it comes up,
    // so that a deadline that is pushed back again and again costs nothing.
    fileprivate var queued = MonotonicTime.never
    fileprivate var generation = 0

    init(loop: EventLoop, action: @escaping () -> Void) {
        self.loop = loop
        self.action = action
    }

    /// Runs the action once at `time`, instead of when it was armed for before.
    package func arm(at time: MonotonicTime) {
        deadline = time
        guard time < queued else { return }
        loop.insert(self, at: time)
    }

    package func disarm() {
        loop.preconditionOnLoop()
        deadline = .never
    }

    func fire(now: MonotonicTime) {
        if deadline <= now {
            deadline = .never
            action()
        } else if deadline < queued {
            loop.insert(self, at: deadline)
        }
    }
}

/// Timers by time, earliest first; those of the same time in the order they were armed.
struct TimerHeap {
    private struct Entry {
        var time: MonotonicTime
        var order: UInt64
        var generation: Int
        var timer: LoopTimer

        func isBefore(_ other: Entry) -> Bool { (time, order) < (other.time, other.order) }
    }

    private var entries: [Entry] = []
    private var order: UInt64 = 0

    var next: MonotonicTime { entries.first?.time ?? .never }

    mutating func insert(_ timer: LoopTimer, at time: MonotonicTime) {
        timer.generation += 1
        timer.queued = time
        order += 1
        entries.append(Entry(time: time, order: order, generation: timer.generation, timer: timer))
        var child = entries.count - 1
        while child > 0 {
            let parent = (child - 1) / 2
            guard entries[child].isBefore(entries[parent]) else { break }
            entries.swapAt(child, parent)
            child = parent
        }
    }

    /// The next timer whose entry is due, which may have been armed for later since.
    mutating func popDue(at now: MonotonicTime) -> LoopTimer? {
        while let first = entries.first, first.time <= now {
            removeFirst()
            // An entry that a later arming replaced says nothing any more.
            guard first.generation == first.timer.generation else { continue }
            first.timer.queued = .never
            return first.timer
        }
        return nil
    }

    private mutating func removeFirst() {
        entries.swapAt(0, entries.count - 1)
        entries.removeLast()
        var parent = 0
        while true {
            var smallest = parent
            for child in [2 * parent + 1, 2 * parent + 2] where child < entries.count {
                if entries[child].isBefore(entries[smallest]) { smallest = child }
            }
            guard smallest != parent else { return }
            entries.swapAt(parent, smallest)
            parent = smallest
        }
    }
}

/// A GLib source without a file descriptor that only wakes its context in time for the next timer; GLib counts its
/// time in microseconds of CLOCK_MONOTONIC and polls in milliseconds, rounding up.
struct Alarm {
    private let source: UnsafeMutablePointer<GSource>
    private let functions: UnsafeMutablePointer<GSourceFuncs>

    init(context: OpaquePointer) {
        functions = .allocate(capacity: 1)
        functions.initialize(to: GSourceFuncs())
        functions.pointee.dispatch = { source, _, _ in
            // Silent until armed again at the end of the turn.
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
