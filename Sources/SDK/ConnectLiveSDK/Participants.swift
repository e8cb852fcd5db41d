internal import RoomClient
internal import RoomProtocol
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

/// A cap of the quality in which a remote video is received, if its publisher sends several layers (simulcast).
public enum VideoProfileType: Sendable {
    /// No cap. The default.
    case empty
    /// The lowest layer.
    case low
    /// The middle layer.
    case mid
    /// The highest layer that the link carries.
    case high
}

/// A video of another participant. Subscribe to it to see it: `Room.subscribe(videoId:)`.
public final class RemoteVideo: Sendable {
    /// The stream id, unique in the room.
    public let id: Int
    /// The participant's id.
    public let owner: String
    /// The publisher's free text.
    public let extraValue: String
    private let subscribed = Mutex(false)
    /// The profile, and the way to tell the server another one while the video is subscribed.
    private let profile = Mutex<(type: VideoProfileType, tell: (@Sendable (StreamView) -> Void)?)>((.empty, nil))
    private let currentState: Mutex<StreamState>
    private let currentLimitation = Mutex<VideoLimitation?>(nil)
    let outlet = VideoOutlet(fanout: FrameFanout())

    init(_ info: StreamInfo, owner: String) {
        id = info.id
        extraValue = info.extraValue
        currentState = Mutex(StreamState(info.state))
        self.owner = owner
    }

    /// Whether the video shows its source. Changes with `onRemoteVideoChanged`.
    public var state: StreamState { currentState.withLock { $0 } }

    func set(_ state: StreamState) { currentState.withLock { $0 = state } }

    /// Why the video arrives worse than its publisher could send it. Nil if it does not, before the server has said so, and with
    /// an earlier server. Changes with `onRemoteVideoQualityChanged`.
    public var limitation: VideoLimitation? { currentLimitation.withLock { $0 } }

    func set(_ limitation: VideoLimitation?) { currentLimitation.withLock { $0 = limitation } }

    public var isSubscribed: Bool {
        get { subscribed.withLock { $0 } }
    }

    func setSubscribed(_ value: Bool) {
        subscribed.withLock { $0 = value }
        if !value { set(nil as VideoLimitation?) }
    }

    /// Caps the quality in which the video is received. Callable before and after the subscription, on any thread. Does nothing
    /// for a publisher that sends one layer.
    public func setProfile(_ type: VideoProfileType) {
        let tell = profile.withLock { profile in
            profile.type = type
            return profile.tell
        }
        tell?(view)
    }

    var view: StreamView {
        switch profile.withLock({ $0.type }) {
        case .empty: StreamView()
        case .low: StreamView(profile: .low)
        case .mid: StreamView(profile: .mid)
        case .high: StreamView(profile: .high)
        }
    }

    /// Sets how the server is told another view. Nil while the video is not subscribed.
    func onView(_ tell: (@Sendable (StreamView) -> Void)?) { profile.withLock { $0.tell = tell } }

    /// The id of the first attached view. Empty without one.
    public var viewId: String { outlet.viewIDs.first ?? "" }

    /// Shows the video in the view from its next frame on. The view is detached from any other video. The video may be
    /// subscribed earlier or later.
    public func attach(_ view: UIRenderView) { outlet.attach(view) }

    public func detach(_ view: UIRenderView) { outlet.detach(view.target) }

    /// Detaches all views.
    public func detach() { outlet.detachAll() }

    public func getExtraValue() -> String { extraValue }
}

/// Audio of another participant. It needs no subscription: the server fills four slots.
public final class RemoteAudio: Sendable {
    /// The stream id, unique in the room.
    public let id: Int
    /// The participant's id.
    public let owner: String
    /// The publisher's free text.
    public let extraValue: String
    private let currentState: Mutex<StreamState>

    init(_ info: StreamInfo, owner: String) {
        id = info.id
        extraValue = info.extraValue
        currentState = Mutex(StreamState(info.state))
        self.owner = owner
    }

    /// Whether the audio is that of its source. Changes with `onRemoteAudioChanged`.
    public var state: StreamState { currentState.withLock { $0 } }

    func set(_ state: StreamState) { currentState.withLock { $0 = state } }

    public func getExtraValue() -> String { extraValue }
}
