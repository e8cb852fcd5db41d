public import MediaGraph

/// What a running pipeline reports. Events are rare: a few for each node, never one for each frame.
public enum MediaEvent: Sendable {
    /// Every source has come to its end and all of it has been rendered or handed over.
    case ended
    /// The pipeline cannot go on. Stop it; it will not start again by itself.
    case failed(MediaError)
    /// An optional part of the graph has failed and was taken out; the rest goes on. `nodes` are gone.
    case partFailed(MediaError, nodes: [String])
    /// Something is not as it should be and goes on; `node` is the one that it is about, where that is known.
    case warning(node: String?, message: String)
    /// A decoder cannot go on without a keyframe: `node` is the RTP input whose sender, or the bypass node whose program,
    /// should be asked for one.
    /// Repeated, at most every 100 ms, for as long as it holds.
    case keyframeNeeded(node: String)
    /// The node (a renderer, or an RTP output) got its first frame.
    case firstFrame(node: String)
}
