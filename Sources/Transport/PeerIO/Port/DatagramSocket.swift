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
    /// Bytes that the socket may queue in each direction, as the kernel counts them (about 2.3 KiB for a packet).
    private static let buffer: Int32 = 4 << 20

    private(set) var descriptor: Int32
    /// The address that the socket is bound to, with its port.
    let address: TransportAddress
    /// Outgoing datagrams that the socket did not accept.
    private(set) var refused = 0
    /// Received datagrams that were longer than `PacketBuffer.capacity`.
    private(set) var tooLong = 0

    private let arrivals: UnsafeMutablePointer<cdatagrams_arrival>
    private let slab: UnsafeMutablePointer<UInt8>
    private let departures: UnsafeMutablePointer<cdatagrams_departure>
    private var waiting = 0
    private var bytes: [UInt8] = []
    /// The pair of the last run, how many datagrams it has, and whether one more of its length may follow.
    private var lastRun: (pair: AddressPair?, count: Int, isOpen: Bool) = (nil, 0, false)
    /// How many datagrams leave one by one before the kernel is asked again to cut runs. It refuses for some network
    /// devices and routes.
    private var uncut = 0
    private static let uncutAfterRefusal = 1024
    private let isBoundToAny: Bool

    /// Opens a socket at an address of this machine, or at all of them. Port 0 means any free port.
    init(at wanted: TransportAddress) throws(TransportError) {
        var bound = cdatagrams_address(wanted)
        descriptor = cdatagrams_open(&bound, 0, Self.buffer)
        guard descriptor >= 0 else {
            let reason = String(cString: strerror(-descriptor))
            throw TransportError(
                code: -descriptor == EADDRINUSE ? "transport.port-busy" : "transport.no-address",
                message: -descriptor == EADDRINUSE
                    ? "Another program uses the UDP port \(wanted.port). Choose another port."
                    : "The UDP address \(wanted) cannot be opened: \(reason). Use an address of this machine.")
        }
        address = TransportAddress(ipv6: wanted.high, wanted.low, port: bound.port)
        isBoundToAny = wanted.isAny
        arrivals = .allocate(capacity: Self.most)
        arrivals.initialize(repeating: cdatagrams_arrival(), count: Self.most)
        slab = .allocate(capacity: Self.most * Self.stride)
        slab.initialize(repeating: 0, count: Self.most * Self.stride)
        departures = .allocate(capacity: Self.most)
        departures.initialize(repeating: cdatagrams_departure(), count: Self.most)
    }

    deinit {
        end()
        arrivals.deallocate()
        slab.deallocate()
        departures.deallocate()
    }

    /// Closes the socket. Nothing is sent or received any more.
    func end() {
        guard descriptor >= 0 else { return }
        flush()
        close(descriptor)
        descriptor = -1
    }

    // MARK: Receiving

    /// Receives waiting datagrams, at most `limit`. Returns their number, to be read by index until the next call.
    func receive(limit: Int) -> Int {
        let count = Int(
            cdatagrams_receive(descriptor, slab, Self.stride, arrivals, Int32(min(limit, Self.most))))
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

    // MARK: Sending

    var hasWaiting: Bool { waiting > 0 }

    /// Queues a datagram until `flush`.
    @inline(__always)
    func send(_ datagram: UnsafeRawBufferPointer, on pair: AddressPair) {
        let count = UInt32(datagram.count)
        if extendsRun(by: count, to: pair) {
            departures[waiting - 1].count += count
            lastRun.count += 1
            // Only the last datagram of a run may be shorter.
            lastRun.isOpen = departures[waiting - 1].segment == count
        } else {
            if waiting == Self.most || bytes.count >= Self.enoughBytes { flush() }
            departures[waiting] = cdatagrams_departure(
                to: cdatagrams_address(pair.remote),
                from: isBoundToAny ? cdatagrams_address(pair.local) : cdatagrams_address(), start: UInt32(bytes.count),
                count: count, segment: count)
            waiting += 1
            lastRun = (pair, 1, true)
            if uncut > 0 { uncut -= 1 }
        }
        bytes.append(contentsOf: datagram)
    }

    private func extendsRun(by count: UInt32, to pair: AddressPair) -> Bool {
        guard waiting > 0, uncut == 0, lastRun.isOpen, lastRun.count < Self.runDatagrams, lastRun.pair == pair else {
            return false
        }
        let last = departures[waiting - 1]
        return count <= last.segment && Int(last.count + count) <= Self.runBytes
    }

    /// Sends the waiting datagrams. Those that the socket does not accept are lost, because real-time media is useless later.
    func flush() {
        defer {
            waiting = 0
            bytes.removeAll(keepingCapacity: true)
            lastRun = (nil, 0, false)
        }
        var next = 0
        while next < waiting {
            var error: Int32 = 0
            let taken = bytes.withUnsafeBufferPointer { bytes in
                Int(
                    cdatagrams_send(descriptor, bytes.baseAddress, departures + next, Int32(waiting - next), &error))
            }
            next += taken
            guard next < waiting, taken == 0 else { continue }
            let run = departures[next]
            next += 1
            // Reasons to refuse a run whose datagrams may leave one by one.
            if run.count > run.segment, error == EIO || error == EINVAL || error == EMSGSIZE {
                if error != EMSGSIZE { uncut = Self.uncutAfterRefusal }
                sendEach(of: run)
            } else {
                refused += datagrams(of: run)
            }
        }
    }

    private func datagrams(of departure: cdatagrams_departure) -> Int {
        max(1, Int(departure.count.dividedRoundingUp(by: max(departure.segment, 1))))
    }

    private func sendEach(of run: cdatagrams_departure) {
        var part = run
        var left = run.count
        while left > 0 {
            part.count = min(left, run.segment)
            part.segment = part.count
            var error: Int32 = 0
            let taken = bytes.withUnsafeBufferPointer {
                cdatagrams_send(descriptor, $0.baseAddress, &part, 1, &error)
            }
            if taken != 1 { refused += 1 }
            part.start += part.count
            left -= part.count
        }
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
        var four = in_addr()
        if inet_pton(AF_INET, text, &four) == 1 {
            self.init(ipv4: UInt32(bigEndian: four.s_addr), port: port)
            return
        }
        var six = in6_addr()
        guard inet_pton(AF_INET6, text, &six) == 1 else { return nil }
        let (high, low) = withUnsafeBytes(of: six) {
            ($0.loadUnaligned(as: UInt64.self), $0.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
        }
        self.init(ipv6: UInt64(bigEndian: high), UInt64(bigEndian: low), port: port)
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
