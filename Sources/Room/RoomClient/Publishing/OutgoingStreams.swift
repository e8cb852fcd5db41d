internal import RoomProtocol
internal import Synchronization

/// The streams of a node's inputs, and those that wait for their next input.
final class OutgoingStreams: Sendable {
    private let lasting = Mutex<[OutgoingStream]>([])

    /// The streams that last beyond their inputs.
    var all: [OutgoingStream] { lasting.withLock { $0 } }

    /// A stream for another input: one that lasts, or a new one. One with an input passes to the new input when that is shown.
    func stream(for codec: Codec) -> OutgoingStream {
        let streams = all.filter { $0.codec == codec }
        return streams.first { !$0.isFed } ?? streams.first ?? OutgoingStream(codec)
    }

    /// The stream of a medium: the one with an input, if an edit is replacing another one.
    func stream(of media: StreamMedia) -> OutgoingStream? {
        let streams = all.filter { $0.codec.media == media }
        return streams.first(where: \.isFed) ?? streams.first
    }

    func lasts(_ stream: OutgoingStream) -> Bool { all.contains { $0 === stream } }

    /// Keeps streams beyond their inputs.
    func keep(_ streams: [OutgoingStream]) {
        lasting.withLock { lasting in
            for stream in streams where !lasting.contains(where: { $0 === stream }) { lasting.append(stream) }
        }
    }

    /// Keeps those of the streams no longer that have no input, and returns them.
    func drop(unfedOf streams: [OutgoingStream]) -> [OutgoingStream] {
        lasting.withLock { lasting in
            let dropped = streams.filter { !$0.isFed }
            lasting.removeAll { stream in dropped.contains { $0 === stream } }
            return dropped
        }
    }

    /// Ends the streams that have neither an input nor a room.
    func dropUnused() {
        lasting.withLock { lasting in lasting.removeAll { !$0.isFed && !$0.isPublished } }
    }
}
