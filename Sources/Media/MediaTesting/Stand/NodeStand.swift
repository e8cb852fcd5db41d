public import MediaAuthoring

/// The environment for tests of a node, which opens it repeatedly and records the media that it passes.
///
/// `DirectStand` calls a `Capturer` itself. Others run a whole pipeline around a node that cannot be called, such as
/// one made of elements.
public protocol NodeStand: Sendable {
    /// The tested kind.
    var name: String { get }
    /// Its group, which decides on the checks.
    var group: Conformance.Group { get }
    /// The available settings.
    var settings: [SettingContract] { get }
    /// The longest wait for the first frame or buffer, in seconds.
    var frameTimeout: Double { get }
    /// The longest time for the return, in seconds: 50 ms for the node, and more for its surroundings.
    var leavingLimit: Double { get }
    /// How much resident memory may grow during 400 openings, in bytes.
    var memoryLimit: Int { get }
    /// Whether the stand has such a consumer.
    func offers(_ consumer: CaptureConsumer) -> Bool
    /// The format that a capturer states, or that another node is fed with, without running it. Nil if that is not
    /// possible.
    ///
    /// - Throws: the error of a node that cannot state a format.
    func format(_ settings: [String: SettingValue]) throws -> MediaFormat?
    /// Starts the node. Throws its start error.
    func open(_ settings: [String: SettingValue], _ consumer: CaptureConsumer) async throws -> any NodeRun
}

extension NodeStand {
    public var group: Conformance.Group { .capturer }
}

/// The consumer downstream of the capturer.
@frozen
public enum CaptureConsumer: Sendable, Hashable {
    /// Accepts everything immediately.
    case quick
    /// Accepts five frames per second and reports the others as dropped. Encoded video then needs a keyframe, which it
    /// requests.
    case slow
    /// Fails at the first frame or buffer.
    case failing
    /// Accepts everything in the first format only.
    case rigid
}

/// A running node on a stand.
public protocol NodeRun: AnyObject, Sendable {
    /// The media that it has sent, processed or read so far, in order.
    var units: [MediaUnit] { get }
    /// How it ended. Nil while it runs.
    var outcome: NodeOutcome? { get }
    /// Changes a live setting.
    ///
    /// - Throws: the reason why the node refuses the value.
    func set(_ setting: String, to value: SettingValue) async throws
    /// Cancels it and waits for its return. Returns the seconds that took, or nil if it did not return within two.
    func stop() async -> Double?
}

extension NodeRun {
    /// Stops it. Returns how it had ended before that; nil if it still ran.
    func finish() async -> NodeOutcome? {
        let outcome = outcome
        _ = await stop()
        return outcome
    }
}

/// How a node ended.
public enum NodeOutcome: Sendable {
    /// It returned without an error.
    case ended
    /// It threw an error.
    case failed(any Error)
    /// It returned because its task was cancelled.
    case cancelled
}

/// One frame or one buffer of audio: sent by a capturer, processed by a processor, or read by a renderer.
public struct MediaUnit: Sendable {
    /// The capturer's stated format at that moment.
    public var format: MediaFormat
    /// The capture time stated by the capturer.
    public var time: MediaTime
    /// The arrival time.
    public var arrival: MediaTime
    /// For audio: the duration in seconds, if known.
    public var duration: Double?
    /// Whether its time is exactly the one that it waited for on the stand's clock.
    public var isOnTheClock = false
    /// False if the consumer dropped it.
    public var isTaken = true
    /// Whether the capturer marked it as a keyframe. Nil for raw media.
    public var isKeyframe: Bool?
    /// The fault of its data, as text.
    public var fault: String?

    /// A raw unit that the consumer accepted.
    public init(format: MediaFormat, time: MediaTime, arrival: MediaTime) {
        self.format = format
        self.time = time
        self.arrival = arrival
    }

    /// The delay from capture to arrival, in seconds.
    public var lateness: Double { arrival.seconds(since: time) }
}

/// The author's information for tests of a node's failures.
public struct Rehearsal: Sendable {
    /// Settings with which it works: required ones, and the address of an existing device.
    public var settings: [String: SettingValue]
    /// Settings with which it cannot start: a device that is missing, busy or of another type.
    public var failing: [[String: SettingValue]]
    /// Removes the device of `settings` while the node runs. Nil if that is not possible.
    public var vanish: (@Sendable () async throws -> Void)?
    /// Restores it.
    public var restore: (@Sendable () async throws -> Void)?

    /// Information, of which each part may be left out.
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

/// A node with information for tests of its failures, for its own package's tests and for `connectlive plugin test`.
public protocol Rehearsed: WrittenNode {
    /// The information for the tests.
    static var rehearsal: Rehearsal { get }
}
