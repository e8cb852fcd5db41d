import ConnectLiveSDK
import Dispatch
import MediaGraph
import RoomProtocol
import Synchronization
import Testing
import TestSupport

@testable import ClientCore
@testable import ConnectLiveSDK
@testable import RoomClient

extension SDKTests {
    /// How a room ends, and its delegate's events.
    @Suite(.timeLimit(.minutes(1)))
    struct Leaving {
        @Test func `leaving is not an error if the server closes the connection first`() async throws {
            try await onStage { _ in
                let client = Client()
                _ = try await client.join("race")
                let token = try await Authentication.shared.token()
                let loop = try await HeldLoop(of: client.room)
                client.room.disconnect()
                // The loop sends "leave" only after the server has signed out the token.
                try await token.signOut()
                loop.release()
                #expect(try await client.listener.waitForDisconnected() == .disconnected)
                #expect(!client.listener.names.contains("error"))
            }
        }

        @Test(arguments: [(Closing.Reason.destroyed, DisconnectReason.destroyed), (.kicked, .kicked)])
        func `a room that the server ends is not an error`(
            sent: Closing.Reason, expected: DisconnectReason
        ) async throws {
            try await onStage { _ in
                let client = Client(config: silent(returnTimeout: 0))
                _ = try await client.join("ended")
                let engine = try roomEngine(of: client.room)
                let closing = Closing(reason: sent, error: RoomError(.roomReleased, "The room is over."))
                engine.post { $0.connection.handle(ServerMessage.closed(closing)) }
                #expect(try await client.listener.waitForDisconnected() == expected)
                #expect(!client.listener.names.contains("error"))
            }
        }

        @Test func `a room that is released during a token renewal is left`() async throws {
            let (gate, opener) = AsyncStream<Void>.makeStream()
            let isFirst = Mutex(true)
            let authentication = Authentication(
                obtain: { (_) async throws(RoomError) in
                    let isFirst = isFirst.withLock { isFirst in
                        defer { isFirst = false }
                        return isFirst
                    }
                    guard !isFirst else {
                        let token = AccessToken(address: try ServerAddress("ws://127.0.0.1:1"), token: "old")
                        return .init(token: token, renewal: .now - .seconds(1))
                    }
                    for await _ in gate {}
                    throw RoomError(.notSignedIn, "Nobody is signed in.")
                }, revoke: { _ in })
            try await authentication.finish(authentication.begin(.init(serviceId: "a", secret: "b", endpoint: "")))
            let listener = Listener()
            var room: RoomSession? = RoomSession(
                delegate: listener, authentication: authentication, makeLink: { RoomEngine(onEvent: $0) })
            weak let remembered = room
            room?.connect(roomId: "forgotten")
            room = nil
            #expect(remembered == nil)
            opener.finish()
        }

        @Test func `local media can be published in another room after its room ended`() async throws {
            try await onStage { _ in
                let media = ConnectLive.createLocalMedia(MediaRequest.testPattern(frames: 0))
                let first = Client()
                _ = try await first.join("first")
                try first.room.publish(media)
                try await first.listener.waitForLocalMedia()
                try await first.leave()
                let viewer = Client()
                _ = try await viewer.join("second")
                let second = Client()
                _ = try await second.join("second")
                try second.room.publish(media)
                let video = try await viewer.listener.waitForVideo()
                let watcher = try await viewer.watch(video)
                try await requireEventually("frames in the second room") { watcher.sights.count >= 5 }
                try await viewer.leave()
                try await second.leave()
                await media.stop()
            }
        }
    }

    /// Rooms that a sign-out ends.
    @Suite(.timeLimit(.minutes(1)))
    struct SigningOut {
        @Test func `signing out also ends rooms of an earlier sign-in`() async throws {
            try await onStage { stage in
                let client = Client()
                _ = try await client.join("earlier")
                try await stage.signIn()
                ConnectLive.signOut()
                #expect(try await client.listener.waitForError().code == -11005)
                _ = try await client.listener.waitForDisconnected()
            }
        }
    }
}

/// Holds the thread of all rooms of the process, so that a test can determine the order of events.
private struct HeldLoop {
    private let gate = DispatchSemaphore(value: 0)

    /// Returns when the thread is held.
    init(of room: any Room) async throws {
        let engine = try roomEngine(of: room)
        let gate = gate
        await withCheckedContinuation { continuation in
            engine.post { _ in
                continuation.resume()
                gate.wait()
            }
        }
    }

    func release() { gate.signal() }
}
