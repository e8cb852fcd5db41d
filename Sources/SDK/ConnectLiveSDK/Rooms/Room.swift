/// The state of a room connection.
public enum RoomStatus: Sendable, Hashable {
    /// Created, but not connected yet.
    case initialized
    /// `connect` was called, and neither `onConnected` nor a failure has come.
    case connecting
    /// The room is joined, also while it reconnects.
    case connected
    /// `disconnect` was called, and `onDisconnected` has not come.
    case disconnecting
    /// Final: create another Room to join again.
    case disconnected
}

/// Why a room connection ended.
public enum DisconnectReason: Sendable, Hashable {
    /// The application left, or an error ended the connection. In the second case, `onError` comes directly before.
    case disconnected
    /// The server ended the room, or stopped; see `Room.disconnectError`. `onError` is not called.
    case destroyed
    /// The server removed this participant. `onError` is not called.
    case kicked
}

extension Room {
    /// Nil, for types of applications, such as doubles in tests.
    public var disconnectError: ConnectLiveError? { nil }

    /// Empty, for types of applications.
    public var events: RoomEvents {
        let buffer = EventBuffer()
        buffer.end()
        return RoomEvents(buffer: buffer)
    }
}

/// A connection to a room, created by `ConnectLive.createRoom`. Retain it: releasing it leaves the room. All calls are
/// allowed on any thread.
public protocol Room: AnyObject, Sendable {
    /// Whether the status is `connected`.
    var isConnected: Bool { get }
    /// The state of the connection. It changes before the callback that reports it.
    var status: RoomStatus { get }
    /// The participant of this connection, with the streams that it publishes.
    var localParticipant: any LocalParticipant { get }
    /// Why the connection ended, from `onDisconnected` on: 2007 if the administrator ended the room, 1302 if the server stopped
    /// or removed this participant, or the error of `onError`. Nil before the end, and if the application left.
    var disconnectError: ConnectLiveError? { get }
    /// The events of the room from this call on, as a sequence. (Linux)
    var events: RoomEvents { get }
    /// The other participants, by id. After `onConnected`, they and their streams change with their callbacks.
    var remoteParticipants: [String: any RemoteParticipant] { get }

    /// Joins a room by its name: 1 to 32 letters, digits and hyphens. Within 10 s (17 s with a TURN server), `onConnected`,
    /// or `onError` and `onDisconnected`, report the result. A room connects once.
    func connect(roomId: String)
    /// Leaves the room. `onDisconnected` reports the end. No other event follows this call, not even an error of the
    /// connection. (A call on another queue than the callback queue does not stop an event that is being delivered.)
    func disconnect()

    /// Publishes now, or when the room is connected. `onLocalMediaPublished` reports success, `onError` a failure. If the machine has
    /// no microphone, the video is published alone, and if it has no camera, the audio with a slate. An `onError` with 1201 follows
    /// then, which is not critical and names the device. A device that is lost later raises none. A room with too many new streams takes
    /// the media later, after an `onError` with 2014, which is not critical: the publication goes on.
    /// Throws 1311 for nil, 1901 for an object of the application's own type, 1302 if the room has ended, 1441 if this room has the
    /// media already.
    func publish(_ media: (any LocalMedia)?) throws
    /// Publishes, and lets the server record the streams if `record` is true, until they end. To begin or end the recording of media
    /// that is published, unpublish it and publish it again. `onError` reports a server that does not record (2022), or whose
    /// recording has failed (2023): the streams go on without one.
    func publish(_ media: (any LocalMedia)?, _ record: Bool) throws
    /// Ends the streams of published media, or a `publish` that is still waiting. The media goes on capturing, and can be
    /// published again, here or in another room. `onLocalMediaUnpublished` reports success, `onError` a failure: 1311 if
    /// this room does not publish the media. Does nothing in a room that has ended.
    func unpublish(_ media: (any LocalMedia)?)

    /// Subscribes to several videos. `onError` reports failures: 1323 for an empty list.
    func subscribe(videoIds: [Int])
    /// Subscribes to a video, and returns at once. The completion is called on the callback queue, in order with the
    /// events.
    func subscribe(videoId: Int, completion: @escaping (Result<Void, any Error>) -> Void)
    /// Subscribes to a video, which begins with a requested keyframe. Failures are `ConnectLiveError`s: 1321 already
    /// subscribed, 1322 no free receiver, 1325 not connected, 1326 no receiver for the codec, 1328 no such video, 1329 another
    /// failure.
    func subscribe(videoId: Int) async -> Result<Void, any Error>

    /// Unsubscribes from several videos. `onError` reports failures: 1324 for an empty list.
    func unsubscribe(videoIds: [Int])
    /// Unsubscribes from a video, and returns at once. The completion is called on the callback queue, in order with
    /// the events.
    func unsubscribe(videoId: Int, completion: @escaping (Result<Void, any Error>) -> Void)
    /// Frees the video's receiver. Failures are `ConnectLiveError`s: 1325 not connected, 1328 no such video, 1331 not subscribed, or
    /// another failure.
    func unsubscribe(videoId: Int) async -> Result<Void, any Error>

    /// Sends a message to participants. Those that have left are ignored, and an empty list means all others. The sender does not
    /// get it. Succeeds when the server has it, which then delivers it also to participants that lose their connection and
    /// return in time. An empty type is `normal`.
    ///
    /// A message has at most 16 KiB of UTF-8, its type 64 bytes, and the list 256 ids. A participant sends 20 messages with 64 KiB
    /// at once, and then 10 with 16 KiB a second; the call waits for its turn, and while the room is reconnecting. It fails at once
    /// if 64 messages or 256 KiB wait. After another join, it fails, because the server may have the message or not. Each failure is
    /// a `ConnectLiveError` with 1471 and the cause in its message.
    func sendUserMessage(targets: [String], message: String, type: String) async -> Result<Void, any Error>
    /// Sends a message, and returns at once. The completion is called on the callback queue, in order with the events.
    func sendUserMessage(
        targets: [String], message: String, type: String, completion: @escaping (Result<Void, any Error>) -> Void)

    /// Shares a screen as a video of this participant, with the `extraValue` "screen". A program of its own, the extension, captures
    /// the frames: see `ConnectLive.createScreenShare`. They come over shared memory, and this process encodes and sends them. The
    /// media appears in no callback and not in `localParticipant`. It ends with the room.
    ///
    /// - Parameters:
    ///   - appGroup: the name that the application and the extension have in common: 1 to 48 letters, digits, dots, hyphens and
    ///     underscores.
    ///   - extensionName: the extension's program: a path, or a name that is looked for beside the application and in `PATH`. It
    ///     ends with this process. Empty if the user starts it.
    ///   - completion: receives each change of the status until `stopScreenShare`. `.broadcastClosed` is the last one; an
    ///     `onError` reports its cause, unless the user has ended the share.
    /// - Throws: a `ConnectLiveError`: 1905 its size or rate is out of range, 1906 the folder of the group is unusable, 1907 the room
    ///   is not connected, 2019 there is no such program, 1441 the room shares a screen already.
    func requestScreenShare(
        appGroup: String, extensionName: String,
        completion: @escaping (ScreenShareData.ExtensionStatus) -> Void) throws
    /// Ends the screen share, if there is one. Its completion gets nothing any longer. The program has 3 s to end by itself.
    /// Another share may be requested immediately, and begins when that is done.
    ///
    /// - Parameter isLeftRoom: whether the extension gets `.meetingFinished` instead of `.stopBroadcast`.
    func stopScreenShare(isLeftRoom: Bool)

    /// Looks for other ways for media in both directions (ICE restart), as a room does by itself when media stops. Frames go on
    /// meanwhile. Does nothing in a room that is not connected, and within 5 s of the last one.
    func restartIce()

    /// The ids of the participants with a subscribed video.
    func getVideoOccupants() -> [String]
    /// The ids of the participants that are heard: those in one of the four audio slots.
    func getAudioOccupants() -> [String]

    /// Plays nothing of this room, or plays it again. `RemoteAudio.isMuted` of each audio does not change.
    func setMuted(_ isMuted: Bool)
    /// How loud the participants are that are heard, by their ids: 0 for silence, 50 to 70 for comfortable speech, 100 at most.
    /// Levels of the last 0.2 s, before volumes and muting.
    func getAudioLevels() async -> [String: Int]
    /// Passes the levels of the participants that are heard to a completion.
    ///
    /// - Parameter completion: receives them, on the callback queue. Empty after the end of the room
    func getAudioLevels(completion: @escaping ([String: Int]) -> Void)

    /// The statistics of the session that sends, as W3C webrtc-stats names them: `media-source`, `outbound-rtp`,
    /// `remote-inbound-rtp`, `codec`, `transport`, `candidate-pair` and its candidates. Empty before something is published.
    /// After the end of the room, the last ones. Takes milliseconds; call it every few seconds, or when needed.
    func getLocalStats() async -> StatisticsReport
    /// Passes the statistics of the session that sends to a completion.
    ///
    /// - Parameter completion: receives them, on the callback queue, also after the end of the room
    func getLocalStats(completion: @escaping (StatisticsReport) -> Void)
    /// Likewise of the session that receives: `inbound-rtp` of each receiver that has got packets, `remote-outbound-rtp`, and so
    /// on. Empty before the room is connected.
    func getRemoteStats() async -> StatisticsReport
    /// Passes the statistics of the session that receives to a completion.
    ///
    /// - Parameter completion: receives them, on the callback queue, also after the end of the room
    func getRemoteStats(completion: @escaping (StatisticsReport) -> Void)
    /// The figures of the session that sends, in a form to encode. Nil before something is published.
    @available(*, deprecated, message: "Use getLocalStats, or RoomDelegate.onStat.")
    func getLocalQualityStatsReport() async -> QualitySession?
    /// Those of the session that receives. Nil before the room is connected.
    @available(*, deprecated, message: "Use getRemoteStats, or RoomDelegate.onStat.")
    func getRemoteQualityStatsReport() async -> QualitySession?
}
