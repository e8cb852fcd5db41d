import Dispatch

/// Something to do at a time, unless it is cancelled before. Cancelled or let go, it leaves neither a timer behind nor
/// what its function holds.
final class Timeout: Sendable {
    // Sources of Dispatch may be used from every thread.
    private nonisolated(unsafe) let timer: any DispatchSourceTimer

    /// `body` is given the timeout, to set it anew where the time was too short.
    init(at deadline: DispatchTime, on queue: DispatchQueue, _ body: @escaping @Sendable (Timeout) -> Void) {
        timer = DispatchSource.makeTimerSource(queue: queue)
        timer.setEventHandler { [weak self] in
            if let self { body(self) }
        }
        set(deadline)
        timer.resume()
    }

    deinit {
        cancel()
    }

    func set(_ deadline: DispatchTime) {
        timer.schedule(deadline: deadline)
    }

    func cancel() {
        timer.cancel()
    }
}
