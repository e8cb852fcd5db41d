internal import Foundation
package import RoomProtocol

/// A room server's address, read from `ws://host:port` (or `http://host:port`, or `host:port`).
package struct ServerAddress: Sendable, Hashable, CustomStringConvertible {
    /// A name or a numeric address, without brackets.
    package let host: String
    package let port: Int

    /// The default port of `serve`.
    package static let defaultPort = 7880

    package init(_ text: String) throws(RoomError) {
        var rest = Substring(text)
        if let mark = text.range(of: "://") {
            let scheme = text[..<mark.lowerBound].lowercased()
            guard scheme == "ws" || scheme == "http" else {
                throw Self.refusal(
                    text,
                    scheme == "wss" || scheme == "https"
                        ? "needs TLS, which is not supported"
                        : "is not a ws:// URL")
            }
            rest = text[mark.upperBound...]
        }
        let path = rest.firstIndex(of: "/").map { rest[$0...] } ?? ""
        guard path.isEmpty || path == "/" else { throw Self.refusal(text, "has a path after the port") }
        rest = rest.dropLast(path.count)
        let (host, port) = Self.split(rest)
        guard !host.isEmpty, host.utf8.count <= 253, !host.contains(where: { $0.isWhitespace || "@?#[]".contains($0) })
        else { throw Self.refusal(text, "has no host") }
        guard let port = port.isEmpty ? Self.defaultPort : Int(port), (1...65535).contains(port) else {
            throw Self.refusal(text, "has no port between 1 and 65535")
        }
        self.host = String(host)
        self.port = port
    }

    private static func split(_ text: Substring) -> (host: Substring, port: Substring) {
        if text.hasPrefix("["), let end = text.firstIndex(of: "]") {
            let after = text[text.index(after: end)...]
            return (text[text.index(after: text.startIndex)..<end], after.hasPrefix(":") ? after.dropFirst() : after)
        }
        guard let colon = text.lastIndex(of: ":") else { return (text, "") }
        return (text[..<colon], text[text.index(after: colon)...])
    }

    private static func refusal(_ text: String, _ problem: String) -> RoomError {
        RoomError(
            .serverUnreachable,
            "The server address '\(text)' \(problem). Use an address like ws://127.0.0.1:\(defaultPort).")
    }

    /// `host:port` for an HTTP Host field.
    package var authority: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }

    package var description: String { "ws://\(authority)" }
}
