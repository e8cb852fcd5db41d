internal import RTP
package import RoomProtocol

/// One part of a room: the participants on one loop.
package struct PartID: Hashable, Sendable {
    /// The place of its loop.
    package var loop: Int
    /// Unique among the parts of the loop.
    package var number: Int
}

/// Messages and packets from one part of a room to another, in order.
package struct PipeBatch: Sendable {
    struct Packet: Sendable {
        var layer: StreamLayerID
        var header: RTPHeader
        var position: StreamPosition
        /// In `bytes`.
        var length: Int
    }

    package let room: RoomName
    package let from: PartID
    /// Nil for the room's part on the loop, whichever it is.
    package let to: PartID?
    /// Each with the number of packets before it.
    private(set) var messages: [(after: Int, message: PipeMessage)] = []
    private(set) var packets: [Packet] = []
    /// The whole packets, decrypted, one after the other.
    private(set) var bytes: [UInt8] = []

    init(room: RoomName, from: PartID, to: PartID?, _ messages: [PipeMessage] = []) {
        self.room = room
        self.from = from
        self.to = to
        self.messages = messages.map { (0, $0) }
    }

    package var packetCount: Int { packets.count }
    package var byteCount: Int { bytes.count }
    /// The memory of a packet besides its own bytes, which include its header extension.
    static let packetOverhead = MemoryLayout<Packet>.stride
    /// The memory of its packets, in bytes.
    var size: Int { bytes.count + packets.count * Self.packetOverhead }
    var isEmpty: Bool { messages.isEmpty && packets.isEmpty }
    /// Whether its last message is `ended`.
    var isFarewell: Bool { if case .ended = messages.last?.message { true } else { false } }

    /// The message at this index. Nil if it follows the packet, or does not exist.
    func message(_ index: Int, before packet: Int) -> PipeMessage? {
        guard index < messages.count, messages[index].after <= packet else { return nil }
        return messages[index].message
    }

    mutating func append(_ message: PipeMessage) { messages.append((packets.count, message)) }

    /// Adds messages before everything else.
    mutating func prepend(_ first: [PipeMessage]) { messages.insert(contentsOf: first.map { (0, $0) }, at: 0) }

    mutating func append(
        _ packet: borrowing PacketBuffer, _ header: RTPHeader, at position: StreamPosition, of layer: StreamLayerID
    ) {
        packets.append(Packet(layer: layer, header: header, position: position, length: packet.count))
        bytes.append(contentsOf: packet.bytes[..<packet.count])
    }

    /// Keeps the messages only, without the clocks of interrupted layers, which continue with their present ones.
    mutating func dropPackets(ofInterrupted layers: [StreamLayerID]) {
        messages.removeAll { if case .clock(let layer, _) = $0.message { layers.contains(layer) } else { false } }
        packets.removeAll(keepingCapacity: true)
        bytes.removeAll(keepingCapacity: true)
        for index in messages.indices { messages[index].after = 0 }
    }

    /// An empty batch for the same part, with room for as much as this one has.
    var next: PipeBatch {
        var next = PipeBatch(room: room, from: from, to: to)
        next.packets.reserveCapacity(packets.count)
        next.bytes.reserveCapacity(bytes.count)
        return next
    }
}

/// A message from one part of a room to another.
enum PipeMessage: Sendable {
    /// Whether each participant of the receiver may get it.
    var concernsParticipants: Bool {
        switch self {
        case .speaking, .levels: false
        default: true
        }
    }

    /// The sender begins. The other parts of the room reply with an `introduction`.
    case began
    /// All participants of the sender: the first message to each part that it gets to know.
    case introduction([ParticipantInfo])
    case entered(ParticipantInfo)
    case left(String)
    case published(StreamInfo, by: String)
    case unpublished([Int], by: String)
    case changed(Int, StreamChange, by: String)
    /// Why its publisher sends a stream worse than it could. Nil if it does not any longer.
    case reduced(Int, StreamQuality.Reason?, by: String)
    /// How the streams of the sender stand out in which somebody speaks, for the part that decides who is heard.
    case speaking([SpeakerReport])
    /// Whether the packets of an audio stream of the sender have levels, when that has changed.
    case levels(Int, Bool)
    /// The streams that everyone hears, as the sender decides, which has the oldest audio stream.
    case speakers([Int])
    /// A participant of the sender writes to participants of the receiver: those with these ids, or all (nil).
    case userMessage(UserMessage, to: Set<String>?)
    /// The sender has a consumer for a layer of a stream of the receiver.
    case wanted(StreamLayerID)
    case unwanted(StreamLayerID)
    case keyframe(StreamLayerID)
    /// How much of a stream of the receiver the best link of the sender's consumers carries.
    case carried(Int, Carried)
    /// Packets of the layer are missing before the next one.
    case interrupted(StreamLayerID)
    case clock(StreamLayerID, SenderClock)
    /// The sender's measurement of a layer of its stream.
    case measured(StreamLayerID, LayerMeasurement)
    /// The sender has forwarded so many bytes of packets.
    case taken(Int)
    /// The last message: the sender has no participant any longer.
    case ended
}

/// The ways from one loop of a server to its other loops.
package struct LoopLinks {
    /// The place of this loop.
    package var place: Int
    /// The bytes of packets that may be on their way in one pipe. 4 MiB are more than a second of a room's busiest
    /// streams.
    package var window = 4 * 1024 * 1024
    /// The loops that other parts of a room may be on. Called when a part begins.
    package var others: (RoomName) -> [Int]
    /// Passes a batch to `Rooms.receive` of another loop, in order. Returns false if that loop accepts nothing now.
    package var send: (PipeBatch, _ loop: Int) -> Bool

    package init(
        place: Int, others: @escaping (RoomName) -> [Int], send: @escaping (PipeBatch, _ loop: Int) -> Bool
    ) {
        self.place = place
        self.others = others
        self.send = send
    }

    /// Of a loop whose rooms are whole.
    package static var none: LoopLinks { LoopLinks(place: 0, others: { _ in [] }, send: { _, _ in true }) }
}
