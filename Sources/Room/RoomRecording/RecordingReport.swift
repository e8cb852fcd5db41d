internal import Foundation
internal import RoomProtocol
internal import ServerCore

/// The JSON beside a recording, which is there when the recording has ended.
struct RecordingReport: Codable, Equatable {
    var file: String
    var room: String
    var participant: String
    var stream: Int
    var media: String
    var codec: String
    /// When the first frame was captured, by the server's clock.
    var start: String
    /// From the first packet to the last one.
    var seconds: Double
    var bytes: Int
    var packets: Int
    /// Packets that never came.
    var missing: Int
    /// Packets for which the disk was too slow.
    var dropped: Int
    /// Why the recording ended before its stream. Absent if it did not.
    var error: Problem?

    /// ISO 8601 in UTC, to the microsecond.
    static func text(_ date: Date) -> String {
        let whole = date.timeIntervalSince1970.rounded(.down)
        let microseconds = Int(((date.timeIntervalSince1970 - whole) * 1e6).rounded(.down))
        let fraction = String(microseconds)
        return Date(timeIntervalSince1970: whole).formatted(.iso8601).dropLast()
            + ".\(String(repeating: "0", count: 6 - fraction.count))\(fraction)Z"
    }

    func write(to path: String) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        try encoder.encode(self).write(to: URL(filePath: path), options: .atomic)
        try FileManager.default.setAttributes([.posixPermissions: 0o640], ofItemAtPath: path)
    }
}
