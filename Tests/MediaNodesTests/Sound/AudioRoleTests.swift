import Foundation
import MediaGraph
import TestFixtures
import TestSupport
import Testing

@testable import MediaNodes

extension MediaNodesTests {
    /// The roles of audio, and the choice of a microphone, with a real PulseAudio.
    @Suite struct AudioRoleTests {
        private func playing(_ settings: [String: SettingValue]) -> MediaGraph {
            MediaGraph {
                Chain(from: "test-pattern", port: "audio") { Node("speaker", settings: settings) }
                Chain {
                    Node.testPattern(width: 64, height: 64, framesPerSecond: 5)
                    Node.null()
                }
            }
        }

        /// The interruptions and returns of the loudspeaker.
        private func interruptions(_ seen: Seen) -> [String] {
            seen.events.all.compactMap { event in
                switch event {
                case .soundInterrupted(let node): "\(node) interrupted"
                case .soundResumed(let node): "\(node) resumed"
                default: nil
                }
            }
        }

        @Test(
            arguments: [
                ("pulsesink", .phone, "props,media.role=phone"), ("pulsesrc", .music, "props,media.role=music"),
                ("pipewiresink", .phone, "props,media.role=Communication"),
                ("pipewiresrc", .video, "props,media.role=Movie"),
                ("pipewiresink", .game, "props,media.role=Game"), ("alsasink", .phone, nil), ("pulsesink", .none, nil),
            ] as [(String, AudioRole, String?)])
        func `a role reaches each sound server in its own words`(
            _ factory: String, _ role: AudioRole, _ expected: String?
        ) {
            #expect(role.properties(of: factory)["stream-properties"] == expected.map { .text($0) })
        }

        @Test func `a speaker has the latency of its buffer`() throws {
            func plan(_ settings: [String: SettingValue]) throws -> NodePlan {
                let node = Node("speaker", settings: settings.merging(["system": "pulse"]) { $1 })
                return try NodeRegistry.builtIn.plan(
                    NodeRequest(
                        node, SpeakerNode.kind, inputs: [("in", .rawAudio)],
                        environment: MadeUpMachine(elements: ["pulsesink"])))
            }
            let (usual, longer) = (try plan([:]), try plan(["buffer": 200]))
            #expect(abs(longer.latency - usual.latency - 0.14) < 1e-9)
            #expect(longer.device?.element("sink")?.properties["buffer-time"] == .integer(200_000))
            #expect(usual.device?.element("sink")?.properties["buffer-time"] == .integer(60_000))
        }

        @Test func `music is interrupted while a phone call plays, and is heard again afterwards`() async throws {
            let room = try PulseAudioRoom()
            try room.tell("load-module", "module-role-cork")
            let seen = Seen()
            let music = try await MediaPipeline(playing(["role": "music"]), seen: seen)
            let call = try await MediaPipeline(playing(["role": "phone"]))
            try await music.start()
            await eventually("music") { (music.statistics.audioRenderers["speaker"]?.secondsPlayed ?? 0) > 0.5 }
            #expect(interruptions(seen) == [])
            try await call.start()
            await eventually("the interruption") { interruptions(seen) == ["speaker interrupted"] }
            await call.stop()
            await eventually("the return") { interruptions(seen) == ["speaker interrupted", "speaker resumed"] }
            #expect(seen.deviceEvents == [])
            await music.stop()
        }

        @Test func `a microphone that may not be a Bluetooth one is another one, also when the default changes`()
            async throws
        {
            let room = try PulseAudioRoom()
            _ = try room.plug(microphone: "wired")
            _ = try room.plug(microphone: "bluez_input.headset")
            try room.tell("set-default-source", "wired")
            let seen = Seen()
            let listener = try await MediaPipeline(
                MediaGraph {
                    Chain {
                        Node("microphone", settings: ["bluetooth": false])
                        Node.sound("ear")
                    }
                }, seen: seen)
            try await listener.start()
            func source() throws -> String { try room.tell("list", "short", "source-outputs") }
            func number(_ name: String) throws -> String {
                let list = try room.tell("list", "short", "sources").split(separator: "\n")
                return try #require(list.first { $0.contains(name) }?.split(separator: "\t").first.map(String.init))
            }
            let (wired, headset) = (try number("wired"), try number("bluez_input.headset"))
            #expect(try source().contains("\t\(wired)\t"))
            try room.tell("set-default-source", "bluez_input.headset")
            // The server moves the stream there, and the node closes it.
            await eventually("the wired one again") {
                seen.deviceEvents == ["lost microphone.lost", "returned"]
            }
            #expect(try source().contains("\t\(wired)\t") && !source().contains("\t\(headset)\t"))
            await listener.stop()
            try room.tell("unload-module", "module-remap-source")
            let request = NodeRequest(
                Node("microphone", settings: ["bluetooth": false, "away": "end"]), MicrophoneNode.kind,
                usedOutputs: ["audio"], environment: OnlyBluetooth())
            let refused = #expect(throws: MediaError.self) { _ = try MicrophoneNode.plan(request) }
            #expect(refused?.code == MediaError.Code.microphoneAbsent)
            #expect(refused?.message.contains("only Bluetooth microphones") == true)
        }

        @Test func `the sound server's devices, a new default, and its end and return are reported`() async throws {
            let room = try PulseAudioRoom("--microphone")
            let reports = Collected<SoundDevices?>()
            let watch = SoundWatch { reports.append($0) }
            func usual() -> String? { reports.all.last??.usualSpeaker?.identifier }
            await eventually("the devices") { usual() == "speaker" }
            let module = try room.plug(speaker: "desk", PulseAudioRoom.usb("7C3F", port: "2"))
            await eventually("a new one") { reports.all.last??.speakers.count == 3 }
            #expect(reports.all.last??.speakers.last?.lastingName == "serial:7C3F")
            try room.tell("set-default-sink", "desk")
            await eventually("a new default") { usual() == "desk" }
            try room.tell("unload-module", module)
            await eventually("the old default") { usual() != "desk" && usual() != nil }
            room.end()
            await eventually("the end") { if case .some(.none) = reports.all.last { true } else { false } }
            try room.begin()
            await eventually("the return") { usual() == "speaker" }
            withExtendedLifetime(watch) {}
        }

        @Test func `the sleep of the machine is reported, and its end`() async throws {
            let login = try Fixture.orientationSensor()
            let bus = EnvironmentOverride(["DBUS_SYSTEM_BUS_ADDRESS": login.answer.bus])
            let reports = Collected<Bool>()
            let watch = MachineSleep { reports.append($0) }
            // Until the watch has connected, nobody hears it.
            await eventually("sleep") {
                login.tell("sleep")
                return reports.all.contains(true)
            }
            login.tell("wake")
            await eventually("awake") { reports.all.last == false }
            withExtendedLifetime((watch, bus)) {}
        }

        @Test func `only logind tells of the sleep, and the end of logind or of the bus ends it`() async throws {
            let login = try Fixture.orientationSensor()
            let bus = EnvironmentOverride(["DBUS_SYSTEM_BUS_ADDRESS": login.answer.bus])
            let reports = Collected<Bool>()
            // Its first question is answered with the sleep, if it comes late.
            login.tell("sleep")
            let watch = MachineSleep(pause: 0.01) { reports.append($0) }
            await eventually("sleep") { reports.all == [true] }
            login.tell("forge")
            login.tell("sleep")
            login.tell("restart")
            await eventually("another logind, which has not slept") { reports.all == [true, false] }
            await eventually("sleep again") {
                login.tell("sleep")
                return reports.all == [true, false, true]
            }
            login.end()
            await eventually("no bus") { reports.all == [true, false, true, false] }
            withExtendedLifetime((watch, bus)) {}
        }
    }
}

/// A machine whose only microphone is a Bluetooth one.
private struct OnlyBluetooth: PlanEnvironment {
    private let machine = MadeUpMachine(elements: ["pulsesrc"])

    func hasElement(_ factory: String) -> Bool { machine.hasElement(factory) }
    func canOpen(_ factory: String) -> Bool { true }
    func package(ofElement factory: String) -> String { "a-package" }
    func windowSink() -> String? { nil }
    func soundSink() -> String? { nil }
    func soundSource() -> String? { "pulsesrc" }
    func secondsPerFrame(_ element: ElementPlan, _ format: MediaFormat) -> Double { 0 }
    func camera(_ device: String) throws(MediaError) -> CameraChoice { try machine.camera(device) }
    func file(_ path: String) throws(MediaError) -> MediaFileInfo { try machine.file(path) }

    func soundDevices(of system: SoundSystem?) -> SoundDevices? {
        SoundDevices(
            .pulse, microphones: [AudioDevice(identifier: "bluez_input.headset", name: "Headset", isDefault: true)])
    }
}
