internal import PeerLoop
internal import RTP

/// Finds packets that the server sends to a client that does not want their stream, and frames that are shown late.
///
/// On the simulation's thread.
final class DeliveryCheck {
    struct Delivery: Hashable {
        /// The number of the client.
        var client: Int
        var stream: Int
    }

    /// How long packets may go on after a call: until the message has arrived, and those on the way are sent.
    static let grace = TimeInterval.milliseconds(300)
    /// The server repeats the last keyframe while it is less than a second old, and a viewer waits for lost packets.
    private static let oldest = TimeInterval.milliseconds(2500)

    private var streams: [UInt32: Int] = [:]
    /// Until when a stream may be sent. `.never` while the client wants it.
    private var ends: [Delivery: MonotonicTime] = [:]
    private(set) var oldestFrame = TimeInterval.zero

    func published(_ stream: Int, by sources: [UInt32]) {
        for source in sources { streams[source] = stream }
    }

    /// These deliveries are wanted from now on, and no others.
    ///
    /// - Parameter ending: those that the server may begin because it does not know yet that their client has left or their
    ///   stream has ended, each with its last time
    func want(_ wanted: Set<Delivery>, ending: [Delivery: MonotonicTime], now: MonotonicTime) {
        for delivery in ends.keys where !wanted.contains(delivery) {
            ends[delivery] = min(ends[delivery] ?? now, now + Self.grace)
        }
        for delivery in wanted { ends[delivery] = .never }
        for (delivery, end) in ending { ends[delivery] = max(ends[delivery] ?? end, end) }
    }

    /// A sentence about a datagram of the server that its client does not want. Nil without one.
    func problem(with contents: Contents, for client: SimulatedClient, now: MonotonicTime) -> String? {
        guard case .media(let media) = contents, let source = media.source, let stream = streams[source] else {
            return nil
        }
        let delivery = Delivery(client: client.number, stream: stream)
        let end = ends[delivery] ?? .zero
        guard end != .never, end < now else { return nil }
        return
            "The server sends stream \(stream) to \(client.name), which ended it more than \(Self.grace.milliseconds) ms before"
            + (media.isRepair ? ", as a repair." : ".")
    }

    /// Likewise, about a frame that is shown.
    func problem(withFrameOf age: TimeInterval, of viewer: VideoViewer) -> String? {
        oldestFrame = max(oldestFrame, age)
        guard age > Self.oldest else { return nil }
        return
            "\(viewer.client.name) shows a frame of stream \(viewer.stream) that is \(age.milliseconds) ms old."
    }
}
