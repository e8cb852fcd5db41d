internal import RTP
internal import RoomProtocol

/// Decides which audio streams of a room are heard. Is told the time.
///
/// Its order has five streams at most: the first four fill the slots of everyone else, and the last one the slot that a
/// publisher of one of them has left. A participant with fewer slots, because its link carries no more, hears the loudest of
/// the four. A stream keeps its place in silence. Another one takes it when somebody has spoken there for a while, clearly
/// louder than the weakest of the four or after that one fell silent, once a second at most.
///
/// Up to three streams that are always on, the oldest ones, have places before all others. Streams whose packets have no
/// levels rank in the order in which they were published, below those in which somebody spoke in the last ten seconds.
///
/// A participant has two of the four at most while streams of others wait: it cannot silence the others by many streams.
struct SpeakerRanking {
    /// How many streams a participant hears.
    static let heard = DownDescription.audioSlots
    static let places = heard + 1
    /// One slot stays for speakers.
    static let mostAlwaysOn = heard - 1
    /// Of one participant, while others wait.
    static let mostOfOne = 2
    /// Between two changes of places that nobody gave up. Each is a message to everyone. Also the least time of a place.
    static let pace = TimeInterval.seconds(1)
    /// A stream that is silent for so long gives way to any other one.
    static let silence = TimeInterval.seconds(1)
    /// So much louder has a stream to be than one that speaks, in decibels.
    static let margin = 6.0
    /// For so long, a stream ranks above those without levels.
    static let memory = TimeInterval.seconds(10)

    private struct Candidate {
        var participant: String
        var hasLevels: Bool
        var score = 0.0
        var isSteady = false
        var lastSpoken: MonotonicTime?
        var seated = MonotonicTime.zero
    }

    private var candidates: [Int: Candidate] = [:]
    /// Those that are always on, oldest first.
    private var alwaysOn: [Int] = []
    /// The streams with a place, by id. Those of other parts of the room may be unknown here.
    private(set) var order: [Int] = []
    private var lastChange: MonotonicTime?
    /// The first four, in the order in which a participant with fewer slots hears them.
    private var voices: [Int] = []
    private var lastMove: MonotonicTime?

    // MARK: - Streams

    /// Adds a stream that can be heard. Ids count up in the order of publishing.
    mutating func add(_ id: Int, of participant: String, hasLevels: Bool, isAlwaysOn: Bool) {
        candidates[id] = Candidate(participant: participant, hasLevels: hasLevels)
        set(isAlwaysOn: isAlwaysOn, of: id)
    }

    /// Removes a stream that has ended, or is off. The last stream of the order moves up.
    mutating func remove(_ id: Int) {
        candidates[id] = nil
        alwaysOn.removeAll { $0 == id }
        order.removeAll { $0 == id }
    }

    func contains(_ id: Int) -> Bool { candidates[id] != nil }

    mutating func set(isAlwaysOn: Bool, of id: Int) {
        alwaysOn.removeAll { $0 == id }
        guard isAlwaysOn else { return }
        alwaysOn.insert(id, at: alwaysOn.firstIndex { $0 > id } ?? alwaysOn.endIndex)
    }

    mutating func set(hasLevels: Bool, of id: Int) { candidates[id]?.hasLevels = hasLevels }

    mutating func heard(_ report: SpeakerReport, now: MonotonicTime) {
        candidates[report.stream]?.score = report.score
        candidates[report.stream]?.isSteady = report.isSteady
        if report.isSpeaking { candidates[report.stream]?.lastSpoken = now }
    }

    // MARK: - Places

    /// Takes the order of the part of the room that decides.
    mutating func adopt(_ told: [Int], now: MonotonicTime) {
        for id in told where !order.contains(id) { candidates[id]?.seated = now }
        (order, voices) = (told, Array(told.prefix(Self.heard)))
        lastChange = now
    }

    /// Gives the free places to those that rank highest.
    mutating func fill(now: MonotonicTime) {
        order.removeAll { candidates[$0] == nil }
        while order.count < Self.places, order.count < candidates.count {
            let waiting = candidates.keys.filter { !order.contains($0) }
            let others = waiting.filter { heardOfSame($0) < Self.mostOfOne }
            let choice = others.isEmpty ? waiting : others
            guard let best = choice.min(by: { isBetter($0, than: $1, now: now) }) else { return }
            order.append(best)
            candidates[best]?.seated = now
        }
    }

    /// Fills the free places, and gives one to a stream that deserves it more. Returns whether the order has changed.
    mutating func review(now: MonotonicTime) -> Bool {
        let before = loudestFirst
        fill(now: now)
        if candidates.count > Self.heard, lastChange.map({ now - $0 >= Self.pace }) ?? true { change(now: now) }
        if lastMove.map({ now - $0 >= Self.pace }) ?? true { moveVoice(now: now) }
        return loudestFirst != before
    }

    /// The streams with a place: those of the first four first that stand out, for participants whose links do not carry all.
    var loudestFirst: [Int] {
        let heard = order.prefix(Self.heard)
        return voices.filter(heard.contains) + heard.filter { !voices.contains($0) } + order.dropFirst(Self.heard)
    }

    /// Moves one voice before the first one that gives way to it.
    private mutating func moveVoice(now: MonotonicTime) {
        voices = Array(loudestFirst.prefix(Self.heard))
        for place in voices.indices {
            let before = voices[..<place].firstIndex { givesWay($0, to: voices[place], now: now) }
            guard let before else { continue }
            voices.insert(voices.remove(at: place), at: before)
            lastMove = now
            return
        }
    }

    private func givesWay(_ one: Int, to other: Int, now: MonotonicTime) -> Bool {
        guard isProtected(one) == isProtected(other) else { return isProtected(other) }
        guard let first = candidates[one], let second = candidates[other] else { return false }
        guard second.hasLevels else { return rank(of: first, now: now) == .silent }
        return second.isSteady && isOutspoken(first, by: second, now: now)
    }

    /// Whether one stream has fallen silent, or another one is clearly louder.
    private func isOutspoken(_ one: Candidate, by other: Candidate, now: MonotonicTime) -> Bool {
        other.score > one.score + Self.margin || !isRecent(one.lastSpoken, within: Self.silence, now: now)
    }

    /// When to review the order again although there is no other report. Nil for not at all.
    var pause: TimeInterval? {
        let waiting = alwaysOn.prefix(Self.mostAlwaysOn).filter { !isHeard($0) }
        if waiting.contains(where: { heardOfSame($0) < Self.mostOfOne }) { return Loudness.interval }
        if !waiting.isEmpty { return Self.pace }
        let voices = loudestFirst.prefix(Self.heard)
        let giving = voices.firstIndex { candidates[$0]?.hasLevels == true && !isProtected($0) }
        guard let giving else { return nil }
        let before = voices[..<giving]
        return candidates.contains { !$1.hasLevels && !before.contains($0) } ? Self.pace : nil
    }

    private func isHeard(_ id: Int) -> Bool { order.prefix(Self.heard).contains(id) }

    /// How many of the first places the participant of a stream has.
    private func heardOfSame(_ id: Int) -> Int {
        let participant = candidates[id]?.participant
        return order.prefix(Self.heard).count { candidates[$0]?.participant == participant && participant != nil }
    }

    /// Whether a stream may take a place of another one: its participant has not too many already.
    private func mayReplace(_ id: Int, _ other: Int) -> Bool {
        heardOfSame(id) < Self.mostOfOne || candidates[id]?.participant == candidates[other]?.participant
    }

    private func isProtected(_ id: Int) -> Bool { alwaysOn.prefix(Self.mostAlwaysOn).contains(id) }

    private mutating func change(now: MonotonicTime) {
        guard let place = weakest(now: now), let weakest = candidates[order[place]] else { return }
        let isExcess = heardOfSame(order[place]) > Self.mostOfOne
        for id in alwaysOn.prefix(Self.mostAlwaysOn) where !isHeard(id) {
            let isFull = heardOfSame(id) >= Self.mostOfOne
            guard let place = isFull ? self.weakest(of: candidates[id]?.participant, now: now) : place else { continue }
            return replace(place, by: id, now: now)
        }
        let speakers = candidates.filter { $1.isSteady && !isHeard($0) && mayReplace($0, order[place]) }
        let others = speakers.filter { heardOfSame($0.key) < Self.mostOfOne }
        let speaker = (others.isEmpty ? speakers : others)
            .min { ($1.value.score, $0.key) < ($0.value.score, $1.key) }
        if let speaker {
            if isExcess && !others.isEmpty || isOutspoken(weakest, by: speaker.value, now: now) {
                replace(place, by: speaker.key, now: now)
            }
            return
        }
        let other = candidates.filter { !$1.hasLevels && !isHeard($0) && mayReplace($0, order[place]) }.keys.min()
        guard let other else { return }
        if isExcess && heardOfSame(other) < Self.mostOfOne || rank(of: weakest, now: now) == .silent {
            replace(place, by: other, now: now)
        }
    }

    private mutating func replace(_ place: Int, by id: Int, now: MonotonicTime) {
        let former = order[place]
        if let present = order.firstIndex(of: id) {
            order.swapAt(place, present)
        } else {
            order[place] = id
            // The publisher of one of the four has heard the last one instead, and now goes on with the former.
            if order.count == Self.places { order[Self.heard] = former } else { order.append(former) }
        }
        candidates[id]?.seated = now
        lastChange = now
    }

    // MARK: - Ranks

    private enum Rank: Int { case silent, unmeasured, spoken }

    private func rank(of stream: Candidate, now: MonotonicTime) -> Rank {
        guard stream.hasLevels else { return .unmeasured }
        return isRecent(stream.lastSpoken, within: Self.memory, now: now) ? .spoken : .silent
    }

    private func isRecent(_ time: MonotonicTime?, within limit: TimeInterval, now: MonotonicTime) -> Bool {
        time.map { now - $0 < limit } ?? false
    }

    /// Whether a stream deserves a free place more than another one.
    private func isBetter(_ one: Int, than other: Int, now: MonotonicTime) -> Bool {
        guard let first = candidates[one], let second = candidates[other] else { return false }
        let protected = (isProtected(one), isProtected(other))
        guard protected.0 == protected.1 else { return protected.0 }
        let ranks = (rank(of: first, now: now).rawValue, rank(of: second, now: now).rawValue)
        guard ranks.0 == ranks.1 else { return ranks.0 > ranks.1 }
        return (second.score, one) < (first.score, other)
    }

    /// The place among the first four that another stream would take.
    ///
    /// - Parameter participant: nil for any
    private func weakest(of participant: String? = nil, now: MonotonicTime) -> Int? {
        let places = order.indices.prefix(Self.heard).filter { place in
            guard let stream = candidates[order[place]], participant ?? stream.participant == stream.participant
            else { return false }
            let isExcess = heardOfSame(order[place]) > Self.mostOfOne
            guard isExcess || !isProtected(order[place]) else { return false }
            return now - stream.seated >= Self.pace
        }
        return places.min { one, other in
            let excess = (heardOfSame(order[one]), heardOfSame(order[other]))
            let isExcess = (excess.0 > Self.mostOfOne, excess.1 > Self.mostOfOne)
            return isExcess.0 == isExcess.1 ? isWeaker(order[one], than: order[other], now: now) : isExcess.0
        }
    }

    private func isWeaker(_ one: Int, than other: Int, now: MonotonicTime) -> Bool {
        guard let first = candidates[one], let second = candidates[other] else { return false }
        let ranks = (rank(of: first, now: now).rawValue, rank(of: second, now: now).rawValue)
        guard ranks.0 == ranks.1 else { return ranks.0 < ranks.1 }
        let speak = [first, second].map { isRecent($0.lastSpoken, within: Self.silence, now: now) }
        guard speak[0] == speak[1] else { return !speak[0] }
        if speak[0] { return (first.score, other) < (second.score, one) }
        // Those that fell silent first leave first, and of those that never spoke, the one that was published last.
        let times = (first.lastSpoken ?? .zero, second.lastSpoken ?? .zero)
        return times.0 == times.1 ? one > other : times.0 < times.1
    }
}
