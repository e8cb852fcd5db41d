/// What a pipeline has counted since it was started. Counters only grow; take two and subtract for a rate.
public struct MediaStatistics: Sendable, Equatable {
    /// By the name of the camera node.
    public var cameras: [String: Camera] = [:]
    /// By the name of the video encoder.
    public var encoders: [String: VideoEncoder] = [:]
    /// By the name of the RTP output.
    public var rtpOutputs: [String: RTPOutput] = [:]
    /// By the name of the RTP input.
    public var rtpInputs: [String: RTPInput] = [:]
    /// By the name of the renderer of pictures.
    public var videoRenderers: [String: VideoRenderer] = [:]
    /// By the name of the renderer of sound.
    public var audioRenderers: [String: AudioRenderer] = [:]
    /// By the name of the level meter: left before right.
    public var levels: [String: [ChannelLevel]] = [:]
    /// By the name of the frame function.
    public var frameFunctions: [String: FrameFunction] = [:]
    /// By the name of the echo canceller that something is played through.
    public var echoCancellers: [String: EchoCanceller] = [:]
    /// By the name of the recorder.
    public var recorders: [String: Recorder] = [:]

    public init() {}

    public struct Camera: Sendable, Equatable {
        /// Pictures that the camera counted and did not give: the bus or the machine was too slow for it.
        public var lost = 0

        public init() {}
    }

    /// captured = encoded + droppedBeforeEncoder + inFlight, at any time; inFlight is 0 once the pipeline has stopped.
    public struct VideoEncoder: Sendable, Equatable {
        /// Frames that reached the capture queue.
        public var captured = 0
        /// Frames that the capture queue threw away, the oldest first, because the encoder was busy.
        public var droppedBeforeEncoder = 0
        /// Frames in the capture queue or inside the encoder.
        public var inFlight = 0
        public var encoded = 0
        public var keyframes = 0
        /// Bytes of encoded video, without RTP.
        public var bytes = 0
        /// Size that is being encoded; 0 before the first frame.
        public var width = 0
        public var height = 0
        /// The bitrate that the encoder aims at now, in bits per second.
        public var targetBitsPerSecond = 0
        /// Whether the capture queue has dropped nothing in the last 2 seconds.
        public var encoderKeepsUp = true

        public init() {}
    }

    public struct RTPOutput: Sendable, Equatable {
        /// Batches handed over: encoded frames.
        public var frames = 0
        public var packets = 0
        /// Bytes of RTP packets.
        public var bytes = 0

        public init() {}
    }

    public struct RTPInput: Sendable, Equatable {
        /// Packets pushed by the program.
        public var packetsReceived = 0
        /// Packets that came while the input was full or not running.
        public var packetsDropped = 0
        /// Packets that the jitter buffer gave up waiting for.
        public var packetsLost = 0
        /// Packets that came after the jitter buffer had given them up.
        public var packetsLate = 0
        /// Packets that came more than once.
        public var packetsDuplicate = 0
        /// Frames that left the jitter buffer whole and went to the decoder.
        public var framesReceived = 0
        public var framesDecoded = 0
        /// How often a keyframe was asked for.
        public var keyframesNeeded = 0

        public init() {}
    }

    public struct VideoRenderer: Sendable, Equatable {
        public var framesRendered = 0
        /// Size of the last frame; 0 where frames come encoded.
        public var width = 0
        public var height = 0

        public init() {}
    }

    public struct AudioRenderer: Sendable, Equatable {
        public var secondsRendered = 0.0
        /// Sound above -60 dBFS (root mean square of each chunk of about 20 ms).
        public var secondsAboveSilence = 0.0
        /// Level of the last chunk in dBFS; -120 is silence, and what comes encoded.
        public var level = -120.0
        /// Whether the sound goes to a device; false where there is none.
        public var isAudible = false

        public init() {}
    }

    /// How loud a channel was during the last interval, in dBFS; 0 is full scale, -120 is silence.
    public struct ChannelLevel: Sendable, Hashable, Codable {
        public var rootMeanSquare: Double
        public var peak: Double

        public init(rootMeanSquare: Double, peak: Double) {
            self.rootMeanSquare = rootMeanSquare
            self.peak = peak
        }

        public static let silence = ChannelLevel(rootMeanSquare: -120, peak: -120)
    }

    public struct FrameFunction: Sendable, Equatable {
        /// Pictures that the function was handed.
        public var frames = 0
        /// Those of them that were copied first, because somebody else held them too.
        public var copies = 0

        public init() {}
    }

    public struct EchoCanceller: Sendable, Equatable {
        /// Seconds from the timestamp of what is played to its echo; nil until it was found.
        public var delay: Double?

        public init(delay: Double? = nil) {
            self.delay = delay
        }
    }

    public struct Recorder: Sendable, Equatable {
        /// Pictures that were taken for the recording.
        public var frames = 0
        /// Pictures that were left out, up to a keyframe each time, because the disk did not keep up.
        public var droppedFrames = 0
        /// Bytes of encoded pictures and sound.
        public var bytes = 0

        public init() {}
    }
}
