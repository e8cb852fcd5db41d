/// The RTP packets of one encoded frame (or of one Opus frame), handed over together: one hop per frame.
public struct RTPBatch: Sendable {
    /// The packets, back to back, each with its RTP header.
    public var bytes: [UInt8]
    /// For each packet, where it ends in `bytes`; the next one starts there.
    public var ends: [Int]
    /// When the frame was captured.
    public var captureTime: MediaTime
    /// The RTP timestamp that all packets of the frame carry.
    public var rtpTimestamp: UInt32
    /// Whether a decoder can start with this frame; true for every frame of audio.
    public var isKeyframe: Bool

    public init(
        bytes: [UInt8] = [], ends: [Int] = [], captureTime: MediaTime, rtpTimestamp: UInt32, isKeyframe: Bool
    ) {
        self.bytes = bytes
        self.ends = ends
        self.captureTime = captureTime
        self.rtpTimestamp = rtpTimestamp
        self.isKeyframe = isKeyframe
    }

    /// Number of packets.
    public var count: Int { ends.count }

    /// Where packet `index` lies in `bytes`. Traps when there is no such packet.
    public func range(_ index: Int) -> Range<Int> {
        (index == 0 ? 0 : ends[index - 1])..<ends[index]
    }
}
