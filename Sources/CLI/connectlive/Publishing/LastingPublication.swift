internal import ConnectLiveSDK
internal import Foundation
internal import RoomClient
internal import Synchronization

/// Publishes media in a room until its task is cancelled, and joins again after each end of the connection.
///
/// The devices stay open between two stays. Only a failure of the media itself opens them again.
final class LastingPublication: Sendable {
    private static let statusInterval = Duration.seconds(5)

    let roomName: String
    let server: ServerFlags
    let config: Config
    let choice: OpenSettings?
    let manager: ServiceManager?
    /// The room of the present stay.
    let present = Mutex<(any Room)?>(nil)

    init(roomName: String, server: ServerFlags, config: Config, choice: OpenSettings?, manager: ServiceManager?) {
        (self.roomName, self.server, self.config, self.choice, self.manager) = (
            roomName, server, config, choice, manager
        )
    }

    /// Publishes media that has started, and stops it at the end.
    func run(_ started: any LocalMedia) async {
        await manager?.ready()
        let signsOfLife = Task { await giveSignsOfLife() }
        defer { signsOfLife.cancel() }
        var media: (any LocalMedia)? = started
        var delay = RejoinDelay()
        var random = SystemRandomNumberGenerator()
        while !Task.isCancelled {
            let begin = ContinuousClock.now
            var problem = "The room ended."
            do {
                let running = if let media { media } else { try await LocalSource.start(config, adaptingTo: choice) }
                media = running
                try await server.signIn()
                try await stay(with: running)
            } catch let failure as MediaFailure {
                problem = failure.description
                await media?.stop()
                media = nil
            } catch {
                problem = "\(error)"
            }
            guard !Task.isCancelled else { break }
            let pause = delay.after(stay: .now - begin, using: &random)
            await say(
                "\(problem) The next attempt is in \(pause.formatted(.units(allowed: [.seconds], width: .narrow))).")
            try? await Task.sleep(for: pause)
        }
        await manager?.stopping()
        await media?.stop()
    }

    /// Returns at the end of the room or of the task. Throws the cause if it was an error.
    private func stay(with media: any LocalMedia) async throws {
        let guest = Guest(endsOnProblem: true) { [roomName] in Console.line("Connected to the room \(roomName).") }
        let room = ConnectLive.createRoom(config: config, delegate: guest)
        room.connect(roomId: roomName)
        try room.publish(media)
        present.withLock { $0 = room }
        let status = Task { await report(room, media) }
        defer {
            status.cancel()
            present.withLock { $0 = nil }
        }
        let result = await Result { try await guest.untilEnded() }
        if room.status != .disconnected {
            room.disconnect()
            // A cancelled task would not wait.
            await Task { try? await guest.untilEnded() }.value
        }
        do {
            try result.get()
        } catch  where !guest.isRoomOver {
            throw MediaFailure(description: "\(error)")
        }
    }

    private func report(_ room: any Room, _ media: any LocalMedia) async {
        if Console.isTerminal {
            return await StatusLine.run { StatusLine.publishing(await room.statistics(), media.video.state) }
        }
        guard let manager else { return }
        while (try? await Task.sleep(for: Self.statusInterval)) != nil {
            await manager.status(StatusLine.publishing(await room.statistics(), media.video.state))
        }
    }

    /// Notifies the service manager until the task is cancelled, and not while the thread of all transport hangs.
    func giveSignsOfLife() async {
        guard let manager, let watchdog = manager.watchdog else { return }
        repeat {
            // The response comes from the thread of all transport.
            _ = await present.withLock { $0 }?.statistics()
            await manager.isAlive()
        } while (try? await Task.sleep(for: watchdog / 2)) != nil
    }

    private func say(_ text: String) async {
        Console.error(text)
        await manager?.status(text)
    }
}

/// The media failed, while the connection to the room continued.
private struct MediaFailure: Error, CustomStringConvertible {
    let description: String
}
