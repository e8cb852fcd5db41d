import MediaGraph
@testable import MediaNodes
import Testing

@Suite struct SpeakerPlanTests {
    private func plan(_ settings: [String: SettingValue], _ machine: MadeUpMachine) throws -> NodePlan {
        let node = Node("speaker", settings: settings)
        return try NodeRegistry.builtIn.plan(
            NodeRequest(node, SpeakerNode.kind, inputs: [("in", .rawAudio)], environment: machine))
    }

    @Test("Without a sound system, audio is measured and dropped, as the plan states")
    func nobodyAnswers() throws {
        let plan = try plan([:], MadeUpMachine(elements: ["pulsesink"], unusable: ["pulsesink"]))
        #expect(plan.element("sink")?.factory == "fakesink")
        #expect(plan.notes.contains { $0.contains("no sound system responds") })
    }

    @Test("A sound system and a device can be named")
    func named() throws {
        let machine = MadeUpMachine(elements: ["pulsesink", "alsasink", "pipewiresink"])
        let alsa = try plan(["system": "alsa", "device": "hw:1"], machine)
        #expect(alsa.element("sink")?.factory == "alsasink")
        #expect(alsa.element("sink")?.properties["device"] == "hw:1")
        let pipewire = try plan(["system": "pipewire", "device": "desk"], machine)
        #expect(pipewire.element("sink")?.factory == "pipewiresink")
        #expect(pipewire.element("sink")?.properties["target-object"] == "desk")
        // Debian's PipeWire also serves clients of PulseAudio.
        let compatible = try plan(["system": "pipewire"], MadeUpMachine(elements: ["pulsesink"]))
        #expect(compatible.element("sink")?.factory == "pulsesink")
    }

    @Test("A named sound system that is missing is an error with a message")
    func absent() throws {
        #expect {
            _ = try plan(["system": "alsa"], MadeUpMachine(elements: []))
        } throws: { ($0 as? MediaError)?.code == MediaError.Code.elementMissing }
        #expect {
            _ = try plan(["system": "pulse"], MadeUpMachine(elements: ["pulsesink"], unusable: ["pulsesink"]))
        } throws: { error in
            (error as? MediaError)?.code == MediaError.Code.speakerAbsent && "\(error)".contains("system")
        }
    }
}
