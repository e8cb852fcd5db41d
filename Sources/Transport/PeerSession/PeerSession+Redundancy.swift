public import RTP

// Copies of audio packets in later ones (RED, RFC 2198).
extension PeerSession {
    /// Sets the payload types of RED that the peer accepts for the sender, by those of the stream.
    ///
    /// While the peer reports losses, each packet carries copies of up to two packets before it. It carries none while a queue
    /// on the path shows that the path carries no more.
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

    /// Follows the peer's reports.
    func chooseCopies() {
        let isQueueing = control?.isQueueing ?? false
        for case let sender? in streams.senders where sender.hasNewReport {
            sender.chooseCopies(isQueueing: isQueueing)
        }
    }
}
