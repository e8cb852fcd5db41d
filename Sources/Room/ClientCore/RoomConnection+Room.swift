internal import RTP
internal import RoomProtocol

/// The other participants, and the streams that the server assigns to receivers.
extension RoomConnection {
    func entered(_ info: ParticipantInfo) {
        guard info.id != participant, !others.contains(where: { $0.id == info.id }) else { return }
        others.append(info)
        if state == .connected { onEvent(.participantEntered(info)) }
    }

    func left(_ id: String) {
        guard let index = others.firstIndex(where: { $0.id == id }) else { return }
        let info = others.remove(at: index)
        for stream in info.streams { ended(stream.id) }
        if state == .connected { onEvent(.participantLeft(info)) }
    }

    private func ended(_ id: Int) {
        removeSubscription(id, .failure(Self.streamEnded(id)))
        down?.release(stream: id)
        for (mid, stream) in heard where stream.id == id { unheard(mid) }
    }

    func published(_ body: StreamPublished) {
        guard let index = others.firstIndex(where: { $0.id == body.participant }),
            !others[index].streams.contains(where: { $0.id == body.stream.id })
        else { return }
        others[index].streams.append(body.stream)
        if state == .connected { onEvent(.streamPublished(participant: body.participant, body.stream)) }
    }

    func unpublished(_ body: StreamUnpublished) {
        guard let index = others.firstIndex(where: { $0.id == body.participant }),
            let place = others[index].streams.firstIndex(where: { $0.id == body.stream })
        else { return }
        let info = others[index].streams.remove(at: place)
        ended(info.id)
        if state == .connected { onEvent(.streamUnpublished(participant: body.participant, info)) }
    }

    func changed(_ body: StreamChanged) {
        guard let index = others.firstIndex(where: { $0.id == body.participant }),
            let place = others[index].streams.firstIndex(where: { $0.id == body.stream })
        else { return }
        let change = body.change.differing(from: others[index].streams[place].properties)
        guard !change.isEmpty else { return }
        others[index].streams[place].apply(change)
        if state == .connected {
            onEvent(.streamChanged(participant: body.participant, others[index].streams[place], change))
        }
    }

    func qualityChanged(_ body: StreamQuality) {
        guard subscriptions[body.stream] != nil, let (participant, _) = stream(body.stream) else { return }
        let limitation = RoomStatistics.Received.Limitation(body)
        guard subscriptions[body.stream]?.limitation != limitation else { return }
        subscriptions[body.stream]?.limitation = limitation
        if state == .connected { onEvent(.qualityChanged(participant: participant, stream: body.stream, limitation)) }
    }

    /// Reports the participants and streams that are no longer among the present ones.
    func removeOthers(without present: [ParticipantInfo]) {
        for former in others {
            guard let info = present.first(where: { $0.id == former.id }) else {
                left(former.id)
                continue
            }
            for stream in former.streams where !info.streams.contains(where: { $0.id == stream.id }) {
                unpublished(StreamUnpublished(participant: info.id, stream: stream.id))
            }
        }
    }

    /// Reports the present participants and streams that are new or have changed, each as if it came now.
    func addOthers(_ present: [ParticipantInfo]) {
        for info in present {
            entered(ParticipantInfo(id: info.id, streams: []))
            for stream in info.streams {
                guard self.stream(stream.id) != nil else {
                    published(StreamPublished(participant: info.id, stream: stream))
                    continue
                }
                changed(
                    StreamChanged(
                        participant: info.id, stream: stream.id, state: stream.state, change: stream.properties))
            }
        }
    }

    func stream(_ id: Int) -> (participant: String, info: StreamInfo)? {
        for other in others {
            if let info = other.streams.first(where: { $0.id == id }) { return (other.id, info) }
        }
        return nil
    }

    func assigned(_ body: ReceiverAssigned) {
        guard body.media == .audio else { return assignedVideo(body) }
        guard let id = body.stream, let participant = body.participant else { return unheard(body.mid) }
        guard !heard.contains(where: { $0.mid == body.mid && $0.stream.id == id }) else { return }
        unheard(body.mid)
        guard let makeSink = environment.sound(participant, id) else { return }
        let stream = AssignedStream(id: id, participant: participant, codec: .opus, makeSink: makeSink)
        guard assign(stream, to: body.mid, from: body.firstSequenceNumber) else { return unknownReceiver(body.mid, id) }
        heard.append((body.mid, stream))
        if state == .connected { onEvent(.audioHeard(participant: participant, stream: id)) }
    }

    func unheard(_ mid: String) {
        guard let index = heard.firstIndex(where: { $0.mid == mid }) else { return }
        let stream = heard.remove(at: index).stream
        down?.release(mid: mid)
        if state == .connected { onEvent(.audioUnheard(participant: stream.participant, stream: stream.id)) }
    }

    /// The server moves or ends a subscription.
    private func assignedVideo(_ body: ReceiverAssigned) {
        guard let id = body.stream else {
            down?.release(mid: body.mid)
            return
        }
        guard subscriptions[id] != nil else { return }
        if !assignVideo(id, to: body.mid, from: body.firstSequenceNumber) { unknownReceiver(body.mid, id) }
    }

    private func unknownReceiver(_ mid: String, _ stream: Int) {
        guard self.stream(stream) != nil else { return }
        onEvent(
            .problem(
                RoomError(
                    .receiverUnknown,
                    "The server assigned stream \(stream) to the receiver '\(mid.prefix(32))', which does not exist or cannot "
                        + "carry its codec. Check its version.")))
    }

    func assignVideo(_ id: Int, to mid: String, from first: UInt16?) -> Bool {
        guard let (participant, info) = stream(id), let codec = Codec(rawValue: info.codec),
            let makeSink = subscriptions[id]?.makeSink
        else { return false }
        let stream = AssignedStream(id: id, participant: participant, codec: codec, makeSink: makeSink)
        return assign(stream, to: mid, from: first)
    }

    /// `first` is the stream's first sequence number on its receiver. Older servers do not send it.
    private func assign(_ stream: AssignedStream, to mid: String, from first: UInt16?) -> Bool {
        down?.assign(stream, to: mid, from: first.map { SequenceNumber($0) }) ?? false
    }
}
