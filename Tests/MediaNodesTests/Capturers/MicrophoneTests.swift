import Glibc
import MediaGraph
import TestFixtures
import Testing
import TestSupport

@testable import MediaNodes

extension MediaNodesTests {
    /// Microphones of PulseAudio; see ../fixtures/sound_server.py.
    @Suite struct MicrophoneTests {
        private func listening(_ settings: [String: SettingValue] = [:]) -> MediaGraph {
            MediaGraph {
                Chain {
                    Node("microphone", settings: settings)
                    Node.sound("ear")
                }
            }
        }

        /// The test pattern's tone, played to the default speaker.
        private var playing: MediaGraph {
            MediaGraph(
                nodes: [.testPattern(width: 64, height: 64, framesPerSecond: 5), .speaker(), .null()],
                links: [
                    Link(
                        from: PortReference(node: "test-pattern", port: "audio"),
                        to: PortReference(node: "speaker", port: "in")),
                    Link(
                        from: PortReference(node: "test-pattern", port: "video"),
                        to: PortReference(node: "null", port: "in")),
                ])
        }

        @Test(
            "Audio played into a null sink arrives from its monitor, in buffers of 10 ms",
            arguments: [
                [:], ["system": "pulse"], ["device": "speaker.monitor"],
            ] as [[String: SettingValue]])
        func monitor(_ settings: [String: SettingValue]) async throws {
            let fixture = try Fixture.soundServer()
            let environment = EnvironmentOverride(fixture.answer.environment.mapValues { $0 })
            defer { withExtendedLifetime(environment) {} }
            let seen = Seen()
            let player = try await MediaPipeline(playing)
            let listener = try await MediaPipeline(listening(settings), seen: seen)
            #expect(listener.plan.nodes[0].device?.elements[0].factory == "pulsesrc")
            try await player.start()
            try await listener.start()
            await eventually("two beeps") { seen.beeps.count >= 2 }
            await listener.stop()
            await player.stop()
            #expect(
                seen.sound.all.allSatisfy { abs($0.seconds - 0.01) < 0.001 }, "\(Set(seen.sound.all.map(\.seconds)))")
            #expect(seen.beeps.count >= 2, "\(seen.sound.count) \(seen.sound.all.map(\.level).max() ?? 0)")
            #expect(seen.failures.isEmpty)
        }

        @Test("The delay of audio from a loudspeaker matches the plan and the statistics")
        func heard() async throws {
            let fixture = try Fixture.soundServer()
            let environment = EnvironmentOverride(fixture.answer.environment.mapValues { $0 })
            defer { withExtendedLifetime(environment) {} }
            let (made, heard) = (Seen(), Seen())
            let graph = MediaGraph {
                Chain {
                    Node.testPattern(width: 64, height: 64, framesPerSecond: 5)
                    Node.null()
                }
                Chain(from: "test-pattern", port: "audio") {
                    Tee { Node.sound("ear") }
                    Node.speaker()
                }
            }
            let player = try await MediaPipeline(graph, seen: made)
            let listener = try await MediaPipeline(listening(), seen: heard)
            try await listener.start()
            try await player.start()
            let watch = player.watch()
            // The counters when each beep is heard.
            var counted: [Double] = []
            await eventually(within: 20, "seven beeps") {
                let beeps = heard.beeps.count
                if counted.count < beeps, let latency = watch.sample().first(where: { $0.node == "speaker" })?.latency {
                    counted += Array(repeating: latency, count: beeps - counted.count)
                }
                return counted.count >= 7
            }
            await player.stop()
            await listener.stop()
            // The server's monitor stands for the air of the room: played audio is heard there immediately.
            let times = try heard.beeps.map { beep in
                try #require(
                    made.beeps.map { Double(beep.nanoseconds) / 1e9 - Double($0.nanoseconds) / 1e9 }
                        .min { abs($0) < abs($1) })
            }
            // After a freeze, the sound system's buffers have another level until it has recovered. Two beeps without one
            // are enough: wrong latencies would be those of all.
            let planned = player.plan.latency(of: "speaker")
            let fromPlan = times.map { abs($0 - planned) }.sorted()[1]
            #expect(fromPlan <= 0.5 * planned, "planned \(planned) s, heard after \(times) s")
            let fromCount = zip(counted, times).map { abs($0 - $1) / $1 }.sorted()[1]
            #expect(fromCount <= 0.5, "counted \(counted) s, heard after \(times) s")
        }

        /// Pieces of 10 ms with their timestamps, each of which arrives this many ms before its end, and the
        /// corrections.
        private struct Pieces {
            var clock = SoundClock()
            var stamp = 0
            var times: [Int] = []

            /// The correction of the last timestamp. Nil if it is omitted.
            mutating func come(_ ahead: [Int], times count: Int = 1) -> Int? {
                var found: Int?
                for ahead in (0..<count).flatMap({ _ in ahead }) {
                    let time = clock.time(
                        ofSoundAt: stamp * 1_000_000, lasting: 10_000_000, now: (stamp + 10 - ahead) * 1_000_000)
                    if let time { times.append(time / 1_000_000) }
                    found = time.map { stamp - $0 / 1_000_000 }
                    stamp += 10
                }
                return found
            }

            var rise: Bool { zip(times, times.dropFirst()).allSatisfy { $0 < $1 } }
        }

        @Test("Audio that arrives before it can have ended is stamped earlier from then on, and times never go back")
        func soundClock() {
            var pieces = Pieces()
            // On time or late, and a single piece that a sound system had ready.
            #expect(pieces.come([18, 0, -3, 5], times: 50) == 0)
            // A few ms before their end, as monitors deliver them.
            #expect(pieces.come([8], times: 100) == 0)
            // Waiting pieces arrived together. A reader that is sometimes late does not change that.
            #expect(pieces.come([70, 62, 66], times: 50) == 62)
            #expect(pieces.come([70, 62, 20], times: 50) == 62)
            // GStreamer has corrected its timestamps.
            pieces.stamp -= 60
            #expect(pieces.come([1]) == 2)
            #expect(pieces.come([1], times: 100) == 2)
            #expect(pieces.rise)
        }

        @Test("A correction ends two seconds after the timestamps no longer need it")
        func endedCorrection() {
            var pieces = Pieces()
            #expect(pieces.come([66], times: 100) == 66)
            // GStreamer's own corrections are smaller than a jump.
            for _ in 0..<20 {
                pieces.stamp -= 3
                #expect(pieces.come([4], times: 1) == 66)
            }
            #expect(pieces.come([4], times: 150) == 66)
            #expect(pieces.come([4], times: 100) == 4)
            #expect(pieces.rise)
        }

        @Test(
            "After a stall, audio continues without a gap if nothing is missing, and with one otherwise")
        func stalledSound() {
            var kept = Pieces()
            #expect(kept.come([-3], times: 100) == 0)
            // All pieces were kept and arrive together after 300 ms. GStreamer assumes that they were lost and stamps
            // them again.
            kept.stamp += 300
            #expect(kept.come(Array(stride(from: -3, through: 297, by: 10))) == 300)
            #expect(kept.come([297], times: 100) == 300)
            #expect(kept.times == Array(stride(from: 0, to: 10 * kept.times.count, by: 10)))

            var lost = Pieces()
            #expect(lost.come([-3], times: 100) == 0)
            lost.stamp += 300
            #expect(lost.come([-3], times: 10) == 300)
            #expect(lost.come([-3], times: 100) == 0)
            #expect(lost.rise && lost.times.count == 210)

            // No sound system keeps half a minute.
            lost.stamp += 30_000
            #expect(lost.come([-3]) == 0)
        }

        @Test("A missing microphone is reported before anything runs")
        func absent() async throws {
            let fixture = try Fixture.soundServer()
            let environment = EnvironmentOverride(fixture.answer.environment.mapValues { $0 })
            defer { withExtendedLifetime(environment) {} }
            for system in ["auto", "pulse", "alsa"] {
                let error = await failure(of: listening(["device": "nothing", "system": .text(system), "away": "end"]))
                #expect(error?.code == "microphone.absent", "\(system)")
                #expect(error?.message.contains("nothing") == true)
            }
        }

        @Test("A pause longer than the silence limit does not count as a lost device")
        func pause() async throws {
            let fixture = try Fixture.soundServer()
            let environment = EnvironmentOverride(fixture.answer.environment.mapValues { $0 })
            defer { withExtendedLifetime(environment) {} }
            let seen = Seen()
            let listener = try await MediaPipeline(listening(["device": ""]), seen: seen)
            try await listener.start()
            await listener.pause()
            // The pause itself is under test: it is longer than the 1.5 s after which a microphone counts as lost.
            try await Task.sleep(for: .seconds(2.5))
            await listener.resume()
            let before = seen.sound.count
            await eventually("sound again") { seen.sound.count > before + 20 }
            #expect(seen.failures.isEmpty)
            await listener.stop()
        }

        @Test("Silence plays from the end of a sound server to the start of the next, without a gap")
        func serverRestarts() async throws {
            let first = try Fixture.soundServer()
            let environment = EnvironmentOverride(first.answer.environment.mapValues { $0 })
            let seen = Seen()
            let listener = try await MediaPipeline(listening(["device": "speaker.monitor"]), seen: seen)
            try await listener.start()
            await eventually("audio") { seen.sound.count > 20 }
            kill(first.answer.process, SIGKILL)
            func events() -> [String] {
                seen.events.all.compactMap { event in
                    switch event {
                    case .deviceLost(_, let cause): cause.code
                    case .deviceReturned: "returned"
                    default: nil
                    }
                }
            }
            await eventually("the loss") { events() == ["microphone.lost"] }
            let count = seen.sound.count
            await eventually("silence") { seen.sound.count > count + 50 }
            let second = try Fixture.soundServer()
            let secondEnvironment = EnvironmentOverride(second.answer.environment.mapValues { $0 })
            await eventually(within: 20, "the return") { events() == ["microphone.lost", "returned"] }
            let player = try await MediaPipeline(playing)
            try await player.start()
            await eventually("a beep through the new server") { !seen.beeps.isEmpty }
            await player.stop()
            await listener.stop()
            withExtendedLifetime((environment, secondEnvironment)) {}
            #expect(seen.failures.isEmpty)
            let chunks = seen.sound.all
            let gaps = zip(chunks, chunks.dropFirst()).map {
                $1.captureTime.seconds(since: $0.captureTime) - $0.seconds
            }
            #expect(gaps.allSatisfy { abs($0) < 0.012 }, "\(gaps.filter { abs($0) >= 0.012 })")
        }

        @Test("A sound server that ends during capture is an error with the microphone's name")
        func lost() async throws {
            let fixture = try Fixture.soundServer()
            let environment = EnvironmentOverride(fixture.answer.environment.mapValues { $0 })
            defer { withExtendedLifetime(environment) {} }
            let seen = Seen()
            let listener = try await MediaPipeline(
                listening(["device": "speaker.monitor", "away": "end"]), seen: seen)
            try await listener.start()
            kill(fixture.answer.process, SIGKILL)
            await eventually("the loss") { !seen.failures.isEmpty }
            #expect(seen.failures.first?.code == "microphone.lost")
            await listener.stop()
        }
    }
}
