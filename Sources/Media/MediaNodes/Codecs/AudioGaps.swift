import GStreamerKit
import MediaGraph
import Synchronization

/// The gaps in an encoder's audio, such as those that a full queue leaves.
///
/// GStreamer's audio encoders count samples, and follow timestamps only if these differ by more than a tolerance. Behind a shorter gap,
/// all audio would stay early.
struct AudioGaps {
    /// In nanoseconds. Timestamps of a microphone jitter by less.
    static let least: UInt64 = 5_000_000
    /// Of the encoders, in nanoseconds.
    static let tolerance: UInt64 = 40_000_000

    /// The end of the last buffer.
    private var end: UInt64?
    /// The time that the encoder has counted up to.
    private var counted: UInt64 = 0

    /// Whether a gap is before the next buffer. Times are in nanoseconds.
    mutating func isBefore(_ time: UInt64, lasting duration: UInt64) -> Bool {
        let former = end
        end = time &+ duration
        guard let former else {
            counted = time &+ duration
            return false
        }
        let isGap = time > former &+ Self.least && time > counted &+ Self.least
        let difference = time > counted ? time - counted : counted - time
        counted = (isGap || difference > Self.tolerance ? time : counted) &+ duration
        return isGap
    }

    /// Makes an encoder follow the timestamp behind each gap.
    ///
    /// - Parameter input: where signed 16-bit samples pass, on the thread that encodes.
    static func follow(at input: Pad, by encoder: Element) {
        let state = Mutex((gaps: AudioGaps(), isBehindGap: false))
        input.watchBuffers { [weak encoder] buffer in
            guard let time = buffer.timestamp else { return }
            let duration = UInt64(AudioRendererNode.seconds(ofBytes: buffer.byteCount) * 1e9)
            let change = state.withLock { state -> Bool? in
                let isBehindGap = state.gaps.isBefore(time, lasting: duration)
                defer { state.isBehindGap = isBehindGap }
                return isBehindGap == state.isBehindGap ? nil : isBehindGap
            }
            guard let change else { return }
            _ = encoder?.trySet("tolerance", .integer(change ? 0 : Int(tolerance)))
        }
    }
}
