import Dispatch

/// A function to call at a time, unless it is cancelled before. Once cancelled or released, it leaves neither a timer
/// nor retained objects.
final class Timeout: Sendable {
    // Sources of Dispatch may be used from every thread.
    private nonisolated(unsafe) let timer: any DispatchSourceTimer

    /// `body` gets the timeout, to set it again if the time was too short.
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
