package import MediaGraph
internal import PeerLoop
package import PeerSession
package import RTP
package import RoomProtocol

/// The up or the down session of a connection, as measured: its transport and its RTP streams.
///
/// Counters only grow while the session lasts. Times are seconds since 1970, by the wall clock of this machine unless the
/// server's is named. A value that is not known is nil.
package struct SessionStatistics: Sendable {
    package var direction: SessionDirection
    /// How many sessions of this direction the connection had before. Another one begins with another `join`, and counts
    /// from zero.
    package var index: Int
    package var time: Double
    package var transport: Transport
    /// The newest round trip to the server in seconds.
    package var roundTrip: Double?
    package var sent: [Sent] = []
    package var received: [Received] = []

    /// The way of the session's packets.
    package struct Transport: Sendable {
        /// Datagrams other than STUN, and the bytes in them. Those that the socket refused count as sent.
        package var packetsSent = 0
        package var packetsReceived = 0
        package var bytesSent = 0
        package var bytesReceived = 0
        /// How often the addresses were chosen or have changed.
        package var routes = 0
        /// As in W3C WebRTC.
        package var iceState = ""
        package var dtlsState = ""
        package var dtlsRole: String?
        package var usernameFragment = ""
        package var profile: SRTPProfile?
        package var pair: Pair?
        /// The rate of all that the session can send, with all headers, in bits per second.
        package var outgoingBitsPerSecond: Double?
        /// The rate of all that the server can send to the session. Known while it is less than the streams need.
        package var incomingBitsPerSecond: Double?

        package init() {}
    }

    /// The addresses in use, as `address:port`.
    package struct Pair: Sendable {
        package var localAddress: String
        package var remoteAddress: String
        package var path: RoomStatistics.Path
    }

    package struct CodecParameters: Sendable, Hashable {
        package var codec: Codec
        package var payloadType: UInt8
        /// The `fmtp` value of the description.
        package var parameters: String
    }

    /// One RTP stream of a published stream: all of it, or a layer.
    package struct Sent: Sendable {
        package var stream: Int
        package var participant: String
        package var mid: String
        package var rid: String?
        package var ssrc: SSRC
        package var repairSSRC: SSRC?
        /// Identifies the source, which the layers of a video have in common.
        package var source: SSRC
        /// The place among the layers of the video, the lowest first, and their number.
        package var rank = 0
        package var layers = 1
        package var codec: CodecParameters
        /// Whether it is sent.
        package var isActive = true
        package var counters: SenderStatistics
        /// When the server reported on it last. Nil before.
        package var reportTime: Double?
        package var framesSent: Int
        package var width: Int?
        package var height: Int?
        /// Nil for audio, and for video that passes through.
        package var encoder: Encoder?
        /// Nil for video, and for audio that passes through.
        package var sound: Sound?

        package var isVideo: Bool { codec.codec.media == .video }
    }

    /// The encoder of a video.
    package struct Encoder: Sendable {
        package var framesCaptured = 0
        package var framesEncoded = 0
        package var keyframesEncoded = 0
        /// Over the last second. Nil before the second sample.
        package var capturedPerSecond: Double?
        package var encodedPerSecond: Double?
        package var targetBitsPerSecond: Int?
        package var limitation = QualityLimitation.none
    }

    /// Raw audio.
    package struct Sound: Sendable {
        package var seconds = 0.0
        /// The amplitude of the last chunk (root mean square), 0...1.
        package var level = 0.0
        /// As `totalAudioEnergy` of W3C webrtc-stats.
        package var energy = 0.0
    }

    /// One receiver that has got packets, with the stream that it carries now.
    package struct Received: Sendable {
        package var mid: String
        package var media: StreamMedia
        package var ssrc: SSRC
        package var repairSSRC: SSRC?
        /// Nil while it carries none.
        package var stream: Int?
        package var participant: String?
        /// That of the last stream.
        package var codec: CodecParameters?
        package var counters: ReceiverStatistics
        package var lastPacketTime: Double?
        /// When the newest sender report arrived, and the server's wall clock in it.
        package var reportTime: Double?
        package var remoteTime: Double?
        package var totals = MediaTotals()
        /// Decoded frames over the last second. Nil before the second sample, and for audio.
        package var framesPerSecond: Double?
        /// Size of the newest frame. Nil before the first.
        package var width: Int?
        package var height: Int?
        /// The amplitude of the last chunk of audio (root mean square), 0...1. Nil while nothing is decoded.
        package var audioLevel: Double?
    }
}

/// The media of a receiver, over all streams that it has carried.
package struct MediaTotals: Sendable, Equatable {
    package var framesReceived = 0
    package var framesDecoded = 0
    package var framesRendered = 0
    package var packetsLate = 0
    package var audioSeconds = 0.0
    package var audioEnergy = 0.0

    package init() {}

    mutating func add(_ stream: RoomStatistics.Received) {
        framesReceived += stream.framesReceived
        framesDecoded += stream.framesDecoded
        framesRendered += stream.framesRendered
        packetsLate += stream.packetsLate
        audioSeconds += stream.audioSecondsRendered
        audioEnergy += stream.audioEnergy
    }
}

extension NTPTime {
    /// Seconds since 1970.
    var unixSeconds: Double { Double(unixNanoseconds) / 1e9 }
}

extension SessionStatistics {
    init(_ direction: SessionDirection, index: Int, of peer: Peer, profile: SRTPProfile?, time: Double) {
        self.init(direction: direction, index: index, time: time, transport: Transport(peer, profile))
        roundTrip = peer.statistics.session.roundTrip?.seconds
    }
}

extension SessionStatistics.Transport {
    fileprivate init(_ peer: Peer, _ profile: SRTPProfile?) {
        let counters = peer.statistics
        // Both those sent and their bytes count what the socket has refused.
        packetsSent = counters.datagramsSent + counters.datagramsRefused
        packetsReceived = counters.datagramsReceived
        (bytesSent, bytesReceived) = (counters.bytesSent, counters.bytesReceived)
        routes = counters.routes
        iceState = peer.iceState.rawValue
        dtlsState = peer.dtlsState.rawValue
        dtlsRole = peer.dtlsRole.map { $0 == .client ? "client" : "server" }
        usernameFragment = peer.usernameFragment
        self.profile = profile
        if let addresses = peer.selectedPair, let route = peer.route {
            pair = SessionStatistics.Pair(
                localAddress: addresses.local, remoteAddress: addresses.remote, path: RoomStatistics.Path(route))
        }
        outgoingBitsPerSecond = counters.session.sending.map { Double($0.targetBitsPerSecond) }
    }
}
