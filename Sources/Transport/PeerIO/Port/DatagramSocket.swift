internal import CDatagrams
internal import Glibc
internal import ICELite
internal import RTP

/// A UDP socket that receives and sends many datagrams with one system call. On its loop only.
///
/// Datagrams of one batch to one address with equal lengths leave as one run, which the kernel cuts (UDP_SEGMENT).
final class DatagramSocket {
    /// The most datagrams of one call.
    static let most = Int(CDATAGRAMS_MOST)
    /// The room for a received datagram. A longer one is dropped.
    private static let stride = PacketBuffer.capacity
    /// The kernel cuts a run of at most 64 datagrams and 64 KiB, with its headers.
    private static let runDatagrams = 64
    private static let runBytes = 60_000
    /// Bytes that wait before they are sent in the middle of a turn.
    private static let enoughBytes = 256 * 1024
    /// Bytes that the socket is to queue in each direction, as the kernel counts them (about 2.3 KiB for a packet).
    static let wantedBuffer = 4 << 20
    /// Runs and bytes that may wait here while the socket's own queue is full. More are dropped.
    private static let backlogRuns = 2048
    private static let backlogBytes = 2 << 20

    private(set) var descriptor: Int32
    /// The address that the socket is bound to, with its port.
    let address: TransportAddress
    /// Bytes that the kernel lets the socket queue.
    let buffers: (receive: Int, send: Int)
    /// Outgoing datagrams that were dropped: the kernel refused them, or the queue was full.
    private(set) var refused = 0
    /// Whether the kernel's queue is full. Call `flush` when the descriptor is writable.
    @exclusivity(unchecked) private(set) var isBlocked = false
    /// Runs that wait for room in the kernel's queue.
    var unsent: Int { isBlocked ? waiting : 0 }
    /// Bytes that the socket holds.
    var heldBytes: Int { batch.used }
    /// Received datagrams that were longer than `PacketBuffer.capacity`.
    private(set) var tooLong = 0

    private let arrivals: UnsafeMutablePointer<cdatagrams_arrival>
    private let slab: UnsafeMutablePointer<UInt8>
    private let departures: UnsafeMutablePointer<cdatagrams_departure>
    @exclusivity(unchecked) private var waiting = 0
    @exclusivity(unchecked) private var batch = DatagramBatch()
    /// The pair of the last run, how many datagrams it has, and whether one more of its length may follow.
    @exclusivity(unchecked) private var lastRun: (pair: AddressPair?, count: Int, isOpen: Bool) = (nil, 0, false)
    /// How many datagrams leave one by one before the kernel is asked again to cut runs. It refuses for some network
    /// devices and routes.
    @exclusivity(unchecked) private var uncut = 0
    private static let uncutAfterRefusal = 1024
    /// Whether the kernel cuts runs.
    var cutsRuns: Bool { uncut == 0 }
    private let isBoundToAny: Bool
    private let isInet: Bool

    /// Opens a socket at an address of this machine, or at all of them. Port 0 means any free port.
    ///
    /// - Parameter joinsOthers: whether another socket has the address, and permits this one by `share`.
    init(at wanted: TransportAddress, joinsOthers: Bool = false) throws(TransportError) {
        var bound = cdatagrams_address(wanted)
        var allowed = cdatagrams_buffers(receive: Int32(Self.wantedBuffer), send: Int32(Self.wantedBuffer))
        descriptor = cdatagrams_open(&bound, joinsOthers ? 1 : 0, &allowed)
        guard descriptor >= 0 else {
            let reason = String(cString: strerror(-descriptor))
            throw TransportError(
                code: -descriptor == EADDRINUSE ? "transport.port-busy" : "transport.no-address",
                message: -descriptor == EADDRINUSE
                    ? "Another program uses UDP port \(wanted.port) of \(wanted.host). Choose another port."
                    : "The UDP address \(wanted) cannot be opened: \(reason). Use an address of this machine.")
        }
        address = TransportAddress(ipv6: wanted.high, wanted.low, port: bound.port)
        buffers = (Int(allowed.receive), Int(allowed.send))
        isBoundToAny = wanted.isAny
        isInet = wanted.ipv4 != nil
        arrivals = .allocate(capacity: Self.most)
        arrivals.initialize(repeating: cdatagrams_arrival(), count: Self.most)
        slab = .allocate(capacity: Self.most * Self.stride)
        slab.initialize(repeating: 0, count: Self.most * Self.stride)
        departures = .allocate(capacity: Self.backlogRuns)
        departures.initialize(repeating: cdatagrams_departure(), count: Self.backlogRuns)
    }

    deinit {
        end()
        arrivals.deallocate()
        slab.deallocate()
        departures.deallocate()
    }

    /// Permits further sockets of this user at the same address. The kernel chooses the socket of each pair of addresses.
    func share() throws(TransportError) {
        let result = cdatagrams_share(descriptor)
        guard result != 0 else { return }
        throw TransportError(
            code: "transport.no-address",
            message: "The UDP port \(address.port) cannot be shared by several threads: "
                + "\(String(cString: strerror(-result))). Use one thread.")
    }

    /// Behaves as if the kernel's queue were full, for tests.
    func block() { isBlocked = true }

    /// Makes the kernel give all datagrams of this address to one of its sockets, by the order in which they were opened.
    func steer(to place: Int) { _ = cdatagrams_steer(descriptor, UInt32(place)) }

    /// Closes the socket. Nothing is sent or received any more.
    func end() {
        guard descriptor >= 0 else { return }
        flush()
        close(descriptor)
        descriptor = -1
    }

    // MARK: Receiving

    /// Receives waiting datagrams, at most `most`. Returns their number, to be read by index until the next call.
    func receive() -> Int {
        let count = Int(cdatagrams_receive(descriptor, slab, Self.stride, arrivals, Int32(Self.most)))
        // An error is that of a datagram sent earlier.
        return max(count, 0)
    }

    /// The bytes and the addresses of a received datagram. Nil, and counted, if it was too long.
    @inline(__always)
    func datagram(_ index: Int) -> (bytes: UnsafeRawBufferPointer, pair: AddressPair)? {
        let arrival = arrivals[index]
        guard arrival.count <= Self.stride else {
            tooLong += 1
            return nil
        }
        let start = slab + index * Self.stride
        let own = isBoundToAny ? TransportAddress(arrival.to, port: address.port) : address
        return (
            UnsafeRawBufferPointer(start: start, count: Int(arrival.count)),
            AddressPair(remote: TransportAddress(arrival.from, port: arrival.from.port), local: own)
        )
    }

    /// Received datagrams that the kernel dropped, because the loop did not read the socket in time.
    var overflows: Int { descriptor < 0 ? 0 : Int(cdatagrams_overflows(descriptor)) }

    // MARK: Sending

    /// Queues the datagrams that a closure appends until `flush`. Returns their number.
    @inline(__always)
    func send(on pair: AddressPair, _ fill: (inout DatagramBatch) -> Void) -> Int {
        if !isBlocked, waiting >= Self.most || batch.used >= Self.enoughBytes { flush() }
        let hasRoom = waiting < Self.backlogRuns && batch.used < Self.backlogBytes
        let first = batch.count
        var start = batch.used
        fill(&batch)
        let count = batch.count - first
        guard hasRoom else {
            refused += count
            batch.removeAll(from: first)
            return count
        }
        for index in first..<batch.count {
            let end = batch.ends[index]
            queue(start..<end, on: pair)
            start = end
        }
        return count
    }

    /// Adds a datagram of the batch to the last run, or begins another.
    private func queue(_ range: Range<Int>, on pair: AddressPair) {
        let count = UInt32(range.count)
        if extendsRun(by: count, to: pair) {
            departures[waiting - 1].count += count
            lastRun.count += 1
            // Only the last datagram of a run may be shorter.
            lastRun.isOpen = departures[waiting - 1].segment == count
            return
        }
        guard waiting < Self.backlogRuns else {
            refused += 1
            lastRun.isOpen = false
            return
        }
        departures[waiting] = cdatagrams_departure(
            to: cdatagrams_address(pair.remote),
            from: isBoundToAny ? cdatagrams_address(pair.local) : cdatagrams_address(), start: UInt32(range.lowerBound),
            count: count, segment: count)
        waiting += 1
        lastRun = (pair, 1, true)
        if uncut > 0 { uncut -= 1 }
    }

    private func extendsRun(by count: UInt32, to pair: AddressPair) -> Bool {
        guard waiting > 0, uncut == 0, lastRun.isOpen, lastRun.count < Self.runDatagrams, lastRun.pair == pair else {
            return false
        }
        let last = departures[waiting - 1]
        return count <= last.segment && Int(last.count + count) <= Self.runBytes
    }

    /// Sends the waiting datagrams. Those that the kernel has no room for wait until the descriptor is writable. Those that
    /// it refuses are lost, because real-time media is useless later.
    func flush() {
        var next = 0
        isBlocked = false
        while next < waiting {
            var error: Int32 = 0
            next += handOver(departures + next, waiting - next, &error)
            guard next < waiting, error != 0 else { continue }
            if error == EAGAIN || error == EWOULDBLOCK {
                isBlocked = true
                break
            }
            let run = departures[next]
            next += 1
            // Reasons to refuse a run whose datagrams may leave one by one.
            if run.count > run.segment, error == EIO || error == EINVAL || error == EMSGSIZE {
                // The kernel refuses each datagram to an impossible address, too.
                if sendEach(of: run), error != EMSGSIZE { uncut = Self.uncutAfterRefusal }
            } else {
                refused += datagrams(of: run)
            }
        }
        keep(from: next)
    }

    /// Hands runs to the kernel in order. Returns how many it took. If it took none, `error` is the reason.
    private func handOver(
        _ runs: UnsafePointer<cdatagrams_departure>, _ count: Int, _ error: inout Int32
    ) -> Int {
        batch.bytes.withUnsafeBufferPointer {
            Int(cdatagrams_send(descriptor, isInet ? 1 : 0, $0.baseAddress, runs, Int32(count), &error))
        }
    }

    /// Forgets the runs before this one.
    private func keep(from next: Int) {
        // Later datagrams do not extend a run that the kernel has seen.
        lastRun = (nil, 0, false)
        guard next < waiting else {
            waiting = 0
            return batch.removeAll()
        }
        guard next > 0 else { return }
        // Moves bytes only when most of them have been sent.
        let start = departures[next].start
        let isLight = 2 * Int(start) < batch.used
        for index in next..<waiting {
            departures[index - next] = departures[index]
            if !isLight { departures[index - next].start -= start }
        }
        waiting -= next
        if !isLight { batch.removeFirst(bytes: Int(start)) }
    }

    private func datagrams(of departure: cdatagrams_departure) -> Int {
        max(1, Int(departure.count.dividedRoundingUp(by: max(departure.segment, 1))))
    }

    /// Returns whether the kernel took one of them.
    private func sendEach(of run: cdatagrams_departure) -> Bool {
        var part = run
        var left = run.count
        var taken = false
        while left > 0 {
            part.count = min(left, run.segment)
            part.segment = part.count
            var error: Int32 = 0
            if handOver(&part, 1, &error) == 1 { taken = true } else { refused += 1 }
            part.start += part.count
            left -= part.count
        }
        return taken
    }
}

extension UInt32 {
    fileprivate func dividedRoundingUp(by divisor: UInt32) -> UInt32 { self / divisor + (self % divisor == 0 ? 0 : 1) }
}

extension TransportAddress {
    /// Whether this is 0.0.0.0 or ::, all addresses of the machine.
    var isAny: Bool { ipv4 == 0 || high == 0 && low == 0 }

    /// Nil if the text is not a literal address.
    init?(literal text: String, port: UInt16) {
        var four = UInt32(0)
        if inet_pton(AF_INET, text, &four) == 1 {
            self.init(ipv4: UInt32(bigEndian: four), port: port)
            return
        }
        var six = (high: UInt64(0), low: UInt64(0))
        guard inet_pton(AF_INET6, text, &six) == 1 else { return nil }
        self.init(ipv6: UInt64(bigEndian: six.high), UInt64(bigEndian: six.low), port: port)
    }

    fileprivate init(_ address: cdatagrams_address, port: UInt16) {
        let (high, low) = withUnsafeBytes(of: address.bytes) {
            ($0.loadUnaligned(as: UInt64.self), $0.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
        }
        self.init(ipv6: UInt64(bigEndian: high), UInt64(bigEndian: low), port: port)
    }
}

extension cdatagrams_address {
    fileprivate init(_ address: TransportAddress) {
        self.init()
        port = address.port
        withUnsafeMutableBytes(of: &bytes) {
            $0.storeBytes(of: address.high.bigEndian, as: UInt64.self)
            $0.storeBytes(of: address.low.bigEndian, toByteOffset: 8, as: UInt64.self)
        }
    }
}
