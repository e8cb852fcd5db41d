import ConnectLiveSDK
import Foundation
import Logging
import RoomServer
import TestFixtures
import TestSupport
import Testing

/// The samples of the original documentation against a room server: they do what their pages state. The names of the tests begin
/// with the document and the numbers of docs/samples.md.
///
/// One after the other, because the sign-in and the audio session belong to the process.
@Suite(.serialized) enum SampleTests {}

/// Waits until a condition of the main actor holds.
@MainActor
func wait(for what: String, _ condition: @MainActor () -> Bool) async throws {
    try await requireEventually(what) { @MainActor in condition() }
}

/// A server for the service of the samples, which an empty endpoint means until the body ends.
@MainActor
func withServer(
    id: String = "SERVICE", secret: String = "KEY:SECRET", _ body: @MainActor (RoomServer) async throws -> Void
) async throws {
    var configuration = RoomServer.Configuration(
        service: ServiceKey(id: id, secret: secret), log: Logger(label: "server") { _ in SwiftLogNoOpLogHandler() })
    configuration.port = 0
    let server = try await RoomServer.start(configuration)
    let environment = EnvironmentOverride(["CONNECTLIVE_SERVER": server.url])
    defer { withExtendedLifetime(environment) {} }
    var failure: Error?
    do { try await body(server) } catch { failure = error }
    ConnectLive.signOut()
    await server.stop()
    if let failure { throw failure }
}

@MainActor
func signIn(_ guide: Guide) async -> Bool {
    await withCheckedContinuation { done in
        guide.s2SignInWithSecret { done.resume(returning: $0) }
    }
}

/// An application that is signed in, with media of a test pattern in two sizes and a room.
@MainActor
func app() async throws -> Guide {
    let guide = Guide()
    try #require(await signIn(guide))
    guide.config.mediaOptions.usesTestPattern = true
    guide.config.mediaOptions.videoLayers = 3
    guide.config.mediaOptions.videoExtraValue = "camera"
    guide.config.mediaOptions.audioExtraValue = "voice"
    guide.s12CreateMedia()
    guide.s18CreateRoom(guide)
    return guide
}

/// Two applications in the room of the guide. Only the first one publishes, and the second one knows the names of that.
@MainActor
func call() async throws -> (ann: Guide, ben: Guide, video: RemoteVideo) {
    let ann = try await app()
    let ben = try await app()
    ben.s19Connect()
    try await wait(for: "Ben") { ben.participantIds.count == 1 }
    ann.s19Connect()
    ann.s20Publish()
    try await wait(for: "the audio of Ann") { ben.lines.contains { $0.hasPrefix("hears") } }
    ben.participantId = try #require(ann.room).localParticipant.id
    try await wait(for: "the video of Ann") { ben.s23RemoteStreams().count == 4 }
    ben.videoId = ben.s23RemoteStreams()[0]
    let participant = try #require(ben.room?.remoteParticipants[ben.participantId])
    return (ann, ben, try #require(participant.videos[ben.videoId]))
}

/// The names of cameras: of these tests, instead of those of the user who runs them.
enum CameraNames {
    private static let home: String = {
        let path = FileManager.default.temporaryDirectory.path + "/samples-names-\(getpid())"
        setenv("XDG_CONFIG_HOME", path, 1)
        return path
    }()

    /// Call before the process uses a camera for the first time.
    static func isolate() { _ = home }

    static func bind(_ cameras: [String: String]) throws {
        let folder = home + "/connectlive"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        try JSONEncoder().encode(cameras).write(to: URL(fileURLWithPath: folder + "/cameras.json"))
    }

    static func unbind() { try? FileManager.default.removeItem(atPath: home) }
}

/// The cameras `front` and `back`, until the object ends. Each shows frames of 640x480.
final class TwoCameras {
    private let folder = TemporaryFolder()

    init() throws {
        var names: [String: String] = [:]
        for (port, name) in ["front", "back"].enumerated() {
            let camera = """
                {"version":1,"driver":"uvcvideo","card":"\(name)","bus":"usb-0000:00:14.0-\(port + 1)",
                 "formats":[{"format":"YUYV","sizes":[{"size":"640x480","rates":["30"]}]}]}
                """
            try Data(camera.utf8).write(to: URL(fileURLWithPath: folder.file("\(name).json")))
            names[name] = "fixture:" + folder.file("\(name).json")
        }
        try CameraNames.bind(names)
    }

    deinit { CameraNames.unbind() }
}
