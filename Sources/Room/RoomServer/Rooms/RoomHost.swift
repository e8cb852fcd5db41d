internal import Logging
internal import NIOWebSocket
internal import PeerIO
internal import PeerLoop
internal import RTP
internal import RoomProtocol
internal import ServerCore

/// The rooms of one event loop, as other threads reach them. An actor pinned to the loop: messages arrive from NIO's
/// threads through the loop's queue, in order.
actor RoomHost {
    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    private typealias Record = (RecordedStream) throws(RoomError) -> any RecordingSink
    private let makeRooms: @Sendable (EventLoop, LoopLinks, Record?, RoomLog) -> Rooms
    private lazy var rooms = makeRooms(loop, links, record, log)
    private let recorder: (any StreamRecorder)?
    private let log: RoomLog
    private let port: LoopBound<MediaPort>?
    private let place: Int
    private let seats: Seats
    /// Of all loops, by place.
    private var hosts: [RoomHost] = []

    /// - Parameters:
    ///   - place: of the loop among those of the seats.
    ///   - port: of all media of the loop. Nil gives each session an ICE agent and sockets of its own.
    ///   - recorder: records streams. Nil if the server records nothing.
    ///   - makeSettings: called on the loop.
    init(
        loop: EventLoop, place: Int = 0, seats: Seats, log: LogQueue, numbers: StreamNumbers,
        port: LoopBound<MediaPort>? = nil, recorder: (any StreamRecorder)? = nil,
        makeSettings: @escaping @Sendable (EventLoop) -> SessionSettings
    ) {
        self.loop = loop
        self.place = place
        self.seats = seats
        self.port = port
        self.log = RoomLog(log)
        self.recorder = recorder
        makeRooms = { loop, links, record, log in
            Rooms(settings: makeSettings(loop), numbers: numbers, links: links, record: record) { log.write($0) }
        }
    }

    /// Lets rooms spread over these hosts, in the order of their places. Call before the first participant joins.
    func connect(to hosts: [RoomHost]) { self.hosts = hosts }

    /// Sends all participants the STUN and TURN servers again and again, with new credentials.
    func renewICEServers(eachSeconds seconds: Int) {
        loop.schedule(after: .seconds(Int64(seconds))) { [weak self] in
            guard let self else { return }
            assumeIsolated { host in
                host.rooms.renewICEServers()
                host.renewICEServers(eachSeconds: seconds)
            }
        }
    }

    private var links: LoopLinks {
        LoopLinks(
            place: place, others: { [seats] in seats.loops(of: $0) },
            send: { [unowned self] batch, loop in
                // While the server stops, a batch may be left over.
                hosts.isEmpty || hosts[loop].receive(batch)
            })
    }

    // MARK: - Recordings

    /// Begins the recording of a stream of this loop. Nil if the server records nothing.
    private var record: Record? {
        guard let recorder else { return nil }
        return { [weak self] stream throws(RoomError) in
            guard Descriptors.areLeft(besides: Descriptors.sessionReserve) else {
                throw RoomError(
                    .recordingUnavailable,
                    "The server has no free file descriptors for a recording. The streams go on without one.")
            }
            return try recorder.begin(stream) { [weak self] error in self?.recordingFailed(stream, error) }
        }
    }

    private nonisolated func recordingFailed(_ stream: RecordedStream, _ error: RoomError) {
        // An actor's job is always accepted.
        if !loop.execute({ self.assumeIsolated { $0.rooms.recordingFailed(stream, error) } }) {
            Task { await self.tellFailure(of: stream, error) }
        }
    }

    private func tellFailure(of stream: RecordedStream, _ error: RoomError) { rooms.recordingFailed(stream, error) }

    // MARK: - From other loops

    /// Returns false if the loop accepts nothing now.
    private nonisolated func receive(_ batch: PipeBatch) -> Bool {
        loop.execute { self.assumeIsolated { $0.rooms.receive(batch) } }
    }

    // MARK: - From NIO's threads

    /// - Parameters:
    ///   - seat: of a `join` alone, with the seats that count it.
    ///   - removal: of a `resume` alone: why an administrator removed the participant, also while the request waited.
    nonisolated func received(
        _ request: ClientRequest, from connection: SignallingConnection, seat: (Seat, of: Seats)? = nil,
        removal: @escaping @Sendable () -> Closing? = { nil }
    ) {
        let isTaken = loop.execute {
            let admission = seat.map { seat, seats in
                var participant: String?
                return Admission(
                    room: seat.room, mayRecord: seat.pageToken == nil,
                    begin: { id in
                        participant = id
                        seats.occupy(seat, by: id)
                    }, end: { seats.free(seat, of: participant) })
            }
            if let closing = removal() {
                connection.close(closing)
            } else {
                self.assumeIsolated { $0.handle(request, from: connection, admission) }
            }
            connection.endHandling(hasResponse: request.hasResponse)
        }
        guard !isTaken else { return }
        // A message that cannot be queued must not be lost silently, so the connection ends.
        if let (seat, seats) = seat { seats.free(seat) }
        connection.end(.unexpectedServerError)
    }

    /// - Parameter lost: when the client was last heard, if it may resume.
    nonisolated func disconnected(_ connection: SignallingConnection, lost: MonotonicTime?) {
        // Never lost, however long the loop's queue is: an actor's job is always accepted, and runs after the queued
        // ones.
        if !loop.execute({ self.assumeIsolated { $0.remove(connection, lost) } }) {
            Task { await self.remove(connection, lost) }
        }
    }

    nonisolated func findLastMedia(
        from connection: SignallingConnection, then: @escaping @Sendable (MonotonicTime) -> Void
    ) {
        loop.execute { self.assumeIsolated { then($0.rooms.lastMedia(from: connection)) } }
    }

    nonisolated func revoked(_ token: String) {
        if !loop.execute({ self.assumeIsolated { $0.revoke(token) } }) { Task { await self.revoke(token) } }
    }

    var busiestTurn: TurnCounts { loop.busiest }

    /// The sessions and the pairs of addresses of the port. Nil if each session has an ICE agent.
    var portCounts: (sessions: Int, pairs: Int)? { port.map { ($0.value.sessionCount, $0.value.pairCount) } }

    var statistics: ServerStatistics.Loop {
        ServerStatistics.Loop(rooms.counts, layers: rooms.layers, loop: loop, port: port?.value.statistics)
    }

    var list: [RoomList.Room] { rooms.list }

    /// Ends the participants of a room that are on this loop, or one of them, for the administrator.
    ///
    /// - Parameter onRemoval: called for each before it is told
    func end(
        _ room: RoomName, only participant: String?, _ closing: Closing, onRemoval: @Sendable (String) -> Void
    ) {
        log.leaving("removed") { rooms.end(room, only: participant, closing, onRemoval: onRemoval) }
    }

    /// Ends every participant with a reason, because the server stops. Later ones are refused.
    func close() { log.leaving("server stopped") { rooms.close() } }

    /// Closes the port of all media, in a later turn than `close()`. Every session must have ended.
    func closePort() {
        port?.value.close()
        hosts = []
    }

    private func handle(_ request: ClientRequest, from connection: SignallingConnection, _ admission: Admission?) {
        guard case .leave = request.message else { return rooms.handle(request, from: connection, admission) }
        log.leaving("leave") { rooms.handle(request, from: connection, admission) }
    }

    private func remove(_ connection: SignallingConnection, _ lost: MonotonicTime?) {
        log.leaving(connection.endCause ?? "connection closed") { rooms.disconnected(connection, lost: lost) }
    }

    private func revoke(_ token: String) { log.leaving("signed out") { rooms.revoke(token) } }
}

extension LogQueue {
    func write(_ note: Rooms.Note) {
        var metadata: Logger.Metadata = note.details.mapValues { "\($0)" }
        metadata["room"] = "\(note.room)"
        metadata["participant"] = "\(note.participant)"
        write("\(note.text)", metadata, level: note.isWarning ? .warning : .info)
    }
}
