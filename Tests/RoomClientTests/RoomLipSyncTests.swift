import ClientCore
import MediaGraph
import MediaNodes
import RTP
import RoomProtocol
import Testing

@testable import RoomClient

struct RoomLipSyncTests {
    private let lipSync = RoomLipSync()
    private let (sound, video): (IncomingStream, IncomingStream)
    private let now = MonotonicTime(nanoseconds: 100_000_000_000)

    init() throws {
        sound = try Self.stream(1, of: "ada", .opus)
        video = try Self.stream(2, of: "ada", .vp8)
    }

    private static func stream(_ id: Int, of participant: String, _ codec: Codec) throws -> IncomingStream {
        IncomingStream(
            id: id, server: try ServerAddress("ws://127.0.0.1:5"), participant: participant, codec: codec,
            payloadType: codec.payloadType, connectStarted: .zero)
    }

    /// The clock of a stream whose timestamp 0 was captured at a time, in seconds.
    private func clock(_ codec: Codec, captured seconds: UInt64) -> StreamClock {
        var clock = StreamClock(clockRate: codec.clockRate)
        let ntp = NTPTime(unixNanoseconds: seconds * 1_000_000_000)
        clock.capture(AbsoluteCaptureTime(ntp, clockOffset: 0), rtp: RTPTimestamp(0))
        return clock
    }

    private func played(_ seconds: Double) -> PlayedMedia {
        PlayedMedia(rtpTimestamp: 0, time: MediaTime(nanoseconds: UInt64(seconds * 1e9)), hold: 0)
    }

    @Test func `the video of a participant waits for its own sound, and not for that of others`() throws {
        let other = try Self.stream(3, of: "grace", .vp8)
        // Both were captured 1000 s after 1970, at timestamp 0.
        #expect(lipSync.note(played(100.2), of: sound, clock(.opus, captured: 1000), now: now) == 0)
        let hold = lipSync.note(played(100.05), of: video, clock(.vp8, captured: 1000), now: now)
        #expect(abs(try #require(hold) - 0.15) < 0.001)
        #expect(lipSync.note(played(100.05), of: other, clock(.vp8, captured: 1000), now: now) == 0)
    }

    /// RFC 3550, section 6.4.1: without a wall clock, a sender may count from its start. NTP's era ends in 2036.
    @Test(arguments: [5 << 32, .max - 1 << 30, 1 << 63] as [UInt64])
    func `capture times count from any time`(start: UInt64) throws {
        func clock(_ codec: Codec, _ ntp: NTPTime) -> StreamClock {
            var clock = StreamClock(clockRate: codec.clockRate)
            clock.report(ntp, rtp: RTPTimestamp(0), arrival: now, roundTrip: nil)
            return clock
        }
        let ntp = NTPTime(rawValue: start)
        #expect(lipSync.note(played(100.2), of: sound, clock(.opus, ntp), now: now) == 0)
        // Captured 0.5 s later, and played 0.4 s later.
        let hold = lipSync.note(played(100.6), of: video, clock(.vp8, ntp.advanced(by: .milliseconds(500))), now: now)
        #expect(abs(try #require(hold) - 0.1) < 0.001)
    }

    /// Timestamps count samples and frames by the clocks of sound card and camera. Reports tell when that was by the sender's clock.
    @Test func `devices whose clocks drift apart for hours are compared by their reports`() throws {
        let tracks = [
            (stream: sound, codec: Codec.opus, drift: 0.0001, delay: 0.2),
            (stream: video, codec: Codec.vp8, drift: -0.0001, delay: 0.05),
        ]
        var clocks = tracks.map { StreamClock(clockRate: $0.codec.clockRate) }
        var holds: [Double] = [0, 0]
        var worst = 0.0
        for half in 0..<6 * 7200 {
            let seconds = 1000 + Double(half) / 2
            let now = MonotonicTime(nanoseconds: UInt64(seconds * 1e9))
            for (index, track) in tracks.enumerated() {
                func timestamp(_ captured: Double) -> UInt32 {
                    let ticks = captured * Double(track.codec.clockRate) * (1 + track.drift)
                    return UInt32(truncatingIfNeeded: Int(ticks))
                }
                if half.isMultiple(of: 2) {
                    clocks[index].report(
                        NTPTime(unixNanoseconds: now.nanoseconds), rtp: RTPTimestamp(timestamp(seconds)), arrival: now,
                        roundTrip: nil)
                }
                let media = PlayedMedia(
                    rtpTimestamp: timestamp(seconds - track.delay), time: MediaTime(nanoseconds: now.nanoseconds),
                    hold: 0)
                holds[index] = try #require(lipSync.note(media, of: track.stream, clocks[index], now: now))
            }
            worst = max(worst, abs(holds[1] - 0.15), holds[0])
        }
        #expect(worst < 0.016, "\(worst)")
    }

    @Test func `without a capture time, a stream is neither held nor compared`() throws {
        #expect(lipSync.note(played(100.2), of: sound, StreamClock(clockRate: 48_000), now: now) == nil)
        #expect(lipSync.note(played(100.2), of: sound, nil, now: now) == nil)
        #expect(lipSync.note(played(100), of: video, clock(.vp8, captured: 1000), now: now) == 0)
    }

    @Test func `a stream that has ended holds nothing`() throws {
        _ = lipSync.note(played(100.2), of: sound, clock(.opus, captured: 1000), now: now)
        lipSync.end(sound)
        #expect(lipSync.note(played(100), of: video, clock(.vp8, captured: 1000), now: now) == 0)
    }
}
