internal import PeerLoop
internal import RTP
internal import RoomProtocol

/// A conference, or the part of it that is on one loop: its participants and their streams. On the loop only.
final class Room {
    /// The limit on all announcements for a new participant, in bytes of JSON. With the offer of its receivers, they
    /// fit into the server's buffer for a client that has not read yet (`HTTPListener.maximumUnsent`).
    static let announcementLimit = 768 * 1024
    /// The part of them that goes into `joined`, which must be shorter than `Signalling.maximumMessageLength`. The rest
    /// follows as `participantEntered`.
    static let joinedLimit = 128 * 1024

    let name: RoomName
    let part: PartID
    let links: LoopLinks
    let settings: SessionSettings
    private(set) var participants: [Participant] = []
    /// To the other parts of the room.
    var pipes: [Pipe] = []
    /// Those of other parts included.
    private var streams: [Int: PublishedStream] = [:]
    private(set) lazy var speakers = RoomSpeakers(of: self)
    private var announced = 0
    private var messagePace = RoomPace.messages
    private var announcementPace = RoomPace.announcements

    /// - Parameter part: names this part among all that the server ever has.
    init(_ name: RoomName, part: PartID, links: LoopLinks, settings: SessionSettings) {
        self.name = name
        self.part = part
        self.links = links
        self.settings = settings
    }

    /// Whether all participants leave. Then nobody gets messages about the others, which would take long in a large room.
    var isEnding = false

    /// Whether this part has no participants.
    var isEmpty: Bool { participants.isEmpty }

    /// How many participants this part has.
    var count: Int { participants.count }
    /// Whether a participant of this part has no connection.
    func isAbsent(_ id: String) -> Bool { participants.contains { $0.id == id && $0.line.connection == nil } }
    /// The participants of this part.
    var infos: [ParticipantInfo] { participants.map(\.info) }

    /// The present participants, for a new one: those for `joined`, and the others.
    func introduction() -> (joined: [ParticipantInfo], later: [ParticipantInfo]) {
        var length = 0
        let infos = infos + pipes.flatMap { $0.guests.map(\.info) }
        let split =
            infos.firstIndex { info in
                length += info.announcedLength
                return length > Self.joinedLimit
            } ?? infos.count
        return (Array(infos[..<split]), Array(infos[split...]))
    }

    /// Notifies the others, then assigns the audible streams to the new participant.
    func enter(_ participant: Participant) {
        announce(participant.info)
        pass(.entered(participant.info))
        participants.append(participant)
        speakers.entered(participant)
    }

    func leave(_ participant: Participant) {
        participants.removeAll { $0 === participant }
        speakers.left(participant)
        pass(.left(participant.id))
        announceEnd(of: participant.info, participant.streams)
        participant.close()
    }

    /// Throws if the announcements for a new participant would become too long, or if the room has too many announcements.
    func admit(_ publish: Publish) throws(RoomError) {
        // A restart of ICE announces nothing.
        guard !publish.streams.isEmpty else { return }
        try announcementPace.check(
            publish.streams.map { $0.attributes.extraValue.lengthInJSON + $0.attributes.sort.lengthInJSON },
            "publish too many streams", now: settings.loop.now)
        let length = publish.streams.reduce(0) { $0 + $1.attributes.announcedLength }
        guard announced + length <= Self.announcementLimit else {
            throw RoomError(
                .publishRefused,
                "The stream announcements of the room '\(name)' would have \(announced / 1024) KiB; the limit is "
                    + "\(Self.announcementLimit / 1024) KiB. Publish fewer streams, or shorter extraValues.")
        }
    }

    func published(_ new: [PublishedStream], by participant: Participant) {
        for stream in new { pass(.published(stream.info, by: participant.id)) }
        announce(new, by: participant.id)
    }

    func unpublished(_ ended: [PublishedStream], by participant: Participant) {
        pass(.unpublished(ended.map(\.info.id), by: participant.id))
        announceEnd(of: ended, by: participant.id)
    }

    /// Changes the state and the attributes of a participant's stream. Throws if the announcements for a new participant
    /// would become too long.
    func change(
        _ stream: PublishedStream, _ change: StreamChange, by participant: Participant
    ) throws(RoomError) {
        var changed = stream.info
        changed.apply(change)
        let growth = changed.announcedLength - stream.info.announcedLength
        guard growth <= 0 || announced + growth <= Self.announcementLimit else {
            throw RoomError(
                .publishRefused,
                "The stream announcements of the room '\(name)' would have more than \(Self.announcementLimit / 1024) KiB. "
                    + "Send a shorter text.")
        }
        let difference = changed.properties.differing(from: stream.info.properties)
        guard !difference.isEmpty else { return }
        let message = ServerMessage.streamChanged(
            StreamChanged(participant: participant.id, stream: stream.info.id, state: changed.state, change: difference)
        )
        if !message.isForced {
            let isState = difference.extraValue == nil && difference.sort == nil
            try announcementPace.check(
                [message.textLength], reserve: isState ? 0 : RoomPace.reservedKibibytes,
                "change the texts of their streams too often", now: settings.loop.now)
        }
        if difference.isAlwaysOn == true, stream.codec.media == .audio { try speakers.admitAlwaysOn() }
        pass(.changed(stream.info.id, difference, by: participant.id))
        announce(difference, of: stream, by: participant.id)
    }

    /// A stream's publisher sends it worse than it could, or does not any longer.
    func reduce(_ stream: PublishedStream, because reason: StreamQuality.Reason?, by participant: Participant) {
        stream.toldReduction = reason
        // A publisher whose connection is lost says so late, or not at all.
        guard stream.info.reduction != reason, stream.info.reduction != .connection else { return }
        set(reason, of: stream, by: participant)
    }

    /// The connection of a publisher is lost, or back.
    func setLost(_ isLost: Bool, _ participant: Participant) {
        for stream in participant.streams where stream.codec.media == .video {
            set(isLost ? .connection : stream.toldReduction, of: stream, by: participant)
        }
    }

    private func set(_ reason: StreamQuality.Reason?, of stream: PublishedStream, by participant: Participant) {
        stream.set(reason)
        pass(.reduced(stream.info.id, reason, by: participant.id))
    }

    // MARK: - Messages

    /// Throws if the participants of the room send too much.
    func admit(_ message: SendMessage) throws(RoomError) {
        try messagePace.check([message.length], "send too many messages", now: settings.loop.now)
    }

    /// Delivers a participant's message to the others, in the order of the calls. Ids of participants that are not in the room
    /// are ignored, because they may have just left.
    func deliver(_ message: SendMessage, from participant: Participant) {
        let targets = message.targets.isEmpty ? nil : Set(message.targets)
        let delivered = UserMessage(from: participant.id, text: message.text, kind: message.kind)
        deliver(delivered, to: targets)
        for pipe in pipes {
            guard let targets else {
                pipe.send(.userMessage(delivered, to: nil))
                continue
            }
            let present = Set(pipe.guests.map(\.info.id)).intersection(targets)
            if !present.isEmpty { pipe.send(.userMessage(delivered, to: present)) }
        }
    }

    /// Delivers a message to participants of this part.
    ///
    /// - Parameter targets: nil for all but the sender
    func deliver(_ message: UserMessage, to targets: Set<String>?) {
        messagePace.count(message.length, now: settings.loop.now)
        let delivered = ServerMessage.userMessage(message)
        let length = delivered.textLength
        settings.broadcast(
            delivered,
            participants.compactMap { participant in
                guard participant.id != message.from, targets?.contains(participant.id) ?? true else { return nil }
                return participant.line.note(delivered, length: length)
            })
    }

    // MARK: - Announcements to the participants of this part

    func announce(_ info: ParticipantInfo) {
        announced += info.announcedLength
        send(.participantEntered(ParticipantEntered(participant: info)), except: info.id)
    }

    func announceEnd(of info: ParticipantInfo, _ streams: [PublishedStream]) {
        announced -= info.announcedLength
        end(streams)
        send(.participantLeft(ParticipantReference(participant: info.id)), except: info.id)
    }

    /// - Parameter isAnnounced: whether the participant was announced with these streams already.
    func announce(_ new: [PublishedStream], by id: String, isAnnounced: Bool = false) {
        for stream in new {
            streams[stream.info.id] = stream
            guard !isAnnounced else { continue }
            announced += stream.info.announcedLength
            sendCounted(.streamPublished(StreamPublished(participant: id, stream: stream.info)), except: id)
        }
        let audio = new.filter { $0.codec.media == .audio }
        if !audio.isEmpty { speakers.published(audio) }
    }

    func announceEnd(of ended: [PublishedStream], by id: String) {
        end(ended)
        for stream in ended {
            announced -= stream.info.announcedLength
            sendCounted(
                .streamUnpublished(StreamUnpublished(participant: id, stream: stream.info.id)), isForced: true,
                except: id)
        }
    }

    func announce(_ change: StreamChange, of stream: PublishedStream, by id: String) {
        announced -= stream.info.announcedLength
        stream.apply(change)
        announced += stream.info.announcedLength
        let message = ServerMessage.streamChanged(
            StreamChanged(participant: id, stream: stream.info.id, state: stream.info.state, change: change))
        sendCounted(message, isForced: message.isForced, except: id)
        let affectsSlots = change.isActive != nil || change.isAlwaysOn != nil
        if affectsSlots, stream.codec.media == .audio { speakers.changed(stream) }
    }

    /// Frees the receivers of streams that end, and the audio slots for other streams.
    private func end(_ ended: [PublishedStream]) {
        let audio = ended.filter { $0.codec.media == .audio }
        speakers.ended(audio)
        var listeners: [Participant] = []
        for stream in ended {
            streams[stream.info.id] = nil
            guard stream.hasConsumers else { continue }
            listeners += participants.filter { $0.streamEnded(stream) }
        }
        if !audio.isEmpty, !isEnding { speakers.fill(listeners) }
    }

    /// - Parameter isForced: whether the message is never refused. However many there are, others can still publish.
    private func sendCounted(_ message: ServerMessage, isForced: Bool = false, except id: String) {
        announcementPace.count(
            message.textLength, reserve: isForced ? RoomPace.reservedKibibytes : 0, now: settings.loop.now)
        send(message, except: id)
    }

    private func send(_ message: ServerMessage, except id: String) {
        guard !isEnding else { return }
        let length = message.textLength
        settings.broadcast(
            message, participants.compactMap { $0.id == id ? nil : $0.line.note(message, length: length) })
    }

    // MARK: - Streams

    /// The video stream with this id of another participant.
    func video(_ id: Int, for participant: Participant) throws(RoomError) -> PublishedStream {
        guard let stream = streams[id], stream.participant != participant.id else {
            throw RoomError(.noSuchStream, "No other participant of the room publishes stream \(id).")
        }
        guard stream.codec.media == .video else {
            throw RoomError(
                .noSuchStream, "Stream \(id) is audio, which the server assigns itself. Subscribe only to video.")
        }
        return stream
    }

    func hasStream(_ id: Int) -> Bool { streams[id] != nil }

    /// The stream with this id of a participant of this part.
    func ownStream(_ id: Int) -> PublishedStream? {
        guard let stream = streams[id], participants.contains(where: { $0.id == stream.participant }) else {
            return nil
        }
        return stream
    }
}

extension ServerMessage {
    /// Whether a change of a stream is never refused: it has no text, as a mute.
    fileprivate var isForced: Bool { textLength == 0 }
}

extension StreamInfo {
    /// An upper bound of the JSON that announces the stream, in bytes.
    var announcedLength: Int {
        guard case .waiting(let text) = state else { return attributes.announcedLength }
        return attributes.announcedLength + 32 + text.lengthInJSON
    }
}

extension StreamAttributes {
    /// An upper bound of the JSON that announces a live stream with these attributes, in bytes.
    var announcedLength: Int {
        80 + extraValue.lengthInJSON + (isActive ? 0 : 15) + (isAlwaysOn ? 16 : 0)
            + (sort == Self.defaultSort ? 0 : 10 + sort.lengthInJSON)
    }
}

extension ParticipantInfo {
    /// An upper bound of the JSON that announces a participant and its streams, in bytes.
    var announcedLength: Int { streams.reduce(64) { $0 + $1.announcedLength } }
}
