internal import MediaNodes
internal import RoomClient
internal import RoomProtocol
internal import Synchronization

extension RoomSession {
    /// Local media of this room.
    struct Publication {
        enum Phase: Equatable {
            /// Until the room is connected.
            case waiting
            case publishing
            /// The application ended it before it was published.
            case cancelled
            /// The same, and published it again since.
            case restarting
            case published([PublishedStream])
        }

        var media: LocalMediaSession
        var phase: Phase
        /// Whether the server is to record it.
        var isRecorded = false
        /// The devices whose absence at the start was reported as an error.
        var missing: Set<StreamMedia> = []
        /// The attributes that the server was told last.
        var told = LocalMediaSession.Attributes()
    }

    func publish(_ media: (any LocalMedia)?) throws { try publish(media, false) }

    func publish(_ media: (any LocalMedia)?, _ record: Bool) throws {
        guard let media = media as? LocalMediaSession else {
            throw ConnectLiveError(
                media == nil
                    ? RoomError(
                        .mediaMissing,
                        "There is no local media to publish. Create some with createLocalMedia(config:).")
                    : RoomError(
                        .foreignObject,
                        "The local media is an object of the application. Create it with createLocalMedia(config:)."))
        }
        let (isConnected, isThere) = state.withLock { state -> (Bool?, Bool) in
            guard ![.disconnecting, .disconnected].contains(state.status) else { return (nil, false) }
            if let index = state.publications.firstIndex(where: { $0.media === media }) {
                guard state.publications[index].phase == .cancelled else { return (nil, true) }
                // When the former publication has ended.
                (state.publications[index].phase, state.publications[index].isRecorded) = (.restarting, record)
                return (false, false)
            }
            let isConnected = state.status == .connected
            state.publications.append(
                Publication(media: media, phase: isConnected ? .publishing : .waiting, isRecorded: record))
            return (isConnected, false)
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

    func publishNow(_ media: LocalMediaSession) {
        let link = link
        if !media.capture.isVideoPublished { media.localVideo.applyHD() }
        media.observeSettings(
            as: self, changed: { [weak self, weak media] in if let media { self?.tellAttributes(of: media) } },
            refused: { [weak self] error in self?.problem(error) })
        let attributes = media.attributes
        let isRecorded = state.withLock { state in
            guard let index = state.publications.firstIndex(where: { $0.media === media }) else { return false }
            state.publications[index].told = attributes
            return state.publications[index].isRecorded
        }
        Task { [weak self] in
            do throws(RoomError) {
                let streams = try await link.publish(
                    media.capture, video: attributes.video, audio: attributes.audio, isRecorded: isRecorded,
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
        guard phase(of: media) != nil else { return }
        if !media.isScreenShare { own.published(media, as: streams) }
        var hasOverflowed = false
        var isAgain = false
        let isWanted = state.withLock { state -> Bool? in
            guard let index = state.publications.firstIndex(where: { $0.media === media }) else { return nil }
            guard state.publications[index].phase == .publishing else {
                isAgain = endCancelled(index, in: &state)
                return false
            }
            state.publications[index].phase = .published(streams)
            // Queued under the lock: the delegate can unpublish, and no event about the end of the media comes first.
            if !media.isScreenShare {
                hasOverflowed = !delegate.tell { $0.tell(.localMediaPublished(localMedia: media)) }
            }
            return true
        }
        switch isWanted {
        case false?:
            unpublishNow(Publication(media: media, phase: .published(streams)), streams)
            if isAgain { publishNow(media) }
        case true?:
            // A share reports its own end.
            if !media.isScreenShare {
                media.capture.observe(
                    as: self, failed: { [weak self] error in self?.problem(error) },
                    device: { [weak self, weak media] kind, event in self?.changed(kind, of: media, event) })
            }
            tellAttributes(of: media)
            if let missing = media.capture.missingMicrophone { problem(missing) }
            if hasOverflowed { overflowed() }
        case nil: break
        }
        // Unpublished during this function, or the room has ended.
        if phase(of: media) == nil {
            media.capture.stopObserving(as: self)
            if status != .connected { leave(media) }
        }
    }

    /// Tells the server the attributes that have changed since it was told.
    private func tellAttributes(of media: LocalMediaSession) {
        let link = link
        // Under the lock, so that the newest ones are told last.
        let isTaken = state.withLock { state in
            guard let index = state.publications.firstIndex(where: { $0.media === media }),
                case .published(let streams) = state.publications[index].phase
            else { return true }
            let (now, told) = (media.attributes, state.publications[index].told)
            for stream in streams {
                let change = stream.isVideo ? now.video.change(from: told.video) : now.audio.change(from: told.audio)
                guard change.isEmpty || link.setStream(stream.id, change) else { return false }
                if stream.isVideo {
                    state.publications[index].told.video = now.video
                } else {
                    state.publications[index].told.audio = now.audio
                }
            }
            return true
        }
        guard !isTaken else { return }
        problem(
            RoomError(
                .tooManyRequests,
                "The room has too many calls to tell the others an attribute now. It tells them with the next change."))
    }

    private func changed(_ kind: StreamMedia, of media: LocalMediaSession?, _ event: MediaEvent) {
        if let media { reportMissing(kind, of: media, event) }
        guard let event = LocalDeviceEvent(event) else { return }
        tell { audience in
            switch kind {
            case .video: audience.tell(.localVideoChanged(localMedia: media, event: event))
            case .audio: audience.tell(.localAudioChanged(localMedia: media, event: event))
            }
        }
    }

    /// Reports a device that is not there at the start, once until it has returned. Media that waits for its devices expects
    /// that.
    private func reportMissing(_ kind: StreamMedia, of media: LocalMediaSession, _ event: MediaEvent) {
        guard !media.capture.requested.waitsForDevices else { return }
        let error = state.withLock { state -> MediaError? in
            guard let index = state.publications.firstIndex(where: { $0.media === media }) else { return nil }
            switch event {
            case .deviceWaiting(_, let cause):
                return state.publications[index].missing.insert(kind).inserted ? cause : nil
            case .deviceReturned:
                state.publications[index].missing.remove(kind)
                return nil
            default: return nil
            }
        }
        if let error { problem(RoomError(error)) }
    }

    /// A publication that the application ended is over. Returns whether one that it has begun since takes its place.
    private func endCancelled(_ index: Int, in state: inout State) -> Bool {
        guard state.publications[index].phase == .restarting else {
            state.publications.remove(at: index)
            return false
        }
        state.publications[index].phase = .publishing
        return true
    }

    private func failed(_ media: LocalMediaSession, _ error: RoomError) {
        // Decided under the lock: a callback may publish the media again.
        let (isCancelled, isAgain) = state.withLock { state in
            guard let index = state.publications.firstIndex(where: { $0.media === media }),
                [.cancelled, .restarting].contains(state.publications[index].phase)
            else { return (false, false) }
            let isAgain = endCancelled(index, in: &state)
            if !isAgain { stopObserving(media) }
            return (true, isAgain)
        }
        if !isCancelled { forget(media) }
        // The error that ended the room is reported only once.
        guard status == .connected else { return }
        guard !isCancelled else {
            tellUnpublished(media)
            if isAgain { publishNow(media) }
            return
        }
        problem(error.failing(.publish))
        if media.isScreenShare { state.withLock { $0.share }?.fail(media) }
    }

    func unpublish(_ media: (any LocalMedia)?) {
        let found = state.withLock { state -> Publication? in
            guard let media = media as? LocalMediaSession,
                let index = state.publications.firstIndex(where: { $0.media === media })
            else { return nil }
            switch state.publications[index].phase {
            case .waiting, .published: return state.publications.remove(at: index)
            case .publishing, .restarting:
                defer { state.publications[index].phase = .cancelled }
                return state.publications[index]
            case .cancelled: return nil
            }
        }
        switch found?.phase {
        case .waiting:
            if let found { tellUnpublished(found.media) }
        case .published(let streams): if let found { unpublishNow(found, streams) }
        // It ends when the server has replied, or before it is announced.
        case .publishing, .restarting: break
        // The media of a screen share that was not published yet, or that the room has ended already.
        case nil where (media as? LocalMediaSession)?.isScreenShare == true: break
        case .cancelled, nil:
            problem(RoomError(.mediaMissing, "This room does not publish this local media. Publish it first."))
        }
    }

    /// Ends the streams of media that is not in the list any longer.
    private func unpublishNow(_ publication: Publication, _ streams: [PublishedStream]) {
        let link = link
        link.unpublish(streams.map(\.id)) { [weak self] result in
            guard case .failure(let error) = result else {
                self?.unpublished(publication.media)
                return
            }
            // After the end of the room, if that is the cause.
            link.afterEvents { [weak self] in
                guard let self, keep(publication) else { return }
                problem(error.failing(.unpublish))
                tellAttributes(of: publication.media)
            }
        }
    }

    private func unpublished(_ media: LocalMediaSession) {
        own.unpublished(media)
        // It may be published again already, and is observed for that.
        state.withLock { state in
            guard !state.publications.contains(where: { $0.media === media }) else { return }
            stopObserving(media)
        }
        tellUnpublished(media)
    }

    /// The application has not created the media of a screen share.
    private func tellUnpublished(_ media: LocalMediaSession) {
        if !media.isScreenShare { tell { $0.tell(.localMediaUnpublished(localMedia: media)) } }
    }

    /// Keeps media that could not be unpublished. Returns false if the room has ended.
    private func keep(_ publication: Publication) -> Bool {
        state.withLock { state in
            guard state.status == .connected else { return false }
            // Nobody could end the media of a screen share.
            guard !publication.media.isScreenShare else { return true }
            // It may be published again already.
            guard !state.publications.contains(where: { $0.media === publication.media }) else { return true }
            state.publications.append(publication)
            return true
        }
    }

    /// The room has ended: its media can go on in others.
    func endPublications() {
        let (media, share) = state.withLock { state in
            defer { state.publications = [] }
            return (state.publications.map(\.media), state.share)
        }
        share?.leave()
        for media in media { leave(media) }
    }

    private func leave(_ media: LocalMediaSession) {
        stopObserving(media)
        media.forget(own.id)
    }

    private func stopObserving(_ media: LocalMediaSession) {
        media.capture.stopObserving(as: self)
        media.stopObservingSettings(as: self)
    }

    private func forget(_ media: LocalMediaSession) {
        stopObserving(media)
        state.withLock { $0.publications.removeAll { $0.media === media } }
    }

    /// The connection has joined again, and published the same media: the ids of the streams have changed.
    func republished(_ streams: [Int: Int], by participant: String) {
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
        for (media, _) in media { own.unpublished(media) }
        own.entered(as: participant)
        // Nobody could end a screen share that the room does not take again.
        for (media, streams) in media where media.isScreenShare && streams.isEmpty {
            forget(media)
            state.withLock { $0.share }?.fail(media)
        }
        for (media, streams) in media where !media.isScreenShare { own.published(media, as: streams) }
    }
}
