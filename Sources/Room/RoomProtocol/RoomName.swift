/// The name of a room: 1 to 32 letters, digits and hyphens. The same name is the same room.
public struct RoomName: Hashable, Sendable, CustomStringConvertible {
    public let text: String

    /// Refuses with 1301 what is no room name, saying what is wrong with it.
    public init(_ text: String) throws(RoomError) {
        guard (1...32).contains(text.unicodeScalars.count) else {
            throw RoomError(
                .roomNameInvalid,
                "A room name has 1 to 32 characters, and this one has \(text.unicodeScalars.count): choose a "
                    + (text.isEmpty ? "name such as 'kitchen'." : "shorter one."))
        }
        if let wrong = text.unicodeScalars.first(where: { !Self.isAllowed($0) }) {
            let shown = wrong == " " ? "a space" : "'\(wrong)'"
            let remedy = String(String.UnicodeScalarView(text.unicodeScalars.map { Self.isAllowed($0) ? $0 : "-" }))
            throw RoomError(
                .roomNameInvalid,
                "The room name '\(text)' has \(shown) in it; only letters, digits and '-' are allowed: "
                    + "try '\(remedy)'.")
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
