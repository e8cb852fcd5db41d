import MediaGraph
import TestFixtures
import TestSupport
import Testing

@testable import MediaNodes

extension MediaNodesTests {
    /// Received audio on a stepped clock.
    @Suite struct SoundPlayoutTests {
        private struct Heard: Sendable {
            /// When it is to be played, but for the latency that all audio has.
            let time: MediaTime
            let arrival: MediaTime
            let end: MediaTime

            /// In seconds.
            var lateness: Double { arrival.seconds(since: time) }
        }

        /// RTP packets with 20 ms of a tone each.
        private func packets(_ count: Int) throws -> [[UInt8]] {
            try EncodedFilm.opus(hertz: 400, packets: count).enumerated().map { number, payload in
                let timestamp = UInt32(number * 960)
                let place = [UInt8(number >> 8), UInt8(number & 0xff)]
                let time = (0..<4).map { UInt8(truncatingIfNeeded: timestamp >> (24 - 8 * $0)) }
                return [0x80, 96] + place + time + [0, 0, 0, 1] + payload
            }
        }

        private func nodes(_ kinds: [String]) -> [Node] {
            kinds.enumerated().map { index, kind in
                // Other tests hear the usual label.
                let settings: [String: SettingValue] = kind == "echo-probe" ? ["label": "playout"] : [:]
                return Node(kind, name: index == 0 ? "slot" : "node\(index)", settings: settings)
            }
        }

        /// Lets packets arrive so many milliseconds late, in the order of their arrival. Returns what is heard of them, and how many
        /// packets came too late.
        ///
        /// - Parameters:
        ///   - change: the first packet of another stream
        ///   - kinds: of the nodes behind the decoder. The first one has the name `slot`.
        private func play(
            _ count: Int, change: Int? = nil, latency: Int? = nil, through kinds: [String] = ["sound-slot"],
            lateness: (Int) -> Int
        ) async throws -> (heard: [Heard], lost: Int) {
            let clock = SteppedClock()
            let heard = Collected<Heard>()
            let graph = MediaGraph {
                Chain {
                    Node.rtpInput("in", codec: AudioCodec.opus, payloadType: 96, latency: latency)
                    Node.audioDecoder()
                    for node in nodes(kinds) { node }
                    Node.sound("ear")
                }
            }
            var bindings = NodeBindings()
            bindings.audio["ear"] = { chunk in
                let length = Double(chunk.samples.count / 2) / Double(chunk.sampleRate)
                heard.append(
                    Heard(
                        time: chunk.captureTime, arrival: clock.now, end: chunk.captureTime + .seconds(length)))
            }
            let pipeline = try await MediaPipeline(
                graph, bindings: bindings, registry: .builtIn.adding([SoundSlotNode.self]), on: clock)
            let input = try #require(pipeline.rtpInput("in"))
            try await pipeline.begin()
            let start = clock.now
            let order = (0..<count).map { (index: $0, time: $0 * 20 + lateness($0)) }.sorted {
                ($0.time, $0.index) < ($1.time, $1.index)
            }
            let packets = try packets(count)
            // All packets below this number have come.
            var (arrived, whole, unheard) = (Set<Int>(), 0, 0)
            for (number, arrival) in order.enumerated() {
                let wait = Double(arrival.time) / 1000 - clock.now.seconds(since: start)
                clock.advance(by: max(0, wait), pending: 0)
                if arrival.index == change {
                    let slot = pipeline.graph.node("slot")?.running as? SoundSlotNode
                    #expect(slot?.end() == true)
                    // The rest of the former stream is not played.
                    unheard = 2
                }
                let packet = packets[arrival.index]
                input.push(packet, ends: [packet.count])
                arrived.insert(arrival.index)
                while arrived.contains(whole) { whole += 1 }
                // The decoder keeps a packet until the next one, which may have to repair it.
                await eventually("packet \(number)") { heard.count >= whole - 1 - unheard }
            }
            await eventually("the end") {
                clock.crank(seconds: 0.01)
                return heard.count >= count - 1 - unheard
            }
            let lost = pipeline.statistics.rtpInputs["in"]?.packetsLost ?? -1
            await pipeline.stop()
            return (heard.all, lost)
        }

        /// The graph has 60 ms for late packets, and 20 ms for the decoder.
        private static let allowance = 0.08

        @Test func `without jitter, audio is not delayed`() async throws {
            let (heard, lost) = try await play(100) { $0 % 7 == 0 ? 5 : 0 }
            #expect(heard.allSatisfy { $0.lateness > 0.01 && $0.lateness < 0.03 } && lost == 0)
        }

        /// As over a link that stops for 160 ms, five times a second.
        private static func burst(_ number: Int) -> Int { number < 20 ? 0 : 20 * max(0, 8 - number % 10) }

        @Test(arguments: [["sound-slot"], ["echo-probe"], ["echo-probe", "volume", "echo-probe"]])
        func `audio that arrives in bursts is delayed once, until none of it is late`(kinds: [String]) async throws {
            let (heard, lost) = try await play(250, through: kinds, lateness: Self.burst)
            #expect(lost == 0)
            #expect(heard.allSatisfy { $0.lateness > -0.16 }, "\(heard.map(\.lateness))")
            // The first bursts are late.
            #expect(heard.prefix(50).contains { $0.lateness > 0.12 })
            #expect(heard.dropFirst(150).allSatisfy { $0.lateness < Self.allowance }, "\(heard.map(\.lateness))")
            let gaps = zip(heard.dropFirst(150), heard.dropFirst(151)).map { $1.time.seconds(since: $0.end) }
            #expect(gaps.allSatisfy { abs($0) < 0.001 }, "\(gaps)")
        }

        @Test(arguments: [(nil, []), (60, ["sound-slot"])] as [(Int?, [String])])
        func `audio that nothing plays, and audio with a fixed latency, is not delayed`(latency: Int?, kinds: [String])
            async throws
        {
            let (heard, lost) = try await play(250, latency: latency, through: kinds, lateness: Self.burst)
            #expect(lost == 0)
            #expect(heard.dropFirst(150).contains { $0.lateness > Self.allowance }, "\(heard.map(\.lateness))")
        }

        /// The playout delay of received audio that passes these nodes. Nil if none of them holds it.
        private func delay(latency: Int? = nil, _ nodes: Node...) async throws -> Double? {
            let graph = MediaGraph {
                Chain {
                    Node.rtpInput("in", codec: AudioCodec.opus, latency: latency)
                    for node in nodes { node }
                }
            }
            var bindings = NodeBindings()
            if nodes.contains(where: { $0.name == "ear" }) { bindings.audio["ear"] = { _ in } }
            return try await MediaPipeline(graph, bindings: bindings).statistics.rtpInputs["in"]?.playoutDelay
        }

        @Test func `nodes that play or mix received audio hold it, and others do not`() async throws {
            #expect(try await delay(.audioDecoder(), .speaker()) == 0)
            #expect(try await delay(.audioDecoder(), Node("level"), .audioMixer(), .null("end")) == 0)
            #expect(try await delay(.audioDecoder(), .echoProbe(label: "playout"), .null("end")) == 0)
            #expect(try await delay(latency: 60, .audioDecoder(), .speaker()) == nil)
            #expect(try await delay(.audioDecoder(), .sound("ear")) == nil)
            #expect(try await delay(.null("end")) == nil)
        }

        @Test func `the next stream in the same place begins without the delay of the former one`() async throws {
            let (heard, _) = try await play(150, change: 100) {
                $0 < 20 || $0 >= 95 ? 0 : 20 * max(0, 8 - $0 % 10)
            }
            // Played later, a sound seems to arrive early.
            #expect(heard.dropFirst(80).prefix(10).contains { $0.lateness < -0.02 })
            #expect(heard.dropFirst(105).allSatisfy { $0.lateness > 0.01 }, "\(heard.map(\.lateness))")
        }

        @Test func `packets that others overtake are played as soon as the delay allows for them`() async throws {
            let (heard, lost) = try await play(260) { $0 % 20 == 10 ? 150 : 0 }
            #expect(lost <= 5, "\(lost) of 13")
            #expect(heard.dropFirst(200).allSatisfy { $0.lateness < Self.allowance }, "\(heard.map(\.lateness))")
        }
    }
}
