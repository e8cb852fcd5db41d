internal import ConnectLiveSDK
internal import RoomClient
internal import Synchronization

/// Shows the videos of a room until its task is cancelled, and joins again after each end of the connection. The window
/// stays open between two stays.
final class LastingView: Sendable {
    private let roomName: String
    private let participant: String?
    private let server: ServerFlags
    private let config: Config
    private let screen: Screen
    let lasting: LastingStay
    private let latest = Mutex(RoomStatistics())

    init(
        roomName: String, participant: String?, server: ServerFlags, config: Config, screen: Screen,
        manager: ServiceManager?
    ) {
        (self.roomName, self.participant, self.server, self.screen) = (roomName, participant, server, screen)
        self.config = config
        lasting = LastingStay(manager)
    }

    /// The statistics of the last stay.
    var lastStatistics: RoomStatistics { latest.withLock { $0 } }

    /// Returns why it does not join again.
    func run() async -> Failure? {
        await lasting.run {
            try await server.signIn()
            try await stay()
        } finish: {
        }
    }

    /// Returns at the end of the room or of the task. Throws the cause if it was an error.
    private func stay() async throws {
        let audience = Audience(
            screen: screen, only: participant, .unlimited,
            onConnected: { [roomName, lasting] participant in
                lasting.hasEntered()
                Attendance.begin("view", in: roomName, as: participant)
            }, say: { [lasting] in lasting.note($0) })
        let room = ConnectLive.createRoom(config: config, delegate: audience.guest)
        audience.enter(room, named: roomName)
        let result = await Result {
            try await lasting.present(
                in: room, news: RoomNews(incoming: { await room.statistics() }),
                status: { StatusLine.viewing(await room.statistics()) }
            ) {
                try await audience.stay()
            }
        }
        latest.withLock { $0 = audience.lastStatistics }
        audience.clear()
        try result.get()
    }
}
