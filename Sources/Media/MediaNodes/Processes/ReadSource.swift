import Dispatch

/// Calls a function on a queue whenever a descriptor is readable, until it is cancelled or released.
final class ReadSource: Sendable {
    // Sources of Dispatch may be used from every thread.
    private nonisolated(unsafe) let source: any DispatchSourceRead
    private let queue: DispatchQueue

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

    /// Stops polling for this long, or for the longest earlier request, so that the writer has to wait. A source that is
    /// cancelled meanwhile releases its owner afterwards.
    func hold(seconds: Double) {
        // Dispatch counts suspensions. A suspended source must not be released.
        source.suspend()
        queue.asyncAfter(deadline: .now() + seconds) { self.source.resume() }
    }

    func cancel() {
        source.cancel()
    }
}
