import RoomProtocol
import Synchronization
import TestSupport
import Testing

@testable import RoomClient

/// A participant that sees the others and their streams come and go.
final class Onlooker: Sendable {
    struct Seen {
        var isConnected = false
        var entered = 0
        var left = 0
        /// All that were published, in order.
        var published: [StreamMedia] = []
        /// Those that the room has now, by their ids.
        var streams: [Int: StreamMedia] = [:]

        var media: [StreamMedia] { streams.sorted { $0.key < $1.key }.map(\.value) }
    }

    private let state = Mutex(Seen())

    var seen: Seen { state.withLock { $0 } }

    private func take(_ event: RoomEvent) {
        state.withLock { seen in
            switch event {
            case .connected: seen.isConnected = true
            case .participantEntered: seen.entered += 1
            case .participantLeft: seen.left += 1
            case .streamPublished(_, let stream):
                seen.published.append(stream.media)
                seen.streams[stream.id] = stream.media
            case .streamUnpublished(_, let stream): seen.streams[stream.id] = nil
            default: break
            }
        }
    }

    /// An engine in the room that reports to this observer.
    func enter(_ stage: RoomStage) async throws -> RoomEngine {
        let engine = RoomEngine { [weak self] in self?.take($0) }
        engine.connect(to: try RoomName("room"), with: try await stage.token())
        try await requireEventually("the onlooker is connected") { self.seen.isConnected }
        return engine
    }
}
