import Dispatch
import Glibc
import GStreamerKit
import MediaGraph
import TestFixtures
import Testing
import TestSupport

@testable import MediaNodes

/// Speech of Debian's alsa-utils: single words, 48 kHz.
enum Speech {
    /// Words one after the other, repeated for this many seconds.
    static func words(_ names: [String], seconds: Double) throws -> [Double] {
        let words = try names.map { try read("/usr/share/sounds/alsa/\($0).wav") }
        let count = Int(seconds * 48_000)
        var samples: [Double] = []
        while samples.count < count {
            for word in words { samples += word + [Double](repeating: 0, count: 7_200) }
        }
        return Array(samples.prefix(count))
    }

    /// The loud part of a 16-bit mono file.
    private static func read(_ path: String) throws -> [Double] {
        let file = try #require(fopen(path, "rb"), "\(path) comes with alsa-utils")
        defer { fclose(file) }
        var bytes = [UInt8](repeating: 0, count: 1 << 20)
        let count = fread(&bytes, 1, bytes.count, file)
        // 44 bytes of header, then samples.
        let samples = stride(from: 44, to: count - 1, by: 2).map { offset in
            Double(Int16(truncatingIfNeeded: Int(bytes[offset]) | Int(bytes[offset + 1]) << 8))
        }
        let first = samples.firstIndex { abs($0) > 200 } ?? 0
        let last = samples.lastIndex { abs($0) > 200 } ?? 0
        return Array(samples[first...last])
    }

    /// A stereo WAV file.
    static func wave(left: [Double], right: [Double]) -> [UInt8] {
        func little(_ value: Int, _ count: Int) -> [UInt8] { (0..<count).map { UInt8(value >> (8 * $0) & 255) } }
        let size = left.count * 4
        var bytes = Array("RIFF".utf8) + little(36 + size, 4) + Array("WAVEfmt ".utf8) + little(16, 4)
        bytes += little(1, 2) + little(2, 2) + little(48_000, 4) + little(192_000, 4) + little(4, 2) + little(16, 2)
        bytes += Array("data".utf8) + little(size, 4)
        bytes.reserveCapacity(44 + size)
        for (left, right) in zip(left, right) {
            for sample in [left, right] {
                let value = Int16(max(-32_768, min(32_767, sample)))
                bytes.append(UInt8(truncatingIfNeeded: value))
                bytes.append(UInt8(truncatingIfNeeded: value >> 8))
            }
        }
        return bytes
    }

    /// Root mean square of a stretch in dB.
    static func level(_ samples: [Double], _ seconds: Range<Double>) -> Double {
        let range = Int(seconds.lowerBound * 48_000)..<min(samples.count, Int(seconds.upperBound * 48_000))
        let sum = samples[range].reduce(0) { $0 + $1 * $1 }
        return 10 * log10(max(sum / Double(max(range.count, 1)), 0.01))
    }
}

/// A file whose left channel leaves at `left` and whose right one at `right`, on the same timeline: 10 ms of the left
/// one, then the same 10 ms of the right one, on one thread. Paced by the clock on request, otherwise as fast as it is
/// read.
private enum HalvesNode: NodeType {
    static let kind = NodeKind(
        "test-halves", .capturer, "Both channels of a file, each for itself",
        outputs: [Port("left", [.rawAudio]), Port("right", [.rawAudio])],
        settings: [
            SettingContract("path", .text, isRequired: true, "The file"),
            SettingContract("by-clock", .flag, default: true, "Whether the sound comes when it is due"),
        ])

    static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        var plan = NodePlan(request.node)
        plan.add("filesrc", as: "file", ["location": .text(request.text("path"))])
        plan.add("wavparse", as: "parser")
        plan.add("audiobuffersplit", as: "blocks", ["output-buffer-duration": "1/100"])
        plan.add("clocksync", as: "pace", ["sync": .flag(request.flag("by-clock"))])
        plan.add("tee", as: "both")
        plan.link("file", "parser", "blocks", "pace", "both")
        for (index, side) in ["left", "right"].enumerated() {
            let gains = index == 0 ? "<(float)1, (float)0>" : "<(float)0, (float)1>"
            plan.add("audioconvert", as: "\(side)-only", ["mix-matrix": .text("<\(gains), \(gains)>")])
            plan.addFilter(RawFormat.audio, as: side)
            plan.link(ElementPad("both", "src_\(index)"), ElementPad("\(side)-only"))
            plan.link("\(side)-only", side)
            plan.outputs[side] = ElementPad(side)
            plan.formats[side] = .rawAudio
        }
        return plan
    }
}

/// Loudness by the clock, a fifth of a second at a time.
private enum Blocks {
    /// Blocks of speech are louder than this, in dB.
    static let quiet = 50.0
    private static let perSecond = 5.0

    struct Pair {
        let before: Double
        let after: Double
    }

    /// The levels before and after the canceller at the same moments, if both have audio.
    static func pairs(
        before: [AudioChunk], after: [AudioChunk], since start: MediaTime, _ seconds: Range<Double>
    ) -> [Pair] {
        let (before, after) = (levels(before, start), levels(after, start))
        return blocks(seconds).compactMap { block in
            guard let before = before[block], let after = after[block] else { return nil }
            return Pair(before: before, after: after)
        }
    }

    /// The mean power of some levels in dB.
    static func mean(_ levels: [Double]) -> Double {
        10 * log10(levels.map { pow(10, $0 / 10) }.reduce(0, +) / Double(max(levels.count, 1)))
    }

    /// The mean power of those blocks of a stretch that are not quiet.
    static func level(_ samples: [Double], _ seconds: Range<Double>) -> Double {
        let levels = blocks(seconds).map { block in
            Speech.level(samples, Double(block) / perSecond..<Double(block + 1) / perSecond)
        }
        return mean(levels.filter { $0 > quiet })
    }

    private static func blocks(_ seconds: Range<Double>) -> Range<Int> {
        Int((seconds.lowerBound * perSecond).rounded())..<Int((seconds.upperBound * perSecond).rounded())
    }

    private static func levels(_ chunks: [AudioChunk], _ start: MediaTime) -> [Int: Double] {
        var blocks: [Int: [Double]] = [:]
        for chunk in chunks {
            let block = Int((chunk.captureTime.seconds(since: start) * perSecond).rounded(.down))
            blocks[block, default: []] += MediaNodesTests.EchoTests.mono([chunk])
        }
        return blocks.mapValues { Speech.level($0, 0..<Double($0.count) / 48_000) }
    }
}

extension MediaNodesTests {
    @Suite struct EchoTests {
        /// The far end speaks for 7 s, then both for 5 s, then the near end alone for 4 s.
        private struct Conversation {
            static let seconds = 16.0
            let far: [Double]
            let near: [Double]
            let echo: [Double]

            static let words = ["Front_Center", "Rear_Left", "Side_Right", "Front_Right", "Rear_Center"]

            init(echoAfter delay: Double, far words: [String] = words) throws {
                var far = try Speech.words(words, seconds: Self.seconds)
                var near = try Speech.words(["Side_Left", "Front_Left", "Rear_Right"], seconds: Self.seconds)
                for index in far.indices {
                    if index >= 12 * 48_000 { far[index] = 0 }
                    if index < 7 * 48_000 { near[index] = 0 }
                }
                let shift = Int(delay * 48_000)
                self.far = far
                self.near = near
                // -6 dB.
                echo = [Double](repeating: 0, count: shift) + far.dropLast(shift).map { $0 / 2 }
            }

            var microphone: [Double] { zip(near, echo).map(+) }
        }

        fileprivate static func mono(_ chunks: [AudioChunk]) -> [Double] {
            chunks.flatMap { chunk in stride(from: 0, to: chunk.samples.count, by: 2).map { Double(chunk.samples[$0]) }
            }
        }

        /// Plays the far end into nothing and its echo into the microphone. Returns the canceller's output.
        private func clean(
            _ conversation: Conversation, _ canceller: Node = Node("echo-cancel", name: "echo")
        ) async throws -> (samples: [Double], delay: Double?) {
            let folder = TemporaryFolder()
            let path = folder.path + "/talk.wav"
            writeFile(Speech.wave(left: conversation.far, right: conversation.microphone), to: path)
            let graph = MediaGraph(
                nodes: [
                    Node("test-halves", name: "talk", settings: ["path": .text(path), "by-clock": false]), canceller,
                    Node("null"), .sound("ear"),
                ],
                links: [
                    Link(from: .init(node: "talk", port: "left"), to: .init(node: "echo", port: "played")),
                    Link(from: .init(node: "talk", port: "right"), to: .init(node: "echo", port: "in")),
                    Link(from: .init(node: "echo", port: "played-out"), to: .init(node: "null", port: "in")),
                    Link(from: .init(node: "echo", port: "out"), to: .init(node: "ear", port: "in")),
                ])
            let watched = try await Watched(graph, registry: NodeRegistry.builtIn.adding([HalvesNode.self]))
            try await watched.pipeline.start()
            await eventually(within: 30, "the conversation to end") { watched.hasEnded }
            await watched.pipeline.stop()
            #expect(watched.failure == nil)
            return (Self.mono(watched.sound()), watched.pipeline.statistics.echoCancellers["echo"]?.delay)
        }

        /// While both speak, the canceller attenuates the near end too. By how much depends on which words overlap.
        /// Measured with these words: 2.7 dB with the echo after 40 ms, 3.8 dB after 180 ms, exactly reproducible,
        /// because nothing depends on the clock.
        @Test(
            "At least 20 dB of an echo are removed after 3 s; the near end stays within 3 dB, also while both speak",
            arguments: [(0.04, 3.0), (0.18, 4.5)])
        func echoIsGone(after delay: Double, whileBothSpeak limit: Double) async throws {
            let conversation = try Conversation(echoAfter: delay)
            let (samples, found) = try await clean(conversation)
            let gone = Speech.level(conversation.echo, 3..<7) - Speech.level(samples, 3..<7)
            let both = Speech.level(samples, 8..<12) - Speech.level(conversation.near, 8..<12)
            let alone = Speech.level(samples, 12.5..<15.5) - Speech.level(conversation.near, 12.5..<15.5)
            #expect(gone >= 20, "\(gone) dB are gone")
            #expect(abs(both) <= limit, "the near end is \(both) dB from what it was while both speak")
            #expect(abs(alone) <= 3, "the near end is \(alone) dB from what it was")
            #expect(abs((found ?? 0) - delay) < 0.01, "found a delay of \(found ?? 0) s")
        }

        @Test("Without the canceller the echo remains, which proves the other test")
        func echoIsThere() async throws {
            let conversation = try Conversation(echoAfter: 0.04)
            var off = Node("echo-cancel", name: "echo", settings: ["noise-suppression": "off"])
            // With a delay that is wrong by half a second, it finds nothing.
            off.settings["delay"] = 600
            let (samples, _) = try await clean(conversation, off)
            let gone = Speech.level(conversation.echo, 3..<7) - Speech.level(samples, 3..<7)
            #expect(gone < 3, "\(gone) dB are gone")
        }

        @Test("Without playback, noise and gain are processed, and the plan reports that there is no echo")
        func nothingPlayed() async throws {
            let graph = MediaGraph {
                Chain {
                    Node.testPattern("pattern", frames: 30)
                    Node("null")
                }
                Chain(from: "pattern", port: "audio") {
                    Node("echo-cancel", name: "clean")
                    Node.sound("ear")
                }
            }
            let watched = try await Watched(graph)
            let plan = watched.pipeline.plan.node("clean")
            #expect(plan?.notes.contains { $0.contains("no echo") } == true)
            #expect(plan?.element("probe") == nil)
            try await watched.pipeline.start()
            await eventually("the end") { watched.hasEnded }
            await watched.pipeline.stop()
            #expect(watched.failure == nil)
            #expect(watched.sound().map(\.seconds).reduce(0, +) > 0.8)
        }

        @Test("A microphone hears either its own graph or another one")
        func heardTwice() async throws {
            func graph(_ settings: [String: SettingValue], isPlayed: Bool) -> MediaGraph {
                MediaGraph {
                    Chain {
                        Node.testPattern("pattern", width: 160, height: 120, frames: 10)
                        Node.null("watched")
                    }
                    Chain(from: "pattern", port: "audio") {
                        Node("echo-cancel", name: "echo", settings: settings)
                        Node.sound("ear")
                    }
                    if isPlayed {
                        Chain {
                            Node.testPattern("other", width: 160, height: 120)
                            Node.null("unseen")
                        }
                        Chain(from: "other", port: "audio") { Join("echo", port: "played") }
                    }
                }
            }
            let error = await #expect(throws: MediaError.self) {
                try await MediaPipeline.plan(graph(["heard": "nobody"], isPlayed: true))
            }
            #expect(error?.code == MediaError.Code.graphInvalid && error?.node == "echo")
            // Nobody plays, and the graph ends with its microphone.
            let watched = try await Watched(graph(["heard": "nobody"], isPlayed: false))
            try await watched.pipeline.start()
            await eventually("the end") { watched.hasEnded }
            await watched.pipeline.stop()
            #expect(watched.failure == nil && !watched.sound().isEmpty)
        }

        @Test("Playback that nothing feeds is refused with its reader, or left out with it if that is optional")
        func unfedPlayback() async throws {
            func graph(_ reader: Node, missing: Bool) -> MediaGraph {
                MediaGraph {
                    Chain {
                        Node.testPattern("pattern", width: 160, height: 120)
                        Node.null("watched")
                    }
                    Chain(from: "pattern", port: "audio") {
                        Node("echo-cancel", name: "echo")
                        Node.null("voice")
                    }
                    if missing {
                        Chain {
                            Node.file("music", path: "/nowhere/music.mp4").optional
                            Join("echo", port: "played")
                        }
                    }
                    Chain(from: "echo", port: "played-out") { reader }
                }
            }
            for missing in [false, true] {
                let error = await #expect(throws: MediaError.self) {
                    try await MediaPipeline.plan(graph(.null("loud"), missing: missing))
                }
                #expect(error?.code == MediaError.Code.graphInvalid && error?.node == "loud")
                #expect(error?.message.hasPrefix("echo.played-out delivers nothing") == true, "\(error as Any)")
                let plan = try await MediaPipeline.plan(graph(.null("loud").optional, missing: missing))
                #expect(plan.omitted.map(\.node) == (missing ? ["music", "loud"] : ["loud"]))
                #expect(plan.nodes.map(\.name) == ["pattern", "watched", "echo", "voice"])
            }
        }

        @Test("Two pipelines with cancellers of one name stay separate")
        func twoPipelines() async throws {
            let conversations = [
                try Conversation(echoAfter: 0.04),
                try Conversation(echoAfter: 0.04, far: Conversation.words.reversed()),
            ]
            async let first = clean(conversations[0])
            async let second = clean(conversations[1])
            for (conversation, samples) in zip(conversations, [try await first.samples, try await second.samples]) {
                let gone = Speech.level(conversation.echo, 3..<7) - Speech.level(samples, 3..<7)
                #expect(gone >= 20, "\(gone) dB are gone")
            }
        }

        /// The result of a conversation in dB: the removed part of each block of echo, the gain of the near end alone,
        /// and its mean gain while both speak.
        private struct ThroughServer {
            let gone: [Double]
            let kept: [Double]
            let both: Double
        }

        /// - Parameter isApart: whether one pipeline plays, and another one, which begins later, records.
        private func throughServer(isApart: Bool) async throws -> ThroughServer {
            // The room: played audio returns at -6 dB after 40 ms, and the near end speaks.
            let server = try Fixture.soundServer("--microphone", "--room", "40")
            let environment = EnvironmentOverride(server.answer.environment.mapValues { $0 })
            defer { withExtendedLifetime(environment) {} }
            let conversation = try Conversation(echoAfter: 0.04)
            let folder = TemporaryFolder()
            let path = folder.path + "/talk.wav"
            // 6 s more of the far end alone: if a frozen machine shifts the echo, its new delay counts as found
            // after 1 to 2 s of speech, which should be the smaller part.
            let more = 6.0
            let before = try Speech.words(Conversation.words, seconds: more)
            let (left, right) = (before + conversation.far, before.map { _ in 0 } + conversation.near)
            writeFile(Speech.wave(left: left, right: right), to: path)
            let talk = Node("test-halves", name: "talk", settings: ["path": .text(path)])
            let nearEnd = MediaGraph {
                Chain { talk }
                Chain(from: "talk", port: "right") {
                    Node.element("pulsesink", ["device": "microphone", "buffer-time": 40_000, "latency-time": 10_000])
                }
                Chain(from: "talk", port: "left") { Node.null() }
            }
            let player = MediaGraph {
                Chain { talk }
                Chain(from: "talk", port: "left") {
                    if isApart { Node.echoProbe(label: "far end") } else { Join("echo", port: "played") }
                    if isApart { Node.speaker() }
                }
                Chain(from: "talk", port: "right") { Node.null() }
            }
            let recorder = MediaGraph {
                Chain {
                    Node.microphone()
                    Tee { Node.sound("raw") }
                    Node("echo-cancel", name: "echo", settings: isApart ? ["heard": "far end"] : [:])
                    Node.sound("ear")
                }
                if !isApart { Chain(from: "echo", port: "played-out") { Node.speaker() } }
            }
            let registry = NodeRegistry.builtIn.adding([HalvesNode.self])
            let mouth = try await Watched(nearEnd, registry: registry)
            let far = isApart ? try await Watched(player, registry: registry) : nil
            let caller =
                isApart
                ? recorder
                : MediaGraph(
                    nodes: player.nodes + recorder.nodes, links: player.links + recorder.links)
            let watched = try await Watched(caller, registry: registry)
            try await mouth.pipeline.start()
            try await far?.pipeline.start()
            try await watched.pipeline.start()
            let start = MediaTime(nanoseconds: UInt64(DispatchTime.now().uptimeNanoseconds))
            await eventually(within: 40, "the conversation to end") {
                watched.sound().last.map { $0.captureTime.seconds(since: start) > more + 15.6 } == true
            }
            await watched.pipeline.stop()
            await far?.pipeline.stop()
            await mouth.pipeline.stop()
            #expect(watched.failure == nil && far?.failure == nil)
            #expect(mouth.failure == nil)
            let (raw, ear) = (watched.sound("raw"), watched.sound("ear"))
            // While the machine is frozen, nothing is recorded, and afterwards the echo has another delay until the
            // canceller finds it. Blocks without audio are ignored, and the median of the others counts.
            func blocks(_ seconds: Range<Double>) -> [Blocks.Pair] {
                Blocks.pairs(before: raw, after: ear, since: start, seconds).filter { $0.before > Blocks.quiet }
            }
            let echo = blocks(3..<more + 6.6)
            let (together, alone) = (blocks(more + 8..<more + 11.6), blocks(more + 13..<more + 15.4))
            // The level of the near end alone also shows how loud it is within the echo.
            let near = Blocks.level(conversation.near, 8..<11.6) - Blocks.level(conversation.near, 13..<15.4)
            let both = Blocks.mean(together.map(\.after)) - Blocks.mean(alone.map(\.before)) - near
            return ThroughServer(
                gone: echo.map { $0.before - $0.after }, kept: alone.map { $0.after - $0.before }, both: both)
        }

        @Test(
            "Audio from a loudspeaker is removed from a microphone, through a sound server and a room of 40 ms",
            arguments: [false, true])
        func soundServer(ofAnotherPipeline isApart: Bool) async throws {
            let heard = try await throughServer(isApart: isApart)
            // The quarter of the blocks with the least echo: a machine that stands still twice spoils more than half.
            let gone = try #require(heard.gone.sorted().dropFirst(heard.gone.count * 3 / 4).first, "the echo is heard")
            let kept = try #require(heard.kept.median, "the near end is heard")
            #expect(gone >= 20, "\(gone) dB are gone, of \(heard.gone.map { Int($0) })")
            #expect(abs(kept) <= 3, "the near end is \(kept) dB from what it was")
            // Measured: -3 to -4 dB, and -6 dB when the machine froze meanwhile.
            #expect(abs(heard.both) <= 10, "the near end is \(heard.both) dB from what it was while both speak")
        }

        @Test("The delay of an echo is found in noise, and none without an echo")
        func delayIsFound() throws {
            let conversation = try Conversation(echoAfter: 0.25)
            var generator = SystemRandomNumberGenerator()
            func listen(_ microphone: [Double]) -> Double? {
                var delay = EchoDelay()
                for block in 0..<600 {
                    let range = block * 480..<(block + 1) * 480
                    func bytes(_ samples: ArraySlice<Double>) -> [Int16] {
                        samples.flatMap {
                            [Int16(max(-32_768, min(32_767, $0))), Int16(max(-32_768, min(32_767, $0)))]
                        }
                    }
                    let time = UInt64(block) * 10_000_000
                    bytes(conversation.far[range]).withUnsafeBytes { delay.play($0.bytes, at: time) }
                    bytes(microphone[range]).withUnsafeBytes { _ = delay.record($0.bytes, at: time) }
                }
                return delay.seconds
            }
            let noise = conversation.echo.map { _ in Double.random(in: -300...300, using: &generator) }
            let found = listen(zip(conversation.echo, noise).map(+))
            #expect(abs((found ?? 0) - 0.25) <= 0.008)
            #expect(listen(noise) == nil)
        }
    }
}
