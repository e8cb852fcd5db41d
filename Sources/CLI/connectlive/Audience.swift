internal import ConnectLiveSDK
internal import Foundation
internal import MediaGraph
internal import MediaNodes
internal import RoomClient
internal import Synchronization

/// Shows videos tiled in one window, if there is a display, and keeps the newest frame of each.
final class Screen: Sendable {
    private let window: TiledWindow?
    /// The newest frame of each video that shows its source.
    private let newest = Mutex<[Int: VideoFrame]>([:])
    /// One sentence for each video whose source is away.
    private let waiting = Mutex<[Int: String]>([:])
    private let first = Mutex<Int?>(nil)
    /// Whether the first video was of a former stay in the room. The next one takes its place.
    private let isOver = Mutex(false)

    init(title: String, hasWindow: Bool) throws {
        window = hasWindow && TiledWindow.isPossible ? try TiledWindow(title: title) : nil
        if hasWindow, window == nil {
            let names = ["WAYLAND_DISPLAY", "DISPLAY"].compactMap { name in
                ProcessInfo.processInfo.environment[name].flatMap { $0.isEmpty ? nil : "\(name)=\($0)" }
            }.joined(separator: " ")
            let reason = names.isEmpty ? "There is no display, so no window opens" : "No window opens on \(names)"
            Console.line("\(reason); the frames are only counted.")
        }
    }

    func add(_ stream: Int) { window?.addTile(String(stream)) }

    func remove(_ stream: Int) {
        window?.removeTile(String(stream))
        // The snapshot shows the first video, so only other videos are released.
        if first.withLock({ $0 }) != stream { newest.withLock { $0[stream] = nil } }
    }

    /// The room has ended, and others of its videos may come.
    func beginAnew() { isOver.withLock { $0 = true } }

    /// - Parameter isLive: whether the frame is one of the video's source. Others are shown, and in no snapshot.
    func show(_ frame: VideoFrame, of stream: Int, isLive: Bool = true) {
        let isNew = isOver.withLock { isOver in
            defer { isOver = false }
            return isOver
        }
        if isNew {
            newest.withLock { $0 = [:] }
            first.withLock { $0 = nil }
        }
        window?.show(frame, in: String(stream))
        guard isLive else { return }
        first.withLock { $0 = $0 ?? stream }
        newest.withLock { $0[stream] = frame }
    }

    /// Notes why a video does not show its source, in one sentence; nil if it does.
    func note(_ stream: Int, waits reason: String?) { waiting.withLock { $0[stream] = reason } }

    /// Why the first video of the snapshot, or else any one, does not show its source.
    var absence: String? {
        let first = first.withLock { $0 }
        return waiting.withLock { waiting in first.map { waiting[$0] } ?? waiting.min { $0.key < $1.key }?.value }
    }

    /// The newest frame of the first video that has shown its source.
    var snapshot: VideoFrame? { first.withLock { $0 }.flatMap { stream in newest.withLock { $0[stream] } } }

    func close() async { await window?.close() }
}

/// Subscribes every video of a room, or one participant's, and shows them.
final class Audience: Sendable {
    private struct State {
        var room: (any Room)?
        var lastStatistics = RoomStatistics()
        /// The ids of the other participants, from the same moment.
        var lastPresent: [String] = []
        var watched: Set<Int> = []
    }

    private let screen: Screen
    private let only: String?
    private let timeout: ConnectionNews.Timeout
    private let onConnected: @Sendable (String) -> Void
    private let say: @Sendable (String) -> Void
    private let state = Mutex(State())
    private let guestBox = Mutex<Guest?>(nil)

    init(
        screen: Screen, only: String?, _ timeout: ConnectionNews.Timeout,
        onConnected: @escaping @Sendable (String) -> Void = { _ in },
        say: @escaping @Sendable (String) -> Void = { Console.error($0) }
    ) {
        self.say = say
        self.screen = screen
        self.only = only
        self.timeout = timeout
        self.onConnected = onConnected
    }

    /// The delegate for `createRoom`.
    var guest: Guest {
        guestBox.withLock { guest in
            if let guest { return guest }
            let made = Guest(
                timeout,
                onConnected: { [weak self] participant in
                    self?.onConnected(participant)
                    self?.watchPresentVideos()
                },
                onVideo: { [weak self] participant, video in self?.watch(video, of: participant) },
                onVideoChanged: { [weak self] participant, video in self?.printState(of: video, of: participant) },
                onLeft: { [weak self] participant in self?.forget(participant) }, say: say)
            guest = made
            return made
        }
    }

    /// The statistics from the moment before the room was left.
    var lastStatistics: RoomStatistics { state.withLock { $0.lastStatistics } }

    /// The cause if the only participant to watch was not in the room then. Nil if it was, or if all are watched.
    var absence: String? {
        only.flatMap { AbsentParticipant.words($0, among: state.withLock { $0.lastPresent }) }
    }

    func enter(_ room: any Room, named name: String) {
        state.withLock { $0.room = room }
        guest.enter(room, named: name)
    }

    /// Returns after Ctrl-C, `seconds`, or the end of this or the other guest's room. Throws the cause if it was an
    /// error.
    func stay(until interruption: Interruption, seconds: Double?, alsoWatching other: Guest? = nil) async throws {
        guard let room = state.withLock({ $0.room }) else { return }
        try await Attendance.until(interruption, seconds: seconds, [guest] + (other.map { [$0] } ?? []), leaving: room)
        { [self] in await keepState(of: room) }
    }

    /// Returns at the end of the room or of the task, and leaves the room. Throws the cause if it was an error.
    func stay() async throws {
        guard let room = state.withLock({ $0.room }) else { return }
        try await guest.stay(in: room) { [self] in await keepState(of: room) }
    }

    /// Takes all videos off the screen.
    func clear() {
        let watched = state.withLock { state in
            defer { state.watched = [] }
            return state.watched
        }
        for id in watched { screen.remove(id) }
        screen.beginAnew()
    }

    private func keepState(of room: any Room) async {
        let statistics = await room.statistics()
        let present = room.remoteParticipants.values.map(\.id)
        state.withLock { ($0.lastStatistics, $0.lastPresent) = (statistics, present) }
    }

    private func watchPresentVideos() {
        guard let room = state.withLock({ $0.room }) else { return }
        let present = room.remoteParticipants.values.map(\.id)
        if let absence = only.flatMap({ AbsentParticipant.words($0, among: present) }) {
            Console.line("\(absence) The command waits for it.")
        }
        for participant in room.remoteParticipants.values {
            for video in participant.videos.values.sorted(by: { $0.id < $1.id }) { watch(video, of: participant) }
        }
    }

    private func watch(_ video: any RemoteVideo, of participant: any RemoteParticipant) {
        guard only == nil || participant.id == only else { return }
        // The video keeps the view until it is detached.
        let view = FrameView()
        let id = video.id
        view.onFrame = { [screen, weak video] frame in screen.show(frame, of: id, isLive: video?.state == .live) }
        video.attach(view)
        screen.add(id)
        let room = state.withLock { state in
            state.watched.insert(id)
            return state.room
        }
        room?.subscribe(videoIds: [id])
        if video.state != .live { printState(of: video, of: participant) }
    }

    private func printState(of video: any RemoteVideo, of participant: any RemoteParticipant) {
        guard only == nil || participant.id == only else { return }
        switch video.state {
        case .waiting(let reason):
            let sentence = "Video \(video.id) of \(participant.id) waits: \(reason)."
            screen.note(video.id, waits: sentence)
            Console.line(sentence)
        case .live:
            screen.note(video.id, waits: nil)
            Console.line("Video \(video.id) of \(participant.id) is live again.")
        }
    }

    private func forget(_ participant: any RemoteParticipant) {
        for id in participant.videos.keys { screen.remove(id) }
    }
}
