internal import PeerIO
internal import PeerLoop
internal import PeerSession
internal import RTP
internal import RoomProtocol

/// The clients in the rooms of a server. Each room has publishers, which subscribe to each other, and subscribers to all
/// of them.
actor RoomLoad {
    struct Shape: Sendable {
        /// The name of each room is a number, as Janus wants it.
        var rooms: Range<Int>
        /// Of each room.
        var publishers: Int
        var codec: Codec
        /// Of a whole packet, in bytes.
        var length: Int
        /// The addresses that clients connect from, in turn. Empty for any.
        var addresses: [String]
        var profiles: [SRTPProfile]
        /// Whether subscribers report arrivals, so that our server paces.
        var reportsArrivals: Bool
    }

    private struct Room {
        var name: String
        var publishers: [LoadClient] = []
        var streams: [Int] = []
        var subscribers: [LoadClient] = []
    }

    struct Totals {
        var sent = 0
        /// The packets that subscribers should have received.
        var due = 0
        var received = 0
        var wrong = 0
        var late = 0
        var refused = 0
    }

    private static let joinsAtOnce = 8

    private let server: LoadServer
    private let loop: EventLoop
    private let reader: LoadReader
    private let shape: Shape
    private var rooms: [Room]
    private var made = 0
    private var log: LoopBound<LatencyLog>?

    init(_ server: LoadServer, loop: EventLoop, shape: Shape) {
        self.server = server
        self.loop = loop
        reader = LoadReader(loop: loop)
        self.shape = shape
        rooms = shape.rooms.map { Room(name: "\($0)") }
    }

    private func client(_ name: String) async throws -> LoadClient {
        let local = shape.addresses.isEmpty ? nil : shape.addresses[made % shape.addresses.count]
        made += 1
        return try await LoadClient(
            name, loop: loop, server: server, profiles: shape.profiles, media: shape.codec.media,
            length: shape.length, from: local, reader: reader, reportsArrivals: shape.reportsArrivals)
    }

    /// Runs the closure for numbers from 0, some at once.
    private func each(_ count: Int, _ body: @escaping @Sendable (Int) async throws -> Void) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<count {
                if number >= Self.joinsAtOnce { try await group.next() }
                group.addTask { try await body(number) }
            }
            try await group.waitForAll()
        }
    }

    /// Opens the rooms with their publishers.
    func open() async throws {
        try await each(rooms.count) { try await self.open($0) }
    }

    private func open(_ index: Int) async throws {
        for _ in 0..<shape.publishers {
            let publisher = try await client("publisher")
            try await publisher.join(rooms[index].name)
            let stream = try await publisher.publish(shape.codec)
            rooms[index].publishers.append(publisher)
            rooms[index].streams.append(stream)
        }
        let room = rooms[index]
        guard room.streams.count > 1 else { return }
        for (publisher, own) in zip(room.publishers, room.streams) {
            try await publisher.subscribe(room.streams.filter { $0 != own })
        }
    }

    /// Lets subscribers join each room until each stream has so many.
    func fill(to count: Int) async throws {
        let missing = rooms.indices.flatMap { index in
            let wanted = count - (shape.publishers - 1) - rooms[index].subscribers.count
            return Array(repeating: index, count: max(0, wanted))
        }
        try await each(missing.count) { try await self.addSubscriber(to: missing[$0]) }
    }

    private func addSubscriber(to index: Int) async throws {
        let subscriber = try await client("subscriber")
        try await subscriber.join(rooms[index].name)
        try await subscriber.subscribe(rooms[index].streams)
        rooms[index].subscribers.append(subscriber)
    }

    private var receivers: [LoadClient] {
        rooms.flatMap { shape.publishers > 1 ? $0.publishers + $0.subscribers : $0.subscribers }
    }

    var participants: Int { rooms.reduce(0) { $0 + $1.publishers.count + $1.subscribers.count } }

    var profile: String {
        get async { await receivers.first?.negotiated.first?.rawValue ?? "" }
    }

    /// Sends from all publishers, spread evenly over an interval. Those of one room are as far apart as can be.
    func send(bursts: Int, of length: Int, rate: Int) async {
        let interval = RTP.TimeInterval(nanoseconds: 1_000_000_000 / Int64(rate))
        let publishers = (0..<shape.publishers).flatMap { place in rooms.map { $0.publishers[place] } }
        let count = publishers.count
        await withTaskGroup(of: Void.self) { group in
            for (index, publisher) in publishers.enumerated() {
                let delay = RTP.TimeInterval(nanoseconds: interval.nanoseconds * Int64(index) / Int64(count))
                group.addTask { await publisher.send(bursts: bursts, of: length, every: interval, after: delay) }
            }
        }
    }

    /// Waits until all that was sent has arrived, or nothing has arrived for so many milliseconds.
    func settle(milliseconds: Int = 300) async throws {
        var last = -1
        while await totals.received != last {
            last = await totals.received
            try await Task.sleep(for: .milliseconds(milliseconds))
        }
    }

    var totals: Totals {
        get async {
            var totals = Totals()
            for room in rooms {
                let watching = room.publishers.count - 1 + room.subscribers.count
                for publisher in room.publishers {
                    let sent = Int(await publisher.sent)
                    totals.sent += sent
                    totals.due += sent * watching
                }
            }
            for client in receivers {
                let check = await client.check
                totals.received += check.received
                totals.wrong += check.corrupted
                totals.late += check.late
                totals.refused += await client.refused
            }
            return totals
        }
    }

    func collectLatencies(_ isOn: Bool) async {
        let log = isOn ? await latencyLog() : nil
        for client in receivers { await client.log(latencies: log) }
    }

    func latencies(_ shares: [Double]) async -> [Double] {
        let log = await latencyLog()
        return await withCheckedContinuation { done in
            loop.execute { done.resume(returning: log.value.restart(shares)) }
        }
    }

    private func latencyLog() async -> LoopBound<LatencyLog> {
        if let log { return log }
        let made = await withCheckedContinuation { [loop] done in
            loop.execute { done.resume(returning: LoopBound(LatencyLog(), loop: loop)) }
        }
        log = made
        return made
    }
}
