import Dispatch

/// Calls a function on a queue whenever there is something to read, until it is cancelled or let go.
// @unchecked: everything happens on the queue, or when nobody else holds the value any more.
final class Readiness: @unchecked Sendable {
    private let source: any DispatchSourceRead
    private let queue: DispatchQueue
    private var isHeld = false
    private var until = DispatchTime.now()
    private var isCancelled = false

    /// `owner` closes the descriptor when it goes; it is kept until nobody looks at the descriptor any more.
    init(
        _ descriptor: Int32, of owner: any AnyObject & Sendable, on queue: DispatchQueue,
        _ body: @escaping @Sendable () -> Void
    ) {
        self.queue = queue
        source = DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: queue)
        source.setEventHandler(handler: body)
        source.setCancelHandler { withExtendedLifetime(owner) {} }
        source.resume()
    }

    deinit {
        cancel()
    }

    /// Does not look for so long, or as long as it was told before: whoever writes has to wait.
    func hold(seconds: Double) {
        guard !isCancelled else { return }
        until = max(until, .now() + seconds)
        guard !isHeld else { return }
        isHeld = true
        source.suspend()
        letGoLater()
    }

    private func letGoLater() {
        queue.asyncAfter(deadline: until) { [weak self] in
            guard let self else { return }
            if until > .now() { letGoLater() } else { letGo() }
        }
    }

    private func letGo() {
        guard isHeld else { return }
        isHeld = false
        source.resume()
    }

    func cancel() {
        guard !isCancelled else { return }
        isCancelled = true
        source.cancel()
        // One that is held would never come to its end.
        letGo()
    }
}
