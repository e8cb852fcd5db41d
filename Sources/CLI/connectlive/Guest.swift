internal import ClientCore
internal import ConnectLiveSDK
internal import Foundation
internal import MediaNodes
internal import RoomClient
internal import RoomProtocol
internal import Synchronization

/// A command's participation in a room. It keeps the reason for which the room ended.
final class Guest: RoomDelegate, Sendable {
    private struct State {
        var hasEnded = false
        var failure: Failure?
        var isRoomOver = false
        var hasConnected = false
        var waiters: [CheckedContinuation<Void, Never>] = []
        var news: ConnectionNews
        var room: (any Room)?
    }

    private let state: Mutex<State>
    /// Called with the guest's own participant id.
    private let onConnected: @Sendable (String) -> Void
    /// Called for each video that a participant publishes after the connection.
    private let onVideo: @Sendable (any RemoteParticipant, any RemoteVideo) -> Void
    /// Called for each video that begins or ceases to show its source.
    private let onVideoChanged: @Sendable (any RemoteParticipant, any RemoteVideo) -> Void
    private let onLeft: @Sendable (any RemoteParticipant) -> Void
    /// Says that the server is lost, and that it is back.
    private let say: @Sendable (String) -> Void
    private let changes: QualityChanges
    /// Whether every error ends the command. A publisher without a camera has nothing left to do.
    private let endsOnProblem: Bool

    /// - Parameter timeout: for how long the room tries to return after the server is lost
    init(
        _ timeout: ConnectionNews.Timeout, endsOnProblem: Bool = false,
        onConnected: @escaping @Sendable (String) -> Void = { _ in },
        onVideo: @escaping @Sendable (any RemoteParticipant, any RemoteVideo) -> Void = { _, _ in },
        onVideoChanged: @escaping @Sendable (any RemoteParticipant, any RemoteVideo) -> Void = { _, _ in },
        onLeft: @escaping @Sendable (any RemoteParticipant) -> Void = { _ in },
        say: @escaping @Sendable (String) -> Void = { Console.error($0) }, changes: QualityChanges = .shared
    ) {
        state = Mutex(State(news: ConnectionNews(timeout)))
        self.changes = changes
        self.endsOnProblem = endsOnProblem
        self.onConnected = onConnected
        self.onVideo = onVideo
        self.onVideoChanged = onVideoChanged
        self.onLeft = onLeft
        self.say = say
    }

    /// Connects to a room, whose delegate is this guest.
    func enter(_ room: any Room, named name: String) {
        state.withLock { $0.room = room }
        room.connect(roomId: name)
    }

    /// Returns when the room has ended. Throws the cause if it was an error.
    func untilEnded() async throws {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isOver = state.withLock { state in
                    // A task that was cancelled earlier was released already.
                    let isOver = state.hasEnded || Task.isCancelled
                    if !isOver { state.waiters.append(continuation) }
                    return isOver
                }
                if isOver { continuation.resume() }
            }
        } onCancel: {
            release()
        }
        if let failure = state.withLock({ $0.failure }) { throw failure }
    }

    /// Returns at the end of the room or of the task, and leaves the room. Throws the cause if it was an error.
    func stay(in room: any Room, beforeLeaving: @escaping @Sendable () async -> Void = {}) async throws {
        let result = await Result { try await untilEnded() }
        // A cancelled task would not wait.
        await Task {
            await beforeLeaving()
            guard room.status != .disconnected else { return }
            room.disconnect()
            try? await untilEnded()
        }.value
        try result.get()
    }

    /// Whether the room has accepted this participant.
    var hasConnected: Bool { state.withLock { $0.hasConnected } }

    /// Whether the connection to the room ended. False if only published media failed.
    var isRoomOver: Bool { state.withLock { $0.isRoomOver } }

    private func release() {
        let waiters = state.withLock { state in
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.resume() }
    }

    func onConnected(participantIds: [String]) {
        let room = state.withLock { state in
            state.hasConnected = true
            return state.room
        }
        onConnected(room?.localParticipant.id ?? "")
    }

    func onDisconnected(reason: DisconnectReason) {
        let cause = state.withLock { $0.room }?.disconnectError
        let failure: Failure? =
            switch reason {
            case .disconnected: nil
            case .destroyed where cause?.code == RoomError.Code.roomEnded.number:
                Failure(
                    code: RoomError.Code.roomEnded.number, "The server's administrator ended the room.", isFinal: true)
            case .destroyed:
                Failure(
                    code: RoomError.Code.roomReleased.number,
                    "The server stopped. Start it and join the room again, or wait for it with --forever.")
            case .kicked:
                Failure(
                    code: RoomError.Code.roomReleased.number,
                    "The server's administrator removed this participant from the room.", isFinal: true)
            }
        state.withLock { state in
            state.hasEnded = true
            state.isRoomOver = true
            state.failure = state.failure ?? failure
        }
        release()
    }

    /// The codes of problems after which publishing goes on: the server is asked for a token again, ICE is restarted again, a room
    /// takes the streams later, and the others are about received streams and recordings.
    private static let passing: Set = [1101, 1432, 1434, 1435, 1447, 1448, 1452, 2014, 2022, 2023]

    func onError(code: Int, message: String, isCritical: Bool) {
        // The command has said that at its start.
        if message.contains(MediaRequest.noMicrophone), !isCritical { return }
        let failure = Failure(code: code, message)
        let endsOnProblem = endsOnProblem && !Self.passing.contains(code)
        guard isCritical || endsOnProblem else { return Console.error("\(failure)") }
        state.withLock { state in
            state.failure = state.failure ?? failure
            if isCritical { state.isRoomOver = true }
            if endsOnProblem { state.hasEnded = true }
        }
        if endsOnProblem { release() }
    }

    func onReconnecting(attempt: Int, error: ConnectLiveError) {
        let isMedia = RoomError.Code(error.code).isOfMediaConnection
        let news = state.withLock { $0.news.lost(because: error.errorDescription ?? "", isMedia: isMedia) }
        if let news { report(news) }
    }

    func onReconnected(wasResumed: Bool, seconds: Double) {
        let participant = wasResumed ? nil : state.withLock { $0.room }?.localParticipant.id
        if let participant { changes.nameParticipant(participant) }
        report(state.withLock { $0.news.back(after: seconds, as: participant) })
    }

    func onMediaInterrupted(isOutgoing: Bool, seconds: Double) {
        let text = state.withLock { state in
            let plain = MediaInterruption(isOutgoing: isOutgoing, seconds: seconds)
            return state.news.interrupted(state.room?.mediaWays.interruption ?? plain)
        }
        if let text { report(text) }
    }

    func onMediaRestored(seconds: Double) {
        let text = state.withLock { $0.news.restored(after: seconds, way: $0.room?.mediaWays.restored) }
        if let text { report(text) }
    }

    /// Says it, and keeps it for `connectlive why`.
    private func report(_ text: String) {
        say(text)
        changes.note(text)
    }

    func onParticipantEntered(remoteParticipant: any RemoteParticipant) {}

    func onParticipantLeft(remoteParticipant: any RemoteParticipant) { onLeft(remoteParticipant) }

    func onRemoteVideoPublished(remoteParticipant: any RemoteParticipant, remoteVideo: any RemoteVideo) {
        onVideo(remoteParticipant, remoteVideo)
    }

    func onRemoteVideoChanged(remoteParticipant: any RemoteParticipant, remoteVideo: any RemoteVideo) {
        onVideoChanged(remoteParticipant, remoteVideo)
    }

    func onLocalVideoChanged(localMedia: (any LocalMedia)?, event: LocalDeviceEvent) { print(event, of: "camera") }

    func onLocalAudioChanged(localMedia: (any LocalMedia)?, event: LocalDeviceEvent) { print(event, of: "microphone") }

    func onLoudspeakerChanged(event: LocalDeviceEvent) {
        if case .waiting = event, !Devices.hasSoundSystem { return Console.line(Self.noSound) }
        print(event, of: "loudspeaker", meanwhile: "audio is not heard")
    }

    /// The usual case of a machine without a screen, too.
    static let noSound = "There is no sound system, so no audio is heard."

    private func print(
        _ event: LocalDeviceEvent, of device: String, meanwhile: String = "the stream continues without it"
    ) {
        switch event {
        case .waiting(let error), .lost(let error):
            Console.error("The \(device) is away, and \(meanwhile): \(error.errorDescription ?? "")")
        case .returned: Console.error("The \(device) is back.")
        case .failedOver(let other): Console.error("\(other) has taken over for the \(device).")
        }
    }
}
