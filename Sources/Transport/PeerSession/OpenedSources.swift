import RTP

/// The SSRCs whose packets the SRTP engine has opened. Each one costs the engine a context, so there are at most
/// `capacity` of them.
///
/// An SSRC that no stream uses any longer keeps its context as long as there is room: the context holds the replay
/// window, without which anybody on the path could replay the stream and bind it again.
struct OpenedSources {
    static let capacity = 64

    /// The longest known first.
    private var ssrcs: [SSRC] = []

    func contains(_ ssrc: SSRC) -> Bool { ssrcs.contains(ssrc) }

    /// Whether `ssrc` is known, or can take the place of one that is not in use.
    func admits(_ ssrc: SSRC, inUse: (SSRC) -> Bool) -> Bool {
        ssrcs.count < Self.capacity || contains(ssrc) || !ssrcs.allSatisfy(inUse)
    }

    /// Adds the SSRC of a packet that was opened. Returns the one that had to make room for it, if any.
    mutating func insert(_ ssrc: SSRC, inUse: (SSRC) -> Bool) -> SSRC? {
        guard !contains(ssrc) else { return nil }
        ssrcs.append(ssrc)
        guard ssrcs.count > Self.capacity, let oldest = ssrcs.firstIndex(where: { !inUse($0) && $0 != ssrc }) else {
            return nil
        }
        return ssrcs.remove(at: oldest)
    }
}
