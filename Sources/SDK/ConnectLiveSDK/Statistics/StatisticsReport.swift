internal import Foundation
internal import RoomClient

/// The statistics of the session that sends or of the one that receives, at one moment.
public struct StatisticsReport: Sendable {
    /// The objects by their ids. Each id that a value names is one of them.
    public let statistics: [String: Statistics]
    /// When the report was made, in seconds since 1970, UTC. The system's clock is read when the first room connects, and a steady
    /// clock goes on from there: later steps of the system's clock, and the time that the machine is suspended, are not in it.
    public let timeStamp: CFTimeInterval

    /// A report of an application's own, such as for a double in tests.
    public init(statistics: [String: Statistics], timeStamp: CFTimeInterval) {
        self.statistics = statistics
        self.timeStamp = timeStamp
    }
}

/// One object of a report. Types, names and units are those of W3C webrtc-stats, for example `outbound-rtp` with
/// `bytesSent` in bytes and `jitter` in seconds.
///
/// A value that this SDK does not measure is left out. Counters only grow while an object has the same id, except
/// `packetsLost`, which falls when a packet comes late (RFC 3550, section 6.4.1). Objects of streams also have `streamId`
/// and `participantId`.
public struct Statistics: Sendable {
    /// The same for the same object in later reports.
    public let id: String
    /// `transport`, `candidate-pair`, `local-candidate`, `remote-candidate`, `codec`, `media-source`, `outbound-rtp`,
    /// `remote-inbound-rtp`, `inbound-rtp` or `remote-outbound-rtp`.
    public let type: String
    /// When the values were true, in seconds since 1970, UTC: for the `remote-` types, when the server's newest report
    /// arrived.
    public let timeStamp: CFTimeInterval
    private let stored: [String: any Sendable]

    /// Each an `NSNumber` or a `String`. As on iOS, a number is also an `Int`, a `UInt64`, a `Double` or a `Bool` with `as?`, as far as
    /// that type has its value.
    public var values: [String: Any] { stored }

    /// An object of an application's own, such as for a double in tests.
    public init(id: String, type: String, timeStamp: CFTimeInterval, values: [String: any Sendable]) {
        (self.id, self.type, self.timeStamp, stored) = (id, type, timeStamp, values)
    }
}

extension StatisticsReport {
    /// Empty for a session that does not exist.
    init(_ session: SessionStatistics?, at time: Double) {
        let objects = (session?.report ?? []).map { Statistics($0) }
        self.init(
            statistics: Dictionary(objects.map { ($0.id, $0) }) { first, _ in first }, timeStamp: session?.time ?? time)
    }
}

extension Statistics {
    fileprivate init(_ entry: StatisticsEntry) {
        self.init(
            id: entry.id, type: entry.type, timeStamp: entry.time,
            values: entry.values.mapValues { value -> any Sendable in
                switch value {
                case .integer(let value): NSNumber(value: value)
                case .number(let value): NSNumber(value: value)
                case .text(let value): value
                case .flag(let value): NSNumber(value: value)
                }
            })
    }
}
