internal import RoomClient
internal import Synchronization

/// The local participant of a room. Callable on any thread.
public protocol LocalParticipant: AnyObject, Sendable {
    /// The server's id. Empty before the room is connected.
    var id: String { get }
    /// The published videos, by stream id.
    var videos: [Int: any LocalVideo] { get }
    /// The published audios, by stream id.
    var audios: [Int: any LocalAudio] { get }
}

final class OwnParticipant: LocalParticipant {
    private struct State {
        var id = ""
        var videos: [Int: any LocalVideo] = [:]
        var audios: [Int: any LocalAudio] = [:]
    }

    private let state = Mutex(State())

    var id: String { state.withLock { $0.id } }
    var videos: [Int: any LocalVideo] { state.withLock { $0.videos } }
    var audios: [Int: any LocalAudio] { state.withLock { $0.audios } }

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
