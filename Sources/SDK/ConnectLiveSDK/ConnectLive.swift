public import Dispatch
package import RoomClient
internal import RoomProtocol

/// The way in: signing in, and creating local media and rooms.
///
/// Callbacks and delegate events are called in order, one after the other, on one queue: `callbackQueue` where the
/// application sets one, else the main queue. Run a main loop (`dispatchMain()`, `RunLoop.main.run()`) or an async main
/// for it. If nothing runs the main queue, callbacks wait, and a line on standard error says so after 5 s.
public final class ConnectLive: Sendable {
    /// Code and message of a sign-in; code 0 is success.
    public typealias ProvisionResult = (Int, String)
    public typealias ProvisionCallback = (_ code: Int, _ message: String) -> Void

    /// Version of this SDK.
    public static let version = "0.1.0"

    private init() {}

    /// Where callbacks and delegate events are called; nil stands for the main queue. Set a serial queue before you call
    /// anything else.
    public static var callbackQueue: DispatchQueue? {
        get { CallbackQueue.shared.chosen }
        set { CallbackQueue.shared.chosen = newValue }
    }

    // MARK: - Signing in

    /// Signs in to a service with its secret.
    ///
    /// - Parameters:
    ///   - serviceId: empty takes the one that CONNECTLIVE_SERVICE_ID has, or the file that `connectlive serve` leaves
    ///     for the same user.
    ///   - serviceSecret: likewise.
    ///   - endpoint: the server as `ws://host:port`; empty takes the one of CONNECTLIVE_SERVER, or of that file.
    ///   - callback: called with the result too, on the callback queue; it may come before or after the call returns.
    /// - Returns: code and message; 0 is success. 1102 when `signOut` or a later sign-in was called meanwhile.
    @discardableResult
    public static func signIn(
        serviceId: String, serviceSecret: String, endpoint: String = "", callback: ProvisionCallback? = nil
    ) async -> ProvisionResult {
        let callback = callback.map { Callback($0) }
        return await finish(begin(.init(serviceId: serviceId, secret: serviceSecret, endpoint: endpoint)), callback)
    }

    public static func signIn(
        serviceId: String, serviceSecret: String, endpoint: String = "", completion: @escaping ProvisionCallback
    ) {
        let callback = Callback(completion)
        let attempt = begin(.init(serviceId: serviceId, secret: serviceSecret, endpoint: endpoint))
        Task.detached { await finish(attempt, callback) }
    }

    /// Signs in with a token that the application got elsewhere. Whether it is good is seen when a room is entered.
    @discardableResult
    public static func signIn(
        serviceId: String, token: String, endpoint: String = "", callback: ProvisionCallback? = nil
    ) async -> ProvisionResult {
        let callback = callback.map { Callback($0) }
        return await finish(begin(.init(serviceId: serviceId, token: token, endpoint: endpoint)), callback)
    }

    public static func signIn(
        serviceId: String, token: String, endpoint: String = "", completion: @escaping ProvisionCallback
    ) {
        let callback = Callback(completion)
        let attempt = begin(.init(serviceId: serviceId, token: token, endpoint: endpoint))
        Task.detached { await finish(attempt, callback) }
    }

    /// Ends the sign-in, one in progress too, and on the server every room connection that was made by it or by
    /// an earlier one. A token that the application brought along stays valid.
    public static func signOut() { Authentication.shared.signOut() }

    /// Signs in for a program whose user names the server in another way than by the parameters of `signIn`.
    package static func signIn(
        serviceId: String, serviceSecret: String, endpoint: String, namer: ServerNamer
    ) async -> ProvisionResult {
        await finish(
            begin(.init(serviceId: serviceId, secret: serviceSecret, endpoint: endpoint, namer: namer)), nil)
    }

    private static func begin(_ credentials: Authentication.Credentials) -> Authentication.Attempt {
        Authentication.shared.begin(credentials)
    }

    @discardableResult
    private static func finish(
        _ attempt: Authentication.Attempt, _ callback: Callback<Int, String>?
    ) async -> ProvisionResult {
        var result: ProvisionResult = (0, "")
        do throws(RoomError) {
            try await Authentication.shared.finish(attempt)
        } catch {
            result = (error.code.number, error.sdkMessage)
        }
        callback?(result.0, result.1)
        return result
    }

    // MARK: - Creating

    /// A room to connect to. The delegate is not kept alive by it.
    public static func createRoom(config: Config?, delegate: any RoomDelegate) -> any Room {
        createRoom(config: config, delegate: delegate, impairment: nil)
    }

    /// Nil when the options ask for neither pictures nor sound. What is missing (a file, a camera) shows in
    /// `LocalMedia.start`, or in `RoomDelegate.onError` after publishing.
    public static func createLocalMedia(config: Config) -> (any LocalMedia)? {
        guard config.mediaOptions.hasVideo || config.mediaOptions.hasAudio else { return nil }
        return LocalMediaSession(config.mediaOptions)
    }

    @available(*, deprecated, renamed: "createLocalMedia(config:)")
    public static func createLocalMedia(options: LocalMediaOptions) -> (any LocalMedia)? {
        var config = Config()
        config.mediaOptions = options
        return createLocalMedia(config: config)
    }

    /// A room whose datagrams get lost on purpose, for tests of bad networks.
    package static func createRoom(
        config: Config?, delegate: any RoomDelegate, impairment: LinkImpairment?
    ) -> any Room {
        let config = config ?? Config()
        return RoomSession(
            options: RoomOptions(
                receivers: config.receivers, playsSound: config.playsRemoteAudio, impairment: impairment),
            delegate: delegate)
    }

    /// Local media with options that the public ones do not reach, such as a test pattern of some length.
    package static func createLocalMedia(capture: CaptureOptions, extraValue: String = "") -> any LocalMedia {
        var options = LocalMediaOptions()
        options.videoExtraValue = extraValue
        options.audioExtraValue = extraValue
        options.isMirror = capture.isMirror
        return LocalMediaSession(options, capture: LocalCapture(capture))
    }
}
