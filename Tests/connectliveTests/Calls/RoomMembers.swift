import ClientCore
import ConnectLiveSDK
import Foundation
import MediaGraph
import PeerIO
import PeerLoop
import RTP
import RoomClient
import RoomProtocol
import Synchronization
import TestFixtures
import TestSupport
import Testing

/// An application with the SDK, which passes on frames with codes.
final class ApplicationMember: RoomMember, RoomDelegate, Sendable {
    private struct State {
        var room: (any Room)?
        var media: (any LocalMedia)?
        var camera: CodeCamera?
        var sound: (any LocalMedia)?
        var frames: [Int: Int] = [:]
        /// A room keeps no views.
        var views: [Int: View] = [:]
    }

    // @unchecked: a view is set up once, and then only attached and detached.
    private final class View: @unchecked Sendable {
        let view = FrameView()
    }

    let id: Int
    private let problems: Collected<String>
    private let state = Mutex(State())

    init(_ id: Int, _ films: FilmShelf, _ problems: Collected<String>) {
        self.id = id
        self.problems = problems
        let room = ConnectLive.createRoom(config: Caller.config, delegate: self)
        state.withLock { $0.room = room }
    }

    private var room: any Room {
        guard let room = state.withLock({ $0.room }) else { preconditionFailure("a member has a room") }
        return room
    }

    var knownVideos: [(stream: Int, publisher: Int)] {
        room.remoteParticipants.values.flatMap(\.videos.values).map { ($0.id, Int($0.extraValue) ?? 0) }
            .sorted { $0.0 < $1.0 }
    }

    func frames(of stream: Int) -> Int { state.withLock { $0.frames[stream] ?? 0 } }

    func join() async throws {
        room.connect(roomId: "whole")
        try await requireEventually("the room of \(id)") { room.isConnected }
    }

    func leave() async throws {
        room.disconnect()
        try await requireEventually("the end of the room") { !room.isConnected }
        await state.withLock { $0.sound }?.stop()
    }

    func publish() async throws {
        var config = Caller.config
        config.mediaOptions.source = .bypass
        config.mediaOptions.hasAudio = false
        config.mediaOptions.videoDegradation = .detail
        config.mediaOptions.videoExtraValue = "\(id)"
        (config.mediaOptions.videoWidth, config.mediaOptions.videoHeight) = (160, 96)
        let media = try #require(ConnectLive.createLocalMedia(config: config))
        let source = try #require(media.videoSource)
        let camera = CodeCamera(id) { frame in
            source.didCapturePixelBuffer(frame, time: .now, orientation: .landscapeRight)
        }
        state.withLock { ($0.media, $0.camera) = (media, camera) }
        try room.publish(media)
        try await requireEventually("the publication") { !room.localParticipant.videos.isEmpty }
    }

    func unpublish() async throws {
        let (media, camera) = state.withLock { state in
            defer { (state.media, state.camera) = (nil, nil) }
            return (state.media, state.camera)
        }
        guard let media else { return }
        room.unpublish(media)
        try await requireEventually("the end of the publication") { room.localParticipant.videos.isEmpty }
        camera?.end()
        await media.stop()
    }

    func speak() async throws {
        var config = Caller.config
        config.mediaOptions.usesTestPattern = true
        config.mediaOptions.hasVideo = false
        let media = try #require(ConnectLive.createLocalMedia(config: config))
        state.withLock { $0.sound = media }
        try room.publish(media)
        try await requireEventually("the audio") { !room.localParticipant.audios.isEmpty }
    }

    func heard() async -> [String: Double] {
        let streams = await room.statistics().received.filter { !$0.isVideo && !$0.hasEnded }
        return Dictionary(streams.map { ($0.participantId, $0.audioSecondsAboveSilence) }) { $0 + $1 }
    }

    private func video(_ stream: Int) -> (any RemoteVideo)? {
        room.remoteParticipants.values.flatMap(\.videos.values).first { $0.id == stream }
    }

    func subscribe(_ stream: Int, of publisher: Int) async throws {
        guard let video = video(stream) else { return }
        let view = View()
        view.view.onFrame = { [weak self] in self?.take($0, of: stream, publisher) }
        state.withLock { $0.views[stream] = view }
        video.attach(view.view)
        try await room.subscribe(videoId: stream).get()
    }

    private func take(_ frame: VideoFrame, of stream: Int, _ publisher: Int) {
        let number = frame.barCode
        guard publisher == 0 || number.flatMap(FrameCode.read) != nil else { return }
        state.withLock { $0.frames[stream, default: 0] += 1 }
        if let problem = number.flatMap({ FrameCode.problem($0, of: publisher, at: FrameCode.tick) }) {
            problems.append("\(id), stream \(stream): \(problem)")
        }
    }

    func unsubscribe(_ stream: Int) async throws {
        guard let video = video(stream) else { return }
        video.detach()
        state.withLock { $0.views[stream] = nil }
        try await room.unsubscribe(videoId: stream).get()
    }

    func setPaused(_ isPaused: Bool, _ stream: Int) async throws { try await video(stream)?.setPausedAsync(isPaused) }

    func setProfile(_ profile: StreamView.Profile, _ stream: Int) async throws {
        // Of all, only the browser sends layers.
        guard let video = video(stream), video.extraValue.isEmpty else { return }
        let type: VideoProfileType =
            switch profile {
            case .low: .low
            case .mid: .mid
            case .high: .high
            }
        try await video.setProfileAsync(type)
    }

    func onConnected(participantIds: [String]) {}
    func onDisconnected(reason: DisconnectReason) {}
    func onError(code: Int, message: String, isCritical: Bool) {
        problems.append("\(id) got error \(code): \(message)")
    }
    func onParticipantEntered(remoteParticipant: any RemoteParticipant) {}
    func onParticipantLeft(remoteParticipant: any RemoteParticipant) {}
}

/// The camera of an application, which passes on a frame with its code in each tick.
private final class CodeCamera: Sendable {
    // Sources of Dispatch may be used from every thread.
    private nonisolated(unsafe) let timer: any DispatchSourceTimer

    init(_ id: Int, _ take: @escaping @Sendable (PixelBuffer) -> Void) {
        timer = DispatchSource.makeTimerSource(queue: DispatchQueue(label: "camera \(id)"))
        timer.setEventHandler {
            guard let frame = PixelBuffer(width: 160, height: 96) else { return }
            frame.draw {
                $0.fill(luma: 90)
                $0.draw(barCode: FrameCode.number(of: id, at: FrameCode.tick))
            }
            take(frame)
        }
        timer.schedule(deadline: .now(), repeating: .nanoseconds(Int(FrameCode.tickLength)))
        timer.resume()
    }

    deinit { end() }

    func end() { timer.cancel() }
}

/// A client that sends and checks packets without a codec.
final class PacketMember: RoomMember, Sendable {
    private struct State {
        var engine: RoomEngine?
        var videos: [Int: Int] = [:]
        /// The publisher of each audio.
        var audios: [Int: Int] = [:]
        var isConnected = false
        var frames: [Int: Int] = [:]
        /// By participant.
        var packetsHeard: [String: Double] = [:]
        var views: [Int: StreamView] = [:]
        var published: (stream: Int, track: FilmTrack)?
        var sound: SoundTrack?
    }

    let id: Int
    private let films: FilmShelf
    private let problems: Collected<String>
    private let (server, key): (String, [String: String])
    private let state = Mutex(State())

    init(_ id: Int, _ films: FilmShelf, _ problems: Collected<String>, server: String, _ key: [String: String]) throws {
        (self.id, self.films, self.problems, self.server, self.key) = (id, films, problems, server, key)
    }

    private var engine: RoomEngine {
        guard let engine = state.withLock({ $0.engine }) else { preconditionFailure("a member has joined") }
        return engine
    }

    var knownVideos: [(stream: Int, publisher: Int)] {
        state.withLock { $0.videos }.map { ($0.key, $0.value) }.sorted { $0.0 < $1.0 }
    }

    func frames(of stream: Int) -> Int { state.withLock { $0.frames[stream] ?? 0 } }

    func join() async throws {
        let location = try ServerLocator(
            server: server, serviceId: key["CONNECTLIVE_SERVICE_ID"], serviceSecret: key["CONNECTLIVE_SERVICE_SECRET"]
        ).locate()
        let token = try await AccessToken.signIn(at: location).token
        var options = RoomOptions()
        options.sound = { [weak self] participant, stream in
            self.map { member in
                .packets(SoundCheck { [weak member] in member?.hear($0, of: stream, from: participant) })
            }
        }
        let engine = RoomEngine(options: options) { [weak self] in self?.handle($0) }
        state.withLock { $0.engine = engine }
        engine.connect(to: try RoomName("whole"), with: token)
        try await requireEventually("the room of \(id)") { state.withLock { $0.isConnected } }
    }

    func leave() async throws {
        engine.disconnect()
        try await requireEventually("the end of the room") { state.withLock { !$0.isConnected } }
    }

    func speak() async throws {
        let engine = engine
        let track = SoundTrack(id, films, loop: engine.loop)
        _ = try await engine.publish([Publication(track, StreamAttributes(extraValue: "\(id)"))])
        state.withLock { $0.sound = track }
        engine.post { _ in track.begin() }
    }

    func heard() async -> [String: Double] { state.withLock { $0.packetsHeard } }

    private func hear(_ packet: [UInt8], of stream: Int, from participant: String) {
        let publisher = state.withLock { state in
            state.packetsHeard[participant, default: 0] += 1
            return state.audios[stream]
        }
        if let problem = films.problem(withSound: packet, of: publisher) { problems.append("\(id): \(problem)") }
    }

    func publish() async throws {
        let engine = engine
        let track = FilmTrack(id, films, loop: engine.loop)
        let streams = try await engine.publish([Publication(track, StreamAttributes(extraValue: "\(id)"))])
        let stream = try #require(streams.first?.id)
        state.withLock { $0.published = (stream, track) }
        engine.post { _ in track.begin() }
    }

    func unpublish() async throws {
        guard let (stream, track) = state.withLock({ $0.published }) else { return }
        state.withLock { $0.published = nil }
        let engine = engine
        engine.post { _ in track.end() }
        try await result { engine.unpublish([stream], then: $0) }
    }

    func subscribe(_ stream: Int, of publisher: Int) async throws {
        let check = FilmCheck(films, of: publisher) { [weak self] problem in
            guard let self else { return }
            state.withLock { $0.frames[stream, default: 0] += 1 }
            if let problem { problems.append("\(id), stream \(stream): \(problem)") }
        }
        let engine = engine
        state.withLock { $0.views[stream] = StreamView() }
        try await result { engine.subscribe(stream, to: .packets(check), then: $0) }
    }

    func unsubscribe(_ stream: Int) async throws {
        let engine = engine
        try await result { engine.unsubscribe(stream, then: $0) }
    }

    func setPaused(_ isPaused: Bool, _ stream: Int) async throws {
        try await change(stream) { $0.isPaused = isPaused }
    }

    func setProfile(_ profile: StreamView.Profile, _ stream: Int) async throws {
        try await change(stream) { $0.profile = profile }
    }

    private func change(_ stream: Int, _ body: @Sendable (inout StreamView) -> Void) async throws {
        let view = state.withLock { state in
            body(&state.views[stream, default: StreamView()])
            return state.views[stream] ?? StreamView()
        }
        let engine = engine
        try await result { engine.setView(view, of: stream, then: $0) }
    }

    private func result(_ call: (@escaping @Sendable (Result<Void, RoomError>) -> Void) -> Void) async throws {
        try await withCheckedContinuation { done in call { done.resume(returning: $0) } }.get()
    }

    private func handle(_ event: RoomEvent) {
        func add(_ stream: StreamInfo) {
            let publisher = Int(stream.attributes.extraValue) ?? 0
            state.withLock {
                if stream.media == .video { $0.videos[stream.id] = publisher } else { $0.audios[stream.id] = publisher }
            }
        }
        switch event {
        case .connected(_, let others):
            for stream in others.flatMap(\.streams) { add(stream) }
            state.withLock { $0.isConnected = true }
        case .participantEntered(let other): for stream in other.streams { add(stream) }
        case .participantLeft(let other): for stream in other.streams { state.withLock { $0.videos[stream.id] = nil } }
        case .streamPublished(_, let stream): add(stream)
        case .streamUnpublished(_, let stream): state.withLock { $0.videos[stream.id] = nil }
        case .problem(let error): problems.append("\(id) got the error '\(error.message)'")
        case .ended(_, let error):
            state.withLock { $0.isConnected = false }
            if let error { problems.append("\(id) lost the room: \(error.message)") }
        default: break
        }
    }
}
