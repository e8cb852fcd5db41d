/// The encodings of one video that an m-line carries, its *layers*: their restriction identifiers (`a=rid`, RFC 8851), lowest
/// first, as `a=simulcast` lists them (RFC 8853).
public struct Simulcast: Sendable, Equatable {
    /// Longer lists are cut off.
    public static let maximumLayers = 8

    /// The layers that the end with this description sends.
    public var sent: [String]
    /// The layers that it receives.
    public var received: [String]

    public init(sent: [String] = [], received: [String] = []) { (self.sent, self.received) = (sent, received) }

    public var isEmpty: Bool { sent.isEmpty && received.isEmpty }

    /// The lines of a description, without `a=`.
    var attributes: [String] {
        guard !isEmpty else { return [] }
        let rids = sent.map { "rid:\($0) send" } + received.map { "rid:\($0) recv" }
        let lists = [("send", sent), ("recv", received)].filter { !$0.1.isEmpty }
        return rids + ["simulcast:" + lists.map { "\($0) \($1.joined(separator: ";"))" }.joined(separator: " ")]
    }
}

/// Collects the lines of one m-line.
struct SimulcastParser {
    private var identifiers: [(rid: String, direction: Substring)] = []
    private var lists: [Substring: [String]] = [:]

    /// `RID send|recv [restrictions]`. Restrictions are ignored.
    mutating func rid(_ value: Substring) {
        let parts = value.split(separator: " ", maxSplits: 2)
        guard parts.count >= 2, Self.isIdentifier(parts[0]), identifiers.count < 2 * Simulcast.maximumLayers else {
            return
        }
        identifiers.append((String(parts[0]), parts[1]))
    }

    /// `send a;b,c;~d recv e`. The first of alternatives counts, and a paused layer (`~`) counts as any other.
    mutating func simulcast(_ value: Substring) {
        let parts = value.split(separator: " ", maxSplits: 4)
        for (direction, list) in zip(parts, parts.dropFirst()) where direction == "send" || direction == "recv" {
            let first = list.split(separator: ";").prefix(Simulcast.maximumLayers).compactMap {
                $0.split(separator: ",").first
            }
            lists[direction] = first.map { String($0.first == "~" ? $0.dropFirst() : $0) }
        }
    }

    /// The listed layers that have an identifier's line. Nil without any.
    var value: Simulcast? {
        func layers(_ direction: Substring) -> [String] {
            var found: [String] = []
            for rid in lists[direction] ?? []
            where !found.contains(rid) && identifiers.contains(where: { $0.rid == rid && $0.direction == direction }) {
                found.append(rid)
            }
            return found
        }
        let value = Simulcast(sent: layers("send"), received: layers("recv"))
        return value.isEmpty ? nil : value
    }

    /// RFC 8851, section 10, and at most as long as a header extension of one byte.
    private static func isIdentifier(_ text: Substring) -> Bool {
        (1...16).contains(text.utf8.count)
            && text.unicodeScalars.allSatisfy { scalar in
                scalar.isASCII
                    && (scalar.properties.isAlphabetic || ("0"..."9").contains(scalar) || scalar == "-"
                        || scalar == "_")
            }
    }
}
