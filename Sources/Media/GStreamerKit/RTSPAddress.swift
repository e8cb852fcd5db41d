internal import CGLib

/// The parts of a network camera's address, `rtsp://user:password@host:port/path` or the same with `rtsps://`.
package struct RTSPAddress: Sendable, Hashable, CustomStringConvertible {
    package let user: String?
    package let password: String?
    /// A name or an address; an IPv6 address without its brackets.
    package let host: String
    /// 554 unless given, 322 with TLS (RFC 7826, section 22.14).
    package let port: Int
    /// With the leading slash and the query; empty when there is none.
    package let path: String
    /// Whether requests and interleaved media travel over TLS.
    package let isEncrypted: Bool

    /// Nil if the text is not such an address. A password may contain an `@` that is not percent-encoded.
    package init?(_ text: String) {
        let flags = GUriFlags(
            G_URI_FLAGS_PARSE_RELAXED.rawValue | G_URI_FLAGS_HAS_PASSWORD.rawValue
                | G_URI_FLAGS_ENCODED_PATH.rawValue | G_URI_FLAGS_ENCODED_QUERY.rawValue)
        guard !text.contains(where: \.isWhitespace), let uri = g_uri_parse(text, flags, nil) else { return nil }
        defer { g_uri_unref(uri) }
        func part(_ text: UnsafePointer<CChar>?) -> String? { text.map { String(cString: $0) } }
        guard let scheme = part(g_uri_get_scheme(uri))?.lowercased(), ["rtsp", "rtsps"].contains(scheme),
            let host = part(g_uri_get_host(uri)), !host.isEmpty, g_uri_get_port(uri) != 0
        else { return nil }
        isEncrypted = scheme == "rtsps"
        user = part(g_uri_get_user(uri))
        password = part(g_uri_get_password(uri))
        self.host = host
        port = g_uri_get_port(uri) > 0 ? Int(g_uri_get_port(uri)) : isEncrypted ? 322 : 554
        path = (part(g_uri_get_path(uri)) ?? "") + (part(g_uri_get_query(uri)).map { "?" + $0 } ?? "")
    }

    /// Without user and password: the address that is sent to the server, and that may be printed. GStreamer's default
    /// port is 554 for both schemes, so every other port is part of it.
    package var url: String {
        let name = host.contains(":") ? "[\(host)]" : host
        return "\(isEncrypted ? "rtsps" : "rtsp")://\(name)\(port == 554 ? "" : ":\(port)")\(path)"
    }

    package var description: String { url }
}
