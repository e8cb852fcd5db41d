public import MediaGraph

/// An event of a running pipeline. Events are rare: a few per node, never one per frame.
public enum MediaEvent: Sendable {
    /// All sources have ended, and all their media has been rendered or passed on.
    case ended
    /// The pipeline cannot continue. Stop it; it does not restart by itself.
    case failed(MediaError)
    /// An optional part of the graph failed and was removed. The rest continues. `nodes` are the removed nodes.
    case partFailed(MediaError, nodes: [String])
    /// A problem that does not end the pipeline. `node` is the node with the problem, if known.
    case warning(node: String?, message: String)
    /// A decoder needs a keyframe. `node` is the RTP input whose sender, or the bypass node whose program, should send
    /// one. Repeated at most every 100 ms until a keyframe arrives.
    case keyframeNeeded(node: String)
    /// A renderer or RTP output received its first frame.
    case firstFrame(node: String)
}
