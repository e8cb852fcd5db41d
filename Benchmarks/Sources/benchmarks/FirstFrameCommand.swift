internal import ArgumentParser
internal import ConnectLiveSDK
internal import Dispatch
internal import Foundation
internal import Glibc
internal import MediaGraph
internal import PeerIO
internal import PeerLoop
internal import RTP
internal import RoomServer
internal import Synchronization

/// The times until a viewer who is in the room sees something new, in milliseconds.
struct FirstFrameResult: Codable, Sendable {
    /// From `subscribe` to the first frame that was captured after it, while nobody else watches the video.
    var alone: [Double]
    /// The same while another viewer watches the video.
    var besideAnother: [Double]
    /// The same to the first frame, which may be a little older.
    var anyFrame: [Double]
    /// From `requestScreenShare`, which starts the extension program, to the first frame of the screen. The viewer subscribes
    /// when it hears of the video.
    var screenShare: [Double]
    /// From `requestScreenShare` to the status `broadcastStarted`.
    var extensionStart: [Double]
}

/// A publisher and viewers on the SDK, with the room server, in one process on loopback.
struct FirstFrameCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "first-frame", abstract: "Time from a subscription or a screen share to the first frame.")

    @Option(help: "Subscriptions of each kind.") var subscriptions = 30
    @Option(help: "Screen shares.") var shares = 10
    @Option(help: "Width of the test pattern.") var width = 640
    @Option(help: "Height of the test pattern.") var height = 480
    @Option(help: "Frames per second.") var fps = 30

    private static let room = "benchmark"

    func run() async throws {
        endProcess(after: 60 + 4 * (2 * subscriptions + shares))
        try await measureOnServer(measure)
    }

    private func measure() async throws -> FirstFrameResult {
        var config = Config()
        config.playsRemoteAudio = false
        config.mediaOptions.usesTestPattern = true
        config.mediaOptions.hasAudio = false
        config.mediaOptions.videoWidth = width
        config.mediaOptions.videoHeight = height
        config.mediaOptions.videoFPS = fps
        guard let media = ConnectLive.createLocalMedia(config: config) else {
            throw BenchmarkError("There is no local media.")
        }
        let (publisher, viewer, other) = (
            Participant(config), Participant(config), Participant(config)
        )
        let captured = FrameLog()
        let preview = FrameView()
        preview.onFrame = { captured.add($0, at: $0.captureTime) }
        media.video.attach(preview)
        for participant in [publisher, viewer, other] { participant.room.connect(roomId: Self.room) }
        for participant in [publisher, viewer, other] {
            try await wait(upTo: 15, for: "the connection") { participant.room.isConnected }
        }
        try publisher.room.publish(media)
        let video = try await viewer.video(after: [])
        var alone: [Double] = []
        var any: [Double] = []
        var beside: [Double] = []
        for _ in 0..<subscriptions {
            let times = try await viewer.watch(video, captured: captured)
            alone.append(times.new)
            any.append(times.first)
        }
        let same = try await other.video(after: [])
        if case .failure(let error) = await other.room.subscribe(videoId: same.id) { throw error }
        for _ in 0..<subscriptions { beside.append(try await viewer.watch(video, captured: captured).new) }
        publisher.room.unpublish(media)
        await media.stop()
        var (shared, starts): ([Double], [Double]) = ([], [])
        var known: Set<Int> = [video.id]
        for _ in 0..<shares {
            let (whole, start) = try await share(from: publisher, to: viewer, besides: &known)
            shared.append(whole)
            starts.append(start)
        }
        for participant in [publisher, viewer, other] { participant.room.disconnect() }
        return FirstFrameResult(
            alone: alone, besideAnother: beside, anyFrame: any, screenShare: shared, extensionStart: starts)
    }

    /// The extension is this program again, as `screen-extension`.
    private func share(
        from publisher: Participant, to viewer: Participant, besides known: inout Set<Int>
    ) async throws -> (whole: Double, start: Double) {
        let group = "benchmark-\(getpid())"
        let program = FileManager.default.temporaryDirectory.appendingPathComponent(group)
        try "#!/bin/sh\nexec '\(CommandLine.arguments[0])' screen-extension \(group)\n"
            .write(to: program, atomically: true, encoding: .utf8)
        try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: program.path)
        defer { try? FileManager.default.removeItem(at: program) }
        let started = Mutex<UInt64?>(nil)
        let begin = EventLoop.now.nanoseconds
        try publisher.room.requestScreenShare(appGroup: group, extensionName: program.path) { status in
            if status == .broadcastStarted { started.withLock { $0 = $0 ?? EventLoop.now.nanoseconds } }
        }
        let video = try await viewer.video(after: known)
        known.insert(video.id)
        let log = FirstFrame()
        log.view.view.onFrame = { _ in log.note(EventLoop.now.nanoseconds) }
        video.attach(log.view.view)
        if case .failure(let error) = await viewer.room.subscribe(videoId: video.id) { throw error }
        try await wait(upTo: 10, for: "a frame of the screen") { log.time != nil }
        publisher.room.stopScreenShare(isLeftRoom: false)
        try await wait(upTo: 10, for: "the end of the video") {
            !viewer.room.remoteParticipants.values.contains { $0.videos[video.id] != nil }
        }
        guard let end = log.time, let start = started.withLock({ $0 }) else {
            throw BenchmarkError("The extension reported no start.")
        }
        return (Double(end - begin) / 1e6, Double(start - begin) / 1e6)
    }
}

/// When a view got its first frame.
private final class FirstFrame: Sendable {
    // @unchecked: the view is set up once, and then only read to be attached.
    final class Box: @unchecked Sendable {
        let view = FrameView()
    }

    let view = Box()
    private let first = Mutex<UInt64?>(nil)

    var time: UInt64? { first.withLock { $0 } }

    func note(_ time: UInt64) { first.withLock { $0 = $0 ?? time } }
}

/// One in the room, who decides itself what it watches.
private final class Participant: RoomDelegate, Sendable {
    private let joined = Mutex<(any Room)?>(nil)

    init(_ config: Config) {
        let room = ConnectLive.createRoom(config: config, delegate: self)
        joined.withLock { $0 = room }
    }

    var room: any Room {
        guard let room = joined.withLock({ $0 }) else { preconditionFailure("a participant has a room") }
        return room
    }

    /// The video of another one that is not known yet.
    func video(after known: Set<Int>) async throws -> any RemoteVideo {
        func found() -> (any RemoteVideo)? {
            room.remoteParticipants.values.flatMap(\.videos.values).first { !known.contains($0.id) }
        }
        try await wait(upTo: 15, for: "a video") { found() != nil }
        guard let video = found() else { throw BenchmarkError("The video has ended.") }
        return video
    }

    /// Subscribes, waits for the first frame, and unsubscribes. Returns the milliseconds to the first frame, and to the first one
    /// that was captured after the call.
    func watch(_ video: any RemoteVideo, captured: FrameLog) async throws -> (first: Double, new: Double) {
        let frames = FrameLog()
        let view = FirstFrame.Box()
        view.view.onFrame = { frames.add($0, at: $0.handedOver) }
        video.attach(view.view)
        let begin = EventLoop.now.nanoseconds
        if case .failure(let error) = await room.subscribe(videoId: video.id) { throw error }
        func new() -> UInt64? {
            let times = captured.byNumber
            return frames.all.first { times[$0.number] ?? 0 > begin }?.time
        }
        try await wait(upTo: 10, for: "a new frame") { new() != nil }
        let (first, newest) = (frames.first?.time ?? 0, new() ?? 0)
        if case .failure(let error) = await room.unsubscribe(videoId: video.id) { throw error }
        video.detach(view.view)
        // The age of the newest keyframe differs each time.
        try await Task.sleep(for: .milliseconds(Int.random(in: 200...1700)))
        return (Double(first - begin) / 1e6, Double(newest - begin) / 1e6)
    }

    func onConnected(participantIds: [String]) {}
    func onDisconnected(reason: DisconnectReason) {}
    func onError(code: Int, message: String, isCritical: Bool) {}
    func onParticipantEntered(remoteParticipant: any RemoteParticipant) {}
    func onParticipantLeft(remoteParticipant: any RemoteParticipant) {}
}

/// Passes on a frame every 33 ms until the share ends.
struct ScreenExtensionCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "screen-extension", abstract: "The extension program of first-frame.", shouldDisplay: false)

    @Argument var group: String

    func run() async throws {
        endProcess(after: 60)
        ConnectLive.callbackQueue = DispatchQueue(label: "callbacks")
        let share = try ConnectLive.createScreenShare(appGroup: group)
        let hasEnded = Mutex(false)
        share.start { _, _ in hasEnded.withLock { $0 = true } }
        while !hasEnded.withLock({ $0 }) {
            if let buffer = PixelBuffer(width: 1280, height: 720) {
                share.sendVideoFrame(sampleBuffer: SampleBuffer(imageBuffer: buffer, presentationTimeStamp: .now))
            }
            try await Task.sleep(for: .milliseconds(33))
        }
    }
}
