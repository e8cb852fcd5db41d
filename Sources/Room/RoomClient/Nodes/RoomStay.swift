internal import Dispatch
internal import MediaGraph
internal import MediaNodes
internal import RTP
internal import RoomProtocol
internal import Synchronization

/// A node's room, and its credentials.
struct RoomAccess: Sendable {
    let room: RoomName
    private let locator: ServerLocator
    private let token: String?

    /// The settings of every node in a room.
    static let settings: [SettingContract] = [
        SettingContract("room", .text, isRequired: true, "Name of the room")
            .written("[A-Za-z0-9-]{1,32}", "1 to 32 letters, digits and hyphens, such as kitchen")
            .example("kitchen"),
        SettingContract(
            "server", .text, default: "",
            "Server (default: CONNECTLIVE_SERVER, else the server of 'connectlive serve')"
        ).written(
            #"(?:(?:[Ww][Ss]|[Hh][Tt][Tt][Pp])[Ss]?://)?[^\s/@?#]*[^\s/@?#:](?:/[^\s@?#]*)?"#,
            "https://HOST, https://HOST/PATH or ws://HOST:PORT"),
        SettingContract(
            "service-id", .text, default: "",
            "Service id (default: CONNECTLIVE_SERVICE_ID, else that of 'connectlive serve')"),
        SettingContract(
            "service-secret", .text, default: "", isSecret: true,
            "Service secret (default: CONNECTLIVE_SERVICE_SECRET, else that of 'connectlive serve')"),
        SettingContract("token", .text, default: "", isSecret: true, "Access token instead of the secret"),
    ]

    /// Throws the error of an invalid setting, about the node.
    init(of node: some NodeSettings) throws(MediaError) {
        let (server, token) = (node.text("server"), node.text("token"))
        locator = ServerLocator(
            server: server, serviceId: node.text("service-id"), serviceSecret: node.text("service-secret"), namer: .node
        )
        self.token = token.isEmpty ? nil : token
        do throws(RoomError) {
            room = try RoomName(node.text("room"))
            if !server.isEmpty { _ = try ServerAddress(server) }
        } catch {
            throw MediaError(error, node: node.node.name)
        }
    }

    func signIn() async throws(RoomError) -> AccessToken {
        var locator = locator
        locator.authorities = ApplicationAuthorities.path
        let location = try locator.locate(needsSecret: token == nil)
        if let token { return AccessToken(address: location.address, trust: location.trust, token: token) }
        return try await AccessToken.signIn(at: location).token
    }

    /// Whether leaving ends the token too.
    var ownsToken: Bool { token == nil }
}

extension MediaError {
    /// A room error of a node. The code stays.
    init(_ error: RoomError, node: String) {
        self.init(code: error.code.name, message: "\"\(node)\": \(error.message)", node: node)
    }
}

/// The participants of this process's nodes. A process that publishes and subscribes must not hear itself.
enum OwnParticipants {
    private static let ids = Mutex<Set<String>>([])

    static func contains(_ id: String) -> Bool { ids.withLock { $0.contains(id) } }

    static func insert(_ id: String) { ids.withLock { _ = $0.insert(id) } }

    static func remove(_ id: String) { ids.withLock { _ = $0.remove(id) } }
}

/// A node's participation in a room. It enters once and leaves once.
final class RoomStay: Sendable {
    private struct State {
        var entry: Task<Result<RoomEngine, RoomError>, Never>?
        var engine: RoomEngine?
        var token: AccessToken?
        var isLeaving = false
        var hasEnded = false
        /// The ids that the node has had in the room. The server may keep a former participant for a while.
        var participants: Set<String> = []
        var failure: RoomError?
        /// The caller that waits to enter the room.
        var entering: CheckedContinuation<Void, Never>?
        var isInside = false
        var news: ConnectionNews
    }

    /// Leaving takes at most a second, plus a margin for a busy machine.
    private static let leaveLimit = DispatchTimeInterval.milliseconds(1500)

    private let access: RoomAccess
    private let options: RoomOptions
    private let onNews: @Sendable (String) -> Void
    private let onEvent: @Sendable (RoomEvent) -> Void
    private let state: Mutex<State>
    private let ended = DispatchSemaphore(value: 0)

    /// Both functions are called on the engine's loop, in order.
    ///
    /// - Parameters:
    ///   - onNews: gets a sentence when the server is lost or back, when media ceases to flow or flows again, and about problems
    ///   - onEvent: the last event is `.ended`, which does not follow `leave`
    init(
        _ access: RoomAccess, options: RoomOptions, onNews: @escaping @Sendable (String) -> Void,
        onEvent: @escaping @Sendable (RoomEvent) -> Void
    ) {
        state = Mutex(State(news: ConnectionNews(.seconds(Int(options.returnTimeout.seconds)))))
        self.onNews = onNews
        self.access = access
        self.options = options
        self.onEvent = onEvent
    }

    /// Why nothing flows at present. Nil if media flows.
    var outage: String? { state.withLock { $0.isInside && !$0.hasEnded ? $0.news.outage() : nil } }

    var isLeaving: Bool { state.withLock { $0.isLeaving } }

    /// Signs in and joins the room, unless that has happened or is in progress. Returns when media can flow.
    func enter() async throws(RoomError) -> RoomEngine {
        let entry = state.withLock { state in
            let entry = state.entry ?? Task.detached { [self] in await enterOnce() }
            state.entry = entry
            return entry
        }
        return try await entry.value.get()
    }

    private func enterOnce() async -> Result<RoomEngine, RoomError> {
        let token: AccessToken
        do throws(RoomError) {
            token = try await access.signIn()
        } catch {
            // Without an engine, the next caller may try again.
            state.withLock { $0.entry = nil }
            return .failure(error)
        }
        let engine = RoomEngine(options: options) { [weak self] event in self?.handle(event) }
        let mayEnter = state.withLock { state in
            guard !state.isLeaving else { return false }
            state.engine = engine
            state.token = access.ownsToken ? token : nil
            return true
        }
        guard mayEnter else { return .failure(Self.left) }
        engine.connect(to: access.room) { [weak self, access] refused async throws(RoomError) in
            guard let self, let refused, access.ownsToken else { return token }
            let present = state.withLock { $0.token } ?? token
            guard present.token == refused else { return present }
            let renewed = try await access.signIn()
            state.withLock { $0.token = renewed }
            return renewed
        }
        await withCheckedContinuation { continuation in
            let isSettled = state.withLock { state in
                guard !state.isInside, !state.hasEnded else { return true }
                state.entering = continuation
                return false
            }
            if isSettled { continuation.resume() }
        }
        let (isInside, failure) = state.withLock { ($0.isInside && !$0.hasEnded, $0.failure) }
        return isInside ? .success(engine) : .failure(failure ?? Self.left)
    }

    private static let left = RoomError(.roomReleased, "The room was left before it was entered.")

    private func handle(_ event: RoomEvent) {
        tell(event)
        let (waiting, isWanted) = state.withLock { state in
            switch event {
            case .connected(let participant, _), .joinedAgain(let participant):
                state.isInside = true
                state.participants.insert(participant)
                OwnParticipants.insert(participant)
            case .ended(_, let error):
                state.hasEnded = true
                for participant in state.participants { OwnParticipants.remove(participant) }
                state.failure = error
            default: return (nil as CheckedContinuation<Void, Never>?, !state.isLeaving)
            }
            defer { state.entering = nil }
            return (state.entering, !state.isLeaving)
        }
        if isWanted { onEvent(event) }
        waiting?.resume()
        if case .ended = event { ended.signal() }
    }

    private func tell(_ event: RoomEvent) {
        let sentence = state.withLock { $0.isLeaving ? nil : $0.news.sentence(about: event) }
        if let sentence { onNews(sentence) }
    }

    /// Leaves the room, if entered, and waits for the server's confirmation. Blocks; not for Swift's pool.
    func leave() {
        let (engine, token) = state.withLock { state in
            defer { state.isLeaving = true }
            return state.isLeaving ? (nil, nil) : (state.engine, state.token)
        }
        guard let engine else { return }
        engine.disconnect()
        _ = ended.wait(timeout: .now() + Self.leaveLimit)
        if let token { Task.detached { try? await token.signOut() } }
    }
}
