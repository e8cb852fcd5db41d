import ConnectLiveSDK
import Dispatch
import RoomProtocol
import Synchronization
import Testing
import TestSupport

@testable import ConnectLiveSDK
@testable import ClientCore
@testable import RoomClient

extension SDKTests {
    /// When the participants of a room change.
    @Suite(.timeLimit(.minutes(1)))
    struct ParticipantChanges {
        @Test func `participants and their streams change with their callbacks, not before`() async throws {
            try await onStage { _ in
                let gate = DispatchSemaphore(value: 0)
                let queue = DispatchQueue(label: "application")
                ConnectLive.callbackQueue = queue
                queue.async { gate.wait() }
                defer {
                    gate.signal()
                    ConnectLive.callbackQueue = nil
                }
                let client = Client()
                let seen = Mutex<[String]>([])
                client.listener.react { [room = client.room] event in
                    let others = room.remoteParticipants.values
                    let videos = others.flatMap { $0.videos.keys }
                    let waits = others.flatMap { $0.videos.values }.contains { $0.state != .live } ? " waits" : ""
                    seen.withLock { $0.append("\(event.name): \(others.map(\.id)) \(videos)\(waits)") }
                }
                client.room.connect(roomId: "changes")
                try await requireEventually("the connection") { client.room.isConnected }
                let stream = StreamInfo(id: 900, media: .video, codec: "VP8", extraValue: "")
                let engine = try #require(client.room as? RoomSession).engine
                await withCheckedContinuation { continuation in
                    engine.post { engine in
                        let ann = ParticipantInfo(id: "ann", streams: [])
                        engine.connection.handle(.participantEntered(ParticipantEntered(participant: ann)))
                        engine.connection.handle(.streamPublished(StreamPublished(participant: "ann", stream: stream)))
                        for state in [.waiting("camera lost"), .live] as [RoomProtocol.StreamState] {
                            engine.connection.handle(
                                .streamChanged(StreamChanged(participant: "ann", stream: 900, state: state)))
                        }
                        engine.connection.handle(.participantLeft(ParticipantReference(participant: "ann")))
                        continuation.resume()
                    }
                }
                #expect(client.room.remoteParticipants.isEmpty)
                gate.signal()
                try await requireEventually("the last event") { client.listener.names.last == "left" }
                #expect(
                    seen.withLock { $0.filter { !$0.hasPrefix("progress") } } == [
                        "connected: [] []", "entered: [\"ann\"] []", "video: [\"ann\"] [900]",
                        "videoChanged: [\"ann\"] [900] waits", "videoChanged: [\"ann\"] [900]",
                        "videoGone: [\"ann\"] [900]", "left: [] []",
                    ])
                try await client.leave()
            }
        }
    }
}
