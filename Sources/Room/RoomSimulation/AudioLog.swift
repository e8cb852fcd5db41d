internal import PeerLoop
package import RTP
internal import RoomProtocol

/// When the packets of an audio were sent, and how they reached a listener: for tables of repair.
///
/// On the simulation's thread.
package final class AudioLog {
    /// The packets of a span of time.
    package struct Outcome: Sendable {
        /// For each packet in order, whether its own datagram arrived.
        package var arrivals: [Bool] = []
        /// Packets that the listener had not got, by themselves or by copies, within the wait of a receiver.
        package var missing = 0
        /// Of these, those of which the next packet has no coarse copy either (in-band FEC), because it is missing too.
        package var missingDespiteFEC = 0
        /// Of the datagrams to the listener, with all headers.
        package var bytes = 0
        /// Of the copies in them.
        package var copiedBytes = 0
    }

    /// How long a receiver waits for a packet of audio.
    package static let wait = TimeInterval.milliseconds(60)

    private var sent: [UInt32: MonotonicTime] = [:]
    private var arrived: [UInt32: MonotonicTime] = [:]
    private var direct: Set<UInt32> = []
    /// The datagrams to the listener, lost ones included.
    private var datagrams: [(at: MonotonicTime, bytes: Int, copied: Int)] = []

    func sent(_ number: UInt32, at time: MonotonicTime) { sent[number] = time }

    func arrived(_ number: UInt32, at time: MonotonicTime) { arrived[number] = time }

    /// A datagram to the listener.
    func passed(_ datagram: Span<UInt8>, isLost: Bool, at time: MonotonicTime) {
        guard case .media = Contents(of: datagram) else { return }
        let payload = datagram.extracting(Contents.payloadStart(of: datagram)..<datagram.count)
        var start = 0
        if datagram[1] & 0x7f == Codec.opus.redundancyPayloadType {
            guard let own = Contents.ownStart(ofRedundant: payload) else { return }
            start = own
        }
        datagrams.append((time, datagram.count + 28, start))
        let own = payload.extracting(start..<payload.count)
        if !isLost, let number = AudioSource.contents(of: own)?.number { direct.insert(number) }
    }

    /// The outcome for packets that were sent in a span of time, which ends at least a second ago.
    package func outcome(from start: MonotonicTime, to end: MonotonicTime) -> Outcome {
        var outcome = Outcome()
        let numbers = sent.filter { $0.value >= start && $0.value < end }.map(\.key).sorted()
        let delays = numbers.map { number in arrived[number].flatMap { time in sent[number].map { time - $0 } } }
        let shortest = delays.compactMap(\.self).min() ?? .zero
        outcome.arrivals = numbers.map { direct.contains($0) }
        let isMissing = delays.map { $0.map { $0 - shortest > Self.wait } ?? true }
        outcome.missing = isMissing.count { $0 }
        outcome.missingDespiteFEC = isMissing.indices.count {
            isMissing[$0] && ($0 + 1 == isMissing.count || isMissing[$0 + 1])
        }
        for datagram in datagrams where datagram.at >= start && datagram.at < end {
            outcome.bytes += datagram.bytes
            outcome.copiedBytes += datagram.copied
        }
        return outcome
    }
}
