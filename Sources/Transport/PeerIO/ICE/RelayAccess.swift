internal import CGLib
internal import CNice
internal import Dispatch
internal import Glibc
internal import PeerLoop
internal import RTP

/// A reason in the name or place of a TURN server: the `cause` of `turn.unreachable`.
package enum RelayPlaceProblem: Error {
    /// No name server knows the name, or none responds.
    case unknownName
    /// The room server named a place to which it may not send clients.
    case forbidden
    /// This machine has no route to its addresses.
    case noRoute
    /// Its port accepts TCP, and no TLS.
    case noTLS
}

/// The addresses of a server, and connections to it. Everything here blocks, so it runs on threads of its own.
enum RelayAccess {
    /// The most addresses of one name that are tried.
    private static let addressLimit = 4

    /// The literal addresses of a server at which this end may send packets.
    ///
    /// An address that the other end of the connection named may lead to a third party. It counts only within the reach of
    /// that end: a public server leads to public addresses alone.
    static func addresses(
        of server: ICEServer, during work: RelayWork? = nil
    ) throws(TransportError) -> [String] {
        let all = AddressScope(server.host) == nil ? resolved(server.host, work) : [server.host]
        guard !all.isEmpty else {
            if let work, work.isOver {
                throw problem(
                    "turn.unreachable", server, "no name server responded within \(work.seconds) s. Check the network",
                    .unknownName)
            }
            throw problem(
                "turn.unreachable", server, "its name is unknown. Check the name and the network", .unknownName)
        }
        let allowed = all.filter { AddressScope($0).map { isOpen($0, to: server.origin) } ?? false }
        guard !allowed.isEmpty else {
            throw problem(
                "turn.unreachable", server,
                "\(all[0]) is not an address to which the room server may send clients. Configure the server yourself",
                .forbidden)
        }
        if case .named = server.origin, server.port < 1024, server.port != 80, server.port != 443 {
            throw problem(
                "turn.unreachable", server,
                "port \(server.port) is one of other services. Use 80, 443, or a port from 1024", .forbidden)
        }
        return Array(allowed.prefix(addressLimit))
    }

    /// The addresses that media over UDP uses: libnice asks a server from each own address of the same family.
    static func firstOfEachFamily(_ addresses: [String]) -> [String] {
        [false, true].compactMap { isSix in addresses.first { $0.contains(":") == isSix } }
    }

    /// Whether an end within this origin may direct us at an address of a scope.
    static func isOpen(_ scope: AddressScope, to origin: ICEServer.Origin) -> Bool {
        switch (scope, origin) {
        case (.unusable, _): false
        case (_, .configured): true
        case (.global, _): true
        case (.linkLocal, _): false
        case (_, .named(byEndAt: nil)): false
        case (_, .named(byEndAt: let end?)):
            switch (scope, AddressScope(end)) {
            // That end is this machine, or a tunnel that the user has made.
            case (_, .loopback): true
            case (.local, .local): true
            default: false
            }
        }
    }

    private static func resolved(_ name: String, _ work: RelayWork?) -> [String] {
        let resolver = g_resolver_get_default()
        defer { g_object_unref(resolver) }
        guard let list = g_resolver_lookup_by_name(resolver, name, work?.cancellable, nil) else { return [] }
        defer { g_resolver_free_addresses(list) }
        var found: [String] = []
        var item: UnsafeMutablePointer<GList>? = list
        while let node = item {
            if let data = node.pointee.data,
                let text = g_inet_address_to_string(data.assumingMemoryBound(to: GInetAddress.self))
            {
                found.append(String(cString: text))
                g_free(text)
            }
            item = node.pointee.next
        }
        return found
    }

    static func problem(
        _ code: String, _ server: ICEServer, _ reason: String, _ cause: RelayPlaceProblem? = nil
    ) -> TransportError {
        TransportError(
            code: code,
            message: "The TURN server \(server.place) cannot be used over "
                + "\(server.relayTransport?.rawValue ?? "UDP"): \(reason).",
            cause: cause)
    }

    // MARK: - Connections

    /// Opens a TCP connection to a server, with TLS if its transport is that. The first address that accepts counts.
    ///
    /// - Parameters:
    ///   - seconds: the limit of each wait for the server, also of the stream that this returns.
    ///   - work: its end ends the call.
    static func connect(
        to server: ICEServer, seconds: UInt32, during work: RelayWork
    ) throws(TransportError) -> RelayStream {
        var last = problem("turn.unreachable", server, "it has no address")
        for address in try addresses(of: server, during: work) {
            do throws(TransportError) {
                let stream = try connect(to: address, of: server, seconds: seconds, work)
                guard server.relayTransport == .tls else { return stream }
                return try secure(stream, to: server, work)
            } catch {
                last = error
            }
        }
        throw last
    }

    private static func connect(
        to address: String, of server: ICEServer, seconds: UInt32, _ work: RelayWork
    ) throws(TransportError) -> RelayStream {
        let client = g_socket_client_new()
        defer { g_object_unref(client) }
        g_socket_client_set_timeout(client, seconds)
        // A proxy of the user's desktop carries no media.
        g_socket_client_set_enable_proxy(client, 0)
        let place = g_inet_socket_address_new_from_string(address, guint(server.port))
        defer { g_object_unref(place) }
        var error: UnsafeMutablePointer<GError>?
        guard let connection = g_socket_client_connect(client, OpaquePointer(place), work.cancellable, &error) else {
            throw problem("turn.unreachable", server, reason(of: error, work) + ". Check its port and the firewall")
        }
        let raw = UnsafeMutableRawPointer(connection)
        return RelayStream(
            raw.assumingMemoryBound(to: GIOStream.self), socket: g_socket_connection_get_socket(connection))
    }

    /// Adds TLS (RFC 8446) to a connection. The certificate has to be for the server's host.
    private static func secure(
        _ plain: RelayStream, to server: ICEServer, _ work: RelayWork
    ) throws(TransportError) -> RelayStream {
        let identity = g_network_address_new(server.host, guint16(server.port))
        defer { identity.map { g_object_unref(UnsafeMutableRawPointer($0)) } }
        var error: UnsafeMutablePointer<GError>?
        guard let secured = g_tls_client_connection_new(plain.stream, identity, &error) else {
            throw problem("turn.certificate", server, "\(reason(of: error)). Install glib-networking")
        }
        let result = RelayStream(secured, socket: plain.socket)
        let connection = UnsafeMutableRawPointer(secured).assumingMemoryBound(to: GTlsConnection.self)
        if let file = server.authorities {
            guard let authorities = g_tls_file_database_new(file, &error) else {
                throw problem(
                    "turn.certificate", server, "\(file) has no usable certificates: \(reason(of: error))")
            }
            g_tls_connection_set_database(
                connection, UnsafeMutableRawPointer(authorities).assumingMemoryBound(to: GTlsDatabase.self))
            g_object_unref(UnsafeMutableRawPointer(authorities))
        }
        guard g_tls_connection_handshake(connection, work.cancellable, &error) != 0 else {
            let isCertificate =
                error.map { $0.pointee.domain == g_tls_error_quark() && $0.pointee.code == badCertificate } ?? false
            guard isCertificate else {
                throw problem(
                    "turn.unreachable", server,
                    "it accepts TCP, but the TLS handshake fails: \(reason(of: error, work)). Check that this port has TLS",
                    .noTLS)
            }
            g_error_free(error)
            throw problem(
                "turn.certificate", server,
                "its certificate is not for \(server.host), has expired, or is signed by an unknown authority. Correct "
                    + "the certificate, or name its authority")
        }
        return result
    }

    private static let badCertificate = gint(G_TLS_ERROR_BAD_CERTIFICATE.rawValue)

    /// The message of an error, without its full stop. Frees it.
    private static func reason(of error: UnsafeMutablePointer<GError>?, _ work: RelayWork? = nil) -> String {
        guard let error else { return "unknown" }
        defer { g_error_free(error) }
        if let work, work.isOver { return "it did not finish within \(work.seconds) s" }
        let text = error.pointee.message.map { String(cString: $0) } ?? "unknown"
        let plain = text.hasSuffix(".") ? String(text.dropLast()) : text
        return plain.prefix(1).lowercased() + plain.dropFirst()
    }
}

/// Blocking work at a server, which ends early when its time is over or its owner cancels it. On any thread.
///
/// The limits of single waits are not enough: a server that sends a byte now and then keeps each of them.
final class RelayWork: @unchecked Sendable {
    // Sendable by hand: a GCancellable is safe on all threads.
    let cancellable: UnsafeMutablePointer<GCancellable>
    let seconds: Int
    private static let timers = DispatchQueue(label: "turn-limits")

    /// - Parameter seconds: from now to its end.
    init(seconds: Int = 10) {
        cancellable = g_cancellable_new()
        self.seconds = seconds
        Self.timers.asyncAfter(deadline: .now() + .seconds(seconds)) { [weak self] in self?.cancel() }
    }

    deinit { g_object_unref(UnsafeMutableRawPointer(cancellable)) }

    func cancel() { g_cancellable_cancel(cancellable) }

    var isOver: Bool { g_cancellable_is_cancelled(cancellable) != 0 }
}

/// A connection to a TURN server that one thread uses at a time.
final class RelayStream: @unchecked Sendable {
    // Sendable by hand: its owner passes it on to another thread as a whole.
    let stream: UnsafeMutablePointer<GIOStream>
    /// The socket below, which the stream owns.
    let socket: UnsafeMutablePointer<GSocket>?
    /// Bytes that the kernel may queue for the connection. More would delay media rather than drop it.
    private static let buffer: Int32 = 128 << 10

    /// Takes over the reference to the stream.
    init(_ stream: UnsafeMutablePointer<GIOStream>, socket: UnsafeMutablePointer<GSocket>?) {
        self.stream = stream
        self.socket = socket
        guard let socket else { return }
        let descriptor = g_socket_get_fd(socket)
        var (size, on) = (Self.buffer, Int32(1))
        let length = socklen_t(MemoryLayout<Int32>.size)
        setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &size, length)
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &on, length)
    }

    deinit {
        g_object_unref(UnsafeMutableRawPointer(stream))
    }

    /// Lets the server be silent for as long as it likes.
    func removeLimit() {
        if let socket { g_socket_set_timeout(socket, 0) }
    }

    /// Sends all bytes. Returns false if the connection or the work has ended.
    func send(_ bytes: [UInt8], during work: RelayWork) -> Bool {
        var written: gsize = 0
        return g_output_stream_write_all(
            g_io_stream_get_output_stream(stream), bytes, gsize(bytes.count), &written, work.cancellable, nil)
            != 0
    }

    /// The next bytes. Nil if the connection or the work has ended, or the limit of time has passed.
    func receive(atMost count: Int, during work: RelayWork) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: count)
        let length = g_input_stream_read(
            g_io_stream_get_input_stream(stream), &bytes, gsize(count), work.cancellable, nil)
        return length > 0 ? Array(bytes[..<length]) : nil
    }

    func close() {
        g_io_stream_close(stream, nil, nil)
    }
}
