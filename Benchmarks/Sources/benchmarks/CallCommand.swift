internal import ArgumentParser
internal import ConnectLiveSDK
internal import Foundation
internal import MediaGraph
internal import PeerIO
internal import PeerLoop
internal import RTP
internal import RoomClient
internal import RoomServer
internal import Synchronization

/// One call of two participants as a user of the SDK would write it, and what it measured. Times are in milliseconds.
struct CallResult: Codable, Sendable {
    var peer = "connectlive"
    var width: Int
    var height: Int
    var framesPerSecond: Int
    var bitsPerSecond: Int
    var srtpProfile: String
    /// From `connect` of the viewer to the first frame that was handed to its view; the publisher was there before.
    /// With `--together`, from `connect` of both, the publisher's camera off until then.
    var firstFrameMs: Double
    /// Of that, until `onConnected`, and until the subscription was granted.
    var connectedMs: Double
    var subscribedMs: Double
    /// From the capture timestamp to the delivery to the view, matched by the number in the frame.
    var latency: Summary?
    /// The same as the SDK reports it, matched by RTP timestamp, its first second included.
    var reportedLatencyMsP50: Double?
    var framesCaptured: Int
    var framesDroppedBeforeEncoder: Int
    var framesRendered: Int
    /// Numbers passed over and repeated, among the frames that were rendered after the first.
    var framesMissing: Int
    var framesOutOfOrder: Int
    var packets: Int
    var packetsLost: Int
    var cpuSecondsPerSecond: Double
}

/// A publisher and a viewer on the SDK, with the room server, in one process on loopback.
struct CallCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "call", abstract: "Time to the first frame and latency of a call of two SDK participants.")

    @Option(help: "How long frames are watched after the first.") var seconds = 10.0
    @Option(help: "Seconds after the first frame that do not count.") var warmUp = 1.0
    @Option(help: "Width of the test pattern.") var width = 640
    @Option(help: "Height of the test pattern.") var height = 480
    @Option(help: "Frames per second.") var fps = 30
    @Flag(help: "Both participants connect at once.") var together = false
    @Option(help: "Seconds for which another viewer has seen the stream before the viewer connects (none).")
    var watched: Double?

    private static let room = "benchmark"

    func run() async throws {
        endProcess(after: Int(seconds) + 60)
        try await measureOnServer(call)
    }

    private func call() async throws -> CallResult {
        var config = Config()
        config.mediaOptions.usesTestPattern = true
        config.mediaOptions.hasAudio = false
        config.mediaOptions.videoWidth = width
        config.mediaOptions.videoHeight = height
        config.mediaOptions.videoFPS = fps
        guard let media = ConnectLive.createLocalMedia(config: config) else {
            throw BenchmarkError("There is no local media.")
        }
        let publisher = CallParticipant(config)
        let viewer = CallParticipant(config)
        let captured = FrameLog()
        let preview = FrameView()
        preview.onFrame = { captured.add($0, at: $0.captureTime) }
        media.video.attach(preview)
        if !together {
            publisher.connect(to: Self.room)
            try publisher.room.publish(media)
            try await wait(upTo: 10, for: "a stream that is published and flows") {
                try publisher.check()
                return await publisher.room.statistics().published.first.map { $0.framesSent >= 30 } ?? false
            }
        } else {
            publisher.connect(to: Self.room)
            try publisher.room.publish(media)
        }
        let other = CallParticipant(config)
        if let watched {
            other.connect(to: Self.room)
            try await wait(upTo: 15, for: "a frame of the other viewer") { other.frames.first != nil }
            try await Task.sleep(for: .seconds(watched))
        }
        viewer.connect(to: Self.room)
        try await wait(upTo: 15, for: "a frame") {
            try publisher.check()
            try viewer.check()
            return viewer.frames.first != nil
        }
        let processor = ProcessorTime.ofThisProcess
        let start = EventLoop.now
        try await Task.sleep(for: .seconds(seconds))
        let used = (ProcessorTime.ofThisProcess - processor) / (EventLoop.now - start).seconds
        let result = try await result(publisher, viewer, captured, processor: used)
        publisher.room.disconnect()
        viewer.room.disconnect()
        if watched != nil { other.room.disconnect() }
        await media.stop()
        return result
    }

    private func result(
        _ publisher: CallParticipant, _ viewer: CallParticipant, _ captured: FrameLog, processor: Double
    ) async throws -> CallResult {
        let statistics = await viewer.room.statistics()
        guard let sent = await publisher.room.statistics().published.first, let received = statistics.received.first
        else { throw BenchmarkError("The rooms have no statistics of the stream.") }
        let rendered = viewer.frames.all
        let times = captured.byNumber
        let first = rendered.first?.time ?? 0
        let latencies = rendered.compactMap { frame -> Double? in
            guard Double(frame.time - first) > warmUp * 1e9, let start = times[frame.number] else { return nil }
            return Double(frame.time - start) / 1e6
        }
        let steps = zip(rendered, rendered.dropFirst()).map { Int64($1.number) - Int64($0.number) }
        let stages = viewer.stages
        func milliseconds(_ time: UInt64) -> Double { Double(Int64(time) - Int64(stages.started)) / 1e6 }
        return CallResult(
            width: width, height: height, framesPerSecond: fps,
            bitsPerSecond: VideoBitrate.default(width: width, height: height, framesPerSecond: Double(fps))
                .bitsPerSecond,
            srtpProfile: statistics.srtpProfile ?? "", firstFrameMs: milliseconds(first),
            connectedMs: milliseconds(stages.connected), subscribedMs: milliseconds(stages.subscribed),
            latency: Summary(latencies), reportedLatencyMsP50: received.latency?.medianMilliseconds,
            framesCaptured: sent.framesCaptured, framesDroppedBeforeEncoder: sent.framesDroppedBeforeEncoder,
            framesRendered: rendered.count,
            framesMissing: Int(steps.filter { $0 > 1 }.reduce(0) { $0 + $1 - 1 }),
            framesOutOfOrder: steps.count { $0 < 1 }, packets: received.packetsReceived,
            packetsLost: received.packetsLost, cpuSecondsPerSecond: processor)
    }
}

/// Frames by the number drawn in them, in order of arrival.
final class FrameLog: Sendable {
    private let frames = Mutex<[(number: UInt32, time: UInt64)]>([])

    func add(_ frame: VideoFrame, at time: MediaTime) {
        guard let number = frame.barCode else { return }
        frames.withLock { $0.append((number, time.nanoseconds)) }
    }

    var all: [(number: UInt32, time: UInt64)] { frames.withLock { $0 } }
    var first: (number: UInt32, time: UInt64)? { frames.withLock { $0.first } }

    var byNumber: [UInt32: UInt64] {
        frames.withLock { Dictionary($0.map { ($0.number, $0.time) }) { first, _ in first } }
    }
}

/// A participant who subscribes to every video there is.
final class CallParticipant: RoomDelegate, Sendable {
    struct Stages {
        var started: UInt64 = 0
        var connected: UInt64 = 0
        var subscribed: UInt64 = 0
    }

    private struct State {
        var stages = Stages()
        var room: (any Room)?
        var failure: String?
    }

    let frames = FrameLog()
    private let config: Config
    private let state = Mutex(State())
    private let view: RenderBox

    /// A view is not Sendable; this one is set up once and handed to the SDK.
    // @unchecked: the view is only read, to be attached.
    private final class RenderBox: @unchecked Sendable {
        let view = FrameView()
    }

    init(_ config: Config) {
        self.config = config
        view = RenderBox()
        let frames = frames
        view.view.onFrame = { frames.add($0, at: $0.handedOver) }
        let room = ConnectLive.createRoom(config: config, delegate: self)
        state.withLock { $0.room = room }
    }

    var room: any Room {
        guard let room = state.withLock({ $0.room }) else { preconditionFailure("a participant has a room") }
        return room
    }

    var stages: Stages { state.withLock { $0.stages } }

    /// Throws the latest failure.
    func check() throws {
        if let failure = state.withLock({ $0.failure }) { throw BenchmarkError(failure) }
    }

    func connect(to name: String) {
        state.withLock { $0.stages.started = EventLoop.now.nanoseconds }
        room.connect(roomId: name)
    }

    private func subscribe(_ video: any RemoteVideo) {
        video.attach(view.view)
        let room = room
        Task {
            if case .failure(let error) = await room.subscribe(videoId: video.id) {
                state.withLock { $0.failure = "\(error)" }
            }
            state.withLock { $0.stages.subscribed = EventLoop.now.nanoseconds }
        }
    }

    func onConnected(participantIds: [String]) {
        state.withLock { $0.stages.connected = EventLoop.now.nanoseconds }
        for video in room.remoteParticipants.values.flatMap(\.videos.values) { subscribe(video) }
    }

    func onRemoteVideoPublished(remoteParticipant: any RemoteParticipant, remoteVideo: any RemoteVideo) {
        subscribe(remoteVideo)
    }

    func onError(code: Int, message: String, isCritical: Bool) {
        state.withLock { $0.failure = "\(message) [\(code)]" }
    }

    func onDisconnected(reason: DisconnectReason) {}
    func onParticipantEntered(remoteParticipant: any RemoteParticipant) {}
    func onParticipantLeft(remoteParticipant: any RemoteParticipant) {}
}
