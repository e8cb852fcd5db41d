/// Whether a published stream shows its source.
package enum StreamState: Sendable, Hashable {
    /// The source delivers. The default, which messages omit.
    case live
    /// The source delivers nothing, and the stream shows a stand-in. The text has the reason, such as "camera unplugged".
    case waiting(String)

    /// The most bytes of UTF-8 in a text.
    package static let maximumTextLength = 128

    /// Waiting, with as much of a text as a server accepts.
    package static func waiting(shortening text: String) -> StreamState {
        var (short, length) = ("", 0)
        for scalar in text.unicodeScalars where !scalar.isControl {
            length += UTF8.width(scalar)
            guard length <= maximumTextLength else { break }
            short.unicodeScalars.append(scalar)
        }
        return .waiting(short)
    }

    /// Throws if the text is too long, or has characters that could change other text beside it.
    package func validate() throws(RoomError) {
        guard case .waiting(let text) = self else { return }
        guard text.utf8.count <= Self.maximumTextLength else {
            throw RoomError(
                .messageMalformed,
                "The text of a stream's state has \(text.utf8.count) bytes; the limit is \(Self.maximumTextLength). "
                    + "Shorten it.")
        }
        guard !text.unicodeScalars.contains(where: \.isControl) else {
            throw RoomError(
                .messageMalformed,
                "The text of a stream's state has a control character. Send one line of plain text.")
        }
    }
}

extension Unicode.Scalar {
    /// Whether it acts on the text around it: control characters, line ends and directions.
    var isControl: Bool {
        switch properties.generalCategory {
        case .control, .lineSeparator, .paragraphSeparator: true
        default: properties.isBidiControl
        }
    }
}

/// The fields `state` and `text`, among those of the message that has the state. A state of a later version counts as
/// live.
extension StreamState: Codable {
    private enum CodingKeys: String, CodingKey { case state, text }
    private static let waiting = "waiting"
    /// For messages that tell a live stream from one whose state stays.
    static let liveName = "live"

    package init(from decoder: any Decoder) throws {
        let fields = try decoder.container(keyedBy: CodingKeys.self)
        guard try fields.decodeIfPresent(String.self, forKey: .state) == Self.waiting else {
            self = .live
            return
        }
        self = .waiting(try fields.decodeIfPresent(String.self, forKey: .text) ?? "")
    }

    package func encode(to encoder: any Encoder) throws {
        guard case .waiting(let text) = self else { return }
        var fields = encoder.container(keyedBy: CodingKeys.self)
        try fields.encode(Self.waiting, forKey: .state)
        try fields.encode(text, forKey: .text)
    }
}
