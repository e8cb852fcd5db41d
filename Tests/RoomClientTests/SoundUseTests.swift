import MediaGraph
import MediaNodes
import RoomProtocol
import Synchronization
import TestSupport
import Testing

@testable import RoomClient

/// The use of the sound system, which is one choice for the process. Serialized for that.
@Suite(.serialized, .timeLimit(.minutes(1))) struct SoundUseTests {
    private func graph(
        _ source: MediaRequest.Source = .camera, microphone: MediaRequest.Microphone = .automatic,
        _ change: (inout SoundUse.Capturing) -> Void
    ) -> MediaGraph? {
        var request = MediaRequest(source: source)
        (request.hasVideo, request.microphone, request.voice) = (false, microphone, VoiceProcessing())
        change(&request.capturing)
        return request.graph(.init(hasVideo: false, hasAudio: true))
    }

    @Test func `a process that may not capture opens no microphone, and its files are heard`() {
        #expect(graph { $0.isAllowed = false } == nil)
        #expect(graph(.testPattern) { $0.isAllowed = false } != nil)
    }

    @Test func `a microphone has the role and the devices of the choice`() throws {
        let usual = try #require(graph { _ in }?.node(MediaRequest.microphoneNode))
        #expect(usual.settings["role"] == "none" && usual.settings["bluetooth"] == true)
        let call = graph {
            $0.role = .phone
            $0.mayBeBluetooth = false
        }
        let microphone = try #require(call?.node(MediaRequest.microphoneNode))
        #expect(microphone.settings["role"] == "phone" && microphone.settings["bluetooth"] == false)
        // Somebody has named it.
        let named = graph(microphone: .device("desk")) { $0.mayBeBluetooth = false }
        #expect(named?.node(MediaRequest.microphoneNode)?.settings["bluetooth"] == nil)
    }

    @Test func `a measurement is not processed`() {
        #expect(graph { _ in }?.node(MediaRequest.voiceNode) != nil)
        #expect(graph { $0.isProcessed = false }?.node(MediaRequest.voiceNode) == nil)
    }

    @Test func `a change of the choice closes and opens the microphone that runs`() async throws {
        defer { SoundUse.choice.change { $0 = SoundUse() } }
        let stub = StubMachine()
        var request = MediaRequest(source: .camera)
        request.hasVideo = true
        let capture = LocalCapture(request, on: stub.machine)
        try await capture.start()
        let pipeline = try #require(stub.pipelines.all.first)
        func microphone() -> Node? { pipeline.graph.node(MediaRequest.microphoneNode) }
        #expect(microphone() != nil && capture.requested.isAudioOn)
        SoundUse.choice.change { $0.capturing.isAllowed = false }
        await eventually("no microphone") { microphone() == nil }
        #expect(!capture.requested.isAudioOn && capture.requested.isAudioActive)
        SoundUse.choice.change { $0.capturing.isAllowed = true }
        await eventually("a microphone") { microphone() != nil }
        #expect(stub.pipelines.count == 1)
        await capture.stop()
    }

    @Test func `audio alone begins again when the process may capture again, unless it was stopped`() async throws {
        defer { SoundUse.choice.change { $0 = SoundUse() } }
        let stub = StubMachine()
        var request = MediaRequest(source: .camera)
        request.hasVideo = false
        let capture = LocalCapture(request, on: stub.machine)
        try await capture.start()
        SoundUse.choice.change { $0.capturing.isAllowed = false }
        await eventually("nothing is captured") { !capture.isRunning && capture.isSettled }
        SoundUse.choice.change { $0.capturing.isAllowed = true }
        await eventually("a microphone") { capture.isRunning && capture.isSettled }
        #expect(stub.pipelines.count == 2)
        SoundUse.choice.change { $0.capturing.isAllowed = false }
        await eventually("nothing again") { !capture.isRunning && capture.isSettled }
        await capture.stop()
        SoundUse.choice.change { $0.capturing.isAllowed = true }
        await eventually("the change") { capture.isSettled }
        #expect(stub.pipelines.count == 2)
    }

    @Test(arguments: [true, false])
    func `a microphone that is away when it opens again is waited for`(hasVideo: Bool) async throws {
        defer { SoundUse.choice.change { $0 = SoundUse() } }
        let stub = StubMachine()
        var request = MediaRequest(source: .camera)
        request.hasVideo = hasVideo
        let (capture, errors) = (LocalCapture(request, on: stub.machine), Collected<RoomError>())
        capture.observe(as: stub, failed: { errors.append($0) })
        try await capture.start()
        func hasMicrophone() -> Bool {
            guard capture.isRunning, let pipeline = stub.pipelines.all.last else { return false }
            return pipeline.graph.node(MediaRequest.microphoneNode) != nil
        }
        SoundUse.choice.change { $0.capturing.isAllowed = false }
        await eventually("no microphone") { !hasMicrophone() && capture.isSettled }
        stub.hasMicrophone.withLock { $0 = false }
        SoundUse.choice.change { $0.capturing.isAllowed = true }
        await eventually("its stand-in") { hasMicrophone() && capture.isSettled }
        #expect(errors.all.isEmpty)
        await capture.stop()
        // Somebody asks for audio alone.
        if !hasVideo { await #expect(throws: RoomError.self) { try await capture.start() } }
    }

    @Test func `the loudspeaker has the role and the buffer of the choice`() throws {
        var use = SoundUse.Playing()
        #expect(SoundGraph.make(slots: 1, isAudible: true, use).node(SoundGraph.speaker)?.settings["buffer"] == nil)
        (use.role, use.buffer) = (.phone, 120)
        let speaker = try #require(SoundGraph.make(slots: 1, isAudible: true, use).node(SoundGraph.speaker))
        #expect(speaker.settings["role"] == "phone" && speaker.settings["buffer"] == 120)
    }

    @Test func `the first user begins the activity, and the last one ends it`() {
        final class User {}
        let (activity, events) = (SoundActivity(), Collected<SoundActivity.Event>())
        let users = [User(), User()]
        activity.observe { events.append($0) }
        activity.set(true, users[0])
        activity.set(true, users[1])
        activity.set(true, users[1])
        activity.set(false, users[0])
        #expect(events.all == [.began])
        activity.interrupted(true)
        activity.interrupted(true)
        let late = Collected<SoundActivity.Event>()
        activity.observe { late.append($0) }
        #expect(late.all == [.began, .interrupted(true)])
        activity.interrupted(false)
        activity.set(false, users[1])
        activity.set(false, users[1])
        #expect(events.all == [.began, .interrupted(true)])
        #expect(late.all == [.began, .interrupted(true), .interrupted(false), .ended])
    }
}
