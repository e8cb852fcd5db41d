import GraphFile
import MediaNodes
import Testing

/// A composition of handles as a graph of names.
@Suite struct CompositionTests {
    private func settled(_ composition: Composition) throws -> MediaGraph {
        try composition.graph.settled(with: NodeRegistry.builtIn)
    }

    private func graph(of yaml: String) throws -> MediaGraph {
        try GraphDocument(Array(yaml.utf8), path: "graph.yaml", catalogue: NodeRegistry.builtIn).graph
            .settled(with: NodeRegistry.builtIn)
    }

    /// The code and message of the error, if the composition gives no graph.
    private func refusal(_ composition: Composition) -> String? {
        do throws(MediaError) {
            _ = try composition.graph
            return nil
        } catch {
            return error.description
        }
    }

    @Test func `a handle that is linked twice is one node with two branches`() throws {
        let camera = Camera()
        let graph = try settled(
            Composition {
                camera >>> Null()
                camera >>> Null()
            })
        #expect(graph.nodes.map(\.name) == ["camera", "null", "null-2"])
        #expect(
            graph.links == [
                Link(
                    from: PortReference(node: "camera", port: "video"), to: PortReference(node: "null", port: "in")),
                Link(
                    from: PortReference(node: "camera", port: "video"), to: PortReference(node: "null-2", port: "in")),
            ])
    }

    @Test func `saying a link twice links once`() throws {
        let (camera, encoder) = (Camera(), VideoEncoder(.vp8))
        let graph = try settled(
            Composition {
                camera >>> encoder >>> Recorder(path: "a.mkv")
                camera >>> encoder >>> Null()
            })
        #expect(graph.nodes.map(\.name) == ["camera", "vp8-encoder", "recorder", "null"])
        #expect(graph.links.count == 3)
    }

    @Test func `a link with an open port and the same link with its name link once`() throws {
        let (file, encoder) = (File(path: "a.mp4"), VideoEncoder(.vp8))
        let graph = try settled(
            Composition {
                file >>> encoder >>> Null()
                file.video >>> encoder
            })
        #expect(
            graph.links.filter { $0.to.node == "vp8-encoder" } == [
                Link(
                    from: PortReference(node: "file", port: "video"),
                    to: PortReference(node: "vp8-encoder", port: "in"))
            ])
    }

    @Test func `a route is linked like a node`() throws {
        let (camera, null) = (Camera(), Null())
        let picture = Scale(width: 320, height: 240) >>> Mirroring()
        let nested = try Composition { camera >>> (picture >>> null) }.graph
        #expect(nested == (try Composition { camera >>> picture >>> null }.graph))
        #expect(
            nested.links.map { "\($0.from.node)-\($0.to.node)" }.sorted() == [
                "camera-scale", "mirror-null", "scale-mirror",
            ])
    }

    @Test func `optional copies are one node, and one mention of it as optional is enough`() throws {
        let window = Window(title: "Preview")
        let graph = try settled(
            Composition {
                Camera() >>> window
                window.optional
            })
        #expect(graph.nodes.map(\.name) == ["camera", "window"])
        #expect(graph.nodes.map(\.isOptional) == [false, true])
    }

    @Test func `a given name holds for all mentions of a node, and others of its kind are numbered around it`() throws {
        let (first, second, third) = (Camera(), Camera(), Camera())
        let graph = try settled(
            Composition {
                first >>> Null()
                second >>> Null().named("camera")
                third.named("front") >>> Null()
                third >>> Mirroring() >>> Null()
            })
        #expect(
            graph.nodes.map(\.name)
                == ["camera-2", "null", "camera-3", "camera", "front", "null-2", "mirror", "null-3"])
    }

    @Test func `a name belongs to one node, and a node has one name`() {
        let camera = Camera()
        #expect(
            refusal(
                Composition {
                    camera.named("a") >>> Null().named("a")
                }) == "Two nodes are named \"a\". Name one of them differently. [graph.invalid]")
        #expect(
            refusal(
                Composition {
                    camera.named("a") >>> Null()
                    camera.named("b") >>> Null()
                }) == "One node is named both \"a\" and \"b\". Name it once. [graph.invalid]")
    }

    @Test func `conditions, repetitions and parts make one composition`() throws {
        let (camera, mixer) = (Camera(), Mixer(.grid))
        let part = Composition { mixer >>> Null() }
        func composition(_ isSeen: Bool) -> Composition {
            Composition {
                for number in 1...3 {
                    TestPattern() >>> mixer.input(number)
                }
                if isSeen { camera >>> Window() } else { camera >>> Null().named("unseen") }
                part
            }
        }
        #expect(try settled(composition(true)).node("window") != nil)
        let graph = try settled(composition(false))
        #expect(graph.node("window") == nil)
        #expect(graph.links(into: "mixer").map(\.to.port) == ["in1", "in2", "in3"])
        #expect(graph.links(outOf: "mixer").map(\.to.node) == ["null"])
    }

    @Test func `a composition and a file give the same graph`() throws {
        let file = File(path: "clip.mp4", loops: false)
        let microphone = Microphone(away: .end).optional
        let (video, mixer) = (VideoEncoder(.h264, bitrate: .megabitsPerSecond(2)), Mixer(.grid, width: 640))
        let recorder = Recorder(path: "standup.mkv", segment: .seconds(6)).optional
        let composition = Composition {
            file.video >>> mixer.input(2)
            Camera(width: 1280, height: 720, away: .slate) >>> mixer.input(1)
            mixer >>> GStreamerElement("videobalance", ["saturation": 0.2]) >>> Window(title: "Preview").optional
            mixer >>> video >>> recorder.video
            file.audio >>> Null().named("unheard")
            microphone >>> Volume(0.5) >>> OpusEncoder(expectedLossPercent: 0) >>> recorder.audio
        }
        let yaml = """
            chains:
              - - {node: file, path: clip.mp4, loop: false}
                - {to: mixer.in2}
              - - {node: camera, width: 1280, height: 720, away: slate}
                - {to: mixer.in1}
              - - {node: mixer, layout: grid, width: 640}
                - {element: videobalance, saturation: 0.2}
                - {node: window, title: Preview, optional: true}
              - - {from: mixer}
                - {node: h264-encoder, bitrate: 2000k}
                - {node: recorder, path: standup.mkv, segment: 6, optional: true}
              - - {from: file.audio}
                - {node: "null", name: unheard}
              - - {node: microphone, away: end, optional: true}
                - {node: volume, volume: 0.5}
                - {node: opus-encoder, expected-loss: 0}
                - {to: recorder.audio}
            """
        let (swift, read) = (try settled(composition), try graph(of: yaml))
        #expect(swift == read)
        #expect(swift.validate().isEmpty)
    }

    /// Each with all of its settings.
    private static let everyNode: [any MediaNode] =
        [
            Camera(
                device: "a", width: 640, height: 480, framesPerSecond: 30, isStrict: true, mirror: true, format: .raw,
                away: .slate, failover: "b", slateText: "a", slateImage: "a.png", brightness: 1, contrast: 1,
                saturation: 1,
                hue: 1, controls: "a=1"),
            Microphone(device: "a", system: .alsa, away: .silence, bluetooth: false, role: .phone),
            File(path: "a", loops: true, format: .raw),
            Bypass(width: 640, height: 480, framesPerSecond: 30, codec: .vp8),
            Screen(
                display: ":0", window: "a", region: Screen.Region(x: 1, y: 1, width: 64, height: 64),
                framesPerSecond: 30,
                showsPointer: true),
            Screen(pipewireNode: "a", pipewireDescriptor: 9, framesPerSecond: 30),
            TestPattern(width: 640, height: 480, framesPerSecond: 30, frames: 1),
            RTSP(
                url: "rtsp://a/b", transport: .udp, latency: .seconds(1), verifiesCertificate: false, away: .slate,
                video: "h264", width: 640, height: 480, audio: "aac", sampleRate: 48_000, channels: 2, slateText: "a",
                slateImage: "a.png"),
            Feed(
                socket: "a", width: 640, height: 480, framesPerSecond: 30, format: "NV12", scales: true,
                timeout: .seconds(1), away: .slate, slateText: "a", slateImage: "a.png"),
            CapturerProcess(
                command: "a", width: 640, height: 480, framesPerSecond: 30, format: "NV12", scales: true,
                restarts: true,
                timeout: .seconds(1), away: .slate, slateText: "a", slateImage: "a.png"),
            Exec(
                command: "a", width: 640, height: 480, framesPerSecond: 30, format: "NV12", restarts: true,
                timeout: .seconds(1), away: .slate, slateText: "a", slateImage: "a.png"),
            Scale(width: 640, height: 480, framesPerSecond: 30), Convert(pixelFormat: "NV12"),
            Rate(framesPerSecond: 30, repeats: true), Crop(left: 1, right: 1, top: 1, bottom: 1), Crop(shape: "16:9"),
            Mirroring(.vertical), Rotate(degrees: 90),
            Overlay(
                text: "a", position: .topLeft, x: 1, y: 1, fontSize: 20, color: "#ffcc00", isShaded: true, clock: "%H",
                clockPosition: .bottomRight,
                image: Overlay.Image(path: "a.png", x: 1, y: 1, width: 64, height: 64, opacity: 0.5)),
            Mixer(
                .pictureInPicture, width: 640, height: 480, framesPerSecond: 30, main: 1, corner: .topLeft, inset: 0.5,
                margin: 1),
            FrameFunction { _ in }, Volume(1, isMuted: true), Level(interval: .milliseconds(100)),
            AudioMixer(latency: .milliseconds(20), waiting: .milliseconds(200)),
            EchoCancel(
                suppression: .high, noiseSuppression: .veryHigh, gainControl: true, targetLevel: -3,
                delay: .milliseconds(80), heard: "a"),
            EchoProbe(label: "a"),
            OpusEncoder(bitrate: .kilobitsPerSecond(64), expectedLossPercent: 1, dtx: true),
            AACEncoder(bitrate: .kilobitsPerSecond(128)), VideoDecoder(), AudioDecoder(), Frames { _ in },
            Sound { _ in },
            Snapshot(path: "a.png", frame: 1), Window(title: "a"),
            Terminal(columns: 80, rows: 25, framesPerSecond: 5, device: "/dev/pts/3"),
            Speaker(device: "a", system: .pulse, away: .end, buffer: 100, role: .music),
            Null(), RTPOutput(payloadType: 96, ssrc: 1, mtu: 1000) { _ in },
            RTPInput(.vp8, payloadType: 96, latency: .seconds(1), capacity: 100),
            RTPInput(.opus, capacity: 100), GStreamerElement("videobalance", ["saturation": 0.2]),
        ]
        + [Recorder.Format.auto, .matroska, .mp4, .webm, .hls].map {
            Recorder(path: "a", format: $0, segment: .seconds(4))
        }
        + VideoEncoder.Codec.allCases.map {
            VideoEncoder(
                $0, bitrate: .megabitsPerSecond(1), keyframeInterval: 10, element: "auto", degradation: .balanced,
                layer: .half)
        }

    @Test func `every setting of a handle is one of its kind, with a valid value`() throws {
        for node in Self.everyNode {
            let graph = try Composition { AnyNode(handle: node.handle) }.graph
            let name = graph.nodes[0].kind
            #expect(NodeRegistry.builtIn.kind(named: name) != nil, "\(name)")
            #expect(graph.validate().filter { $0.setting != nil }.map(\.message) == [], "\(name)")
        }
    }

    @Test func `every built-in kind has a handle, with all of its settings`() throws {
        var covered: [String: Set<String>] = [:]
        for handle in Self.everyNode {
            let node = try Composition { AnyNode(handle: handle.handle) }.graph.nodes[0]
            covered[node.kind, default: []].formUnion(node.settings.keys)
        }
        for kind in NodeRegistry.builtIn.kinds {
            #expect(covered[kind.name] == Set(kind.settings.map(\.name)), "\(kind.name)")
        }
    }
}

/// A node of any kind.
private struct AnyNode: MediaNode {
    var handle: NodeHandle
}
