internal import ArgumentParser
internal import ClientCore
internal import ConnectLiveSDK
internal import Foundation
internal import MediaGraph
internal import PeerIO
internal import RTP
internal import RoomClient
internal import RoomProtocol
internal import Synchronization

/// A participant of a room of many links, or one that restarts ICE; see mixed_room.py and roaming.py.
struct ParticipantCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "participant",
        abstract: "Publishes and watches videos; prints how they came, a line of JSON for each.",
        discussion:
            """
            With --layers, it sends and checks packets without a codec. Otherwise it publishes the test pattern, and restarts \
            ICE at SIGUSR1.
            """)

    @Option(help: "Server, ws://HOST:PORT.") var server: String
    @Option(help: "Service id.") var serviceId: String
    @Option(help: "Service secret.") var serviceSecret: String
    @Option(help: "Room.") var room: String
    @Option(parsing: .upToNextOption, help: "IVF files of a recording, the lowest layer first.")
    var layers: [String] = []
    @Option(help: "Videos to watch at most.") var watch: Int
    @Option(help: "From the start to the end.") var seconds: Double
    @Option(help: "From the start until it watches.") var watchAfter = 3.0
    @Option(help: "Size of the test pattern.") var size = "160x90"
    @Option(help: "Frames per second of the test pattern.") var fps = 10

    func run() async throws {
        endProcess(after: Int(seconds) + 30)
        let reports =
            layers.isEmpty ? try await DecodingParticipant(self).run() : try await PacketParticipant(self).run()
        for report in reports { try printJSON(report) }
    }
}

/// The engine of the SDK with packets in place of media.
final class PacketParticipant: Sendable {
    private struct State {
        var videos: [(participant: String, stream: Int)] = []
        var checks: [PacketCheck] = []
        var failure: String?
        var isConnected = false
    }

    private let options: ParticipantCommand
    private let recording: RecordedLayers
    private let state = Mutex(State())

    init(_ options: ParticipantCommand) throws {
        self.options = options
        recording = try RecordedLayers(files: options.layers)
    }

    func run() async throws -> [WatchedReport] {
        let end = ContinuousClock.now + .seconds(options.seconds)
        let watchFrom = ContinuousClock.now + .seconds(options.watchAfter)
        let location = try ServerLocator(
            server: options.server, serviceId: options.serviceId, serviceSecret: options.serviceSecret
        ).locate()
        let token = try await AccessToken.signIn(at: location).token
        var roomOptions = RoomOptions()
        roomOptions.sound = { _, _ in nil }
        let engine = RoomEngine(options: roomOptions) { [self] in handle($0) }
        engine.connect(to: try RoomName(options.room), with: token)
        try await wait(upTo: 15, for: "a connection to the room") { try check().isConnected }
        let track = RecordedTrack(recording, loop: engine.loop)
        _ = try await engine.publish([Publication(track)])
        engine.post { _ in track.begin() }
        try await Task.sleep(until: watchFrom)
        var watched: Set<Int> = []
        while .now < end {
            for (participant, stream) in try check().videos.sorted(by: { $0.stream < $1.stream })
            where watched.count < options.watch && !watched.contains(stream) {
                watched.insert(stream)
                watch(stream, of: participant, engine)
            }
            try await Task.sleep(for: .milliseconds(100))
        }
        let reports = await withCheckedContinuation { done in
            engine.post { [self] _ in
                let now = Double(EventLoop.now.nanoseconds) / 1e9
                done.resume(returning: state.withLock { $0.checks.map { $0.report.ended(at: now) } })
            }
        }
        engine.disconnect()
        return reports
    }

    private func check() throws -> State {
        let state = state.withLock { $0 }
        if let failure = state.failure { throw BenchmarkError(failure) }
        return state
    }

    private func watch(_ stream: Int, of participant: String, _ engine: RoomEngine) {
        let report = WatchedReport(
            stream: stream, participant: participant, since: Double(EventLoop.now.nanoseconds) / 1e9)
        let check = PacketCheck(report, recording: recording, loop: engine.loop) { [weak engine] in
            engine?.requestKeyframe(of: $0)
        }
        state.withLock { $0.checks.append(check) }
        engine.subscribe(stream, to: .packets(check)) { [self] result in
            if case .failure(let error) = result { state.withLock { $0.failure = error.message } }
        }
    }

    private func handle(_ event: RoomEvent) {
        func add(_ stream: StreamInfo, of participant: String) {
            if stream.media == .video { state.withLock { $0.videos.append((participant, stream.id)) } }
        }
        switch event {
        case .connected(let own, let others):
            try? printJSON(["own": own])
            for other in others { for stream in other.streams { add(stream, of: other.id) } }
            state.withLock { $0.isConnected = true }
        case .participantEntered(let other): for stream in other.streams { add(stream, of: other.id) }
        case .streamPublished(let participant, let stream): add(stream, of: participant)
        case .problem(let error): state.withLock { $0.failure = error.message }
        case .ended(_, let error): if let error { state.withLock { $0.failure = error.message } }
        default: break
        }
    }
}

/// An application with the SDK, which checks decoded frames by the numbers that are drawn in them.
final class DecodingParticipant: RoomDelegate, Sendable {
    private struct State {
        var room: (any Room)?
        var videos: [any RemoteVideo] = []
        var reports: [Int: WatchedReport] = [:]
        var numbers: [Int: UInt32] = [:]
        var failure: String?
        var isConnected = false
    }

    /// The numbers of a recording begin again after more frames than this. Less than half of them are missing at once.
    private static let recorded: UInt32 = 150

    private let options: ParticipantCommand
    private let state = Mutex(State())

    init(_ options: ParticipantCommand) { self.options = options }

    func run() async throws -> [WatchedReport] {
        let end = ContinuousClock.now + .seconds(options.seconds)
        let watchFrom = ContinuousClock.now + .seconds(options.watchAfter)
        ConnectLive.callbackQueue = DispatchQueue(label: "callbacks")
        let (code, message) = await ConnectLive.signIn(
            serviceId: options.serviceId, serviceSecret: options.serviceSecret, endpoint: options.server)
        guard code == 0 else { throw BenchmarkError(message) }
        var config = Config()
        config.mediaOptions.usesTestPattern = true
        config.mediaOptions.hasAudio = false
        let size = options.size.split(separator: "x").compactMap { Int($0) }
        guard size.count == 2 else { throw BenchmarkError("The size '\(options.size)' is not WIDTHxHEIGHT.") }
        (config.mediaOptions.videoWidth, config.mediaOptions.videoHeight) = (size[0], size[1])
        config.mediaOptions.videoFPS = options.fps
        guard let media = ConnectLive.createLocalMedia(config: config) else {
            throw BenchmarkError("There is no local media.")
        }
        let room = ConnectLive.createRoom(config: config, delegate: self)
        state.withLock { $0.room = room }
        signal(SIGUSR1, SIG_IGN)
        let restarts = DispatchSource.makeSignalSource(signal: SIGUSR1)
        restarts.setEventHandler { room.restartIce() }
        restarts.resume()
        defer { restarts.cancel() }
        room.connect(roomId: options.room)
        try await wait(upTo: 15, for: "a connection to the room") { try check().isConnected }
        try room.publish(media)
        try await Task.sleep(until: watchFrom)
        var views: [FrameView] = []
        while .now < end {
            let (videos, watched) = try { ($0.videos, $0.reports) }(check())
            for video in videos.sorted(by: { $0.id < $1.id })
            where watched[video.id] == nil && views.count < options.watch {
                views.append(try await watch(video, in: room))
            }
            try await Task.sleep(for: .milliseconds(100))
        }
        let now = Double(EventLoop.now.nanoseconds) / 1e9
        let reports = state.withLock { $0.reports.values.map { $0.ended(at: now) }.sorted { $0.stream < $1.stream } }
        room.disconnect()
        await media.stop()
        return reports
    }

    private func check() throws -> State {
        let state = state.withLock { $0 }
        if let failure = state.failure { throw BenchmarkError(failure) }
        return state
    }

    private func watch(_ video: any RemoteVideo, in room: any Room) async throws -> FrameView {
        let view = FrameView()
        let id = video.id
        view.onFrame = { [weak self] in self?.take($0, of: id) }
        video.attach(view)
        state.withLock {
            $0.reports[id] = WatchedReport(
                stream: id, participant: video.owner, since: Double(EventLoop.now.nanoseconds) / 1e9)
        }
        if case .failure(let error) = await room.subscribe(videoId: id) { throw BenchmarkError("\(error)") }
        return view
    }

    private func take(_ frame: VideoFrame, of stream: Int) {
        let (number, width, now) = (frame.barCode, frame.width, Double(EventLoop.now.nanoseconds) / 1e9)
        state.withLock { state in
            state.reports[stream]?.noteFrame(at: now, width: width)
            guard let number else {
                state.reports[stream]?.unreadable += 1
                return
            }
            if let last = state.numbers[stream] {
                // A recording begins again, once its end is reached.
                let beganAgain = number < Self.recorded / 3 && last > Self.recorded * 2 / 3
                // A switch may show a frame once more, in another size.
                if number < last, !beganAgain { state.reports[stream]?.seams += 1 }
            }
            state.numbers[stream] = number
        }
    }

    func onConnected(participantIds: [String]) {
        let videos = state.withLock { $0.room }?.remoteParticipants.values.flatMap(\.videos.values) ?? []
        state.withLock { state in
            state.videos += videos
            state.isConnected = true
        }
    }

    func onRemoteVideoPublished(remoteParticipant: any RemoteParticipant, remoteVideo: any RemoteVideo) {
        state.withLock { $0.videos.append(remoteVideo) }
    }

    func onError(code: Int, message: String, isCritical: Bool) {
        state.withLock { $0.failure = "\(message) [\(code)]" }
    }

    func onDisconnected(reason: DisconnectReason) {}
    func onParticipantEntered(remoteParticipant: any RemoteParticipant) {}
    func onParticipantLeft(remoteParticipant: any RemoteParticipant) {}
}
