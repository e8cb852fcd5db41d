internal import Foundation
package import RoomProtocol

/// A room server's address, read from `https://host:port/path`, `wss://…`, `http://…`, `ws://…`, or `host:port`, which is
/// plain.
package struct ServerAddress: Sendable, Hashable, CustomStringConvertible {
    /// Whether the connection uses TLS.
    package let isEncrypted: Bool
    /// A name or a numeric address, without brackets.
    package let host: String
    package let port: Int
    /// The prefix of all paths of the server: empty, or with a slash at its beginning and none at its end.
    package let path: String
    /// As the user wrote it, in lower case. Messages show it; `http` and `ws` mean the same place.
    private let scheme: String

    /// The default port of `serve`, and of addresses without TLS.
    package static let defaultPort = 7880
    /// The default port of addresses with TLS.
    package static let defaultTLSPort = 443

    private static let longestPath = 1024

    /// The end of a message about a server elsewhere that refuses connections.
    package static let loopbackHint = "It may listen on 127.0.0.1 only."
    /// Whether the host is this machine itself, by the usual names.
    package var isLoopback: Bool { host == "localhost" || host == "::1" || host.hasPrefix("127.") }

    package init(_ text: String) throws(RoomError) {
        var rest = Substring(text)
        var (isEncrypted, scheme) = (false, "ws")
        if let mark = text.range(of: "://") {
            scheme = text[..<mark.lowerBound].lowercased()
            switch scheme {
            case "ws", "http": break
            case "wss", "https": isEncrypted = true
            default: throw Self.refusal(text, "does not begin with https://, wss://, http:// or ws://")
            }
            rest = text[mark.upperBound...]
        }
        guard !rest.contains(where: { "?#".contains($0) }) else {
            throw Self.refusal(text, "has a query or a fragment")
        }
        let path = rest.firstIndex(of: "/").map { rest[$0...] } ?? ""
        rest = rest.dropLast(path.count)
        guard !rest.contains("@") else { throw Self.refusal(text, "has a user name") }
        let (host, port) = Self.split(rest)
        guard !host.isEmpty, host.utf8.count <= 253, !host.contains(where: { $0.isWhitespace || "[]".contains($0) })
        else { throw Self.refusal(text, "has no host") }
        let usual = isEncrypted ? Self.defaultTLSPort : Self.defaultPort
        guard let port = port.isEmpty ? usual : Int(port), (1...65535).contains(port) else {
            throw Self.refusal(text, "has no port between 1 and 65535")
        }
        guard Self.isPath(path) else { throw Self.refusal(text, "has an invalid path") }
        self.isEncrypted = isEncrypted
        self.scheme = scheme
        self.host = String(host)
        self.port = port
        self.path = String(path.prefix(path.count - path.reversed().prefix { $0 == "/" }.count))
    }

    private static func split(_ text: Substring) -> (host: Substring, port: Substring) {
        if text.hasPrefix("["), let end = text.firstIndex(of: "]") {
            let after = text[text.index(after: end)...]
            return (text[text.index(after: text.startIndex)..<end], after.hasPrefix(":") ? after.dropFirst() : after)
        }
        guard let colon = text.lastIndex(of: ":") else { return (text, "") }
        return (text[..<colon], text[text.index(after: colon)...])
    }

    /// Whether a path consists of the characters of RFC 3986, section 3.3, and names no parent folder.
    private static func isPath(_ path: Substring) -> Bool {
        path.utf8.count <= longestPath
            && path.unicodeScalars.allSatisfy {
                $0.isASCII
                    && ($0.properties.isAlphabetic || "0123456789-._~!$&'()*+,;=:@/%".unicodeScalars.contains($0))
            }
            && !path.split(separator: "/").contains { $0 == "." || $0 == ".." }
    }

    private static func refusal(_ text: String, _ problem: String) -> RoomError {
        RoomError(
            .serverUnreachable,
            "The server address '\(text)' \(problem). Use an address like https://rooms.example.org or "
                + "ws://127.0.0.1:\(defaultPort).")
    }

    /// `host:port` for an HTTP Host field; the port of TLS itself is left out (RFC 9110, section 4.2.3).
    package var authority: String {
        let name = host.contains(":") ? "[\(host)]" : host
        return isEncrypted && port == Self.defaultTLSPort ? name : "\(name):\(port)"
    }

    package var description: String { "\(scheme)://\(authority)\(path)" }

    package static func == (left: Self, right: Self) -> Bool {
        (left.isEncrypted, left.host, left.port, left.path) == (right.isEncrypted, right.host, right.port, right.path)
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(isEncrypted)
        hasher.combine(host)
        hasher.combine(port)
        hasher.combine(path)
    }
}
