import Dispatch
import Foundation
import Logging
import MediaGraph
import RoomClient
import RoomServer
import ServerCore
import Synchronization
import Testing
import TestSupport

@testable import ConnectLiveSDK

struct NotInTime: Error, CustomStringConvertible {
    var what: String
    var log: [String] = []
    var description: String { "not in time: \(what); seen: \(log.joined(separator: ", "))" }
}

/// Events that a room sent to its delegate, in order.
enum Heard: Sendable {
    case progress(Float)
    case connected([String])
    case disconnected(DisconnectReason)
    case error(Int, String, isCritical: Bool)
    case entered(any RemoteParticipant)
    case left(any RemoteParticipant)
    case localPublished(any LocalMedia)
    case localUnpublished(any LocalMedia)
    case video(any RemoteVideo)
    case videoGone(any RemoteVideo)
    case videoChanged(any RemoteVideo, StreamState)
    case audioChanged(any RemoteAudio, StreamState)
    case userMessage(from: String, String, type: String)
    case videoStateChanged(any RemoteVideo)
    case audioStateChanged(any RemoteAudio)
    case camera(LocalDeviceEvent)
    case microphone(LocalDeviceEvent)
    case loudspeaker(LocalDeviceEvent)
    case audio(any RemoteAudio)
    case audioGone(any RemoteAudio)
    case reconnecting(Int)
    case reconnected(wasResumed: Bool)
    case heard(any RemoteAudio)
    case unheard(any RemoteAudio)

    var name: String { String("\(self)".prefix { $0 != "(" }) }
}

final class Listener: RoomDelegate, Sendable {
    private let heard = Mutex<[Heard]>([])
    private let onMainQueue = Mutex<[Bool]>([])
    private let viewsOfGone = Mutex<[String]>([])
    private let told = Mutex<[QualityStat]>([])
    private let reaction = Mutex<(@Sendable (Heard) -> Void)?>(nil)

    var events: [Heard] { heard.withLock { $0 } }
    var names: [String] { events.map(\.name) }
    /// Whether each event arrived on the main queue, which is not always the main thread.
    var mainQueue: [Bool] { onMainQueue.withLock { $0 } }

    /// The view of each unpublished video, at the time of its event.
    var viewsOfGoneVideos: [String] { viewsOfGone.withLock { $0 } }

    /// In order. They are no `events`, because they come at an interval.
    var stats: [QualityStat] { told.withLock { $0 } }

    private static let mainKey: DispatchSpecificKey<Bool> = {
        let key = DispatchSpecificKey<Bool>()
        DispatchQueue.main.setSpecific(key: key, value: true)
        return key
    }()

    init() { _ = Self.mainKey }

    /// Calls the function with each event from now on, as an application's delegate would be called.
    func react(_ reaction: @escaping @Sendable (Heard) -> Void) { self.reaction.withLock { $0 = reaction } }

    private func add(_ event: Heard) {
        heard.withLock { $0.append(event) }
        onMainQueue.withLock { $0.append(DispatchQueue.getSpecific(key: Self.mainKey) == true) }
        reaction.withLock { $0 }?(event)
    }

    func onConnected(participantIds: [String]) { add(.connected(participantIds)) }
    func onDisconnected(reason: DisconnectReason) { add(.disconnected(reason)) }
    func onError(code: Int, message: String, isCritical: Bool) { add(.error(code, message, isCritical: isCritical)) }
    func onParticipantEntered(remoteParticipant: any RemoteParticipant) { add(.entered(remoteParticipant)) }
    func onParticipantLeft(remoteParticipant: any RemoteParticipant) { add(.left(remoteParticipant)) }
    func onConnecting(progress: Float) { add(.progress(progress)) }
    func onReconnecting(attempt: Int, error: ConnectLiveError) { add(.reconnecting(attempt)) }
    func onReconnected(wasResumed: Bool, seconds: Double) { add(.reconnected(wasResumed: wasResumed)) }
    func onLocalMediaPublished(localMedia: (any LocalMedia)?) { if let localMedia { add(.localPublished(localMedia)) } }
    func onLocalMediaUnpublished(localMedia: (any LocalMedia)?) {
        if let localMedia { add(.localUnpublished(localMedia)) }
    }
    func onRemoteVideoPublished(remoteParticipant: any RemoteParticipant, remoteVideo: any RemoteVideo) {
        add(.video(remoteVideo))
    }
    func onRemoteVideoUnpublished(remoteParticipant: any RemoteParticipant, remoteVideo: any RemoteVideo) {
        viewsOfGone.withLock { $0.append(remoteVideo.viewId) }
        add(.videoGone(remoteVideo))
    }
    func onRemoteVideoChanged(remoteParticipant: any RemoteParticipant, remoteVideo: any RemoteVideo) {
        add(.videoChanged(remoteVideo, remoteVideo.state))
    }
    func onRemoteAudioChanged(remoteParticipant: any RemoteParticipant, remoteAudio: any RemoteAudio) {
        add(.audioChanged(remoteAudio, remoteAudio.state))
    }
    func onUserMessage(senderId: String, message: String, type: String) {
        add(.userMessage(from: senderId, message, type: type))
    }
    func onRemoteVideoStateChanged(remoteParticipant: any RemoteParticipant, remoteVideo: any RemoteVideo) {
        add(.videoStateChanged(remoteVideo))
    }
    func onRemoteAudioStateChanged(remoteParticipant: any RemoteParticipant, remoteAudio: any RemoteAudio) {
        add(.audioStateChanged(remoteAudio))
    }
    func onStat(stat: QualityStat) { told.withLock { $0.append(stat) } }
    func onLocalVideoChanged(localMedia: (any LocalMedia)?, event: LocalDeviceEvent) { add(.camera(event)) }
    func onLocalAudioChanged(localMedia: (any LocalMedia)?, event: LocalDeviceEvent) { add(.microphone(event)) }
    func onLoudspeakerChanged(event: LocalDeviceEvent) { add(.loudspeaker(event)) }
    func onRemoteAudioPublished(remoteParticipant: any RemoteParticipant, remoteAudio: any RemoteAudio) {
        add(.audio(remoteAudio))
    }
    func onRemoteAudioUnpublished(remoteParticipant: any RemoteParticipant, remoteAudio: any RemoteAudio) {
        add(.audioGone(remoteAudio))
    }
    func onRemoteAudioSubscribed(remoteParticipant: any RemoteParticipant, remoteAudio: any RemoteAudio) {
        add(.heard(remoteAudio))
    }
    func onRemoteAudioUnsubscribed(remoteParticipant: any RemoteParticipant, remoteAudio: any RemoteAudio) {
        add(.unheard(remoteAudio))
    }

    /// Waits for an event that matches. Returns the first.
    @discardableResult
    func wait<Found>(
        for what: String, within seconds: Double = 10, _ match: (Heard) -> Found?
    ) async throws -> Found {
        let deadline = ContinuousClock.now + .milliseconds(Int(seconds * 1000))
        while true {
            let seen = events
            if let found = seen.lazy.compactMap(match).first { return found }
            guard ContinuousClock.now < deadline else { throw NotInTime(what: what, log: seen.map { "\($0)" }) }
            try await Task.sleep(for: .milliseconds(2))
        }
    }

    func waitForConnected() async throws -> [String] {
        try await wait(for: "connected") { if case .connected(let ids) = $0 { ids } else { nil } }
    }

    /// The video that was announced first, second, ...
    func waitForVideo(count: Int = 1) async throws -> any RemoteVideo {
        try await requireEventually("video \(count)") { videos.count >= count }
        return videos[count - 1]
    }

    private var videos: [any RemoteVideo] {
        events.compactMap { if case .video(let video) = $0 { video } else { nil } }
    }

    func waitForLocalMedia() async throws {
        try await wait(for: "published") { if case .localPublished = $0 { true } else { nil } }
    }

    func waitForDisconnected(within seconds: Double = 10) async throws -> DisconnectReason {
        try await wait(for: "disconnected", within: seconds) {
            if case .disconnected(let why) = $0 { why } else { nil }
        }
    }

    func waitForError(within seconds: Double = 10) async throws -> (code: Int, message: String, isCritical: Bool) {
        try await wait(for: "an error", within: seconds) {
            if case .error(let code, let message, let isCritical) = $0 { (code, message, isCritical) } else { nil }
        }
    }
}

/// A server on a free port of loopback, to which the SDK is signed in.
struct Stage {
    let server: RoomServer
    let key: ServiceKey

    /// - Parameters:
    ///   - port: 0 means a free one.
    ///   - tls: the server's certificate. Nil without TLS.
    ///   - recorder: records streams. Nil if the server records nothing.
    init(
        isSignedIn: Bool = true, port: Int = 0, tls: TLSFiles? = nil, recorder: (any StreamRecorder)? = nil
    ) async throws {
        CameraNames.isolate()
        key = ServiceKey(id: "test", secret: "a secret for tests")
        var configuration = RoomServer.Configuration(
            service: key, log: Logger(label: "server") { _ in SwiftLogNoOpLogHandler() })
        configuration.port = port
        configuration.tls = tls
        configuration.recorder = recorder
        server = try await RoomServer.start(configuration)
        if isSignedIn { try await signIn() }
    }

    func signIn() async throws {
        let (code, message) = await ConnectLive.signIn(
            serviceId: key.id, serviceSecret: key.secret, endpoint: server.url)
        try #require(code == 0, "\(message)")
    }

    /// A token of the server, as a service of the application would get it.
    func token() async throws -> AccessToken {
        let locator = ServerLocator(
            server: server.url, serviceId: key.id, serviceSecret: key.secret, namer: .application)
        return try await AccessToken.signIn(at: try locator.locate(needsSecret: true)).token
    }

    /// Signs out before the server stops, so that no request waits for it.
    func end() async {
        ConnectLive.signOut()
        await server.stop()
    }
}

/// Runs the test on its own stage, and always dismantles the stage.
func onStage(
    isSignedIn: Bool = true, recorder: (any StreamRecorder)? = nil,
    _ body: (Stage) async throws -> Void
) async throws {
    let stage = try await Stage(isSignedIn: isSignedIn, recorder: recorder)
    do {
        try await body(stage)
    } catch {
        await stage.end()
        throw error
    }
    await stage.end()
}

/// The frames that a view was given.
final class Watcher: Sendable {
    struct Sight: Sendable {
        var rtpTimestamp: UInt32?
        var barCode: UInt32?
        var time: MediaTime
        var width: Int
    }

    private let seen = Mutex<[Sight]>([])

    var sights: [Sight] { seen.withLock { $0 } }

    func watch(in view: FrameView, _ attach: (FrameView) -> Void) {
        view.onFrame = { [self] frame in
            let sight = Sight(
                rtpTimestamp: frame.rtpTimestamp, barCode: frame.barCode, time: frame.handedOver, width: frame.width)
            seen.withLock { $0.append(sight) }
        }
        attach(view)
    }

    /// Receives every rendered frame directly, because a slow view would drop some.
    func watch(_ video: any RemoteVideo) {
        guard let stream = video as? RemoteVideoStream else { preconditionFailure("a video of no room") }
        _ = stream.outlet.fanout.add { [self] frame in
            let sight = Sight(
                rtpTimestamp: frame.rtpTimestamp, barCode: frame.barCode, time: frame.handedOver, width: frame.width)
            seen.withLock { $0.append(sight) }
        }
    }

    /// Longest time between two frames in milliseconds.
    var longestGap: Double {
        let sights = sights
        return zip(sights, sights.dropFirst()).map { $1.time.milliseconds(since: $0.time) }.max() ?? 0
    }
}

/// One participant of a test.
final class Client: Sendable {
    let listener = Listener()
    let room: any Room

    init(config: Config = silent(), impairment: LinkImpairment? = nil) {
        room = ConnectLive.createRoom(config: config, delegate: listener, impairment: impairment)
    }

    func join(_ name: String) async throws -> [String] {
        room.connect(roomId: name)
        return try await listener.waitForConnected()
    }

    /// Subscribes to a video, and watches its frames.
    func watch(_ video: any RemoteVideo) async throws -> Watcher {
        let watcher = Watcher()
        watcher.watch(video)
        try await room.subscribe(videoId: video.id).get()
        return watcher
    }

    func leave() async throws {
        room.disconnect()
        _ = try await listener.waitForDisconnected()
    }
}

/// The engine of a room on a server.
func roomEngine(of room: any Room) throws -> RoomEngine { try #require((room as? RoomSession)?.link as? RoomEngine) }

/// The names that `connectlive devices bind` gives to cameras: of these tests, instead of those of the user who runs them.
enum CameraNames {
    private static let home: String = {
        let path = FileManager.default.temporaryDirectory.path + "/connectlive-names-\(getpid())"
        setenv("XDG_CONFIG_HOME", path, 1)
        return path
    }()

    /// Call before the first use of a camera.
    static func isolate() { _ = home }

    static func bind(_ name: String, to camera: String) throws {
        let folder = home + "/connectlive"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        try #"{"\#(name)": "\#(camera)"}"#.write(toFile: folder + "/cameras.json", atomically: true, encoding: .utf8)
    }

    static func unbind() { try? FileManager.default.removeItem(atPath: home) }
}

/// Settings of a participant whose loudspeaker stays quiet.
///
/// - Parameter returnTimeout: see `Config.reconnectSeconds`.
func silent(returnTimeout: Int = 120) -> Config {
    var config = Config()
    config.reconnectSeconds = returnTimeout
    config.playsRemoteAudio = false
    return config
}

/// All of them one after the other.
@Suite(.serialized)
enum SDKTests {}
