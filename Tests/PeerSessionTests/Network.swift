import PeerSession
import RTP
import Testing
import TestSupport

/// One direction of a path.
struct Path {
    /// Shares of datagrams, 0...1.
    var loss = 0.0
    var duplication = 0.0
    /// The share that takes `detour` longer and is therefore overtaken.
    var reordering = 0.0
    var detour = TimeInterval.milliseconds(15)
    var delay = TimeInterval.milliseconds(20)
    /// Added to the delay, uniformly distributed. Queues keep the order, so this alone reorders nothing.
    var jitter = TimeInterval.zero
    /// Nothing passes.
    var isCut = false
    /// Bits per second, with the headers of UDP and IPv4. Nil means no limit.
    var rate: Int?
    /// The longest that a datagram waits for the rate. Others are dropped.
    var longestQueue = TimeInterval.seconds(1)
}

/// Later events, earliest first and in order of scheduling.
private struct Agenda<Item> {
    private var heap: [(time: MonotonicTime, order: Int, item: Item)] = []
    private var order = 0

    var next: MonotonicTime { heap.first?.time ?? .never }

    private func isBefore(_ a: Int, _ b: Int) -> Bool {
        heap[a].time != heap[b].time ? heap[a].time < heap[b].time : heap[a].order < heap[b].order
    }

    mutating func add(_ item: Item, at time: MonotonicTime) {
        order += 1
        heap.append((time, order, item))
        var child = heap.count - 1
        while child > 0, isBefore(child, (child - 1) / 2) {
            heap.swapAt(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
    }

    mutating func removeFirst() -> Item {
        heap.swapAt(0, heap.count - 1)
        let item = heap.removeLast().item
        var parent = 0
        while true {
            var smallest = parent
            for child in [2 * parent + 1, 2 * parent + 2] where child < heap.count && isBefore(child, smallest) {
                smallest = child
            }
            if smallest == parent { return item }
            heap.swapAt(parent, smallest)
            parent = smallest
        }
    }
}

/// Two sessions and the paths between them, on virtual time.
final class Call {
    enum End: Int {
        case a
        case b

        var other: End { self == .a ? .b : .a }
    }

    private enum Item {
        case datagram(to: End, [UInt8])
        case action(() -> Void)
    }

    let sessions: [PeerSession]
    let handshakes: [HandshakeDouble]
    var paths: [Path]
    private(set) var now = MonotonicTime(nanoseconds: 1_000_000_000_000)
    let start: MonotonicTime
    private var agenda = Agenda<Item>()
    private var random: Seeded
    private var arrival: [MonotonicTime] = [.zero, .zero]
    /// When each path has sent what waits for its rate.
    private var busyUntil: [MonotonicTime] = [.zero, .zero]
    /// How long each datagram of the paths with a rate waited.
    private(set) var waits: [[(at: MonotonicTime, wait: TimeInterval)]] = [[], []]
    private var incoming = PacketBuffer()
    /// The end whose process is stopped: it reads nothing, and its timers do not fire. Its socket keeps arriving
    /// datagrams.
    private(set) var stopped: End?
    private var kept: [[UInt8]] = []
    /// Called for each media packet that an end receives.
    var onMedia: (End, ReceiverID, RTPHeader, borrowing PacketBuffer) -> Void = { _, _, _, _ in }
    /// Called for each datagram that an end puts on its path.
    var inspect: (End, [UInt8]) -> Void = { _, _ in }
    /// The positions of those packets in their streams.
    private(set) var positions: [StreamPosition] = []
    private(set) var events: [[PeerSessionEvent]] = [[], []]
    /// Datagrams and bytes that each end put on the path.
    private(set) var sent: [Int] = [0, 0]
    private(set) var sentBytes: [Int] = [0, 0]
    /// How often each end's timer fired for another reason than a report since the end was secured.
    private(set) var timeouts = [0, 0]

    var a: PeerSession { sessions[0] }
    var b: PeerSession { sessions[1] }
    var elapsed: TimeInterval { now - start }

    /// `path` applies to both directions.
    init(seed: UInt64 = 1, path: Path = Path(), outgoingCapacity: Int = 2048, releasesHandshake: Bool = false) {
        start = now
        random = Seeded(seed &* 0x9e37_79b9_7f4a_7c15)
        handshakes = [HandshakeDouble(1), HandshakeDouble(2)]
        sessions = handshakes.enumerated().map { index, handshake in
            PeerSession(
                handshake,
                PeerSessionConfiguration(
                    cname: "end\(index)", seed: seed + UInt64(index), outgoingCapacity: outgoingCapacity,
                    releasesHandshake: releasesHandshake))
        }
        paths = [path, path]
    }

    subscript(end: End) -> PeerSession { sessions[end.rawValue] }

    /// Starts both ends; `a` is the DTLS client.
    func connect() {
        a.start(role: .client, expecting: [b.localFingerprint], now: now)
        b.start(role: .server, expecting: [a.localFingerprint], now: now)
        a.transportConnected(now: now)
        b.transportConnected(now: now)
        flush()
    }

    /// Connects and runs until both ends are secured.
    func secure() {
        connect()
        run(until: { $0.a.isSecured && $0.b.isSecured })
        #expect(a.isSecured && b.isSecured)
    }

    func at(_ time: TimeInterval, _ action: @escaping () -> Void) { agenda.add(.action(action), at: start + time) }

    /// Calls the action every `interval` from now on, `count` times.
    func every(_ interval: TimeInterval, count: Int, _ action: @escaping (Int) -> Void) {
        func step(_ index: Int) {
            guard index < count else { return }
            action(index)
            agenda.add(.action { step(index + 1) }, at: now + interval)
        }
        agenda.add(.action { step(0) }, at: now)
    }

    func stop(_ end: End) { stopped = end }

    /// The stopped end reads its socket's datagrams, and continues.
    func goOn() {
        guard let end = stopped else { return }
        stopped = nil
        for bytes in kept {
            deliver(bytes, to: end)
            flush()
        }
        kept = []
    }

    private func nextTimeout(of end: End) -> MonotonicTime { end == stopped ? .never : self[end].nextTimeout }

    func run(for interval: TimeInterval) {
        let end = now + interval
        run(to: end) { _ in false }
        now = end
    }

    /// At most a minute.
    func run(until isDone: (Call) -> Bool) { run(to: now + .seconds(60), isDone) }

    private func run(to end: MonotonicTime, _ isDone: (Call) -> Bool) {
        var steps = 0
        flush()
        while !isDone(self) {
            let next = min(agenda.next, min(nextTimeout(of: .a), nextTimeout(of: .b)))
            guard next <= end else { return }
            if next > now {
                now = next
                steps = 0
            }
            steps += 1
            guard steps < 10_000 else {
                Issue.record("Time stands still: \(a.nextTimeout), \(b.nextTimeout) at \(now).")
                return
            }
            for end in [End.a, .b] where nextTimeout(of: end) <= now {
                if self[end].isSecured, self[end].nextReport > now { timeouts[end.rawValue] += 1 }
                self[end].handleTimeout(now: now)
            }
            while agenda.next <= now {
                switch agenda.removeFirst() {
                case .datagram(let end, let bytes) where end == stopped: kept.append(bytes)
                case .datagram(let end, let bytes): deliver(bytes, to: end)
                case .action(let action): action()
                }
                flush()
            }
            flush()
        }
    }

    /// Hands an end a datagram as if from its peer.
    func deliver(_ bytes: [UInt8], to end: End) {
        guard incoming.assign(bytes) else { return }
        if case .media(let id, let header, let position) = self[end].receive(&incoming, now: now) {
            positions.append(position)
            onMedia(end, id, header, incoming)
            while case .media(let id, let header, let position)? = self[end].receiveCopy(into: &incoming, now: now) {
                positions.append(position)
                onMedia(end, id, header, incoming)
            }
        }
    }

    /// Puts the sessions' datagrams on the paths, and collects events.
    func flush() {
        for end in [End.a, .b] {
            let session = self[end]
            var batch = DatagramBatch()
            session.drain(into: &batch)
            for index in 0..<batch.count { put(Array(batch[index]), from: end) }
            while let event = session.pollEvent() { events[end.rawValue].append(event) }
        }
    }

    private func chance(_ share: Double) -> Bool { share > 0 && Double.random(in: 0..<1, using: &random) < share }

    /// When a datagram has passed the bottleneck. Nil if its queue is full.
    private func departure(of bytes: Int, from end: End) -> MonotonicTime? {
        let path = paths[end.rawValue]
        guard let rate = path.rate else { return now }
        let begins = max(now, busyUntil[end.rawValue])
        guard begins - now <= path.longestQueue else { return nil }
        waits[end.rawValue].append((now, begins - now))
        busyUntil[end.rawValue] =
            begins + TimeInterval(nanoseconds: Int64(bytes + 28) * 8 * 1_000_000_000 / Int64(rate))
        return busyUntil[end.rawValue]
    }

    private func put(_ bytes: [UInt8], from end: End) {
        let path = paths[end.rawValue]
        sent[end.rawValue] += 1
        sentBytes[end.rawValue] += bytes.count
        inspect(end, bytes)
        guard !path.isCut, !chance(path.loss) else { return }
        guard let leaves = departure(of: bytes.count, from: end) else { return }
        let copies = chance(path.duplication) ? 2 : 1
        for _ in 0..<copies {
            let jitter = Int64.random(in: 0...max(0, path.jitter.nanoseconds), using: &random)
            var time = leaves + path.delay + TimeInterval(nanoseconds: jitter)
            if chance(path.reordering) {
                time = time + path.detour
            } else {
                time = max(time, arrival[end.rawValue])
                arrival[end.rawValue] = time
            }
            agenda.add(.datagram(to: end.other, bytes), at: time)
        }
    }
}

/// One media stream from `a` to `b`, with numbered payloads.
final class Stream {
    let sender: SenderID
    let receiver: ReceiverID
    private(set) var count = 0
    private let call: Call
    private let clockRate: UInt32
    private let length: Int
    private let first: UInt16
    private var packet = PacketBuffer()
    /// How often each packet arrived, and how long the last one took.
    private(set) var received: [Int] = []
    private(set) var sentAt: [MonotonicTime] = []
    private(set) var slowest = TimeInterval.zero
    /// Packets that arrived before one that was sent earlier.
    private(set) var late = 0
    private var newest = -1

    static func video(
        _ call: Call, first: UInt16 = 65000, length: Int = 1100, takesEstimates: Bool = false,
        change: (inout SenderConfiguration) -> Void = { _ in }
    ) -> Stream {
        var sending = SenderConfiguration(
            ssrc: SSRC(1000), retransmissionSSRC: SSRC(1001), clockRate: 90000,
            retransmissionPayloadTypes: [96: 97])
        change(&sending)
        var receiving = ReceiverConfiguration(
            ssrc: SSRC(1000), retransmissionSSRC: SSRC(1001), mid: "v", clockRate: 90000,
            payloadTypes: [96], retransmissionPayloadTypes: [96: 97], nack: true)
        receiving.takesEstimates = takesEstimates
        return Stream(call, sending, receiving, first: first, length: length)
    }

    static func audio(_ call: Call) -> Stream {
        let sending = SenderConfiguration(ssrc: SSRC(2000), clockRate: 48000, isAudio: true)
        let receiving = ReceiverConfiguration(
            ssrc: SSRC(2000), mid: "a", clockRate: 48000, payloadTypes: [96], nack: false)
        return Stream(call, sending, receiving, first: 0, length: 80)
    }

    init(
        _ call: Call, _ sending: SenderConfiguration, _ receiving: ReceiverConfiguration, first: UInt16, length: Int
    ) {
        self.call = call
        self.first = first
        self.length = length
        clockRate = sending.clockRate
        sender = call.a.addSender(sending, now: call.now)
        receiver = call.b.addReceiver(receiving)
        call.a.setClock(
            sender, ntp: NTPTime(unixNanoseconds: 1_763_697_600_000_000_000), rtp: RTPTimestamp(0), at: call.start)
        let before = call.onMedia
        call.onMedia = { [unowned self] end, id, header, packet in
            if end == .b, id == self.receiver { self.take(header, packet) } else { before(end, id, header, packet) }
        }
    }

    /// Sends the next packets, as one frame.
    func send(_ packets: Int = 1) {
        for index in 0..<packets {
            var payload = [UInt8](repeating: UInt8(truncatingIfNeeded: count), count: length)
            for byte in 0..<4 { payload[byte] = UInt8(truncatingIfNeeded: count >> (8 * byte)) }
            let ticks = UInt32(truncatingIfNeeded: call.elapsed.nanoseconds / 1000 * Int64(clockRate) / 1_000_000)
            let fits = packet.assignRTP(
                payloadType: 96, sequenceNumber: SequenceNumber(first).advanced(by: count),
                timestamp: RTPTimestamp(ticks), ssrc: SSRC(7), marker: index == packets - 1, payload: payload)
            guard fits, let header = RTPHeader(parsing: packet) else { preconditionFailure() }
            count += 1
            sentAt.append(call.now)
            received.append(0)
            call.a.send(packet, header: header, rewrite: Rewrite(keeping: header), via: sender, now: call.now)
        }
    }

    private func take(_ header: RTPHeader, _ packet: borrowing PacketBuffer) {
        var number = 0
        for byte in 0..<4 { number |= Int(packet.bytes[header.payloadOffset + byte]) << (8 * byte) }
        guard number < count, header.payloadLength == length else {
            Issue.record("A packet that was never sent: \(number)")
            return
        }
        #expect(header.sequenceNumber == SequenceNumber(first).advanced(by: number))
        #expect(header.ssrc.rawValue % 1000 == 0 && header.payloadType == 96)
        #expect(packet.bytes[header.payloadEnd - 1] == UInt8(truncatingIfNeeded: number))
        received[number] += 1
        slowest = max(slowest, call.now - sentAt[number])
        if number < newest { late += 1 }
        newest = max(newest, number)
    }

    var missing: Int { received.count { $0 == 0 } }
    var repeated: Int { received.count { $0 > 1 } }
}
