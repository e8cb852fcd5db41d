internal import RoomClient
internal import Synchronization

/// The local participant of a room.
public final class LocalParticipant: Sendable {
    private struct State {
        var id = ""
        var videos: [Int: LocalVideo] = [:]
        var audios: [Int: LocalAudio] = [:]
    }

    private let state = Mutex(State())

    init() {}

    /// The server's id. Empty before the room is connected.
    public var id: String { state.withLock { $0.id } }
    /// The published videos, by stream id.
    public var videos: [Int: LocalVideo] { state.withLock { $0.videos } }
    public var audios: [Int: LocalAudio] { state.withLock { $0.audios } }

    func entered(as id: String) { state.withLock { $0.id = id } }

    func published(_ media: LocalMediaSession, as streams: [PublishedStream]) {
        let owner = id
        for stream in streams {
            if stream.isVideo {
                media.localVideo.published(id: stream.id, owner: owner)
                state.withLock { $0.videos[stream.id] = media.localVideo }
            } else {
                media.localAudio.published(id: stream.id, owner: owner)
                state.withLock { $0.audios[stream.id] = media.localAudio }
            }
        }
    }

    func unpublished(_ media: LocalMediaSession) {
        state.withLock { state in
            state.videos = state.videos.filter { $0.value !== media.localVideo }
            state.audios = state.audios.filter { $0.value !== media.localAudio }
        }
        media.forget(id)
    }
}
