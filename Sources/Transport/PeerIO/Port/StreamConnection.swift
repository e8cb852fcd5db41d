internal import Glibc
internal import ICELite
internal import RTP

/// One TCP connection of a `StreamListener`: frames of at most `PacketBuffer.capacity` bytes in both directions.
final class StreamConnection {
    enum Reading {
        case open
        case ended
    }

    enum Frame {
        case none
        /// The place of a datagram in the buffer.
        case frame(Range<Int>)
        case tooLong
    }

    let descriptor: Int32
    let pair: AddressPair
    var source: ReadableSource?
    /// Whether a check of it was authenticated.
    var isProven = false
    /// When it was opened, or last carried a datagram of a session.
    var lastUseful: MonotonicTime

    private static let flags = Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL)
    private static let room = 2 + PacketBuffer.capacity
    private var buffer = [UInt8](repeating: 0, count: StreamConnection.room)
    /// The bytes of the buffer that are not handled yet.
    private var used = 0..<0
    /// The rest of a frame that the kernel has taken in part.
    private var rest: [UInt8] = []

    init(_ descriptor: Int32, _ pair: AddressPair, since now: MonotonicTime) {
        self.descriptor = descriptor
        self.pair = pair
        lastUseful = now
    }

    // MARK: - Receiving

    /// Reads what fits into the buffer.
    func read() -> Reading {
        compact()
        let length = buffer.withUnsafeMutableBytes {
            recv(descriptor, $0.baseAddress.map { $0 + used.upperBound }, $0.count - used.upperBound, Self.flags)
        }
        if length < 0 { return errno == EAGAIN || errno == EINTR ? .open : .ended }
        used = used.lowerBound..<(used.upperBound + length)
        return length == 0 ? .ended : .open
    }

    /// Begins with bytes that were read elsewhere.
    func preload(_ bytes: [UInt8]) {
        let count = min(bytes.count, Self.room)
        buffer.replaceSubrange(0..<count, with: bytes[..<count])
        used = 0..<count
    }

    /// The next frame that is complete.
    func nextFrame() -> Frame {
        guard used.count >= 2 else { return .none }
        let length = Int(buffer[used.lowerBound]) << 8 | Int(buffer[used.lowerBound + 1])
        guard length <= PacketBuffer.capacity else { return .tooLong }
        let start = used.lowerBound + 2
        guard used.upperBound - start >= length else { return .none }
        used = (start + length)..<used.upperBound
        return .frame(start..<(start + length))
    }

    func withBytes<Result>(_ range: Range<Int>, _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        buffer.withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0[range])) }
    }

    /// The bytes from a frame on, with its length.
    func takeBytes(from frame: Range<Int>) -> [UInt8] { Array(buffer[(frame.lowerBound - 2)..<used.upperBound]) }

    /// Moves the unhandled bytes to the beginning of the buffer.
    private func compact() {
        guard used.lowerBound > 0 else { return }
        for index in 0..<used.count { buffer[index] = buffer[used.lowerBound + index] }
        used = 0..<used.count
    }

    // MARK: - Sending

    /// Sends datagrams as far as the kernel takes them, and drops the others. Returns how many it took.
    func send(_ batch: borrowing DatagramBatch) -> Int {
        guard rest.isEmpty else { return 0 }
        var start = 0
        for index in 0..<batch.count {
            let end = batch.ends[index]
            guard send(batch, start..<end) else { return index }
            start = end
            if !rest.isEmpty { return index + 1 }
        }
        return batch.count
    }

    /// Sends one datagram. False if the kernel takes nothing.
    private func send(_ batch: borrowing DatagramBatch, _ range: Range<Int>) -> Bool {
        let length = range.count
        var head: (UInt8, UInt8) = (UInt8(length >> 8), UInt8(length & 0xff))
        let sent = withUnsafeMutableBytes(of: &head) { head in
            batch.bytes.withUnsafeBytes { bytes in
                var parts = (
                    iovec(iov_base: head.baseAddress, iov_len: 2),
                    iovec(
                        iov_base: UnsafeMutableRawPointer(mutating: bytes.baseAddress.map { $0 + range.lowerBound }),
                        iov_len: length)
                )
                return withUnsafeMutablePointer(to: &parts) { parts in
                    parts.withMemoryRebound(to: iovec.self, capacity: 2) { parts in
                        var message = msghdr()
                        message.msg_iov = parts
                        message.msg_iovlen = 2
                        return sendmsg(descriptor, &message, Self.flags)
                    }
                }
            }
        }
        // An error ends the connection when it is read.
        guard sent > 0 else { return false }
        if sent < length + 2 {
            rest = sent < 2 ? [head.1] : []
            rest += batch.bytes[(range.lowerBound + max(0, sent - 2))..<range.upperBound]
            source?.awaitsWriting = true
        }
        return true
    }

    /// Sends the rest of a frame.
    func flush() {
        guard !rest.isEmpty else { return }
        let sent = Glibc.send(descriptor, rest, rest.count, Self.flags)
        if sent > 0 { rest.removeFirst(sent) }
        source?.awaitsWriting = !rest.isEmpty
    }
}
