import RTP
import TestSupport
import Testing

@testable import ServerCore

/// A room in which participants speak by a script. Each publishes one stream, whose silence is at -70 dBov.
private struct Conversation {
    /// The order at a time, in milliseconds.
    struct Row: Equatable {
        var time: Int
        var order: [Int]

        init(_ time: Int, _ order: [Int]) { (self.time, self.order) = (time, order) }
    }

    static let silence: UInt8 = 70

    private(set) var ranking = SpeakerRanking()
    private(set) var rows: [Row] = []
    private var sounds: [Int: Loudness] = [:]
    private var noise: [Int: UInt8] = [:]
    private(set) var milliseconds = 0
    var now: MonotonicTime { .zero + .seconds(1000) + .milliseconds(Int64(milliseconds)) }

    init(_ streams: ClosedRange<Int>, unmeasured: Set<Int> = [], alwaysOn: Set<Int> = []) {
        for id in streams { publish(id, hasLevels: !unmeasured.contains(id), isAlwaysOn: alwaysOn.contains(id)) }
    }

    mutating func publish(
        _ id: Int, of participant: String? = nil, hasLevels: Bool = true, isAlwaysOn: Bool = false,
        noise: UInt8 = silence
    ) {
        ranking.add(id, of: participant ?? "p\(id)", hasLevels: hasLevels, isAlwaysOn: isAlwaysOn)
        if hasLevels { sounds[id] = Loudness() }
        self.noise[id] = noise
        ranking.fill(now: now)
        note()
    }

    mutating func end(_ id: Int) {
        ranking.remove(id)
        sounds[id] = nil
        ranking.fill(now: now)
        note()
    }

    mutating func setAlwaysOn(_ id: Int, _ isAlwaysOn: Bool = true) {
        ranking.set(isAlwaysOn: isAlwaysOn, of: id)
        _ = ranking.review(now: now)
        note()
    }

    /// - Parameter loud: the levels of the streams in which somebody speaks, with a pause of 100 ms after 400 ms
    mutating func last(_ length: Int, _ loud: [Int: UInt8] = [:]) {
        let start = milliseconds
        last(length) { id, now in (now - start) % 500 < 400 ? loud[id] : nil }
    }

    mutating func last(_ length: Int, speaking: Int...) {
        last(length, Dictionary(uniqueKeysWithValues: speaking.map { ($0, 25) }))
    }

    mutating func last(_ length: Int, _ level: (_ id: Int, _ now: Int) -> UInt8?) {
        for _ in 0..<length / 20 {
            for id in sounds.keys {
                let level = level(id, milliseconds) ?? noise[id] ?? Self.silence
                _ = sounds[id]?.add(AudioLevel(negativeDecibels: level))
            }
            milliseconds += 20
            if milliseconds % 100 == 0 { review() }
        }
    }

    private mutating func review() {
        for id in sounds.keys {
            sounds[id]?.endInterval()
            if let sound = sounds[id] { ranking.heard(SpeakerReport(id, sound), now: now) }
        }
        _ = ranking.review(now: now)
        note()
    }

    private mutating func note() {
        if rows.last?.order != ranking.order { rows.append(Row(milliseconds, ranking.order)) }
    }

    /// Forgets the rows before, but the last.
    mutating func begin() { rows = rows.suffix(1) }

    var changes: [Row] { Array(rows.dropFirst()) }
}

@Suite struct SpeakerRankingTests {
    @Test func `many streams of one participant do not silence another one`() {
        var talk = Conversation(1...1)
        for id in 2...5 { talk.publish(id, of: "p1") }
        talk.last(3000, speaking: 1, 2, 3, 4, 5)
        talk.publish(6)
        talk.last(3000, speaking: 1, 2, 3, 4, 5, 6)
        #expect(talk.ranking.order.prefix(4).contains(6), "\(talk.ranking.order)")
        talk.publish(7)
        talk.publish(8)
        talk.last(6000, speaking: 1, 2, 3, 4, 5, 6, 7, 8)
        #expect(talk.ranking.order.prefix(4).count { $0 > 5 } >= 2, "\(talk.ranking.order)")
    }

    @Test func `the first streams have the places until somebody else speaks`() {
        var room = Conversation(1...7)
        #expect(room.ranking.order == [1, 2, 3, 4, 5])
        room.begin()
        room.last(60_000)
        room.last(10_000, speaking: 2)
        room.last(10_000, speaking: 1, 2, 3, 4)
        #expect(room.changes.isEmpty)
    }

    @Test func `a third one interrupts two that talk, and takes the place of a silent one`() {
        var room = Conversation(1...7)
        room.last(2000)
        room.begin()
        room.last(2000, speaking: 1, 2)
        room.last(2000, speaking: 1, 2, 6)
        room.last(2000, speaking: 7)
        room.last(5000)
        // 400 ms after they begin. The last to be published leaves first.
        #expect(room.changes == [.init(4400, [1, 2, 3, 6, 4]), .init(6400, [1, 2, 7, 6, 3])])
    }

    @Test func `a cough takes no place`() {
        var room = Conversation(1...6)
        room.last(2000)
        room.begin()
        for _ in 0..<10 {
            room.last(260, [6: 5])
            room.last(1740)
        }
        #expect(room.changes.isEmpty)
    }

    @Test func `when all laugh, the places stay`() {
        var room = Conversation(1...9)
        room.last(1000)
        room.last(2000, speaking: 1, 2, 3, 4)
        room.begin()
        room.last(5000, speaking: 1, 2, 3, 4, 5, 6, 7, 8, 9)
        #expect(room.changes.isEmpty)
    }

    @Test func `one that is clearly louder takes the place of the weakest that speaks, one in a second`() {
        var room = Conversation(1...7)
        room.last(2000)
        room.last(2000, [1: 35, 2: 30, 3: 45, 4: 40])
        room.begin()
        room.last(3000, [1: 35, 2: 30, 3: 45, 4: 40, 6: 30, 7: 20])
        // Above -60 dBov: 3 by 15 dB, 4 by 20, 6 by 30, and 7 by 40, which count as 30.
        #expect(room.changes == [.init(4400, [1, 2, 6, 4, 3]), .init(5400, [1, 2, 6, 7, 4])])
    }

    @Test func `a fan takes no place, and the voice above it does`() {
        var room = Conversation(1...5)
        room.publish(6, noise: 40)
        room.last(2000)
        room.begin()
        room.last(20_000)
        #expect(room.changes.isEmpty)
        room.last(1000, [6: 20])
        #expect(room.changes == [.init(22_400, [1, 2, 3, 6, 4])])
    }

    @Test func `music keeps its place while nobody else speaks`() {
        var room = Conversation(1...6)
        room.last(2000)
        room.last(20_000) { id, _ in id == 6 ? 20 : nil }
        #expect(room.ranking.order == [1, 2, 3, 6, 4])
        room.begin()
        room.last(20_000)
        #expect(room.changes.isEmpty)
    }

    @Test func `one that always claims to be loud keeps no place from those who speak`() {
        var room = Conversation(1...8)
        room.last(1000)
        func levels(_ speakers: Int...) -> (Int, Int) -> UInt8? {
            { id, now in id == 8 ? 0 : speakers.contains(id) && now % 500 < 400 ? 25 : nil }
        }
        room.last(2000, levels())
        #expect(room.ranking.order.prefix(4).contains(8))
        room.last(10_000, levels(1, 2, 3))
        room.last(2000, levels(1, 2, 3, 7))
        #expect(room.ranking.order.prefix(4) == [1, 2, 3, 7])
        room.begin()
        room.last(60_000, levels(1))
        #expect(room.changes.isEmpty)
    }

    @Test func `a stream that is turned off in mid-word leaves at once, and comes back after it has spoken`() {
        var room = Conversation(1...6)
        room.last(2000)
        room.last(1050, speaking: 1, 2)
        room.begin()
        room.end(1)
        room.last(1000, speaking: 2)
        room.publish(1)
        room.last(1000, speaking: 2)
        room.last(1000, speaking: 1, 2)
        #expect(
            room.changes == [.init(3040, [2, 3, 4, 5, 6]), .init(5500, [2, 3, 4, 1, 5])])
    }

    @Test func `who was displaced is the one that its successor hears`() {
        var room = Conversation(1...9)
        room.last(2000)
        room.begin()
        for speaker in [6, 7, 8, 9] { room.last(1500, speaking: speaker) }
        #expect(
            room.changes == [
                .init(2400, [1, 2, 3, 6, 4]), .init(3900, [1, 2, 7, 6, 3]), .init(5400, [1, 8, 7, 6, 2]),
                .init(6900, [9, 8, 7, 6, 1]),
            ])
        // The fifth swaps with the one that has been silent for the longest time.
        room.begin()
        room.last(1500, speaking: 1)
        #expect(room.changes == [.init(8400, [9, 8, 7, 1, 6])])
    }

    @Test func `those with fewer slots hear the loudest first, and one that fell silent last`() {
        var room = Conversation(1...5)
        room.last(2000)
        room.begin()
        room.last(3000, [2: 40, 4: 30])
        #expect(room.ranking.loudestFirst.prefix(2) == [4, 2])
        room.last(3000, [2: 30, 4: 30])
        #expect(room.ranking.loudestFirst.prefix(2) == [4, 2], "no louder")
        room.last(3000, [2: 30])
        #expect(room.ranking.loudestFirst.prefix(2) == [2, 4])
        room.last(10_000)
        #expect(room.ranking.loudestFirst == [2, 4, 1, 3, 5], "silence changes nothing")
        #expect(room.changes.isEmpty)
        room.setAlwaysOn(3)
        room.last(1000)
        #expect(room.ranking.loudestFirst == [3, 2, 4, 1, 5])
        room.last(3000, [1: 20])
        #expect(room.ranking.loudestFirst == [3, 1, 2, 4, 5])
    }

    // MARK: - Streams without levels

    @Test func `streams without levels have their places by age`() {
        var room = Conversation(1...7, unmeasured: Set(1...7))
        room.last(60_000)
        #expect(room.rows.last == .init(0, [1, 2, 3, 4, 5]))
        room.end(2)
        #expect(room.ranking.order == [1, 3, 4, 5, 6])
    }

    @Test func `streams without levels rank below those that spoke in the last ten seconds, and above the others`() {
        var room = Conversation(1...6, unmeasured: [5, 6])
        // Nobody has spoken: the one that was published last gives way, once in a second.
        room.last(3000)
        #expect(room.ranking.order.prefix(4) == [1, 2, 6, 5])
        room.begin()
        room.last(1000, speaking: 3, 4)
        room.last(1000, speaking: 3, 4)
        #expect(Set(room.ranking.order.prefix(4)).isSuperset(of: [3, 4]))
        room.last(8000)
        #expect(Set(room.ranking.order.prefix(4)).isSuperset(of: [3, 4]))
        room.last(6000)
        #expect(Set(room.ranking.order.prefix(4)).isSuperset(of: [5, 6]))
    }

    @Test func `those with fewer slots hear streams without levels before silent ones, and after those that speak`() {
        var room = Conversation(1...3, unmeasured: [3])
        #expect(room.ranking.loudestFirst == [1, 2, 3] && room.ranking.pause == SpeakerRanking.pace)
        room.last(1000)
        #expect(room.ranking.loudestFirst == [3, 1, 2] && room.ranking.pause == nil)
        room.last(3000, speaking: 2)
        #expect(room.ranking.loudestFirst == [2, 3, 1] && room.ranking.pause == SpeakerRanking.pace)
        room.last(9000)
        #expect(room.ranking.loudestFirst == [2, 3, 1])
        room.last(3000)
        #expect(room.ranking.loudestFirst == [3, 2, 1] && room.ranking.pause == nil)
    }

    // MARK: - Always on

    @Test func `up to three streams that are always on are heard, the oldest ones, whoever speaks`() {
        var room = Conversation(1...9, alwaysOn: [6, 7, 8, 9])
        room.last(4000)
        #expect(Set(room.ranking.order.prefix(4)).isSuperset(of: [6, 7, 8]))
        room.last(4000, speaking: 1, 2, 3, 4)
        #expect(Set(room.ranking.order.prefix(4)).isSuperset(of: [6, 7, 8]))
        room.end(7)
        room.last(2000, speaking: 1)
        #expect(Set(room.ranking.order.prefix(4)).isSuperset(of: [1, 6, 8, 9]))
    }

    @Test
    func `a stream that becomes always on is heard within a second, and one that is not any longer ranks like others`()
    {
        var room = Conversation(1...7)
        room.last(1000)
        room.last(3000, speaking: 1, 2, 3, 4)
        room.begin()
        room.setAlwaysOn(7)
        #expect(room.changes.map(\.time) == [4000])
        #expect(room.ranking.order.prefix(4).contains(7))
        room.last(5000, speaking: 1, 2, 3, 4)
        #expect(room.ranking.order.prefix(4).contains(7))
        room.setAlwaysOn(7, false)
        room.last(1000, speaking: 1, 2, 3, 4)
        #expect(Set(room.ranking.order.prefix(4)) == [1, 2, 3, 4])
    }

    @Test func `a stream that is always on from the start is heard when the places are a second old`() {
        var room = Conversation(1...4)
        room.publish(5, isAlwaysOn: true)
        room.begin()
        room.last(2000)
        #expect(room.changes == [.init(1000, [1, 2, 3, 5, 4])])
    }

    // MARK: - Bounds

    /// Nobody gives a place up in these rooms, so each change of places is one that the ranking has decided.
    @Test(arguments: 0..<UInt64(Soak.rounds(10, soak: 300)))
    func `in any conversation, there is one change in a second at most, and all places are taken`(seed: UInt64) {
        var random = Seeded(seed)
        let count = Int.random(in: 2...12, using: &random)
        let unmeasured = Set((1...count).filter { _ in Int.random(in: 0..<6, using: &random) == 0 })
        var room = Conversation(1...count, unmeasured: unmeasured)
        room.begin()
        var levels: [Int: UInt8] = [:]
        for _ in 0..<300 {
            let id = Int.random(in: 1...count, using: &random)
            levels[id] = Bool.random(using: &random) ? nil : .random(in: 0...127, using: &random)
            if Int.random(in: 0..<20, using: &random) == 0 { room.setAlwaysOn(id, .random(using: &random)) }
            room.last(20 * Int.random(in: 1...40, using: &random), levels)
            #expect(room.ranking.order.count == min(count, 5))
            #expect(Set(room.ranking.order).count == room.ranking.order.count)
        }
        let times = room.changes.map(\.time)
        #expect(zip(times, times.dropFirst()).allSatisfy { $1 - $0 >= 1000 })
        #expect(count <= 4 ? times.isEmpty : true)
    }
}
