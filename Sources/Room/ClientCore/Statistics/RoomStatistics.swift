public import MediaGraph
internal import RTP

/// Statistics of a room connection, for a status line or a report. Counters only grow; rates are means over about the
/// last two seconds.
public struct RoomStatistics: Sendable {
    /// How the time from capture to rendering was measured.
    public enum LatencyMethod: String, Sendable {
        /// The publisher is in this process: the capture time was looked up by the frame's RTP timestamp, on one
        /// monotonic clock.
        case rtpTimestamp = "rtp-timestamp"
        /// Packets carry the capture times of their frames (`abs-capture-time`), by the clock of the machine that captured
        /// them. That clock is known from the sender reports and the round trips of both ways. The error is half of the
        /// difference between the delays of the two directions. See `Latency.isMeasured`.
        case captureTime = "abs-capture-time"
        /// The publisher's RTCP sender reports tie its RTP timestamps to its clock, whose way to the server may be
        /// unknown. Otherwise as `captureTime`.
        case senderReport = "rtcp-sender-report"
    }

    /// Time from a frame's capture until the renderers receive it, over at most the last 4096 frames. Impossible values,
    /// which wrong clocks cause, do not count. A frame that its clocks date at most 100 ms after it is shown counts as 0 ms.
    public struct Latency: Sendable {
        public var method: LatencyMethod
        /// Whether one clock or the round trips of both ways measure it.
        ///
        /// If not, it is an estimate. Before the first round trips are known, and with a server that does not measure
        /// them, the difference between the wall clocks of two machines is part of it. Without that of the publisher, it
        /// is too small by the delay from the publisher to the server.
        public var isMeasured: Bool
        public var samples: Int
        public var medianMilliseconds: Double
        /// The median of the last frames, about five seconds of most videos.
        public var recentMilliseconds: Double
        /// 95 of 100 frames were this fast or faster.
        public var p95Milliseconds: Double
        public var maximumMilliseconds: Double

        package init(
            method: LatencyMethod, isMeasured: Bool, samples: Int, medianMilliseconds: Double,
            recentMilliseconds: Double, p95Milliseconds: Double, maximumMilliseconds: Double
        ) {
            self.method = method
            self.isMeasured = isMeasured
            self.samples = samples
            self.medianMilliseconds = medianMilliseconds
            self.recentMilliseconds = recentMilliseconds
            self.p95Milliseconds = p95Milliseconds
            self.maximumMilliseconds = maximumMilliseconds
        }
    }

    /// One received stream.
    public struct Received: Sendable {
        public var streamId: Int
        public var participantId: String
        public var isVideo: Bool
        /// Whether the stream ended: it was unsubscribed, or its publisher left.
        public var hasEnded = false
        /// `VP8`, `VP9`, `H264` or `opus`.
        public var codec = ""
        /// Frames assembled from packets, and the decodable ones of them.
        public var framesReceived = 0
        public var framesDecoded = 0
        /// Frames passed to the renderers.
        public var framesRendered = 0
        public var framesPerSecond = 0.0
        /// Longest time between two frames passed to the renderers, in milliseconds.
        public var longestGapMilliseconds = 0.0
        /// Size of the newest frame; 0 before the first.
        public var width = 0
        public var height = 0
        /// Bits of RTP per second.
        public var bitsPerSecond = 0.0
        public var packetsReceived = 0
        /// Packets lost on the way from the server, before repair.
        public var packetsLost = 0
        /// The share of packets that were lost in the last seconds, 0...1, before repair. Packets of an outage do not
        /// count.
        public var recentLoss = 0.0
        /// Lost packets that arrived after all.
        public var packetsRecovered = 0
        /// Packets that arrived after the decoder had continued without them.
        public var packetsLate = 0
        public var keyframesRequested = 0
        /// For video: how long frames wait for their playout, because of jitter and repairs, in milliseconds. Nil before it
        /// is decoded.
        public var playoutDelayMilliseconds: Double?
        public var latency: Latency?
        /// From `connect` to the stream's first rendered frame.
        public var firstFrameMilliseconds: Double?
        /// For audio: seconds decoded, and seconds of them above -60 dBFS.
        public var audioSecondsRendered = 0.0
        public var audioSecondsAboveSilence = 0.0
        /// For audio: the amplitude (root mean square) of the last chunk, 0...1, and the sum of each chunk's seconds times its
        /// square. Nil while nothing is decoded.
        package var audioLevel: Double?
        package var audioEnergy = 0.0
        /// For audio: whether it is played on a device.
        public var isAudible = false
        /// Why a video arrives worse than it could be, as the server says. Nil if it does not, and with an earlier server.
        public var limitation: Limitation?

        package init(streamId: Int, participantId: String, isVideo: Bool) {
            self.streamId = streamId
            self.participantId = participantId
            self.isVideo = isVideo
        }
    }

    /// One published stream.
    public struct Published: Sendable {
        public var streamId: Int
        public var isVideo: Bool
        public var codec = ""
        /// False for video that passes through unchanged from a camera or file. Its frames are counted by `framesSent` alone.
        public var isEncoded = true
        /// captured = encoded + droppedBeforeEncoder + droppedForRate + inFlight
        public var framesCaptured = 0
        public var framesDroppedBeforeEncoder = 0
        /// Frames that were not encoded, or for video that passes through not sent, because the network has no room for
        /// them.
        public var framesDroppedForRate = 0
        /// Those of the last seconds, per second.
        public var framesSkippedPerSecond = 0.0
        public var framesInFlight = 0
        public var framesEncoded = 0
        /// Encoded frames (for audio: packets) passed to the up session.
        public var framesSent = 0
        /// Encoded frames dropped because the up session was not secured.
        public var framesNotSent = 0
        /// Size of the encoded frames, which may be less than that of the source; 0 before the first.
        public var width = 0
        public var height = 0
        /// The frames per second that network and processor allow, of those that the source states. Nil if it states none, and
        /// for video that passes through.
        public var framesPerSecond: Double?
        public var bitsPerSecond = 0.0
        public var packetsSent = 0
        public var packetsRetransmitted = 0
        /// Packets lost on the way to the server, as it reports.
        public var packetsLost = 0
        /// The share of packets that were lost in the last seconds, 0...1, as the server reports. Of several layers, the highest
        /// one. Packets of an outage do not count.
        public var recentLoss = 0.0
        public var keyframesRequested = 0
        /// Bits of encoded media per second: what the encoder would send without a limit, and the limit of the network. Nil
        /// if they are unknown, as for media that passes through.
        public var wishedBitsPerSecond: Double?
        public var limitedBitsPerSecond: Double?
        public var limitation = QualityLimitation.none
        /// Whether less than 5 % of the frames were dropped upstream of the encoder in the last seconds, or only one.
        public var encoderKeepsUp = true
        /// The layers of a video that is sent in several, the lowest first. Empty for one encoding. Above, size and rates of
        /// the encoder are then those of the largest layer that is sent, counters of the encoder those of the smallest one,
        /// which is always sent, and all else are sums.
        public var layers: [Layer] = []
        /// All of them in one. Nil without layers.
        package var layeredQuality: VideoQuality?

        package init(streamId: Int, isVideo: Bool) { (self.streamId, self.isVideo) = (streamId, isVideo) }

        /// One layer of a published video.
        public struct Layer: Sendable {
            /// The identifier in session descriptions: `q`, `h` or `f`.
            public var rid: String
            /// Size of the encoded frames, or of those that would be encoded.
            public var width = 0
            public var height = 0
            public var framesPerSecond: Double?
            /// Whether it is encoded and sent.
            public var isActive = false
            /// Why it is off, or worse than it could be. `subscribers`: nobody watches it, or their networks carry less.
            public var limitation = QualityLimitation.none
            public var bitsPerSecond = 0.0
            /// Bits of encoded video per second that the encoder would send without a limit. Nil if that is unknown.
            public var wishedBitsPerSecond: Double?
            /// Nil for video that passes through.
            public var framesEncoded: Int?
            public var framesSent = 0

            package init(_ layer: VideoLayer) { rid = layer.rid }
        }
    }

    /// A time in which no media reached the server, or none arrived from it.
    public struct Outage: Sendable, Hashable {
        /// From `connect` to its beginning, in seconds.
        public var start: Double
        /// Its length in seconds.
        public var seconds: Double
        public var isOutgoing: Bool

        package init(start: Double, seconds: Double, isOutgoing: Bool) {
            (self.start, self.seconds, self.isOutgoing) = (start, seconds, isOutgoing)
        }
    }

    /// The time of `recentLoss` of received streams.
    static let lossTime = TimeInterval.seconds(3)

    /// The way of media between this machine and the server.
    public struct Path: Sendable, Hashable, CustomStringConvertible {
        /// The type of an ICE candidate (RFC 8445, section 5.1.1).
        public enum Candidate: String, Sendable {
            case host, srflx, prflx, relay
        }

        public var local: Candidate
        public var remote: Candidate
        /// `UDP`, `TCP` or `TLS`: to the TURN server, or without one to the server itself.
        public var transport: String
        /// The TURN server, as `HOST:PORT`. Nil if media goes directly.
        public var relay: String?

        package init(local: Candidate, remote: Candidate, transport: String, relay: String?) {
            (self.local, self.remote, self.transport, self.relay) = (local, remote, transport, relay)
        }

        /// `directly over UDP`, or `via TURN over TCP at HOST:PORT`.
        public var description: String {
            relay.map { "via TURN over \(transport) at \($0)" } ?? "directly over \(transport)"
        }
    }

    public var received: [Received] = []
    public var published: [Published] = []
    /// Round trip to the server in milliseconds, once measured: of the up session if there is one, otherwise of the
    /// down session, and before its first reports of the signalling.
    public var roundTripMilliseconds: Double?
    /// The rate for all that this client sends to the server, in bits per second, as congestion control estimates it. Nil before
    /// it publishes, and with a server that does not report arrivals.
    public var sendingBitsPerSecond: Double?
    /// How long packets wait in queues on their way to the server, in milliseconds. Nil likewise.
    public var sendingQueueMilliseconds: Double?
    /// For how long the server has been lost, in seconds, while the connection tries to return. Nil otherwise.
    public var lostSeconds: Double?
    /// Whether it is the server that is lost then. Otherwise media alone is, and the client joins again.
    package var isServerLost = false
    /// For how long media has not reached the server, or none has arrived from it, in seconds. Nil while it flows.
    public var interruptedSeconds: Double?
    /// The times without media that are over, the last hundred.
    public var outages: [Outage] = []
    /// When they were taken, in seconds since 1970.
    package var time = 0.0
    /// The up session, once there is one, and the down session.
    package var up: SessionStatistics?
    package var down: SessionStatistics?
    /// Messages of a server of a later version, which this client does not know.
    public var messagesIgnored = 0
    /// How media travels: that of the up session if there is one, otherwise that of the down session. Nil before it does.
    public var path: Path?
    /// `AEAD_AES_128_GCM` or `AES128_CM_SHA1_80`, once the down session is secured.
    public var srtpProfile: String?
    /// From `connect` to a joined room with a secured down session.
    public var connectMilliseconds: Double?
    /// From `connect` to the first rendered frame of any stream.
    public var firstFrameMilliseconds: Double?

    public init() {}
}
