public import MediaGraph

/// The functions of the program that nodes call, by the nodes' names.
///
/// All of them run on a GStreamer thread, in order for one node: return soon and never block there. To stop the
/// pipeline from one of them, start a Task.
public struct NodeBindings: Sendable {
    /// Called once for each encoded frame.
    public var rtpOutputs: [String: @Sendable (RTPBatch) -> Void] = [:]
    /// Called once for each picture.
    public var frames: [String: @Sendable (VideoFrame) -> Void] = [:]
    /// Called once for each stretch of sound, 10 to 25 ms long.
    public var audio: [String: @Sendable (AudioChunk) -> Void] = [:]
    /// Called once for each picture, to change it in place before it goes on.
    public var frameFunctions: [String: @Sendable (inout MutableVideoFrame) -> Void] = [:]
    /// Called for what happens; see `MediaEvent`.
    public var events: (@Sendable (MediaEvent) -> Void)?

    public init() {}

    var names: BoundNames {
        BoundNames(rtpOutputs: Set(rtpOutputs.keys), frames: Set(frames.keys), audio: Set(audio.keys),
            frameFunctions: Set(frameFunctions.keys))
    }
}
