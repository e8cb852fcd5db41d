import MediaGraph
import RTP
import RoomProtocol
import Synchronization
import Testing
import TestSupport

@testable import RoomClient

/// A stream whose packets the test creates.
private final class FakeTrack: OutgoingTrack {
    let codec: Codec
    private struct State {
        var receiver: TrackReceiver?
        var keyframesAsked = 0
        var number: UInt16 = 0
    }
    private let state = Mutex(State())

    init(_ codec: Codec) { self.codec = codec }

    var encoderStatistics: MediaStatistics.VideoEncoder? { nil }
    var isConnected: Bool { state.withLock { $0.receiver != nil } }
    var keyframesAsked: Int { state.withLock { $0.keyframesAsked } }

    func connect(_ receiver: TrackReceiver?) { state.withLock { $0.receiver = receiver } }
    func requestKeyframe() { state.withLock { $0.keyframesAsked += 1 } }

    /// A frame of one packet.
    func send(payload: [UInt8], isKeyframe: Bool) {
        let (receiver, number) = state.withLock { state in
            state.number += 1
            return (state.receiver, state.number)
        }
        let time = UInt32(number) * 3000
        var header: [UInt8] = [0x80, 0x80 | codec.payloadType]
        withUnsafeBytes(of: number.bigEndian) { header += $0 }
        withUnsafeBytes(of: time.bigEndian) { header += $0 }
        header += [0, 0, 0, 0]
        receiver?.take(
            RTPBatch(
                bytes: header + payload, ends: [header.count + payload.count], captureTime: MediaTime(nanoseconds: 1),
                rtpTimestamp: time, isKeyframe: isKeyframe))
    }
}

/// A sink that keeps payloads.
private final class FakeSink: IncomingSink, Sendable {
    private struct State {
        var streams: [IncomingStream] = []
        var payloads: [[UInt8]] = []
        var ends = 0
    }
    private let state = Mutex(State())

    var streams: [IncomingStream] { state.withLock { $0.streams } }
    var payloads: [[UInt8]] { state.withLock { $0.payloads } }
    var ends: Int { state.withLock { $0.ends } }

    func begin(_ stream: IncomingStream) { state.withLock { $0.streams.append(stream) } }
    func receive(_ packet: Span<UInt8>) {
        var copy = PacketBuffer()
        copy.append(packet)
        guard let header = RTPHeader(parsing: copy) else { return }
        let payload = Array(copy.bytes[header.payloadOffset..<header.payloadEnd])
        state.withLock { $0.payloads.append(payload) }
    }
    func end() { state.withLock { $0.ends += 1 } }
}

/// The events of an engine.
private final class Told: Sendable {
    private let events = Mutex<[RoomEvent]>([])

    func add(_ event: RoomEvent) { events.withLock { $0.append(event) } }

    var isConnected: Bool { has { if case .connected = $0 { true } else { false } } }
    var hasEnded: Bool { has { if case .ended = $0 { true } else { false } } }

    /// The streams that others publish, by media.
    func stream(_ media: StreamMedia) -> Int? {
        events.withLock { events in
            events.lazy.compactMap { event -> Int? in
                guard case .streamPublished(_, let info) = event, info.media == media else { return nil }
                return info.id
            }.first
        }
    }

    private func has(_ match: (RoomEvent) -> Bool) -> Bool { events.withLock { $0.contains(where: match) } }
}

/// A VP8 payload: one partition of a frame (RFC 7741 section 4.2, RFC 6386 section 9.1).
private func vp8(_ number: UInt8, isKeyframe: Bool) -> [UInt8] {
    let start: [UInt8] = isKeyframe ? [0x10, 0x10, 0, 0, 0x9d, 0x01, 0x2a, 64, 0, 64, 0] : [0x10, 0x11, 0, 0]
    return start + [number]
}

private func join(_ stage: RoomStage, _ options: RoomOptions, _ told: Told) async throws -> RoomEngine {
    let engine = RoomEngine(options: options) { told.add($0) }
    engine.connect(to: try RoomName("room"), with: try await stage.token())
    try await requireEventually("connected") { told.isConnected }
    return engine
}

@Suite(.serialized, .timeLimit(.minutes(1)))
struct ForeignMediaTests {
    @Test func `media encoded elsewhere is published, and decoded elsewhere`() async throws {
        try await RoomStage.run { stage in
            let (toldPublisher, toldViewer) = (Told(), Told())
            let (picture, sound) = (FakeSink(), FakeSink())
            var options = RoomOptions()
            options.sound = { _, _ in .packets(sound) }
            let viewer = try await join(stage, options, toldViewer)
            let publisher = try await join(stage, RoomOptions(), toldPublisher)
            let (video, audio) = (FakeTrack(.vp8), FakeTrack(.opus))
            let published = try await publisher.publish([
                Publication(video, StreamAttributes(extraValue: "slides")), Publication(audio),
            ])
            #expect(published.map(\.isVideo) == [true, false])
            try await requireEventually("the video is announced") { toldViewer.stream(.video) == published[0].id }
            let subscribed = await withCheckedContinuation { continuation in
                viewer.subscribe(published[0].id, to: .packets(picture)) { continuation.resume(returning: $0) }
            }
            try subscribed.get()
            #expect(picture.streams.map(\.codec) == [.vp8])
            #expect(picture.streams.map(\.payloadType) == [Codec.vp8.payloadType])
            // Audio is assigned without a request.
            try await requireEventually("the sound has a slot") { sound.streams.map(\.id) == [published[1].id] }
            let before = video.keyframesAsked
            viewer.requestKeyframe(of: picture.streams[0].id)
            try await requireEventually("a keyframe is asked for") { video.keyframesAsked > before }
            var number: UInt8 = 0
            try await requireEventually("video and audio arrive") {
                number += 1
                video.send(payload: vp8(number, isKeyframe: number % 10 == 1), isKeyframe: number % 10 == 1)
                audio.send(payload: [0xfc, number], isKeyframe: true)
                return picture.payloads.count >= 20 && sound.payloads.count >= 20
            }
            #expect(sound.payloads.allSatisfy { $0.first == 0xfc && $0.count == 2 })
            #expect(try #require(picture.payloads.first).count == vp8(1, isKeyframe: true).count)
            publisher.disconnect()
            try await requireEventually("both streams end") { picture.ends == 1 && sound.ends == 1 }
            try await requireEventually("both tracks are free") { !video.isConnected && !audio.isConnected }
            viewer.disconnect()
            try await requireEventually("the viewer has left") { toldViewer.hasEnded }
        }
    }
}
