internal import Logging
internal import RTP
internal import RoomProtocol
internal import Synchronization

/// Logs refused requests, joins and connections: one line a second of each kind, so that a flood of them fills no disk.
/// Callable on any thread.
final class RefusalLog: Sendable {
    private static let interval = TimeInterval.seconds(1)
    /// The most kinds that are kept. Further ones of the same second are not logged.
    static let maximumKinds = 100

    private struct Kind: Hashable {
        var event: String
        var code: String
    }

    private struct Record {
        var time: MonotonicTime
        /// Since the last line.
        var unlogged = 0
    }

    private let log: LogQueue?
    private let records = Mutex<[Kind: Record]>([:])

    /// - Parameter log: nil logs nothing.
    init(_ log: LogQueue? = nil) { self.log = log }

    /// - Parameter event: one of a few fixed texts with nothing of the client in it, since each has lines of its own
    func write(_ event: String, _ error: RoomError, _ client: ClientAddress, now: MonotonicTime) {
        guard let log, let unlogged = count(Kind(event: event, code: error.code.name), now) else { return }
        var metadata: Logger.Metadata = ["client": "\(client)", "error": "\(error)"]
        if unlogged > 0 { metadata["unlogged"] = "\(unlogged)" }
        log.write("\(event)", metadata)
    }

    /// Returns nil if the last line is too recent, else the events since it.
    private func count(_ kind: Kind, _ now: MonotonicTime) -> Int? {
        records.withLock { records in
            if let last = records[kind], now - last.time < Self.interval {
                records[kind]?.unlogged += 1
                return nil
            }
            if records[kind] == nil, records.count >= Self.maximumKinds {
                records = records.filter { now - $0.value.time < Self.interval }
                guard records.count < Self.maximumKinds else { return nil }
            }
            let unlogged = records[kind]?.unlogged ?? 0
            records[kind] = Record(time: now)
            return unlogged
        }
    }
}
