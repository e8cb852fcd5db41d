/// Sends a text of the application to other participants.
package struct SendMessage: Sendable, Equatable {
    /// The ids of participants. Empty for all others.
    package var targets: [String]
    package var text: String
    /// A word of the application.
    package var kind: String

    package static let defaultKind = "normal"
    /// The most bytes of UTF-8 in a text.
    package static let maximumTextLength = 16 * 1024
    /// The most bytes that a text may take in JSON, where control characters take six.
    package static let maximumTextLengthInJSON = 2 * maximumTextLength
    /// The most bytes of UTF-8 in a kind.
    package static let maximumKindLength = 64
    package static let maximumTargets = 256

    /// - Parameter kind: `normal` if it is empty
    package init(targets: [String] = [], text: String, kind: String = defaultKind) {
        self.targets = targets
        self.text = text
        self.kind = kind.isEmpty ? Self.defaultKind : kind
    }

    /// An upper bound of the bytes that its texts take in JSON, without the ids of participants.
    package var length: Int { text.lengthInJSON + kind.lengthInJSON }

    /// Throws if it is too long.
    package func validate() throws(RoomError) {
        guard text.utf8.count <= Self.maximumTextLength else {
            throw Self.tooLong("text", "\(text.utf8.count) bytes", "\(Self.maximumTextLength). Send it in parts.")
        }
        guard text.lengthInJSON <= Self.maximumTextLengthInJSON else {
            throw Self.tooLong(
                "text", "\(text.lengthInJSON) bytes in JSON, where control characters take six",
                "\(Self.maximumTextLengthInJSON). Send it in parts, or as Base64.")
        }
        guard kind.utf8.count <= Self.maximumKindLength else {
            throw Self.tooLong("type", "\(kind.utf8.count) bytes", "\(Self.maximumKindLength). Shorten it.")
        }
        guard targets.count <= Self.maximumTargets else {
            throw Self.tooLong(
                "list of targets", "\(targets.count) participants",
                "\(Self.maximumTargets). Send to all with an empty list, or to one part after the other.")
        }
    }

    private static func tooLong(_ part: String, _ length: String, _ limit: String) -> RoomError {
        RoomError(.userMessageTooLong, "The \(part) of the message has \(length); the limit is \(limit)")
    }
}

extension SendMessage: Codable {
    private enum CodingKeys: String, CodingKey { case to, text, kind }

    package init(from decoder: any Decoder) throws {
        let fields = try decoder.container(keyedBy: CodingKeys.self)
        self.init(
            targets: try fields.decodeIfPresent([String].self, forKey: .to) ?? [],
            text: try fields.decode(String.self, forKey: .text),
            kind: try fields.decodeIfPresent(String.self, forKey: .kind) ?? "")
    }

    package func encode(to encoder: any Encoder) throws {
        var fields = encoder.container(keyedBy: CodingKeys.self)
        if !targets.isEmpty { try fields.encode(targets, forKey: .to) }
        try fields.encode(text, forKey: .text)
        if kind != Self.defaultKind { try fields.encode(kind, forKey: .kind) }
    }
}

/// A text that another participant has sent.
package struct UserMessage: Codable, Sendable, Equatable {
    package var from: String
    package var text: String
    package var kind: String

    package init(from: String, text: String, kind: String) {
        self.from = from
        self.text = text
        self.kind = kind
    }

    /// An upper bound of the bytes that its texts take in JSON.
    package var length: Int { text.lengthInJSON + kind.lengthInJSON }
}
