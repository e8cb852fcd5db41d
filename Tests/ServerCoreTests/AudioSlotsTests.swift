import Testing

@testable import ServerCore

@Suite struct AudioSlotsTests {
    private final class Sound {
        let publisher: Listener
        init(_ publisher: Listener) { self.publisher = publisher }
    }

    private final class Work {
        var questions = 0
    }

    /// Four slots, and a count of the room's queries.
    private final class Listener: AudioListener {
        var heard: [Sound] = []
        private let work: Work

        init(_ work: Work) { self.work = work }

        var hasFreeAudioSlot: Bool {
            work.questions += 1
            return heard.count < 4
        }

        func publishes(_ stream: Sound) -> Bool {
            work.questions += 1
            return stream.publisher === self
        }

        func isHearing(_ stream: Sound) -> Bool {
            work.questions += 1
            return heard.contains { $0 === stream }
        }

        func hear(_ stream: Sound) {
            work.questions += 1
            if heard.count < 4 { heard.append(stream) }
        }
    }

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
            slots.fill(listener)
            slots.published(sound)
            listeners.append(listener)
            sounds.append(sound)
            if index >= 10 { entering = max(entering, work.questions) }
        }
        #expect(listeners[0].heard.map(ObjectIdentifier.init) == sounds[1...4].map(ObjectIdentifier.init))
        #expect(listeners[9].heard.map(ObjectIdentifier.init) == sounds[0...3].map(ObjectIdentifier.init))
        // The second leaves: each participant that heard it hears the next.
        slots.left(listeners[1])
        slots.ended([sounds[1]])
        let others = listeners.filter { listener in listener.heard.contains { $0 === sounds[1] } }
        var leaving = 0
        for listener in others {
            listener.heard.removeAll { $0 === sounds[1] }
            work.questions = 0
            slots.fill(listener)
            leaving = max(leaving, work.questions)
        }
        #expect(others.count == size - 1)
        #expect(others.allSatisfy { $0.heard.count == 4 })
        return (entering, leaving)
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
        for listener in [first, second, third] { slots.fill(listener) }
        slots.left(second)
        slots.published(Sound(third))
        #expect(first.heard.count == 1)
        #expect(second.heard.isEmpty)
        #expect(third.heard.isEmpty)
    }
}
