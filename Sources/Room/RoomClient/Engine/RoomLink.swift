internal import ClientCore
internal import MediaGraph
package import PeerLoop
package import RoomProtocol
internal import Synchronization

/// The connection of one room, as the SDK uses it: `RoomEngine`, or a script in tests of the SDK.
///
/// Its events come one at a time, in order. Calls are allowed on any thread. Those that do not wait return immediately.
package protocol RoomLink: AnyObject, Sendable {
    /// Joins the room. `.connected` or `.ended` reports the result.
    ///
    /// - Parameter token: called now, and whenever the connection returns.
    func connect(to room: RoomName, token: @escaping RoomEngine.TokenSource)
    /// Leaves the room. `.ended` follows, unless the link has ended or was never connected.
    func disconnect()

    /// Publishes a capture's streams, and starts it if necessary. Returns when the server has replied.
    ///
    /// - Parameters:
    ///   - isRecorded: whether the server is to record the streams. `.problem` reports that it does not.
    ///   - isWanted: read when the capture has started. If false, nothing is announced, and this throws.
    func publish(
        _ capture: LocalCapture, video: StreamAttributes, audio: StreamAttributes, isRecorded: Bool,
        isWanted: @escaping @Sendable () -> Bool
    ) async throws(RoomError) -> [PublishedStream]
    /// Changes the attributes of a published stream. `.problem` reports a change that the server refuses.
    /// Returns false if the link is overloaded.
    func setStream(_ id: Int, _ change: StreamChange) -> Bool
    /// - Parameter then: called when the server has replied, or the connection has ended.
    func unpublish(_ streams: [Int], then: @escaping @Sendable (Result<Void, RoomError>) -> Void)

    /// - Parameter then: called when the server has replied, or the connection has ended.
    func subscribe(
        _ id: Int, view: StreamView, to fanout: FrameFanout,
        then: @escaping @Sendable (Result<Void, RoomError>) -> Void)
    func setView(_ view: StreamView, of id: Int, then: @escaping @Sendable (Result<Void, RoomError>) -> Void)
    func unsubscribe(_ id: Int, then: @escaping @Sendable (Result<Void, RoomError>) -> Void)

    /// Sends a text to other participants.
    ///
    /// - Parameter then: called when the server has replied, or the connection has ended.
    func send(_ message: SendMessage, then: @escaping @Sendable (Result<Void, RoomError>) -> Void)

    /// Plays nothing of the room, or plays it again.
    func setMuted(_ isMuted: Bool)
    /// Sets how loud an audio stream is played, also before it has a slot.
    ///
    /// - Parameter factor: for samples; 1 plays it as it comes
    func setVolume(_ factor: Double, isMuted: Bool, of stream: Int)

    /// Restarts ICE of both sessions, at most once in 5 s.
    func restartICE()

    /// Calls the function after the events that have happened: after `.ended`, if the end was the cause of a failure.
    func afterEvents(_ body: @escaping @Sendable () -> Void)
    /// Current statistics, or the final ones after the end.
    var statistics: RoomStatistics { get async }
    /// The TURN servers in use: those of this end, else those that the room server named last.
    var relays: [ICEServer] { get async }
}

extension RoomEngine: RoomLink {
    package nonisolated func send(
        _ message: SendMessage, then: @escaping @Sendable (Result<Void, RoomError>) -> Void
    ) {
        let isTaken = post { $0.connection.send(message, then: then) }
        if !isTaken { then(.failure(Self.overloaded)) }
    }

    package nonisolated func setMuted(_ isMuted: Bool) { wish { $0.isMuted = isMuted } }

    package nonisolated func setVolume(_ factor: Double, isMuted: Bool, of stream: Int) {
        wish { $0.volumes[stream] = SoundRoom.Volume(factor: factor, isMuted: isMuted) }
    }

    /// The newest values wait for the loop, in one closure.
    private nonisolated func wish(_ change: (inout SoundRoom.Wishes) -> Void) {
        let isFirst = soundWishes.withLock { wishes in
            defer { change(&wishes) }
            return wishes == SoundRoom.Wishes()
        }
        guard isFirst else { return }
        postAlways { engine in
            let wishes = engine.soundWishes.withLock { wishes in
                defer { wishes = SoundRoom.Wishes() }
                return wishes
            }
            engine.sinks.room.apply(wishes)
        }
    }

    package nonisolated func restartICE() { post { $0.connection.restartICE() } }

    package nonisolated func afterEvents(_ body: @escaping @Sendable () -> Void) { postAlways { _ in body() } }
}
