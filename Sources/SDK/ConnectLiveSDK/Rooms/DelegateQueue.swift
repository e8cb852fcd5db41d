internal import Dispatch
internal import RoomProtocol
internal import Synchronization

/// Passes the events of one room to its delegate and its sequences, and the results of its calls to their completions, in order, on the
/// callback queue. It retains neither the delegate nor the sequences.
///
/// Two rules hold for calls on any thread: no event follows `onDisconnected`, and after `leave()` only `onDisconnected`
/// follows. Completions follow in any case. `EventBacklog` has the rules for events that wait.
final class DelegateQueue: Sendable {
    /// How many events and completions of a room may wait. One more ends the room, and a completion is delivered nevertheless.
    static let capacity = 4096

    /// The delegate and the sequences, for an event with this key.
    struct Audience {
        /// Nil if the application has released it, or never had one.
        fileprivate let delegate: (any RoomDelegate)?
        fileprivate let sequences: [EventBuffer]
        fileprivate let key: EventKey?

        func tell(_ event: RoomEvents.Event) {
            for sequence in sequences { sequence.add(event, replacing: key) }
            if let delegate { event.tell(delegate) }
        }
    }

    private struct State {
        var backlog = EventBacklog<@Sendable () -> Void>()
        var hasLeft = false
        var hasEnded = false
        /// Whether `onDisconnected` was delivered.
        var isOver = false
        var sequences: [Reader] = []
    }

    private struct Reader {
        weak var buffer: EventBuffer?
    }

    /// Sendable by hand: it never changes, reading a weak reference is atomic, and the delegate is called only on the
    /// callback queue.
    private struct Reference: @unchecked Sendable {
        weak let delegate: (any RoomDelegate)?
    }

    private let state = Mutex(State())
    /// Called if completions exceed `capacity`, on a global queue: who makes a call may hold a lock.
    private let onOverflow = Mutex<(@Sendable () -> Void)?>(nil)
    private let reference: Reference
    private let queue: CallbackQueue

    init(_ delegate: (any RoomDelegate)?, queue: CallbackQueue = .shared) {
        reference = Reference(delegate: delegate)
        self.queue = queue
    }

    deinit { endSequences() }

    /// The events from now on.
    var events: RoomEvents {
        let buffer = EventBuffer()
        let isOver = state.withLock { state in
            state.sequences.removeAll { $0.buffer == nil }
            state.sequences.append(Reader(buffer: buffer))
            return state.isOver
        }
        if isOver { buffer.end() }
        return RoomEvents(buffer: buffer)
    }

    private func audience(_ key: EventKey? = nil) -> Audience {
        Audience(
            delegate: reference.delegate, sequences: state.withLock { $0.sequences }.compactMap(\.buffer), key: key)
    }

    private func endSequences() {
        let sequences = state.withLock { state in
            state.isOver = true
            return state.sequences
        }
        for sequence in sequences { sequence.buffer?.end() }
    }

    /// Queues an event. Does nothing after `leave()` and `end(...)`. Returns false if `capacity` entries wait.
    ///
    /// - Parameters:
    ///   - key: the kind of an event that replaces a waiting one of the same kind. Nil for an event that is always reported.
    ///   - event: called on the callback queue
    func tell(replacing key: EventKey? = nil, _ event: @escaping @Sendable (Audience) -> Void) -> Bool {
        let entry = { @Sendable [self] in
            if !state.withLock({ $0.hasLeft }) { event(audience(key)) }
        }
        // Queued under the lock, so that no event follows the last one.
        return state.withLock { state in
            guard !state.hasLeft, !state.hasEnded else { return true }
            if let key, state.backlog.replace(key, with: entry) { return true }
            guard state.backlog.count < Self.capacity else { return false }
            append(entry, key, to: &state)
            return true
        }
    }

    /// The application called `disconnect()`: waiting events are dropped.
    func leave() {
        let sequences = state.withLock { state in
            state.hasLeft = true
            return state.sequences
        }
        for sequence in sequences { sequence.buffer?.leave() }
    }

    /// Queues the error that ended the room, then `onDisconnected`. After `leave`, the error is omitted. A second end
    /// does nothing.
    func end(_ reason: DisconnectReason, _ error: RoomError?) {
        state.withLock { state in
            guard !state.hasEnded else { return }
            state.hasEnded = true
            append(
                { [self] in
                    let audience = audience()
                    if let error, !self.state.withLock({ $0.hasLeft }) {
                        audience.tell(.error(error, isCritical: true))
                    }
                    audience.tell(.disconnected(reason: reason))
                    endSequences()
                }, nil, to: &state)
        }
    }

    /// Queues the result of a call, even after the end.
    func complete(_ body: @escaping @Sendable () -> Void) {
        let isTooMuch = state.withLock { state in
            append(body, nil, to: &state)
            return state.backlog.count > Self.capacity && !state.hasEnded
        }
        if isTooMuch, let overflow = onOverflow.withLock({ $0 }) { DispatchQueue.global().async(execute: overflow) }
    }

    func setOverflow(_ body: @escaping @Sendable () -> Void) { onOverflow.withLock { $0 = body } }

    /// Queues the error of a call, even after the end.
    func answer(_ error: RoomError) {
        complete { [self] in audience().tell(.error(error, isCritical: false)) }
    }

    private func append(
        _ entry: @escaping @Sendable () -> Void, _ key: EventKey?, to state: inout State
    ) {
        if state.backlog.append(entry, key) { queue.run { [self] in deliver() } }
    }

    /// On the callback queue. Entries that arrive meanwhile get a turn of their own, so that the application's queue can serve
    /// others in between.
    private func deliver() {
        let end = state.withLock { $0.backlog.beginTurn() }
        while let entry = state.withLock({ $0.backlog.next(before: end) }) { entry.body?() }
    }
}

/// The kind of an event of which only the latest matters.
enum EventKey: Hashable {
    case state(Int)
    case quality(Int)
    case slot(Int)
    case loudspeaker
    case statistics

    fileprivate var cancelsItself: Bool { if case .slot = self { true } else { false } }
}

/// The events of a room that wait, and its completions among them, in their order. A value.
///
/// An event with a key replaces one of the same key that waits, at its place, unless one without a key was added in between.
/// Two slot events of a stream that both wait are none: they are opposites.
struct EventBacklog<Body> {
    struct Entry {
        /// Nil for two events that are none.
        var body: Body?
    }

    private var entries: [Int: Entry] = [:]
    /// The numbers of the first entry and of the next new one.
    private var first = 0
    private var last = 0
    /// The entries that can be replaced.
    private var places: [EventKey: Int] = [:]
    private var isScheduled = false

    var count: Int { last - first }

    /// Replaces a waiting entry of this key. Returns false if there is none.
    mutating func replace(_ key: EventKey, with body: Body) -> Bool {
        guard let place = places[key], place >= first, let entry = entries[place] else { return false }
        entries[place]?.body = key.cancelsItself && entry.body != nil ? nil : body
        return true
    }

    /// Adds an entry. Returns whether the owner has to schedule a turn.
    mutating func append(_ body: Body, _ key: EventKey?) -> Bool {
        entries[last] = Entry(body: body)
        // Entries do not change places with one that has no key.
        if let key { places[key] = last } else { places = [:] }
        last += 1
        defer { isScheduled = true }
        return !isScheduled
    }

    /// Begins a turn. Returns the number of the first entry that is not part of it.
    mutating func beginTurn() -> Int {
        isScheduled = false
        return last
    }

    /// Takes the next entry of a turn. Nil at its end.
    mutating func next(before end: Int) -> Entry? {
        guard first < end else { return nil }
        defer { first += 1 }
        return entries.removeValue(forKey: first)
    }
}
