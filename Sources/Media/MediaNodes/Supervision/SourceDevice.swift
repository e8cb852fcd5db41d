import GStreamerKit
import MediaGraph

/// The device behind a source or a loudspeaker node, with the candidates that may replace it.
///
/// All functions run on a queue of the source, one after the other, and may block as long as a driver does,
/// unless they state otherwise.
protocol SourceDevice: Sendable {
    /// The name of a candidate in messages. Does not block.
    func name(of candidate: Int) -> String
    /// Opens a candidate, which delivers to `output` from now on. Throws `camera.absent` and its like if it is not there.
    func open(_ candidate: Int, for output: SourceOutput) throws(MediaError)
    /// Closes it. Does nothing if none is open.
    func close()
    /// Whether a candidate is there, if that can be found out without disturbing it.
    func isThere(_ candidate: Int) -> Bool
    /// Whether an error of `open` says that the device is not there.
    func isAbsence(_ error: MediaError) -> Bool
    /// How long to wait after an error of `open` at least, in seconds.
    func pause(after error: MediaError) -> Double
    /// How far the times of frames may lie in the future, in seconds.
    var mostAhead: Double { get }
    /// Whether nothing is expected of the open device now, such as a loudspeaker without audio. Any thread; does not block.
    var isIdle: Bool { get }
    /// Asks a device that encodes for a keyframe. Any thread; does not block.
    func requestKeyframe()
    /// The node ends: an `open` that waits for something returns. Any thread; does not block.
    func interrupt()
    /// How long the node's end waits for `close`, in seconds.
    var closingLimit: Double { get }
    /// The sentence about a `close` that takes longer. Does not block.
    var closingProblem: String { get }
    /// The error for a device that was open and delivers nothing any more, or does not respond: a cause without an error.
    func error(for cause: SourceSupervisor.Cause, _ candidate: Int) -> MediaError
}

extension SourceDevice {
    func requestKeyframe() {}
    func interrupt() {}
    var isIdle: Bool { false }
    func pause(after error: MediaError) -> Double { 0 }
    /// A capture time has passed.
    var mostAhead: Double { 0 }
    var closingLimit: Double { 2 }
    var closingProblem: String { "\(name(of: 0)) does not close, because its driver is not responding." }
}

/// The word for the device behind a source or a loudspeaker, in messages.
package enum DeviceWord {
    /// - Parameter kind: that of the node.
    package static func of(kind: String?) -> String {
        switch kind {
        case ProcessNode.kind.name, ExecNode.kind.name: "program"
        case FeedNode.kind.name: "feeder"
        default: "device"
        }
    }
}

/// The connection of an open device to its node. It refuses everything after the device was closed.
struct SourceOutput: Sendable {
    /// Passes a frame on to an output of the node, by its place, with its capture time on the monotonic clock. Called on a
    /// thread of the device.
    /// Returns whether the frame was passed on.
    var deliver: @Sendable (MediaBuffer, MediaTime, Int) -> Bool
    /// The device has failed.
    let fail: @Sendable (MediaError) -> Void
    /// The device delivers so many frames in a second.
    var pace: @Sendable (Double) -> Void = { _ in }
    /// The device has ended deliberately, after its last frame: the stream ends with it.
    var end: @Sendable () -> Void = {}
    /// The device announced that it delivers nothing for now, or that it goes on.
    var rests: @Sendable (Bool) -> Void = { _ in }
    /// A loudspeaker has taken audio.
    var takes: @Sendable () -> Void = {}
    /// Frames were left out: encoded video goes on with the next keyframe.
    var interrupt: @Sendable () -> Void = {}
}
