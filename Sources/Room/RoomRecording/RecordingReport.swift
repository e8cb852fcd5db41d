internal import Foundation
internal import RoomProtocol
internal import ServerCore

/// The JSON beside a recording, which is there when the recording has ended.
struct RecordingReport: Codable, Equatable {
    /// In how many bytes a report finds room: one block of the disk.
    static let reserve = 4096

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
    /// The publisher's last `sort` of a video: a wished place in a composed recording. Absent for audio.
    var sort: String?
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

    /// Writes it over a file of `reserve` bytes, because a full disk has no place for another one, and renames that.
    func write(over reserved: String, as path: String) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        let text = try encoder.encode(self)
        let file = try FileHandle(forWritingTo: URL(filePath: reserved))
        defer { try? file.close() }
        try file.write(contentsOf: text)
        try file.truncate(atOffset: UInt64(text.count))
        try FileManager.default.moveItem(atPath: reserved, toPath: path)
    }
}
