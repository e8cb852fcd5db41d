internal import RoomClient
internal import RoomProtocol
internal import Synchronization

/// Another participant of a room.
public final class RemoteParticipant: Sendable {
    private struct State {
        var videos: [Int: RemoteVideo] = [:]
        var audios: [Int: RemoteAudio] = [:]
    }

    public let id: String
    private let state = Mutex(State())

    init(_ info: ParticipantInfo) {
        id = info.id
        for stream in info.streams { _ = add(stream) }
    }

    /// The participant's videos, by stream id.
    public var videos: [Int: RemoteVideo] { state.withLock { $0.videos } }
    public var audios: [Int: RemoteAudio] { state.withLock { $0.audios } }

    enum Stream {
        case video(RemoteVideo)
        case audio(RemoteAudio)
    }

    func add(_ info: StreamInfo) -> Stream {
        switch info.media {
        case .video:
            let video = RemoteVideo(info, owner: id)
            state.withLock { $0.videos[info.id] = video }
            return .video(video)
        case .audio:
            let audio = RemoteAudio(info, owner: id)
            state.withLock { $0.audios[info.id] = audio }
            return .audio(audio)
        }
    }

    func remove(_ stream: Int) {
        state.withLock { state in
            state.videos[stream] = nil
            state.audios[stream] = nil
        }
    }

    func detachViews() {
        for video in videos.values { video.detach() }
    }
}

/// The other participants of a room, by id.
final class RemoteParticipants: Sendable {
    private let participants = Mutex<[String: RemoteParticipant]>([:])

    var all: [String: RemoteParticipant] { participants.withLock { $0 } }

    subscript(id: String) -> RemoteParticipant? { participants.withLock { $0[id] } }

    func add(_ participant: RemoteParticipant) { participants.withLock { $0[participant.id] = participant } }

    func remove(_ id: String) -> RemoteParticipant? { participants.withLock { $0.removeValue(forKey: id) } }
}
