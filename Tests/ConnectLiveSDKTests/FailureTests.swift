import Dispatch
import Foundation
import MediaGraph
import RoomClient
import RoomServer
import Synchronization
import Testing
import TestSupport

@testable import ConnectLiveSDK

extension SDKTests {
    /// Failures are reported in one sentence with a stable code, and nothing hangs longer than 10 s.
    @Suite(.timeLimit(.minutes(2)))
    struct Failures {
        private func signIn(_ endpoint: String, secret: String = "x") async -> (Int, String) {
            await ConnectLive.signIn(serviceId: "test", serviceSecret: secret, endpoint: endpoint)
        }

        private func elapsed(_ body: () async throws -> Void) async rethrows -> Double {
            let start = ContinuousClock.now
            try await body()
            return (ContinuousClock.now - start) / .seconds(1)
        }

        @Test func `a wrong secret is refused with the server's code, also in the completion`() async throws {
            try await onStage(isSignedIn: false) { stage in
                let (code, message) = await signIn(stage.server.url, secret: "wrong")
                #expect(code == -11003)
                #expect(message.contains("test"))
                let told: (Int, String) = await withCheckedContinuation { continuation in
                    ConnectLive.signIn(serviceId: "test", serviceSecret: "wrong", endpoint: stage.server.url) {
                        continuation.resume(returning: ($0, $1))
                    }
                }
                #expect(told == (code, message))
            }
        }

        @Test func `signing out ends rooms joined before and after the token's renewal`() async throws {
            try await onStage { _ in
                let early = Client()
                _ = try await early.join("hours")
                let before = try await Authentication.shared.token()
                // An hour later.
                let renewed = try await Authentication.shared.token(now: .now + .seconds(3600))
                #expect(renewed != before)
                #expect(try await Authentication.shared.token() == renewed)
                let late = Client()
                _ = try await late.join("hours")
                ConnectLive.signOut()
                for client in [early, late] {
                    let error = try await client.listener.waitForError()
                    #expect(error.code == -11005 && error.isCritical)
                    #expect(try await client.listener.waitForDisconnected() == .disconnected)
                }
            }
        }

        @Test func `an ICE server that cannot be used ends the connection with its reason`() async throws {
            try await onStage { _ in
                for (server, sentence) in [
                    (IceServer(urls: ["http://a"]), "turn:HOST:PORT"),
                    (IceServer(urls: ["turn:a"], name: "u"), "without a password. Set its name and credential."),
                ] {
                    var config = silent()
                    config.iceServers = [server]
                    let client = Client(config: config)
                    client.room.connect(roomId: "ice")
                    let error = try await client.listener.waitForError()
                    #expect(error.code == 2021)
                    #expect(error.message.contains(sentence), "\(error.message)")
                    let reason = try await client.listener.waitForDisconnected()
                    #expect(reason == .disconnected)
                }
            }
        }

        @Test func `relays alone without a TURN server end the connection with what is missing`() async throws {
            try await onStage { _ in
                var config = silent()
                config.iceTransportPolicy = .relay
                let client = Client(config: config)
                client.room.connect(roomId: "ice")
                let error = try await client.listener.waitForError()
                #expect(error.code == 2045)
            }
        }

        @Test func `an unreachable server is named immediately`() async throws {
            let relay = try await Relay.start(to: nil)
            await relay.kill()
            let seconds = await elapsed {
                let (code, message) = await signIn(relay.url)
                #expect(code == 1105)
                #expect(message.contains(relay.url))
                #expect(message.contains("connection refused"))
                #expect(message.contains("Check the address, and that a room server runs there."))
                #expect(!message.contains("--"), "an application has no command line")
            }
            #expect(seconds < 2)
        }

        @Test func `a server that accepts the connection but never replies times out`() async throws {
            let relay = try await Relay.start(to: nil)
            let seconds = await elapsed {
                let (code, _) = await signIn(relay.url)
                #expect(code == 1105)
            }
            #expect(seconds < 10)
            await relay.kill()
        }

        @Test func `an endpoint that is not a server address is refused`() async {
            let (code, message) = await signIn("gopher://x")
            #expect(code == 1105)
            #expect(message.contains("gopher://x"))
        }

        @Test func `connecting after signing out is reported`() async throws {
            try await onStage { _ in
                ConnectLive.signOut()
                let client = Client()
                client.room.connect(roomId: "r")
                let error = try await client.listener.waitForError()
                #expect(error.code == 1304 && error.isCritical)
                _ = try await client.listener.waitForDisconnected()
            }
        }

        @Test func `a room that the server cannot be reached for is reported`() async throws {
            try await onStage(isSignedIn: false) { stage in
                let relay = try await Relay.start(to: stage.server.port)
                let (code, _) = await ConnectLive.signIn(
                    serviceId: stage.key.id, serviceSecret: stage.key.secret, endpoint: relay.url)
                #expect(code == 0)
                await relay.kill()
                let client = Client()
                client.room.connect(roomId: "r")
                let error = try await client.listener.waitForError()
                #expect(error.code == 1305 && error.isCritical)
                _ = try await client.listener.waitForDisconnected()
            }
        }

        @Test func `a sign-in with a token asks the server, as one with a secret does`() async throws {
            let relay = try await Relay.start(to: nil)
            await relay.kill()
            let (unreachable, _) = await ConnectLive.signIn(serviceId: "test", token: "unchecked", endpoint: relay.url)
            #expect(unreachable == 1105)
            try await onStage(isSignedIn: false) { stage in
                let told = await withCheckedContinuation { continuation in
                    ConnectLive.signIn(serviceId: "test", token: "made-up", endpoint: stage.server.url) {
                        continuation.resume(returning: ($0, $1))
                    }
                }
                #expect(told.0 == -11005 && told.1.contains("unknown or has expired"))
                let own = try await stage.token()
                let (code, message) = await ConnectLive.signIn(
                    serviceId: "test", token: own.token, endpoint: stage.server.url)
                #expect(code == 0, "\(message)")
                let client = Client()
                _ = try await client.join("r")
                try await client.leave()
            }
        }

        @Test func `an unknown token opens no room`() async throws {
            try await onStage(isSignedIn: false) { stage in
                let own = try await stage.token()
                let (code, _) = await ConnectLive.signIn(
                    serviceId: "test", token: own.token, endpoint: stage.server.url)
                #expect(code == 0)
                try await own.signOut()
                let client = Client()
                client.room.connect(roomId: "r")
                let error = try await client.listener.waitForError()
                #expect(error.code == -11005)
                #expect(error.isCritical)
                _ = try await client.listener.waitForDisconnected()
            }
        }

        /// Joins through a relay, so that the path to the server can be cut.
        private func joined(through relay: Relay, _ stage: Stage) async throws -> Client {
            let (code, message) = await ConnectLive.signIn(
                serviceId: stage.key.id, serviceSecret: stage.key.secret, endpoint: relay.url)
            try #require(code == 0, "\(message)")
            let client = Client(config: silent(returnTimeout: 0))
            _ = try await client.join("relayed")
            return client
        }

        @Test func `without a return, a silent server is given up within ten seconds`() async throws {
            try await onStage(isSignedIn: false) { stage in
                let relay = try await Relay.start(to: stage.server.port)
                let client = try await joined(through: relay, stage)
                let engine = try roomEngine(of: client.room)
                relay.freeze()
                engine.cutMedia(true)
                let seconds = try await elapsed {
                    let error = try await client.listener.waitForError(within: 15)
                    #expect(error.code == 1312)
                    #expect(error.isCritical)
                    #expect(error.message.contains(relay.url))
                    #expect(try await client.listener.waitForDisconnected() == .disconnected)
                }
                #expect(seconds > 6 && seconds < 10)
                #expect(client.listener.names.suffix(2) == ["error", "disconnected"])
                await relay.kill()
            }
        }

        @Test func `without a return, a server that dies is detected immediately`() async throws {
            try await onStage(isSignedIn: false) { stage in
                let relay = try await Relay.start(to: stage.server.port)
                let client = try await joined(through: relay, stage)
                await relay.kill()
                let error = try await client.listener.waitForError()
                // By the end of the connection, not by its silence.
                #expect(error.code == 1312 && error.message.contains("closed the connection"), "\(error.message)")
                _ = try await client.listener.waitForDisconnected()
                #expect(client.listener.names.count { $0 == "disconnected" } == 1)
            }
        }

        @Test func `leaving during the connection leaves the room`() async throws {
            try await onStage { _ in
                let client = Client()
                client.room.connect(roomId: "hasty")
                client.room.disconnect()
                let reason = try await client.listener.waitForDisconnected()
                #expect(reason == .disconnected)
                #expect(!client.listener.names.contains("error"))
                client.room.disconnect()
                // A room that has ended does not come back.
                client.room.connect(roomId: "hasty")
                #expect(try await client.listener.waitForError().code == 1302)
                #expect(client.listener.names.count { $0 == "disconnected" } == 1)
            }
        }

        @Test func `a missing file is reported when it is published, and the room continues`() async throws {
            try await onStage { _ in
                let client = Client()
                _ = try await client.join("files")
                var config = Config()
                config.mediaOptions.source = .file
                config.mediaOptions.fileName = "/nonexistent/clip.mp4"
                let media = try #require(ConnectLive.createLocalMedia(config: config))
                try client.room.publish(media)
                let error = try await client.listener.waitForError()
                #expect(!error.isCritical)
                #expect(error.message.contains("/nonexistent/clip.mp4"))
                #expect(error.message.contains("[file.not-found]"))
                #expect(client.room.isConnected)
                await #expect(throws: ConnectLiveError.self) { try await media.start() }
                try await client.leave()
            }
        }

        @Test func `subscribing to a missing video, or twice to one, is refused`() async throws {
            try await onStage { _ in
                let viewer = Client()
                #expect(code(await viewer.room.subscribe(videoId: 1)) == 1325)
                _ = try await viewer.join("refusals")
                #expect(code(await viewer.room.subscribe(videoId: 99)) == 1328)
                #expect(code(await viewer.room.unsubscribe(videoId: 99)) == 1328)
                viewer.room.subscribe(videoIds: [98, 99])
                try await requireEventually("two errors") { viewer.listener.names.count { $0 == "error" } == 2 }
                let publisher = Client()
                _ = try await publisher.join("refusals")
                let media = ConnectLive.createLocalMedia(MediaRequest.testPattern(frames: 0))
                try publisher.room.publish(media)
                #expect(throws: ConnectLiveError.self) { try publisher.room.publish(media) }
                #expect(throws: ConnectLiveError.self) { try publisher.room.publish(nil) }
                let video = try await viewer.listener.waitForVideo()
                #expect(code(await viewer.room.subscribe(videoId: video.id)) == nil)
                #expect(code(await viewer.room.subscribe(videoId: video.id)) == 1321)
                let told: Int? = await withCheckedContinuation { continuation in
                    viewer.room.unsubscribe(videoId: video.id) { continuation.resume(returning: code($0)) }
                }
                #expect(told == nil)
                #expect(code(await viewer.room.unsubscribe(videoId: video.id)) == 1331)
                try await viewer.leave()
                try await publisher.leave()
                #expect(code(await viewer.room.subscribe(videoId: video.id)) == 1325)
                await media.stop()
            }
        }

        private func code(_ result: Result<Void, any Error>) -> Int? {
            if case .failure(let error) = result { return (error as? ConnectLiveError)?.code ?? -1 }
            return nil
        }
    }
}
