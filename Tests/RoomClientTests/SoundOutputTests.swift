import ClientCore
import MediaGraph
import MediaNodes
import RTP
import RoomProtocol
import Synchronization
import TestSupport
import Testing

@testable import RoomClient

/// A graph that plays nothing, and records its input.
private final class FakeSound: PlayingSound, DecodingTask {
    struct State {
        var packets: [Int: Int] = [:]
        var volumes: [Int: SoundRoom.Volume] = [:]
        var isAudible = true
        var holds: [Int: Double] = [:]
        /// Slots whose streams have ended.
        var ended: [Int] = []
    }

    let slots: Int
    let state = Mutex(State())

    init(slots: Int) { self.slots = slots }

    func push(_ packet: RawSpan, to slot: Int) { state.withLock { $0.packets[slot, default: 0] += 1 } }
    func nextTimestamp(of slot: Int) -> UInt32? { nil }
    func playing(_ slot: Int) -> PlayedMedia? { nil }
    func hold(_ slot: Int, seconds: Double) { state.withLock { $0.holds[slot] = seconds } }
    func setVolume(_ factor: Double, isMuted: Bool, of slot: Int) {
        state.withLock { $0.volumes[slot] = .init(factor: factor, isMuted: isMuted) }
    }

    func end(_ slot: Int) { state.withLock { $0.ended.append(slot) } }

    /// Each packet is a second of audio.
    func counts(of slot: Int) -> (SoundCounts, level: Double?) {
        var counts = SoundCounts()
        counts.seconds = Double(state.withLock { $0.packets[slot] ?? 0 })
        return (counts, 0.5)
    }

    var isAudible: Bool { state.withLock { $0.isAudible } }
    func stop() async {}
}

@Suite struct SoundOutputTests {
    private final class Stage {
        var made: [FakeSound] = []
        var waiting: [(delay: TimeInterval, body: () -> Void)] = []
        var told: [String] = []
        var uses: [SoundUse.Playing] = []
        let activity = SoundActivity()
        private(set) lazy var output = SoundOutput(
            activity: activity,
            launch: { [unowned self] slots, use, _, _ in
                uses.append(use)
                made.append(FakeSound(slots: slots))
                return made[made.count - 1]
            }, post: { _, _ in }, now: { MonotonicTime(nanoseconds: 5) },
            schedule: { [unowned self] delay, body in waiting.append((delay, body)) })

        func room() -> SoundRoom {
            SoundRoom(
                loudspeaker: RoomLoudspeaker { [unowned self] event in
                    told.append("\(event)".prefix { $0 != "(" }.description)
                }, report: { [unowned self] error in told.append(error.message) })
        }

        func sink(_ id: Int, in room: SoundRoom) throws -> SlotSink {
            let stream = IncomingStream(
                id: id, server: try ServerAddress("ws://127.0.0.1:5"), participant: "ada", codec: .opus,
                payloadType: 111, connectStarted: .zero)
            let sink = SlotSink(stream, in: output, room, RoomLipSync())
            sink.begin(stream)
            return sink
        }

        /// The newest graph runs.
        func runs() { output.handle(.running(made[made.count - 1]), of: made.count) }
    }

    private static let packet = [UInt8](repeating: 0x80, count: 20)

    private func seconds(_ sink: SlotSink) -> Double {
        var entry = RoomStatistics.Received(streamId: 1, participantId: "ada", isVideo: false)
        sink.fill(&entry)
        return entry.audioSecondsRendered
    }

    @Test func `another use of the loudspeaker starts the graph again, and the same one does not`() throws {
        let (stage, events) = (Stage(), Collected<SoundActivity.Event>())
        stage.activity.observe { events.append($0) }
        var use = SoundUse.Playing()
        use.role = .phone
        stage.output.follow(use)
        #expect(stage.made.isEmpty)
        let room = stage.room()
        let sink = try stage.sink(1, in: room)
        #expect(events.all == [])
        stage.runs()
        #expect(stage.uses == [use] && events.all == [.began])
        stage.output.handle(.interrupted(true), of: 1)
        sink.receive(Self.packet.span)
        stage.output.follow(use)
        #expect(stage.made.count == 1)
        use.isAllowed = false
        stage.output.follow(use)
        stage.runs()
        #expect(stage.uses.last == use && stage.made.count == 2 && seconds(sink) == 1)
        #expect(events.all == [.began, .interrupted(true), .interrupted(false), .ended])
        use.isAllowed = true
        stage.output.follow(use)
        stage.runs()
        sink.end()
        stage.output.close(room)
        #expect(events.all.suffix(2) == [.began, .ended])
    }

    @Test func `an interruption lasts while the graph starts again, until the new stream is heard`() throws {
        let (stage, events) = (Stage(), Collected<SoundActivity.Event>())
        stage.activity.observe { events.append($0) }
        let sink = try stage.sink(1, in: stage.room())
        stage.runs()
        stage.output.handle(.interrupted(true), of: 1)
        var use = SoundUse.Playing()
        for role in [AudioRole.phone, .music] {
            use.role = role
            stage.output.follow(use)
            stage.runs()
        }
        #expect(events.all == [.began, .interrupted(true)] && stage.waiting.count == 2)
        // That of the second graph is over, and the third one's stream is silenced in time.
        stage.waiting.removeFirst().body()
        stage.output.handle(.interrupted(true), of: 3)
        stage.waiting.removeFirst().body()
        #expect(events.all == [.began, .interrupted(true)])
        use.role = .none
        stage.output.follow(use)
        stage.runs()
        stage.waiting.removeFirst().body()
        #expect(events.all == [.began, .interrupted(true), .interrupted(false)])
        withExtendedLifetime(sink) {}
    }

    @Test func `a graph that fails plays nothing until it runs again`() throws {
        let (stage, events) = (Stage(), Collected<SoundActivity.Event>())
        stage.activity.observe { events.append($0) }
        let sink = try stage.sink(1, in: stage.room())
        stage.runs()
        stage.output.handle(.interrupted(true), of: 1)
        stage.output.handle(
            .failed(MediaError(code: MediaError.Code.elementFailed, message: "It broke.")), of: 1)
        #expect(events.all == [.began, .interrupted(true), .interrupted(false), .ended])
        stage.waiting.removeFirst().body()
        stage.runs()
        #expect(events.all.suffix(2) == [.ended, .began] && stage.waiting.isEmpty)
        withExtendedLifetime(sink) {}
    }

    @Test func `a thousand changes of the speaker open nothing`() throws {
        let stage = Stage()
        let room = stage.room()
        let others = try (1...3).map { try stage.sink($0, in: room) }
        stage.runs()
        for id in 4...1003 {
            let sink = try stage.sink(id, in: room)
            sink.receive(Self.packet.span)
            #expect(seconds(sink) == 1)
            sink.end()
        }
        #expect(stage.made.count == 1 && stage.made[0].slots == 4)
        #expect(stage.made[0].state.withLock { $0.packets } == [3: 1000])
        withExtendedLifetime(others) {}
    }

    @Test func `rooms that need more slots together get one graph with more, and keep their counters`() throws {
        let stage = Stage()
        let rooms = [stage.room(), stage.room()]
        let sinks = try (1...4).map { try stage.sink($0, in: rooms[0]) }
        stage.runs()
        sinks[0].receive(Self.packet.span)
        let more = try stage.sink(5, in: rooms[1])
        #expect(stage.made.map(\.slots) == [4, 8])
        // The graph is not there yet.
        more.receive(Self.packet.span)
        stage.runs()
        for sink in sinks + [more] { sink.receive(Self.packet.span) }
        #expect((sinks + [more]).map { seconds($0) } == [2, 1, 1, 1, 1])
        // Their first room goes.
        for sink in sinks { sink.end() }
        stage.output.close(rooms[0])
        more.receive(Self.packet.span)
        #expect(seconds(more) == 2)
        more.end()
        stage.output.close(rooms[1])
        more.receive(Self.packet.span)
        #expect(stage.made.count == 2 && seconds(more) == 2)
        // Another room begins with a new graph.
        _ = try stage.sink(6, in: stage.room())
        #expect(stage.made.map(\.slots) == [4, 8, 4])
    }

    @Test func `a graph that fails starts again, and each room hears of it once`() throws {
        let stage = Stage()
        let rooms = [stage.room(), stage.room()]
        let sink = try stage.sink(1, in: rooms[0])
        let other = try stage.sink(2, in: rooms[1])
        stage.runs()
        sink.receive(Self.packet.span)
        let error = MediaError(code: MediaError.Code.elementFailed, message: "It broke.")
        stage.output.handle(.failed(error), of: 1)
        #expect(stage.told == ["It broke.", "It broke."])
        sink.receive(Self.packet.span)
        #expect(seconds(sink) == 1)
        stage.waiting.removeFirst().body()
        stage.output.handle(.failed(error), of: 2)
        #expect(stage.told.count == 2)
        stage.waiting.removeFirst().body()
        stage.runs()
        sink.receive(Self.packet.span)
        #expect(seconds(sink) == 2 && stage.made.count == 3)
        withExtendedLifetime(other) {}
    }

    @Test func `volumes outlast the slot and the graph, and a muted room stays muted`() throws {
        let stage = Stage()
        let room = stage.room()
        room.set(.init(factor: 0.5), of: 2)
        let sinks = try [1, 2].map { try stage.sink($0, in: room) }
        stage.runs()
        func volumes() -> [SoundRoom.Volume?] { [0, 1].map { stage.made.last?.state.withLock(\.volumes)[$0] } }
        #expect(volumes() == [.init(), .init(factor: 0.5)])
        room.set(.init(factor: 1, isMuted: true), of: 1)
        #expect(volumes() == [.init(isMuted: true), .init(factor: 0.5)])
        // They change their slots.
        for sink in sinks { sink.end() }
        let again = try [2, 1].map { try stage.sink($0, in: room) }
        #expect(volumes() == [.init(factor: 0.5), .init(isMuted: true)])
        room.isMuted = true
        #expect(volumes() == [.init(factor: 0.5, isMuted: true), .init(isMuted: true)])
        stage.output.handle(.failed(MediaError(code: MediaError.Code.elementFailed, message: "")), of: 1)
        stage.waiting.removeFirst().body()
        stage.runs()
        #expect(volumes() == [.init(factor: 0.5, isMuted: true), .init(isMuted: true)])
        room.isMuted = false
        #expect(volumes() == [.init(factor: 0.5), .init(isMuted: true)])
        withExtendedLifetime(again) {}
    }

    @Test func `a stream that gets the id of a former one has its own volume`() throws {
        let stage = Stage()
        let maker = SinkMaker(loop: RoomLoop.shared) { _ in }
        let muted = SoundRoom.Volume(factor: 1, isMuted: true)
        let streams = [1, 2].map { StreamInfo(id: $0, media: .audio, codec: "opus", extraValue: "") }
        for stream in streams { maker.room.set(muted, of: stream.id) }
        let sinks = try streams.map { try stage.sink($0.id, in: maker.room) }
        stage.runs()
        func volumes() -> [SoundRoom.Volume?] { [0, 1].map { stage.made[0].state.withLock(\.volumes)[$0] } }
        maker.note(.streamUnpublished(participant: "ada", streams[0]))
        maker.note(.participantLeft(ParticipantInfo(id: "bob", streams: [streams[1]])))
        // The last of them is not heard after all.
        #expect(volumes() == [muted, muted])
        for sink in sinks { sink.end() }
        #expect(stage.made[0].state.withLock(\.ended) == [0, 1])
        let others = try streams.map { try stage.sink($0.id, in: maker.room) }
        #expect(volumes() == [.init(), .init()])
        withExtendedLifetime(others) {}
    }

    @Test func `each room hears of the loudspeaker, also one that comes while it is away`() throws {
        let stage = Stage()
        let first = try stage.sink(1, in: stage.room())
        stage.output.handle(
            .device(
                .deviceWaiting(node: "speaker", cause: MediaError(code: MediaError.Code.speakerAbsent, message: ""))),
            of: 1)
        stage.runs()
        #expect(stage.told == ["waiting"])
        stage.made[0].state.withLock { $0.isAudible = false }
        let second = try stage.sink(2, in: stage.room())
        second.sample(now: .zero)
        #expect(stage.told == ["waiting", "waiting"])
        stage.output.handle(.device(.deviceReturned(node: "speaker")), of: 1)
        #expect(stage.told == ["waiting", "waiting", "returned", "returned"])
        withExtendedLifetime(first) {}
    }

    @Test func `the graph has one mixer and one loudspeaker, or only measures`() async throws {
        let graph = SoundGraph.make(slots: 4, isAudible: true)
        #expect(graph.validate(with: SoundGraph.registry).isEmpty)
        #expect(graph.nodes.count { $0.kind == "speaker" } == 1 && graph.nodes.count { $0.kind == "audio-mixer" } == 1)
        #expect(graph.nodes.count { $0.kind == "rtp-input" } == 4)
        let silent = SoundGraph.make(slots: 4, isAudible: false)
        #expect(!silent.nodes.contains { $0.kind == "speaker" })
    }
}
