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
    /// The device of a source or loudspeaker is not there yet, or cannot be opened. A source shows a slate or plays silence, a
    /// loudspeaker drops its audio, and the device is opened when it can be.
    case deviceWaiting(node: String, cause: MediaError)
    /// A source or loudspeaker lost its device. A source shows the last frame or a slate, or plays silence, until the device
    /// is back; a loudspeaker drops its audio.
    case deviceLost(node: String, cause: MediaError)
    /// The device of a source delivers, or that of a loudspeaker plays, after `deviceWaiting`, `deviceLost` or `deviceFailedOver`.
    case deviceReturned(node: String)
    /// Another device has taken over for the one that a source lost. The source returns to that one when it can.
    case deviceFailedOver(node: String, device: String)
    /// The sound server has silenced a loudspeaker node, because another program with a more urgent role plays, such as a phone
    /// call. The node goes on, unheard.
    case soundInterrupted(node: String)
    /// The loudspeaker node is heard again.
    case soundResumed(node: String)
    /// A video encoder follows its consumers' networks, or the speed of this machine, with another size or rate. `node` is
    /// the encoder.
    case qualityChanged(node: String, VideoQuality)

    /// Whether the event is about a node of its pipeline: `camera` of `.deviceLost(node: "camera", …)`, for example. It compares
    /// names, which are unique in a pipeline, so ask about an event and a node of one pipeline.
    public func isAbout(_ node: some MediaNode) -> Bool {
        node.handle.identity.latestName.map(nodes.contains) ?? false
    }

    /// Whether the pipeline does nothing more after the event.
    var isLast: Bool {
        switch self {
        case .ended, .failed: true
        default: false
        }
    }

    /// The names of the nodes that the event is about.
    private var nodes: [String] {
        switch self {
        case .ended: []
        case .failed(let error): [error.node].compactMap(\.self)
        case .partFailed(let error, let nodes): nodes + [error.node].compactMap(\.self)
        case .warning(let node, _): [node].compactMap(\.self)
        case .keyframeNeeded(let node), .firstFrame(let node), .deviceWaiting(let node, _), .deviceLost(let node, _),
            .deviceReturned(let node), .deviceFailedOver(let node, _), .soundInterrupted(let node),
            .soundResumed(let node), .qualityChanged(let node, _):
            [node]
        }
    }

    /// The source of an event of a device, and why it shows stand-ins after the event; nil if it shows the device's media.
    /// Nil for other events.
    package var source: (node: String, absence: MediaError?)? {
        switch self {
        case .deviceWaiting(let node, let cause), .deviceLost(let node, let cause): (node, cause)
        case .deviceReturned(let node), .deviceFailedOver(let node, _): (node, nil)
        case .ended, .failed, .partFailed, .warning, .keyframeNeeded, .firstFrame, .soundInterrupted, .soundResumed,
            .qualityChanged:
            nil
        }
    }
}
