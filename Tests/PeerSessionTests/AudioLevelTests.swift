import RTP
import TestSupport
import Testing

@testable import PeerSession

/// A sender of audio whose packets carry levels, and its receiver.
private final class Microphone {
    static let receivedID: UInt8 = 6
    let call: Call
    let sender: SenderID
    private var packet = PacketBuffer()
    private(set) var received: [Int: AudioLevel?] = [:]

    /// - Parameter extensions: those that the receiver accepts.
    init(_ extensions: HeaderExtensionIDs, isRedundant: Bool = false, path: Path = Path()) {
        call = Call(path: path)
        call.secure()
        var sending = SenderConfiguration(
            ssrc: SSRC(1000), retransmissionSSRC: nil, clockRate: 48000, retransmissionPayloadTypes: [:],
            history: 0, isAudio: true)
        var receiving = ReceiverConfiguration(
            ssrc: SSRC(1000), retransmissionSSRC: nil, mid: "a",
            extensions: HeaderExtensionIDs(audioLevel: Self.receivedID), clockRate: 48000, payloadTypes: [111],
            nack: false)
        if isRedundant {
            sending.redundancyPayloadTypes = [111: 112]
            receiving.redundancyPayloadTypes = [111: 112]
        }
        sender = call.a.addSender(sending, now: call.now)
        call.a.setExtensions(extensions, of: sender, now: call.now)
        _ = call.b.addReceiver(receiving)
        call.onMedia = { [unowned self] _, _, header, packet in
            received[Int(packet.bytes[header.payloadOffset])] = header.audioLevel
        }
    }

    static func level(_ number: Int) -> AudioLevel? {
        number % 4 == 3 ? nil : AudioLevel(negativeDecibels: UInt8(number), isVoice: number % 2 == 0)
    }

    func run(_ count: Int) {
        call.every(.milliseconds(20), count: count) { [unowned self] number in
            let fits = packet.assignRTP(
                payloadType: 111, sequenceNumber: SequenceNumber(UInt16(number)),
                timestamp: RTPTimestamp(UInt32(number) * 960), ssrc: SSRC(1), payload: [UInt8(number)])
            guard fits, var header = RTPHeader(parsing: packet) else { return }
            header.audioLevel = Self.level(number)
            call.a.send(packet, header: header, rewrite: Rewrite(keeping: header), via: sender, now: call.now)
        }
        call.run(for: .milliseconds(Int64(count) * 20 + 1000))
    }
}

@Suite struct AudioLevelTests {
    @Test func `levels reach the receiver under the negotiated id`() {
        let microphone = Microphone(HeaderExtensionIDs(audioLevel: Microphone.receivedID))
        microphone.run(100)
        #expect(microphone.received.count == 100)
        #expect(microphone.received.allSatisfy { $1 == Microphone.level($0) })
    }

    @Test func `a receiver that has not accepted the extension gets none`() {
        let microphone = Microphone(HeaderExtensionIDs())
        microphone.run(20)
        #expect(microphone.received.count == 20)
        #expect(microphone.received.values.allSatisfy { $0 == nil })
    }

    @Test func `the counted bytes are those of the packets`() throws {
        let microphone = Microphone(HeaderExtensionIDs(audioLevel: Microphone.receivedID))
        microphone.run(4)
        // Three of them with 4 bytes and an element of 2, in whole words.
        let bytes = try #require(microphone.call.a.statistics(of: microphone.sender)?.bytes)
        #expect(bytes == 4 * (12 + 1) + 3 * (4 + 4))
    }

    /// The level of a packet is lost with it, because its copies have payloads only.
    @Test func `a packet that a copy brings back has no level, and no other packet's`() {
        let microphone = Microphone(
            HeaderExtensionIDs(audioLevel: Microphone.receivedID), isRedundant: true, path: Path(loss: 0.1))
        microphone.run(250)
        #expect(microphone.received.count > 225)
        #expect(microphone.received.contains { $1 == nil && Microphone.level($0) != nil })
        #expect(microphone.received.allSatisfy { $1 == nil || $1 == Microphone.level($0) })
    }
}
