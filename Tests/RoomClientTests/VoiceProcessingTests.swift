import Dispatch
import MediaGraph
import Synchronization
import TestSupport
import Testing

@testable import RoomClient

/// The processing of microphones, which is one choice for the process. Serialized for that.
@Suite(.serialized, .timeLimit(.minutes(1))) struct VoiceProcessingTests {
    private func graph(_ voice: VoiceProcessing?, source: MediaRequest.Source = .camera) -> MediaGraph? {
        var request = MediaRequest(source: source)
        request.hasVideo = false
        request.voice = voice
        return request.graph(.init(hasVideo: false, hasAudio: true))
    }

    @Test func `the microphone of speech hears the rooms, with gain control if asked`() throws {
        let voice = try #require(graph(VoiceProcessing())?.node(MediaRequest.voiceNode))
        #expect(voice.kind == "echo-cancel" && voice.settings["heard"] == .text(SoundGraph.label))
        #expect(voice.settings["gain-control"] == .flag(false))
        var louder = VoiceProcessing()
        louder.controlsGain = true
        #expect(
            graph(louder)?.node(MediaRequest.voiceNode)?.settings["gain-control"] == .flag(true))
        let label = SoundGraph.make(slots: 4, isAudible: true).node(SoundGraph.probe)?.settings["label"]
        #expect(label == .text(SoundGraph.label))
    }

    @Test func `music, a machine without the means, and other sources are not processed`() {
        var music = VoiceProcessing()
        music.isOn = false
        #expect(graph(music)?.node(MediaRequest.voiceNode) == nil)
        #expect(graph(nil)?.node(MediaRequest.voiceNode) == nil)
        #expect(graph(VoiceProcessing(), source: .testPattern)?.node(MediaRequest.voiceNode) == nil)
    }

    private func started(canProcess: Bool) async throws -> (LocalCapture, StubMachine) {
        let stub = StubMachine()
        stub.processesVoice.withLock { $0 = canProcess }
        var request = MediaRequest(source: .camera)
        request.hasVideo = false
        let capture = LocalCapture(request, on: stub.machine)
        try await capture.start()
        return (capture, stub)
    }

    @Test func `a change of the choice edits the media that runs`() async throws {
        defer { VoiceProcessing.choice.change { $0 = VoiceProcessing() } }
        let (capture, stub) = try await started(canProcess: true)
        let pipeline = try #require(stub.pipelines.all.first)
        func voice() -> Node? { pipeline.graph.node(MediaRequest.voiceNode) }
        #expect(voice() != nil)
        VoiceProcessing.choice.change { $0.controlsGain = true }
        await eventually("gain control") { voice()?.settings["gain-control"] == .flag(true) }
        VoiceProcessing.choice.change { $0.isOn = false }
        await eventually("music") { voice() == nil }
        #expect(stub.pipelines.count == 1)
        await capture.stop()
    }

    @Test func `a machine that cannot process voices captures them, with one warning`() async throws {
        let (capture, stub) = try await started(canProcess: false)
        #expect(stub.pipelines.all.first?.graph.node(MediaRequest.voiceNode) == nil)
        let warnings = Collected<String>()
        capture.observe(as: stub, failed: { _ in }, warning: { warnings.append($0) })
        try await capture.change { $0.isAudioActive = false }
        try await capture.change { $0.isAudioActive = true }
        #expect(warnings.all.count == 1 && warnings.all[0].contains("webrtcdsp"))
        await capture.stop()
    }

    @Test func `two threads that change one choice lose no update`() {
        let choice = ProcessChoice(VoiceProcessing())
        let lost = Collected<String>()
        DispatchQueue.concurrentPerform(iterations: 2) { thread in
            for round in 0..<1_000_000 {
                let isOn = round % 2 == 0
                choice.change { if thread == 0 { $0.isOn = isOn } else { $0.controlsGain = isOn } }
                let processing = choice.value
                if (thread == 0 ? processing.isOn : processing.controlsGain) != isOn {
                    lost.append("\(thread), round \(round)")
                }
            }
        }
        #expect(lost.count == 0)
    }

    @Test func `a microphone that joins a camera is warned of as well, once`() async throws {
        let stub = StubMachine()
        stub.processesVoice.withLock { $0 = false }
        var request = MediaRequest(source: .camera)
        request.hasAudio = false
        let capture = LocalCapture(request, on: stub.machine)
        try await capture.start()
        let warnings = Collected<String>()
        capture.observe(as: stub, failed: { _ in }, warning: { warnings.append($0) })
        #expect(warnings.count == 0)
        try await capture.change { $0.hasAudio = true }
        try await capture.change { $0.isVideoActive = false }
        #expect(warnings.count == 1)
        await capture.stop()
    }
}
