internal import ConnectLiveSDK
internal import RoomClient
internal import Synchronization

/// Publishes media in a room until its task is cancelled, and joins again after each end of the connection.
///
/// The devices stay open between two stays. Only a failure of the media itself opens them again.
final class LastingPublication: Sendable {
    let roomName: String
    let server: ServerFlags
    let config: Config
    let choice: OpenSettings?
    let isRecorded: Bool
    let lasting: LastingStay
    private let latest = Mutex(RoomStatistics())

    init(
        roomName: String, server: ServerFlags, config: Config, choice: OpenSettings?, isRecorded: Bool,
        manager: ServiceManager?
    ) {
        (self.roomName, self.server, self.config, self.choice) = (roomName, server, config, choice)
        self.isRecorded = isRecorded
        lasting = LastingStay(manager)
    }

    /// The statistics of the last stay.
    var lastStatistics: RoomStatistics { latest.withLock { $0 } }

    /// Publishes media that has started, and stops it at the end. Returns why it does not join again.
    func run(_ started: any LocalMedia) async -> Failure? {
        var media: (any LocalMedia)? = started
        return await lasting.run {
            let running = if let media { media } else { try await LocalSource.start(config, adaptingTo: choice) }
            media = running
            do {
                try await server.signIn()
                try await stay(with: running)
            } catch let failure as MediaFailure {
                await running.stop()
                media = nil
                throw failure
            }
        } finish: {
            await media?.stop()
        }
    }

    /// Returns at the end of the room or of the task. Throws the cause if it was an error.
    private func stay(with media: any LocalMedia) async throws {
        let guest = Guest(
            .unlimited, endsOnProblem: true,
            onConnected: { [roomName, lasting] participant in
                lasting.hasEntered()
                Attendance.begin("publish", in: roomName, as: participant)
            }, say: { [lasting] in lasting.note($0) })
        let room = ConnectLive.createRoom(config: config, delegate: guest)
        guest.enter(room, named: roomName)
        try room.publish(media, isRecorded)
        let end = await Result {
            try await lasting.present(
                in: room,
                news: RoomNews(outgoing: { await room.statistics() }, layers: config.mediaOptions.videoLayers),
                status: { StatusLine.publishing(await room.statistics(), media.video.state) },
                {
                    do {
                        try await guest.stay(in: room)
                    } catch  where !guest.isRoomOver {
                        throw MediaFailure(description: "\(error)")
                    }
                })
        }
        let statistics = await room.statistics()
        latest.withLock { $0 = statistics }
        try end.get()
    }
}

/// The media failed, while the connection to the room continued.
private struct MediaFailure: Error, CustomStringConvertible {
    let description: String
}
