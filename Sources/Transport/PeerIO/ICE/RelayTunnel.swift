internal import CGLib
internal import CNice
internal import Glibc
internal import PeerLoop
internal import RTP

/// A way from libnice, which has no TLS, to a TURN server with TLS: a port on loopback that passes all bytes on. On the
/// loop only.
///
/// It accepts one connection. The kernel's small queues are the only ones, so a slow network makes libnice drop packets.
/// Another user of this machine who connects first gains a connection without credentials, and the relay fails.
final class RelayTunnel {
    /// The port at 127.0.0.1.
    let port: UInt16
    private let listener: UnsafeMutablePointer<GSocketListener>
    private let cancellable: UnsafeMutablePointer<GCancellable>
    private let upstream: RelayStream
    private var client: RelayStream?
    private var isOpen = true
    private let loop: EventLoop

    /// Nil if this machine has no free port or descriptor.
    init?(to upstream: RelayStream, on loop: EventLoop) {
        loop.preconditionOnLoop()
        guard let listener = g_socket_listener_new() else { return nil }
        let any = g_inet_socket_address_new_from_string("127.0.0.1", 0)
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
        self.listener = listener
        self.loop = loop
        self.upstream = upstream
        cancellable = g_cancellable_new()
        onContext {
            g_socket_listener_accept_async(
                listener, cancellable, { source, result, data in RelayTunnel.take(data)?.accepted(source, result) },
                retained)
        }
    }

    deinit {
        assert(!isOpen, "a tunnel must be closed before it is released")
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

    private func accepted(_ source: UnsafeMutablePointer<GObject>?, _ result: OpaquePointer?) {
        let connection = g_socket_listener_accept_finish(listener, result, nil, nil)
        g_socket_listener_close(listener)
        guard let connection else { return end() }
        let client = RelayStream(UnsafeMutableRawPointer(connection).assumingMemoryBound(to: GIOStream.self))
        self.client = client
        guard isOpen else { return end() }
        if let socket = g_socket_connection_get_socket(connection) {
            RelayStream.prepare(descriptor: g_socket_get_fd(socket))
        }
        onContext {
            pass(from: client, to: upstream)
            pass(from: upstream, to: client)
        }
    }

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
