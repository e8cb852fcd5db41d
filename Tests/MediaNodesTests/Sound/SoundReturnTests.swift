import Foundation
import MediaGraph
import TestFixtures
import Testing
import TestSupport

@testable import MediaNodes

extension MediaNodesTests {
    /// Microphones and loudspeakers of a real PulseAudio that are unplugged, plugged in elsewhere, or whose server restarts.
    /// A null sink is a loudspeaker, and its monitor is the air of the room.
    @Suite struct SoundReturnTests {
        /// Frames are seen at once, and the audio is played.
        private func playing(_ settings: [String: SettingValue] = [:], latency: Int = 200) -> MediaGraph {
            MediaGraph {
                Chain {
                    Node.testPattern(width: 64, height: 64, framesPerSecond: 20)
                    Node.frames("view")
                }
                // A path that delays audio, as a room does.
                Chain(from: "test-pattern", port: "audio") {
                    Node("audio-mixer", settings: ["latency": .integer(latency)])
                    Tee { Node.sound("ear") }
                    Node("speaker", settings: settings)
                }
            }
        }

        private func listening(_ device: String) -> MediaGraph {
            MediaGraph {
                Chain {
                    Node.microphone(device: device)
                    Node.sound("ear")
                }
            }
        }

        /// How much later than its frame each beep is heard, in milliseconds, from a time on.
        private func offsets(_ seen: Seen, _ heard: Seen, since start: MediaTime) -> [Double] {
            let flashes = seen.flashes
            return heard.beeps.filter { $0.nanoseconds > start.nanoseconds }.compactMap { beep in
                flashes.map { beep.milliseconds(since: $0) }.filter { $0 > -100 && $0 < 800 }.min { abs($0) < abs($1) }
            }
        }

        /// Expects that beeps are as late after their frames as before a loss.
        private func expectAsLate(
            _ after: [Double], as before: [Double], sourceLocation: SourceLocation = #_sourceLocation
        ) throws {
            // ITU-R BT.1359: 45 ms of early sound are noticed, the smaller of both limits. Audio wanders by some tens of
            // milliseconds on a busy machine, so all offsets of before count.
            let usual = try #require(before.min())...#require(before.max())
            let now = try #require(after.median)
            let change = now - min(max(now, usual.lowerBound), usual.upperBound)
            #expect(abs(change) <= 45, "before \(before) ms, after \(after) ms", sourceLocation: sourceLocation)
        }

        @Test func `after a restart of the sound server, sound is as late after its frames as before`()
            async throws
        {
            let room = try PulseAudioRoom()
            let (seen, heard) = (Seen(), Seen())
            let player = try await MediaPipeline(playing(), seen: seen)
            let listener = try await MediaPipeline(listening("speaker.monitor"), seen: heard)
            try await listener.start()
            try await player.start()
            await eventually("four beeps") { heard.beeps.count >= 4 }
            let before = offsets(seen, heard, since: MediaTime(nanoseconds: 0))
            for round in 1...2 {
                room.end()
                await eventually("loss \(round)") {
                    seen.deviceEvents.count == 2 * round - 1 && heard.deviceEvents.count == 2 * round - 1
                }
                // The graph goes on: frames are seen, and audio is taken in real time.
                let (frames, sounds) = (seen.pictures.count, seen.sound.count)
                await eventually("frames and audio") {
                    seen.pictures.count >= frames + 20 && seen.sound.count >= sounds + 50
                }
                try room.begin()
                await eventually("return \(round)") {
                    seen.deviceEvents.count == 2 * round && heard.deviceEvents.count == 2 * round
                }
                let returned = try #require(seen.sound.all.last?.captureTime)
                await eventually("beeps after return \(round)") { offsets(seen, heard, since: returned).count >= 4 }
                try expectAsLate(offsets(seen, heard, since: returned), as: before)
            }
            let statistics = player.statistics
            await player.stop()
            await listener.stop()
            for event in seen.events.all + heard.events.all {
                guard case .deviceLost(_, let cause) = event else { continue }
                #expect(cause.message.hasPrefix("The sound server has ended"))
            }
            #expect(seen.deviceEvents == ["lost speaker.lost", "returned", "lost speaker.lost", "returned"])
            #expect(heard.deviceEvents == ["lost microphone.lost", "returned", "lost microphone.lost", "returned"])
            #expect(statistics.sources["speaker"]?.losses == 2)
            let counts = try #require(statistics.audioRenderers["speaker"])
            #expect(counts.isAudible && counts.secondsPlayed < counts.secondsRendered - 1)
        }

        @Test func `a speaker that is not there when the graph is planned is waited for`() async throws {
            let room = try PulseAudioRoom()
            let seen = Seen()
            let player = try await MediaPipeline(playing(["device": "desk"]), seen: seen)
            #expect(player.plan.node("speaker")?.device?.waiting?.contains("has no output desk") == true)
            try await player.start()
            await eventually("the event") { seen.deviceEvents == ["waiting speaker.absent"] }
            #expect(player.statistics.sources["speaker"]?.state == .waiting)
            #expect(player.statistics.audioRenderers["speaker"]?.isAudible == false)
            _ = try room.plug(speaker: "desk")
            await eventually("the device") { seen.deviceEvents == ["waiting speaker.absent", "returned"] }
            let heard = Seen()
            let listener = try await MediaPipeline(listening("desk.monitor"), seen: heard)
            try await listener.start()
            await eventually("a beep") { !heard.beeps.isEmpty }
            await listener.stop()
            await player.stop()
            let refused = await failure(of: playing(["device": "gone", "away": "end"]))
            #expect(refused?.code == "speaker.absent")
        }

        @Test func `a speaker that returns at another port plays sound as late after its frames as before`()
            async throws
        {
            let room = try PulseAudioRoom()
            let (seen, heard) = (Seen(), [Seen(), Seen()])
            let module = try room.plug(speaker: "first", PulseAudioRoom.usb("7C3F", port: "1.2"))
            let player = try await MediaPipeline(playing(["device": "serial:7C3F"]), seen: seen)
            let first = try await MediaPipeline(listening("first.monitor"), seen: heard[0])
            try await first.start()
            try await player.start()
            await eventually("four beeps") { heard[0].beeps.count >= 4 }
            await first.stop()
            try room.tell("unload-module", module)
            await eventually("the loss") { seen.deviceEvents == ["lost speaker.lost"] }
            _ = try room.plug(speaker: "second", PulseAudioRoom.usb("7C3F", port: "2"))
            await eventually("the return") { seen.deviceEvents == ["lost speaker.lost", "returned"] }
            let second = try await MediaPipeline(listening("second.monitor"), seen: heard[1])
            try await second.start()
            await eventually("four beeps") { heard[1].beeps.count >= 4 }
            let start = MediaTime(nanoseconds: 0)
            try expectAsLate(offsets(seen, heard[1], since: start), as: offsets(seen, heard[0], since: start))
            await second.stop()
            await player.stop()
        }

        @Test func `a speaker with a serial number is lost, not replaced, and returns at another port`() async throws {
            let room = try PulseAudioRoom()
            let (seen, heard) = (Seen(), Seen())
            var module = try room.plug(speaker: "first", PulseAudioRoom.usb("7C3F", port: "1.2"))
            let player = try await MediaPipeline(playing(["device": "serial:7C3F"]), seen: seen)
            // The default speaker, to which the server moves streams of an unplugged one.
            let listener = try await MediaPipeline(listening("speaker.monitor"), seen: heard)
            try await listener.start()
            try await player.start()
            await eventually("sound") { (player.statistics.audioRenderers["speaker"]?.secondsPlayed ?? 0) > 1 }
            try room.tell("unload-module", module)
            await eventually("the loss") { seen.deviceEvents == ["lost speaker.lost"] }
            await eventually("the state") { player.statistics.sources["speaker"]?.state == .waiting }
            let silence = heard.sound.count
            await eventually("a second without sound") { heard.sound.count > silence + 150 }
            #expect(heard.sound.all[(silence + 20)...].allSatisfy { $0.level < -60 })
            module = try room.plug(speaker: "second", PulseAudioRoom.usb("7C3F", port: "2"))
            await eventually("the return") { seen.deviceEvents == ["lost speaker.lost", "returned"] }
            await listener.stop()
            await player.stop()
        }

        @Test func `a microphone that is not there when the graph is planned is waited for`() async throws {
            let room = try PulseAudioRoom()
            let (seen, heard) = (Seen(), Seen())
            let player = try await MediaPipeline(playing(), seen: seen)
            let listener = try await MediaPipeline(listening("serial:7C3F"), seen: heard)
            #expect(listener.plan.node("microphone")?.device?.waiting?.contains("serial:7C3F") == true)
            try await player.start()
            try await listener.start()
            await eventually("the event") { heard.deviceEvents == ["waiting microphone.absent"] }
            #expect(listener.statistics.sources["microphone"]?.state == .waiting)
            let count = heard.sound.count
            await eventually("silence") { heard.sound.count >= count + 50 }
            #expect(heard.sound.all.allSatisfy { $0.level < -60 })
            _ = try room.plug(microphone: "late", PulseAudioRoom.usb("7C3F", port: "2"))
            await eventually("the device") { heard.deviceEvents == ["waiting microphone.absent", "returned"] }
            await eventually("a beep") { !heard.beeps.isEmpty }
            #expect(listener.statistics.sources["microphone"]?.state == .streaming)
            await listener.stop()
            await player.stop()
            let refused = await failure(
                of: MediaGraph {
                    Chain {
                        Node("microphone", settings: ["device": "gone", "away": "end"])
                        Node.sound("ear")
                    }
                })
            #expect(refused?.code == "microphone.absent")
        }

        @Test func `a microphone that returns at another port hears sound as late after its frames as before`()
            async throws
        {
            let room = try PulseAudioRoom()
            let (seen, heard) = (Seen(), Seen())
            let module = try room.plug(microphone: "first", PulseAudioRoom.usb("7C3F", port: "1.2"))
            let player = try await MediaPipeline(playing(), seen: seen)
            let listener = try await MediaPipeline(listening("serial:7C3F"), seen: heard)
            try await listener.start()
            try await player.start()
            await eventually("four beeps") { heard.beeps.count >= 4 }
            let before = offsets(seen, heard, since: MediaTime(nanoseconds: 0))
            try room.tell("unload-module", module)
            await eventually("the loss") { heard.deviceEvents == ["lost microphone.lost"] }
            _ = try room.plug(microphone: "second", PulseAudioRoom.usb("7C3F", port: "2"))
            await eventually("the return") { heard.deviceEvents == ["lost microphone.lost", "returned"] }
            let returned = try #require(heard.sound.all.last?.captureTime)
            await eventually("four beeps") { offsets(seen, heard, since: returned).count >= 4 }
            try expectAsLate(offsets(seen, heard, since: returned), as: before)
            await listener.stop()
            await player.stop()
        }

        @Test func `beside a camera that is lost and returns, sound is as late after its frames as before`()
            async throws
        {
            let (room, folder) = (try PulseAudioRoom(), TemporaryFolder())
            defer { withExtendedLifetime(room) {} }
            // Its frames arrive later than they were captured, so that wrong times would differ.
            let camera = try CameraFile.write(
                [.init("late", at: 0, by: 0.2), .init("unplugged", at: 7, until: 8.5)], to: folder)
            let graph = listening("speaker.monitor").adding {
                Chain {
                    Node.camera(device: camera, width: 64, height: 48, framesPerSecond: 30)
                    Node.frames("view")
                }
            }
            let (seen, taken, ages) = (Seen(), Seen(), Collected<Double>())
            var bindings = taken.bindings(of: graph)
            bindings.frames["view"] = { ages.append($0.handedOver.milliseconds(since: $0.captureTime)) }
            let player = try await MediaPipeline(playing(), seen: seen)
            let capture = try await MediaPipeline(graph, bindings: bindings)
            try await player.start()
            try await capture.start()
            await eventually("the loss") { taken.deviceEvents == ["lost camera.lost"] }
            let before = offsets(seen, taken, since: MediaTime(nanoseconds: 0))
            let (lost, shown) = (try #require(taken.sound.all.last?.captureTime), ages.all)
            await eventually("the return") { taken.deviceEvents == ["lost camera.lost", "returned"] }
            let returned = try #require(taken.sound.all.last?.captureTime)
            await eventually("four beeps") { offsets(seen, taken, since: returned).count >= 4 }
            let latest = ages.all.suffix(60)
            await capture.stop()
            await player.stop()
            try expectAsLate(offsets(seen, taken, since: lost), as: before)
            try expectAsLate(Array(latest), as: shown.filter { $0 >= 200 })
            #expect(latest.allSatisfy { $0 >= 200 }, "\(latest)")
        }

        @Test func `a microphone with a serial number is lost, not replaced, and returns at another port`() async throws
        {
            let room = try PulseAudioRoom()
            let (seen, heard) = (Seen(), Seen())
            let module = try room.plug(microphone: "first", PulseAudioRoom.usb("7C3F", port: "1.2"))
            let player = try await MediaPipeline(playing(), seen: seen)
            let listener = try await MediaPipeline(listening("serial:7C3F"), seen: heard)
            try await listener.start()
            try await player.start()
            await eventually("a beep") { !heard.beeps.isEmpty }
            try room.tell("unload-module", module)
            await eventually("the loss") { heard.deviceEvents == ["lost microphone.lost"] }
            let count = heard.beeps.count
            _ = try room.plug(microphone: "second", PulseAudioRoom.usb("7C3F", port: "2"))
            await eventually("the return") { heard.deviceEvents == ["lost microphone.lost", "returned"] }
            await eventually("a beep") { heard.beeps.count > count }
            await listener.stop()
            await player.stop()
        }

        @Test func `a sound server that hangs stops neither the graph nor its end`() async throws {
            let room = try PulseAudioRoom()
            let seen = Seen()
            let player = try await MediaPipeline(playing(), seen: seen)
            try await player.start()
            await eventually("sound") { (player.statistics.audioRenderers["speaker"]?.secondsPlayed ?? 0) > 0.5 }
            let speaker = try #require(player.find(KeptSpeaker.self, "speaker"))
            await eventually("a delay for lip-sync") { speaker.heardAfter != nil }
            let (told, asked) = try (#require(speaker.heardAfter), #require(speaker.secondsUntilHeard))
            #expect(abs(told - asked) < 0.1)
            kill(room.process, SIGSTOP)
            await eventually("the loss") { seen.deviceEvents == ["lost speaker.lost"] }
            let (frames, sounds) = (seen.pictures.count, seen.sound.count)
            await eventually("frames and audio") {
                seen.pictures.count >= frames + 20 && seen.sound.count >= sounds + 50
            }
            let start = ContinuousClock.now
            await player.stop()
            #expect(ContinuousClock.now - start < .seconds(8))
            kill(room.process, SIGCONT)
        }

        @Test func `a speaker plays all audio of a graph that delays it by a second`() async throws {
            let room = try PulseAudioRoom()
            defer { room.end() }
            let seen = Seen()
            let player = try await MediaPipeline(playing(latency: 1000), seen: seen)
            try await player.start()
            func counts() -> MediaStatistics.AudioRenderer {
                player.statistics.audioRenderers["speaker"] ?? MediaStatistics.AudioRenderer()
            }
            await eventually("sound") { counts().secondsPlayed > 1 }
            let before = counts()
            await eventually("four seconds") { counts().secondsRendered > before.secondsRendered + 4 }
            let after = counts()
            #expect(after.secondsPlayed - before.secondsPlayed > 0.9 * (after.secondsRendered - before.secondsRendered))
            #expect(seen.deviceEvents.isEmpty)
            await player.stop()
        }

        @Test func `the end of a sound is heard whole, however late the loudspeaker plays it`() async throws {
            let room = try PulseAudioRoom()
            defer { room.end() }
            let folder = TemporaryFolder()
            // The device opens during the first seconds. Half a second at the end is loud.
            let samples = (0..<3 * 48_000).map { (sample: Int) -> Int16 in
                let amplitude: Double = sample < 5 * 24_000 ? 1000 : 20_000
                let angle: Double = Double(sample) * 2 * Double.pi * 440 / 48_000
                return Int16(amplitude * sin(angle))
            }
            try Self.write(samples, to: folder.path + "/sound.wav")
            let (seen, heard) = (Seen(), Seen())
            let listener = try await MediaPipeline(listening("speaker.monitor"), seen: heard)
            try await listener.start()
            let player = try await MediaPipeline(
                MediaGraph {
                    Chain {
                        Node.file(path: folder.path + "/sound.wav", loop: false)
                        Node("audio-mixer", settings: ["latency": 200])
                        Node.speaker()
                    }
                }, seen: seen)
            try await player.start()
            await eventually("the end") { seen.hasEnded }
            await player.stop()
            let end = heard.sound.count
            await eventually("the air afterwards") { heard.sound.count > end + 100 }
            await listener.stop()
            let loud = heard.sound.all.filter { $0.level > -15 }.map { $0.samples.count / 2 }.reduce(0, +)
            let seconds = Double(loud) / 48_000
            #expect((0.47...0.52).contains(seconds), "\(seconds) s")
        }

        /// Mono, 48 kHz.
        private static func write(_ samples: [Int16], to path: String) throws {
            var file = Data()
            func add(_ value: some FixedWidthInteger) {
                withUnsafeBytes(of: value.littleEndian) { file.append(contentsOf: $0) }
            }
            file.append(Data("RIFF".utf8))
            add(UInt32(36 + samples.count * 2))
            file.append(Data("WAVEfmt ".utf8))
            add(UInt32(16))
            for field in [1, 1] as [UInt16] { add(field) }
            for field in [48_000, 96_000] as [UInt32] { add(field) }
            for field in [2, 16] as [UInt16] { add(field) }
            file.append(Data("data".utf8))
            add(UInt32(samples.count * 2))
            for sample in samples { add(sample) }
            try file.write(to: URL(fileURLWithPath: path))
        }

        @Test func `a speaker goes on after a pause of the graph, as late as before`() async throws {
            let room = try PulseAudioRoom()
            defer { room.end() }
            let (seen, heard) = (Seen(), Seen())
            let player = try await MediaPipeline(playing(), seen: seen)
            let listener = try await MediaPipeline(listening("speaker.monitor"), seen: heard)
            try await listener.start()
            try await player.start()
            await eventually("three beeps") { heard.beeps.count >= 3 }
            let before = offsets(seen, heard, since: MediaTime(nanoseconds: 0))
            await player.pause()
            let paused = heard.sound.count
            await eventually("the rest of the audio, and two seconds") { heard.sound.count > paused + 250 }
            #expect(heard.sound.all[(paused + 50)..<(paused + 250)].allSatisfy { $0.level < -60 })
            await player.resume()
            let resumed = try #require(heard.sound.all.last?.captureTime)
            await eventually("beeps") { offsets(seen, heard, since: resumed).count >= 3 }
            let after = offsets(seen, heard, since: resumed)
            let usual = try #require(before.min())...#require(before.max())
            let now = try #require(after.median)
            #expect(
                abs(now - min(max(now, usual.lowerBound), usual.upperBound)) <= 45,
                "before \(before), after \(after) ms")
            #expect(seen.deviceEvents.isEmpty)
            await player.stop()
            await listener.stop()
        }

        @Test func `a list of the devices leaves no connection to the sound server behind`() throws {
            let room = try PulseAudioRoom()
            func held() throws -> Int {
                let maps = try String(contentsOfFile: "/proc/self/maps", encoding: .utf8)
                let files = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")
                return maps.split(separator: "\n").filter { $0.contains("pulse") && !$0.contains(".so") }.count
                    + files.count
            }
            _ = Devices.sound()
            let before = try held()
            for _ in 0..<20 { #expect(!Devices.sound().speakers.isEmpty) }
            #expect(try held() < before + 10)
            room.end()
            for _ in 0..<20 { _ = Devices.sound() }
            #expect(try held() < before + 10)
        }

        @Test func `a list of the devices does not wait for a sound server that hangs, and is complete afterwards`()
            async
            throws
        {
            let room = try PulseAudioRoom()
            defer { room.end() }
            #expect(Devices.sound().speakers.map(\.identifier) == ["speaker"])
            kill(room.process, SIGSTOP)
            // The second one finds the first one's question unanswered.
            let problems = Collected<String?>()
            for number in 1...2 {
                DispatchQueue(label: "caller").async { problems.append(Devices.soundDevices().problem) }
                await eventually("list \(number)") { problems.count == number }
            }
            #expect(problems.all.allSatisfy { $0?.contains("did not respond") == true })
            let error = await failure(of: playing(["device": "serial:7C3F", "away": "end"]))
            #expect(error?.message.contains("no sound system lists any device") == true)
            kill(room.process, SIGCONT)
            await eventually("the list") { Devices.sound().speakers.map(\.identifier) == ["speaker"] }
        }

        @Test func `devices tell the names to write down, twins by their ports`() async throws {
            let room = try PulseAudioRoom()
            _ = try room.plug(speaker: "one", PulseAudioRoom.usb("A7", port: "1"))
            _ = try room.plug(speaker: "two", PulseAudioRoom.usb("A7", port: "3.4"))
            _ = try room.plug(microphone: "three", PulseAudioRoom.usb("B7", port: "2"))
            let found = Devices.sound()
            #expect(found.microphones.map(\.lastingName) == ["serial:B7"])
            #expect(
                Set(found.speakers.map(\.lastingName)) == [
                    "speaker", "serial:A7@usb-0000:00:14.0-1", "serial:A7@usb-0000:00:14.0-3.4",
                ])
        }
    }
}
