internal import Foundation
internal import MediaGraph

/// Numbers formatted for people.
enum Figures {
    static func number(_ value: Double, _ digits: Int = 0) -> String { String(format: "%.\(digits)f", value) }

    /// Milliseconds, with one decimal below 10.
    static func milliseconds(_ value: Double) -> String { "\(number(value, value < 9.95 ? 1 : 0)) ms" }

    /// Seconds, shown as microseconds below 1 ms.
    static func duration(_ seconds: Double) -> String {
        seconds < 0.000_999_5 ? "\(number(seconds * 1e6)) µs" : milliseconds(seconds * 1000)
    }

    /// Levels of channels, such as `-18.2, -18.4 dBFS`.
    static func levels(_ channels: [MediaStatistics.ChannelLevel]) -> String {
        channels.map { number($0.rootMeanSquare, 1) }.joined(separator: ", ") + " dBFS"
    }

    static func bytes(_ count: Int) -> String {
        switch count {
        case ..<1024: "\(count) bytes"
        case ..<(1024 * 1024): "\(number(Double(count) / 1024)) KiB"
        case ..<(1024 * 1024 * 1024): "\(number(Double(count) / 1_048_576, 1)) MiB"
        default: "\(number(Double(count) / 1_073_741_824, 1)) GiB"
        }
    }

    /// `1:23`, or `2:01:23` from an hour on.
    static func clock(_ seconds: Double) -> String {
        let whole = Int(max(0, seconds))
        let (hours, minutes, rest) = (whole / 3600, whole / 60 % 60, whole % 60)
        return hours > 0
            ? String(format: "%d:%02d:%02d", hours, minutes, rest) : String(format: "%d:%02d", minutes, rest)
    }

    static func count(_ number: Int, _ thing: String) -> String { "\(number) \(thing)\(number == 1 ? "" : "s")" }
}
