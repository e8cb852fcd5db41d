import MediaGraph
import MediaNodes
import RoomProtocol
import Synchronization
import TestSupport
import Testing

@testable import RoomClient

/// Local media on pipelines that only keep their graph: changes that overlap, stops, failures and late events.
@Suite(.timeLimit(.minutes(2)))
struct CaptureRaceTests {
    private func capture(_ seed: UInt64 = 1) -> (capture: LocalCapture, machine: StubMachine) {
        let machine = StubMachine(seed)
        var request = MediaRequest.camera("first")
        request.waitsForDevices = true
        let capture = LocalCapture(request, on: machine.machine)
        machine.streams.withLock { $0 = capture.streams }
        return (capture, machine)
    }

    /// One call of the application, and whether it succeeded.
    private func call(_ capture: LocalCapture, _ machine: StubMachine, _ choice: Int, _ number: Int) async -> Bool {
        do {
            switch choice {
            case 0: try await capture.start()
            case 1: _ = try await capture.publish()
            case 2: await capture.stop()
            case 3: try await capture.change { $0.camera = StubMachine.impossible }
            case 4: try await capture.change { $0.camera = "absent" }
            case 5: try await capture.change { $0.isMirrored.toggle() }
            case 6: try await capture.change { $0.camera = "camera \(number)" }
            case 7:
                let sink = capture.preview.add { _ in }
                await machine.takeTime()
                if number.isMultiple(of: 2) { capture.preview.remove(sink) }
            case 8: machine.pipelines.all.last?.fail()
            case 9: try await capture.change { $0.isVideoActive.toggle() }
            case 10: try await capture.change { $0.isAudioActive.toggle() }
            default: try await capture.change { $0.width = 16 * number }
            }
            return true
        } catch {
            return false
        }
    }

    @Test func `random calls at the same time end with the graph of the request, and each returns`() async throws {
        for seed in 1...2000 as ClosedRange<UInt64> {
            let (capture, machine) = capture(seed)
            var random = Seeded(seed)
            let count = Int.random(in: 2...16, using: &random)
            let returned = await withTaskGroup(of: Bool.self) { group in
                for number in 1...count {
                    let choice = Int.random(in: 0..<13, using: &random)
                    group.addTask { await self.call(capture, machine, choice, number) }
                    if Bool.random(using: &random) { await Task.yield() }
                }
                return await group.reduce(into: 0) { count, _ in count += 1 }
            }
            #expect(returned == count)
            // The possible request that is left, whatever was refused.
            try? await capture.change { ($0.camera, $0.isVideoActive) = ("last", true) }
            try await capture.start()
            while !capture.isSettled { await Task.yield() }
            let running = machine.pipelines.all.filter(\.isRunning)
            var request = capture.requested
            request.isPreviewed = !capture.preview.isEmpty
            #expect(running.count == 1, "seed \(seed)")
            let contents = MediaRequest.Contents(hasVideo: true, hasAudio: true)
            #expect(running.first?.graph == request.graph(contents, continuing: capture.codecs.first), "seed \(seed)")
            #expect(request.camera == "last", "seed \(seed)")
            await capture.stop()
            let left = machine.pipelines.all.filter(\.isRunning)
            #expect(left.isEmpty, "seed \(seed)")
        }
    }

    @Test func `publishing ends with the error of media that fails before its first frame`() async throws {
        for seed in 1...200 as ClosedRange<UInt64> {
            let (capture, machine) = capture(seed)
            machine.delivers.withLock { $0 = false }
            let publishing = Task { try await capture.publish() }
            while machine.pipelines.all.last?.isRunning != true { await Task.yield() }
            await machine.takeTime()
            machine.pipelines.all.last?.fail()
            await #expect(throws: RoomError.self) { _ = try await publishing.value }
            await capture.stop()
        }
    }

    @Test func `an unpublished video takes the codec that costs least again`() async throws {
        let (capture, machine) = capture()
        try await capture.change { $0.isVideoActive = false }
        var tracks = try await capture.publish()
        try await capture.change { $0.isVideoActive = true }
        let pipeline = try #require(machine.pipelines.all.last)
        #expect(pipeline.graph.node("output")?.settings["codec"] == "vp8")
        for track in tracks { track.disconnect() }
        tracks = []
        try await capture.change { _ in }
        #expect(pipeline.graph.node("output")?.settings["codec"] == nil)
        await capture.stop()
    }

    @Test func `an event of a device changes no stream that the device does not feed`() async throws {
        let (capture, machine) = capture()
        try await capture.change { $0.isVideoActive = false }
        _ = try await capture.publish()
        let pipeline = try #require(machine.pipelines.all.last)
        pipeline.report(.deviceLost(node: "source", cause: StubMachine.error))
        #expect(capture.streamState(of: .video) == .waiting("video off"))
        pipeline.report(.deviceReturned(node: "source"))
        #expect(capture.streamState(of: .video) == .waiting("video off"))
        await capture.stop()
    }

    @Test func `a part that failed is added again by the next change`() async throws {
        let (capture, machine) = capture()
        _ = capture.preview.add { _ in }
        try await capture.start()
        let pipeline = try #require(machine.pipelines.all.last)
        pipeline.report(.partFailed(StubMachine.error, nodes: ["preview"]))
        try await pipeline.edit(
            try #require(MediaRequest.camera("without").graph(.init(hasVideo: true, hasAudio: false))), NodeBindings(),
            needsDevices: false)
        try await capture.change { _ in }
        #expect(pipeline.graph.node("preview") != nil)
        await capture.stop()
    }

    @Test func `while a room has the video, another codec is refused in words, also when nothing runs`() async throws {
        let (capture, machine) = capture()
        try await capture.change { $0.codec = .vp8 }
        var tracks = try await capture.publish()
        #expect(tracks.map(\.codec.rawValue).sorted() == ["VP8", "opus"])
        for isRunning in [true, false] {
            if !isRunning { await capture.stop() }
            let error = await #expect(throws: RoomError.self) { try await capture.change { $0.codec = .h264 } }
            #expect(error?.message.contains("cannot change to H264 while a room has it as VP8") == true)
            #expect(capture.requested.codec == .vp8)
        }
        for track in tracks { track.disconnect() }
        tracks = []
        try await capture.change { $0.codec = .h264 }
        tracks = try await capture.publish()
        #expect(tracks.map(\.codec.rawValue).sorted() == ["H264", "opus"])
        #expect(machine.pipelines.all.last?.graph.node("output")?.settings["codec"] == "h264")
        await capture.stop()
    }
}

extension LocalCapture {
    /// Those of the videos that rooms have.
    fileprivate var codecs: [VideoCodec] {
        streams.all.filter { $0.codec.media == .video && $0.isPublished }.map { $0.codec == .h264 ? .h264 : .vp8 }
    }
}
