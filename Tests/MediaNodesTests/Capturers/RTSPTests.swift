import Glibc
import MediaGraph
import Synchronization
import TestFixtures
import Testing
import TestSupport

@testable import MediaNodes

extension MediaNodesTests {
    /// Network cameras; see ../fixtures/rtsp_server.py.
    @Suite struct RTSPTests {
        private func plan(_ url: String, _ settings: [String: SettingValue] = [:]) throws -> GraphPlan {
            let graph = MediaGraph(
                nodes: [
                    Node("rtsp", settings: settings.merging(["url": .text(url)]) { $1 }), .null("video"),
                    .null("audio"),
                ],
                links: [
                    Link(
                        from: PortReference(node: "rtsp", port: "video"), to: PortReference(node: "video", port: "in")),
                    Link(
                        from: PortReference(node: "rtsp", port: "audio"), to: PortReference(node: "audio", port: "in")),
                ])
            return try Planner(NodeRegistry.builtIn, SystemEnvironment()).plan(graph)
        }

        private func watching(_ url: String, video: Bool = true, audio: Bool = true) -> MediaGraph {
            var graph = MediaGraph(nodes: [.rtsp(url: url)], links: [])
            if video {
                graph.nodes.append(.frames("view"))
                graph.links.append(
                    Link(from: PortReference(node: "rtsp", port: "video"), to: PortReference(node: "view", port: "in")))
            }
            if audio {
                graph.nodes.append(.sound("ear"))
                graph.links.append(
                    Link(from: PortReference(node: "rtsp", port: "audio"), to: PortReference(node: "ear", port: "in")))
            }
            return graph
        }

        @Test("The plan knows the codecs before anything runs, and the node decodes nothing")
        func plan() throws {
            let server = try Fixture.rtspServer()
            let node = try #require(try plan(server.answer.url + "/h264-aac").node("rtsp"))
            #expect(node.formats["video"]?.encoding == "h264" && node.formats["audio"]?.encoding == "aac")
            #expect(node.formats["video"]?.framesPerSecond == 15)
            #expect(!node.elements.contains { $0.factory.contains("dec") })
            let head = node.elements.first { $0.name == "video-source" }?.properties["caps"]?.text
            #expect(head?.contains("width") == false, "a camera that returns may have another size")
            let other = try #require(try plan(server.answer.url + "/mjpeg-pcma").node("rtsp"))
            #expect(other.formats["video"]?.encoding == "mjpeg" && other.formats["audio"]?.encoding == "pcma")
        }

        @Test(
            "Video and audio of every codec arrive, and flash and beep together",
            arguments: [
                "/h264-opus", "/h264-aac", "/vp8-opus", "/h265-aac", "/mjpeg-pcma", "/h264-pcmu",
            ])
        func codecs(_ mount: String) async throws {
            let server = try Fixture.rtspServer()
            let seen = Seen()
            let pipeline = try await MediaPipeline(watching(server.answer.url + mount), seen: seen)
            try await pipeline.start()
            // A short load of the machine shifts the timestamps of one stream for a while: rtspsrc mistakes late
            // packets for a slower clock. AAC adds 21 ms for its encoder's delay, which RTP does not signal.
            await eventually(within: 15, "three flashes in a row with their beeps, after two others") {
                let distances = seen.distances
                return distances.count >= 5 && distances.suffix(3).allSatisfy { abs($0) < 40 }
            }
            print(mount, "beep after flash in ms", seen.distances)
            await pipeline.stop()
            #expect(seen.failures.isEmpty)
            #expect(seen.pictures.all.allSatisfy { $0.width == 320 && $0.height == 240 })
        }

        /// A jitter buffer would wait 800 ms for each number, and so be behind the sound, of which nothing is missing.
        @Test func `over TCP, video does not wait for packets that the camera left out`() async throws {
            let server = try Fixture.rtspServer("--omit", "5")
            let graph = watching(server.answer.url + "/mjpeg-pcma")
            let newest = Mutex<MediaTime?>(nil)
            let behind = Collected<Double>()
            var bindings = NodeBindings()
            bindings.audio["ear"] = { chunk in newest.withLock { $0 = chunk.captureTime } }
            bindings.frames["view"] = { frame in
                if let sound = newest.withLock({ $0 }) {
                    behind.append(sound.milliseconds(since: frame.captureTime))
                }
            }
            let pipeline = try await MediaPipeline(graph, bindings: bindings)
            try await pipeline.start()
            await eventually(within: 20, "60 frames") { behind.count >= 60 }
            await pipeline.stop()
            let usual = behind.all.sorted()[30]
            #expect(usual < 400, "\(behind.all)")
        }

        @Test("Video and audio stay in step when the camera stalls for a moment")
        func stalls() async throws {
            let server = try Fixture.rtspServer()
            let seen = Seen()
            let arrivals = Collected<ContinuousClock.Instant>()
            let graph = watching(server.answer.url + "/h264-opus")
            var bindings = seen.bindings(of: graph)
            bindings.frames["view"] = { frame in
                arrivals.append(.now)
                seen.pictures.append(Seen.Picture(frame))
            }
            let pipeline = try await MediaPipeline(graph, bindings: bindings)
            try await pipeline.start()
            await eventually("a flash with its beep") { !seen.distances.isEmpty }
            for milliseconds in [300, 500, 700, 400] {
                kill(server.processIdentifier, SIGSTOP)
                // The length of the stall itself, not a wait for anything.
                try await Task.sleep(for: .milliseconds(milliseconds))
                kill(server.processIdentifier, SIGCONT)
                let count = seen.distances.count
                await eventually("two more") { seen.distances.count >= count + 2 }
            }
            let longest = zip(arrivals.all, arrivals.all.dropFirst()).map { $1 - $0 }.max() ?? .zero
            if longest > .milliseconds(800) {
                // The machine stood still as well, and the node compensates for 0.8 s at most.
                await eventually(within: 15, "three in a row in step again") {
                    seen.distances.suffix(3).allSatisfy { abs($0) < 40 }
                }
            } else {
                #expect(seen.distances.allSatisfy { abs($0) < 40 }, "\(seen.distances)")
            }
            await pipeline.stop()
        }

        @Test func `G.711 of another rate than promised is no stream of the node`() throws {
            let wishes = RTSPWishes(["audio": MediaFormat(.encodedAudio, "pcmu", sampleRate: 8000, channels: 1)])
            let encoding = try #require(Encoding.named("pcmu"))
            func accepts(_ rate: Int, _ channels: Int) -> Bool {
                let stream = NetworkCameraStream(
                    line: 0, isVideo: false, payloadFormat: "PCMU", clockRate: rate, channels: channels)
                return wishes.accept(stream, encoding)
            }
            #expect(accepts(8000, 1) && !accepts(16_000, 1) && !accepts(8000, 2))
        }

        @Test func `of two streams of one kind, the first that fits is shown`() async throws {
            let server = try Fixture.rtspServer()
            let seen = Seen()
            let pipeline = try await MediaPipeline(watching(server.answer.url + "/twins", audio: false), seen: seen)
            let rejected = try #require(pipeline.plan.node("rtsp")).passedOver
            #expect(rejected.count == 1 && rejected[0].contains("m-line 2 (H264)"), "\(rejected)")
            try await pipeline.start()
            func state() -> SourceStatus.State? { pipeline.statistics.sources["rtsp"]?.state }
            await eventually("the camera's frames") { state() == .streaming && seen.pictures.count > 3 }
            await pipeline.stop()
            #expect(seen.failures.isEmpty && seen.pictures.all.allSatisfy { $0.width == 320 })
        }

        @Test("A password stays out of the plan and opens the stream")
        func password() async throws {
            let server = try Fixture.rtspServer("--user", "guard", "--password", "geheim")
            let place = server.answer.url.dropFirst("rtsp://".count)
            let url = "rtsp://guard:geheim@\(place)/h264"
            let seen = Seen()
            let pipeline = try await MediaPipeline(watching(url, audio: false), seen: seen)
            let node = try #require(pipeline.plan.node("rtsp"))
            #expect(!"\(node.elements) \(node.notes) \(node.passedOver)".contains("geheim"))
            try await pipeline.start()
            await eventually("pictures") { seen.pictures.count > 3 }
            await pipeline.stop()
        }

        @Test("A camera with TLS is watched if its certificate need not be trusted")
        func encrypted() async throws {
            let server = try Fixture.rtspServer("--tls")
            let url = server.answer.url + "/h264-opus"
            let untrusted = #expect(throws: MediaError.self) { try plan(url) }
            #expect(untrusted?.code == "rtsp.certificate", "\(untrusted.map(String.init(describing:)) ?? "no error")")
            let seen = Seen()
            var graph = watching(url)
            graph.nodes[0].settings["verify-certificate"] = false
            let pipeline = try await MediaPipeline(graph, seen: seen)
            try await pipeline.start()
            await eventually("video and audio") { seen.pictures.count > 3 && seen.sound.count > 3 }
            await pipeline.stop()
            #expect(seen.failures.isEmpty)
        }

        @Test("Problems of a camera are reported in the plan, before anything runs")
        func failures() throws {
            let server = try Fixture.rtspServer("--user", "guard", "--password", "geheim")
            let url = server.answer.url
            let place = url.dropFirst("rtsp://".count)
            func code(_ url: String) -> String? { (#expect(throws: MediaError.self) { try plan(url) })?.code }
            #expect(code("http://camera/") == "graph.invalid")
            #expect(code("rtsp://no-such-host.invalid/") == "rtsp.unreachable")
            #expect(code("\(url)/h264-aac") == "rtsp.unauthorized")
            #expect(code("rtsp://guard:falsch@\(place)/h264-aac") == "rtsp.unauthorized")
            #expect(code("rtsp://guard:geheim@\(place)/nowhere") == "rtsp.not-found")
            #expect(code("rtsp://guard:geheim@\(place)/h264") == "rtsp.no-stream")
            server.end()
            let refused = #expect(throws: MediaError.self) { try plan("rtsp://guard:geheim@\(place)/h264-aac") }
            #expect(refused?.code == "rtsp.unreachable")
            #expect(refused?.message.contains("geheim") == false)
            #expect(refused?.message.contains(place) == true)
            #expect(refused?.message.hasSuffix("To start without it, set video, width, height, audio.") == true)
        }

        @Test("A camera that ends the node with its loss is an error with its name")
        func lost() async throws {
            let server = try Fixture.rtspServer()
            let seen = Seen()
            var graph = watching(server.answer.url + "/vp8", audio: false)
            graph.nodes[0].settings["away"] = "end"
            let pipeline = try await MediaPipeline(graph, seen: seen)
            try await pipeline.start()
            await eventually("pictures") { seen.pictures.count > 3 }
            server.end()
            await eventually("the loss") { !seen.failures.isEmpty }
            #expect(seen.failures.first?.code == "rtsp.lost")
            #expect(seen.failures.first?.message.contains(server.answer.url) == true)
            await pipeline.stop()
        }

        @Test("A graph starts without its camera, and goes on while the camera is away, with silence")
        func comesAndGoes() async throws {
            let first = try Fixture.rtspServer()
            let url = first.answer.url
            let port = String(try #require(url.split(separator: ":").last))
            first.end()
            var graph = watching(url + "/h264-opus")
            #expect(throws: MediaError.self) { try plan(url + "/h264-opus") }
            graph.nodes[0].settings.merge(["video": "h264", "width": 320, "height": 240, "audio": "opus"]) { $1 }
            let seen = Seen()
            let pipeline = try await MediaPipeline(graph, seen: seen)
            #expect(pipeline.plan.node("rtsp")?.device?.waiting?.contains("waits for: rtsp://") == true)
            try await pipeline.start()
            await eventually("a slate with silence") { seen.pictures.count > 0 && seen.sound.count > 20 }
            #expect(seen.pictures.all.allSatisfy { $0.brightness < 60 && $0.width == 320 })
            var server = try Fixture.rtspServer("--port", port)
            await eventually(within: 15, "the camera") { seen.distances.count >= 2 }
            #expect(pipeline.statistics.sources["rtsp"]?.state == .streaming)
            server.end()
            await eventually("the loss") { pipeline.absences["rtsp"] != nil }
            let (pictures, sound) = (seen.pictures.count, seen.sound.count)
            await eventually("stand-ins") { seen.pictures.count > pictures + 1 && seen.sound.count > sound + 50 }
            server = try Fixture.rtspServer("--port", port)
            let flashes = seen.flashes.count
            await eventually(within: 15, "the camera again") { seen.flashes.count > flashes + 1 }
            await pipeline.stop()
            withExtendedLifetime(server) {}
            let times = seen.pictures.all.map(\.time)
            #expect(zip(times, times.dropFirst()).allSatisfy { $0 < $1 })
            let gaps = zip(seen.sound.all, seen.sound.all.dropFirst()).map { one, next in
                next.captureTime.milliseconds(since: one.captureTime) - Double(one.samples.count) / 96
            }
            #expect(gaps.allSatisfy { abs($0) < 60 }, "\(gaps.filter { abs($0) >= 60 })")
            #expect(seen.failures.isEmpty)
            #expect(
                seen.deviceEvents.first == "waiting rtsp.unreachable" && seen.deviceEvents.contains("lost rtsp.lost"))
        }

        @Test("A recording goes on through a loss, with the camera's own H.264 and AAC")
        func recorded() async throws {
            let folder = TemporaryFolder()
            let server = try Fixture.rtspServer()
            let url = server.answer.url
            let port = String(try #require(url.split(separator: ":").last))
            let seen = Seen()
            let graph = MediaGraph(
                nodes: [.rtsp(url: url + "/h264-aac"), .recorder(path: folder.path + "/loss.mkv")],
                links: ["video", "audio"].map {
                    Link(
                        from: PortReference(node: "rtsp", port: $0), to: PortReference(node: "recorder", port: $0))
                })
            let pipeline = try await MediaPipeline(graph, seen: seen)
            #expect(pipeline.plan.nodes.allSatisfy { $0.adapts == nil })
            try await pipeline.start()
            func frames() -> Int { pipeline.statistics.recorders["recorder"]?.frames ?? 0 }
            await eventually("frames") { frames() > 20 }
            server.end()
            await eventually("the loss") { pipeline.absences["rtsp"] != nil }
            let before = frames()
            await eventually("stand-ins") { frames() > before + 1 }
            let again = try Fixture.rtspServer("--port", port)
            await eventually(within: 15, "the return") { seen.deviceEvents.last == "returned" }
            let back = frames()
            await eventually("frames again") { frames() > back + 20 }
            await pipeline.stop()
            withExtendedLifetime(again) {}
            let recording = DecodedRecording(folder.path + "/loss.mkv")
            #expect(recording.problem == nil)
            #expect(
                recording.numbers.count > 30 && zip(recording.times, recording.times.dropFirst()).allSatisfy { $0 < $1 }
            )
            let length = try #require(recording.times.last)
            #expect(recording.secondsOfSound > length - 0.5 && recording.secondsOfSound < length + 1)
        }

        @Test func `a kind of media that stops alone is filled, and goes on in sync`() async throws {
            let server = try Fixture.rtspServer()
            let seen = Seen()
            let pipeline = try await MediaPipeline(watching(server.answer.url + "/h264-aac"), seen: seen)
            try await pipeline.start()
            await eventually(within: 15, "a flash with its beep") { seen.distances.count >= 2 }
            func goesOnInSync() async {
                let (beeps, flashes) = (seen.beeps.count, seen.flashes.count)
                await eventually(within: 15, "both again, in sync") {
                    seen.beeps.count > beeps + 2 && seen.flashes.count > flashes + 2
                        && seen.distances.suffix(2).allSatisfy { abs($0) < 60 }
                }
            }
            server.tell("mute audio")
            let sound = seen.sound.count
            let beeps = seen.beeps.count
            await eventually(within: 15, "silence") { seen.sound.count > sound + 150 }
            #expect(seen.beeps.count <= beeps + 2)
            server.tell("unmute audio")
            await goesOnInSync()
            server.tell("mute video")
            await eventually("the stand-in") { pipeline.statistics.sources["rtsp"]?.state == .silent }
            // Longer than the silence after which a camera is lost.
            let pictures = seen.pictures.count
            await eventually("the last keyframe") { seen.pictures.count >= pictures + 7 }
            #expect(pipeline.statistics.sources["rtsp"]?.losses == 0)
            server.tell("unmute video")
            await goesOnInSync()
            await pipeline.stop()
            let gaps = zip(seen.sound.all, seen.sound.all.dropFirst()).map { one, next in
                next.captureTime.milliseconds(since: one.captureTime) - Double(one.samples.count) / 96
            }
            #expect(gaps.allSatisfy { abs($0) < 150 }, "\(gaps.filter { abs($0) >= 150 })")
            #expect(seen.failures.isEmpty && seen.deviceEvents.isEmpty)
        }

        /// Watches a camera of H.264 and AAC that returns with other audio.
        private func returning(
            _ option: String, _ value: String, _ seen: Seen
        ) async throws -> (MediaPipeline, camera: Fixture<RTSPServerAnswer>) {
            let first = try Fixture.rtspServer()
            let url = first.answer.url
            let port = String(try #require(url.split(separator: ":").last))
            let pipeline = try await MediaPipeline(watching(url + "/h264-aac"), seen: seen)
            try await pipeline.start()
            await eventually(within: 15, "a flash with its beep") { seen.distances.count >= 2 }
            first.end()
            await eventually("the loss") { pipeline.absences["rtsp"] != nil }
            let camera = try Fixture.rtspServer("--port", port, option, value)
            await eventually(within: 15, "the return") { seen.deviceEvents.last == "returned" }
            return (pipeline, camera)
        }

        @Test(arguments: ["16000x1", "44100x2"])
        func `AAC of another rate is encoded again after a loss`(_ aac: String) async throws {
            let seen = Seen()
            let (pipeline, camera) = try await returning("--aac", aac, seen)
            let beeps = seen.beeps.count
            // The camera's encoder and that of the node each add 1024 samples: up to 64 and 21 ms.
            await eventually(within: 15, "beeps in sync, but late by \(seen.distances.suffix(4)) ms") {
                seen.beeps.count > beeps + 2 && seen.distances.suffix(2).allSatisfy { abs($0) < 140 }
            }
            await pipeline.stop()
            withExtendedLifetime(camera) {}
            #expect(seen.failures.isEmpty && seen.sound.all.allSatisfy { $0.sampleRate == 48_000 })
            #expect(
                seen.events.all.contains {
                    if case .warning(_, let words) = $0 {
                        words.contains("decoded, and encoded as aac at 48000 Hz")
                    } else {
                        false
                    }
                })
        }

        @Test func `a camera that returns with two streams of AAC shows the promised one`() async throws {
            let seen = Seen()
            let (pipeline, camera) = try await returning("--aac-before", "96000x1", seen)
            let beeps = seen.beeps.count
            await eventually(within: 15, "beeps") { seen.beeps.count > beeps + 2 }
            await pipeline.stop()
            withExtendedLifetime(camera) {}
            #expect(seen.failures.isEmpty && seen.sound.all.allSatisfy { $0.sampleRate == 48_000 })
        }

        @Test func `B-frames of a camera are recorded in the order of their decoding`() async throws {
            let folder = TemporaryFolder()
            let server = try Fixture.rtspServer()
            let path = folder.file("camera.mp4")
            let graph = MediaGraph(
                nodes: [.rtsp(url: server.answer.url + "/h264b"), .recorder("disk", path: path)],
                links: [
                    Link(
                        from: PortReference(node: "rtsp", port: "video"),
                        to: PortReference(node: "disk", port: "video"))
                ])
            let pipeline = try await MediaPipeline(graph, seen: Seen())
            try await pipeline.start()
            await eventually("frames") { pipeline.statistics.recorders["disk"]?.frames ?? 0 >= 40 }
            await pipeline.stop()
            let recording = DecodedRecording(path)
            let steps = zip(recording.times, recording.times.dropFirst()).map { $1 - $0 }
            #expect(recording.problem == nil && steps.count >= 35)
            // At first, the jitter buffer estimates the camera's clock, and two frames may get the same time.
            #expect(steps.allSatisfy { $0 >= 0 }, "\(steps)")
            #expect(steps.dropLast(3).suffix(10).allSatisfy { abs($0 - 1.0 / 15) < 0.005 }, "\(steps)")
        }

        @Test("A stream that has a length ends the source with its end")
        func clip() async throws {
            let server = try Fixture.rtspServer("--clip")
            let seen = Seen()
            let pipeline = try await MediaPipeline(watching(server.answer.url + "/clip", audio: false), seen: seen)
            try await pipeline.start()
            await eventually(within: 15, "the end") { seen.hasEnded }
            await pipeline.stop()
            #expect(seen.failures.isEmpty && seen.deviceEvents.isEmpty && seen.pictures.count > 20)
        }

        @Test("Audio alone, and video over UDP, arrive too")
        func soundAndUDP() async throws {
            let server = try Fixture.rtspServer()
            let seen = Seen()
            var graph = watching(server.answer.url + "/vp8", audio: false)
            graph.nodes[0].settings["transport"] = "udp"
            graph.nodes.append(.rtsp("other", url: server.answer.url + "/opus"))
            graph.nodes.append(.sound("ear"))
            graph.links.append(
                Link(from: PortReference(node: "other", port: "audio"), to: PortReference(node: "ear", port: "in")))
            let pipeline = try await MediaPipeline(graph, seen: seen)
            try await pipeline.start()
            await eventually("both") { seen.pictures.count > 5 && seen.sound.count > 5 }
            await pipeline.stop()
            #expect(seen.failures.isEmpty)
        }
    }
}
