import ConnectLiveSDK
import RoomProtocol
import Testing
import TestSupport

@testable import ConnectLiveSDK
@testable import RoomClient

extension SDKTests {
    /// Local media that the application no longer publishes.
    @Suite(.timeLimit(.minutes(1)))
    struct Unpublishing {
        private func pattern() -> any LocalMedia {
            ConnectLive.createLocalMedia(MediaRequest.testPattern(frames: 0))
        }

        @Test func `unpublished media is gone for the others, and is published again`() async throws {
            try await onStage { _ in
                let (viewer, publisher) = (Client(), Client())
                _ = try await viewer.join("again")
                _ = try await publisher.join("again")
                let media = pattern()
                try publisher.room.publish(media)
                let video = try await viewer.listener.waitForVideo()
                try await publisher.listener.waitForLocalMedia()
                #expect(media.video.id == video.id)
                publisher.room.unpublish(media)
                try await publisher.listener.wait(for: "the end of the media") {
                    if case .localUnpublished(let ended) = $0, ended === media { true } else { nil }
                }
                try await viewer.listener.wait(for: "the end of the video") {
                    if case .videoGone(let gone) = $0, gone === video { true } else { nil }
                }
                #expect(media.video.id == 0)
                #expect(publisher.room.localParticipant.videos.isEmpty)
                #expect(publisher.room.localParticipant.audios.isEmpty)
                try publisher.room.publish(media)
                let second = try await viewer.listener.wait(for: "the second video") {
                    if case .video(let found) = $0, found.id != video.id { found } else { nil }
                }
                let watcher = try await viewer.watch(second)
                try await requireEventually("frames") { watcher.sights.count >= 5 }
                #expect(!publisher.listener.names.contains("error"))
                try await viewer.leave()
                try await publisher.leave()
                await media.stop()
            }
        }

        @Test func `media that waits for the connection can be unpublished`() async throws {
            try await onStage { _ in
                let client = Client()
                let media = pattern()
                try client.room.publish(media)
                client.room.unpublish(media)
                let other = Client()
                try other.room.publish(media)
                _ = try await client.join("waiting")
                _ = try await other.join("waiting")
                try await other.listener.waitForLocalMedia()
                #expect(client.room.localParticipant.videos.isEmpty)
                #expect(!client.listener.names.contains("localPublished"))
                try await client.leave()
                try await other.leave()
                await media.stop()
            }
        }

        @Test func `media can be unpublished while it is being published`() async throws {
            try await onStage { _ in
                let client = Client()
                let media = pattern()
                _ = try await client.join("hasty")
                try client.room.publish(media)
                client.room.unpublish(media)
                try await client.listener.wait(for: "the end of the media") {
                    if case .localUnpublished = $0 { true } else { nil }
                }
                #expect(client.listener.names.filter { $0.hasPrefix("local") } == ["localUnpublished"])
                try client.room.publish(media)
                try await client.listener.waitForLocalMedia()
                try await client.leave()
                await media.stop()
            }
        }
    }
}
