import ConnectLiveSDK
import RoomClient
import TestFixtures
import TestSupport
import Testing

@testable import ConnectLiveSDK

extension SDKTests {
    /// The loudspeaker of a room, with a real PulseAudio.
    @Suite(.timeLimit(.minutes(1)))
    struct Loudspeakers {
        @Test func `an application hears once that the loudspeaker is away, and once that it is back`() async throws {
            let folder = TemporaryFolder()
            let environment = EnvironmentOverride([
                "PULSE_SERVER": "unix:\(folder.path)/socket", "PULSE_COOKIE": "\(folder.path)/cookie",
                "ALSA_CONFIG_PATH": "\(folder.path)/none",
            ])
            try await onStage { _ in
                let viewer = Client(config: Config())
                _ = try await viewer.join("loudspeaker")
                var speaking: [(client: Client, media: any LocalMedia)] = []
                for _ in 0..<2 {
                    var options = MediaRequest.testPattern(frames: 0)
                    options.hasVideo = false
                    let client = Client()
                    _ = try await client.join("loudspeaker")
                    let media = ConnectLive.createLocalMedia(options)
                    try client.room.publish(media)
                    speaking.append((client, media))
                }
                func events() -> [String] {
                    viewer.listener.events.compactMap { event in
                        guard case .loudspeaker(let event) = event else { return nil }
                        return "\(event)".prefix { $0 != "(" }.description
                    }
                }
                try await requireEventually("both are heard") {
                    viewer.listener.names.count { $0 == "heard" } == 2 && events() == ["waiting"]
                }
                let server = try Fixture.soundServer("--folder", folder.path)
                try await requireEventually("the return") { events() == ["waiting", "returned"] }
                server.end()
                try await requireEventually("the loss") { events() == ["waiting", "returned", "lost"] }
                for (client, media) in speaking {
                    try await client.leave()
                    await media.stop()
                }
                try await viewer.leave()
                #expect(events() == ["waiting", "returned", "lost"])
            }
            withExtendedLifetime(environment) {}
        }
    }
}
