internal import ConnectLiveSDK
internal import Foundation

/// How long a command stays in its room.
enum Attendance {
    /// Returns after Ctrl-C, `seconds`, or the end of a guest's room, and leaves the first guest's room. Throws the
    /// cause if it was an error, and if no guest has come into its room within `seconds`.
    static func until(
        _ interruption: Interruption, seconds: Double?, _ guests: [Guest], leaving room: any Room,
        beforeLeaving: @Sendable () async -> Void = {}
    ) async throws {
        let result = await withTaskGroup(of: Result<Void, any Error>.self) { group in
            for guest in guests { group.addTask { await Result { try await guest.untilEnded() } } }
            group.addTask {
                let isTimeUp = await interruption.wait(seconds: seconds)
                guard isTimeUp, let seconds, !guests.contains(where: \.hasConnected) else { return .success(()) }
                return .failure(notEntered(within: seconds))
            }
            let first = await group.next() ?? .success(())
            group.cancelAll()
            return first
        }
        await beforeLeaving()
        if room.status != .disconnected {
            room.disconnect()
            try? await guests[0].untilEnded()
        }
        try result.get()
    }

    /// Prints that the room has accepted this participant, and names the program for `connectlive why`.
    static func begin(_ command: String, in room: String, as participant: String) {
        QualityChanges.shared.name("\(command) in the room \(room) as \(participant)")
        Console.line("Connected to the room \(room) as \(participant).")
    }

    /// A room that was not reached in the time of the command.
    static func notEntered(within seconds: Double) -> CommandFailure {
        CommandFailure(
            code: "room.not-entered",
            "The room was not entered within \(seconds.formatted()) s, the time of --seconds. Check the server and the network, "
                + "or allow more time.")
    }
}

extension Result where Failure == any Error {
    init(catching body: () async throws -> Success) async {
        do { self = .success(try await body()) } catch { self = .failure(error) }
    }
}
