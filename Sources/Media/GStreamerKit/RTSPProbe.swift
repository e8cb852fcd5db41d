internal import CGLib
internal import CGStreamer
internal import Dispatch
package import MediaGraph
internal import Synchronization

/// Queries the streams of an RTSP server without starting them (DESCRIBE, RFC 2326, section 10.2).
///
/// GStreamer's rtspsrc reports "Generic error" for a closed port, for an unknown host and for a timeout. This probe
/// distinguishes them, and describes the streams before anything runs.
package enum RTSPProbe {
    package enum Failure: Error, Sendable, Hashable {
        /// The reason as the end of a sentence.
        case unreachable(String)
        /// The reason why the certificate of a server with TLS is not trusted.
        case untrusted(String)
        /// The server requires a user and a password, or rejects the given ones.
        case unauthorized(wereGiven: Bool)
        /// It requires them by a scheme other than Basic and Digest with MD5.
        case unknownScheme(String)
        case notFound
        /// Another status than success.
        case status(Int, String)

        static let silent = Failure.unreachable("it does not respond")
        static let notRTSP = Failure.unreachable("its response is not RTSP")
    }

    /// Ends a probe that blocks. Any thread.
    package final class Cancellation: Sendable {
        private struct State {
            var isCancelled = false
            var cancel: (@Sendable () -> Void)?
        }

        private let state = Mutex(State())

        package init() {}

        package func cancel() {
            let cancel = state.withLock { state in
                state.isCancelled = true
                return state.cancel
            }
            cancel?()
        }

        fileprivate func set(_ cancel: (@Sendable () -> Void)?) {
            let isCancelled = state.withLock { state in
                state.cancel = cancel
                return state.isCancelled
            }
            if isCancelled { cancel?() }
        }
    }

    /// Blocks until the response is there, `seconds` at most.
    package static func describe(
        _ address: RTSPAddress, verifyingCertificate: Bool = true, seconds: Double,
        until cancellation: Cancellation? = nil
    ) throws(Failure) -> NetworkCamera {
        let connection = try RTSPConnection(address, verifyingCertificate: verifyingCertificate, seconds: seconds)
        cancellation?.set { [weak connection] in connection?.cancel() }
        defer { cancellation?.set(nil) }
        try connection.open()
        var response = try connection.describe()
        if response.status == 401 {
            guard let user = address.user else { throw .unauthorized(wereGiven: false) }
            try connection.authorize(user, address.password ?? "", for: response)
            response = try connection.describe()
        }
        switch response.status {
        case 200..<300: return NetworkCamera(sessionDescription: response.body)
        case 401, 403: throw .unauthorized(wereGiven: address.user != nil)
        case 404: throw .notFound
        default: throw .status(response.status, response.reason)
        }
    }
}

/// A request or response. The corresponding C type is `GstRTSPMessage`.
private final class RTSPMessage {
    let pointer: UnsafeMutablePointer<GstRTSPMessage>
    private(set) var status = 0
    private(set) var reason = ""

    /// An empty message.
    init() {
        var made: UnsafeMutablePointer<GstRTSPMessage>?
        gst_rtsp_message_new(&made)
        guard let made else { preconditionFailure("no memory for a message") }
        pointer = made
    }

    deinit {
        gst_rtsp_message_free(pointer)
    }

    /// Reads the first line of a response; false when the message is none.
    func readStatus() -> Bool {
        guard gst_rtsp_message_get_type(pointer) == GST_RTSP_MESSAGE_RESPONSE else { return false }
        var code = GST_RTSP_STS_INVALID
        var text: UnsafePointer<CChar>?
        gst_rtsp_message_parse_response(pointer, &code, &text, nil)
        status = Int(code.rawValue)
        reason = text.map { String(cString: $0) } ?? ""
        return true
    }

    /// The first value of a header.
    func header(_ field: GstRTSPHeaderField) -> String? {
        var value: UnsafeMutablePointer<CChar>?
        return gst_rtsp_message_get_header(pointer, field, &value, 0) == GST_RTSP_OK
            ? value.map { String(cString: $0) } : nil
    }

    var body: String {
        var bytes: UnsafeMutablePointer<UInt8>?
        var count: UInt32 = 0
        gst_rtsp_message_get_body(pointer, &bytes, &count)
        return String(decoding: UnsafeBufferPointer(start: bytes, count: Int(count)), as: UTF8.self)
    }
}

/// A connection to an RTSP server, with one deadline for all operations. The corresponding C type is `GstRTSPConnection`.
// @unchecked: everything but `cancel` runs on one thread, and `cancel` only uses the timer.
private final class RTSPConnection: @unchecked Sendable {
    /// The largest body that is read, in bytes.
    private static let longestBody: UInt32 = 256 * 1024

    private let address: RTSPAddress
    private let verifiesCertificate: Bool
    private let pointer: OpaquePointer
    private let cancellable = g_cancellable_new()
    /// Cancels everything at the deadline.
    private let timer = DispatchQueue(label: "rtsp deadline")
    private let expiry: DispatchWorkItem
    private var certificateProblem: String?

    init(_ address: RTSPAddress, verifyingCertificate: Bool, seconds: Double) throws(RTSPProbe.Failure) {
        GStreamer.load()
        guard !address.isEncrypted || g_tls_backend_supports_tls(g_tls_backend_get_default()) != 0 else {
            throw .unreachable("this machine has no TLS for GLib: install glib-networking")
        }
        var url: UnsafeMutablePointer<GstRTSPUrl>?
        var made: OpaquePointer?
        gst_rtsp_url_parse(address.url, &url)
        defer { gst_rtsp_url_free(url) }
        guard let url, gst_rtsp_connection_create(url, &made) == GST_RTSP_OK, let made else {
            throw .unreachable("its address is not one of RTSP")
        }
        self.address = address
        verifiesCertificate = verifyingCertificate
        pointer = made
        let cancellable = cancellable
        expiry = DispatchWorkItem {
            g_cancellable_cancel(cancellable)
            gst_rtsp_connection_flush(made, 1)
        }
        timer.asyncAfter(deadline: .now() + seconds, execute: expiry)
        gst_rtsp_connection_set_content_length_limit(pointer, Self.longestBody)
        gst_rtsp_connection_set_accept_certificate_func(
            pointer,
            { _, _, errors, connection in
                guard let connection else { return 0 }
                return Unmanaged<RTSPConnection>.fromOpaque(connection).takeUnretainedValue().accepts(errors) ? 1 : 0
            }, Unmanaged.passUnretained(self).toOpaque(), nil)
    }

    deinit {
        expiry.cancel()
        // The work item may be running.
        timer.sync {}
        gst_rtsp_connection_close(pointer)
        gst_rtsp_connection_free(pointer)
        g_object_unref(cancellable)
    }

    /// Ends everything now, as at the deadline.
    func cancel() { timer.async(execute: expiry) }

    /// Called during the handshake for a certificate that the system does not trust.
    private func accepts(_ errors: GTlsCertificateFlags) -> Bool {
        guard verifiesCertificate else { return true }
        let problems = [
            (G_TLS_CERTIFICATE_UNKNOWN_CA, "this machine does not know its issuer"),
            (G_TLS_CERTIFICATE_BAD_IDENTITY, "it belongs to another host"),
            (G_TLS_CERTIFICATE_EXPIRED, "it has expired"),
        ]
        certificateProblem = problems.first { errors.rawValue & $0.0.rawValue != 0 }?.1 ?? "it is invalid"
        return false
    }

    func open() throws(RTSPProbe.Failure) {
        let result = gst_rtsp_connection_connect_usec(pointer, 0)
        guard result != GST_RTSP_OK else { return }
        if let certificateProblem { throw .untrusted(certificateProblem) }
        throw [GST_RTSP_ETIMEOUT, GST_RTSP_EINTR].contains(result) ? .silent : connectFailure()
    }

    func describe() throws(RTSPProbe.Failure) -> RTSPMessage {
        let request = RTSPMessage()
        gst_rtsp_message_init_request(request.pointer, GST_RTSP_DESCRIBE, address.url)
        gst_rtsp_message_add_header(request.pointer, GST_RTSP_HDR_ACCEPT, "application/sdp")
        gst_rtsp_message_add_header(request.pointer, GST_RTSP_HDR_USER_AGENT, "connectlive")
        try check(gst_rtsp_connection_send_usec(pointer, request.pointer, 0))
        let response = RTSPMessage()
        try check(gst_rtsp_connection_receive_usec(pointer, response.pointer, 0))
        guard response.readStatus() else { throw .notRTSP }
        return response
    }

    /// Sends user and password with later requests, by the first scheme of the response that is known.
    func authorize(_ user: String, _ password: String, for response: RTSPMessage) throws(RTSPProbe.Failure) {
        let credentials = gst_rtsp_message_parse_auth_credentials(response.pointer, GST_RTSP_HDR_WWW_AUTHENTICATE)
        defer { gst_rtsp_auth_credentials_free(credentials) }
        var next = credentials
        while let credential = next?.pointee?.pointee {
            if authorize(user, password, by: credential) {
                if response.header(GST_RTSP_HDR_CONNECTION)?.lowercased() == "close" {
                    gst_rtsp_connection_close(pointer)
                    try open()
                }
                return
            }
            next = next?.advanced(by: 1)
        }
        let scheme = response.header(GST_RTSP_HDR_WWW_AUTHENTICATE)?.split(separator: " ").first
        throw .unknownScheme(scheme.map(String.init) ?? "no known one")
    }

    private func authorize(_ user: String, _ password: String, by credential: GstRTSPAuthCredential) -> Bool {
        gst_rtsp_connection_clear_auth_params(pointer)
        var next = credential.params
        while let parameter = next?.pointee?.pointee {
            let name = String(cString: parameter.name), value = parameter.value.map { String(cString: $0) } ?? ""
            // GStreamer computes MD5 for every algorithm.
            if name.lowercased() == "algorithm", value.uppercased() != "MD5" { return false }
            gst_rtsp_connection_set_auth_param(pointer, name, value)
            next = next?.advanced(by: 1)
        }
        return gst_rtsp_connection_set_auth(pointer, credential.scheme, user, password) == GST_RTSP_OK
    }

    // MARK: Failures

    private func check(_ result: GstRTSPResult) throws(RTSPProbe.Failure) {
        if result != GST_RTSP_OK { throw failure(result) }
    }

    private func failure(_ result: GstRTSPResult) -> RTSPProbe.Failure {
        switch result {
        case GST_RTSP_ETIMEOUT, GST_RTSP_EINTR: return .silent
        // A server that closes or resets the connection at the first request does not speak RTSP.
        case GST_RTSP_EEOF, GST_RTSP_EPARSE, GST_RTSP_ESYS: return .notRTSP
        default: return .unreachable(takeString(gst_rtsp_strresult(result)) ?? "unknown reason")
        }
    }

    /// The reason why no connection was made: GStreamer does not tell, so GLib tries again.
    private func connectFailure() -> RTSPProbe.Failure {
        let client = g_socket_client_new()
        defer { g_object_unref(client) }
        var error: UnsafeMutablePointer<GError>?
        if let connection = g_socket_client_connect_to_host(
            client, address.host, UInt16(address.port), cancellable, &error)
        {
            g_object_unref(connection)
            return address.isEncrypted ? .unreachable("it does not speak TLS") : .notRTSP
        }
        defer { g_clear_error(&error) }
        guard let reason = error?.pointee else { return .silent }
        if reason.domain == g_resolver_error_quark() {
            return .unreachable("the host \(address.host) does not exist")
        }
        guard reason.domain == g_io_error_quark() else { return .unreachable(String(cString: reason.message)) }
        switch GIOErrorEnum(UInt32(reason.code)) {
        case G_IO_ERROR_CONNECTION_REFUSED: return .unreachable("nothing listens on port \(address.port) there")
        case G_IO_ERROR_TIMED_OUT, G_IO_ERROR_CANCELLED: return .silent
        default: return .unreachable(String(cString: reason.message))
        }
    }
}
