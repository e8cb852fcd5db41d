internal import MediaGraph
internal import MediaNodes
internal import RoomProtocol
internal import Synchronization

/// An input to publish with those of its lower layers, and the stream that they feed. An edit that fails releases the input
/// before it is published.
struct PublishedInput: Sendable {
    private struct Reference {
        weak var input: (any StreamInput)?
    }

    let stream: OutgoingStream
    private let inputs: [Reference]

    init(_ inputs: [any StreamInput], of stream: OutgoingStream) {
        (self.inputs, self.stream) = (inputs.map { Reference(input: $0) }, stream)
    }

    func show() {
        for input in inputs.compactMap(\.input) { stream.show(input) }
    }
}

/// The participation of a `publish` node in its room: what it has published there, and what it failed to publish.
final class PublishingStay: Sendable {
    private struct State {
        var hasAppeared = false
        var hasFailed = false
        /// The streams of the publications in progress. Each is published by the one that began first.
        var pending: Set<ObjectIdentifier> = []
        /// The newest offer. It begins after all others.
        var newest: Task<RoomError?, Never>?
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
        stay = RoomStay(access, options: options, onNews: { reporter.warn(name, $0) }) { event in
            guard case .ended(_, let error) = event else { return }
            let why = error ?? RoomError(.roomReleased, "The room connection ended.")
            reporter.fail(MediaError(why, node: name), name)
        }
    }

    /// See `RoomStay.outage`.
    var outage: String? { stay.outage }

    /// Enters the room if necessary, and publishes those of the streams that do not last yet. Calls `done` once, on any
    /// thread. A publication may outlive its edit. It waits for the first frames of its own streams alone: those of
    /// another edit may never come.
    func publish(
        _ inputs: [PublishedInput], of all: OutgoingStreams, _ done: @escaping @Sendable (MediaError?) -> Void
    ) {
        let new = state.withLock { state in
            state.hasAppeared = true
            // In this order: a stream lasts before it is pending no longer.
            let new = inputs.map(\.stream).filter { stream in
                !state.pending.contains(ObjectIdentifier(stream)) && !all.lasts(stream)
            }
            state.pending.formUnion(new.map { ObjectIdentifier($0) })
            return new
        }
        Task.detached { [self] in
            do throws(RoomError) {
                try await publishNow(inputs, new, of: all)
                noLongerPending(new)
                done(nil)
            } catch {
                noLongerPending(new)
                guard !stay.isLeaving else { return }
                state.withLock { $0.hasFailed = true }
                done(MediaError(error, node: name))
            }
        }
    }

    private func noLongerPending(_ streams: [OutgoingStream]) {
        state.withLock { $0.pending.subtract(streams.map { ObjectIdentifier($0) }) }
    }

    private func publishNow(
        _ inputs: [PublishedInput], _ new: [OutgoingStream], of all: OutgoingStreams
    ) async throws(RoomError) {
        let engine = try await stay.enter()
        for input in inputs { input.show() }
        // An offer cannot be changed, so it waits until each input has a frame or has ended.
        for stream in new { try await stream.firstFrame() }
        let offer = state.withLock { state in
            let offer = Task { [self, former = state.newest] () -> RoomError? in
                _ = await former?.value
                do throws(RoomError) {
                    try await self.offer(new, of: all, to: engine)
                    return nil
                } catch {
                    return error
                }
            }
            state.newest = offer
            return offer
        }
        if let error = await offer.value { throw error }
    }

    private func offer(
        _ streams: [OutgoingStream], of all: OutgoingStreams, to engine: RoomEngine
    ) async throws(RoomError) {
        // An edit that has failed meanwhile has removed its inputs again.
        let fed = streams.filter(\.isFed)
        let filled = fed.filter { !$0.isEmpty }
        guard !filled.isEmpty else { return }
        for stream in fed where stream.isEmpty {
            reporter.warn(
                name, "Publishing without \(stream.codec.media.rawValue), because that input ended without a frame.")
        }
        let published = try await engine.publish(
            filled.map { Publication($0.track(), StreamAttributes(extraValue: label)) })
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
