internal import RoomProtocol
internal import Synchronization

/// A participant's place in a room, from its `join` until it leaves.
struct Seat: Sendable, Equatable {
    let room: RoomName
    /// The loop of the participant.
    let loop: Int
    /// The token of a page with which the participant joined.
    let pageToken: String?
}

/// The seats of all rooms, their limits, and the loops of each room.
///
/// A room is placed with its first seat, on the loop that has the fewest, and stays there until it has none. When a room has
/// `roomLoopSize` seats on each of its loops, it gets another loop. Callable on any thread; the lock is taken for joins and
/// leaves, and when a part of a room begins.
final class Seats: Sendable {
    /// The number of participants with one token of a page, which all visitors get on an open server. A page is one
    /// participant.
    static let perPageToken = 16

    private struct State {
        /// The seats of each room, by loop.
        var rooms: [RoomName: [Int: Int]] = [:]
        /// By loop.
        var taken: [Int]
        var ofPageToken: [String: Int] = [:]
        /// By the participant's id.
        var occupied: [String: Seat] = [:]
    }

    private let maximum: Int
    private let roomLoopSize: Int
    private let state: Mutex<State>

    init(loops: Int, maximum: Int, roomLoopSize: Int = .max) {
        self.maximum = maximum
        self.roomLoopSize = roomLoopSize
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
            let loop = place(of: state.rooms[room] ?? [:], state.taken)
            state.rooms[room, default: [:]][loop, default: 0] += 1
            state.taken[loop] += 1
            return Seat(room: room, loop: loop, pageToken: pageToken)
        }
    }

    /// The loop for the next seat of a room with these seats: the fullest one with room, or a further one, or the emptiest.
    private func place(of seats: [Int: Int], _ taken: [Int]) -> Int {
        let parts = seats.sorted { $0.key < $1.key }
        if let part = parts.filter({ $0.value < roomLoopSize }).max(by: { $0.value < $1.value }) { return part.key }
        let others = taken.indices.filter { seats[$0] == nil }
        if let other = others.min(by: { taken[$0] < taken[$1] }) { return other }
        return parts.min { $0.value < $1.value }?.key ?? 0
    }

    /// The loops on which a room has seats.
    func loops(of room: RoomName) -> [Int] { state.withLock { $0.rooms[room]?.keys.sorted() ?? [] } }

    /// The participant with this id has joined.
    func occupy(_ seat: Seat, by participant: String) { state.withLock { $0.occupied[participant] = seat } }

    /// The seat of a participant, which may have lost its connection. Nil if there is none with this id.
    func seat(of participant: String) -> Seat? { state.withLock { $0.occupied[participant] } }

    /// Ends a seat: the participant left, or could not join. Once for each.
    func free(_ seat: Seat, of participant: String? = nil) {
        state.withLock { state in
            if let participant { state.occupied[participant] = nil }
            state.taken[seat.loop] -= 1
            if let token = seat.pageToken, let used = state.ofPageToken[token] {
                state.ofPageToken[token] = used > 1 ? used - 1 : nil
            }
            guard let seats = state.rooms[seat.room]?[seat.loop] else { return }
            state.rooms[seat.room]?[seat.loop] = seats > 1 ? seats - 1 : nil
            if state.rooms[seat.room]?.isEmpty == true { state.rooms[seat.room] = nil }
        }
    }
}
