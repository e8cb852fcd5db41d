import Foundation
import GStreamerKit
import MediaGraph
import Synchronization
import TestFixtures
import Testing
import TestSupport

@testable import MediaNodes

extension MediaNodesTests {
    /// Microphones that wait for a sound server.
    @Suite struct MicrophoneRetryTests {
        /// An address of a sound server that nobody answers, and no sound system beside it.
        private static func silentMachine(_ folder: TemporaryFolder) -> EnvironmentOverride {
            EnvironmentOverride([
                "PULSE_SERVER": "unix:\(folder.path)/none", "XDG_RUNTIME_DIR": folder.path,
                "PIPEWIRE_RUNTIME_DIR": folder.path, "ALSA_CONFIG_PATH": "\(folder.path)/none",
            ])
        }

        private static func count(_ folder: String) -> Int {
            (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/\(folder)").count) ?? 0
        }

        @Test(arguments: [nil, SoundSystem.pulse])
        func `a hundred openings without a sound server leave no threads and no descriptors`(_ system: SoundSystem?) {
            let folder = TemporaryFolder()
            let environment = Self.silentMachine(folder)
            let openings = 100
            func open() -> MediaError? {
                let request = NodeRequest(
                    Node("microphone", settings: ["system": .text(system?.rawValue ?? "auto")]), MicrophoneNode.kind,
                    usedOutputs: ["audio"], environment: SystemEnvironment())
                do throws(MediaError) {
                    _ = try MicrophoneNode.Choice(request)
                    return nil
                } catch {
                    return error
                }
            }
            #expect(open()?.code == MediaError.Code.microphoneAbsent)
            let (threads, descriptors) = (Self.count("task"), Self.count("fd"))
            for _ in 0..<openings { _ = open() }
            // Other tests of the process have some of their own.
            #expect(Self.count("task") - threads < openings / 2)
            #expect(Self.count("fd") - descriptors < openings / 2)
            withExtendedLifetime(environment) {}
        }

        @Test func `microphones that wait for a sound server share their attempts`() async throws {
            let folder = TemporaryFolder()
            let environment = Self.silentMachine(folder)
            let before = (SoundRetries.shared.count(of: "recording"), SoundRetries.shared.count(of: "pulsesrc"))
            let seen = Seen()
            let graph = MediaGraph {
                Chain {
                    Node.testPattern(width: 64, height: 64, framesPerSecond: 20)
                    Node.null("end")
                }
                for number in 0..<10 {
                    Chain {
                        Node(
                            "microphone", name: "microphone-\(number)",
                            settings: ["system": .text(number % 2 == 0 ? "auto" : "pulse")])
                        Node.null("end-\(number)")
                    }
                }
            }
            let player = try await MediaPipeline(graph, seen: seen)
            try await player.start()
            await eventually("all of them have tried") {
                SoundRetries.shared.count(of: "recording") > before.0
                    && SoundRetries.shared.count(of: "pulsesrc") > before.1
            }
            await eventually("all of them wait") { seen.deviceEvents.count == 10 }
            await player.stop()
            #expect(seen.deviceEvents.allSatisfy { $0.hasPrefix("waiting") })
            #expect((1..<5).contains(SoundRetries.shared.count(of: "recording") - before.0))
            #expect((1..<5).contains(SoundRetries.shared.count(of: "pulsesrc") - before.1))
            withExtendedLifetime(environment) {}
        }
    }
}
