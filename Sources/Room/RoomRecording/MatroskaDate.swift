internal import Foundation

/// The date in the header of a Matroska file (RFC 9559, section 5.1.2.11): when its time 0 was. The muxer writes the time at which
/// it begins, before the capture's is known.
enum MatroskaDate {
    /// The header is at the beginning.
    private static let headerLength = 1024
    private static let identifier: [UInt8] = [0x44, 0x61, 0x88]
    /// The dates of Matroska count from 2001.
    private static let origin = Date(timeIntervalSinceReferenceDate: 0)

    /// Changes the date of a file. Does nothing if it has none.
    static func set(_ date: Date, in path: String) {
        guard let file = FileHandle(forUpdatingAtPath: path) else { return }
        defer { try? file.close() }
        guard let place = place(in: file) else { return }
        let nanoseconds = Int64(date.timeIntervalSince(origin) * 1e9)
        let bytes = (0..<8).map { UInt8(truncatingIfNeeded: nanoseconds >> (56 - 8 * Int64($0))) }
        do {
            try file.seek(toOffset: UInt64(place))
            try file.write(contentsOf: bytes)
        } catch {
            // The muxer's date stays, which is right to a second.
        }
    }

    /// Nil for a file without it.
    static func read(_ path: String) -> Date? {
        guard let file = FileHandle(forReadingAtPath: path) else { return nil }
        defer { try? file.close() }
        guard let place = place(in: file), (try? file.seek(toOffset: UInt64(place))) != nil,
            let bytes = try? file.read(upToCount: 8), bytes.count == 8
        else { return nil }
        let nanoseconds = bytes.reduce(Int64(0)) { $0 << 8 | Int64($1) }
        return origin + Double(nanoseconds) / 1e9
    }

    private static func place(in file: FileHandle) -> Int? {
        guard let header = try? file.read(upToCount: headerLength) else { return nil }
        return header.range(of: Data(identifier))?.upperBound
    }
}
