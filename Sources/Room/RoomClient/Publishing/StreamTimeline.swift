internal import MediaGraph
internal import RTP

/// The RTP timestamps of a stream. Those of each input start at a random number; here they continue the former ones, by the
/// time between the two captures.
///
/// Those of a video that comes in layers count from one frame on, so that all layers of a frame have the same.
struct StreamTimeline {
    private var last: (captured: MediaTime, timestamp: UInt32)?
    /// The newest timestamp of each layer.
    private var newest: [VideoLayer: UInt32] = [:]
    /// Whether several layers have the timestamps in common.
    var isCommon = false
    /// Added to the timestamps of the input. Nil before its first frame.
    private var shift: UInt32?

    /// Another input follows.
    mutating func pause() { shift = nil }

    mutating func `continue`(with batch: inout RTPBatch, clockRate: UInt32) {
        if isCommon {
            var origin = last ?? (batch.captureTime, batch.rtpTimestamp)
            var timestamp = origin.timestamp &+ Self.ticks(from: origin.captured, to: batch.captureTime, clockRate)
            if let newest = newest[batch.layer], Int32(bitPattern: timestamp &- newest) <= 0 {
                // Timestamps that stand still would join two frames to one. All layers go on from here.
                let delay = newest &- timestamp &+ clockRate / 1000
                origin.timestamp &+= delay
                timestamp &+= delay
            }
            last = origin
            newest[batch.layer] = timestamp
            return batch.moveTimestamps(by: timestamp &- batch.rtpTimestamp)
        }
        let shift = shift ?? distance(to: batch, clockRate: clockRate)
        self.shift = shift
        batch.moveTimestamps(by: shift)
        last = (batch.captureTime, batch.rtpTimestamp)
    }

    /// In integers: the same for all layers of a frame, and exact after days.
    private static func ticks(from start: MediaTime, to end: MediaTime, _ clockRate: UInt32) -> UInt32 {
        let elapsed = Int64(bitPattern: end.nanoseconds &- start.nanoseconds)
        let (seconds, rest) = elapsed.quotientAndRemainder(dividingBy: 1_000_000_000)
        let rate = Int64(clockRate)
        return UInt32(truncatingIfNeeded: seconds &* rate &+ (rest * rate + 500_000_000) / 1_000_000_000)
    }

    private func distance(to batch: RTPBatch, clockRate: UInt32) -> UInt32 {
        guard let last else { return 0 }
        // Timestamps that stand still would join two frames to one.
        let seconds = max(0.001, batch.captureTime.seconds(since: last.captured))
        let elapsed = UInt32(truncatingIfNeeded: Int64((seconds * Double(clockRate)).rounded()))
        return last.timestamp &+ elapsed &- batch.rtpTimestamp
    }
}

extension RTPBatch {
    fileprivate mutating func moveTimestamps(by shift: UInt32) {
        guard shift != 0 else { return }
        rtpTimestamp &+= shift
        for index in 0..<count {
            // RFC 3550, section 5.1.
            let field = range(index).lowerBound + 4
            for byte in 0..<4 { bytes[field + byte] = UInt8(truncatingIfNeeded: rtpTimestamp >> (24 - 8 * byte)) }
        }
    }
}
