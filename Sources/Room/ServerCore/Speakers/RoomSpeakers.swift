internal import PeerLoop
internal import RTP
internal import RoomProtocol

/// Lets the participants of a room hear the speakers: measures the streams of this part of the room, ranks those of all
/// parts, and fills the audio slots. On the loop only.
///
/// The part with the oldest audio stream of the room decides. The others report to it how their streams stand out, and take
/// its order. So all parts have one order, and a part that begins late does not change it.
final class RoomSpeakers {
    /// The slots of so many participants change before the loop's other work: each change is a message.
    private static let updatesAtOnce = 128
    /// The most streams that a part reports. No more could be heard.
    private static let mostReports = SpeakerRanking.places

    private unowned let room: Room
    private let loop: Loop
    private var ranking = SpeakerRanking()
    private var slots = AudioSlots<Participant>()
    /// All audio streams of the room by age, also those that are off.
    private var streams: [PublishedStream] = []
    /// Those of participants of this part.
    private var own: [PublishedStream] = []
    /// The part that decided at the last change of streams. Nil for this one.
    private var leader: PartID?
    private var hasReported = false
    /// The participants whose slots have not followed the last change yet.
    private var behind: ArraySlice<Participant> = []
    private var reviewAt: MonotonicTime?
    private lazy var timer = loop.makeTimer { [weak self] in self?.review() }

    init(of room: Room) {
        self.room = room
        loop = room.settings.loop
    }

    // MARK: - Participants and streams

    func entered(_ participant: Participant) {
        participant.onAudioSlots = { [weak self, weak participant] in
            guard let self, let participant else { return }
            // Not in the middle of a change of the slots.
            loop.schedule(at: loop.now) { [weak self, weak participant] in
                guard let self, let participant, room.participants.contains(where: { $0 === participant }) else {
                    return
                }
                slots.update(participant)
            }
        }
        slots.update(participant)
    }

    func left(_ participant: Participant) {
        participant.onAudioSlots = nil
        behind.removeAll { $0 === participant }
        slots.left(participant)
    }

    /// Adds audio streams of the room.
    func published(_ new: [PublishedStream]) {
        for stream in new {
            let place = streams.firstIndex { $0.info.id > stream.info.id } ?? streams.endIndex
            streams.insert(stream, at: place)
            stream.onLevels = { [weak self, weak stream] in if let stream { self?.levelsChanged(of: stream) } }
            if stream.pipe == nil {
                own.append(stream)
                stream.onSound = { [weak self] in self?.review(after: Loudness.interval) }
            }
        }
        follow()
        for stream in new where stream.info.attributes.isActive { begin(stream) }
    }

    /// Removes audio streams that have ended. The owner frees their slots, and then calls `fill`.
    func ended(_ ended: [PublishedStream]) {
        guard !ended.isEmpty else { return }
        streams.removeAll { stream in ended.contains { $0 === stream } }
        own.removeAll { stream in ended.contains { $0 === stream } }
        for stream in ended {
            (stream.onSound, stream.onLevels) = (nil, nil)
            ranking.remove(stream.info.id)
        }
        slots.ended(ended)
    }

    /// Fills the slots of participants that heard a stream that has ended.
    func fill(_ listeners: [Participant]) {
        follow()
        rankAgain()
        for listener in listeners { slots.update(listener) }
    }

    /// Throws if the room has no place for another stream that is always on.
    func admitAlwaysOn() throws(RoomError) { if placesAlwaysOn == 0 { throw manyAlwaysOn } }

    /// Makes audio streams as others that are published as always on and have no place. Returns the error for their publisher.
    /// The streams are not announced yet.
    func limitAlwaysOn(_ new: [PublishedStream]) -> RoomError? {
        let asking = new.filter { $0.codec.media == .audio && $0.info.attributes.isAlwaysOn }
        let rest = asking.dropFirst(placesAlwaysOn)
        for stream in rest { stream.apply(StreamChange(isAlwaysOn: false)) }
        return rest.isEmpty ? nil : manyAlwaysOn
    }

    /// For so many more streams that are always on. Those of a participant without a connection take none: its client may have
    /// joined again as another one.
    private var placesAlwaysOn: Int {
        let taken = streams.count { $0.info.attributes.isAlwaysOn && !room.isAbsent($0.participant) }
        return max(0, SpeakerRanking.mostAlwaysOn - taken)
    }

    private var manyAlwaysOn: RoomError {
        RoomError(
            .publishRefused,
            "The room '\(room.name)' can have \(SpeakerRanking.mostAlwaysOn) audio streams that are always on, because one slot "
                + "stays for speakers. Try again when one of them has ended.")
    }

    /// The attributes of an audio stream have changed. One that is off leaves its slots.
    func changed(_ stream: PublishedStream) {
        let attributes = stream.info.attributes
        guard attributes.isActive else {
            guard ranking.contains(stream.info.id) else { return }
            ranking.remove(stream.info.id)
            slots.ended([stream])
            rankAgain()
            return catchUp(with: room.participants.filter { one in one.heardStreams.contains { $0 === stream } })
        }
        guard ranking.contains(stream.info.id) else { return begin(stream) }
        ranking.set(isAlwaysOn: attributes.isAlwaysOn, of: stream.info.id)
        settle()
    }

    private func levelsChanged(of stream: PublishedStream) {
        let (id, hasLevels) = (stream.info.id, stream.info.hasLevels)
        if stream.pipe == nil { room.pass(.levels(id, hasLevels)) }
        ranking.set(hasLevels: hasLevels, of: id)
        // Not in the middle of a packet.
        review(after: Loudness.interval)
    }

    private func begin(_ stream: PublishedStream) {
        ranking.add(
            stream.info.id, of: stream.participant, hasLevels: stream.info.hasLevels,
            isAlwaysOn: stream.info.attributes.isAlwaysOn)
        slots.published(stream)
        rankAgain()
        settle()
    }

    // MARK: - Ranking

    private var decides: Bool { leader == nil }

    /// Finds out which part decides. One that begins to takes over the order.
    private func follow() {
        let now = streams.first?.pipe?.other
        guard now != leader else { return }
        leader = now
        hasReported = false
        if let now, let told = room.pipes.first(where: { $0.other == now })?.speakers { take(told) }
        guard decides else { return }
        // Other parts have not reported here while another one decided, and report again what changes.
        for stream in streams where stream.pipe != nil { ranking.heard(SpeakerReport(stream.info.id), now: loop.now) }
        rankAgain()
        room.pass(.speakers(ranking.loudestFirst))
        settle()
    }

    /// Fills the free places, if this part decides, and lets everyone follow the order.
    private func rankAgain() {
        let before = ranking.loudestFirst
        if decides { ranking.fill(now: loop.now) }
        follow(from: before)
    }

    /// Lets everyone follow a change of the order.
    private func follow(from before: [Int]) {
        let order = ranked
        if decides, ranking.loudestFirst != before { room.pass(.speakers(ranking.loudestFirst)) }
        let former = slots.ranked
        guard !order.elementsEqual(former, by: ===) else { return }
        slots.rank(order)
        // Another order of the same four changes nothing for participants with four slots.
        let heard = SpeakerRanking.heard
        let isSame =
            order.dropFirst(heard).elementsEqual(former.dropFirst(heard), by: ===)
            && order.prefix(heard).allSatisfy { one in former.prefix(heard).contains { $0 === one } }
        catchUp(with: isSame ? room.participants.filter { $0.audioSlots < heard } : room.participants)
    }

    /// The streams with a place that are known here, and not off.
    private var ranked: [PublishedStream] {
        ranking.loudestFirst.compactMap { id in
            ranking.contains(id) ? streams.first { $0.info.id == id } : nil
        }
    }

    /// Tells a new part of the room the order.
    func introduce(to pipe: Pipe) { if decides, !streams.isEmpty { pipe.send(.speakers(ranking.loudestFirst)) } }

    /// Another part tells the order, which counts if that part decides.
    func told(_ order: [Int], by pipe: Pipe) {
        pipe.speakers = order
        if leader == pipe.other { take(order) }
    }

    private func take(_ order: [Int]) {
        let before = ranking.loudestFirst
        ranking.adopt(order, now: loop.now)
        follow(from: before)
    }

    /// Another part reports how its streams stand out. Those that it omits do not.
    func told(_ reports: [SpeakerReport], by pipe: Pipe) {
        for stream in streams where stream.pipe === pipe {
            let report = reports.first { $0.stream == stream.info.id }
            ranking.heard(report ?? SpeakerReport(stream.info.id), now: loop.now)
        }
        if decides { review(after: Loudness.interval) }
    }

    // MARK: - Reviews

    private func review(after delay: TimeInterval) {
        let time = loop.now + delay
        if let reviewAt, reviewAt <= time { return }
        reviewAt = time
        timer.arm(at: time)
    }

    private func review() {
        reviewAt = nil
        let now = loop.now
        var reports: [SpeakerReport] = []
        var isSounding = false
        for stream in own {
            stream.loudness.endInterval()
            let report = SpeakerReport(stream.info.id, stream.loudness)
            isSounding = isSounding || !stream.loudness.isIdle
            guard ranking.contains(stream.info.id) else { continue }
            ranking.heard(report, now: now)
            if !report.isQuiet { reports.append(report) }
        }
        if let leader { report(reports, to: leader) }
        settle()
        if isSounding { review(after: Loudness.interval) }
    }

    /// Gives a place to a stream that deserves it more, if this part decides. Does not measure, so that messages of clients do
    /// not make an interval shorter.
    private func settle() {
        guard decides else { return }
        let before = ranking.loudestFirst
        if ranking.review(now: loop.now) { follow(from: before) }
        if let pause = ranking.pause { review(after: pause) }
    }

    private func report(_ reports: [SpeakerReport], to leader: PartID) {
        guard let pipe = room.pipes.first(where: { $0.other == leader }), hasReported || !reports.isEmpty else {
            return
        }
        hasReported = !reports.isEmpty
        let loudest = reports.sorted { ($1.score, $0.stream) < ($0.score, $1.stream) }.prefix(Self.mostReports)
        pipe.send(.speaking(Array(loudest)))
    }

    // MARK: - Slots

    /// Lets participants hear what they should, some at once and the rest after the loop's other work.
    private func catchUp(with listeners: [Participant]) {
        let isBusy = !behind.isEmpty
        let waiting = Set(behind.map { ObjectIdentifier($0) })
        behind += listeners.filter { !waiting.contains(ObjectIdentifier($0)) }
        if !isBusy { goOn() }
    }

    private func goOn() {
        for _ in 0..<Self.updatesAtOnce {
            guard let next = behind.popFirst() else { return }
            slots.update(next)
        }
        guard !behind.isEmpty else { return }
        loop.sendEarly()
        loop.schedule(at: loop.now) { [weak self] in self?.goOn() }
    }
}
