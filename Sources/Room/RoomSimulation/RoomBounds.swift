public import RTP

/// The longest waits of a viewer, and the most memory of the server. A room fails at the first bound that is exceeded.
///
/// *Undisturbed* means: no cut, no changed link, no end of a process and no restart of an encoder at the viewer, at its
/// publisher or at the server. Links keep their own loss.
public struct RoomBounds: Sendable, Equatable {
    /// From the call of `subscribe`, or the first packet of the stream that reaches the server, to the first frame. Of
    /// undisturbed viewers.
    public var firstFrame = TimeInterval.seconds(6)
    /// Between two frames. Of undisturbed viewers.
    public var freeze = TimeInterval.seconds(6)
    /// The wait for a keyframe, beyond round trips, while no datagram that it needs is lost: see `docs/simulation.md`. Of all
    /// viewers, on links with any loss. Not with real encryption, which hides the contents of lost datagrams.
    /// Nor while the server leaves frames out, because the link has no room for them.
    public var keyframe = TimeInterval.seconds(1)
    /// Since the last frame of each viewer, at the end of the room.
    public var lastFrame = TimeInterval.seconds(3)
    /// The packets that the server holds, as a share of the most that its settings allow for the present streams and
    /// sessions.
    public var memory = 0.035

    /// The bounds that the SDK's own tests use.
    public init() {}
}

/// The longest waits and the most memory of a run, in the sense of `RoomBounds`.
public struct RoomExtremes: Sendable, Equatable {
    /// As in `RoomBounds`.
    public var firstFrame = TimeInterval.zero
    /// As in `RoomBounds`.
    public var freeze = TimeInterval.zero
    /// As in `RoomBounds`.
    public var keyframe = TimeInterval.zero
    /// Share of the most that the settings allow.
    public var memory = 0.0
    /// Bytes of packets that the server held.
    public var memoryBytes = 0
}
