/// The RTP packets of one encoded video or Opus frame, passed on together.
public struct RTPBatch: Sendable {
    /// The packets, back to back, each with its RTP header.
    public var bytes: [UInt8]
    /// Each packet's end in `bytes`, where the next one starts.
    public var ends: [Int]
    /// When the frame was captured.
    public var captureTime: MediaTime
    /// The RTP timestamp that all packets of the frame carry.
    public var rtpTimestamp: UInt32
    /// Whether a decoder can start with this frame; always true for audio.
    public var isKeyframe: Bool
    /// The layer of a video that comes in several. The layers of a frame have its timestamps in common.
    public var layer: VideoLayer
    /// The negated root mean square of audio in dBov (RFC 6464): 0 is the loudest, 127 is silence. Nil if nobody measured it,
    /// and for video.
    public var audioLevel: UInt8?

    /// The packets of a frame, one after the other in `bytes`.
    public init(
        bytes: [UInt8] = [], ends: [Int] = [], captureTime: MediaTime, rtpTimestamp: UInt32, isKeyframe: Bool,
        layer: VideoLayer = .full, audioLevel: UInt8? = nil
    ) {
        self.bytes = bytes
        self.ends = ends
        self.captureTime = captureTime
        self.rtpTimestamp = rtpTimestamp
        self.isKeyframe = isKeyframe
        self.layer = layer
        self.audioLevel = audioLevel
    }

    /// Number of packets.
    public var count: Int { ends.count }

    /// Where packet `index` lies in `bytes`. Traps when there is no such packet.
    public func range(_ index: Int) -> Range<Int> {
        (index == 0 ? 0 : ends[index - 1])..<ends[index]
    }
}
