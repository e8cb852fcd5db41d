package import RTP

/// A timer of a loop, armed and disarmed any number of times. On the loop only.
package final class LoopTimer {
    /// When the action runs. `.never` while disarmed.
    @exclusivity(unchecked) package private(set) var deadline = MonotonicTime.never

    private unowned let loop: Loop
    private let action: () -> Void
    // Arming for a later time does not move the timer in the heap. It moves when it comes up, so that postponing a
    // deadline repeatedly costs nothing.
    @exclusivity(unchecked) fileprivate var queued = MonotonicTime.never
    /// Its position in the heap. Nil while it is not in the heap.
    @exclusivity(unchecked) fileprivate var position: Int?

    init(loop: Loop, action: @escaping () -> Void) {
        self.loop = loop
        self.action = action
    }

    /// Runs the action once at `time`. Replaces an earlier time.
    package func arm(at time: MonotonicTime) {
        deadline = time
        guard time < queued else { return }
        loop.insert(self, at: time)
    }

    package func disarm() {
        deadline = .never
        loop.remove(self)
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

/// Armed timers by time, earliest first. Timers of the same time keep the order in which they were armed.
struct TimerHeap {
    /// Has the time and the order of its timer, so that comparisons touch no reference count.
    private struct Entry {
        var time: MonotonicTime
        var order: UInt64
        var timer: LoopTimer
    }

    private var entries: [Entry] = []
    private var order: UInt64 = 0

    var next: MonotonicTime { entries.first?.time ?? .never }
    var count: Int { entries.count }

    /// Adds the timer, or moves it to an earlier time.
    mutating func insert(_ timer: LoopTimer, at time: MonotonicTime) {
        order += 1
        timer.queued = time
        let entry = Entry(time: time, order: order, timer: timer)
        let position = position(of: timer) ?? entries.count
        if position == entries.count { entries.append(entry) } else { entries[position] = entry }
        timer.position = position
        rise(from: position)
    }

    /// Does nothing for a timer that is not in the heap.
    mutating func remove(_ timer: LoopTimer) {
        guard let position = position(of: timer) else { return }
        swap(position, entries.count - 1)
        entries.removeLast()
        timer.position = nil
        timer.queued = .never
        guard position < entries.count else { return }
        rise(from: position)
        sink(from: position)
    }

    /// The next timer that is due in the heap. It may have been armed for later since.
    mutating func popDue(at now: MonotonicTime) -> LoopTimer? {
        guard next <= now, let first = entries.first?.timer else { return nil }
        remove(first)
        return first
    }

    /// Nil for a timer that is not in the heap.
    private func position(of timer: LoopTimer) -> Int? {
        guard let position = timer.position, entries.indices.contains(position) else { return nil }
        return entries[position].timer === timer ? position : nil
    }

    private mutating func swap(_ a: Int, _ b: Int) {
        entries.swapAt(a, b)
        entries[a].timer.position = a
        entries[b].timer.position = b
    }

    private func isBefore(_ a: Int, _ b: Int) -> Bool {
        (entries[a].time, entries[a].order) < (entries[b].time, entries[b].order)
    }

    private mutating func rise(from position: Int) {
        var child = position
        while child > 0, isBefore(child, (child - 1) / 2) {
            swap(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
    }

    private mutating func sink(from position: Int) {
        var parent = position
        while let child = firstChild(of: parent), isBefore(child, parent) {
            swap(parent, child)
            parent = child
        }
    }

    /// The child that comes up before the other one.
    private func firstChild(of parent: Int) -> Int? {
        let (left, right) = (2 * parent + 1, 2 * parent + 2)
        guard left < entries.count else { return nil }
        return right < entries.count && isBefore(right, left) ? right : left
    }
}
