internal import CGLib
internal import CNice
internal import Glibc
internal import ICELite
internal import PeerLoop
internal import RTP

/// A way from libnice to a TURN server over TCP or TLS: a port on loopback that passes all bytes on. On the loop only.
///
/// libnice has no TLS. Over TCP, it would open one more connection whenever the server redirects it (RFC 8656, section 5),
/// without a limit, to any address. The tunnel ends at a redirection.
///
/// It accepts one connection. The kernel's small queues are the only ones, so a slow network makes libnice drop packets.
/// Another user of this machine who connects first gains a connection without credentials, and the relay fails.
final class RelayTunnel {
    /// The port on loopback.
    let address: String
    let port: UInt16
    private let listener: UnsafeMutablePointer<GSocketListener>
    private let cancellable: UnsafeMutablePointer<GCancellable>
    private let upstream: RelayStream
    private var client: RelayStream?
    /// The bytes of the server that wait for the end of their message, before it has given an allocation.
    private var beginning = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: 2048)
    private var count = 0
    private var isAllocated = false
    private var isOpen = true
    private let loop: EventLoop

    /// Nil if this machine has no free port or descriptor.
    ///
    /// - Parameter address: 127.0.0.1 or ::1.
    init?(to upstream: RelayStream, from address: String, on loop: EventLoop) {
        loop.preconditionOnLoop()
        guard let listener = g_socket_listener_new() else { return nil }
        let any = g_inet_socket_address_new_from_string(address, 0)
        defer { g_object_unref(any) }
        var bound: UnsafeMutablePointer<GSocketAddress>?
        guard
            g_socket_listener_add_address(
                listener, any, G_SOCKET_TYPE_STREAM, G_SOCKET_PROTOCOL_TCP, nil, &bound, nil) != 0, let bound
        else {
            g_object_unref(UnsafeMutableRawPointer(listener))
            return nil
        }
        port = g_inet_socket_address_get_port(
            UnsafeMutableRawPointer(bound).assumingMemoryBound(to: GInetSocketAddress.self))
        g_object_unref(UnsafeMutableRawPointer(bound))
        self.address = address
        self.listener = listener
        self.loop = loop
        self.upstream = upstream
        // An idle room sends nothing for many seconds.
        upstream.removeLimit()
        cancellable = g_cancellable_new()
        onContext {
            g_socket_listener_accept_async(
                listener, cancellable, { _, result, data in RelayTunnel.take(data)?.accepted(result) },
                retained)
        }
    }

    deinit {
        assert(!isOpen, "a tunnel must be closed before it is released")
        beginning.deallocate()
        g_object_unref(UnsafeMutableRawPointer(listener))
        g_object_unref(UnsafeMutableRawPointer(cancellable))
    }

    /// Ends both connections.
    func close() {
        guard isOpen else { return }
        isOpen = false
        g_cancellable_cancel(cancellable)
        g_socket_listener_close(listener)
        // An operation that is not over yet closes its streams when it is.
    }

    /// Each operation holds a reference until its callback.
    private var retained: gpointer { Unmanaged.passRetained(self).toOpaque() }

    private static func take(_ data: gpointer?) -> RelayTunnel? {
        data.map { Unmanaged<RelayTunnel>.fromOpaque($0).takeRetainedValue() }
    }

    /// Lets GIO's operations report on the loop.
    private func onContext(_ body: () -> Void) {
        g_main_context_push_thread_default(loop.context)
        body()
        g_main_context_pop_thread_default(loop.context)
    }

    private func accepted(_ result: OpaquePointer?) {
        let connection = g_socket_listener_accept_finish(listener, result, nil, nil)
        g_socket_listener_close(listener)
        guard let connection else { return end() }
        let client = RelayStream(
            UnsafeMutableRawPointer(connection).assumingMemoryBound(to: GIOStream.self),
            socket: g_socket_connection_get_socket(connection))
        self.client = client
        guard isOpen else { return end() }
        onContext {
            pass(from: client, to: upstream)
            readBeginning()
        }
    }

    // MARK: - Before an allocation

    private func readBeginning() {
        guard let free = beginning.baseAddress, count < beginning.count else { return end() }
        g_input_stream_read_async(
            g_io_stream_get_input_stream(upstream.stream), free + count, gsize(beginning.count - count), 0,
            cancellable, { _, result, data in RelayTunnel.take(data)?.hasReadBeginning(result) }, retained)
    }

    private func hasReadBeginning(_ result: OpaquePointer?) {
        let more = g_input_stream_read_finish(g_io_stream_get_input_stream(upstream.stream), result, nil)
        guard isOpen, more > 0, let client else { return end() }
        count += Int(more)
        guard let (whole, isAllocated) = Self.inspect(beginning[..<count]) else { return end() }
        self.isAllocated = isAllocated
        let size = isAllocated ? count : whole
        guard size > 0 else { return onContext { readBeginning() } }
        onContext {
            g_output_stream_write_all_async(
                g_io_stream_get_output_stream(client.stream), beginning.baseAddress, gsize(size), 0, cancellable,
                { _, result, data in RelayTunnel.take(data)?.hasPassedBeginning(result) }, retained)
        }
    }

    private func hasPassedBeginning(_ result: OpaquePointer?) {
        var written: gsize = 0
        guard let client,
            g_output_stream_write_all_finish(g_io_stream_get_output_stream(client.stream), result, &written, nil) != 0,
            isOpen
        else { return end() }
        count -= Int(written)
        if let start = beginning.baseAddress { memmove(start, start + Int(written), count) }
        onContext { if isAllocated { pass(from: upstream, to: client) } else { readBeginning() } }
    }

    /// How many bytes whole messages have, and whether one of them brings an allocation. Nil for a redirection, and for
    /// anything else that is not a response to a request for an allocation.
    private static func inspect(_ bytes: Slice<UnsafeMutableBufferPointer<UInt8>>) -> (whole: Int, isAllocated: Bool)? {
        var rest = bytes
        while rest.count >= STUNMessage.headerLength {
            let start = rest.startIndex
            let length = STUNMessage.headerLength + Int(rest[start + 2]) << 8 + Int(rest[start + 3])
            guard rest.count >= length else { break }
            switch TURN.response(Array(rest.prefix(length)), to: nil, method: TURN.allocate) {
            case nil, .refused(300...399, _): return nil
            case .allocated: return (bytes.count - rest.count + length, true)
            case .refused, .done: rest = rest.dropFirst(length)
            }
        }
        return (bytes.count - rest.count, false)
    }

    // MARK: - Both directions

    private func pass(from: RelayStream, to: RelayStream) {
        g_output_stream_splice_async(
            g_io_stream_get_output_stream(to.stream), g_io_stream_get_input_stream(from.stream),
            G_OUTPUT_STREAM_SPLICE_NONE, 0, cancellable,
            { _, _, data in RelayTunnel.take(data)?.end() }, retained)
    }

    /// One direction has ended, and with it the other.
    private func end() {
        loop.preconditionOnLoop()
        close()
        // Not while the other direction uses them: each waits for its own callback.
        for stream in [upstream, client] {
            guard let stream else { continue }
            onContext { g_io_stream_close_async(stream.stream, 0, nil, nil, nil) }
        }
    }
}
