internal import CLinux
package import Dispatch
internal import Glibc
internal import Synchronization

/// Calls a function on a queue whenever a descriptor is readable or its other end has hung up, until it is cancelled or
/// released.
///
/// Callable on any thread.
///
/// This is not a source of Dispatch: when the other end of a pipe hangs up, Dispatch on Linux may free the memory of a source
/// that its own thread still reads (swift-corelibs-libdispatch, issue 949). A process that ended programs crashed now and
/// then.
package final class ReadSource: Sendable {
    private struct State {
        /// Closes the descriptor when it is released. Nil once the source is cancelled.
        var owner: (any AnyObject & Sendable)?
        /// The holds that have not ended.
        var holds = 0
    }

    private let descriptor: Int32
    private let queue: DispatchQueue
    private let body: @Sendable () -> Void
    private let state: Mutex<State>
    private let id: UInt64
    private let poll: DescriptorPoll

    /// Seconds between the calls for a descriptor that the kernel does not poll, for example because the process has no free
    /// descriptor for epoll(7).
    private static let fallback = 0.1

    /// `owner` closes the descriptor when it is released. It is retained until the descriptor is no longer polled. `body` must
    /// not block.
    package convenience init(
        _ descriptor: Int32, of owner: any AnyObject & Sendable, on queue: DispatchQueue,
        _ body: @escaping @Sendable () -> Void
    ) {
        self.init(descriptor, of: owner, on: queue, with: .shared, body)
    }

    init(
        _ descriptor: Int32, of owner: any AnyObject & Sendable, on queue: DispatchQueue, with poll: DescriptorPoll,
        _ body: @escaping @Sendable () -> Void
    ) {
        (self.descriptor, self.queue, self.body, self.poll) = (descriptor, queue, body, poll)
        state = Mutex(State(owner: owner))
        id = poll.newID()
        poll.add(self, id)
        arm()
    }

    deinit {
        cancel()
    }

    /// Stops polling for this long, or for the longest earlier request, so that the writer has to wait.
    package func hold(seconds: Double) {
        state.withLock { $0.holds += 1 }
        queue.asyncAfter(deadline: .now() + seconds) { [weak self] in
            self?.state.withLock { $0.holds -= 1 }
            self?.arm()
        }
    }

    package func cancel() {
        let owner = state.withLock { state in
            defer { state.owner = nil }
            if state.owner != nil { poll.remove(id, descriptor) }
            return state.owner
        }
        // The function may be reading.
        if let owner { queue.async { withExtendedLifetime(owner) {} } }
    }

    /// The descriptor is readable, and is not polled until the function has returned.
    fileprivate func isReadable() {
        queue.async { [weak self] in self?.call() }
    }

    private func call() {
        let owner = state.withLock { $0.holds == 0 ? $0.owner : nil }
        guard let owner else { return }
        withExtendedLifetime(owner, body)
        arm()
    }

    private func arm() {
        // Under the lock: a descriptor of the same number may be another one after `cancel`.
        let isPolled = state.withLock { state in
            state.owner == nil || state.holds > 0 || poll.arm(id, descriptor)
        }
        if !isPolled { queue.asyncAfter(deadline: .now() + Self.fallback) { [weak self] in self?.call() } }
    }
}

/// The thread that polls the descriptors of all sources.
final class DescriptorPoll: Sendable {
    private struct Reference {
        weak var source: ReadSource?
    }

    static let shared = DescriptorPoll()

    private let sources = Mutex<[UInt64: Reference]>([:])
    private let last = Atomic<UInt64>(0)
    private let make: @Sendable () -> Int32
    /// Of epoll(7). Negative until the process had a free descriptor for it.
    private let poll = Atomic<Int32>(-1)
    private let making = Mutex<Void>(())

    /// `make` returns a descriptor of epoll(7), or a negative number. Tests let it fail.
    init(_ make: @escaping @Sendable () -> Int32 = DescriptorPoll.newDescriptor) {
        self.make = make
    }

    @Sendable static func newDescriptor() -> Int32 { clinux_poll() }

    /// Events may arrive late, so no id is used again, unlike descriptors and addresses.
    fileprivate func newID() -> UInt64 { last.add(1, ordering: .relaxed).newValue }

    fileprivate func add(_ source: ReadSource, _ id: UInt64) { sources.withLock { $0[id] = Reference(source: source) } }

    /// Reports the next event of a descriptor, once. Returns whether it will.
    fileprivate func arm(_ id: UInt64, _ descriptor: Int32) -> Bool {
        let poll = made()
        return poll >= 0 && clinux_poll_once(poll, descriptor, id) == 0
    }

    fileprivate func remove(_ id: UInt64, _ descriptor: Int32) {
        _ = sources.withLock { $0.removeValue(forKey: id) }
        let poll = poll.load(ordering: .acquiring)
        if poll >= 0 { clinux_poll_no_more(poll, descriptor) }
    }

    /// The descriptor of epoll(7). Makes it, and starts the thread, if there was no free descriptor before.
    private func made() -> Int32 {
        let poll = poll.load(ordering: .acquiring)
        if poll >= 0 { return poll }
        return making.withLock { _ in
            let former = self.poll.load(ordering: .acquiring)
            if former >= 0 { return former }
            let new = make()
            guard new >= 0 else { return new }
            self.poll.store(new, ordering: .releasing)
            // A queue of its own is a thread of its own while it is busy.
            DispatchQueue(label: "media.poll").async { self.run(new) }
            return new
        }
    }

    private func run(_ poll: Int32) -> Never {
        var ids = [UInt64](repeating: 0, count: 16)
        while true {
            let count = clinux_polled(poll, &ids, Int32(ids.count))
            let found = ids.prefix(Int(max(0, count)))
            let ready = sources.withLock { sources in found.compactMap { sources[$0]?.source } }
            for source in ready { source.isReadable() }
        }
    }
}
