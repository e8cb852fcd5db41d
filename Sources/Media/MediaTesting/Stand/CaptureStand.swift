public import MediaGraph

/// Where a capturer is tried: opens it again and again, and sees what comes out.
///
/// `DirectStand` calls a `Capturer` itself. Others run a whole pipeline around one that cannot be called, such as a node
/// that is made of elements.
public protocol CaptureStand: Sendable {
    /// The kind that is tried.
    var name: String { get }
    /// What may be set.
    var settings: [SettingContract] { get }
    /// The longest wait for the first picture or block, in seconds.
    var patience: Double { get }
    /// The longest that leaving may take here, in seconds: 50 ms for the capturer, and what is around it.
    var leavingLimit: Double { get }
    /// How much resident memory may grow while it is opened 400 times, in bytes.
    var memoryLimit: Int { get }
    /// Whether the stand can be such a consumer.
    func offers(_ consumer: CaptureConsumer) -> Bool
    /// What the capturer says that it gives, without running it. Nil where it cannot be asked.
    func format(_ settings: [String: SettingValue]) throws -> MediaFormat?
    /// Starts the capturer. Throws what keeps it from starting.
    func open(_ settings: [String: SettingValue], _ consumer: CaptureConsumer) async throws -> any CaptureRun
}

/// Who comes behind the capturer.
@frozen
public enum CaptureConsumer: Sendable, Hashable {
    /// Takes everything at once.
    case quick
    /// Takes five a second, and tells the capturer that the rest was dropped; after that it needs a keyframe, where the
    /// pictures are encoded, and asks for it.
    case slow
    /// Fails at the first picture or block.
    case failing
    /// Takes everything, and no other format than the first.
    case rigid
}

/// A capturer that runs on a stand.
public protocol CaptureRun: AnyObject, Sendable {
    /// What has come so far, in order.
    var units: [CapturedUnit] { get }
    /// How it has ended; nil while it runs.
    var outcome: CaptureOutcome? { get }
    /// Changes a setting while it runs.
    func set(_ setting: String, to value: SettingValue) async throws
    /// Cancels it, and waits until it has left. The seconds that took; nil where it has not left after two.
    func stop() async -> Double?
}

/// How a capturer came to its end.
public enum CaptureOutcome: Sendable {
    /// It returned of itself.
    case ended
    case failed(any Error)
    case cancelled
}

/// One picture, or one block of sound, that came out of a capturer.
public struct CapturedUnit: Sendable {
    /// What the capturer said that it gives at that moment.
    public var format: MediaFormat
    /// When it was captured, as the capturer says.
    public var time: MediaTime
    /// When it came.
    public var arrival: MediaTime
    /// How long it lasts, in seconds: of sound, where that is known.
    public var duration: Double?
    /// Whether it is stamped with the very moment that it had waited for on the stand's clock.
    public var isOnTheClock = false
    /// False where the consumer dropped it.
    public var isTaken = true
    /// Whether the capturer says that it is a keyframe; nil for what is not encoded.
    public var isKeyframe: Bool?
    /// What is wrong with its bytes, in words.
    public var fault: String?

    public init(format: MediaFormat, time: MediaTime, arrival: MediaTime) {
        self.format = format
        self.time = time
        self.arrival = arrival
    }

    /// How much later than it was captured it came, in seconds.
    public var lateness: Double { arrival.seconds(since: time) }
}

/// What the author of a capturer knows about bringing it into trouble.
public struct Rehearsal: Sendable {
    /// With these it works: what is required, and the address of something that is there.
    public var settings: [String: SettingValue]
    /// With each of these it cannot start: a device that is absent, busy or another thing than it should be.
    public var failing: [[String: SettingValue]]
    /// Takes away the device that `settings` name, while the capturer runs. Nil where that cannot be brought about.
    public var vanish: (@Sendable () async throws -> Void)?
    /// Brings it back.
    public var restore: (@Sendable () async throws -> Void)?

    public init(
        settings: [String: SettingValue] = [:], failing: [[String: SettingValue]] = [],
        vanish: (@Sendable () async throws -> Void)? = nil, restore: (@Sendable () async throws -> Void)? = nil
    ) {
        self.settings = settings
        self.failing = failing
        self.vanish = vanish
        self.restore = restore
    }
}

/// A capturer that tells the kit how to bring it into trouble, wherever it is tested: in its own package's tests and by
/// `connectlive plugin test`.
public protocol Rehearsed: Capturer {
    static var rehearsal: Rehearsal { get }
}
