internal import RTP

/// A session of an `ICELiteAgent`.
public struct ICESessionID: Hashable, Sendable {
    /// A small number that no other present session has, for a table of the caller's. Used again after `remove`.
    public let index: Int
    /// Tells sessions with one index apart.
    let serial: UInt32
}

/// The credentials of a session between two ICE restarts, and what is known of the peer that uses them.
struct Generation<Key: STUNKey> {
    let number: Int
    let ufrag: LocalUfrag
    let key: Key
    /// The peer's ufrag. Empty until its description has arrived, which its checks may overtake.
    var remoteUfrag: [UInt8] = []
    /// Whether the peer has checked a pair without nominating it. It then nominates the pair that it wants (RFC 8445,
    /// section 8.1.1). Otherwise, each of its checks nominates (RFC 5245, section 8.1.1.2).
    var choosesPairs = false
}

/// The pair that the peer nominated.
struct SelectedPair {
    let pair: AddressPair
    var priority: UInt32
    /// When the last authenticated check arrived on it.
    var checkedAt: MonotonicTime
}

struct SessionRecord<Key: STUNKey> {
    /// A pair from which an authenticated check has arrived.
    struct Checked {
        let pair: AddressPair
        var at: MonotonicTime
    }

    var serial: UInt32 = 0
    /// Nil in a record without a session.
    var current: Generation<Key>?
    /// The credentials of an ICE restart, until the peer nominates a pair with them.
    var next: Generation<Key>?
    /// At most `ICELiteAgent.pairLimit`. The selected one is among them.
    var pairs: [Checked] = []
    var selected: SelectedPair?
    /// The neighbours in the order of `SessionTable`.
    var before = -1
    var after = -1

    /// The position of the pair whose last check is the oldest. The selected pair does not count.
    var oldest: Int? {
        pairs.indices.filter { pairs[$0].pair != selected?.pair }.min { pairs[$0].at < pairs[$1].at }
    }
}

/// The sessions by index, and those with a selected pair in the order of its last check.
///
/// All pairs expire equally long after their last check, so this order is the order of expiry. A check moves its session to
/// the end, which costs the same for any number of sessions.
struct SessionTable<Key: STUNKey> {
    private var records: [SessionRecord<Key>] = []
    private var free: [Int] = []
    /// How often a record was accessed by its index, for tests.
    private(set) var accesses = 0
    /// The session whose selected pair expires first, and the one that was checked last. -1 without any.
    private(set) var first = -1
    private var last = -1

    var count: Int { records.count - free.count }

    subscript(index: Int) -> SessionRecord<Key> {
        mutating get {
            accesses += 1
            return records[index]
        }
        _modify {
            accesses += 1
            yield &records[index]
        }
    }

    mutating func add(_ generation: Generation<Key>) -> ICESessionID {
        if free.isEmpty {
            free.append(records.count)
            records.append(SessionRecord())
        }
        let index = free.removeLast()
        self[index].current = generation
        return ICESessionID(index: index, serial: self[index].serial)
    }

    /// Empties a record. The caller has taken it out of the order.
    mutating func remove(_ index: Int) {
        self[index] = SessionRecord(serial: self[index].serial &+ 1)
        free.append(index)
    }

    /// The record of a session. Nil if it was removed.
    func record(of session: ICESessionID) -> SessionRecord<Key>? {
        guard records.indices.contains(session.index), records[session.index].serial == session.serial else {
            return nil
        }
        return records[session.index]
    }

    /// The pair that expires first.
    var nextToExpire: SelectedPair? { first < 0 ? nil : records[first].selected }

    func id(at index: Int) -> ICESessionID { ICESessionID(index: index, serial: records[index].serial) }

    /// Moves a session to the end of the order, or adds it there.
    mutating func moveToEnd(_ index: Int) {
        leaveOrder(index)
        self[index].before = last
        if last >= 0 { self[last].after = index } else { first = index }
        last = index
    }

    /// Takes a session out of the order, if it is in it.
    mutating func leaveOrder(_ index: Int) {
        let (before, after) = (self[index].before, self[index].after)
        if before >= 0 { self[before].after = after } else if first == index { first = after }
        if after >= 0 { self[after].before = before } else if last == index { last = before }
        self[index].before = -1
        self[index].after = -1
    }
}
