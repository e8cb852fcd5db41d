/// A participant, as the audio slots of its room see it.
protocol AudioListener: AnyObject {
    associatedtype Stream: AnyObject

    var hasFreeAudioSlot: Bool { get }
    func publishes(_ stream: Stream) -> Bool
    func isHearing(_ stream: Stream) -> Bool
    /// Assigns the stream to a free slot.
    func hear(_ stream: Stream)
}

/// Fills the audio slots of a room's participants with the streams that were published first.
///
/// A published stream costs the participants that have a free slot. A free slot costs a search among the streams that
/// its participant hears or publishes itself, and among the participants with a free slot.
struct AudioSlots<Listener: AudioListener> {
    /// In the order in which they were published.
    private var streams: [Listener.Stream] = []
    /// The participants with a free slot, in the order in which they got it.
    private var open: [Listener] = []

    /// Fills the free slots of a participant.
    mutating func fill(_ listener: Listener) {
        open.removeAll { $0 === listener }
        for stream in streams where !listener.publishes(stream) && !listener.isHearing(stream) {
            guard listener.hasFreeAudioSlot else { return }
            listener.hear(stream)
        }
        if listener.hasFreeAudioSlot { open.append(listener) }
    }

    mutating func published(_ stream: Listener.Stream) {
        streams.append(stream)
        open.removeAll { listener in
            guard !listener.publishes(stream) else { return false }
            listener.hear(stream)
            return !listener.hasFreeAudioSlot
        }
    }

    mutating func left(_ listener: Listener) { open.removeAll { $0 === listener } }

    mutating func ended(_ ended: [Listener.Stream]) {
        guard !ended.isEmpty else { return }
        streams.removeAll { stream in ended.contains { $0 === stream } }
    }
}
