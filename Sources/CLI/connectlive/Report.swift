internal import RoomClient

/// The file of `--report`. Times are in milliseconds. The top fields describe the first video, since it was entered. `recent`
/// has the figures of the last seconds.
struct Report: Encodable {
    struct Stream: Encodable {
        var stream: Int
        var participant: String?
        var media: String
        var codec: String
        var width: Int
        var height: Int
        var packetsLost: Int
        /// Of received streams.
        var framesRendered: Int?
        var firstFrameMs: Double?
        var latencyMsP50: Double?
        var latencyMsP95: Double?
        var latencyMethod: String?
        var latencyIsMeasured: Bool?
        var longestGapMs: Double?
        var packetsReceived: Int?
        var packetsRecovered: Int?
        var audioSecondsRendered: Double?
        /// Of published streams.
        var framesSent: Int?
        var packetsSent: Int?
        var packetsRetransmitted: Int?
        var recent: Recent

        init(_ received: RoomStatistics.Received) {
            stream = received.streamId
            participant = received.participantId
            media = received.isVideo ? "video" : "audio"
            codec = received.codec
            framesRendered = received.framesRendered
            width = received.width
            height = received.height
            firstFrameMs = received.firstFrameMilliseconds
            latencyMsP50 = received.latency?.medianMilliseconds
            latencyMsP95 = received.latency?.p95Milliseconds
            latencyMethod = received.latency?.method.rawValue
            latencyIsMeasured = received.latency?.isMeasured
            longestGapMs = received.longestGapMilliseconds
            packetsReceived = received.packetsReceived
            packetsLost = received.packetsLost
            packetsRecovered = received.packetsRecovered
            audioSecondsRendered = received.audioSecondsAboveSilence
            recent = Recent(
                framesPerSecond: received.isVideo ? received.framesPerSecond : nil,
                bitsPerSecond: received.bitsPerSecond, loss: received.recentLoss,
                latencyMs: received.latency?.recentMilliseconds)
        }

        init(_ published: RoomStatistics.Published, by participant: String?) {
            stream = published.streamId
            self.participant = participant
            media = published.isVideo ? "video" : "audio"
            codec = published.codec
            width = published.width
            height = published.height
            packetsLost = published.packetsLost
            framesSent = published.framesSent
            packetsSent = published.packetsSent
            packetsRetransmitted = published.packetsRetransmitted
            recent = Recent(bitsPerSecond: published.bitsPerSecond, loss: published.recentLoss)
        }
    }

    /// Figures of the last seconds before the end.
    struct Recent: Encodable {
        var framesPerSecond: Double?
        var bitsPerSecond: Double
        /// The share of lost packets, 0...1.
        var loss: Double
        var latencyMs: Double?
        var roundTripMs: Double?
    }

    /// Video frames encoded by this process, or sent as the source delivered them. Absent if it published none.
    var framesPublished: Int?
    var framesDroppedBeforeEncoder: Int?
    var encoderKeepsUp: Bool?
    /// This and the next fields up to the packets are absent without a viewer.
    var framesRendered: Int?
    /// Seconds of decoded audio above -60 dBFS, of all streams.
    var audioSecondsRendered: Double?
    var width: Int
    var height: Int
    var connectMs: Double?
    /// From connecting to the first rendered frame.
    var firstFrameMs: Double?
    var latencyMsP50: Double?
    var latencyMsP95: Double?
    var latencyMethod: String?
    var latencyIsMeasured: Bool?
    var packetsLost: Int
    var packetsRecovered: Int?
    /// Of the first video.
    var recent: Recent?
    var srtpProfile: String?
    /// How media travels: `directly over UDP`, or `via TURN over TCP at HOST:PORT`.
    var path: String?
    /// The times in which no media arrived, or none of a publisher reached the room.
    var outages: [Outage]
    var streams: [Stream]

    struct Outage: Encodable {
        /// From connecting to its beginning.
        var startMs: Double
        var lengthMs: Double
        var isOutgoing: Bool

        init(_ outage: RoomStatistics.Outage) {
            (startMs, lengthMs, isOutgoing) = (outage.start * 1000, outage.seconds * 1000, outage.isOutgoing)
        }
    }

    /// The report of a viewer.
    ///
    /// - Parameter publisher: what the same process published
    init(viewer: RoomStatistics, publisher: RoomStatistics? = nil) {
        let videos = viewer.received.filter(\.isVideo)
        let first =
            videos.filter { $0.firstFrameMilliseconds != nil }
            .min { ($0.firstFrameMilliseconds ?? 0) < ($1.firstFrameMilliseconds ?? 0) } ?? videos.first
        framesRendered = first?.framesRendered ?? 0
        audioSecondsRendered = viewer.received.map(\.audioSecondsAboveSilence).reduce(0, +)
        width = first?.width ?? 0
        height = first?.height ?? 0
        connectMs = viewer.connectMilliseconds
        firstFrameMs = first?.firstFrameMilliseconds
        latencyMsP50 = first?.latency?.medianMilliseconds
        latencyMsP95 = first?.latency?.p95Milliseconds
        latencyMethod = first?.latency?.method.rawValue
        latencyIsMeasured = first?.latency?.isMeasured
        packetsLost = first?.packetsLost ?? 0
        packetsRecovered = first?.packetsRecovered ?? 0
        recent = first.map { Stream($0).recent }
        recent?.roundTripMs = viewer.roundTripMilliseconds
        srtpProfile = viewer.srtpProfile
        path = viewer.path.map { "\($0)" }
        outages = ((publisher?.outages ?? []) + viewer.outages).sorted { $0.start < $1.start }.map(Outage.init)
        streams = viewer.received.map(Stream.init)
        if let publisher { setPublished(publisher) }
    }

    /// The report of a publisher, with the same fields as far as they have a meaning.
    init(publisher: RoomStatistics) {
        let video = publisher.published.first(where: \.isVideo)
        let first = video ?? publisher.published.first
        width = video?.width ?? 0
        height = video?.height ?? 0
        connectMs = publisher.connectMilliseconds
        packetsLost = first?.packetsLost ?? 0
        let participant = publisher.up?.sent.first?.participant
        streams = publisher.published.map { Stream($0, by: participant) }
        recent = first.map { Stream($0, by: participant).recent }
        recent?.roundTripMs = publisher.roundTripMilliseconds
        srtpProfile = publisher.srtpProfile
        path = publisher.path.map { "\($0)" }
        outages = publisher.outages.map(Outage.init)
        setPublished(publisher)
    }

    private mutating func setPublished(_ publisher: RoomStatistics) {
        let published = publisher.published.first(where: \.isVideo)
        framesPublished = published.map { $0.isEncoded ? $0.framesEncoded : $0.framesSent }
        framesDroppedBeforeEncoder = published.flatMap { $0.isEncoded ? $0.framesDroppedBeforeEncoder : nil }
        encoderKeepsUp = published.flatMap { $0.isEncoded ? $0.encoderKeepsUp : nil }
    }
}

/// Why a command exits with 1: one sentence and a stable code.
struct CommandFailure: Error, CustomStringConvertible {
    var code: String
    var message: String

    init(code: String, _ message: String) {
        self.code = code
        self.message = message
    }

    var description: String { "\(message) [\(code)]" }
}
