internal import RoomProtocol
internal import Synchronization

/// A participant's place in a room, from its `join` until it leaves.
struct Seat: Sendable, Equatable {
    let room: RoomName
    /// The loop of the room.
    let loop: Int
    /// The token of a page with which the participant joined.
    let pageToken: String?
}

/// The seats of all rooms, their limits, and the loop of each room.
///
/// A room is placed with its first seat, on the loop that has the fewest, and stays there until it has none. Callable on
/// any thread; the lock is taken for joins and leaves only.
final class Seats: Sendable {
    /// The number of participants with one token of a page, which all visitors get on an open server. A page is one
    /// participant.
    static let perPageToken = 16

    private struct State {
        var rooms: [RoomName: (loop: Int, seats: Int)] = [:]
        /// By loop.
        var taken: [Int]
        var ofPageToken: [String: Int] = [:]
    }

    private let maximum: Int
    private let state: Mutex<State>

    init(loops: Int, maximum: Int) {
        self.maximum = maximum
        state = Mutex(State(taken: Array(repeating: 0, count: loops)))
    }

    /// How many seats each loop has.
    var taken: [Int] { state.withLock { $0.taken } }

    /// Throws if the server is full, or if too many participants use the token.
    func reserve(in room: RoomName, pageToken: String? = nil) throws(RoomError) -> Seat {
        try state.withLock { state throws(RoomError) in
            let all = state.taken.reduce(0, +)
            guard all < maximum else {
                throw RoomError(.serverFull, "The server has \(all) participants, which is the limit. Try later.")
            }
            if let pageToken {
                let used = state.ofPageToken[pageToken] ?? 0
                guard used < Self.perPageToken else {
                    throw RoomError(
                        .tooManyRequests, "\(used) participants use this page's token: ask for another.")
                }
                state.ofPageToken[pageToken] = used + 1
            }
            let least = state.taken.indices.min { state.taken[$0] < state.taken[$1] } ?? 0
            let placed = state.rooms[room] ?? (loop: least, seats: 0)
            state.rooms[room] = (placed.loop, placed.seats + 1)
            state.taken[placed.loop] += 1
            return Seat(room: room, loop: placed.loop, pageToken: pageToken)
        }
    }

    /// Ends a seat: the participant left, or could not join. Once for each.
    func free(_ seat: Seat) {
        state.withLock { state in
            state.taken[seat.loop] -= 1
            if let token = seat.pageToken, let used = state.ofPageToken[token] {
                state.ofPageToken[token] = used > 1 ? used - 1 : nil
            }
            guard let placed = state.rooms[seat.room] else { return }
            state.rooms[seat.room] = placed.seats > 1 ? (placed.loop, placed.seats - 1) : nil
        }
    }
}
