internal import CGLib
internal import CNice
internal import RTP

/// Describes a batch of datagrams to libnice without allocation: one slab of vectors, reused for every send on a loop.
final class Outbox {
    /// The most datagrams passed to libnice in one call, which becomes one `sendmmsg`.
    static let capacity = 64

    private let vectors: UnsafeMutablePointer<GOutputVector>
    private let messages: UnsafeMutablePointer<NiceOutputMessage>

    init() {
        vectors = .allocate(capacity: Self.capacity)
        vectors.initialize(repeating: GOutputVector(), count: Self.capacity)
        messages = .allocate(capacity: Self.capacity)
        messages.initialize(repeating: NiceOutputMessage(), count: Self.capacity)
        for index in 0..<Self.capacity {
            messages[index].buffers = vectors + index
            messages[index].n_buffers = 1
        }
    }

    deinit {
        vectors.deallocate()
        messages.deallocate()
    }

    /// Sends the datagrams. Returns how many the socket accepted and refused.
    ///
    /// A full socket buffer loses the rest of its 64, because real-time media is useless later.
    func send(
        _ batch: borrowing DatagramBatch, agent: OpaquePointer, stream: UInt32
    ) -> (sent: Int, refused: Int) {
        var sent = 0
        var refused = 0
        batch.bytes.withUnsafeBytes { bytes in
            guard let base = bytes.baseAddress else { return }
            var waiting = 0
            var start = 0
            func flush() {
                guard waiting > 0 else { return }
                let taken = nice_agent_send_messages_nonblocking(
                    agent, stream, ICEAgent.component, messages, UInt32(waiting), nil, nil)
                sent += max(0, Int(taken))
                refused += waiting - max(0, Int(taken))
                waiting = 0
            }
            for index in 0..<batch.count {
                let end = batch.ends[index]
                defer { start = end }
                vectors[waiting].buffer = base + start
                vectors[waiting].size = gsize(end - start)
                waiting += 1
                if waiting == Self.capacity { flush() }
            }
            flush()
        }
        return (sent, refused)
    }
}
