package import ClientCore
internal import RoomProtocol

/// The sentences about a connection that is lost and comes back, of commands and of nodes.
///
/// There is one sentence for a loss, not one for each attempt.
package struct ConnectionNews: Sendable {
    /// For how long a client tries to return.
    package enum Timeout: Sendable {
        case seconds(Int)
        /// It joins again whenever it gives up.
        case unlimited
    }

    private let timeout: Timeout
    private var isLost = false

    package init(_ timeout: Timeout) { self.timeout = timeout }

    /// An attempt to return begins. Nil if the loss is known.
    package mutating func lost(because cause: String) -> String? {
        guard !isLost else { return nil }
        isLost = true
        // The client does what the cause advises.
        let sentences = cause.replacing(#/\s?(Connect|Join the room) again[^.]*\./#, with: "")
        return "The connection to the server is lost; trying again \(timeout)."
            + (sentences.isEmpty ? "" : " (\(sentences))")
    }

    package mutating func back(after seconds: Double, wasResumed: Bool) -> String {
        isLost = false
        return "Back after \(Self.tenths(seconds)) s\(wasResumed ? "" : ", as another participant")."
    }

    package func interrupted(isOutgoing: Bool, seconds: Double) -> String {
        let time = Int(seconds.rounded())
        return isOutgoing
            ? "Nothing has reached the room for \(time) s; trying again."
            : "Nothing has arrived from the room for \(time) s; trying again."
    }

    package func restored(after seconds: Double) -> String { "Media flows again after \(Self.tenths(seconds)) s." }

    /// The sentence about an event of a room. Nil for other events, and for a loss that is known.
    package mutating func sentence(about event: RoomEvent) -> String? {
        switch event {
        case .reconnecting(_, let error): lost(because: error.message)
        case .reconnected(let back): self.back(after: back.seconds, wasResumed: back.kind == .resumed)
        case .mediaInterrupted(let isOutgoing, let seconds): interrupted(isOutgoing: isOutgoing, seconds: seconds)
        case .mediaRestored(let seconds): restored(after: seconds)
        default: nil
        }
    }

    private static func tenths(_ seconds: Double) -> String { "\((seconds * 10).rounded() / 10)" }
}

extension ConnectionNews.Timeout: CustomStringConvertible {
    package var description: String {
        switch self {
        case .seconds(let seconds): "for \(seconds) s"
        case .unlimited: "until it is back"
        }
    }
}
