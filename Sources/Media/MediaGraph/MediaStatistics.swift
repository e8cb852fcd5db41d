/// Statistics of a pipeline since its start. Counters only grow: subtract two readings to get a rate.
public struct MediaStatistics: Sendable, Equatable {
    /// By the name of the camera node.
    public var cameras: [String: Camera] = [:]
    /// By the name of the video encoder.
    public var encoders: [String: VideoEncoder] = [:]
    /// By the name of the audio encoder.
    public var audioEncoders: [String: AudioEncoder] = [:]
    /// By the name of the RTP output.
    public var rtpOutputs: [String: RTPOutput] = [:]
    /// By the name of the RTP input.
    public var rtpInputs: [String: RTPInput] = [:]
    /// By the name of the video renderer.
    public var videoRenderers: [String: VideoRenderer] = [:]
    /// By the name of the audio renderer.
    public var audioRenderers: [String: AudioRenderer] = [:]
    /// By the name of the level meter; left before right.
    public var levels: [String: [ChannelLevel]] = [:]
    /// By the name of the frame function.
    public var frameFunctions: [String: FrameFunction] = [:]
    /// By the name of the echo canceller. Includes only those through which audio is played.
    public var echoCancellers: [String: EchoCanceller] = [:]
    /// By the name of a source, or of a loudspeaker, whose device may come and go.
    public var sources: [String: SourceStatus] = [:]
    /// Why no media reaches the room of a node at present, or none arrives from there. By the name of the node.
    public var outages: [String: String] = [:]
    /// By the name of the recorder.
    public var recorders: [String: Recorder] = [:]

    /// Statistics of no node.
    public init() {}

    /// The frames of a camera that went wrong.
    public struct Camera: Sendable, Hashable, Codable {
        /// Frames that the camera numbered but did not deliver, because the bus or the machine was too slow.
        public var lost = 0
        /// Frames that were dropped, because the driver marked them as corrupt or they were incomplete.
        public var damaged = 0
        /// Frames with a timestamp that jumped or ran back. The time of their arrival replaced it.
        public var wrongTimestamps = 0

        /// No frames.
        public init() {}
    }

    /// captured = encoded + droppedBeforeEncoder + droppedForRate + inFlight, at any time. inFlight is 0 after the pipeline has stopped.
    public struct VideoEncoder: Sendable, Equatable {
        /// Tells the encoders of this process apart.
        package var encoder = UInt64(0)
        /// Frames that reached the capture queue.
        public var captured = 0
        /// Frames that the capture queue dropped, the oldest first, because the encoder was busy.
        public var droppedBeforeEncoder = 0
        /// Frames that were not encoded because the network has no room for them. See `limitedBitsPerSecond`.
        public var droppedForRate = 0
        /// Frames in the capture queue or inside the encoder.
        public var inFlight = 0
        /// Frames that were encoded.
        public var encoded = 0
        /// Keyframes among the encoded frames.
        public var keyframes = 0
        /// Bytes of encoded video, without RTP.
        public var bytes = 0
        /// Width of the encoded frames in pixels, which may be less than that of the source; 0 before the first frame.
        public var width = 0
        /// Height of the encoded frames in pixels; 0 before the first frame.
        public var height = 0
        /// The frames per second that network and processor allow, of those that the source states. Nil if it states none.
        public var framesPerSecond: Double?
        /// Why size, rate or bitrate are less than they could be.
        public var limitation = QualityLimitation.none
        /// The encoder's current target bitrate in bits per second.
        public var targetBitsPerSecond = 0
        /// The target without a limit: the setting `bitrate`, or that of `VideoBitrate`. 0 before the first frame.
        public var wishedBitsPerSecond = 0
        /// The bitrate to which a consumer limits the encoder, because its network carries no more. Nil without a limit;
        /// 0 while nothing can be sent.
        public var limitedBitsPerSecond: Int?
        /// Whether the capture queue has dropped less than 5 % of the frames in the last seconds, or only one.
        public var encoderKeepsUp = true
        /// Whether nothing is encoded at present, because no consumer wants it: a layer of a video that is off, or a network
        /// that carries nothing.
        public var isResting = false
        /// The share of the time that encoding took in the last 2 seconds, 0...1, and whether that has been too much for long.
        public var load = 0.0
        /// Whether encoding has taken too much of the time for long.
        public var isOverloaded = false

        /// Figures before the first frame.
        public init() {}
    }

    /// The audio that reaches an encoder.
    public struct AudioEncoder: Sendable, Hashable {
        /// Likewise.
        package var encoder = UInt64(0)
        /// Seconds of audio that arrived.
        public var seconds = 0.0
        /// Level of the last chunk in dBFS; -120 for silence and before the first.
        public var level = -120.0
        /// The sum of each chunk's seconds times the mean square of its samples, which is 1 at full scale.
        public var energy = 0.0
        /// The bitrate without a limit, which is the setting `bitrate`, in bits per second.
        public var wishedBitsPerSecond = 0
        /// The bitrate to which a consumer limits the encoder, because its network carries no more. Nil without a limit.
        public var limitedBitsPerSecond: Int?

        /// Figures before the first audio.
        public init() {}
    }

    /// The packets that the program gets.
    public struct RTPOutput: Sendable, Equatable {
        /// Batches passed on. A batch holds the packets of one encoded frame.
        public var frames = 0
        /// RTP packets passed on.
        public var packets = 0
        /// Bytes of RTP packets.
        public var bytes = 0

        /// Figures before the first packet.
        public init() {}
    }

    /// The packets that the program pushes, and the frames in them.
    public struct RTPInput: Sendable, Equatable {
        /// Packets pushed by the program.
        public var packetsReceived = 0
        /// Packets dropped because the input was full or not running.
        public var packetsDropped = 0
        /// Packets that did not arrive before the jitter buffer's timeout.
        public var packetsLost = 0
        /// Packets that arrived after the jitter buffer's timeout.
        public var packetsLate = 0
        /// Packets that arrived more than once.
        public var packetsDuplicate = 0
        /// Complete frames that the jitter buffer passed to the decoder.
        public var framesReceived = 0
        /// Frames that were decoded.
        public var framesDecoded = 0
        /// Number of keyframe requests.
        public var keyframesNeeded = 0
        /// How long frames wait after the time at which they arrive without jitter and losses, in seconds: for late ones, and
        /// for lip-sync. Of audio, how much later nodes play or mix it for late packets. Nil with a fixed latency, which
        /// delays nothing but waits for missing packets, and for audio that is only recorded or passed on.
        public var playoutDelay: Double?

        /// Figures before the first packet.
        public init() {}
    }

    /// The frames that a renderer shows or passes on.
    public struct VideoRenderer: Sendable, Equatable {
        /// Frames that were shown or passed on.
        public var framesRendered = 0
        /// Width of the last frame in pixels; 0 for encoded frames.
        public var width = 0
        /// Height of the last frame in pixels; 0 for encoded frames.
        public var height = 0

        /// Figures before the first frame.
        public init() {}
    }

    /// The audio that a renderer plays or passes on.
    public struct AudioRenderer: Sendable, Equatable {
        /// Seconds of audio that were played or passed on.
        public var secondsRendered = 0.0
        /// Seconds of audio above -60 dBFS (root mean square of each chunk of about 20 ms).
        public var secondsAboveSilence = 0.0
        /// Level of the last chunk in dBFS; -120 for silence and for encoded audio.
        public var level = -120.0
        /// The sum of each chunk's seconds times the mean square of its samples, which is 1 at full scale.
        public var energy = 0.0
        /// How long ago the last chunk came, in seconds. Nil before the first.
        package var secondsSinceChunk: Double?
        /// Whether the audio is played on a device now.
        public var isAudible = false
        /// Seconds of audio that a device has taken; 0 for a renderer that does not play.
        public var secondsPlayed = 0.0

        /// Figures before the first audio.
        public init() {}
    }

    /// Levels of a channel during the last interval, in dBFS. 0 is full scale, -120 is silence.
    public struct ChannelLevel: Sendable, Hashable, Codable {
        /// The root mean square of the samples, in dBFS.
        public var rootMeanSquare: Double
        /// The loudest sample, in dBFS.
        public var peak: Double

        /// Levels in dBFS.
        public init(rootMeanSquare: Double, peak: Double) {
            self.rootMeanSquare = rootMeanSquare
            self.peak = peak
        }

        /// -120 dBFS.
        public static let silence = ChannelLevel(rootMeanSquare: -120, peak: -120)
    }

    /// The frames that a function of the program changes.
    public struct FrameFunction: Sendable, Equatable {
        /// Frames passed to the function.
        public var frames = 0
        /// Frames that were copied first, because another consumer held them too.
        public var copies = 0
        /// Frames that were dropped because the function that replaces frames was busy. 0 for one that changes them in place.
        public var dropped = 0

        /// Figures before the first frame.
        public init() {}
    }

    /// The findings of an echo canceller.
    public struct EchoCanceller: Sendable, Equatable {
        /// Seconds between the timestamp of played audio and its echo; nil until it is detected.
        public var delay: Double?

        /// Figures with a delay in seconds, if one was detected.
        public init(delay: Double? = nil) {
            self.delay = delay
        }
    }

    /// The frames and bytes that a recorder writes.
    public struct Recorder: Sendable, Equatable {
        /// Frames that the recorder accepted.
        public var frames = 0
        /// Frames dropped because the disk was too slow. Each drop continues up to the next keyframe.
        public var droppedFrames = 0
        /// Bytes of encoded video and audio.
        public var bytes = 0

        /// Figures before the first frame.
        public init() {}
    }
}
