import PeerLoop
@testable import PeerSession
import RTP
import RoomProtocol
import Synchronization
import Testing

@testable import ClientCore

/// The first payload bytes of the packets that reached a stream's decoder.
private final class Decoder: IncomingSink, Sendable {
    private let taken = Mutex<[UInt8]>([])

    let backlog: Int?

    init(backlog: Int? = nil) { self.backlog = backlog }

    var numbers: [UInt8] { taken.withLock { $0 } }

    func begin(_ stream: ClientCore.IncomingStream) {}
    func receive(_ packet: Span<UInt8>) {
        let number = packet[RTPHeader.minimumLength]
        taken.withLock { $0.append(number) }
    }
    func end() {}
}

/// Media that arrives before the message that assigns its stream to a receiver.
@Suite struct ReceiverSlotTests {
    private static let codec = NegotiatedCodec(
        codec: .opus, payloadType: 111, retransmissionPayloadType: nil, parameters: "")

    private static func makeSlot() -> ReceiverSlot {
        ReceiverSlot(
            receiver: Receiver(mid: "0", media: .audio, ssrc: SSRC(1), retransmissionSSRC: nil),
            id: ReceiverID(slot: 0, generation: 0), codecs: [codec], loop: Loop(now: .zero))
    }

    private static func assignment(_ id: Int, to decoder: Decoder) throws -> Assignment {
        let stream = ClientCore.IncomingStream(
            id: id, server: try ServerAddress("ws://127.0.0.1:1"), participant: "\(id)", codec: .opus,
            payloadType: codec.payloadType, connectStarted: .zero)
        return Assignment(stream, to: decoder, before: nil)
    }

    /// Packets whose first payload byte is their number.
    private static func send(_ numbers: ClosedRange<Int>, to slot: ReceiverSlot) {
        for number in numbers {
            var packet = PacketBuffer()
            let isFilled = packet.assignRTP(
                payloadType: codec.payloadType, sequenceNumber: SequenceNumber(UInt16(number)),
                timestamp: RTPTimestamp(UInt32(number) * 960), ssrc: SSRC(1), payload: [UInt8(number & 0xff)])
            guard isFilled, let header = RTPHeader(parsing: packet) else { preconditionFailure() }
            slot.receive(packet, header, at: StreamPosition(epoch: 0, number: number))
        }
    }

    @Test func `audio that overtakes the message of a reassignment reaches the new decoder completely`() throws {
        let slot = Self.makeSlot()
        let (first, second) = (Decoder(), Decoder())
        _ = slot.begin(try Self.assignment(1, to: first), at: nil, position: nil)
        Self.send(1...100, to: slot)
        // The server gave the slot to another speaker at packet 91. Its two messages arrive only now.
        slot.release()
        Self.send(101...102, to: slot)
        #expect(slot.begin(try Self.assignment(2, to: second), at: nil, position: 91))
        Self.send(103...105, to: slot)
        #expect(second.numbers == Array(91...105))
        #expect(first.numbers.prefix(90) == ArraySlice(1...90))
    }

    @Test func `a sink that plays takes only the newest of the audio that overtook the message`() throws {
        let slot = Self.makeSlot()
        Self.send(1...100, to: slot)
        let decoder = Decoder(backlog: 3)
        #expect(slot.begin(try Self.assignment(1, to: decoder), at: nil, position: 80))
        Self.send(101...102, to: slot)
        #expect(decoder.numbers == Array(98...102))
    }

    @Test func `a stream whose beginning is no longer kept is reported as incomplete`() throws {
        let slot = Self.makeSlot()
        _ = slot.begin(try Self.assignment(1, to: Decoder()), at: nil, position: nil)
        Self.send(1...200, to: slot)
        slot.release()
        let late = Decoder()
        #expect(!slot.begin(try Self.assignment(2, to: late), at: nil, position: 100))
        // The next stream is complete, whatever was dropped before.
        Self.send(201...300, to: slot)
        slot.release()
        let next = Decoder()
        #expect(slot.begin(try Self.assignment(3, to: next), at: nil, position: 290))
        #expect(next.numbers == (290...300).map { UInt8($0 & 0xff) })
    }

    @Test func `a free receiver keeps the packets of a keyframe, and no more`() throws {
        let slot = Self.makeSlot()
        Self.send(1...HeldPackets.capacity, to: slot)
        let whole = Decoder()
        #expect(slot.begin(try Self.assignment(1, to: whole), at: nil, position: 1))
        #expect(whole.numbers.count == HeldPackets.capacity)
        slot.release()
        Self.send(600...600 + HeldPackets.capacity, to: slot)
        #expect(!slot.begin(try Self.assignment(2, to: Decoder()), at: nil, position: 600))
    }

    // MARK: The start of a video

    private static func makeVideoSlot(_ loop: Loop) -> ReceiverSlot {
        ReceiverSlot(
            receiver: Receiver(mid: "0", media: .video, ssrc: SSRC(1), retransmissionSSRC: nil),
            id: ReceiverID(slot: 0, generation: 0), codecs: [codec], loop: loop)
    }

    @Test func `the first packets of a video reach the decoder in order, whatever their order of arrival`() throws {
        let loop = Loop(now: .zero)
        let slot = Self.makeVideoSlot(loop)
        let decoder = Decoder()
        _ = slot.begin(try Self.assignment(1, to: decoder), at: SequenceNumber(10), position: nil)
        for number in [12, 11] { Self.send(number...number, to: slot) }
        #expect(decoder.numbers == [])
        Self.send(10...10, to: slot)
        #expect(decoder.numbers == [10, 11, 12])
        // Later ones are for the jitter buffer.
        for number in [14, 13] { Self.send(number...number, to: slot) }
        #expect(decoder.numbers == [10, 11, 12, 14, 13])
        #expect(loop.nextTimer == .never)
    }

    @Test func `a video whose first packet is lost starts after 200 ms with those that arrived`() throws {
        let loop = Loop(now: .zero)
        let slot = Self.makeVideoSlot(loop)
        let decoder = Decoder()
        _ = slot.begin(try Self.assignment(1, to: decoder), at: SequenceNumber(10), position: nil)
        Self.send(12...12, to: slot)
        loop.now = .zero + .milliseconds(100)
        Self.send(11...11, to: slot)
        loop.now = .zero + .milliseconds(199)
        #expect(!loop.fireNextTimer())
        loop.now = .zero + .milliseconds(200)
        #expect(loop.fireNextTimer())
        #expect(decoder.numbers == [11, 12])
    }

    @Test func `a released receiver forgets the packets that waited for the first one`() throws {
        let loop = Loop(now: .zero)
        let slot = Self.makeVideoSlot(loop)
        let (first, second) = (Decoder(), Decoder())
        _ = slot.begin(try Self.assignment(1, to: first), at: SequenceNumber(10), position: nil)
        Self.send(12...12, to: slot)
        slot.release()
        _ = slot.begin(try Self.assignment(2, to: second), at: SequenceNumber(20), position: 20)
        Self.send(20...20, to: slot)
        #expect(first.numbers == [])
        #expect(second.numbers == [20])
        #expect(loop.nextTimer == .never)
    }
}
