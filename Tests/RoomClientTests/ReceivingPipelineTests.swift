import MediaGraph
import MediaNodes
import RTP
import RoomProtocol
import Synchronization
import Testing

@testable import RoomClient

private func at(_ seconds: Double) -> MonotonicTime {
    MonotonicTime(nanoseconds: 1_000_000_000 + UInt64(seconds * 1e9))
}

private let failure = MediaError(code: MediaError.Code.elementFailed, message: "The headset is gone.")

/// A pipeline that plays nothing and records its input.
private final class FakePipeline: Decoding, DecodingTask {
    let number: Int
    private let packets = Mutex<[[UInt8]]>([])

    init(number: Int) {
        self.number = number
    }

    var received: [[UInt8]] { packets.withLock { $0 } }

    func push(_ packet: RawSpan) { packets.withLock { $0.append(packet.withUnsafeBytes { Array($0) }) } }

    /// How often all figures were taken.
    let takings = Mutex(0)
    var framesDecoded: Int { received.count }

    var statistics: MediaStatistics {
        takings.withLock { $0 += 1 }
        var statistics = MediaStatistics()
        var input = MediaStatistics.RTPInput()
        input.framesDecoded = received.count
        input.playoutDelay = 0.12
        statistics.rtpInputs["in"] = input
        return statistics
    }

    let held = Mutex<[Double]>([])
    var playing: PlayedMedia? { PlayedMedia(rtpTimestamp: 7, time: MediaTime(nanoseconds: 9), hold: 0) }
    func hold(seconds: Double) { held.withLock { $0.append(seconds) } }

    func stop() async {}
}

/// A sink with fake pipelines and fake times.
private final class Bench {
    private(set) var made: [FakePipeline] = []
    private(set) var replaced: [FakePipeline] = []
    private(set) var sink: ReceivingPipeline

    init() throws {
        let monitor = StreamMonitor(key: .init(server: try ServerAddress("ws://127.0.0.1:5"), stream: 1))
        sink = ReceivingPipeline(monitor: monitor) { _, _ in
            preconditionFailure("replaced below")
        } post: { _, _ in
        }
        sink = ReceivingPipeline(monitor: monitor) { [unowned self] previous, _ in
            let pipeline = FakePipeline(number: made.count)
            made.append(pipeline)
            if let previous = previous as? FakePipeline { replaced.append(previous) }
            return pipeline
        } post: { _, _ in
        }
        sink.start()
    }

    var newest: FakePipeline { made[made.count - 1] }

    func runs(at seconds: Double) -> ReceivingPipeline.Outcome {
        sink.handle(.running(newest), of: made.count, now: at(seconds))
    }

    func fails(at seconds: Double) -> ReceivingPipeline.Outcome {
        sink.handle(.failed(failure), of: made.count, now: at(seconds))
    }

    func push(_ byte: UInt8) { sink.receive([byte].span) }

    private var entry: RoomStatistics.Received {
        var entry = RoomStatistics.Received(streamId: 1, participantId: "p", isVideo: true)
        sink.fill(&entry)
        return entry
    }

    var framesDecoded: Int { entry.framesDecoded }
    var playoutDelayMilliseconds: Double? { entry.playoutDelayMilliseconds }
}

@Test func `the playout delay is that of the running pipeline`() throws {
    let bench = try Bench()
    #expect(bench.playoutDelayMilliseconds == nil)
    _ = bench.runs(at: 1)
    #expect(bench.playoutDelayMilliseconds == 120)
    _ = bench.fails(at: 2)
    #expect(bench.playoutDelayMilliseconds == nil)
}

@Test func `decoded frames are counted without the other figures of a pipeline`() throws {
    let bench = try Bench()
    _ = bench.runs(at: 1)
    for byte in 1...3 as ClosedRange<UInt8> { bench.push(byte) }
    #expect(bench.sink.framesDecoded == 3)
    #expect(bench.newest.takings.withLock { $0 } == 0)
}

@Test func `frames wait as long as repairs are requested`() {
    #expect(PlayoutDelay.maximum == RepairBounds.playoutDelay.seconds)
}

@Test func `the running pipeline tells what it plays, and is held`() throws {
    let bench = try Bench()
    bench.sink.hold(seconds: 0.1)
    #expect(bench.sink.playing?.rtpTimestamp == nil)
    _ = bench.runs(at: 1)
    #expect(bench.sink.playing?.rtpTimestamp == 7)
    bench.sink.hold(seconds: 0.2)
    #expect(bench.newest.held.withLock { $0 } == [0.2])
}

@Test func `packets that arrive while the pipeline is created enter it first`() throws {
    let bench = try Bench()
    bench.push(1)
    bench.push(2)
    #expect(bench.runs(at: 0) == .nothing)
    bench.push(3)
    #expect(bench.newest.received == [[1], [2], [3]])
}

@Test func `a failing pipeline is created again with growing delays, and reported once`() throws {
    let bench = try Bench()
    _ = bench.runs(at: 0)
    var waits: [Double] = []
    for round in 0..<8 {
        let outcome = bench.fails(at: 1)
        guard case .retry(let delay, let isNews) = outcome else {
            Issue.record("\(outcome)")
            return
        }
        #expect(isNews == (round == 0))
        waits.append(delay.seconds)
        bench.sink.retry(after: bench.made.count)
    }
    #expect(waits == [0.25, 0.5, 1, 2, 4, 8, 8, 8])
    #expect(bench.made.count == 9)
    // Each waits until the previous one has released its device.
    #expect(bench.replaced.map(\.number) == Array(0..<8))
}

@Test func `a new pipeline needs a keyframe and receives the packets from then on`() throws {
    let bench = try Bench()
    _ = bench.runs(at: 0)
    bench.push(1)
    _ = bench.fails(at: 1)
    bench.push(2)
    bench.sink.retry(after: 1)
    bench.push(3)
    #expect(bench.runs(at: 1.5) == .requestKeyframe)
    bench.push(4)
    #expect(bench.made.map(\.received) == [[[1]], [[3], [4]]])
    // Counters only grow.
    #expect(bench.framesDecoded == 3)
}

@Test func `after ten stable seconds a pipeline's back-off starts over`() throws {
    let bench = try Bench()
    _ = bench.runs(at: 0)
    _ = bench.fails(at: 1)
    bench.sink.retry(after: 1)
    _ = bench.fails(at: 2)
    bench.sink.retry(after: 2)
    _ = bench.runs(at: 3)
    #expect(bench.fails(at: 13) == .retry(after: .milliseconds(250), isNews: true))
}

@Test func `notices of earlier pipelines are ignored, and none is created after the end`() throws {
    let bench = try Bench()
    _ = bench.runs(at: 0)
    _ = bench.fails(at: 1)
    #expect(bench.fails(at: 1) == .nothing)
    bench.sink.retry(after: 1)
    #expect(bench.sink.handle(.failed(failure), of: 1, now: at(2)) == .nothing)
    bench.sink.retry(after: 1)
    #expect(bench.made.count == 2)
    bench.sink.end()
    bench.sink.retry(after: 2)
    #expect(bench.runs(at: 3) == .nothing)
    #expect(bench.made.count == 2)
}
