internal import PeerLoop
internal import RTP

/// Compares a run with its bounds.
struct BoundsCheck {
    let bounds: RoomBounds
    private(set) var extremes = RoomExtremes()

    init(_ bounds: RoomBounds) { self.bounds = bounds }

    /// How often waits that have not ended are compared.
    static let interval = TimeInterval.milliseconds(250)

    mutating func firstFrame(after wait: TimeInterval, of viewer: VideoViewer) -> String? {
        extremes.firstFrame = max(extremes.firstFrame, wait)
        return Self.problem(wait, bounds.firstFrame, "firstFrame", "for the first frame", viewer)
    }

    mutating func frame(after wait: TimeInterval, of viewer: VideoViewer) -> String? {
        extremes.freeze = max(extremes.freeze, wait)
        return Self.problem(wait, bounds.freeze, "freeze", "for the next frame", viewer)
    }

    /// - Parameter wait: beyond round trips.
    mutating func keyframe(after wait: TimeInterval, of viewer: VideoViewer) -> String? {
        extremes.keyframe = max(extremes.keyframe, wait)
        return Self.problem(wait, bounds.keyframe, "keyframe", "beyond round trips for a keyframe", viewer)
    }

    private static func problem(
        _ wait: TimeInterval, _ bound: TimeInterval, _ name: String, _ aim: String, _ viewer: VideoViewer
    ) -> String? {
        guard wait > bound else { return nil }
        return "A viewer waited \(wait.milliseconds) ms \(aim), which exceeds the bound '\(name)' of "
            + "\(bound.milliseconds) ms: \(viewer.description)"
    }

    mutating func memory(_ memory: PacketMemory) -> String? {
        guard memory.limit > 0 else { return nil }
        let share = Double(memory.held) / Double(memory.limit)
        extremes.memory = max(extremes.memory, share)
        extremes.memoryBytes = max(extremes.memoryBytes, memory.held)
        guard share > bounds.memory else { return nil }
        return "The server holds \(memory.held) bytes of packets, which exceeds the bound 'memory' of \(bounds.memory) "
            + "of \(memory.limit) bytes."
    }
}

extension VideoViewer {
    /// The first bound that a wait of this viewer exceeds now. Called before each frame that is shown, and from time to
    /// time.
    func exceededBound(_ check: inout BoundsCheck) -> String? {
        guard !isEnded, let source = simulation.videoSource(of: stream), source.isLive, let flowing = source.flowsSince
        else { return nil }
        let now = simulation.loop.now
        let fault = max(client.lastFault, source.client.lastFault, simulation.server.disturbance.last)
        let start = lastShown ?? max(since, flowing)
        if start > fault {
            let problem =
                lastShown == nil
                ? check.firstFrame(after: now - start, of: self) : check.frame(after: now - start, of: self)
            if let problem { return problem }
        }
        guard let wait = keyframeWait(source, flowing), wait > .zero else { return nil }
        return check.keyframe(after: wait, of: self)
    }

    /// How long this viewer has waited for a keyframe beyond round trips, since the last loss of one or of a request. Nil
    /// if it waits for none, or if the wait tells nothing.
    private func keyframeWait(_ source: VideoSource, _ flowing: MonotonicTime) -> TimeInterval? {
        guard let waiting = waitsForKeyframeSince, simulation.isReadable else { return nil }
        let cut = max(client.lastCut, source.client.lastCut, simulation.server.disturbance.last)
        let loss = max(client.losses.last(of: source.id), source.client.losses.last(of: source.id))
        // A link without room for all frames gets none, up to a later keyframe.
        let leftOut = simulation.server.process?.lastLeftOut(of: stream, for: client) ?? .zero
        let start = max(waiting, max(flowing, source.lastRestart), max(cut, max(loss, leftOut)))
        guard start < simulation.loop.now else { return nil }
        // A subscription's request and an offer of more receivers come first.
        let signalling = lastShown == nil ? client.longestRoundTrip * 3 : .zero
        let allowed =
            client.longestRoundTrip + source.client.longestRoundTrip + source.frameInterval * 2 + Self.repairTimeout
            + signalling
        return simulation.loop.now - start - allowed
    }
}
