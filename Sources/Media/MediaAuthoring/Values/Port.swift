/// An input or output of all nodes of a kind.
public struct Port: Sendable, Hashable {
    /// The name in links, such as `video`.
    public let name: String
    /// The media that the port can carry. The link settles which of them it is.
    public let kinds: Set<MediaKind>
    /// The encodings that the port accepts or delivers, best first; empty for all encodings. Input in another encoding
    /// is converted, encoded or decoded.
    public let encodings: [String]
    /// Whether a graph that leaves the port unlinked is rejected.
    public let isRequired: Bool
    /// Whether this stands for any number of ports with this name and a number from 1, such as `in1` and `in2`.
    public let isRepeated: Bool

    /// A port that has to be linked, unless stated otherwise.
    public init(
        _ name: String, _ kinds: Set<MediaKind>, encodings: [String] = [], isRequired: Bool = true,
        isRepeated: Bool = false
    ) {
        self.name = name
        self.kinds = kinds
        self.encodings = encodings
        self.isRequired = isRequired
        self.isRepeated = isRepeated
    }

    /// Whether `reference` names this port, or one of its numbered ports.
    public func matches(_ reference: String) -> Bool {
        guard isRepeated else { return reference == name }
        guard reference.hasPrefix(name), let number = Int(reference.dropFirst(name.count)) else { return false }
        return (1...1000).contains(number) && reference == "\(name)\(number)"
    }
}
