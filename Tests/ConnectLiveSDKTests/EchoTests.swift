import ConnectLiveSDK
import Foundation
import Glibc
import RoomClient
import TestFixtures
import TestSupport
import Testing

@testable import ConnectLiveSDK

extension SDKTests {
    /// The echo of a call, with a real PulseAudio in which the microphone hears the loudspeaker.
    @Suite(.timeLimit(.minutes(2)))
    struct Echoes {
        private static let words = ["Front_Center", "Rear_Left", "Side_Right", "Front_Right", "Rear_Center"]

        private func program(_ path: String, _ arguments: [String], _ variables: [String: String]) -> Process {
            let program = Process()
            program.executableURL = URL(fileURLWithPath: path)
            program.arguments = arguments
            program.environment = variables.merging(["PATH": "/usr/bin:/bin"]) { $1 }
            return program
        }

        /// Publishes a microphone.
        private func speak(_ client: Client, _ microphone: MicrophoneType) throws -> any LocalMedia {
            var config = Config()
            config.mediaOptions.hasVideo = false
            config.mediaOptions.microphone = microphone
            let media = try #require(ConnectLive.createLocalMedia(config: config))
            try client.room.publish(media)
            return media
        }

        private func sums(at client: Client) async -> (seconds: Double, energy: Double) {
            let audio = await client.room.statistics().received.first { !$0.isVideo && !$0.hasEnded }
            return (audio?.audioSecondsRendered ?? 0, audio?.audioEnergy ?? 0)
        }

        /// How much quieter the echo returns to the far end than the near end heard it, in dB: the median of pieces of a second in
        /// which the far end speaks. A machine that stands still for a moment spoils single pieces.
        private func loss(_ near: Client, _ far: Client, pieces: Int) async throws -> Double {
            var losses: [Double] = []
            while losses.count < pieces {
                let before = (near: await sums(at: near), far: await sums(at: far))
                try await requireEventually("a second of audio") {
                    await sums(at: near).seconds - before.near.seconds >= 1
                }
                let after = (near: await sums(at: near), far: await sums(at: far))
                let heard = after.near.energy - before.near.energy, returned = after.far.energy - before.far.energy
                if heard > 1e-4 { losses.append(10 * log10(heard / max(returned, 1e-12))) }
            }
            return losses.sorted()[pieces / 2]
        }

        @Test func `the echo of a room is removed from the microphone of a call`() async throws {
            let server = try Fixture.soundServer("--microphone", "--room", "40")
            let variables = server.answer.environment
            let environment = EnvironmentOverride(variables.mapValues { $0 })
            // The far end's microphone hears a mouth that speaks for as long as the test runs.
            let mouth = try program(
                "/usr/bin/pactl",
                ["load-module", "module-null-sink", "sink_name=mouth", "rate=48000", "channels=2", "norewinds=1"],
                variables
            ).runToEnd(within: 20)
            try #require(mouth.status == 0, "\(mouth.output)")
            let files = Self.words.map { "/usr/share/sounds/alsa/\($0).wav" }.joined(separator: " ")
            let voice = program(
                "/bin/sh",
                ["-c", "while :; do for file in \(files); do paplay --device=mouth $file || exit; done; done"],
                variables)
            try voice.run()
            defer {
                // It inherits a mask that blocks SIGTERM.
                kill(voice.processIdentifier, SIGKILL)
                LocalMediaOptions.audioType = .voice
            }
            try await onStage { _ in
                // The near end plays and records, the far end only measures what it gets.
                let (near, far) = (Client(config: Config()), Client())
                _ = try await near.join("echo")
                _ = try await far.join("echo")
                let media = [try speak(near, .device("microphone.monitor")), try speak(far, .device("mouth.monitor"))]
                try await requireEventually("both are heard") {
                    near.listener.names.contains("heard") && far.listener.names.contains("heard")
                }
                try await requireEventually("the near end hears the far end") {
                    await near.room.getAudioLevels().values.contains { $0 > 40 }
                }
                // Within which the canceller learns the delay and the echo.
                _ = try await loss(near, far, pieces: 3)
                let cleaned = try await loss(near, far, pieces: 9)
                LocalMediaOptions.audioType = .music
                try await requireEventually("music") {
                    media[0].localCapture?.plan?.node(MediaRequest.voiceNode) == nil
                }
                _ = try await loss(near, far, pieces: 1)
                let echo = try await loss(near, far, pieces: 5)
                #expect(echo < 12, "there is an echo: \(echo) dB less than what was played")
                #expect(cleaned - echo >= 20, "\(cleaned) dB instead of \(echo) dB are gone")
                for client in [near, far] { try await client.leave() }
                for item in media { await item.stop() }
            }
            withExtendedLifetime((environment, server)) {}
        }
    }
}
