internal import MediaGraph
internal import MediaNodes
internal import RoomProtocol
internal import Synchronization

/// The participation of a `publish` node in its room: what it has published there, and what it failed to publish.
final class PublishingStay: Sendable {
    private struct State {
        var hasAppeared = false
        var hasFailed = false
        /// The newest publication. It begins after all others.
        var newest: Task<Void, Never>?
    }

    private let name: String
    private let state = Mutex(State())
    private let label: String
    private let stay: RoomStay
    private let reporter: Reporter
    private let isOptional: Bool
    /// Whether the start waits for the node.
    private let isAwaited: Bool

    init(_ instance: NodeInstance, _ access: RoomAccess) {
        name = instance.name
        reporter = instance.reporter
        isOptional = instance.plan.node.isOptional
        isAwaited = !instance.mayStayEmpty
        label = instance.text("label")
        let (reporter, name) = (reporter, name)
        // A publisher has no receivers, and ignores the server's own assignments.
        var options = RoomOptions(receivers: ReceiverPool(initial: 0, maximum: 0, growth: 1))
        options.sound = { _, _ in nil }
        stay = RoomStay(access, options: options) { event in
            guard case .ended(_, let error) = event else { return }
            let why = error ?? RoomError(.roomReleased, "The room connection ended.")
            reporter.fail(MediaError(why, node: name), name)
        }
    }

    /// Enters the room if necessary, and publishes those of the streams that do not last yet. Calls `done` once, on any
    /// thread. Publications follow each other, because one may outlive its edit.
    func publish(
        _ streams: [OutgoingStream], of all: OutgoingStreams, _ done: @escaping @Sendable (MediaError?) -> Void
    ) {
        state.withLock { state in
            state.hasAppeared = true
            state.newest = Task.detached { [self, former = state.newest] in
                await former?.value
                do throws(RoomError) {
                    try await publishNow(streams, of: all)
                    done(nil)
                } catch {
                    guard !stay.isLeaving else { return }
                    self.state.withLock { $0.hasFailed = true }
                    done(MediaError(error, node: name))
                }
            }
        }
    }

    private func publishNow(_ streams: [OutgoingStream], of all: OutgoingStreams) async throws(RoomError) {
        let engine = try await stay.enter()
        for stream in streams { stream.show() }
        let new = streams.filter { !all.lasts($0) }
        // An offer cannot be changed, so it waits until each input has a frame or has ended.
        for stream in new { try await stream.firstFrame() }
        // An edit that has failed meanwhile has removed its inputs again.
        let fed = new.filter(\.isFed)
        let filled = fed.filter { !$0.isEmpty }
        guard !filled.isEmpty else { return }
        for stream in fed where stream.isEmpty {
            reporter.warn(
                name, "Publishing without \(stream.codec.media.rawValue), because that input ended without a frame.")
        }
        let published = try await engine.publish(filled.map { Publication($0.track(), extraValue: label) })
        all.keep(filled)
        let dropped = all.drop(unfedOf: filled)
        guard !dropped.isEmpty else { return }
        let ids = published.filter { stream in dropped.contains { ($0.codec.media == .video) == stream.isVideo } }
        engine.unpublish(ids.map(\.id)) { _ in }
    }

    func leave() { stay.leave() }

    func reportShortfall(_ streams: [OutgoingStream], of all: OutgoingStreams) {
        let isShort = state.withLock { $0.hasAppeared && !$0.hasFailed } && all.all.isEmpty
        guard isShort, isAwaited, !reporter.hasFailed else { return }
        let why =
            streams.contains { $0.hasBegun }
            ? "the run ended before the room accepted the streams. Check the server, or publish for longer."
            : "no frame arrived. Check the nodes upstream of it."
        let error = MediaError(RoomError(.publishRefused, "Nothing was published, because \(why)"), node: name)
        if isOptional { reporter.warn(name, "\(error)") } else { reporter.fallShort(error, name) }
    }

    /// Why the start takes too long.
    func stalled(_ streams: [OutgoingStream]) -> MediaError {
        let late = streams.filter { !$0.hasBegun && !$0.isEmpty }.map { $0.codec.media.rawValue }
        guard !late.isEmpty else {
            return MediaError(
                RoomError(.publishRefused, "The server did not accept the streams in time. Try again."), node: name)
        }
        return MediaError(
            code: MediaError.Code.pipelineStalled,
            message: "No \(late.joined(separator: " and no ")) arrived at \"\(name)\" within 8 s. Check the nodes "
                + "upstream of it.",
            node: name)
    }
}
