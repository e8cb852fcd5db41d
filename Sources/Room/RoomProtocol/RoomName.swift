/// The name of a room: 1 to 32 letters, digits and hyphens. The same name is the same room.
public struct RoomName: Hashable, Sendable, CustomStringConvertible {
    public let text: String

    /// Throws 1301 with the reason if the text is not a valid name.
    public init(_ text: String) throws(RoomError) {
        guard (1...32).contains(text.unicodeScalars.count) else {
            throw RoomError(
                .roomNameInvalid,
                "A room name must have 1 to 32 characters, not \(text.unicodeScalars.count). Choose a "
                    + (text.isEmpty ? "name such as 'kitchen'." : "shorter one."))
        }
        if let wrong = text.unicodeScalars.first(where: { !Self.isAllowed($0) }) {
            let shown = wrong == " " ? "a space" : "'\(wrong)'"
            let remedy = String(String.UnicodeScalarView(text.unicodeScalars.map { Self.isAllowed($0) ? $0 : "-" }))
            throw RoomError(
                .roomNameInvalid,
                "The room name '\(text)' contains \(shown). Use only letters, digits and '-', such as '\(remedy)'.")
        }
        self.text = text
    }

    public var description: String { text }

    private static func isAllowed(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar {
        case "a"..."z", "A"..."Z", "0"..."9", "-": true
        default: false
        }
    }
}
