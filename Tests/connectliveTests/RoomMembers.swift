import ClientCore
import ConnectLiveSDK
import Foundation
import MediaGraph
import PeerIO
import PeerLoop
import RTP
import RoomClient
import RoomProtocol
import Synchronization
import TestFixtures
import TestSupport
import Testing

/// An application with the SDK, which passes on frames with codes.
final class ApplicationMember: RoomMember, RoomDelegate, Sendable {
    private struct State {
        var room: (any Room)?
        var media: (any LocalMedia)?
        var capturing: Task<Void, Never>?
        var frames: [Int: Int] = [:]
        /// A room keeps no views.
        var views: [Int: View] = [:]
    }

    // @unchecked: a view is set up once, and then only attached and detached.
    private final class View: @unchecked Sendable {
        let view = FrameView()
    }

    let id: Int
    private let problems: Collected<String>
    private let state = Mutex(State())

    init(_ id: Int, _ films: FilmShelf, _ problems: Collected<String>) {
        self.id = id
        self.problems = problems
        let room = ConnectLive.createRoom(config: Caller.config, delegate: self)
        state.withLock { $0.room = room }
    }

    private var room: any Room {
        guard let room = state.withLock({ $0.room }) else { preconditionFailure("a member has a room") }
        return room
    }

    var knownVideos: [(stream: Int, publisher: Int)] {
        room.remoteParticipants.values.flatMap(\.videos.values).map { ($0.id, Int($0.extraValue) ?? 0) }
            .sorted { $0.0 < $1.0 }
    }

    func frames(of stream: Int) -> Int { state.withLock { $0.frames[stream] ?? 0 } }

    func join() async throws {
        room.connect(roomId: "whole")
        try await requireEventually("the room of \(id)") { room.isConnected }
    }

    func leave() async throws {
        room.disconnect()
        try await requireEventually("the end of the room") { !room.isConnected }
    }

    func publish() async throws {
        var config = Caller.config
        config.mediaOptions.source = .bypass
        config.mediaOptions.hasAudio = false
        config.mediaOptions.videoDegradation = .detail
        config.mediaOptions.videoExtraValue = "\(id)"
        (config.mediaOptions.videoWidth, config.mediaOptions.videoHeight) = (160, 96)
        let media = try #require(ConnectLive.createLocalMedia(config: config))
        let source = try #require(media.videoSource)
        let capturing = Task.detached { [id] in
            while !Task.isCancelled {
                if let frame = PixelBuffer(width: 160, height: 96) {
                    frame.draw {
                        $0.fill(luma: 90)
                        $0.draw(barCode: FrameCode.number(of: id, at: FrameCode.tick))
                    }
                    source.didCapturePixelBuffer(frame, time: .now, orientation: .landscapeRight)
                }
                try? await Task.sleep(for: .milliseconds(100))
            }
        }
        state.withLock { ($0.media, $0.capturing) = (media, capturing) }
        try room.publish(media)
        try await requireEventually("the publication") { !room.localParticipant.videos.isEmpty }
    }

    func unpublish() async throws {
        let (media, capturing) = state.withLock { state in
            defer { (state.media, state.capturing) = (nil, nil) }
            return (state.media, state.capturing)
        }
        guard let media else { return }
        room.unpublish(media)
        try await requireEventually("the end of the publication") { room.localParticipant.videos.isEmpty }
        capturing?.cancel()
        await media.stop()
    }

    private func video(_ stream: Int) -> (any RemoteVideo)? {
        room.remoteParticipants.values.flatMap(\.videos.values).first { $0.id == stream }
    }

    func subscribe(_ stream: Int, of publisher: Int) async throws {
        guard let video = video(stream) else { return }
        let view = View()
        view.view.onFrame = { [weak self] in self?.take($0, of: stream, publisher) }
        state.withLock { $0.views[stream] = view }
        video.attach(view.view)
        try await room.subscribe(videoId: stream).get()
    }

    private func take(_ frame: VideoFrame, of stream: Int, _ publisher: Int) {
        let number = frame.barCode
        guard publisher == 0 || number != nil else { return }
        state.withLock { $0.frames[stream, default: 0] += 1 }
        if let problem = number.flatMap({ FrameCode.problem($0, of: publisher, at: FrameCode.tick) }) {
            problems.append("\(id), stream \(stream): \(problem)")
        }
    }

    func unsubscribe(_ stream: Int) async throws {
        guard let video = video(stream) else { return }
        video.detach()
        state.withLock { $0.views[stream] = nil }
        try await room.unsubscribe(videoId: stream).get()
    }

    func setPaused(_ isPaused: Bool, _ stream: Int) async throws { try await video(stream)?.setPausedAsync(isPaused) }

    func onConnected(participantIds: [String]) {}
    func onDisconnected(reason: DisconnectReason) {}
    func onError(code: Int, message: String, isCritical: Bool) {
        problems.append("\(id) got error \(code): \(message)")
    }
    func onParticipantEntered(remoteParticipant: any RemoteParticipant) {}
    func onParticipantLeft(remoteParticipant: any RemoteParticipant) {}
}

/// The films of all clients that send packets: VP8 frames with codes, each of which occurs once.
final class FilmShelf: Sendable {
    private let films: [Int: [[UInt8]]]
    private let numbers: [[UInt8]: UInt32]

    init(of count: Int, from first: Int) throws {
        var films: [Int: [[UInt8]]] = [:]
        var numbers: [[UInt8]: UInt32] = [:]
        for id in first..<first + count {
            let codes = (0..<FrameCode.period).map { FrameCode.number(of: id, at: $0) }
            let frames = try EncodedFilm.vp8(codes, keyframeEvery: FrameCode.ticksPerSecond)
            try #require(frames.count == codes.count)
            films[id] = frames
            for (frame, code) in zip(frames, codes) {
                try #require(numbers.updateValue(code, forKey: frame) == nil, "two frames are encoded alike")
            }
        }
        (self.films, self.numbers) = (films, numbers)
    }

    func frame(of publisher: Int, at tick: Int) -> [UInt8] { films[publisher]?[tick % FrameCode.period] ?? [] }

    func isFilm(_ publisher: Int) -> Bool { films[publisher] != nil }

    /// Nil for a frame of no film.
    func number(of frame: [UInt8]) -> UInt32? { numbers[frame] }
}

/// Sends a film as packets, in time with the clock.
final class FilmTrack: OutgoingTrack, @unchecked Sendable {
    // Sendable by hand: everything is used on the loop.
    private static let longestPayload = 1100

    let codec = Codec.vp8
    let encoderStatistics: MediaStatistics.VideoEncoder? = nil
    private let id: Int
    private let films: FilmShelf
    private let loop: Loop
    private var pictureID: UInt16 = 0
    private var receiver: TrackReceiver?
    private var last = 0
    private lazy var timer = loop.makeTimer { [unowned self] in send() }

    init(_ id: Int, _ films: FilmShelf, loop: Loop) {
        (self.id, self.films, self.loop) = (id, films, loop)
    }

    func begin() { timer.arm(at: loop.now) }

    func end() { timer.disarm() }

    func connect(_ receiver: TrackReceiver?) { self.receiver = receiver }

    /// The film has one in each second.
    func requestKeyframe() {}

    private func send() {
        timer.arm(at: loop.now + .milliseconds(10))
        let tick = FrameCode.tick
        guard tick != last else { return }
        last = tick
        let frame = films.frame(of: id, at: tick)
        let timestamp = UInt32(truncatingIfNeeded: tick * 90_000 / FrameCode.ticksPerSecond)
        var batch = RTPBatch(
            captureTime: MediaTime(nanoseconds: loop.now.nanoseconds), rtpTimestamp: timestamp,
            // The P bit (RFC 6386, section 9.1).
            isKeyframe: frame.first.map { $0 & 1 == 0 } ?? false)
        for start in stride(from: 0, to: frame.count, by: Self.longestPayload) {
            let end = min(start + Self.longestPayload, frame.count)
            batch.bytes += [0x80, (end == frame.count ? 0x80 : 0) | Codec.vp8.payloadType, 0, 0]
            batch.bytes += stride(from: 24, through: 0, by: -8).map {
                UInt8(truncatingIfNeeded: timestamp >> UInt32($0))
            }
            batch.bytes += [0, 0, 0, 1]
            // The payload descriptor: X, S, then I, then a picture id of 15 bits (RFC 7741, section 4.2).
            batch.bytes += [start == 0 ? 0x90 : 0x80, 0x80]
            batch.bytes += [0x80 | UInt8(pictureID >> 8), UInt8(truncatingIfNeeded: pictureID)]
            batch.bytes += frame[start..<end]
            batch.ends.append(batch.bytes.count)
        }
        pictureID = (pictureID + 1) & 0x7fff
        receiver?.take(batch)
    }
}

/// Puts the packets of a video together, and checks whose frames they are.
final class FilmCheck: IncomingSink, @unchecked Sendable {
    // Sendable by hand: everything else is used on the loop.
    private let films: FilmShelf
    private let publisher: Int
    private let report: @Sendable (String?) -> Void
    private var frame: [UInt8]?
    private var scratch = PacketBuffer()

    /// - Parameter report: called for each frame, with what is wrong with it
    init(_ films: FilmShelf, of publisher: Int, report: @escaping @Sendable (String?) -> Void) {
        (self.films, self.publisher, self.report) = (films, publisher, report)
    }

    func begin(_ stream: IncomingStream) { frame = nil }

    func end() { frame = nil }

    func receive(_ packet: Span<UInt8>) {
        scratch.count = 0
        scratch.append(packet)
        guard let header = RTPHeader(parsing: scratch),
            let descriptor = VP8PayloadDescriptor(parsing: scratch, header: header)
        else { return }
        if descriptor.isStartOfPartition, descriptor.partition == 0 { frame = [] }
        let start = header.payloadOffset + descriptor.length
        guard frame != nil, start <= header.payloadEnd else { return }
        frame?.append(contentsOf: (start..<header.payloadEnd).map { scratch.bytes[$0] })
        guard header.marker, let whole = frame else { return }
        frame = nil
        let number = films.number(of: whole)
        guard number != nil || !films.isFilm(publisher) else { return report("a frame is in no film of \(publisher)") }
        report(number.flatMap { FrameCode.problem($0, of: publisher, at: FrameCode.tick) })
    }
}

/// A client that sends and checks packets without a codec.
final class PacketMember: RoomMember, Sendable {
    private struct State {
        var engine: RoomEngine?
        var videos: [Int: Int] = [:]
        var isConnected = false
        var frames: [Int: Int] = [:]
        var published: (stream: Int, track: FilmTrack)?
    }

    let id: Int
    private let films: FilmShelf
    private let problems: Collected<String>
    private let (server, key): (String, [String: String])
    private let state = Mutex(State())

    init(_ id: Int, _ films: FilmShelf, _ problems: Collected<String>, server: String, _ key: [String: String]) throws {
        (self.id, self.films, self.problems, self.server, self.key) = (id, films, problems, server, key)
    }

    private var engine: RoomEngine {
        guard let engine = state.withLock({ $0.engine }) else { preconditionFailure("a member has joined") }
        return engine
    }

    var knownVideos: [(stream: Int, publisher: Int)] {
        state.withLock { $0.videos }.map { ($0.key, $0.value) }.sorted { $0.0 < $1.0 }
    }

    func frames(of stream: Int) -> Int { state.withLock { $0.frames[stream] ?? 0 } }

    func join() async throws {
        let location = try ServerLocator(
            server: server, serviceId: key["CONNECTLIVE_SERVICE_ID"], serviceSecret: key["CONNECTLIVE_SERVICE_SECRET"]
        ).locate()
        let token = try await AccessToken.signIn(at: location).token
        var options = RoomOptions()
        options.sound = { _, _ in nil }
        let engine = RoomEngine(options: options) { [weak self] in self?.handle($0) }
        state.withLock { $0.engine = engine }
        engine.connect(to: try RoomName("whole"), with: token)
        try await requireEventually("the room of \(id)") { state.withLock { $0.isConnected } }
    }

    func leave() async throws { engine.disconnect() }

    func publish() async throws {
        let engine = engine
        let track = FilmTrack(id, films, loop: engine.loop)
        let streams = try await engine.publish([Publication(track, StreamAttributes(extraValue: "\(id)"))])
        let stream = try #require(streams.first?.id)
        state.withLock { $0.published = (stream, track) }
        engine.post { _ in track.begin() }
    }

    func unpublish() async throws {
        guard let (stream, track) = state.withLock({ $0.published }) else { return }
        state.withLock { $0.published = nil }
        let engine = engine
        engine.post { _ in track.end() }
        try await result { engine.unpublish([stream], then: $0) }
    }

    func subscribe(_ stream: Int, of publisher: Int) async throws {
        let check = FilmCheck(films, of: publisher) { [weak self] problem in
            guard let self else { return }
            state.withLock { $0.frames[stream, default: 0] += 1 }
            if let problem { problems.append("\(id), stream \(stream): \(problem)") }
        }
        let engine = engine
        try await result { engine.subscribe(stream, to: .packets(check), then: $0) }
    }

    func unsubscribe(_ stream: Int) async throws {
        let engine = engine
        try await result { engine.unsubscribe(stream, then: $0) }
    }

    func setPaused(_ isPaused: Bool, _ stream: Int) async throws {
        let engine = engine
        try await result { engine.setView(StreamView(isPaused: isPaused), of: stream, then: $0) }
    }

    private func result(_ call: (@escaping @Sendable (Result<Void, RoomError>) -> Void) -> Void) async throws {
        try await withCheckedContinuation { done in call { done.resume(returning: $0) } }.get()
    }

    private func handle(_ event: RoomEvent) {
        func add(_ stream: StreamInfo) {
            guard stream.media == .video else { return }
            state.withLock { $0.videos[stream.id] = Int(stream.attributes.extraValue) ?? 0 }
        }
        switch event {
        case .connected(_, let others):
            for stream in others.flatMap(\.streams) { add(stream) }
            state.withLock { $0.isConnected = true }
        case .participantEntered(let other): for stream in other.streams { add(stream) }
        case .participantLeft(let other): for stream in other.streams { state.withLock { $0.videos[stream.id] = nil } }
        case .streamPublished(_, let stream): add(stream)
        case .streamUnpublished(_, let stream): state.withLock { $0.videos[stream.id] = nil }
        case .problem(let error): problems.append("\(id) got the error '\(error.message)'")
        case .ended(_, let error): if let error { problems.append("\(id) lost the room: \(error.message)") }
        default: break
        }
    }
}

/// A Chromium on the server's page, which publishes its fake camera and shows everyone.
final class BrowserMember {
    struct Seen {
        var stream: Int
        var number: UInt32
        var tick: Int
    }

    private let program: RunningProgram
    private let folder = TemporaryFolder()

    init(page: String, seeing videos: Int) throws {
        program = try interopProgram(
            "chromium.py",
            ["--page", page, "--seconds", "60", "--until-expected", "--expect-video-from-others", "\(videos)"]
                + ["--expect-publishing", "5", "--then-read", folder.file("end")])
    }

    /// Ends the browser. Returns the codes that its tiles showed.
    func finish() throws -> [Seen] {
        _ = FileManager.default.createFile(atPath: folder.file("end"), contents: nil)
        let result = try program.finish(seconds: 60)
        try #require(result.status == 0, "\(result.output)\(result.error)")
        let line = result.output.split(separator: "\n").last ?? ""
        let report = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
        let read = try #require(report?["read"] as? [[Int]])
        return read.map { Seen(stream: $0[0], number: UInt32($0[1]), tick: $0[2]) }
    }

    /// - Parameter publishers: those of all streams
    func problems(in seen: [Seen], allKnown publishers: [Int: Int]) -> [String] {
        seen.compactMap { each in
            guard let publisher = publishers[each.stream] else { return nil }
            return FrameCode.problem(each.number, of: publisher, at: each.tick).map {
                "browser, stream \(each.stream): \($0)"
            }
        }
    }
}
