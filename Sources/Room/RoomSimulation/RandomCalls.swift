internal import ClientCore
public import RTP
internal import RoomProtocol

/// A room whose applications make random calls: join, leave, publish, unpublish, subscribe, unsubscribe, pause, and changes of
/// profiles and attributes. The seed decides.
///
/// Up to four calls run together. When they have settled, every client must have what it asked for, and nothing else: the
/// frames of the videos that it watches, the audio that the room has, and the streams and attributes of the others.
public struct RandomCalls: Sendable {
    /// 2 or more.
    public var clients = 4
    /// Groups of one to four calls.
    public var rounds = 20
    /// The links to choose from.
    public var links = [Link.wired, .wifi, .cellular]
    /// The loops of the server over which the room spreads, 1 or more.
    public var loops = 1
    /// The most videos that a client watches, and as many receivers as it asks for.
    public var watched = 4

    /// Four clients and twenty groups of calls, on links of all kinds.
    public init() {}

    /// The outcome of a run in which every promise held.
    public struct Outcome: Sendable, Equatable {
        /// The calls that were made.
        public var calls: Int
        /// Those that failed because somebody else ended their stream.
        public var overtaken: Int
        /// From the last call of a round until everyone had what it asked for.
        public var longestSettling: TimeInterval
        /// From the capture of a frame until a viewer showed it.
        public var oldestFrame: TimeInterval
        /// The frames that all viewers showed.
        public var framesShown: Int
        /// Equal for runs that delivered the same packets.
        public var digest: UInt64
    }

    /// Runs the room with a seed.
    ///
    /// - Throws: the first broken promise, with the calls before it.
    public func run(seed: UInt64) throws(SimulationFailure) -> Outcome {
        precondition(
            clients >= 2 && rounds >= 1 && loops >= 1 && watched >= 1 && !links.isEmpty,
            "a room needs two clients, a round, a loop, a link and a video to watch")
        let simulation = World(seed: seed, encryption: .checked, loops: loops, spreadsRooms: loops > 1)
        defer { simulation.end() }
        let deliveries = DeliveryCheck()
        simulation.deliveries = deliveries
        let applications = CallingApplications(self, seed: seed, deliveries, in: simulation)
        simulation.task("calls") { try await applications.run() }
        var report = try simulation.run(for: .seconds(1))
        while !applications.hasEnded {
            // A call that never returns does not settle.
            guard simulation.time < .seconds(Int64(rounds + 2) * 30) else {
                throw SimulationFailure(
                    seed: seed, time: simulation.time, problem: "These calls do not return: \(applications.pending).")
            }
            report = try simulation.run(for: .seconds(1))
        }
        return Outcome(
            calls: applications.made, overtaken: applications.overtaken, longestSettling: applications.longestSettling,
            oldestFrame: deliveries.oldestFrame, framesShown: report.viewers.reduce(0) { $0 + $1.shown },
            digest: report.digest)
    }
}

/// The application of one client, and what it wants.
// @unchecked: the tasks of a simulation run one at a time, on the thread that runs it.
final class CallingApplication: @unchecked Sendable {
    // Sendable by hand: used on the simulation's thread only.

    let client: SimulatedClient
    /// Whether it is in the room, or on its way there.
    var isInside = false
    /// When it last left the room. `.zero` before.
    var left = MonotonicTime.zero
    /// Whether a call runs that others of this client have to wait for.
    var isBusy = false
    /// Whether it has an up session.
    var hasPublished = false
    /// Of the streams that it publishes.
    var videos: [Int: StreamAttributes] = [:]
    var audios: [Int: StreamAttributes] = [:]
    /// Of the videos that it watches.
    var views: [Int: StreamView] = [:]
    /// When those last changed.
    var changes: [Int: MonotonicTime] = [:]

    init(_ client: SimulatedClient) { self.client = client }

    var published: [Int: StreamAttributes] { videos.merging(audios) { video, _ in video } }

    /// The stream with simulcast, which ends when the client leaves.
    var layered: Int? { videos.keys.first { client.simulation.camera(of: $0) != nil } }

    /// The best layer that a view allows.
    static func bestLayer(_ view: StreamView) -> Int {
        switch view.profile {
        case .low: 0
        case .mid: 1
        case .high, nil: 2
        }
    }
}
