internal import ClientCore
internal import MediaGraph
internal import Synchronization

/// Capture times of the frames that this process publishes, by RTP timestamp. A receiver in the same process looks up
/// the age of a rendered frame here.
///
/// This works if the server does not change RTP timestamps, as ours does for the first stream of a receiver. Other
/// timestamps are not found.
final class CaptureLedger: CaptureLog, Sendable {
    static let shared = CaptureLedger()

    /// Frames kept for each stream: 8 s at 60 frames/s.
    private static let capacity = 512

    private struct Track {
        var entries: [(rtpTimestamp: UInt32, captured: MediaTime)] = []
        var next = 0
    }

    private let tracks = Mutex<[StreamKey: Track]>([:])

    func record(_ key: StreamKey, rtpTimestamp: UInt32, captured: MediaTime) {
        tracks.withLock { tracks in
            var track = tracks.removeValue(forKey: key) ?? Track()
            if track.entries.count < Self.capacity {
                track.entries.append((rtpTimestamp, captured))
            } else {
                track.entries[track.next] = (rtpTimestamp, captured)
            }
            track.next = (track.next + 1) % Self.capacity
            tracks[key] = track
        }
    }

    func captureTime(_ key: StreamKey, rtpTimestamp: UInt32) -> MediaTime? {
        tracks.withLock { tracks in
            guard let track = tracks[key] else { return nil }
            // Searches the newest first: a frame is usually some ten milliseconds old.
            for age in 1...max(track.entries.count, 1) {
                let index = (track.next - age + Self.capacity) % Self.capacity
                guard index < track.entries.count else { continue }
                if track.entries[index].rtpTimestamp == rtpTimestamp { return track.entries[index].captured }
            }
            return nil
        }
    }

    /// Timestamps in memory, oldest first.
    func timestamps(_ key: StreamKey) -> [UInt32] {
        tracks.withLock { tracks in
            guard let track = tracks[key] else { return [] }
            let start = track.entries.count < Self.capacity ? 0 : track.next
            return (track.entries[start...] + track.entries[..<start]).map(\.rtpTimestamp)
        }
    }

    func remove(_ key: StreamKey) { tracks.withLock { $0[key] = nil } }
}
