import TestSupport
import Testing

@testable import ServerCore

/// An audio stream.
private final class Sound {
    let publisher: Listener
    init(_ publisher: Listener) { self.publisher = publisher }
}

private final class Work {
    var questions = 0
}

/// Four slots, a count of the room's queries, and one of changes.
private final class Listener: AudioListener {
    private(set) var slots: [Sound?] = Array(repeating: nil, count: 4)
    private(set) var changes = 0
    /// Fewer on a narrow link.
    var audioSlots = 4
    private let work: Work

    init(_ work: Work) { self.work = work }

    var heardStreams: [Sound] {
        work.questions += 1
        return slots.compactMap { $0 }
    }

    var hasFreeAudioSlot: Bool {
        work.questions += 1
        return slots.count { $0 != nil } < audioSlots
    }

    func publishes(_ stream: Sound) -> Bool {
        work.questions += 1
        return stream.publisher === self
    }

    func hear(_ stream: Sound, insteadOf other: Sound?) {
        work.questions += 1
        changes += 1
        guard let slot = slots.firstIndex(where: { $0 === other }) else { return }
        slots[slot] = stream
    }

    func stopHearing(_ stream: Sound) {
        changes += 1
        for slot in slots.indices where slots[slot] === stream { slots[slot] = nil }
    }

    func isHearing(_ stream: Sound) -> Bool { slots.contains { $0 === stream } }
}

@Suite struct AudioSlotsTests {
    /// The most queries when a participant enters and publishes, and when one leaves, after 10 are there.
    private func work(in size: Int) -> (entering: Int, leaving: Int) {
        let work = Work()
        var slots = AudioSlots<Listener>()
        var listeners: [Listener] = []
        var sounds: [Sound] = []
        var entering = 0
        for index in 0..<size {
            work.questions = 0
            let listener = Listener(work)
            let sound = Sound(listener)
            slots.update(listener)
            slots.published(sound)
            listeners.append(listener)
            sounds.append(sound)
            if sounds.count <= 5 {
                slots.rank(sounds)
                for listener in listeners { slots.update(listener) }
            }
            if index >= 10 { entering = max(entering, work.questions) }
        }
        #expect(listeners[0].heardStreams.map(ObjectIdentifier.init) == sounds[1...4].map(ObjectIdentifier.init))
        #expect(listeners[9].heardStreams.map(ObjectIdentifier.init) == sounds[0...3].map(ObjectIdentifier.init))
        // The second leaves: each participant that heard it hears the next.
        slots.left(listeners[1])
        slots.ended([sounds[1]])
        slots.rank([sounds[0]] + sounds[2...5])
        var leaving = 0
        for listener in listeners where listener !== listeners[1] {
            listener.stopHearing(sounds[1])
            work.questions = 0
            slots.update(listener)
            leaving = max(leaving, work.questions)
            #expect(listener.heardStreams.count == 4)
        }
        return (entering, leaving)
    }

    @Test func `a stream that is off for a moment is not heard twice`() {
        let work = Work()
        var slots = AudioSlots<Listener>()
        let (speaker, listener) = (Listener(work), Listener(work))
        let sound = Sound(speaker)
        for one in [speaker, listener] { slots.update(one) }
        slots.published(sound)
        // The listener has not followed yet.
        slots.ended([sound])
        slots.published(sound)
        #expect(listener.slots.count { $0 === sound } == 1)
    }

    @Test func `slots are filled with the same work in a room of 50 and of 1000`() {
        let small = work(in: 50)
        let large = work(in: 1000)
        #expect(large == small)
        #expect(small.entering < 40)
        #expect(small.leaving < 40)
    }

    @Test func `an empty slot is filled by the next stream, but not for participants that left`() {
        let work = Work()
        var slots = AudioSlots<Listener>()
        let (first, second, third) = (Listener(work), Listener(work), Listener(work))
        for listener in [first, second, third] { slots.update(listener) }
        slots.left(second)
        slots.published(Sound(third))
        #expect(first.heardStreams.count == 1)
        #expect(second.heardStreams.isEmpty)
        #expect(third.heardStreams.isEmpty)
    }

    @Test func `a change of the ranking is one change for each listener, and streams that stay keep their slots`() {
        let work = Work()
        var slots = AudioSlots<Listener>()
        let listeners = (0..<8).map { _ in Listener(work) }
        let sounds = listeners.map { Sound($0) }
        for listener in listeners { slots.update(listener) }
        for sound in sounds { slots.published(sound) }
        func rank(_ order: [Int]) {
            slots.rank(order.map { sounds[$0] })
            for listener in listeners { slots.update(listener) }
        }
        rank([0, 1, 2, 3, 4])
        let before = listeners.map { ($0.changes, $0.slots) }
        rank([0, 1, 6, 3, 2])
        for (number, listener) in listeners.enumerated() {
            #expect(listener.changes <= before[number].0 + 1, "\(number)")
            for (slot, sound) in listener.slots.enumerated() where sound !== sounds[6] && number < 4 && number != 2 {
                #expect(sound === before[number].1[slot] || before[number].1[slot] === sounds[4])
            }
        }
        #expect(listeners[7].slots.map { slot in sounds.firstIndex { $0 === slot } } == [0, 1, 6, 3])
    }

    @Test func `on a narrow link, the first of the ranking are heard, and the others again when it carries more`() {
        let work = Work()
        var slots = AudioSlots<Listener>()
        let (listener, speaker) = (Listener(work), Listener(work))
        let sounds = (0..<5).map { _ in Sound(speaker) }
        slots.update(listener)
        for sound in sounds { slots.published(sound) }
        slots.rank(sounds)
        listener.audioSlots = 2
        slots.update(listener)
        #expect(listener.heardStreams.count == 2 && listener.isHearing(sounds[0]) && listener.isHearing(sounds[1]))
        slots.published(Sound(speaker))
        #expect(listener.heardStreams.count == 2, "a new one does not take a slot that the link does not carry")
        slots.rank([sounds[3], sounds[1], sounds[0], sounds[2], sounds[4]])
        slots.update(listener)
        #expect(listener.heardStreams.count == 2 && listener.isHearing(sounds[3]) && listener.isHearing(sounds[1]))
        listener.audioSlots = 4
        slots.update(listener)
        #expect(listener.heardStreams.count == 4)
    }

    /// Rooms in which everyone publishes some streams, and participants, streams and the ranking change at random.
    @Test(arguments: 0..<UInt64(Soak.rounds(5, soak: 20)))
    func `nobody hears itself or a stream twice, and no slot is free while a stream waits`(seed: UInt64) {
        var random = Seeded(seed)
        let work = Work()
        var slots = AudioSlots<Listener>()
        var listeners: [Listener] = []
        var sounds: [Sound] = []
        var ranked: [Sound] = []
        func rank(_ order: [Sound]) {
            ranked = order
            slots.rank(order)
            for listener in listeners { slots.update(listener) }
        }
        func refill() {
            rank(ranked + sounds.filter { one in !ranked.contains { $0 === one } }.prefix(5 - ranked.count))
        }
        func end(_ ended: [Sound]) {
            sounds.removeAll { one in ended.contains { $0 === one } }
            ranked.removeAll { one in ended.contains { $0 === one } }
            slots.ended(ended)
            for listener in listeners {
                for sound in ended where listener.isHearing(sound) { listener.stopHearing(sound) }
            }
            refill()
        }
        for step in 0..<Soak.rounds(200, soak: 2000) {
            switch Int.random(in: 0..<10, using: &random) {
            case 0, 1:
                let new = Listener(work)
                listeners.append(new)
                slots.update(new)
            case 2...4:
                guard let publisher = listeners.randomElement(using: &random) else { continue }
                let sound = Sound(publisher)
                sounds.append(sound)
                slots.published(sound)
                refill()
            case 5: if let sound = sounds.randomElement(using: &random) { end([sound]) }
            case 6:
                guard listeners.count > 3, let gone = listeners.randomElement(using: &random) else { continue }
                listeners.removeAll { $0 === gone }
                slots.left(gone)
                end(sounds.filter { $0.publisher === gone })
            case 7:
                // Its link has become narrower or wider.
                guard let listener = listeners.randomElement(using: &random) else { continue }
                listener.audioSlots = Int.random(in: 1...4, using: &random)
                slots.update(listener)
            default: rank(Array(sounds.shuffled(using: &random).prefix(5)))
            }
            let problems = listeners.flatMap { Self.problems(of: $0, sounds: sounds, ranked: ranked) }
            #expect(problems == [], "step \(step)")
        }
    }

    private static func problems(of listener: Listener, sounds: [Sound], ranked: [Sound]) -> [String] {
        let heard = listener.heardStreams
        let first = ranked.filter { $0.publisher !== listener }.prefix(listener.audioSlots)
        let hasEnded = { (one: Sound) in !sounds.contains { $0 === one } }
        let rules: [(isBroken: Bool, problem: String)] = [
            (heard.contains { $0.publisher === listener }, "it hears itself"),
            (Set(heard.map(ObjectIdentifier.init)).count < heard.count, "it hears a stream twice"),
            (heard.contains(where: hasEnded), "it hears a stream that has ended"),
            (
                heard.count != min(listener.audioSlots, sounds.count { $0.publisher !== listener }),
                "not all of its slots are used"
            ),
            (!first.allSatisfy { listener.isHearing($0) }, "it does not hear the first of the ranking"),
        ]
        return rules.filter { $0.isBroken }.map { $0.problem }
    }
}
