internal import RTP

/// A sum over everything that happened, with its times, to compare two runs.
struct Trace {
    private(set) var digest: UInt64 = 0xcbf2_9ce4_8422_2325
    private(set) var count = 0

    /// Adds a datagram that leaves a place.
    mutating func add(_ bytes: Span<UInt8>, from place: Int, at time: MonotonicTime) {
        count += 1
        digest = digest.mixed(with: UInt64(bitPattern: Int64(place))).mixed(with: time.nanoseconds)
        digest = bytes.mixed(from: digest)
    }

    /// Adds a frame that is shown.
    mutating func add(_ frame: FramePart, at time: MonotonicTime) {
        count += 1
        digest = digest.mixed(with: UInt64(frame.source) << 48 ^ UInt64(frame.generation) << 32 ^ UInt64(frame.frame))
            .mixed(with: time.nanoseconds)
    }
}
