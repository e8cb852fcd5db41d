public import Dispatch
internal import Foundation
package import RoomClient
internal import RoomProtocol
internal import Synchronization

/// The way in: signing in, and creating local media and rooms.
///
/// Callbacks and delegate events are called in order, one after the other, on one queue: the one that `callbackQueue`
/// was set to; else the main queue where something serves it (a main loop, or Swift's async main); else a serial queue
/// of the SDK's own. Whether the main queue is served is found out once, when the SDK is first used: a block that is
/// put there has 100 ms to run.
public final class ConnectLive: Sendable {
    /// Code and message of a sign-in; code 0 is success.
    public typealias ProvisionResult = (Int, String)
    public typealias ProvisionCallback = (_ code: Int, _ message: String) -> Void

    /// Version of this SDK.
    public static let version = "0.1.0"

    private init() {}

    /// Where callbacks and delegate events are called; nil leaves the choice to the SDK. Give a serial queue, before
    /// anything else is called.
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
    ///   - callback: called with the result too.
    /// - Returns: code and message; 0 is success.
    @discardableResult
    public static func signIn(
        serviceId: String, serviceSecret: String, endpoint: String = "", callback: ProvisionCallback? = nil
    ) async -> ProvisionResult {
        let callback = callback.map { Callback($0) }
        return await report(
            await signIn(Credentials(serviceId: serviceId, secret: serviceSecret, endpoint: endpoint)), to: callback)
    }

    public static func signIn(
        serviceId: String, serviceSecret: String, endpoint: String = "", completion: @escaping ProvisionCallback
    ) {
        let callback = Callback(completion)
        let credentials = Credentials(serviceId: serviceId, secret: serviceSecret, endpoint: endpoint)
        Task.detached { _ = await report(await signIn(credentials), to: callback) }
    }

    /// Signs in with a token that the application got elsewhere. Whether it is good is seen when a room is entered.
    @discardableResult
    public static func signIn(
        serviceId: String, token: String, endpoint: String = "", callback: ProvisionCallback? = nil
    ) async -> ProvisionResult {
        let callback = callback.map { Callback($0) }
        return await report(
            await signIn(Credentials(serviceId: serviceId, token: token, endpoint: endpoint)), to: callback)
    }

    public static func signIn(
        serviceId: String, token: String, endpoint: String = "", completion: @escaping ProvisionCallback
    ) {
        let callback = Callback(completion)
        let credentials = Credentials(serviceId: serviceId, token: token, endpoint: endpoint)
        Task.detached { _ = await report(await signIn(credentials), to: callback) }
    }

    /// Ends the sign-in, and on the server every room connection that was made by it.
    public static func signOut() {
        let session = signedIn.withLock { session in
            defer { session = nil }
            return session
        }
        // A token that was brought along is not ours to end.
        guard let session, session.credentials.token == nil else { return }
        Task.detached {
            for token in session.earlier + [session.token] { try? await token.signOut() }
        }
    }

    // MARK: - Creating

    /// A room to connect to. The delegate is not kept alive by it.
    public static func createRoom(config: Config?, delegate: any RoomDelegate) -> any Room {
        createRoom(config: config, delegate: delegate, impairment: nil)
    }

    /// Nil when the options ask for neither pictures nor sound. What is missing (a file, a camera) shows in
    /// `LocalMedia.start`, or in `RoomDelegate.onError` after publishing.
    public static func createLocalMedia(config: Config) -> (any LocalMedia)? {
        CallbackQueue.shared.prepare()
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
        let initial = max(0, config.videoReceiverInitialCount)
        let receivers = ReceiverPool(
            initial: initial, maximum: max(initial, config.videoReceiverMaximumCount),
            growth: max(1, config.videoReceiverGrowthRate))
        return RoomSession(
            options: RoomOptions(
                receivers: receivers, playsSound: config.playsRemoteAudio, impairment: impairment),
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

    // MARK: - The sign-in

    private struct Credentials: Sendable {
        var serviceId: String
        var secret: String?
        var token: String?
        var endpoint: String

        init(serviceId: String, secret: String? = nil, token: String? = nil, endpoint: String) {
            self.serviceId = serviceId
            self.secret = secret
            self.token = token
            self.endpoint = endpoint
        }
    }

    private struct Session: Sendable {
        /// Tells one sign-in from the next.
        let id = UUID()
        var credentials: Credentials
        var token: AccessToken
        /// What rooms may have been entered by before `token`, the oldest first.
        var earlier: [AccessToken] = []
        /// When a new token is due; nil for one that was brought along.
        var renewal: ContinuousClock.Instant?
    }

    private static let signedIn = Mutex<Session?>(nil)
    /// A token is renewed this long before it ends.
    private static let renewalMargin = Duration.seconds(60)
    /// A token lasts an hour: rooms that were entered ten days ago are left by themselves.
    private static let earlierCapacity = 240

    private static func signIn(_ credentials: Credentials) async -> Result<Void, RoomError> {
        do throws(RoomError) {
            let session = try await makeSession(credentials)
            signedIn.withLock { $0 = session }
            return .success(())
        } catch {
            return .failure(error)
        }
    }

    private static func makeSession(_ credentials: Credentials) async throws(RoomError) -> Session {
        let locator = ServerLocator(
            server: credentials.endpoint, serviceId: credentials.serviceId, serviceSecret: credentials.secret)
        let location = try locator.locate(needsSecret: credentials.token == nil)
        if let token = credentials.token {
            guard !token.isEmpty else {
                throw RoomError(.serviceMissing, "The token to sign in with is empty: get one from your service.")
            }
            return Session(credentials: credentials, token: AccessToken(address: location.address, token: token))
        }
        let granted = try await AccessToken.signIn(at: location)
        return Session(
            credentials: credentials, token: granted.token,
            renewal: .now + .seconds(granted.seconds) - renewalMargin)
    }

    /// The token to enter a room with, renewed when it is about to end.
    static func accessToken(now: ContinuousClock.Instant = .now) async throws(RoomError) -> AccessToken {
        guard let session = signedIn.withLock({ $0 }) else {
            throw RoomError(.notSignedIn, "Nobody is signed in: call ConnectLive.signIn before connecting to a room.")
        }
        guard let renewal = session.renewal, now > renewal else { return session.token }
        let renewed = try await makeSession(session.credentials)
        let isWanted = signedIn.withLock { current in
            guard var next = current, next.id == session.id else { return false }
            next.earlier = (next.earlier + [next.token]).suffix(earlierCapacity)
            next.token = renewed.token
            next.renewal = renewed.renewal
            current = next
            return true
        }
        guard isWanted else {
            Task.detached { try? await renewed.token.signOut() }
            throw RoomError(
                .authenticationReleased, "The sign-in was ended while its token was renewed: sign in again.")
        }
        return renewed.token
    }

    private static func report(
        _ result: Result<Void, RoomError>, to callback: Callback<Int, String>?
    ) async -> ProvisionResult {
        let answer: ProvisionResult =
            switch result {
            case .success: (0, "")
            case .failure(let error): (error.code.number, error.sdkMessage)
            }
        callback?(answer.0, answer.1)
        return answer
    }
}
