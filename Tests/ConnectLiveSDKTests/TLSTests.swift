import Foundation
import RoomClient
import RoomServer
import TestSupport
import Testing

@testable import ConnectLiveSDK

extension SDKTests {
    /// Rooms of a server with TLS.
    @Suite(.timeLimit(.minutes(1))) struct TLSTests {
        private let folder = TemporaryFolder()

        /// Runs the test with the authority of the server's certificate.
        private func onStage(
            _ made: MadeCertificate, _ body: (Stage) async throws -> Void
        ) async throws {
            let stage = try await Stage(
                isSignedIn: false, tls: TLSFiles(certificate: made.certificate, key: made.key))
            ConnectLive.certificateAuthorities = made.authority
            defer { ConnectLive.certificateAuthorities = nil }
            do {
                try await body(stage)
            } catch {
                await stage.end()
                throw error
            }
            await stage.end()
        }

        @Test func `over TLS, a publisher whose connection drops goes on, and nobody sees it leave`() async throws {
            try await onStage(try MadeCertificate.chain(in: folder.path)) { stage in
                #expect(stage.server.url.hasPrefix("https://127.0.0.1:"))
                try await stage.signIn()
                let viewer = Client()
                _ = try await viewer.join("encrypted")
                let relay = try await Relay.start(to: stage.server.port)
                let (code, message) = await ConnectLive.signIn(
                    serviceId: stage.key.id, serviceSecret: stage.key.secret, endpoint: relay.tlsURL + "/some/prefix")
                try #require(code == 0, "\(message)")
                let publisher = Client()
                _ = try await publisher.join("encrypted")
                let media = ConnectLive.createLocalMedia(MediaRequest.testPattern(frames: 0))
                try publisher.room.publish(media)
                try await publisher.listener.waitForLocalMedia()
                let video = try await viewer.listener.waitForVideo()
                let watcher = try await viewer.watch(video)
                for count in 1...2 {
                    await relay.drop()
                    try await requireEventually(within: 20, "the return") {
                        publisher.listener.names.count { $0 == "reconnected" } == count
                    }
                    let before = watcher.sights.count
                    try await requireEventually("pictures") { watcher.sights.count >= before + 5 }
                }
                for case .reconnected(let wasResumed) in publisher.listener.events { #expect(wasResumed) }
                #expect(!viewer.listener.names.contains("left"))
                try await publisher.leave()
                try await viewer.leave()
                await media.stop()
                await relay.kill()
            }
        }

        @Test func `a sign-in names what is wrong with the server's certificate`() async throws {
            try await onStage(try MadeCertificate.chain(in: folder.path, names: "DNS:rooms.example")) { stage in
                func result(_ endpoint: String) async -> ConnectLive.ProvisionResult {
                    await ConnectLive.signIn(
                        serviceId: stage.key.id, serviceSecret: stage.key.secret, endpoint: endpoint)
                }
                let named = await result(stage.server.url)
                #expect(named.0 == 1105 && named.1.hasSuffix("[server.certificate]"), "\(named)")
                #expect(named.1.contains("is not for 127.0.0.1 but for rooms.example"), "\(named)")
                ConnectLive.certificateAuthorities = nil
                let unknown = await result(stage.server.url)
                #expect(unknown.0 == 1105 && unknown.1.contains("not signed by an authority"), "\(unknown)")
                let plain = await result("ws://127.0.0.1:\(stage.server.port)")
                #expect(plain.0 == 1105 && plain.1.contains("TLS alone"), "\(plain)")
                ConnectLive.certificateAuthorities = folder.file("none.pem")
                let missing = await result(stage.server.url)
                #expect(missing.0 == 2021 && missing.1.contains("none.pem"), "\(missing)")
            }
        }

        @Test func `a room whose server's certificate is refused ends with that error`() async throws {
            try await onStage(try MadeCertificate.chain(in: folder.path)) { stage in
                let token = AccessToken(address: try ServerAddress(stage.server.url), token: "never sent")
                let authentication = Authentication(
                    obtain: { _ in .init(token: token) }, revoke: { _ in })
                try await authentication.finish(
                    authentication.begin(.init(serviceId: "x", endpoint: stage.server.url)))
                let listener = Listener()
                let room = RoomSession(
                    delegate: listener, authentication: authentication, makeLink: { RoomEngine(onEvent: $0) })
                room.connect(roomId: "encrypted")
                let error = try await listener.waitForError()
                #expect(error.code == 2015 && error.isCritical, "\(error)")
            }
        }
    }
}
