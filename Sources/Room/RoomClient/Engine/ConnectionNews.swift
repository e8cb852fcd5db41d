package import ClientCore
internal import RoomProtocol

/// The sentences about a connection that is lost and comes back, of commands and of nodes. Nodes also tell its problems.
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
    /// The interruption of media, and when it began. Nil while media flows.
    private var stopped: (at: ContinuousClock.Instant, MediaInterruption)?
    /// When the server or all media was lost, and which. Nil while both are there.
    private var lostAt: (ContinuousClock.Instant, isMedia: Bool)?
    /// When the server was back, in an interruption that lasts.
    private var backAt: ContinuousClock.Instant?

    package init(_ timeout: Timeout) { self.timeout = timeout }

    /// An attempt to return begins. Nil if the loss is known.
    ///
    /// - Parameter isMedia: whether media alone is lost, so that the client joins again
    package mutating func lost(
        because cause: String, isMedia: Bool = false, now: ContinuousClock.Instant = .now
    ) -> String? {
        guard !isLost else { return nil }
        isLost = true
        lostAt = (now, isMedia)
        // The client does what the cause advises.
        let sentences = cause.replacing(#/\s?(Connect|Join the room) again[^.]*\./#, with: "")
        let loss =
            isMedia ? "Media is lost; joining the room again" : "The connection to the server is lost; trying again"
        return "\(loss) \(timeout)." + (sentences.isEmpty ? "" : " (\(sentences))")
    }

    /// The server is back. If media had ceased to flow before, the time is since then, because an outage has one clock.
    ///
    /// - Parameter participant: the new id of a client that has joined again. Nil if it goes on as before.
    package mutating func back(
        after seconds: Double, as participant: String? = nil, now: ContinuousClock.Instant = .now
    ) -> String {
        isLost = false
        lostAt = nil
        var (seconds, rest) = (seconds, "")
        if let stopped {
            seconds = max(seconds, (now - stopped.at) / .seconds(1))
            (backAt, rest) = (now, "; media follows")
        }
        let time = "after \(Self.tenths(seconds)) s"
        guard let participant else { return "The server is back \(time)\(rest)." }
        // The media of another participant begins.
        (stopped, backAt) = (nil, nil)
        return "Back in the room \(time), as another participant: \(participant)."
    }

    /// Nil while the server is known to be lost: media needs it.
    package mutating func interrupted(
        _ interruption: MediaInterruption, now: ContinuousClock.Instant = .now
    ) -> String? {
        stopped = (now - .seconds(interruption.seconds), interruption)
        backAt = nil
        guard !isLost else { return nil }
        let nothing = Self.words(interruption)
        let length = "for \(Int(interruption.seconds.rounded())) s"
        guard interruption.isServerThere else { return "\(nothing) \(length); trying again." }
        return "\(nothing) \(length), although the server answers. \(Self.attempt(interruption)), \(timeout)."
    }

    /// Nil directly after the server was back, which tells it.
    ///
    /// - Parameter way: that of media from now on
    package mutating func restored(
        after seconds: Double, way: RoomStatistics.Path? = nil, now: ContinuousClock.Instant = .now
    ) -> String? {
        defer { (stopped, backAt) = (nil, nil) }
        if let backAt, (now - backAt) / .seconds(1) < Self.soon { return nil }
        guard let stopped else { return "Media was interrupted for \(Self.tenths(seconds)) s." }
        let isOther = way != nil && way != stopped.1.way
        return "Media flows again after \(Self.tenths(seconds)) s\(isOther ? way.map { ", \($0)" } ?? "" : "")."
    }

    /// Why nothing flows at present, and for how long. Nil if media flows.
    package func outage(now: ContinuousClock.Instant = .now) -> String? {
        func seconds(since time: ContinuousClock.Instant) -> String {
            "\(Int(((now - time) / .seconds(1)).rounded())) s"
        }
        if let lostAt {
            return "\(lostAt.isMedia ? "media" : "the server") has been lost for \(seconds(since: lostAt.0))"
        }
        guard let stopped else { return nil }
        let words = Self.words(stopped.1)
        return "\(words.prefix(1).lowercased())\(words.dropFirst()) for \(seconds(since: stopped.at))"
    }

    private static func words(_ interruption: MediaInterruption) -> String {
        (interruption.isOutgoing ? "Nothing has reached the room" : "Nothing has arrived from the room")
            + (interruption.way.map { " \($0)" } ?? "")
    }

    /// Such as `Restarting ICE, directly and through the TURN server 192.0.2.1:3478`.
    private static func attempt(_ interruption: MediaInterruption) -> String {
        let servers = interruption.relays
        let plural = servers.count == 1 ? "" : "s"
        let through =
            servers.isEmpty ? nil : "through the TURN server\(plural) \(servers.joined(separator: " and "))"
        let ways = [interruption.isRelayed ? nil : "directly", through].compactMap(\.self)
        return "Restarting ICE, \(ways.joined(separator: " and "))"
    }

    /// The sentence about an event of a room. Nil for other events, and for a loss that is known.
    package mutating func sentence(about event: RoomEvent) -> String? {
        switch event {
        case .reconnecting(_, let error): lost(because: error.message, isMedia: error.code.isOfMediaConnection)
        case .reconnected(let back): self.back(after: back.seconds, as: back.kind.participant)
        case .mediaInterrupted(let interruption): interrupted(interruption)
        case .mediaRestored(let seconds, let way): restored(after: seconds, way: way)
        case .problem(let error): error.message
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
