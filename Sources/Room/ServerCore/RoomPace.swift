internal import RTP
internal import RoomProtocol

/// Limits the bytes that all participants of a room cause together, because each participant gets those of all others. On
/// another loop, each part of the room has a limit of its own, and counts the messages of the others.
struct RoomPace {
    let kibibytesBurst: Int
    let kibibytesPerSecond: Int
    /// In bytes.
    private static let unit = 64
    /// Of a message without a text, in bytes.
    private static let overhead = 128

    private var pace: Pace

    private init(kibibytesBurst: Int, kibibytesPerSecond: Int) {
        self.kibibytesBurst = kibibytesBurst
        self.kibibytesPerSecond = kibibytesPerSecond
        let unitsPerSecond = kibibytesPerSecond * 1024 / Self.unit
        pace = Pace(
            burst: kibibytesBurst * 1024 / Self.unit,
            interval: TimeInterval(nanoseconds: 1_000_000_000 / Int64(unitsPerSecond)))
    }

    /// Of the messages of participants. The burst and the announcements for a new participant (`Room.announcementLimit`) fit
    /// together into the server's buffer for a client that has not read yet.
    static let messages = RoomPace(kibibytesBurst: 192, kibibytesPerSecond: 125)
    /// Of announcements of streams. A client without a connection may return within 30 s: those of that time fit into its ledger
    /// (`MessageLedger.byteLimit`). 1000 participants with two streams may come at once.
    static let announcements = RoomPace(kibibytesBurst: 896, kibibytesPerSecond: 4)
    /// Changes of `extraValue` and `sort`, and announcements that are never refused, leave so much of the burst to new streams and
    /// states.
    static let reservedKibibytes = 224

    private static func units(_ length: Int) -> Int { (length + overhead + unit - 1) / unit }

    /// Throws if messages come too soon.
    ///
    /// - Parameters:
    ///   - lengths: of the texts of each message in JSON, in bytes.
    ///   - reserve: the part of the burst that these messages leave to others, in KiB.
    ///   - deed: what the participants do too much, for the error.
    func check(_ lengths: [Int], reserve: Int = 0, _ deed: String, now: MonotonicTime) throws(RoomError) {
        guard pace.delay(lengths.reduce(reserve * 1024 / Self.unit) { $0 + Self.units($1) }, now: now) == nil else {
            throw RoomError(
                .tooManyRequests,
                "The participants of the room \(deed) together. The room takes at most \(kibibytesBurst) KiB of that at once, "
                    + "then \(kibibytesPerSecond) KiB a second. Try again later.")
        }
    }

    /// - Parameter reserve: the part of the burst that this message leaves to others, in KiB.
    mutating func count(_ length: Int, reserve: Int = 0, now: MonotonicTime) {
        pace.count(Self.units(length), reserve: reserve * 1024 / Self.unit, now: now)
    }
}

// Each stream and each change is announced to everyone in the room.
extension RequestPace {
    /// Of the streams that a participant publishes. As many at once as four times the streams of a participant.
    static let publications = RequestPace(burst: 64, interval: .milliseconds(500)) {
        "The client publishes too many streams. Publish at most \($0) at once, then 2 a second."
    }
    /// Of the changes that a participant makes to the state and the attributes of its streams.
    static let changes = RequestPace(burst: 20, interval: .milliseconds(500)) {
        "The client changes its streams too often. Make at most \($0) changes at once, then 2 a second."
    }
}
