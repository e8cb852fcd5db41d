internal import RoomClient
internal import RoomProtocol
internal import Synchronization

/// Another participant of a room. Callable on any thread.
public protocol RemoteParticipant: AnyObject, Sendable {
    /// The server's id, unique in the room. A participant that joins again has another one.
    var id: String { get }
    /// The participant's videos, by stream id.
    var videos: [Int: any RemoteVideo] { get }
    /// The participant's audios, by stream id.
    var audios: [Int: any RemoteAudio] { get }
}

extension RemoteParticipant {
    /// Whether one of the participant's videos is subscribed.
    public var isVideoSubscribed: Bool { videos.values.contains { $0.isSubscribed } }
}

final class OtherParticipant: RemoteParticipant {
    private struct State {
        var videos: [Int: RemoteVideoStream] = [:]
        var audios: [Int: RemoteAudioStream] = [:]
    }

    let id: String
    private let state = Mutex(State())

    private let report: @Sendable (RoomError) -> Void
    private let setVolume: @Sendable (Int, RemoteAudioStream.Volume) -> Void

    /// - Parameters:
    ///   - report: called with errors of calls that do not throw
    ///   - setVolume: called with an audio stream and how loud to play it
    init(
        _ info: ParticipantInfo, report: @escaping @Sendable (RoomError) -> Void,
        setVolume: @escaping @Sendable (Int, RemoteAudioStream.Volume) -> Void
    ) {
        id = info.id
        self.report = report
        self.setVolume = setVolume
        for stream in info.streams { _ = add(stream) }
    }

    var videos: [Int: any RemoteVideo] { videoStreams }
    var audios: [Int: any RemoteAudio] { state.withLock { $0.audios } }
    var videoStreams: [Int: RemoteVideoStream] { state.withLock { $0.videos } }

    enum Stream {
        case video(RemoteVideoStream)
        case audio(RemoteAudioStream)
    }

    /// A stream of the participant. Nil if there is none with this id.
    subscript(stream: Int) -> Stream? {
        state.withLock { state in
            state.videos[stream].map { .video($0) } ?? state.audios[stream].map { .audio($0) }
        }
    }

    func add(_ info: StreamInfo) -> Stream {
        switch info.media {
        case .video:
            let video = RemoteVideoStream(info, owner: id, report: report)
            state.withLock { $0.videos[info.id] = video }
            return .video(video)
        case .audio:
            let audio = RemoteAudioStream(info, owner: id, setVolume: setVolume)
            state.withLock { $0.audios[info.id] = audio }
            return .audio(audio)
        }
    }

    func remove(_ stream: Int) {
        let audio = state.withLock { state in
            state.videos[stream] = nil
            return state.audios.removeValue(forKey: stream)
        }
        audio?.end()
    }

    /// The participant has left.
    func endAudios() {
        for audio in state.withLock({ $0.audios.values }) { audio.end() }
    }

    func detachViews() {
        for video in videoStreams.values { video.detach() }
    }
}

/// The other participants of a room, by id.
final class RemoteParticipants: Sendable {
    private let participants = Mutex<[String: OtherParticipant]>([:])

    var all: [String: OtherParticipant] { participants.withLock { $0 } }

    subscript(id: String) -> OtherParticipant? { participants.withLock { $0[id] } }

    func add(_ participant: OtherParticipant) { participants.withLock { $0[participant.id] = participant } }

    func remove(_ id: String) -> OtherParticipant? { participants.withLock { $0.removeValue(forKey: id) } }
}
