internal import PeerSession
internal import RTP
internal import RoomProtocol

/// A stream to assign to a receiver.
struct AssignedStream {
    var id: Int
    var participant: String
    var codec: Codec
    var makeSink: SinkSource
}

/// One stream in one receiver, with its sink and its counters. On the loop only.
final class Assignment {
    let stream: IncomingStream
    /// The receiver's counters when the stream was assigned.
    let before: ReceiverStatistics?
    let sink: any IncomingSink
    private var bitRate = RateWindow()
    private var arrivals = RateWindow(over: RoomStatistics.lossTime)
    private var losses = RateWindow(over: RoomStatistics.lossTime)
    private var clock: StreamClock

    init(_ stream: IncomingStream, to sink: any IncomingSink, before: ReceiverStatistics?) {
        self.stream = stream
        self.before = before
        self.sink = sink
        clock = StreamClock(clockRate: stream.codec.clockRate)
    }

    func begin() { sink.begin(stream) }

    func receive(_ packet: Span<UInt8>) { sink.receive(packet) }

    /// A packet of the stream has its capture time.
    func captured(_ time: AbsoluteCaptureTime, rtp: RTPTimestamp) {
        clock.capture(time, rtp: rtp)
        sink.clockChanged(clock)
    }

    func receive(_ report: SenderReport) {
        clock.report(report.ntp, rtp: report.rtp, arrival: report.arrival, roundTrip: report.roundTrip)
        sink.clockChanged(clock)
    }

    /// Called about twice a second, with the bytes of the receiver so far.
    func sample(_ statistics: ReceiverStatistics, now: MonotonicTime) {
        bitRate.sample(statistics.bytes * 8, now: now)
        arrivals.sample(statistics.packets, now: now)
        losses.sample(statistics.lost, now: now)
        sink.sample(now: now)
    }

    /// The losses until now say nothing about those to come.
    func forgetLosses() {
        arrivals.forget()
        losses.forget()
    }

    var statistics: RoomStatistics.Received {
        var entry = RoomStatistics.Received(
            streamId: stream.id, participantId: stream.participant, isVideo: stream.codec.media == .video)
        entry.codec = stream.codec.rawValue
        entry.bitsPerSecond = bitRate.rate
        let (arrived, lost) = (arrivals.rate, max(0, losses.rate))
        entry.recentLoss = arrived + lost > 0 ? lost / (arrived + lost) : 0
        sink.fill(&entry)
        return entry
    }
}
