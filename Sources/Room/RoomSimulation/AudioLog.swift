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

    /// The source and the client whose packets count. Nil for those of the only one.
    private let source: UInt32?
    private let listener: String?
    private var sent: [UInt32: MonotonicTime] = [:]
    private var arrived: [UInt32: MonotonicTime] = [:]
    private var direct: Set<UInt32> = []
    /// The datagrams to the listener, lost ones included.
    private var datagrams: [(at: MonotonicTime, bytes: Int, copied: Int)] = []

    init(of source: UInt32? = nil, to listener: String? = nil) { (self.source, self.listener) = (source, listener) }

    func sent(_ number: UInt32, of source: UInt32, at time: MonotonicTime) {
        if source == self.source ?? source { sent[number] = time }
    }

    func arrived(_ number: UInt32, of source: UInt32, at listener: String, at time: MonotonicTime) {
        if source == self.source ?? source, listener == self.listener ?? listener { arrived[number] = time }
    }

    /// A datagram to a client.
    func passed(_ datagram: Span<UInt8>, to client: String, isLost: Bool, at time: MonotonicTime) {
        guard client == listener ?? client, case .media = Contents(of: datagram) else { return }
        let payload = datagram.extracting(Contents.payloadStart(of: datagram)..<datagram.count)
        var start = 0
        if datagram[1] & 0x7f == Codec.opus.redundancyPayloadType {
            guard let own = Contents.ownStart(ofRedundant: payload) else { return }
            start = own
        }
        let own = payload.extracting(start..<payload.count)
        let contents = AudioSource.contents(of: own)
        if let source, contents?.source != source { return }
        datagrams.append((time, datagram.count + 28, start))
        if !isLost, let contents { direct.insert(contents.number) }
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
