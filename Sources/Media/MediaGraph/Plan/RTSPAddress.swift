/// Where a network camera is found, taken apart: `rtsp://user:password@host:port/path`.
public struct RTSPAddress: Sendable, Hashable, CustomStringConvertible {
    public static let standardPort = 554

    public let user: String?
    public let password: String?
    /// A name or an address; an IPv6 address without its brackets.
    public let host: String
    public let port: Int
    /// With the leading slash and the query; empty when there is none.
    public let path: String

    /// Nil when the text is no such address.
    public init?(_ text: String) {
        let scheme = "rtsp://"
        guard text.lowercased().hasPrefix(scheme), !text.contains(where: \.isWhitespace) else { return nil }
        let rest = text.dropFirst(scheme.count)
        let end = rest.firstIndex { $0 == "/" || $0 == "?" } ?? rest.endIndex
        path = String(rest[end...])
        var authority = rest[..<end]
        // A password may hold an @ that nobody has encoded.
        if let at = authority.lastIndex(of: "@") {
            let parts = authority[..<at].split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            user = Self.decoded(parts[0])
            password = parts.count > 1 ? Self.decoded(parts[1]) : nil
            authority = authority[authority.index(after: at)...]
        } else {
            (user, password) = (nil, nil)
        }
        var port = Substring("\(Self.standardPort)")
        if authority.first == "[" {
            guard let close = authority.firstIndex(of: "]") else { return nil }
            host = String(authority[authority.index(after: authority.startIndex)..<close])
            let tail = authority[authority.index(after: close)...]
            guard tail.isEmpty || tail.first == ":" else { return nil }
            if !tail.isEmpty { port = tail.dropFirst() }
        } else {
            let parts = authority.split(separator: ":", omittingEmptySubsequences: false)
            guard parts.count <= 2, let name = parts.first else { return nil }
            host = String(name)
            if parts.count == 2 { port = parts[1] }
        }
        guard !host.isEmpty, let number = Int(port), (1...65_535).contains(number) else { return nil }
        self.port = number
    }

    /// Without user and password: what the server is asked for, and what may be printed.
    public var url: String {
        let name = host.contains(":") ? "[\(host)]" : host
        return "rtsp://\(name)\(port == Self.standardPort ? "" : ":\(port)")\(path)"
    }

    public var description: String { url }

    /// With what %40 and its like stand for.
    private static func decoded(_ text: Substring) -> String {
        var bytes: [UInt8] = []
        var rest = text.utf8[...]
        while let first = rest.popFirst() {
            if first == UInt8(ascii: "%"), rest.count >= 2,
                let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16)
            {
                bytes.append(value)
                rest = rest.dropFirst(2)
            } else {
                bytes.append(first)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
