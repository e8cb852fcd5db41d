import Testing

@testable import GStreamerKit
@testable import MediaGraph
@testable import MediaNodes

/// A machine with the elements that are installed here, hardware that can always be opened, and one device of each
/// kind.
private struct FurnishedMachine: PlanEnvironment {
    var sinks = (window: "ximagesink", playing: "pulsesink", recording: "pulsesrc")

    func hasElement(_ factory: String) -> Bool { GStreamer.has(factory) }
    func canOpen(_ factory: String) -> Bool { GStreamer.has(factory) }
    func package(ofElement factory: String) -> String { GStreamer.debianPackage(of: factory) }
    func windowSink() -> String? { sinks.window }
    func soundSink() -> String? { sinks.playing }
    func soundSource() -> String? { sinks.recording }
    func secondsPerFrame(_ element: ElementPlan, _ format: MediaFormat) -> Double { 0 }

    func camera(_ device: String) throws(MediaError) -> CameraChoice {
        // Only JPEG is fast enough for the requested 50 frames/s, and it lacks the requested aspect ratio.
        let formats = [("YUY2", 640, 480, 30.0), ("MJPG", 1280, 720, 60.0), ("H264", 1280, 720, 30.0)].map {
            CameraFormat(pixelFormat: $0, width: $1, height: $2, framesPerSecond: [$3])
        }
        return (CameraDevice(path: "/dev/video0", name: "Camera", formats: formats), [])
    }

    func file(_ path: String) throws(MediaError) -> MediaFileInfo {
        MediaFileInfo(path: path, width: 640, height: 480, framesPerSecond: 25, hasAudio: true, duration: 10)
    }

    func networkCamera(_ url: String, verifyingCertificate: Bool) throws(MediaError) -> NetworkCamera {
        let codec = url.split(separator: "/").last.map(String.init) ?? "H264"
        return [
            NetworkCameraStream(line: 0, isVideo: true, payloadFormat: codec, clockRate: 90_000),
            NetworkCameraStream(line: 1, isVideo: false, payloadFormat: "OPUS", clockRate: 48_000, channels: 2),
        ]
    }

    func screen(display: String, window: String) throws(MediaError) -> CapturedScreen {
        CapturedScreen(
            display: ":0", width: 800, height: 600, window: window.isEmpty ? nil : 17,
            title: window.isEmpty ? nil : window)
    }

    func pipeWireScreen(_ node: String, descriptor: Int?) throws(MediaError) -> CapturedScreen {
        CapturedScreen(display: "", width: 800, height: 600, framesPerSecond: 30)
    }
}

extension MediaNodesTests {
    @Suite struct PlannedPropertyTests {
        /// Values of text settings, which no contract lists.
        private static let texts: [String: [SettingValue]] = [
            "camera.controls": ["exposure_auto=1"], "camera.failover": ["/dev/video1"],
            "camera.slate-text": ["Back at %H:%M"], "camera.slate-image": ["/picture.png"],
            "crop.shape": ["16:9", "1:1"],
            "overlay.clock": ["%H:%M"],
            "overlay.text": ["text"], "overlay.image": ["/picture.png"], "screen.window": ["Terminal"],
            "screen.pipewire-node": ["42"], "microphone.device": ["hw:0", "desk"], "speaker.device": ["hw:0", "desk"],
            "recorder.path": ["/a.mkv", "/a.mp4", "/a.webm", "/a.m3u8"],
            "rtsp.url": ["rtsp://camera/VP8", "rtsp://camera/H265", "rtsp://camera/JPEG"],
        ]
        /// Required settings.
        private static let required: [String: [String: SettingValue]] = [
            "file": ["path": "/clip.mp4"], "rtsp": ["url": "rtsp://camera/H264"], "process": ["command": "true"],
            "exec": ["command": "true"], "rate": ["fps": 10], "snapshot": ["path": "/a.png"],
            "recorder": ["path": "/a.mkv"], "rtp-input": ["codec": "vp8"],
        ]

        /// Settings of a node of the kind: the required ones, and each other one at the ends of its range.
        private static func settings(of kind: NodeKind) -> [[String: SettingValue]] {
            let base = required[kind.name] ?? [:]
            return [base]
                + kind.settings.flatMap { contract -> [[String: SettingValue]] in
                    let values: [SettingValue] =
                        switch contract.domain {
                        case .flag: [true, false]
                        case .integer(let range): [.integer(range.lowerBound), .integer(range.upperBound)]
                        case .number(let range): [.number(range.lowerBound), .number(range.upperBound)]
                        case .choice(let choices): choices.map { .text($0) }
                        case .text where contract.name == "element": encoders(of: kind)
                        case .text: texts["\(kind.name).\(contract.name)"] ?? []
                        }
                    return values.map { base.merging([contract.name: $0]) { $1 } }
                }
        }

        /// The encoder elements that a node of the kind can name.
        private static func encoders(of kind: NodeKind) -> [SettingValue] {
            EncodedVideo.all.filter { "\($0.name)-encoder" == kind.name }.flatMap(\.elements).map(\.factory).filter(
                GStreamer.has
            )
            .map { .text($0) }
        }

        /// Input formats of a node: those that each of its inputs lists first, those that each lists second, and so on.
        private static func inputs(of kind: NodeKind) -> [[(port: String, format: MediaFormat)]] {
            let taken = kind.inputs.map { port in
                port.kinds.sorted { $0.rawValue < $1.rawValue }.flatMap { media in
                    let named = port.encodings.filter { MediaKind(ofEncoding: $0) == media }
                    return (named.isEmpty ? ["I420"] : named).map { format(media, $0) }
                }
            }
            let count = taken.map(\.count).max() ?? 0
            guard count > 0 else { return [[]] }
            return (0..<count).map { index in
                zip(kind.inputs, taken).flatMap { port, formats in
                    let format = formats[min(index, formats.count - 1)]
                    return port.isRepeated
                        ? [(port.name + "1", format), (port.name + "2", format)] : [(port.name, format)]
                }
            }
        }

        private static func format(_ media: MediaKind, _ encoding: String) -> MediaFormat {
            switch media {
            case .rawAudio: .rawAudio
            case .encodedAudio: MediaFormat(.encodedAudio, encoding, sampleRate: 48_000, channels: 2)
            default: MediaFormat(media, encoding, width: 640, height: 480, framesPerSecond: 30)
            }
        }

        private static let machines = [
            FurnishedMachine(), FurnishedMachine(sinks: ("xvimagesink", "alsasink", "alsasrc")),
            FurnishedMachine(sinks: ("glimagesink", "pipewiresink", "pipewiresrc")),
        ]

        /// All possible plans of nodes of a kind, each once.
        private static func elements(of kind: NodeKind) -> (planned: Set<ElementPlan>, plans: Int) {
            var planned: Set<ElementPlan> = []
            var plans = 0
            for machine in machines {
                for settings in settings(of: kind) {
                    for inputs in inputs(of: kind) {
                        let request = NodeRequest(
                            Node(kind.name, settings: settings), kind, inputs: inputs,
                            usedOutputs: Set(kind.outputs.map(\.name)), environment: machine)
                        guard let plan = try? NodeRegistry.builtIn.plan(request) else { continue }
                        plans += 1
                        planned.formUnion(
                            (plan.elements + (plan.device?.elements ?? []) + (plan.device?.slate ?? [])).map {
                                ElementPlan(name: "", factory: $0.factory, properties: $0.properties)
                            })
                    }
                }
            }
            return (planned, plans)
        }

        @Test(
            "Installed elements have every property that a plan can set",
            arguments: NodeRegistry.builtIn.kinds.map(\.name))
        func everyProperty(of name: String) throws {
            let kind = try #require(NodeRegistry.builtIn.kind(named: name))
            let (planned, plans) = Self.elements(of: kind)
            #expect(plans > 0, "\(kind.name) was never planned")
            for element in planned where GStreamer.has(element.factory) {
                #expect(throws: Never.self, "\(kind.name): \(element)") {
                    _ = try Element(element.factory, element.properties)
                }
            }
        }

        @Test("Installed encoders have every property of their tables")
        func encoderTables() throws {
            for choice in EncodedVideo.all.flatMap(\.elements) where GStreamer.has(choice.factory) {
                let rate = choice.rateProperty(1_000_000, keyframeInterval: 3000)
                let properties = choice.properties(keyframeInterval: 3000).merging([rate.name: rate.value]) { $1 }
                #expect(throws: Never.self) {
                    _ = try Element(choice.factory, properties)
                }
            }
        }

        @Test("A node whose element lacks a property fails with both names")
        func lackingProperty() async {
            var plan = NodePlan(Node("null", name: "end"))
            plan.add("fakesink", as: "sink", ["synch": true])
            let error = await #expect(throws: MediaError.self) {
                _ = try await MediaPipeline(
                    GraphPlan(source: MediaGraph(nodes: [plan.node]), nodes: [plan], links: []))
            }
            #expect(error?.code == "element.property" && error?.node == "end")
            #expect(error?.message.contains("fakesink has no property synch; did you mean sync?") == true)
        }
    }
}
