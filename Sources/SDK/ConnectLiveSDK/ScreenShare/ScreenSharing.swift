internal import ChildProcesses
internal import MediaNodes
internal import RoomClient
internal import RoomProtocol
internal import Synchronization

/// A screen that one room shares: the program that sends its frames, and the media that publishes them.
///
/// One task opens everything, waits for the end, and closes everything, so that nothing opens after the end.
final class ScreenSharing: Sendable {
    /// Why a share ends.
    private enum End {
        /// The application has ended it.
        case stopped(isLeftRoom: Bool)
        /// The room is over.
        case left
        /// The extension has disconnected, or the room does not take the video.
        case closed
        case failed(RoomError)
        /// Without an error, if the program reported success.
        case exited(ChildProcess.Ending)
    }

    private struct State {
        var status = ScreenShareData.ExtensionStatus.notAvailable
        var end: End?
        /// Called once the share ends.
        var resume: (@Sendable () -> Void)?
        var task: Task<Void, Never>?
    }

    let media: LocalMediaSession
    private weak let room: RoomSession?
    private let group: ShareGroup
    /// The extension's program. Nil if the user starts it.
    private let program: String?
    private let callback: Callback<ScreenShareData.ExtensionStatus>
    /// Whether the application wants no callback any longer.
    private let isSilent: Silence
    private let state = Mutex(State())

    private final class Silence: Sendable {
        let isOn = Atomic(false)
    }

    /// - Parameter completion: receives each status until `stop`, on the callback queue.
    init(
        of room: RoomSession, in group: ShareGroup, program: String?,
        _ completion: @escaping (ScreenShareData.ExtensionStatus) -> Void
    ) {
        media = LocalMediaSession(screen: room.screenShareOptions, socket: group.socket)
        (self.room, self.group, self.program) = (room, group, program)
        let isSilent = Silence()
        self.isSilent = isSilent
        callback = Callback({ if !isSilent.isOn.load(ordering: .relaxed) { completion($0) } }, among: room.delegate)
    }

    /// Whether it has ended.
    var isOver: Bool { state.withLock { $0.end != nil } }

    // MARK: - The whole of a share

    /// Waits for frames, and starts the program.
    ///
    /// - Parameter former: an earlier share, whose socket may still be in use.
    func begin(after former: ScreenSharing?, room: String) {
        state.withLock { state in
            state.task = Task {
                await former?.waitUntilGone()
                await run(in: room)
            }
        }
    }

    /// Waits for the end of the program and the capture of a share that has ended.
    func waitUntilGone() async { await state.withLock { $0.task }?.value }

    private func run(in room: String) async {
        var running: ShareExtension?
        do throws(RoomError) {
            running = try await open(room)
        } catch {
            end(.failed(error))
        }
        await untilEnd()
        let end = state.withLock { $0.end }
        media.capture.stopObserving(as: self)
        if let end, group.isOpen { close(end) }
        await media.capture.finish()
        guard let running else { return }
        let ending = await running.end()
        // The socket of a program that crashes closes before it has ended.
        if case .closed = end { report(ending) }
    }

    /// Returns the running program. Nil if there is none, or the share has ended.
    private func open(_ room: String) async throws(RoomError) -> ShareExtension? {
        guard !isOver else { return nil }
        try await media.capture.start()
        guard !isOver, let feed = media.capture.feed else { return nil }
        // The socket is this share's own from here on.
        let shape = media.capture.requested.shape(nil)
        group.open(
            ShareGroup.Request(
                room: room, width: shape.width, height: shape.height, framesPerSecond: shape.framesPerSecond))
        media.capture.observe(
            as: self, failed: { [weak self] error in self?.end(.failed(error)) },
            ended: { [weak self] in self?.end(.closed) })
        feed.onStatus { [weak self] status in self?.changed(status) }
        changed(feed.state.status)
        guard let program, !isOver else { return nil }
        return try ShareExtension(program, in: group) { [weak self] ending in self?.end(.exited(ending)) }
    }

    private func untilEnd() async {
        await withCheckedContinuation { continuation in
            let isOver = state.withLock { state in
                if state.end == nil { state.resume = { continuation.resume() } }
                return state.end != nil
            }
            if isOver { continuation.resume() }
        }
    }

    private func close(_ end: End) {
        var isLeftRoom = false
        switch end {
        case .stopped(isLeftRoom: true), .left: isLeftRoom = true
        case .stopped(isLeftRoom: false), .closed, .failed, .exited: break
        }
        media.capture.feed?.stop(meetingIsOver: isLeftRoom)
        group.close(isLeftRoom ? .finishedMeeting : .finishedScreenShare)
    }

    // MARK: - Events

    private func changed(_ status: FrameFeedControl.Status) {
        guard let status = ScreenShareData.ExtensionStatus(rawValue: status.rawValue), status != .notAvailable else {
            return
        }
        let (isStarted, isClosed) = state.withLock { state in
            // A connection that was never ready, such as that of a program that only looks for a listener, ends nothing.
            guard state.end == nil, state.status != .notAvailable || status != .broadcastClosed,
                state.status.rawValue < status.rawValue
            else { return (false, false) }
            guard status != .broadcastClosed else { return (false, true) }
            // The first frame may have come before this share followed the status.
            if state.status == .notAvailable, status == .broadcastStarted { tell(.broadcastReady) }
            state.status = status
            tell(status)
            return (status == .broadcastStarted, false)
        }
        if isClosed { end(.closed) }
        if isStarted { room?.started(self) }
    }

    /// Under the lock before the end, so that statuses keep their order. The callback is only queued.
    private func tell(_ status: ScreenShareData.ExtensionStatus) {
        group.set(status)
        callback(status)
    }

    /// Ends the share. No callback follows.
    ///
    /// - Parameter isLeftRoom: whether the extension learns that the application has left the room.
    func stop(isLeftRoom: Bool) {
        isSilent.isOn.store(true, ordering: .relaxed)
        end(.stopped(isLeftRoom: isLeftRoom))
    }

    /// Ends the share with its room.
    func leave() { end(.left) }

    /// Ends the share if its media, which the room does not take, is this one.
    func fail(_ media: LocalMediaSession) { if media === self.media { end(.closed) } }

    private func end(_ end: End) {
        let (isFirst, resume) = state.withLock { state -> (Bool, (@Sendable () -> Void)?) in
            guard state.end == nil else { return (false, nil) }
            state.end = end
            defer { state.resume = nil }
            return (true, state.resume)
        }
        guard isFirst else { return }
        switch end {
        case .failed(let error): room?.problem(error)
        case .exited(let ending): report(ending)
        case .stopped, .left, .closed: break
        }
        // No other status follows.
        tell(.broadcastClosed)
        room?.ended(self)
        resume?()
    }

    private func report(_ ending: ChildProcess.Ending) {
        guard !ending.isGood, let program else { return }
        room?.problem(RoomError(.extensionFailed, "The program \(program) that shares the screen \(ending)."))
    }
}

extension LocalMediaSession {
    /// Media of frames that come to a socket.
    convenience init(screen options: ScreenShareOptions, socket: String) {
        var request = MediaRequest(source: .feed)
        (request.width, request.height) = (options.width, options.height)
        request.framesPerSecond = Double(options.framesPerSecond)
        (request.hasAudio, request.feedSocket, request.degradation) = (false, socket, .detail)
        var media = LocalMediaOptions(request)
        media.videoExtraValue = "screen"
        self.init(media)
    }

    /// Whether its frames are those of a shared screen, which the application has not created.
    var isScreenShare: Bool { capture.requested.source == .feed }
}
