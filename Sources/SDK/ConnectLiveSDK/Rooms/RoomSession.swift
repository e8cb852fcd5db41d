package import PeerLoop
package import RoomClient
internal import RoomProtocol
internal import Synchronization

/// The implementation of `Room`. It keeps the application's participants and turns the events of its link into callbacks.
/// Events arrive on the link's thread, calls on any thread.
///
/// Participants and their streams change with their event's callback. If they changed before, an application that
/// subscribes to the videos in `remoteParticipants` and to announced ones would subscribe to one twice.
final class RoomSession: Room {
    struct State {
        var status = RoomStatus.initialized
        /// The stream and the participant of each audio slot in use.
        var heard: [(stream: Int, participant: String)] = []
        var publications: [Publication] = []
        /// The name of the room, once `connect` was called.
        var name = ""
        /// The newest screen share, which may have ended.
        var share: ScreenSharing?
        var disconnectError: ConnectLiveError?
    }

    let own = OwnParticipant()
    let state = Mutex(State())
    let remotes = RemoteParticipants()
    let delegate: DelegateQueue
    let quality = QualityMonitor()
    let screenShareOptions: ScreenShareOptions
    let mediaWays = Mutex(MediaWays())
    private let token: RoomEngine.TokenSource
    let authentication: Authentication
    /// Set once, at the end of `init`.
    private let linkBox = Mutex<(any RoomLink)?>(nil)

    /// - Parameters:
    ///   - authentication: provides the token for entering the room
    ///   - makeLink: makes the connection of this room. It receives the function to call with each event
    init(
        delegate: (any RoomDelegate)?, callbacks: CallbackQueue = .shared,
        authentication: Authentication = .shared, screenShare: ScreenShareOptions = ScreenShareOptions(),
        makeLink: (_ onEvent: @escaping @Sendable (RoomEvent) -> Void) -> any RoomLink
    ) {
        self.delegate = DelegateQueue(delegate, queue: callbacks)
        self.authentication = authentication
        screenShareOptions = screenShare
        token = { refused async throws(RoomError) in
            do throws(RoomError) {
                return try await authentication.token(refused: refused)
            } catch {
                throw error.failing(.renewal)
            }
        }
        let link = makeLink { [weak self] event in self?.handle(event) }
        linkBox.withLock { $0 = link }
        self.delegate.setOverflow { [weak self] in self?.overflowed() }
    }

    deinit {
        authentication.stopObserving(as: self)
        endPublications()
        linkBox.withLock { $0 }?.disconnect()
    }

    var link: any RoomLink {
        guard let link = linkBox.withLock({ $0 }) else { preconditionFailure("a room without a link") }
        return link
    }

    // MARK: - State

    var status: RoomStatus { state.withLock { $0.status } }
    var isConnected: Bool { status == .connected }
    var localParticipant: any LocalParticipant { own }
    var remoteParticipants: [String: any RemoteParticipant] { remotes.all }

    func getVideoOccupants() -> [String] {
        remotes.all.filter { $0.value.videoStreams.values.contains(where: \.isSubscribed) }.keys.sorted()
    }

    func getAudioOccupants() -> [String] {
        var seen: Set<String> = []
        return state.withLock { $0.heard }.map(\.participant).filter { seen.insert($0).inserted }
    }

    var events: RoomEvents { delegate.events }

    // MARK: - Connecting

    func connect(roomId: String) {
        let isFirst = state.withLock { state in
            guard state.status == .initialized else { return false }
            state.status = .connecting
            return true
        }
        guard isFirst else {
            return delegate.answer(
                RoomError(.roomReleased, "This room was connected before. Create another Room to join again."))
        }
        let name: RoomName
        do throws(RoomError) {
            name = try RoomName(roomId)
        } catch {
            return end(.disconnected, error)
        }
        state.withLock { $0.name = roomId }
        link.connect(to: name, token: token)
    }

    func disconnect() {
        delegate.leave()
        let wasIdle = state.withLock { state -> Bool in
            switch state.status {
            case .disconnecting, .disconnected: return false
            case .initialized, .connecting, .connected:
                let wasIdle = state.status == .initialized
                state.status = .disconnecting
                return wasIdle
            }
        }
        // A link that was connected ends and reports it. An idle one reports nothing.
        if wasIdle { end(.disconnected, nil) } else { link.disconnect() }
    }

    func restartIce() {
        if isConnected { link.restartICE() }
    }

    // MARK: - Telling the delegate

    /// An application that does not return from its callbacks loses the room, not single events.
    ///
    /// - Parameters:
    ///   - key: the kind of an event that replaces a waiting one of the same kind.
    ///   - event: called on the callback queue
    func tell(
        replacing key: EventKey? = nil, _ event: @escaping @Sendable (DelegateQueue.Audience) -> Void
    ) {
        if !delegate.tell(replacing: key, event) { overflowed() }
    }

    /// Ends the room because its delegate does not keep up.
    func overflowed() {
        link.disconnect()
        end(
            .disconnected,
            RoomError(
                .roomReleased,
                "More than \(DelegateQueue.capacity) callbacks of this room are waiting, so the SDK left the room. "
                    + "Return from callbacks soon, or set ConnectLive.callbackQueue."))
    }

    func problem(_ error: RoomError) { tell { $0.tell(.error(error, isCritical: false)) } }

    // MARK: - The end

    /// - Parameter cause: why the server or a failure ended the connection. Only a failure is an error for the delegate.
    func end(_ reason: DisconnectReason, _ cause: RoomError?) {
        let error = reason == .disconnected ? cause : nil
        let isFirst = state.withLock { state in
            guard state.status != .disconnected else { return false }
            state.status = .disconnected
            state.heard = []
            state.disconnectError = cause.map { ConnectLiveError($0) }
            return true
        }
        guard isFirst else { return }
        authentication.stopObserving(as: self)
        endPublications()
        for participant in remotes.all.values {
            for video in participant.videoStreams.values { video.end() }
        }
        delegate.end(reason, error)
        // Events before the end may still add participants.
        delegate.complete { [remotes] in
            for participant in remotes.all.values { participant.detachViews() }
        }
    }
}

extension RoomSession {
    var disconnectError: ConnectLiveError? { state.withLock { $0.disconnectError } }
}

extension Room {
    /// More about the last interruption of media than its callbacks tell.
    package var mediaWays: MediaWays { (self as? RoomSession)?.mediaWays.withLock { $0 } ?? MediaWays() }

    /// The TURN servers in use: those of the application or the environment, else those that the room server named last.
    package var relays: [ICEServer] {
        get async { await (self as? RoomSession)?.link.relays ?? [] }
    }
}

/// How media went before the last interruption, and how it goes since.
package struct MediaWays: Sendable {
    package var interruption: MediaInterruption?
    package var restored: RoomStatistics.Path?
}

extension DisconnectReason {
    init(_ reason: Closing.Reason) {
        switch reason {
        case .disconnected: self = .disconnected
        case .destroyed: self = .destroyed
        case .kicked: self = .kicked
        }
    }
}
