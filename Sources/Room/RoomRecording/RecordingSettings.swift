internal import Foundation
internal import GStreamerKit
internal import MediaGraph
internal import RTP
internal import RoomProtocol

/// The time of day at times of the monotonic clock. A later step of the machine's clock does not change it.
struct RecordingClock {
    var date = Date()
    var at = MonotonicTime(nanoseconds: GStreamer.now.nanoseconds)

    func date(at time: MonotonicTime) -> Date { date + (time - at).seconds }
}

/// The limits of a recording's file, and its ways to the machine, which tests replace.
struct RecordingSettings: Sendable {
    /// The most memory of packets that wait for the disk, in bytes: ten seconds of 6 Mbit/s.
    var capacity = 8 * 1024 * 1024
    /// How long the disk may take nothing, in seconds, while packets are dropped or the file ends.
    var stallTime = 30.0
    /// How long a stream may take to end after its recording has failed, in seconds.
    var answerTime = 4.0
    /// Runs a closure on a queue after some seconds.
    var after: @Sendable (DispatchQueue, _ seconds: Double, @escaping @Sendable () -> Void) -> Void = {
        $0.asyncAfter(deadline: .now() + $1, execute: $2)
    }
    var readClock: @Sendable () -> RecordingClock = { RecordingClock() }
    var makePipeline:
        @Sendable (Codec, _ path: String, @escaping @Sendable (BusMessage) -> Void) throws(MediaError)
            -> RecordingPipeline = { codec, path, onMessage throws(MediaError) in
                try RecordingPipeline(codec, to: path, onMessage: onMessage)
            }
}
