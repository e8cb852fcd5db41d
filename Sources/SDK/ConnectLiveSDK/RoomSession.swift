internal import Foundation
internal import MediaNodes
package import RoomClient
internal import RoomProtocol
internal import Synchronization

/// The implementation of `Room`. It keeps the application's participants and turns the engine's events into callbacks.
/// Events arrive on the engine's loop, calls on any thread.
///
/// Participants and their streams change with their event's callback. If they changed before, an application that
/// subscribes to the videos in `remoteParticipants` and to announced ones would subscribe to one twice.
final class RoomSession: Room {
    private struct State {
        var status = RoomStatus.initialized
        /// The stream and the participant of each audio slot in use.
        var heard: [(stream: Int, participant: String)] = []
        var publications: [Publication] = []
    }

    /// Local media of this room.
    private struct Publication {
        enum Phase: Equatable {
            /// Until the room is connected.
            case waiting
            case publishing
            /// The application ended it before it was published.
            case cancelled
            case published([PublishedStream])
        }

        var media: LocalMediaSession
        var phase: Phase
    }

    let localParticipant = LocalParticipant()
    private let state = Mutex(State())
    private let remotes = RemoteParticipants()
    private let delegate: DelegateQueue
    private let token: RoomEngine.TokenSource
    /// Set once, directly after `init`.
    private let engineBox = Mutex<RoomEngine?>(nil)

    /// - Parameter token: provides the token for entering the room
    init(
        options: RoomOptions, delegate: any RoomDelegate,
        token: @escaping RoomEngine.TokenSource = { refused async throws(RoomError) in
            try await Authentication.shared.token(refused: refused)
        }
    ) {
        self.delegate = DelegateQueue(delegate)
        self.token = token
        let engine = RoomEngine(options: options) { [weak self] event in self?.handle(event) }
        engineBox.withLock { $0 = engine }
    }

    deinit {
        endPublications()
        engineBox.withLock { $0 }?.disconnect()
    }

    var engine: RoomEngine {
        guard let engine = engineBox.withLock({ $0 }) else { preconditionFailure("a room without an engine") }
        return engine
    }

    // MARK: - State

    var status: RoomStatus { state.withLock { $0.status } }
    var isConnected: Bool { status == .connected }
    var remoteParticipants: [String: RemoteParticipant] { remotes.all }

    func getVideoOccupants() -> [String] {
        remoteParticipants.filter { $0.value.videos.values.contains(where: \.isSubscribed) }.keys.sorted()
    }

    func getAudioOccupants() -> [String] {
        var seen: Set<String> = []
        return state.withLock { $0.heard }.map(\.participant).filter { seen.insert($0).inserted }
    }

    // MARK: - Connecting

    func connect(roomId: String) {
        let isFirst = state.withLock { state in
            guard state.status == .initialized else { return false }
            state.status = .connecting
            return true
        }
        guard isFirst else {
            return delegate.answer(
                RoomError(.roomReleased, "This room was connected before. Create another Room to join again."))
        }
        let name: RoomName
        do throws(RoomError) {
            name = try RoomName(roomId)
        } catch {
            return end(.disconnected, error)
        }
        engine.connect(to: name, token: token)
    }

    func disconnect() {
        delegate.leave()
        let wasIdle = state.withLock { state -> Bool in
            switch state.status {
            case .disconnecting, .disconnected: return false
            case .initialized, .connecting, .connected:
                let wasIdle = state.status == .initialized
                state.status = .disconnecting
                return wasIdle
            }
        }
        // A working engine ends and reports it. An idle one reports nothing.
        if wasIdle { end(.disconnected, nil) } else { engine.disconnect() }
    }

    // MARK: - Publishing

    func publish(_ media: (any LocalMedia)?) throws {
        guard let media = media as? LocalMediaSession else {
            throw ConnectLiveError(
                RoomError(
                    .init(1311),
                    "There is no local media to publish. Create some with createLocalMedia(config:)."))
        }
        let (isConnected, isThere) = state.withLock { state -> (Bool?, Bool) in
            guard !state.publications.contains(where: { $0.media === media }) else { return (nil, true) }
            switch state.status {
            case .initialized, .connecting:
                state.publications.append(Publication(media: media, phase: .waiting))
                return (false, false)
            case .connected:
                state.publications.append(Publication(media: media, phase: .publishing))
                return (true, false)
            case .disconnecting, .disconnected: return (nil, false)
            }
        }
        guard !isThere else {
            throw ConnectLiveError(
                RoomError(
                    .publishRefused,
                    "This room has the local media already. Unpublish it first, or create another one."))
        }
        guard let isConnected else {
            throw ConnectLiveError(
                RoomError(.roomReleased, "This room has ended. Create another Room to publish in."))
        }
        if isConnected { publishNow(media) }
    }

    private func publishNow(_ media: LocalMediaSession) {
        let engine = engine
        Task { [weak self] in
            do throws(RoomError) {
                let streams = try await engine.publish(
                    media.capture, videoExtraValue: media.localVideo.extraValue,
                    audioExtraValue: media.localAudio.extraValue,
                    isWanted: { [weak self] in self?.isPublishing(media) ?? false })
                self?.published(media, as: streams)
            } catch {
                self?.failed(media, error)
            }
        }
    }

    private func isPublishing(_ media: LocalMediaSession) -> Bool { phase(of: media) == .publishing }

    private func phase(of media: LocalMediaSession) -> Publication.Phase? {
        state.withLock { state in state.publications.first { $0.media === media }?.phase }
    }

    private func published(_ media: LocalMediaSession, as streams: [PublishedStream]) {
        // The room may have ended meanwhile.
        guard let phase = phase(of: media) else { return }
        localParticipant.published(media, as: streams)
        defer {
            // Or during this function.
            if self.phase(of: media) == nil, status != .connected { leave(media) }
        }
        if phase == .publishing {
            tell { $0?.onLocalMediaPublished(localMedia: media) }
            media.capture.observe(
                as: self, failed: { [weak self] error in self?.problem(error) },
                device: { [weak self, weak media] kind, event in self?.changed(kind, of: media, event) })
        }
        let isWanted = state.withLock { state -> Bool? in
            guard let index = state.publications.firstIndex(where: { $0.media === media }) else { return nil }
            guard state.publications[index].phase == .publishing else {
                state.publications.remove(at: index)
                return false
            }
            state.publications[index].phase = .published(streams)
            return true
        }
        if isWanted == false { unpublishNow(media, streams) }
    }

    private func changed(_ kind: StreamMedia, of media: LocalMediaSession?, _ event: MediaEvent) {
        guard let event = LocalDeviceEvent(event) else { return }
        tell { delegate in
            switch kind {
            case .video: delegate?.onLocalVideoChanged(localMedia: media, event: event)
            case .audio: delegate?.onLocalAudioChanged(localMedia: media, event: event)
            }
        }
    }

    private func failed(_ media: LocalMediaSession, _ error: RoomError) {
        let isCancelled = phase(of: media) == .cancelled
        forget(media)
        // The error that ended the room is reported only once.
        guard status == .connected else { return }
        if isCancelled { tell { $0?.onLocalMediaUnpublished(localMedia: media) } } else { problem(error) }
    }

    func unpublish(_ media: (any LocalMedia)?) throws {
        let found = state.withLock { state -> Publication? in
            guard let media = media as? LocalMediaSession,
                let index = state.publications.firstIndex(where: { $0.media === media })
            else { return nil }
            switch state.publications[index].phase {
            case .waiting, .published: return state.publications.remove(at: index)
            case .publishing:
                defer { state.publications[index].phase = .cancelled }
                return state.publications[index]
            case .cancelled: return nil
            }
        }
        switch found?.phase {
        case .waiting:
            tell { $0?.onLocalMediaUnpublished(localMedia: media) }
        case .published(let streams): if let found { unpublishNow(found.media, streams) }
        // It ends when the server has replied, or before it is announced.
        case .publishing: break
        case .cancelled, nil:
            throw ConnectLiveError(
                RoomError(.init(1311), "This room does not publish this local media. Publish it first."))
        }
    }

    /// Ends the streams of media that is not in the list any longer.
    private func unpublishNow(_ media: LocalMediaSession, _ streams: [PublishedStream]) {
        let engine = engine
        engine.unpublish(streams.map(\.id)) { [weak self] result in
            guard case .failure(let error) = result else {
                self?.unpublished(media)
                return
            }
            // After the end of the room, if that is the cause.
            engine.post { [weak self] _ in
                guard let self, keep(media, streams) else { return }
                problem(error)
            }
        }
    }

    private func unpublished(_ media: LocalMediaSession) {
        localParticipant.unpublished(media)
        media.capture.stopObserving(as: self)
        tell { $0?.onLocalMediaUnpublished(localMedia: media) }
    }

    /// Keeps media that could not be unpublished. Returns false if the room has ended.
    private func keep(_ media: LocalMediaSession, _ streams: [PublishedStream]) -> Bool {
        state.withLock { state in
            guard state.status == .connected else { return false }
            // It may be published again already.
            guard !state.publications.contains(where: { $0.media === media }) else { return true }
            state.publications.append(Publication(media: media, phase: .published(streams)))
            return true
        }
    }

    /// The room has ended: its media can go on in others.
    private func endPublications() {
        let media = state.withLock { state in
            defer { state.publications = [] }
            return state.publications.map(\.media)
        }
        for media in media { leave(media) }
    }

    private func leave(_ media: LocalMediaSession) {
        media.capture.stopObserving(as: self)
        media.forget(localParticipant.id)
    }

    private func forget(_ media: LocalMediaSession) {
        state.withLock { $0.publications.removeAll { $0.media === media } }
    }

    // MARK: - Subscribing

    func subscribe(videoId: Int, completion: @escaping (Result<Void, any Error>) -> Void) {
        let callback = Callback(completion)
        subscribe(videoId) { callback($0.sdkResult) }
    }

    func subscribe(videoId: Int) async -> Result<Void, any Error> {
        await withCheckedContinuation { continuation in
            subscribe(videoId) { continuation.resume(returning: $0.sdkResult) }
        }
    }

    func subscribe(videoIds: [Int]) {
        for id in videoIds { subscribe(id) { [weak self] in self?.reportFailure($0) } }
    }

    private func subscribe(_ id: Int, then: @escaping @Sendable (Result<Void, RoomError>) -> Void) {
        guard let video = video(id) else {
            return then(.failure(RoomError(.noSuchStream, "No participant publishes video \(id).")))
        }
        // A profile that is set from now on reaches the server behind the subscription.
        video.onView { [weak self] view in
            self?.engine.setView(view, of: id) { [weak self] result in self?.reportFailure(result) }
        }
        engine.subscribe(id, view: video.view, to: video.outlet.fanout) { result in
            switch result {
            case .success: video.setSubscribed(true)
            case .failure: if !video.isSubscribed { video.onView(nil) }
            }
            then(result)
        }
    }

    func unsubscribe(videoId: Int, completion: @escaping (Result<Void, any Error>) -> Void) {
        let callback = Callback(completion)
        unsubscribe(videoId) { callback($0.sdkResult) }
    }

    func unsubscribe(videoId: Int) async -> Result<Void, any Error> {
        await withCheckedContinuation { continuation in
            unsubscribe(videoId) { continuation.resume(returning: $0.sdkResult) }
        }
    }

    func unsubscribe(videoIds: [Int]) {
        for id in videoIds { unsubscribe(id) { [weak self] in self?.reportFailure($0) } }
    }

    private func unsubscribe(_ id: Int, then: @escaping @Sendable (Result<Void, RoomError>) -> Void) {
        let video = video(id)
        video?.onView(nil)
        engine.unsubscribe(id) { result in
            if case .success = result { video?.setSubscribed(false) }
            then(result)
        }
    }

    private func reportFailure(_ result: Result<Void, RoomError>) {
        if case .failure(let error) = result { problem(error) }
    }

    private func video(_ id: Int) -> RemoteVideo? {
        remoteParticipants.values.lazy.compactMap { $0.videos[id] }.first
    }

    // MARK: - Events

    /// An application that does not return from its callbacks loses the room, not single events.
    ///
    /// - Parameter event: called on the callback queue. The delegate is nil if the application has released it
    private func tell(_ event: @escaping @Sendable ((any RoomDelegate)?) -> Void) {
        guard !delegate.tell(event) else { return }
        engine.disconnect()
        end(
            .disconnected,
            RoomError(
                .roomReleased,
                "More than \(DelegateQueue.capacity) callbacks of this room are waiting, so the SDK left the room. "
                    + "Return from callbacks soon, or set ConnectLive.callbackQueue."))
    }

    private func problem(_ error: RoomError) { tell { $0?.onError(error, isCritical: false) } }

    private func handle(_ event: RoomEvent) {
        switch event {
        case .connecting(let percent): tell { $0?.onConnecting(progress: Float(percent)) }
        case .connected(let participant, let others): connected(as: participant, with: others)
        case .participantEntered(let info): entered(info)
        case .participantLeft(let info): left(info)
        case .streamPublished(let participant, let info): published(info, by: participant)
        case .streamUnpublished(let participant, let info): unpublished(info, by: participant)
        case .streamChanged(let participant, let info): changed(info, of: participant)
        case .qualityChanged(let participant, let stream, let limitation):
            let limitation = limitation.map { VideoLimitation($0) }
            tell { [remotes] delegate in
                guard let participant = remotes[participant], let video = participant.videos[stream] else { return }
                // Unsubscribed meanwhile.
                guard video.isSubscribed || limitation == nil else { return }
                video.set(limitation)
                delegate?.onRemoteVideoQualityChanged(remoteParticipant: participant, remoteVideo: video)
            }
        case .audioHeard(let participant, let stream): heard(stream, of: participant)
        case .audioUnheard(let participant, let stream): unheard(stream, of: participant)
        case .loudspeaker(let event): tell { $0?.onLoudspeakerChanged(event: LocalDeviceEvent(event)) }
        case .reconnecting(let attempt, let error):
            let error = ConnectLiveError(error)
            tell { $0?.onReconnecting(attempt: attempt, error: error) }
        case .mediaInterrupted(let isOutgoing, let seconds):
            tell { $0?.onMediaInterrupted(isOutgoing: isOutgoing, seconds: seconds) }
        case .mediaRestored(let seconds): tell { $0?.onMediaRestored(seconds: seconds) }
        case .republished(let participant, let streams): republished(streams, by: participant)
        case .reconnected(let back): reconnected(back)
        case .problem(let error): problem(error)
        // Only a failure is an error. The end of a room and the removal of a participant are not.
        case .ended(let reason, let error): end(.init(reason), reason == .disconnected ? error : nil)
        }
    }

    private func connected(as participant: String, with others: [ParticipantInfo]) {
        localParticipant.entered(as: participant)
        for info in others { remotes.add(RemoteParticipant(info)) }
        let waiting = state.withLock { state -> [LocalMediaSession] in
            guard state.status == .connecting else { return [] }
            state.status = .connected
            for index in state.publications.indices { state.publications[index].phase = .publishing }
            return state.publications.map(\.media)
        }
        let everyone = [participant] + others.map(\.id)
        tell { $0?.onConnected(participantIds: everyone) }
        for media in waiting { publishNow(media) }
    }

    private func republished(_ streams: [Int: Int], by participant: String) {
        let media = state.withLock { state -> [(LocalMediaSession, [PublishedStream])] in
            for index in state.publications.indices {
                guard case .published(let former) = state.publications[index].phase else { continue }
                let present = former.compactMap { old in
                    streams[old.id].map { PublishedStream(id: $0, isVideo: old.isVideo) }
                }
                state.publications[index].phase = .published(present)
            }
            return state.publications.compactMap { publication in
                guard case .published(let streams) = publication.phase else { return nil }
                return (publication.media, streams)
            }
        }
        for (media, _) in media { localParticipant.unpublished(media) }
        localParticipant.entered(as: participant)
        for (media, streams) in media { localParticipant.published(media, as: streams) }
    }

    private func reconnected(_ back: Return) {
        let wasResumed = back.kind == .resumed
        if case .rejoined(let participant) = back.kind { localParticipant.entered(as: participant) }
        let duration = back.seconds
        tell { $0?.onReconnected(wasResumed: wasResumed, seconds: duration) }
    }

    private func entered(_ info: ParticipantInfo) {
        let participant = RemoteParticipant(info)
        tell { [remotes] delegate in
            remotes.add(participant)
            delegate?.onParticipantEntered(remoteParticipant: participant)
        }
    }

    private func left(_ info: ParticipantInfo) {
        // One callback each, because the application may call `disconnect()` in any of them.
        for stream in info.streams.sorted(by: { $0.id < $1.id }) {
            tell { [remotes] delegate in remotes[info.id].map { Self.report(delegate, unpublished: stream, of: $0) } }
        }
        tell { [remotes] delegate in
            guard let participant = remotes.remove(info.id) else { return }
            delegate?.onParticipantLeft(remoteParticipant: participant)
            // Afterwards, so that the application can still find its views by their videos.
            participant.detachViews()
        }
    }

    private func published(_ info: StreamInfo, by id: String) {
        tell { [remotes] delegate in
            guard let participant = remotes[id] else { return }
            switch participant.add(info) {
            case .video(let video): delegate?.onRemoteVideoPublished(remoteParticipant: participant, remoteVideo: video)
            case .audio(let audio): delegate?.onRemoteAudioPublished(remoteParticipant: participant, remoteAudio: audio)
            }
        }
    }

    private static func report(
        _ delegate: (any RoomDelegate)?, unpublished stream: StreamInfo, of participant: RemoteParticipant
    ) {
        if let video = participant.videos[stream.id] {
            video.setSubscribed(false)
            delegate?.onRemoteVideoUnpublished(remoteParticipant: participant, remoteVideo: video)
        } else if let audio = participant.audios[stream.id] {
            delegate?.onRemoteAudioUnpublished(remoteParticipant: participant, remoteAudio: audio)
        }
    }

    private func unpublished(_ info: StreamInfo, by id: String) {
        tell { [remotes] delegate in
            guard let participant = remotes[id] else { return }
            let video = participant.videos[info.id]
            Self.report(delegate, unpublished: info, of: participant)
            participant.remove(info.id)
            // Afterwards, so that the application can still find its views by their videos.
            video?.detach()
        }
    }

    private func changed(_ info: StreamInfo, of id: String) {
        let state = StreamState(info.state)
        tell { [remotes] delegate in
            guard let participant = remotes[id] else { return }
            if let video = participant.videos[info.id] {
                video.set(state)
                delegate?.onRemoteVideoChanged(remoteParticipant: participant, remoteVideo: video)
            } else if let audio = participant.audios[info.id] {
                audio.set(state)
                delegate?.onRemoteAudioChanged(remoteParticipant: participant, remoteAudio: audio)
            }
        }
    }

    private func heard(_ stream: Int, of id: String) {
        state.withLock { $0.heard.append((stream, id)) }
        tell { [remotes] delegate in
            guard let participant = remotes[id], let audio = participant.audios[stream] else { return }
            delegate?.onRemoteAudioSubscribed(remoteParticipant: participant, remoteAudio: audio)
        }
    }

    private func unheard(_ stream: Int, of id: String) {
        state.withLock { $0.heard.removeAll { $0.stream == stream } }
        tell { [remotes] delegate in
            guard let participant = remotes[id], let audio = participant.audios[stream] else { return }
            delegate?.onRemoteAudioUnsubscribed(remoteParticipant: participant, remoteAudio: audio)
        }
    }

    private func end(_ reason: DisconnectReason, _ error: RoomError?) {
        let isFirst = state.withLock { state in
            guard state.status != .disconnected else { return false }
            state.status = .disconnected
            state.heard = []
            return true
        }
        guard isFirst else { return }
        endPublications()
        for participant in remoteParticipants.values {
            for video in participant.videos.values { video.setSubscribed(false) }
        }
        delegate.end(reason, error)
        // Events before the end may still add participants.
        CallbackQueue.shared.run { [remotes] in
            for participant in remotes.all.values { participant.detachViews() }
        }
    }
}

extension DisconnectReason {
    init(_ reason: Closing.Reason) {
        switch reason {
        case .disconnected: self = .disconnected
        case .destroyed: self = .destroyed
        case .kicked: self = .kicked
        }
    }
}

extension Result<Void, RoomError> {
    var sdkResult: Result<Void, any Error> { mapError(ConnectLiveError.init) }
}

extension Room {
    /// The connection's statistics.
    package func statistics() async -> RoomStatistics {
        guard let session = self as? RoomSession else { return RoomStatistics() }
        return await session.engine.statistics
    }
}

extension LocalMedia {
    /// The capture, for the command line, which checks sources and shows counters.
    package var localCapture: LocalCapture? { (self as? LocalMediaSession)?.capture }
}
