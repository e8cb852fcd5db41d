import RoomClient
import RoomServer
import Testing
import TestSupport

@testable import ConnectLiveSDK

extension SDKTests {
    /// Rooms that lose their server and come back, over sockets.
    struct RoamingTests {
        /// A publisher behind a relay, and a viewer without one.
        private func call(
            _ stage: Stage, _ body: (Relay, _ publisher: Client, _ viewer: Client, Watcher) async throws -> Void
        ) async throws {
            try await stage.signIn()
            let viewer = Client()
            _ = try await viewer.join("roaming")
            // The last sign-in tells where connections return to.
            let relay = try await Relay.start(to: stage.server.port)
            let (code, message) = await ConnectLive.signIn(
                serviceId: stage.key.id, serviceSecret: stage.key.secret, endpoint: relay.url)
            try #require(code == 0, "\(message)")
            let publisher = Client()
            _ = try await publisher.join("roaming")
            let media = ConnectLive.createLocalMedia(MediaRequest.testPattern(frames: 0))
            try publisher.room.publish(media)
            try await publisher.listener.waitForLocalMedia()
            _ = try await viewer.listener.waitForVideo()
            let watcher = try await watch(in: viewer)
            try await requireEventually("pictures") { watcher.sights.count >= 5 }
            try await body(relay, publisher, viewer, watcher)
            try await publisher.leave()
            try await viewer.leave()
            await media.stop()
            await relay.kill()
        }

        private func watch(in viewer: Client) async throws -> Watcher {
            try await viewer.watch(#require(viewer.room.remoteParticipants.values.first?.videos.values.first))
        }

        private func returned(_ client: Client, count: Int = 1) async throws {
            try await requireEventually(within: 20, "the return") {
                client.listener.names.count { $0 == "reconnected" } == count
            }
        }

        @Test func `a publisher whose connection drops goes on, and nobody sees it leave`() async throws {
            try await onStage(isSignedIn: false) { stage in
                try await call(stage) { relay, publisher, viewer, watcher in
                    let (id, videos) = (publisher.room.localParticipant.id, publisher.room.localParticipant.videos.keys)
                    for count in 1...3 {
                        let before = watcher.sights.count
                        await relay.drop()
                        try await returned(publisher, count: count)
                        try await requireEventually("frames") { watcher.sights.count >= before + 10 }
                    }
                    #expect(publisher.room.localParticipant.id == id)
                    #expect(publisher.room.localParticipant.videos.keys == videos)
                    #expect(publisher.room.isConnected)
                    for case .reconnected(let wasResumed) in publisher.listener.events { #expect(wasResumed) }
                    let names = viewer.listener.names
                    #expect(names.count { $0 == "entered" } == 1)
                    #expect(!names.contains("left") && !names.contains("videoGone"))
                    #expect(!publisher.listener.names.contains("error"))
                    // Frames in order, each once.
                    let codes = watcher.sights.compactMap(\.barCode)
                    #expect(zip(codes, codes.dropFirst()).allSatisfy { $0 < $1 })
                }
            }
        }

        @Test func `a call in flight completes after the return`() async throws {
            try await onStage(isSignedIn: false) { stage in
                try await call(stage) { relay, publisher, viewer, watcher in
                    let second = ConnectLive.createLocalMedia(MediaRequest.testPattern(frames: 0))
                    relay.freeze()
                    try publisher.room.publish(second)
                    // Whether the request has left or not: it is executed once.
                    await relay.drop()
                    relay.thaw()
                    try await returned(publisher)
                    try await requireEventually(within: 20, "both media") {
                        publisher.listener.names.count { $0 == "localPublished" } == 2
                    }
                    let participant = try #require(viewer.room.remoteParticipants.values.first)
                    try await requireEventually("both videos") { participant.videos.count == 2 }
                    #expect(!publisher.listener.names.contains("error"))
                    await second.stop()
                }
            }
        }

        @Test func `after a restart of the server, clients join and publish again by themselves`() async throws {
            var stage = try await Stage()
            let port = stage.server.port
            let (publisher, viewer) = (Client(), Client())
            _ = try await publisher.join("restart")
            let media = ConnectLive.createLocalMedia(MediaRequest.testPattern(frames: 0))
            try publisher.room.publish(media)
            try await publisher.listener.waitForLocalMedia()
            _ = try await viewer.join("restart")
            let id = publisher.room.localParticipant.id
            await stage.server.stop()
            stage = try await Stage(isSignedIn: false, port: port)
            try await returned(publisher)
            try await returned(viewer)
            for client in [publisher, viewer] {
                for case .reconnected(let wasResumed) in client.listener.events { #expect(!wasResumed) }
                #expect(client.room.isConnected && !client.listener.names.contains("error"))
            }
            #expect(publisher.room.localParticipant.id != id)
            try await requireEventually("the video") {
                viewer.room.remoteParticipants.values.contains { !$0.videos.isEmpty }
            }
            let watcher = try await watch(in: viewer)
            try await requireEventually("pictures") { watcher.sights.count >= 5 }
            // The media has its new id.
            publisher.room.unpublish(media)
            try await publisher.listener.wait(for: "unpublished") {
                if case .localUnpublished = $0 { true } else { nil }
            }
            try await publisher.leave()
            try await viewer.leave()
            await media.stop()
            await stage.end()
        }
    }
}
