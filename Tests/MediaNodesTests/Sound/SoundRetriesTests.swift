import Dispatch
import MediaGraph
import Synchronization
import TestFixtures
import Testing
import TestSupport

@testable import MediaNodes

extension MediaNodesTests {
    /// Loudspeakers that wait for a sound system.
    @Suite struct SoundRetriesTests {
        /// A machine whose time and signs the test sets.
        private final class Machine: Sendable {
            let seconds = Mutex(0)
            let signs = Mutex("")
            let asked = Mutex<[Int]>([])

            func retries() -> SoundRetries {
                SoundRetries(
                    now: { MediaTime(nanoseconds: UInt64(self.seconds.withLock { $0 }) * 1_000_000_000) },
                    signs: { self.signs.withLock { $0 } })
            }

            func ask(_ answer: String?) -> String? {
                let now = seconds.withLock { $0 }
                asked.withLock { $0.append(now) }
                return answer
            }
        }

        @Test func `ten loudspeakers without a sound system cost one question, less and less often`() {
            let machine = Machine()
            let retries = machine.retries()
            for second in 0...100 {
                machine.seconds.withLock { $0 = second }
                for _ in 0..<10 { #expect(retries.answer("playing") { machine.ask(nil) } == nil) }
            }
            #expect(machine.asked.withLock { $0 } == [0, 1, 3, 7, 15, 31, 61, 91])
        }

        @Test func `a sign of a sound system brings the next question forward`() {
            let machine = Machine()
            let retries = machine.retries()
            for second in 0...40 {
                machine.seconds.withLock { $0 = second }
                if second == 20 { machine.signs.withLock { $0 = "socket" } }
                _ = retries.answer("playing") { machine.ask(nil) }
            }
            #expect(machine.asked.withLock { $0 } == [0, 1, 3, 7, 15, 20, 21, 23, 27, 35])
        }

        @Test func `a positive answer is asked for by each, and the pauses begin anew after it`() {
            let machine = Machine()
            let retries = machine.retries()
            for second in 0...3 {
                machine.seconds.withLock { $0 = second }
                _ = retries.answer("playing") { machine.ask(nil) }
            }
            machine.seconds.withLock { $0 = 7 }
            for _ in 0..<2 { #expect(retries.answer("playing") { machine.ask("pulsesink") } == "pulsesink") }
            for second in 8...11 {
                machine.seconds.withLock { $0 = second }
                _ = retries.answer("playing") { machine.ask(nil) }
            }
            #expect(machine.asked.withLock { $0 } == [0, 1, 3, 7, 7, 8, 9, 11])
        }

        @Test func `loudspeakers that ask during a question share its negative answer`() async {
            let (machine, end) = (Machine(), DispatchSemaphore(value: 0))
            let retries = machine.retries()
            let answers = Collected<String?>()
            for _ in 0..<10 {
                DispatchQueue(label: "speaker").async {
                    answers.append(
                        retries.answer("playing") {
                            end.wait()
                            return machine.ask(nil)
                        })
                }
            }
            await eventually("a question") { retries.count(of: "playing") == 1 }
            end.signal()
            await eventually("the answers") { answers.count == 10 }
            #expect(retries.count(of: "playing") == 1)
        }

        @Test func `ten speakers of a headless machine share their attempts`() async throws {
            let folder = TemporaryFolder()
            let environment = EnvironmentOverride([
                "PULSE_SERVER": "unix:\(folder.path)/none", "ALSA_CONFIG_PATH": "\(folder.path)/none",
            ])
            let before = SoundRetries.shared.count(of: "playing")
            let seen = Seen()
            let graph = MediaGraph {
                Chain {
                    Node.testPattern(width: 64, height: 64, framesPerSecond: 20)
                    Node.null("end")
                }
                for number in 0..<10 {
                    Chain(from: "test-pattern", port: "audio") { Node.speaker("speaker-\(number)") }
                }
            }
            let player = try await MediaPipeline(graph, seen: seen)
            try await player.start()
            await eventually("all of them wait") { seen.deviceEvents.count == 10 }
            await player.stop()
            #expect(seen.deviceEvents.allSatisfy { $0.hasPrefix("waiting") })
            #expect((1..<10).contains(SoundRetries.shared.count(of: "playing") - before))
            withExtendedLifetime(environment) {}
        }
    }
}
