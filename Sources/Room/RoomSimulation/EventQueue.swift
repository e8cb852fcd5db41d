internal import ICELite
internal import RTP

/// Everything that happens next, by time. Events of the same time keep the order in which they were added.
struct EventQueue {
    enum Event {
        case action(() -> Void)
        case arrival(Datagram)
    }

    /// Without references, which would be counted at each move.
    private struct Entry {
        var time: MonotonicTime
        var order: UInt64
        /// In `events`.
        var place: Int

        func isBefore(_ other: Entry) -> Bool { time != other.time ? time < other.time : order < other.order }
    }

    private var heap: [Entry] = []
    private var events: [Event?] = []
    private var free: [Int] = []
    private var order: UInt64 = 0

    /// The time of the next event. `.never` without one.
    var next: MonotonicTime { heap.isEmpty ? .never : heap[0].time }

    mutating func insert(_ event: Event, at time: MonotonicTime) {
        order += 1
        let place: Int
        if let last = free.popLast() {
            place = last
            events[place] = event
        } else {
            place = events.count
            events.append(event)
        }
        heap.append(Entry(time: time, order: order, place: place))
        var child = heap.count - 1
        while child > 0, heap[child].isBefore(heap[(child - 1) / 2]) {
            heap.swapAt(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
    }

    mutating func popFirst() -> Event? {
        guard let first = heap.first, let last = heap.popLast() else { return nil }
        if !heap.isEmpty { sink(last) }
        free.append(first.place)
        let event = events[first.place]
        events[first.place] = nil
        return event
    }

    /// Puts an entry in the place of the first one, and moves it down.
    private mutating func sink(_ entry: Entry) {
        var parent = 0
        while true {
            var child = 2 * parent + 1
            guard child < heap.count else { break }
            if child + 1 < heap.count, heap[child + 1].isBefore(heap[child]) { child += 1 }
            guard heap[child].isBefore(entry) else { break }
            heap[parent] = heap[child]
            parent = child
        }
        heap[parent] = entry
    }
}

/// A datagram on its way, reused for a later one when it has arrived.
final class Datagram {
    enum Receiver {
        case server(port: UInt16)
        case client(Int)
    }

    private(set) var receiver = Receiver.client(0)
    /// The client's end of the way.
    private(set) var address = TransportAddress(ipv4: 0, port: 0)
    private var packet = PacketBuffer()

    func fill(_ bytes: Span<UInt8>, to receiver: Receiver, _ address: TransportAddress) {
        packet.count = 0
        packet.append(bytes)
        self.receiver = receiver
        self.address = address
    }

    func read(_ body: (Span<UInt8>) -> Void) {
        let bytes = packet.bytes
        body(bytes.span.extracting(0..<packet.count))
    }
}
