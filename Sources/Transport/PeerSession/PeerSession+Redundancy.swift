public import RTP

// Copies of audio packets in later ones (RED, RFC 2198).
extension PeerSession {
    /// Sets the payload types of RED that the peer accepts for the sender, by those of the stream.
    ///
    /// While the peer reports losses, each packet carries copies of up to two packets before it, and of one without
    /// transport-wide feedback. It carries none while a queue shows that the path carries no more, and for three seconds after.
    public func setRedundancy(_ payloadTypes: [UInt8: UInt8], of id: SenderID) {
        streams.sender(id)?.redundancyTypes = payloadTypes
    }

    /// The next packet that was missing and of which the packet before had a copy, as `receive` returns it. Call it after each
    /// packet of `receive`, until it returns nil.
    @inline(__always)
    public func receiveCopy(into packet: inout PacketBuffer, now: MonotonicTime) -> Received? {
        guard streams.hasRecovered, phase == .secured else { return nil }
        return streams.takeRecovered(&packet, now: now)
    }

    /// Copies return so long after the last queue.
    private static let queueMemory = TimeInterval.seconds(3)

    /// Follows the peer's reports. Ends copies as soon as there is a queue.
    func chooseCopies(now: MonotonicTime) {
        if let control, control.isQueueing { queuedAt = now }
        let isQueueing = queuedAt.map { now - $0 < Self.queueMemory } ?? false
        // Without transport-wide feedback, nobody knows of the queue that copies may fill. REMB reports none.
        let most = isQueueing ? 0 : lastReport == nil ? 1 : 2
        for case let sender? in streams.senders where sender.hasNewReport || most < mostCopies {
            sender.chooseCopies(most: most)
        }
        mostCopies = most
    }
}
