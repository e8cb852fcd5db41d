internal import Foundation
internal import RoomProtocol
internal import ServerCore

/// The name of a recording's files, which sorts by time: `20261129T060614.123Z_kitchen_p-4f1cPq0aZw_7-video`.
enum RecordingName {
    /// The most characters of a room's or a participant's part.
    private static let longest = 64

    static func of(_ stream: RecordedStream, at time: Date) -> String {
        let parts = [
            timestamp(time), safe(stream.room.text), safe(stream.participant),
            "\(stream.stream)-\(stream.codec.media.rawValue)",
        ]
        return parts.joined(separator: "_")
    }

    /// The text as a part of a file's name: other characters than ASCII letters, digits and hyphens become underscores.
    static func safe(_ text: String) -> String {
        let letters = text.unicodeScalars.prefix(longest).map { scalar -> Character in
            switch scalar {
            case "a"..."z", "A"..."Z", "0"..."9", "-": Character(scalar)
            default: "_"
            }
        }
        return String(letters)
    }

    private static func timestamp(_ time: Date) -> String {
        let milliseconds = Int64((time.timeIntervalSince1970 * 1000).rounded(.down))
        var (seconds, parts) = (time_t(milliseconds / 1000), tm())
        gmtime_r(&seconds, &parts)
        func digits(_ value: Int, _ count: Int) -> String {
            let text = String(value)
            return String(repeating: "0", count: max(0, count - text.count)) + text
        }
        let (year, month) = (digits(Int(parts.tm_year) + 1900, 4), digits(Int(parts.tm_mon) + 1, 2))
        let day = year + month + digits(Int(parts.tm_mday), 2)
        let hour = digits(Int(parts.tm_hour), 2) + digits(Int(parts.tm_min), 2) + digits(Int(parts.tm_sec), 2)
        return "\(day)T\(hour).\(digits(Int(milliseconds % 1000), 3))Z"
    }
}
