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

    /// Media that flows again this soon after the return of the server gets no sentence.
    private static let soon = 2.0

    private let timeout: Timeout
    private var isLost = false
    /// When media ceased to flow, and its direction. Nil while it flows.
    private var stopped: (at: ContinuousClock.Instant, isOutgoing: Bool, relay: String?)?
    /// When the server was lost. Nil while it is there.
    private var lostAt: ContinuousClock.Instant?
    /// When the server was back, in an interruption that lasts.
    private var backAt: ContinuousClock.Instant?

    package init(_ timeout: Timeout) { self.timeout = timeout }

    /// An attempt to return begins. Nil if the loss is known.
    package mutating func lost(because cause: String, now: ContinuousClock.Instant = .now) -> String? {
        guard !isLost else { return nil }
        isLost = true
        lostAt = now
        // The client does what the cause advises.
        let sentences = cause.replacing(#/\s?(Connect|Join the room) again[^.]*\./#, with: "")
        return "The connection to the server is lost; trying again \(timeout)."
            + (sentences.isEmpty ? "" : " (\(sentences))")
    }

    /// If media ceased to flow before that, the time is since then: an outage has one clock.
    package mutating func back(
        after seconds: Double, wasResumed: Bool, now: ContinuousClock.Instant = .now
    ) -> String {
        isLost = false
        lostAt = nil
        var seconds = seconds
        if let stopped {
            seconds = max(seconds, (now - stopped.at) / .seconds(1))
            backAt = now
            // The media of another participant begins.
            if !wasResumed { (self.stopped, backAt) = (nil, nil) }
        }
        return "Back after \(Self.tenths(seconds)) s\(wasResumed ? "" : ", as another participant")."
    }

    package mutating func interrupted(
        isOutgoing: Bool, seconds: Double, relay: String? = nil, now: ContinuousClock.Instant = .now
    ) -> String {
        stopped = (now - .seconds(seconds), isOutgoing, relay)
        backAt = nil
        let way = relay.map { " through the TURN server \($0)" } ?? ""
        return "\(Self.words(isOutgoing))\(way) for \(Int(seconds.rounded())) s; trying again."
    }

    /// Nil directly after the server was back, which tells it.
    package mutating func restored(after seconds: Double, now: ContinuousClock.Instant = .now) -> String? {
        defer { (stopped, backAt) = (nil, nil) }
        if let backAt, (now - backAt) / .seconds(1) < Self.soon { return nil }
        return "Media flows again after \(Self.tenths(seconds)) s."
    }

    /// Why nothing flows at present, and for how long. Nil if media flows.
    package func outage(now: ContinuousClock.Instant = .now) -> String? {
        func seconds(since time: ContinuousClock.Instant) -> String {
            "\(Int(((now - time) / .seconds(1)).rounded())) s"
        }
        if let lostAt { return "the server has been lost for \(seconds(since: lostAt))" }
        guard let stopped else { return nil }
        let way = stopped.relay.map { " through the TURN server \($0)" } ?? ""
        let words = Self.words(stopped.isOutgoing)
        return "\(words.prefix(1).lowercased())\(words.dropFirst())\(way) for \(seconds(since: stopped.at))"
    }

    private static func words(_ isOutgoing: Bool) -> String {
        isOutgoing ? "Nothing has reached the room" : "Nothing has arrived from the room"
    }

    /// The sentence about an event of a room. Nil for other events, and for a loss that is known.
    package mutating func sentence(about event: RoomEvent) -> String? {
        switch event {
        case .reconnecting(_, let error): lost(because: error.message)
        case .reconnected(let back): self.back(after: back.seconds, wasResumed: back.kind == .resumed)
        case .mediaInterrupted(let isOutgoing, let seconds, let relay):
            interrupted(isOutgoing: isOutgoing, seconds: seconds, relay: relay)
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
