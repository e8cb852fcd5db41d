/// The sentence for a participant that is awaited but not in the room.
package enum AbsentParticipant {
    /// Nil if the participant is present.
    package static func words(_ wanted: String, among present: [String]) -> String? {
        guard !present.contains(wanted) else { return nil }
        let others =
            switch present.count {
            case 0: "there is no other participant"
            case 1: "there is \(present[0])"
            default: "there are \(present.sorted().joined(separator: ", "))"
            }
        return "Participant \(wanted) is not in the room; \(others)."
    }
}
