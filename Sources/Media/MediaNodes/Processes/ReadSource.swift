import Dispatch

/// Calls a function on a queue whenever a descriptor is readable, until it is cancelled or released.
// @unchecked: everything runs on the queue, or when no other code retains the value.
final class ReadSource: @unchecked Sendable {
    private let source: any DispatchSourceRead
    private let queue: DispatchQueue
    private var isHeld = false
    private var until = DispatchTime.now()
    private var isCancelled = false

    /// `owner` closes the descriptor when it is released. It is retained until the descriptor is no longer polled.
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

    /// Stops polling for this long, or for the longest earlier request, so that the writer has to wait.
    func hold(seconds: Double) {
        guard !isCancelled else { return }
        until = max(until, .now() + seconds)
        guard !isHeld else { return }
        isHeld = true
        source.suspend()
        resumeLater()
    }

    private func resumeLater() {
        queue.asyncAfter(deadline: until) { [weak self] in
            guard let self else { return }
            if until > .now() { resumeLater() } else { resume() }
        }
    }

    private func resume() {
        guard isHeld else { return }
        isHeld = false
        source.resume()
    }

    func cancel() {
        guard !isCancelled else { return }
        isCancelled = true
        source.cancel()
        // A suspended source would never end.
        resume()
    }
}
