internal import PeerSession
internal import RTP
internal import RoomProtocol

/// One receiver of the pool. On the loop only.
final class ReceiverSlot {
    let receiver: Receiver
    let id: ReceiverID
    let codecs: [NegotiatedCodec]
    private(set) var assignment: Assignment?
    /// Packets of the next stream that arrived before the message that assigns it.
    private var held = HeldPackets()

    init(receiver: Receiver, id: ReceiverID, codecs: [NegotiatedCodec]) {
        self.receiver = receiver
        self.id = id
        self.codecs = codecs
    }

    func receive(_ packet: borrowing PacketBuffer, _ header: RTPHeader, at position: StreamPosition) {
        guard let assignment else { return held.hold(packet, header, at: position) }
        held.remember(packet, header, at: position)
        // A packet with another payload type belongs to the previous or the next stream.
        guard assignment.stream.payloadType == header.payloadType else { return }
        assignment.receive(packet.bytes.span.extracting(0..<packet.count))
    }

    /// Assigns a stream that begins at `first`. Packets that arrived before the message now go to it, even if the
    /// previous stream already got them. Returns false if its first packets were dropped because too many arrived.
    func begin(_ assignment: Assignment, at first: Int?) -> Bool {
        self.assignment = assignment
        assignment.begin()
        let isWhole = held.isWhole(from: first)
        for packet in held.take(from: first) where packet.payloadType == assignment.stream.payloadType {
            assignment.receive(packet.bytes.span)
        }
        return isWhole
    }

    func release() {
        assignment?.sink.end()
        assignment = nil
    }
}
