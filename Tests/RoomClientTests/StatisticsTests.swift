import MediaGraph
import RTP
import TestSupport
import Testing

@testable import RoomClient

private func at(_ milliseconds: Int64) -> MonotonicTime {
    MonotonicTime(nanoseconds: 1_000_000_000) + .milliseconds(milliseconds)
}

@Test func `a capture time is found by its RTP timestamp until it is old`() throws {
    let ledger = CaptureLedger()
    let key = StreamKey(server: try ServerAddress("ws://127.0.0.1:1"), stream: 7)
    #expect(ledger.captureTime(key, rtpTimestamp: 0) == nil)
    for frame in 0..<1000 {
        ledger.record(key, rtpTimestamp: UInt32(frame * 3000), captured: MediaTime(nanoseconds: UInt64(frame)))
    }
    #expect(ledger.captureTime(key, rtpTimestamp: 999 * 3000) == MediaTime(nanoseconds: 999))
    #expect(ledger.captureTime(key, rtpTimestamp: 488 * 3000) == MediaTime(nanoseconds: 488))
    #expect(ledger.captureTime(key, rtpTimestamp: 487 * 3000) == nil)
    #expect(ledger.captureTime(key, rtpTimestamp: 1) == nil)
    #expect(ledger.timestamps(key) == (488..<1000).map { UInt32($0 * 3000) })
    let other = StreamKey(server: try ServerAddress("ws://127.0.0.1:2"), stream: 7)
    #expect(ledger.captureTime(other, rtpTimestamp: 999 * 3000) == nil)
    ledger.remove(key)
    #expect(ledger.captureTime(key, rtpTimestamp: 999 * 3000) == nil)
}

/// A frame without samples.
private final class NoPicture: VideoFrameStorage {
    func withPlane<Result>(_ plane: VideoPlane, _ body: (RawSpan, Int) throws -> Result) rethrows -> Result {
        try body([UInt8](repeating: 0, count: 16).span.bytes, 4)
    }
}

private func frame(rtp: UInt32?, handedOver: MonotonicTime) -> VideoFrame {
    VideoFrame(
        width: 4, height: 4, captureTime: MediaTime(nanoseconds: 0), rtpTimestamp: rtp,
        handedOver: MediaTime(nanoseconds: handedOver.nanoseconds), storage: NoPicture())
}

private func numbers(_ monitor: StreamMonitor) -> RoomStatistics.Received {
    var entry = RoomStatistics.Received(streamId: 1, participantId: "p", isVideo: true)
    monitor.fill(&entry, connectStarted: at(0))
    return entry
}

@Test func `latency is measured by RTP timestamp if the publisher is in this process`() throws {
    let key = StreamKey(server: try ServerAddress("ws://127.0.0.1:3"), stream: 1)
    let monitor = StreamMonitor(key: key)
    for index in 0..<100 {
        let captured = at(Int64(index) * 33)
        let timestamp = UInt32(index * 2970)
        CaptureLedger.shared.record(
            key, rtpTimestamp: timestamp, captured: MediaTime(nanoseconds: captured.nanoseconds))
        monitor.rendered(frame(rtp: timestamp, handedOver: captured + .milliseconds(index < 90 ? 10 : 50)))
    }
    let entry = numbers(monitor)
    #expect(entry.framesRendered == 100)
    #expect(entry.firstFrameMilliseconds == 10)
    #expect(entry.longestGapMilliseconds == 73)
    let latency = try #require(entry.latency)
    #expect(latency.method == .rtpTimestamp && latency.isMeasured)
    #expect(latency.medianMilliseconds == 10)
    #expect(latency.p95Milliseconds == 50)
    CaptureLedger.shared.remove(key)
}

@Test func `latency is measured by sender reports if the publisher is elsewhere`() throws {
    let monitor = StreamMonitor(key: .init(server: try ServerAddress("ws://127.0.0.1:4"), stream: 1))
    let now = at(5000)
    // Without a report, the values are unknown.
    monitor.rendered(frame(rtp: 90_000, handedOver: now))
    #expect(numbers(monitor).latency == nil)
    // By the publisher's wall clock, its stream was at timestamp 90,000 before 60 ms.
    var clock = StreamClock(clockRate: 90_000)
    let before = WallClock.shared.time(at: now + .milliseconds(-60))
    clock.report(before, rtp: RTPTimestamp(90_000), arrival: now, roundTrip: nil)
    monitor.clockChanged(clock)
    monitor.rendered(frame(rtp: 90_000 + 1800, handedOver: now))
    let latency = try #require(numbers(monitor).latency)
    #expect(latency.method == .senderReport && !latency.isMeasured)
    #expect(abs(latency.medianMilliseconds - 40) < 1)
}

@Test func `a latency is measured if all ways are, and impossible ones do not count`() throws {
    let monitor = StreamMonitor(key: .init(server: try ServerAddress("ws://127.0.0.1:5"), stream: 1))
    let now = at(5000)
    // The publisher's clock is a day ahead.
    let ahead = WallClock.shared.time(at: now + .seconds(86_400))
    var clock = StreamClock(clockRate: 90_000)
    clock.capture(AbsoluteCaptureTime(ahead, clockOffset: 0), rtp: RTPTimestamp(0))
    monitor.clockChanged(clock)
    monitor.rendered(frame(rtp: 0, handedOver: now))
    #expect(numbers(monitor).latency == nil)
    clock.report(ahead, rtp: RTPTimestamp(0), arrival: now, roundTrip: .zero)
    monitor.clockChanged(clock)
    monitor.rendered(frame(rtp: 0, handedOver: now + .milliseconds(80)))
    // These times are impossible.
    clock.capture(AbsoluteCaptureTime(NTPTime(rawValue: 1 << 63), clockOffset: 0), rtp: RTPTimestamp(9000))
    clock.report(NTPTime(rawValue: 7), rtp: RTPTimestamp(9000), arrival: now, roundTrip: nil)
    monitor.clockChanged(clock)
    monitor.rendered(frame(rtp: 9000, handedOver: now + .milliseconds(180)))
    let latency = try #require(numbers(monitor).latency)
    #expect(latency.method == .captureTime && latency.isMeasured)
    #expect(latency.samples == 1 && abs(latency.maximumMilliseconds - 80) < 1)
}

@Test func `the wall clock of sender reports is read once, so that a step of the clock does not affect them`() {
    let now = at(5000)
    let times = Set((0..<1000).map { _ in WallClock.shared.time(at: now) })
    #expect(times.count == 1)
    let clock = WallClock(wall: 1_763_697_600_000_000_000, monotonic: Int64(now.nanoseconds))
    #expect(clock.time(at: now) == NTPTime(unixNanoseconds: 1_763_697_600_000_000_000))
    let later = clock.time(at: now + .seconds(3600)).unixNanoseconds
    #expect(abs(Int64(later) - 1_763_701_200_000_000_000) <= 1)
    #expect(clock.time(at: now + .seconds(-5)) == NTPTime(unixNanoseconds: 1_763_697_595_000_000_000))
}

@Test func `frames go to every sink, and to none that was removed`() {
    let fanout = FrameFanout()
    let seen = Collected<Int>()
    let first = fanout.add { _ in seen.append(1) }
    _ = fanout.add { _ in seen.append(2) }
    fanout.deliver(frame(rtp: nil, handedOver: at(0)))
    fanout.remove(first)
    fanout.deliver(frame(rtp: nil, handedOver: at(0)))
    #expect(seen.all == [1, 2, 2])
}

@Test func `a capture time that no clock gives has a wall-clock time`() {
    let clock = WallClock(wall: 1_763_697_600_000_000_000, monotonic: 0)
    let farthest = NTPTime(unixNanoseconds: UInt64(Int64.max))
    for point in [UInt64(Int64.max), .max] {
        #expect(clock.time(at: MonotonicTime(nanoseconds: point)) == farthest)
    }
    let behind = WallClock(wall: 0, monotonic: Int64.max)
    #expect(behind.time(at: MonotonicTime(nanoseconds: 0)) == NTPTime(unixNanoseconds: 0))
}
