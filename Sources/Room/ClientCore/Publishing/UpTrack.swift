internal import CongestionControl
internal import MediaGraph
internal import PeerSession
internal import RTP
internal import RoomProtocol

extension UpSession {
    /// One published stream.
    final class Track {
        let sender: Sender
        private(set) var offer: TrackOffer
        /// The server's id, after it replied.
        var stream: Int?
        /// The id that it had in a session that ended.
        var former: Int?
        /// The state and the attributes that the server knows, and whether it is being told others.
        var (told, isTelling) = (StreamChange(), false)
        /// Whether the server has refused several changes together, so that each is tried alone.
        var tellsSingly = false
        /// Why it is sent worse than it could be, as the server knows.
        var toldReduction: StreamQuality.Reason?
        /// How many samples in a row differ from that.
        var reductionPolls = 0
        /// The encodings that are negotiated, the lowest layer first. One for audio, and for video without layers.
        var encodings: [Encoding] = []
        /// The rate of media that the best link of a subscriber carries. Nil if one carries all of it.
        var roomLimit: Int?
        /// The layers that somebody watches. Nil for all.
        var watched: Set<VideoLayer>?
        /// Whether the room limited the track when it was limited last, and not its share of the own link. While the track gets
        /// better again, neither does.
        var isLimitedByRoom = false
        var layerShares = LayerShares()
        var audioShare = AudioShare()
        /// The layers that were on when the track was told last.
        var toldLayers: [VideoLayer]?
        var framesNotSent = 0
        var sound: SoundTotals
        /// The timestamp of the newest frame whose capture time is kept.
        var recorded: UInt32?

        var isVideo: Bool { sender.codec.media == .video }
        /// Whether several layers are negotiated.
        var isLayered: Bool { encodings.count > 1 }
        var framesSent: Int { encodings.reduce(0) { $0 + $1.framesSent } }

        init(sender: Sender, offer: TrackOffer) {
            (self.sender, self.offer) = (sender, offer)
            sound = SoundTotals(after: offer.track.audioEncoderStatistics)
        }

        /// Those that the server does not know yet.
        var untold: StreamChange {
            StreamChange(offer.attributes, state: offer.track.streamState).differing(from: told)
        }

        func apply(_ change: StreamChange) { offer.attributes.apply(change) }

        /// The server does not take a change. Attributes that have not changed again return to those that it knows.
        func giveUp(_ change: StreamChange) {
            var former = StreamChange()
            if change.isActive == offer.attributes.isActive { former.isActive = told.isActive }
            if change.isAlwaysOn == offer.attributes.isAlwaysOn { former.isAlwaysOn = told.isAlwaysOn }
            if change.extraValue == offer.attributes.extraValue { former.extraValue = told.extraValue }
            if change.sort == offer.attributes.sort { former.sort = told.sort }
            offer.attributes.apply(former)
            told.state = change.state ?? told.state
        }
    }

    /// One RTP stream of a track: all of it, or a layer.
    final class Encoding {
        let layer: VideoLayer
        let sender: SenderID
        let configuration: SenderConfiguration
        var framesSent = 0
        var encoder: EncoderTotals
        var bitRate = RateWindow()
        /// The path's bits of first packets and of all repeats, with all headers.
        var (pathRate, repairRate) = (RateWindow(), RateWindow())
        /// The path's bits of all frames that came, dropped ones included.
        var offeredBits = 0
        var offeredRate = RateWindow()
        /// Of the last seconds, as the server reports.
        var (sentPackets, lostPackets) = (
            RateWindow(over: RoomStatistics.lossTime), RateWindow(over: RoomStatistics.lossTime)
        )
        /// The frames that the rate has no room for.
        var skipped = RateWindow()
        var gate = FrameGate()
        var (governor, keyframesRequested) = (KeyframeGovernor(interval: KeyframeGovernor.encoderInterval), 0)
        var captureTimes: CaptureTimeSchedule
        /// Counted here, because a restarted encoder begins with any number, and SRTP refuses numbers that go back (RFC
        /// 3711, section 3.3.2). The first is random and below 2^15 (section 3.3.1).
        var nextSequenceNumber: SequenceNumber
        /// Counted here for the same reason: receivers take a jump of a picture id for loss (RFC 7741 and RFC 9628, section
        /// 4.2).
        var pictures = PictureNumbers()
        /// Whether its frames are sent.
        var isOn: Bool
        /// Why it is off. `none` while it is on, and if the graph has this layer no longer.
        var cause = QualityLimitation.none
        /// Whether the frames up to the next keyframe depend on some that were not sent, and when that was requested.
        var (needsKeyframe, asked) = (false, MonotonicTime.zero)

        /// - Parameter before: the counters of an encoder that has been running before.
        init(
            _ layer: VideoLayer, _ sender: SenderID, _ configuration: SenderConfiguration, first: SequenceNumber,
            isOn: Bool, after before: MediaStatistics.VideoEncoder?
        ) {
            (self.layer, self.sender, self.isOn) = (layer, sender, isOn)
            self.configuration = configuration
            encoder = EncoderTotals(after: before)
            captureTimes = CaptureTimeSchedule(clockRate: configuration.clockRate)
            nextSequenceNumber = first
        }
    }
}
