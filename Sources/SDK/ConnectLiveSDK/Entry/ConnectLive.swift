public import Dispatch
package import RoomClient
internal import RoomProtocol

/// The entry point: signs in, and creates local media and rooms.
///
/// Callbacks and delegate events run one after another, those of a room in order, on `callbackQueue`, or on the main queue if
/// that is nil. The main queue needs a main loop (`dispatchMain()`, `RunLoop.main.run()`) or an async main. If nothing runs it,
/// callbacks wait, and after 5 s a line on standard error reports it.
public final class ConnectLive: Sendable {
    /// Code and message of a sign-in. Code 0 means success.
    public typealias ProvisionResult = (Int, String)
    /// Receives the code and the message of a sign-in, on the callback queue. Code 0 means success.
    public typealias ProvisionCallback = (_ code: Int, _ message: String) -> Void

    /// The SDK's version.
    public static let version = "0.1.0"

    private init() {}

    /// The queue for callbacks and delegate events. Nil means the main queue. Set a serial queue before any other call.
    public static var callbackQueue: DispatchQueue? {
        get { CallbackQueue.shared.chosen }
        set { CallbackQueue.shared.chosen = newValue }
    }

    /// A PEM file with the authorities that sign the certificates of room servers, instead of those that the system knows. For
    /// an `https://` endpoint with an authority of your own, or with a certificate that is its own authority. Nil, the default,
    /// means the certificate in the server file for the server of this user, else the file of the environment
    /// (`CONNECTLIVE_CA`), else the system. A sign-in uses the present value, and so do the rooms that are entered with it.
    /// Room nodes of graphs use the value at their start. (Linux)
    public static var certificateAuthorities: String? {
        get { ApplicationAuthorities.path }
        set { ApplicationAuthorities.path = newValue }
    }

    // MARK: - Signing in

    /// Signs in to a service with its secret.
    ///
    /// - Parameters:
    ///   - serviceId: the service. Empty means CONNECTLIVE_SERVICE_ID, else the file that `connectlive serve` wrote for
    ///     this user.
    ///   - serviceSecret: the service's secret. Empty means CONNECTLIVE_SERVICE_SECRET, else that file.
    ///   - endpoint: the server as `https://host` or `ws://host:port`, with the prefix of its paths, if it has one
    ///     (`https://host/rooms`). Port 443 with TLS and 7880 without, unless named. Empty means CONNECTLIVE_SERVER, else that
    ///     file.
    ///   - callback: also receives the result, on the callback queue, before or after the call returns
    /// - Returns: code and message. 0 means success, 1105 that the server was not reached, or its certificate
    ///   not accepted, 1102 that `signOut` or a later
    ///   sign-in was called meanwhile.
    @discardableResult
    nonisolated(nonsending) public static func signIn(
        serviceId: String, serviceSecret: String, endpoint: String = "", callback: ProvisionCallback? = nil
    ) async -> ProvisionResult {
        let callback = callback.map { Callback($0) }
        return await finish(begin(.init(serviceId: serviceId, secret: serviceSecret, endpoint: endpoint)), callback)
    }

    /// Signs in to a service with its secret, and returns at once. The completion receives the result, on the callback
    /// queue.
    public static func signIn(
        serviceId: String, serviceSecret: String, endpoint: String = "", completion: @escaping ProvisionCallback
    ) {
        let callback = Callback(completion)
        let attempt = begin(.init(serviceId: serviceId, secret: serviceSecret, endpoint: endpoint))
        Task.detached { await finish(attempt, callback) }
    }

    /// Signs in with an access token that a service of yours got from the server. The server checks it.
    ///
    /// - Parameters:
    ///   - serviceId: the service
    ///   - token: not renewed: sign in again before it expires
    ///   - endpoint: the server, as for a secret
    ///   - callback: also receives the result, on the callback queue, before or after the call returns
    /// - Returns: code and message, as for a secret. -11005 means that the token is unknown or has expired, and 1103 that it is
    ///   empty.
    @discardableResult
    nonisolated(nonsending) public static func signIn(
        serviceId: String, token: String, endpoint: String = "", callback: ProvisionCallback? = nil
    ) async -> ProvisionResult {
        let callback = callback.map { Callback($0) }
        return await finish(begin(.init(serviceId: serviceId, token: token, endpoint: endpoint)), callback)
    }

    /// Signs in with a token from elsewhere, and returns at once. The completion receives the result, on the callback
    /// queue.
    public static func signIn(
        serviceId: String, token: String, endpoint: String = "", completion: @escaping ProvisionCallback
    ) {
        let callback = Callback(completion)
        let attempt = begin(.init(serviceId: serviceId, token: token, endpoint: endpoint))
        Task.detached { await finish(attempt, callback) }
    }

    /// Ends the sign-in, even one in progress. The server closes all room connections of this and earlier sign-ins. A
    /// token that the application passed stays valid.
    public static func signOut() { Authentication.shared.signOut() }

    /// Signs in for a caller whose user names the server by other means than the parameters of `signIn`.
    package static func signIn(
        serviceId: String, serviceSecret: String, endpoint: String, authorities: String? = nil, namer: ServerNamer
    ) async -> ProvisionResult {
        await finish(
            begin(
                .init(
                    serviceId: serviceId, secret: serviceSecret, endpoint: endpoint, authorities: authorities,
                    namer: namer)), nil)
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
            let error = attempt.isOfApplication ? error.failing(.signIn) : error
            result = (error.code.number, error.sdkMessage)
        }
        callback?(result.0, result.1)
        return result
    }

    // MARK: - Creating

    /// A room to connect to. It does not retain the delegate.
    public static func createRoom(config: Config?, delegate: any RoomDelegate) -> any Room {
        createRoom(config: config, delegate: delegate, impairment: nil)
    }

    /// A room without a delegate, whose `events` report the same. (Linux)
    public static func createRoom(config: Config? = nil) -> any Room {
        createRoom(config: config, delegate: nil, impairment: nil)
    }

    /// Nil if the options have neither video nor audio. A missing file or camera is reported by `LocalMedia.start`, or
    /// by `RoomDelegate.onError` after publishing.
    public static func createLocalMedia(config: Config) -> (any LocalMedia)? {
        guard config.mediaOptions.hasVideo || config.mediaOptions.hasAudio else { return nil }
        return LocalMediaSession(config.mediaOptions)
    }

    /// Creates local media with these options. Nil if they have neither video nor audio.
    @available(*, deprecated, renamed: "createLocalMedia(config:)")
    public static func createLocalMedia(options: LocalMediaOptions) -> (any LocalMedia)? {
        var config = Config()
        config.mediaOptions = options
        return createLocalMedia(config: config)
    }

    /// A room that loses datagrams, for tests of bad networks.
    package static func createRoom(
        config: Config?, delegate: (any RoomDelegate)?, impairment: LinkImpairment?
    ) -> any Room {
        var options = RoomOptions(config ?? Config())
        options.impairment = impairment
        return RoomSession(delegate: delegate, screenShare: config?.screenShare ?? ScreenShareOptions()) {
            [options] onEvent in RoomEngine(options: options, onEvent: onEvent)
        }
    }

    /// Local media with options that are not public, such as a test pattern of limited length.
    package static func createLocalMedia(_ request: MediaRequest, extraValue: String = "") -> any LocalMedia {
        var options = LocalMediaOptions(request)
        options.videoExtraValue = extraValue
        options.audioExtraValue = extraValue
        return LocalMediaSession(options)
    }
}

extension RoomOptions {
    init(_ config: Config) {
        self.init(
            receivers: config.receivers, playsSound: config.playsRemoteAudio,
            returnTimeoutSeconds: config.reconnectSeconds)
        servers = config.servers
        statisticsSeconds = Int(clamping: config.qualityStatInterval)
    }
}
