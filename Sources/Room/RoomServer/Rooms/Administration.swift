internal import PeerIO
internal import RTP
internal import RoomProtocol
internal import Synchronization

/// The requests of an administrator: lists rooms and ends them. Callable on any thread.
struct Administration: Sendable {
    let hosts: [RoomHost]
    let removals: Removals

    /// All rooms, by name.
    func list() async -> RoomList {
        var rooms: [String: [RoomList.Participant]] = [:]
        for host in hosts {
            for room in await host.list { rooms[room.name, default: []] += room.participants }
        }
        return RoomList(
            rooms: rooms.sorted { $0.key < $1.key }.map { RoomList.Room(name: $0.key, participants: $0.value) })
    }

    /// Ends a room. Its clients do not return by themselves. Throws if nobody is in it.
    func destroy(_ room: RoomName) async throws(RoomError) -> Removal {
        let removed = await end(
            room, only: nil,
            Closing(reason: .destroyed, error: RoomError(.roomEnded, "The administrator ended the room.")))
        guard !removed.participants.isEmpty else {
            throw RoomError(.noSuchRoom, "The server has no room '\(room)'. 'connectlive rooms' lists its rooms.")
        }
        return removed
    }

    /// Removes a participant. Its client does not return by itself. Throws if it is not in the room.
    func kick(_ participant: String, from room: RoomName) async throws(RoomError) -> Removal {
        let removed = await end(
            room, only: participant,
            Closing(
                reason: .kicked,
                error: RoomError(.roomReleased, "The administrator removed this participant from the room.")))
        guard !removed.participants.isEmpty else {
            throw RoomError(
                .noSuchParticipant,
                "The room '\(room)' has no participant '\(participant.prefix(64))'. 'connectlive rooms' lists those that are "
                    + "there.")
        }
        return removed
    }

    private func end(_ room: RoomName, only participant: String?, _ closing: Closing) async -> Removal {
        let ids = Mutex<[String]>([])
        for host in hosts {
            await host.end(room, only: participant, closing) { id in
                removals.note(id, closing, now: EventLoop.now)
                ids.withLock { $0.append(id) }
            }
        }
        return Removal(participants: ids.withLock { $0 })
    }
}

/// The participants that an administrator removed, for clients whose connection was lost at that moment: they would
/// resume, or join again, because nobody told them. Callable on any thread.
final class Removals: Sendable {
    /// For how long a client is told.
    static let lifetime = TimeInterval.seconds(3600)
    private static let capacity = 10_000

    private let closings = Mutex<[String: (closing: Closing, end: MonotonicTime)]>([:])

    func note(_ participant: String, _ closing: Closing, now: MonotonicTime) {
        closings.withLock { closings in
            if closings.count >= Self.capacity { closings = closings.filter { $0.value.end > now } }
            if closings.count >= Self.capacity { closings = [:] }
            closings[participant] = (closing, now + Self.lifetime)
        }
    }

    /// Why the participant was removed. Nil if it was not.
    func closing(of participant: String, now: MonotonicTime) -> Closing? {
        closings.withLock { $0[participant].flatMap { $0.end > now ? $0.closing : nil } }
    }
}
