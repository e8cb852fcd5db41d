internal import RoomProtocol

/// Whether a stream shows its source.
public enum StreamState: Sendable, Hashable {
    /// The source delivers.
    case live
    /// The source delivers nothing, and a stand-in takes its place: the last frame, a slate or silence. `reason` is a few
    /// words of the publisher, such as "camera unplugged".
    case waiting(reason: String)

    init(_ state: RoomProtocol.StreamState) {
        switch state {
        case .live: self = .live
        case .waiting(let text): self = .waiting(reason: text)
        }
    }
}
