/// A participant, as the audio slots of its room see it.
protocol AudioListener: AnyObject {
    associatedtype Stream: AnyObject

    /// How many streams it hears at most.
    var audioSlots: Int { get }
    var hasFreeAudioSlot: Bool { get }
    /// The streams in its slots.
    var heardStreams: [Stream] { get }
    func publishes(_ stream: Stream) -> Bool
    /// Assigns the stream to the slot of another one, or to a free slot.
    func hear(_ stream: Stream, insteadOf other: Stream?)
    /// Frees the slot of a stream.
    func stopHearing(_ stream: Stream)
}

/// Fills the audio slots of a room's participants: with the streams of the ranking, without a participant's own, and the rest
/// with other streams that it hears already, or that were published first.
///
/// A change of the ranking costs all participants. Everything else costs the participants with a free slot, or a search among
/// the streams that one participant hears or publishes itself.
struct AudioSlots<Listener: AudioListener> {
    typealias Stream = Listener.Stream

    /// Those that can be heard, in the order in which they were published.
    private var streams: [Stream] = []
    /// Those of the ranking, in its order.
    private(set) var ranked: [Stream] = []
    /// The participants with a free slot, in the order in which they got it.
    private var open: [Listener] = []

    /// Sets the streams of the ranking. The owner then lets each participant go on with `update`.
    mutating func rank(_ order: [Stream]) { ranked = order }

    /// Lets a participant hear the streams that it should.
    mutating func update(_ listener: Listener) {
        let heard = listener.heardStreams
        let wanted = wanted(by: listener, hearing: heard)
        var surplus = heard.filter { one in !wanted.contains { $0 === one } }
        for stream in wanted where !heard.contains(where: { $0 === stream }) {
            let other = surplus.popLast()
            listener.hear(stream, insteadOf: other)
        }
        for stream in surplus { listener.stopHearing(stream) }
        let wasOpen = open.firstIndex { $0 === listener }
        let isOpen = listener.hasFreeAudioSlot
        if isOpen, wasOpen == nil { open.append(listener) }
        if !isOpen, let wasOpen { open.remove(at: wasOpen) }
    }

    private func wanted(by listener: Listener, hearing heard: [Stream]) -> [Stream] {
        var wanted: [Stream] = []
        let slots = listener.audioSlots
        func add(_ stream: Stream) {
            guard wanted.count < slots, !listener.publishes(stream), !wanted.contains(where: { $0 === stream })
            else { return }
            wanted.append(stream)
        }
        for stream in ranked { add(stream) }
        // A participant may publish several of them.
        guard wanted.count < slots else { return wanted }
        for stream in heard where streams.contains(where: { $0 === stream }) { add(stream) }
        for stream in streams {
            guard wanted.count < slots else { break }
            add(stream)
        }
        return wanted
    }

    /// Lets those with a free slot hear a new stream.
    mutating func published(_ stream: Stream) {
        streams.append(stream)
        open.removeAll { listener in
            // One that has not followed the last changes yet may hear a stream that was off for a moment.
            guard !listener.publishes(stream), !listener.heardStreams.contains(where: { $0 === stream }) else {
                return false
            }
            listener.hear(stream, insteadOf: nil)
            return !listener.hasFreeAudioSlot
        }
    }

    mutating func left(_ listener: Listener) { open.removeAll { $0 === listener } }

    /// These streams cannot be heard any longer. The owner frees their slots.
    mutating func ended(_ ended: [Stream]) {
        guard !ended.isEmpty else { return }
        streams.removeAll { stream in ended.contains { $0 === stream } }
        ranked.removeAll { stream in ended.contains { $0 === stream } }
    }
}
