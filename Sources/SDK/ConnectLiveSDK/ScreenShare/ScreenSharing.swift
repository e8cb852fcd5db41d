internal import ChildProcesses
internal import MediaNodes
internal import RoomClient
internal import RoomProtocol
internal import Synchronization

/// A screen that one room shares: the program that sends its frames, and the media that publishes them.
final class ScreenSharing: Sendable {
    private struct State {
        var status = ScreenShareData.ExtensionStatus.notAvailable
        var isOver = false
        var program: ShareExtension?
        /// The end of everything that belongs to the share.
        var cleanup: Task<Void, Never>?
    }

    private final class Stopped: Sendable {
        let value = Atomic(false)
    }

    let media: LocalMediaSession
    private weak let room: RoomSession?
    private let group: ShareGroup
    /// The extension's program. Nil if the user starts it.
    private let program: String?
    private let callback: Callback<ScreenShareData.ExtensionStatus>
    /// Whether the application wants no callback any longer.
    private let isStopped: Stopped
    private let state = Mutex(State())

    /// - Parameter completion: receives each status until `stop`, on the callback queue.
    init(
        of room: RoomSession, in group: ShareGroup, program: String?,
        _ completion: @escaping (ScreenShareData.ExtensionStatus) -> Void
    ) {
        media = LocalMediaSession(screen: room.screenShareOptions, socket: group.socket)
        (self.room, self.group, self.program) = (room, group, program)
        let isStopped = Stopped()
        self.isStopped = isStopped
        callback = Callback({ if !isStopped.value.load(ordering: .relaxed) { completion($0) } }, among: room.delegate)
    }

    /// Whether it has ended.
    var isOver: Bool { state.withLock { $0.isOver } }

    /// Waits for frames, and starts the program.
    ///
    /// - Parameter former: an earlier share, whose socket may still be in use.
    func begin(after former: ScreenSharing?, room: String) {
        Task {
            await former?.waitUntilGone()
            do throws(RoomError) {
                try await open(room)
            } catch {
                end(.finishedScreenShare, error)
            }
        }
    }

    private func open(_ room: String) async throws(RoomError) {
        let shape = media.capture.requested.shape(nil)
        group.set(ScreenShareData.ExtensionStatus.notAvailable)
        group.set(
            ShareGroup.Request(
                room: room, width: shape.width, height: shape.height, framesPerSecond: shape.framesPerSecond))
        group.set(.startScreenShare)
        try await media.capture.start()
        guard let feed = media.capture.feed else { return }
        feed.onStatus { [weak self] status in self?.changed(status) }
        changed(feed.state.status)
        guard let program, !isOver else { return }
        let running = try ShareExtension(program, in: group) { [weak self] ending in
            self?.end(
                .finishedScreenShare,
                ending.isGood
                    ? nil
                    : RoomError(.extensionFailed, "The program \(program) that shares the screen \(ending)."))
        }
        let isLate = state.withLock { state in
            state.program = running
            return state.isOver
        }
        if isLate { await running.end() }
    }

    private func changed(_ status: FrameFeedControl.Status) {
        guard let status = ScreenShareData.ExtensionStatus(rawValue: status.rawValue), status != .notAvailable else {
            return
        }
        if status == .broadcastClosed { return end(.finishedScreenShare, nil) }
        let isNews = state.withLock { state in
            guard !state.isOver, state.status.rawValue < status.rawValue else { return false }
            state.status = status
            return true
        }
        guard isNews else { return }
        group.set(status)
        callback(status)
        if status == .broadcastStarted { room?.started(self) }
    }

    /// Ends the share. No callback follows.
    ///
    /// - Parameter isLeftRoom: whether the extension learns that the application has left the room.
    func stop(isLeftRoom: Bool) {
        isStopped.value.store(true, ordering: .relaxed)
        end(isLeftRoom ? .finishedMeeting : .finishedScreenShare, nil)
    }

    /// Waits for the end of the program and the capture of a share that has ended.
    func waitUntilGone() async { await state.withLock { $0.cleanup }?.value }

    /// Ends the share if its media, which the room does not take, is this one.
    func fail(_ media: LocalMediaSession) { if media === self.media { end(.finishedScreenShare, nil) } }

    private func end(_ status: ScreenShareData.AppStatus, _ error: RoomError?) {
        let (isFirst, program) = state.withLock { state in
            defer { state.isOver = true }
            return (!state.isOver, state.program)
        }
        guard isFirst else { return }
        group.set(status)
        group.removeRequest()
        group.set(ScreenShareData.ExtensionStatus.broadcastClosed)
        callback(.broadcastClosed)
        let capture = media.capture
        capture.feed?.stop(meetingIsOver: status == .finishedMeeting)
        room?.ended(self, error)
        let cleanup = Task {
            await capture.stop()
            await program?.end()
        }
        state.withLock { $0.cleanup = cleanup }
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
