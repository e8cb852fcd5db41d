import Foundation
import Glibc
import MediaGraph
import RoomClient
import RoomServer
import Synchronization
import TestFixtures
import TestSupport
import Testing

@testable import ConnectLiveSDK

/// A voice of three tones in syllables, which can be told from speech, and how loud it arrives.
private final class Tones: Sendable {
    private static let (rate, hertz) = (48_000, [1700.0, 2300, 2900])
    /// In samples: shorter than a syllable, and as long as whole periods of each tone.
    private static let window = 960

    private let rest = Mutex<[Double]>([])
    private let powers = Collected<Double>()

    /// Samples for paplay: half of each half second is silent, as speech has pauses. Noise would be suppressed.
    static func samples(seconds: Int) -> [UInt8] {
        let part = (0..<rate / 2).flatMap { index in
            let sines = hertz.map { sin(2 * .pi * $0 * Double(index) / Double(rate)) }
            let value = Int16(index < rate / 4 ? 3000 * sines.reduce(0, +) : 0)
            return [UInt8(truncatingIfNeeded: value), UInt8(truncatingIfNeeded: value >> 8)]
        }
        return Array(repeatElement(part, count: 2 * seconds).joined())
    }

    func take(_ chunk: AudioChunk) {
        let left = stride(from: 0, to: chunk.samples.count, by: chunk.channels).map { Double(chunk.samples[$0]) }
        rest.withLock { rest in
            rest += left
            while rest.count >= Self.window {
                powers.append(Self.hertz.reduce(0) { $0 + Self.power(of: $1, in: rest.prefix(Self.window)) })
                rest.removeFirst(Self.window)
            }
        }
    }

    /// Goertzel's algorithm.
    private static func power(of hertz: Double, in samples: ArraySlice<Double>) -> Double {
        let turn = 2 * cos(2 * .pi * hertz / Double(rate))
        var (last, before) = (0.0, 0.0)
        for sample in samples { (last, before) = (sample + turn * last - before, last) }
        return last * last + before * before - turn * last * before
    }

    /// In dB: the median of seconds from now on.
    func level(seconds: Int) async throws -> Double {
        var levels: [Double] = []
        while levels.count < seconds {
            powers.removeAll()
            try await requireEventually("a second of the near end") { powers.count >= Self.rate / Self.window }
            let all = powers.all
            levels.append(10 * log10(max(all.reduce(0, +) / Double(all.count), 1)))
        }
        return levels.sorted()[seconds / 2]
    }
}

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

        /// Starts a voice of the near end.
        private func tones(_ variables: [String: String], _ folder: TemporaryFolder) throws -> Process {
            let file = folder.file("tones")
            try Data(Tones.samples(seconds: 60)).write(to: URL(fileURLWithPath: file))
            let voice = program(
                "/usr/bin/paplay",
                ["--device=microphone", "--raw", "--rate=48000", "--format=s16le", "--channels=1", file], variables)
            try voice.run()
            return voice
        }

        /// The far end's microphone hears a mouth.
        private func plugMouth(_ variables: [String: String]) throws {
            let mouth = try program(
                "/usr/bin/pactl",
                ["load-module", "module-null-sink", "sink_name=mouth", "rate=48000", "channels=2", "norewinds=1"],
                variables
            ).runToEnd(within: 20)
            try #require(mouth.status == 0, "\(mouth.output)")
        }

        /// Speech at the far end, until it is terminated.
        private func speech(_ variables: [String: String]) throws -> Process {
            let files = Self.words.map { "/usr/share/sounds/alsa/\($0).wav" }.joined(separator: " ")
            let voice = program(
                "/bin/sh",
                ["-c", "while :; do for file in \(files); do paplay --device=mouth $file || exit; done; done"],
                variables)
            try voice.run()
            return voice
        }

        @Test func `the echo of a room is removed from the microphone of a call, and the near end kept`() async throws {
            let server = try Fixture.soundServer("--microphone", "--room", "40")
            let variables = server.answer.environment
            let environment = EnvironmentOverride(variables.mapValues { $0 })
            let folder = TemporaryFolder()
            try plugMouth(variables)
            var voice = try speech(variables)
            defer {
                // It inherits a mask that blocks SIGTERM.
                kill(voice.processIdentifier, SIGKILL)
                LocalMediaOptions.audioType = .voice
            }
            try await onStage { stage in
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
                let tones = Tones()
                let subscribe = Subscribe(
                    room: "echo", participant: near.room.localParticipant.id,
                    access: RoomAccess(
                        server: stage.server.url, serviceId: stage.key.id, serviceSecret: stage.key.secret))
                let listener = try await MediaPipeline { subscribe.audio >>> Sound { tones.take($0) } }
                try await listener.start()
                // Within which the canceller learns the delay and the echo.
                _ = try await loss(near, far, pieces: 3)
                let cleaned = try await loss(near, far, pieces: 9)
                let nearEnd = try self.tones(variables, folder)
                defer { if nearEnd.isRunning { kill(nearEnd.processIdentifier, SIGKILL) } }
                _ = try await tones.level(seconds: 2)
                let kept = try await tones.level(seconds: 7)
                LocalMediaOptions.audioType = .music
                try await requireEventually("music") {
                    media[0].localCapture?.plan?.node(MediaRequest.voiceNode) == nil
                }
                // The echo would add to the near end.
                kill(voice.processIdentifier, SIGKILL)
                _ = try await tones.level(seconds: 3)
                let unchanged = try await tones.level(seconds: 7)
                kill(nearEnd.processIdentifier, SIGKILL)
                voice = try speech(variables)
                _ = try await loss(near, far, pieces: 1)
                let echo = try await loss(near, far, pieces: 5)
                #expect(echo < 12, "there is an echo: \(echo) dB less than what was played")
                #expect(cleaned - echo >= 20, "\(cleaned) dB instead of \(echo) dB are gone")
                #expect(abs(kept - unchanged) <= 3, "the near end is \(kept) dB instead of \(unchanged) dB loud")
                await listener.stop()
                for client in [near, far] { try await client.leave() }
                for item in media { await item.stop() }
            }
            withExtendedLifetime((environment, server, folder)) {}
        }
    }
}
