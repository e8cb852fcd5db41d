import MediaGraph
@testable import MediaNodes
import Testing

@Suite struct SpeakerPlanTests {
    private func plan(_ settings: [String: SettingValue], _ machine: MadeUpMachine) throws -> NodePlan {
        let node = Node("speaker", settings: settings)
        return try NodeRegistry.builtIn.plan(
            NodeRequest(node, SpeakerNode.kind, inputs: [("in", .rawAudio)], environment: machine))
    }

    @Test("Without a sound system, audio is measured and dropped until one responds, as the plan states")
    func nobodyAnswers() throws {
        let plan = try plan([:], MadeUpMachine(elements: ["pulsesink"], unusable: ["pulsesink"]))
        #expect(plan.device?.elements.isEmpty == true)
        #expect(plan.device?.waiting?.contains("no sound system responds") == true)
        #expect(plan.notes.contains { $0.contains("measured and dropped") })
        #expect {
            _ = try self.plan(["away": "end"], MadeUpMachine(elements: []))
        } throws: { ($0 as? MediaError)?.code == MediaError.Code.speakerAbsent }
    }

    @Test("A sound system and a device can be named")
    func named() throws {
        let machine = MadeUpMachine(elements: ["pulsesink", "alsasink", "pipewiresink"])
        let alsa = try plan(["system": "alsa", "device": "hw:1"], machine)
        #expect(alsa.device?.element("sink")?.factory == "alsasink")
        #expect(alsa.device?.element("sink")?.properties["device"] == "hw:1")
        let pipewire = try plan(["system": "pipewire", "device": "desk"], machine)
        #expect(pipewire.device?.element("sink")?.factory == "pipewiresink")
        #expect(pipewire.device?.element("sink")?.properties["target-object"] == "desk")
        // Debian's PipeWire also serves clients of PulseAudio.
        let compatible = try plan(["system": "pipewire"], MadeUpMachine(elements: ["pulsesink"]))
        #expect(compatible.device?.element("sink")?.factory == "pulsesink")
        // The name of ALSA tells the system, whose default device may be missing.
        let named = try plan(["device": "hw:1"], MadeUpMachine(elements: ["alsasink"], unusable: ["alsasink"]))
        #expect(named.device?.element("sink")?.factory == "alsasink")
    }

    @Test("A named sound system that is not installed is an error; one that does not respond is waited for")
    func absent() throws {
        #expect {
            _ = try plan(["system": "alsa"], MadeUpMachine(elements: []))
        } throws: { ($0 as? MediaError)?.code == MediaError.Code.elementMissing }
        let machine = MadeUpMachine(elements: ["pulsesink"], unusable: ["pulsesink"])
        #expect(try plan(["system": "pulse"], machine).device?.waiting?.contains("system") == true)
        let refused = #expect(throws: MediaError.self) {
            _ = try self.plan(["system": "pulse", "away": "end"], machine)
        }
        #expect(refused?.code == MediaError.Code.speakerAbsent)
    }

    @Test
    func `a speaker begins with the sound server of its plan, and with any sound system after a plan without one`()
        throws
    {
        let machine = MadeUpMachine(elements: ["pulsesink", "alsasink"])
        #expect(FormerSound(try plan(["system": "pulse"], machine).device).system == .pulse)
        #expect(FormerSound(try plan(["system": "alsa"], machine).device).system == nil)
        #expect(FormerSound(try plan([:], MadeUpMachine(elements: [])).device).system == nil)
    }

    @Test("Whether the loudspeaker is there or not, audio is planned to be as late")
    func sameDelay() throws {
        let here = try plan(["system": "pulse"], MadeUpMachine(elements: ["pulsesink"]))
        let away = try plan(["system": "pulse"], MadeUpMachine(elements: ["pulsesink"], unusable: ["pulsesink"]))
        #expect(here.latency == away.latency && here.elements == away.elements)
    }
}

/// Names of microphones and loudspeakers, on a made-up machine.
@Suite struct SoundNameTests {
    private static func device(_ identifier: String, _ name: String, _ others: String...) -> AudioDevice {
        AudioDevice(identifier: identifier, name: identifier, isDefault: false, lastingName: name, otherNames: others)
    }

    private static let headset = device("alsa.usb-headset", "serial:7C3F", "serial:7C3F@usb-x-1", "usb-x-1", "1-1")
    private static let twins = (1...2).map {
        device("twin.\($0)", "serial:A@usb-x-2.\($0)", "serial:A", "usb-x-2.\($0)", "1-2.\($0)", "model:Twin")
    }

    private struct Machine: PlanEnvironment {
        var devices: [AudioDevice]
        func hasElement(_ factory: String) -> Bool { true }
        func canOpen(_ factory: String) -> Bool { true }
        func package(ofElement factory: String) -> String { "a-package" }
        func windowSink() -> String? { nil }
        func soundSink() -> String? { "pulsesink" }
        func soundSource() -> String? { "pulsesrc" }
        func secondsPerFrame(_ element: ElementPlan, _ format: MediaFormat) -> Double { 0 }
        func soundDevices(of system: SoundSystem?) -> SoundDevices? {
            SoundDevices(system ?? .pulse, microphones: devices, speakers: devices)
        }
        func camera(_ device: String) throws(MediaError) -> CameraChoice { throw MediaError(code: "x", message: "") }
        func file(_ path: String) throws(MediaError) -> MediaFileInfo { throw MediaError(code: "x", message: "") }
    }

    private func microphone(_ name: String, _ devices: [AudioDevice]) throws -> NodePlan {
        let node = Node("microphone", settings: ["device": .text(name)])
        return try NodeRegistry.builtIn.plan(
            NodeRequest(node, MicrophoneNode.kind, usedOutputs: ["audio"], environment: Machine(devices: devices)))
    }

    @Test(arguments: ["serial:7C3F", "usb-x-1", "1-1", "serial:7C3F@usb-x-1"])
    func `a lasting name leads to the device, whatever the sound system calls it today`(name: String) throws {
        let devices = [Self.headset] + Self.twins
        let plan = try microphone(name, devices)
        #expect(plan.device?.element("source")?.properties["device"] == "alsa.usb-headset")
        let speaker = try NodeRegistry.builtIn.plan(
            NodeRequest(
                Node("speaker", settings: ["device": .text(name)]), SpeakerNode.kind, inputs: [("in", .rawAudio)],
                environment: Machine(devices: devices)))
        #expect(speaker.device?.element("sink")?.properties["device"] == "alsa.usb-headset")
    }

    @Test func `a name of several devices, and one of none, are waited for, and the reason lists the names`() throws {
        let several = try microphone("serial:A", Self.twins).device?.waiting
        #expect(several?.contains("several microphones. Use serial:A@usb-x-2.1 or serial:A@usb-x-2.2") == true)
        let none = try microphone("serial:GONE", [Self.headset]).device?.waiting
        #expect(none?.contains("is not plugged in. Use serial:7C3F") == true)
        #expect(try microphone("serial:A@usb-x-2.2", Self.twins).device?.waiting == nil)
    }

    @Test func `a second microphone with the same serial number does not hide the first`() throws {
        let alone = Self.device("twin.1", "serial:A", "serial:A@usb-x-2.1", "usb-x-2.1", "1-2.1")
        let role = SoundRole.microphone
        #expect(try role.find("serial:A", among: [alone]).identifier == "twin.1")
        #expect(try role.find("serial:A", among: Self.twins, after: alone).identifier == "twin.1")
        #expect(throws: MediaError.self) { try role.find("serial:A", among: Self.twins) }
    }

    @Test func `a name of the sound system itself passes unchanged`() throws {
        let plan = try microphone("bluez_source.00_11", [Self.headset])
        #expect(plan.device?.element("source")?.properties["device"] == "bluez_source.00_11")
    }
}
