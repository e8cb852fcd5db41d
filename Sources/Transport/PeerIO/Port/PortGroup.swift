internal import CDatagrams
internal import Glibc
internal import ICELite
internal import Synchronization

/// The media ports of several loops that share one UDP port, and the datagrams on their way between them.
///
/// The kernel chooses the loop that receives a datagram, by its addresses. If that is not the loop of its session, the
/// loop hands it over. Datagrams of one turn go together: one lock, and one wakeup.
package final class PortGroup: Sendable {
    /// The most loops of one port.
    package static let limit = ICECredentials.places

    let inboxes: [PortInbox]
    /// The ports with TCP, by place.
    private let ports = Mutex<[Int: LoopBound<MediaPort>]>([:])

    /// - Parameter count: how many loops share the port, 1...`limit`.
    package init(_ count: Int) {
        inboxes = (0..<count).map { _ in PortInbox() }
    }

    var count: Int { inboxes.count }

    func join(_ port: LoopBound<MediaPort>, at place: Int) { ports.withLock { $0[place] = port } }

    func leave(_ place: Int) { ports.withLock { _ = $0.removeValue(forKey: place) } }

    /// Passes a TCP connection on to the loop of its session. On any thread.
    func pass(_ transfer: StreamListener.Transfer, to place: Int) {
        let port = ports.withLock { $0[place] }
        let isTaken = port.map { port in port.loop.execute { port.value.adopt(transfer) } } ?? false
        if !isTaken { StreamListener.refuse(transfer) }
    }
}

/// Datagrams that pass from one loop to another, in order.
struct DatagramBundle: Sendable {
    enum Meaning {
        /// A check from the network.
        case check
        /// DTLS or media from the network.
        case media
        /// The response to a check that was handed over. To be sent on its pair, which the responding loop owns from now
        /// on.
        case answer
    }

    struct Item: Sendable {
        let meaning: Meaning
        let pair: AddressPair
        /// The place of the loop that handed it over.
        let from: Int
        let count: Int
    }

    private(set) var items: [Item] = []
    private(set) var bytes: [UInt8] = []

    var isEmpty: Bool { items.isEmpty }

    mutating func append(_ meaning: Meaning, _ datagram: UnsafeRawBufferPointer, on pair: AddressPair, from place: Int)
    {
        items.append(Item(meaning: meaning, pair: pair, from: place, count: datagram.count))
        bytes.append(contentsOf: datagram)
    }

    /// Appends the datagrams of another bundle, as far as `PortInbox` has room. Returns how many had none.
    mutating func append(_ other: borrowing DatagramBundle) -> Int {
        var refused = 0
        var start = 0
        for item in other.items {
            let end = start + item.count
            if items.count < PortInbox.room(for: item.meaning) {
                items.append(item)
                bytes.append(contentsOf: other.bytes[start..<end])
            } else {
                refused += 1
            }
            start = end
        }
        return refused
    }

    mutating func removeAll() {
        items.removeAll(keepingCapacity: true)
        bytes.removeAll(keepingCapacity: true)
    }
}

/// The datagrams that other loops handed over to one loop. Bounded: further ones are dropped and counted.
final class PortInbox: Sendable {
    /// How many datagrams may wait. Checks are handed over before they are authenticated, so a flood of them must leave
    /// room for media.
    static func room(for meaning: DatagramBundle.Meaning) -> Int { meaning == .check ? 512 : 2048 }

    /// Readable when datagrams wait, until `silence`. Negative if the process has no free descriptor; then the loop finds
    /// them when it next receives from the network.
    let bell = cdatagrams_bell()
    private let waiting = Mutex(DatagramBundle())
    private let hasMail = Atomic<Bool>(false)
    private let drops = Atomic<Int>(0)

    deinit { if bell >= 0 { close(bell) } }

    /// Datagrams that had no room.
    var dropped: Int { drops.load(ordering: .relaxed) }

    /// Takes the datagrams out of the bundle. On any thread.
    func add(_ bundle: inout DatagramBundle) {
        var refused = 0
        let wasEmpty = waiting.withLock { waiting in
            // The emptied bundle of the other loop comes back with its memory.
            guard waiting.isEmpty else {
                refused = waiting.append(bundle)
                return false
            }
            swap(&waiting, &bundle)
            hasMail.store(true, ordering: .releasing)
            return true
        }
        bundle.removeAll()
        if refused > 0 { drops.add(refused, ordering: .relaxed) }
        if wasEmpty { cdatagrams_ring(bell) }
    }

    /// Puts all waiting datagrams into an empty bundle. Costs one read of memory if none wait. On the loop that owns the
    /// inbox.
    func take(into bundle: inout DatagramBundle) {
        guard hasMail.load(ordering: .acquiring) else { return }
        waiting.withLock { waiting in
            swap(&waiting, &bundle)
            hasMail.store(false, ordering: .relaxed)
        }
    }

    /// Ends the ringing.
    func silence() { cdatagrams_silence(bell) }
}
