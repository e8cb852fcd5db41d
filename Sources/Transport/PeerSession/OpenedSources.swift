import RTP

/// The SSRCs whose packets the SRTP engine has decrypted, at most `capacity`, because each one needs a context in the
/// engine.
///
/// An unused SSRC keeps its context while there is room. The context has the replay window, without which anyone on the
/// path could replay the stream and bind it again.
struct OpenedSources {
    /// A participant's 16 streams of three layers, each with retransmissions, have 96. The others are for streams that
    /// restart, and for reports.
    static let capacity = 128

    /// Oldest first.
    private var ssrcs: [SSRC] = []

    func contains(_ ssrc: SSRC) -> Bool { ssrcs.contains(ssrc) }

    /// Whether `ssrc` is known, or can replace an unused one.
    func admits(_ ssrc: SSRC, inUse: (SSRC) -> Bool) -> Bool {
        ssrcs.count < Self.capacity || contains(ssrc) || !ssrcs.allSatisfy(inUse)
    }

    /// Adds the SSRC of a decrypted packet. Returns the SSRC that it replaces, if any.
    mutating func insert(_ ssrc: SSRC, inUse: (SSRC) -> Bool) -> SSRC? {
        guard !contains(ssrc) else { return nil }
        ssrcs.append(ssrc)
        guard ssrcs.count > Self.capacity, let oldest = ssrcs.firstIndex(where: { !inUse($0) && $0 != ssrc }) else {
            return nil
        }
        return ssrcs.remove(at: oldest)
    }
}
