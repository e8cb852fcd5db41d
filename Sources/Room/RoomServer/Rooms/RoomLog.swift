internal import Logging
internal import ServerCore

/// Writes the lines of a loop's rooms, with the reason for which a participant leaves. On the loop only.
final class RoomLog {
    private let log: LogQueue
    /// For the participants that leave during the present call. By itself, a room ends them only when a session ends.
    private var reason = "media lost"

    init(_ log: LogQueue) { self.log = log }

    /// Calls `work`, in which participants leave for this reason.
    func leaving(_ reason: String, _ work: () -> Void) {
        let outer = self.reason
        self.reason = reason
        work()
        self.reason = outer
    }

    func write(_ note: Rooms.Note) {
        var note = note
        let needsReason = note.text == "left" || note.text == "connection lost"
        if needsReason, note.details["reason"] == nil { note.details["reason"] = reason }
        log.write(note)
    }
}
