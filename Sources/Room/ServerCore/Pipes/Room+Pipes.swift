internal import PeerLoop
internal import RTP
internal import RoomProtocol

/// The other parts of a room.
///
/// A part that begins sends `began` to the loops that may have other parts. Two parts that get to know each other
/// exchange their participants, and from then on all changes. Each passes on only its own participants and streams, so
/// nothing goes in circles. A part ends with its last participant.
extension Room {
    /// Makes this part known to the others. Call once, when it can receive.
    func begin() {
        for loop in links.others(name) where loop != part.loop { begin(on: loop) }
    }

    private func begin(on loop: Int) {
        guard !links.send(PipeBatch(room: name, from: part, to: nil, [.began]), loop) else { return }
        settings.loop.schedule(after: Pipe.pause) { [weak self] in
            if let self, !isEmpty { begin(on: loop) }
        }
    }

    /// Ends this part, which has no participant any longer.
    func end() {
        for pipe in pipes { pipe.close() }
        pipes = []
    }

    /// The packets that the streams of other parts hold here.
    var pipedMemory: PacketMemory {
        pipes.flatMap(\.guests).flatMap(\.streams).reduce(into: PacketMemory()) { $0 += $1.memory }
    }

    /// Sends a message to all other parts.
    func pass(_ message: PipeMessage) { for pipe in pipes { pipe.send(message) } }

    func receive(_ batch: PipeBatch) {
        if let pipe = pipes.first(where: { $0.other == batch.from }) { return pipe.receive(batch) }
        guard !batch.isFarewell else { return }
        let pipe = Pipe(batch.from, of: self, loop: settings.loop, links: links)
        pipes.append(pipe)
        pipe.send(.introduction(infos))
        speakers.introduce(to: pipe)
        pipe.receive(batch)
    }

    /// Handles a message about the other part's participants.
    func handle(_ message: PipeMessage, from pipe: Pipe) {
        switch message {
        case .introduction(let infos): for info in infos { enter(info, from: pipe) }
        case .entered(let info): enter(info, from: pipe)
        case .left(let id):
            guard let index = pipe.guests.firstIndex(where: { $0.info.id == id }) else { return }
            leave(pipe.guests.remove(at: index), from: pipe)
        case .published(let info, let id):
            guard let index = pipe.guests.firstIndex(where: { $0.info.id == id }),
                let stream = pipe.addStream(info, of: index)
            else { return }
            pipe.guests[index].info.streams.append(info)
            announce([stream], by: id)
        case .unpublished(let ids, let id):
            guard let index = pipe.guests.firstIndex(where: { $0.info.id == id }) else { return }
            let ended = pipe.guests[index].streams.filter { ids.contains($0.info.id) }
            pipe.guests[index].streams.removeAll { ids.contains($0.info.id) }
            pipe.guests[index].info.streams.removeAll { ids.contains($0.id) }
            announceEnd(of: ended, by: id)
            pipe.remove(ended)
        case .changed(let stream, let change, let id):
            guard let index = pipe.guests.firstIndex(where: { $0.info.id == id }),
                let place = pipe.guests[index].info.streams.firstIndex(where: { $0.id == stream }),
                let stream = pipe.guests[index].streams.first(where: { $0.info.id == stream })
            else { return }
            pipe.guests[index].info.streams[place].apply(change)
            announce(change, of: stream, by: id)
        case .reduced(let stream, let reason, let id):
            guard let index = pipe.guests.firstIndex(where: { $0.info.id == id }),
                let place = pipe.guests[index].info.streams.firstIndex(where: { $0.id == stream }),
                let stream = pipe.guests[index].streams.first(where: { $0.info.id == stream })
            else { return }
            pipe.guests[index].info.streams[place].reduction = reason
            stream.set(reason)
        case .userMessage(let message, let targets): deliver(message, to: targets)
        case .ended:
            pipes.removeAll { $0 === pipe }
            for guest in pipe.guests { leave(guest, from: pipe) }
            pipe.wasClosed()
        case .began, .wanted, .unwanted, .keyframe, .carried, .interrupted, .clock, .measured, .taken, .speaking,
            .levels, .speakers:
            break
        }
    }

    private func enter(_ info: ParticipantInfo, from pipe: Pipe) {
        pipe.guests.append(Pipe.Guest(info: info))
        announce(info)
        let streams = info.streams.compactMap { pipe.addStream($0, of: pipe.guests.count - 1) }
        announce(streams, by: info.id, isAnnounced: true)
    }

    private func leave(_ guest: Pipe.Guest, from pipe: Pipe) {
        announceEnd(of: guest.info, guest.streams)
        pipe.remove(guest.streams)
    }
}
