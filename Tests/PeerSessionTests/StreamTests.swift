import PeerSession
import RTP
import Testing
import TestSupport

@Suite struct StreamTests {
    private func rtp(
        _ payload: [UInt8], type: UInt8 = 96, number: UInt16 = 10, ssrc: UInt32 = 5, head: UInt8 = 0x80,
        extra: [UInt8] = []
    ) -> [UInt8] {
        let fixed: [UInt8] = [
            head, type, UInt8(number >> 8), UInt8(truncatingIfNeeded: number), 0, 0, 0, 9, UInt8(ssrc >> 24),
            UInt8(truncatingIfNeeded: ssrc >> 16), UInt8(truncatingIfNeeded: ssrc >> 8),
            UInt8(truncatingIfNeeded: ssrc),
        ]
        return fixed + extra + payload
    }

    private func receiver(
        _ mid: String, types: Set<UInt8> = [96], ssrc: SSRC? = nil, midID: UInt8? = 4
    ) -> ReceiverConfiguration {
        ReceiverConfiguration(
            ssrc: ssrc, mid: mid, extensions: HeaderExtensionIDs(mid: midID), clockRate: 90000, payloadTypes: types,
            retransmissionPayloadTypes: [96: 97], nack: true)
    }

    private func midExtension(_ mid: String) -> [UInt8] {
        precondition(mid.utf8.count == 2)
        return [0xbe, 0xde, 0, 1, 0x41] + Array(mid.utf8) + [0]
    }

    /// Sends one packet from `a` and returns the packet that `b` received.
    private func relay(
        _ call: Call, _ bytes: [UInt8], sending: SenderConfiguration, receiving: ReceiverConfiguration,
        change: (RTPHeader, borrowing PacketBuffer) -> Rewrite
    ) throws -> [[UInt8]] {
        let sender = call.a.addSender(sending, now: call.now)
        _ = call.b.addReceiver(receiving)
        var got: [[UInt8]] = []
        call.onMedia = { _, _, _, packet in got.append(Array(packet.bytes[..<packet.count])) }
        var packet = PacketBuffer()
        #expect(Bool(packet.assign(bytes)))
        let parsed = RTPHeader(parsing: packet)
        let header = try #require(parsed)
        call.a.send(packet, header: header, rewrite: change(header, packet), via: sender, now: call.now)
        #expect(Array(packet.bytes[..<packet.count]) == bytes, "the packet is borrowed")
        call.run(for: .milliseconds(50))
        return got
    }

    @Test("A packet is sent with the rewritten fields, without the previous hop's CSRCs, extensions and padding")
    func rewriting() throws {
        let call = Call()
        call.secure()
        let extra: [UInt8] = [0, 0, 0, 1] + [0xbe, 0xde, 0, 1, 0x21, 1, 2, 0]
        let bytes = rtp([0x90, 0xc0, 0x81, 0x23, 0x45, 0x99, 0, 0, 3], head: 0xb1, extra: extra)
        let got = try relay(
            call, bytes, sending: SenderConfiguration(ssrc: SSRC(0x0102_0304), clockRate: 90000),
            receiving: receiver("v0", types: [100], ssrc: SSRC(0x0102_0304))
        ) { header, packet in
            let descriptor = VP8PayloadDescriptor(parsing: packet, header: header)
            return Rewrite(
                payloadType: 100, sequenceNumber: SequenceNumber(0x1112), timestamp: RTPTimestamp(0x2122_2324),
                marker: true,
                patch: descriptor.map { .picture(PictureRewrite($0, pictureID: 0x0777, tl0PictureIndex: 0x66)) })
        }
        let header: [UInt8] = [0x80, 0xe4, 0x11, 0x12, 0x21, 0x22, 0x23, 0x24, 1, 2, 3, 4]
        #expect(got == [header + [0x90, 0xc0, 0x87, 0x77, 0x66, 0x99]])
    }

    @Test("A sender that changes to another store in one turn sends the payloads of both")
    func changeOfStore() {
        let call = Call()
        call.secure()
        let sender = call.a.addSender(SenderConfiguration(ssrc: SSRC(7), clockRate: 90000), now: call.now)
        _ = call.b.addReceiver(receiver("v0", ssrc: SSRC(7)))
        var got: [[UInt8]] = []
        call.onMedia = { _, _, header, packet in
            got.append(Array(packet.bytes[header.payloadOffset..<header.payloadEnd]))
        }
        for number in 0..<4 as Range<UInt16> {
            let store = PacketStore()
            var packet = PacketBuffer()
            _ = packet.assign([UInt8(number), UInt8(number)])
            let index = store.add(packet, 0..<2, timestamp: RTPTimestamp(9), marker: true, now: call.now)
            call.a.forward(
                number == 2 ? nil : index, of: store,
                rewrite: Rewrite(
                    payloadType: 96, sequenceNumber: SequenceNumber(10 + number), timestamp: RTPTimestamp(9),
                    marker: true),
                via: sender, now: call.now)
        }
        call.run(for: .milliseconds(50))
        #expect(got == [[0, 0], [1, 1], [], [3, 3]])
    }

    @Test func `packets of the layer before are repaired after a change to another one`() throws {
        let call = Call(path: Path(loss: 0.1))
        call.secure()
        var (rtx, known) = (
            ReceiverConfiguration(
                ssrc: SSRC(5), retransmissionSSRC: SSRC(6), mid: "v0", clockRate: 90000, payloadTypes: [96], nack: true),
            0
        )
        rtx.retransmissionPayloadTypes = [96: 97]
        let receiver = call.b.addReceiver(rtx)
        let sender = call.a.addSender(
            SenderConfiguration(
                ssrc: SSRC(5), retransmissionSSRC: SSRC(6), clockRate: 90000, retransmissionPayloadTypes: [96: 97]),
            now: call.now)
        let stores = [PacketStore(), PacketStore()]
        var wrong = 0
        call.onMedia = { _, _, header, packet in
            known += 1
            // Each payload has the number of its packet.
            if packet.uint16(at: header.payloadOffset) != header.sequenceNumber.rawValue { wrong += 1 }
        }
        call.every(.milliseconds(5), count: 600) { round in
            var packet = PacketBuffer()
            guard packet.assign(rtp([UInt8(round >> 8), UInt8(round & 0xff)])) else { return }
            // Another layer each 100 ms.
            let store = stores[round / 20 % 2]
            let index = store.add(packet, 12..<14, timestamp: RTPTimestamp(9), marker: true, now: call.now)
            call.a.forward(
                index, of: store,
                rewrite: Rewrite(
                    payloadType: 96, sequenceNumber: SequenceNumber(UInt16(round)), timestamp: RTPTimestamp(9),
                    marker: true),
                via: sender, now: call.now)
        }
        call.run(for: .seconds(4))
        let statistics = try #require(call.b.statistics(of: receiver))
        #expect(wrong == 0)
        #expect(known >= 598 && statistics.recovered >= 40, "\(known) \(statistics)")
    }

    @Test("The mid is sent until the peer has reported on the stream")
    func midStamping() throws {
        let call = Call()
        call.secure()
        var lengths: [Int] = []
        let stream = Stream.video(call) { configuration in
            configuration.mid = "v0"
            configuration.extensions.mid = 4
        }
        let count = call.onMedia
        call.onMedia = { end, id, header, packet in
            lengths.append(header.extensionRange.count)
            if lengths.count == 1 {
                #expect(header.headerExtension(id: 4, in: packet).map { Array(packet.bytes[$0]) } == Array("v0".utf8))
            }
            count(end, id, header, packet)
        }
        call.every(.milliseconds(20), count: 200) { _ in stream.send() }
        call.run(for: .seconds(5))
        #expect(lengths.first == 4 && lengths.last == 0)
        #expect(stream.missing == 0)
    }

    @Test("A stream of unknown SSRC and its RTX are bound by the mid, and stay bound without it")
    func bindingByMid() throws {
        let call = Call()
        call.secure()
        let first = call.b.addReceiver(receiver("v0"))
        let second = call.b.addReceiver(receiver("v1"))
        var got: [(ReceiverID, UInt16, [UInt8])] = []
        call.onMedia = { _, id, header, packet in
            got.append(
                (id, header.sequenceNumber.rawValue, Array(packet.bytes[header.payloadOffset..<header.payloadEnd])))
        }
        let voice = try Voice(call, to: .b)
        voice.send(rtp([1], ssrc: 51))
        #expect(call.b.statistics.dropped.unknownSSRC == 1)
        voice.send(rtp([2], ssrc: 51, head: 0x90, extra: midExtension("v1")))
        voice.send(rtp([3], number: 11, ssrc: 51))
        voice.send(rtp([4], ssrc: 50, head: 0x90, extra: midExtension("v0")))
        // RTX of packet 12, whose stream is now known.
        voice.send(rtp([0, 12, 5], type: 97, number: 700, ssrc: 61, head: 0x90, extra: midExtension("v1")))
        #expect(got.map(\.0) == [second, second, first, second])
        #expect(got.map(\.1) == [10, 11, 10, 12])
        #expect(got.map(\.2) == [[2], [3], [4], [5]])
        #expect(call.b.statistics(of: second)?.ssrc == SSRC(51))
    }

    /// With the mid under id 4, and another element.
    private func names(_ mid: String, _ id: UInt8, _ rid: String) -> [UInt8] {
        precondition(mid.utf8.count == 2 && rid.utf8.count == 1)
        return [0xbe, 0xde, 0, 2, 0x41] + Array(mid.utf8) + [id << 4] + Array(rid.utf8) + [0, 0, 0]
    }

    /// A receiver of a layer. Rids have the id 5, and those of repaired packets 6.
    private func layer(_ rid: String, of mid: String = "v0") -> ReceiverConfiguration {
        var layer = receiver(mid)
        layer.rid = rid
        layer.extensions = HeaderExtensionIDs(mid: 4, streamID: 5, repairedStreamID: 6)
        return layer
    }

    @Test func `layers of one m-line are bound by their rids, and their RTX by the repaired rid`() throws {
        let call = Call()
        call.secure()
        let layers = ["q", "h"].map { call.b.addReceiver(layer($0)) }
        var got: [(ReceiverID, [UInt8])] = []
        call.onMedia = { _, id, header, packet in
            got.append((id, Array(packet.bytes[header.payloadOffset..<header.payloadEnd])))
        }
        let voice = try Voice(call, to: .b)
        // RTX before the media of its layer has nothing to repeat.
        voice.send(rtp([0, 9, 0], type: 97, ssrc: 62, head: 0x90, extra: names("v0", 6, "h")))
        #expect(call.b.statistics.dropped.unknownSSRC == 1)
        voice.send(rtp([1], ssrc: 51, head: 0x90, extra: names("v0", 5, "q")))
        voice.send(rtp([2], ssrc: 52, head: 0x90, extra: names("v0", 5, "h")))
        voice.send(rtp([3], number: 11, ssrc: 51))
        voice.send(rtp([0, 12, 4], type: 97, ssrc: 61, head: 0x90, extra: names("v0", 6, "q")))
        voice.send(rtp([0, 13, 5], type: 97, number: 11, ssrc: 62))
        // A bound SSRC keeps its layer, whatever its packets say then.
        voice.send(rtp([6], number: 12 + 2, ssrc: 51, head: 0x90, extra: names("v0", 5, "h")))
        #expect(got.map(\.0) == [0, 1, 0, 0, 1, 0].map { layers[$0] })
        #expect(got.map(\.1) == [[1], [2], [3], [4], [5], [6]])
    }

    @Test func `packets with an unknown rid, another mid or no rid bind no layer`() throws {
        let call = Call()
        call.secure()
        for rid in ["q", "h"] { _ = call.b.addReceiver(layer(rid)) }
        let voice = try Voice(call, to: .b)
        voice.send(rtp([1], ssrc: 51, head: 0x90, extra: names("v0", 5, "x")))
        voice.send(rtp([1], ssrc: 52, head: 0x90, extra: names("v1", 5, "q")))
        voice.send(rtp([1], ssrc: 53, head: 0x90, extra: midExtension("v0")))
        voice.send(rtp([1], ssrc: 54))
        // The repaired rid names no media, and the rid no RTX.
        voice.send(rtp([1], ssrc: 55, head: 0x90, extra: names("v0", 6, "q")))
        voice.send(rtp([0, 1, 1], type: 97, ssrc: 56, head: 0x90, extra: names("v0", 5, "q")))
        #expect(call.b.statistics.dropped.unknownSSRC == 6 && call.positions.isEmpty)
    }

    @Test func `a thousand SSRCs with one rid leave the session with one layer, and the others intact`() throws {
        let call = Call()
        call.secure()
        let layers = ["q", "h"].map { call.b.addReceiver(layer($0)) }
        let voice = try Voice(call, to: .b)
        voice.send(rtp([1], ssrc: 5, head: 0x90, extra: names("v0", 5, "h")))
        for ssrc: UInt32 in 1000..<2000 {
            voice.send(rtp([1], number: 20, ssrc: ssrc, head: 0x90, extra: names("v0", 5, "q")))
        }
        voice.send(rtp([2], number: 11, ssrc: 5))
        #expect(call.b.statistics(of: layers[1])?.packets == 2)
        #expect(call.b.statistics(of: layers[0])?.ssrc == SSRC(1999))
        #expect(call.b.statistics(of: layers[0])?.packets == 1000)
    }

    @Test func `a sender writes its rid with the mid, and the repaired rid into RTX`() throws {
        let call = Call(path: Path(loss: 0.05))
        call.secure()
        let ids = HeaderExtensionIDs(mid: 4, streamID: 5, repairedStreamID: 6)
        let senders = [("q", SSRC(70)), ("h", SSRC(80))].map { rid, ssrc in
            call.a.addSender(
                SenderConfiguration(
                    ssrc: ssrc, retransmissionSSRC: SSRC(ssrc.rawValue + 1), clockRate: 90000,
                    retransmissionPayloadTypes: [96: 97], mid: "v0", rid: rid, extensions: ids),
                now: call.now)
        }
        let layers = ["q", "h"].map { call.b.addReceiver(layer($0)) }
        call.every(.milliseconds(20), count: 200) { round in
            var packet = PacketBuffer()
            for sender in senders {
                guard packet.assign(rtp([UInt8(round % 256)])), let header = RTPHeader(parsing: packet) else { return }
                var rewrite = Rewrite(keeping: header)
                rewrite.sequenceNumber = SequenceNumber(UInt16(round))
                call.a.send(packet, header: header, rewrite: rewrite, via: sender, now: call.now)
            }
        }
        call.run(for: .seconds(6))
        for layer in layers {
            let got = try #require(call.b.statistics(of: layer))
            #expect(got.packets >= 199 && got.recovered > 0, "\(got)")
        }
    }

    @Test("A stream with another SSRC or other numbers begins a new epoch; losses and repairs do not")
    func epochs() throws {
        let call = Call()
        call.secure()
        _ = call.b.addReceiver(receiver("v0", ssrc: SSRC(5)))
        let voice = try Voice(call, to: .b)
        for number: UInt16 in [10, 12, 11, 500] { voice.send(rtp([1], number: number)) }
        #expect(call.positions.map(\.epoch) == [0, 0, 0, 0])
        // Far back: the second packet in order shows that the stream restarted.
        for number: UInt16 in [40000, 40001, 40002] { voice.send(rtp([1], number: number)) }
        #expect(call.positions.suffix(2).map(\.epoch) == [1, 1])
        // The previous epoch's numbers under another SSRC: neither duplicates nor late packets.
        let before = call.positions.count
        for number: UInt16 in [40001, 40000, 40002] {
            voice.send(rtp([1], number: number, ssrc: 51, head: 0x90, extra: midExtension("v0")))
        }
        let taken = call.positions[before...]
        #expect(taken.map(\.epoch) == [2, 2, 2])
        #expect(taken.map { $0.number - taken[before].number } == [0, -1, 1])
        #expect(call.b.statistics.dropped.duplicates == 0)
    }

    @Test("Late packets of a former SSRC do not take a stream back; a run of them does")
    func lateFormerSSRC() throws {
        let call = Call()
        call.secure()
        let id = call.b.addReceiver(receiver("v0", ssrc: SSRC(5)))
        let voice = try Voice(call, to: .b)
        func send(_ number: UInt16, of ssrc: UInt32, hasMid: Bool) {
            voice.send(
                hasMid
                    ? rtp([1], number: number, ssrc: ssrc, head: 0x90, extra: midExtension("v0"))
                    : rtp([1], number: number, ssrc: ssrc))
        }
        send(100, of: 5, hasMid: true)
        send(7, of: 51, hasMid: true)
        // The sender has seen feedback for SSRC 51 and no longer stamps its MID.
        for number: UInt16 in 0..<200 {
            send(101 + number, of: 5, hasMid: true)
            send(8 + number, of: 51, hasMid: false)
        }
        #expect(call.positions.count == 202)
        #expect(call.b.statistics(of: id)?.ssrc == SSRC(51))
        #expect(call.b.statistics.dropped.tooOld == 200)
        // SSRC 51 ends, and the sender returns to SSRC 5.
        for number: UInt16 in 400..<501 { send(number, of: 5, hasMid: true) }
        #expect(call.b.statistics(of: id)?.ssrc == SSRC(5))
        #expect(call.positions.count == 203)
    }

    @Test("A stream whose packets SRTP refuses is reported once, until one is valid again")
    func refusedStream() throws {
        let call = Call()
        call.secure()
        let id = call.b.addReceiver(receiver("v0", ssrc: SSRC(5)))
        let voice = try Voice(call, to: .b)
        func refusals() -> Int {
            call.events[1].count { if case .refused(id, packets: _) = $0 { true } else { false } }
        }
        func sendBadPackets(_ count: Int) {
            call.every(.milliseconds(20), count: count) { [self] _ in call.deliver(rtp([1], number: 9), to: .b) }
            call.run(for: .milliseconds(20 * Int64(count)))
        }
        sendBadPackets(20)
        #expect(refusals() == 0, "no more than what an attacker or a late packet may cause")
        sendBadPackets(100)
        #expect(refusals() == 1)
        voice.send(rtp([1], number: 10))
        sendBadPackets(100)
        #expect(refusals() == 2)
        #expect(call.b.statistics.dropped.authenticationFailures == 220)
    }

    @Test("An unknown mid binds nothing, even if the payload type would")
    func foreignMid() throws {
        let call = Call()
        call.secure()
        _ = call.b.addReceiver(receiver("v0"))
        let voice = try Voice(call, to: .b)
        voice.send(rtp([1], head: 0x90, extra: midExtension("xx")))
        #expect(call.b.statistics.dropped.unknownSSRC == 1)
    }

    @Test("Without a mid, the payload type binds the receiver if only one accepts it")
    func bindingByPayloadType() throws {
        let call = Call()
        call.secure()
        let video = call.b.addReceiver(receiver("v0", midID: nil))
        var audioConfiguration = receiver("a0", types: [111], midID: nil)
        audioConfiguration.retransmissionPayloadTypes = [:]
        let audio = call.b.addReceiver(audioConfiguration)
        var got: [ReceiverID] = []
        call.onMedia = { _, id, _, _ in got.append(id) }
        let voice = try Voice(call, to: .b)
        voice.send(rtp([1], type: 111, ssrc: 8))
        voice.send(rtp([1], type: 96, ssrc: 9))
        voice.send(rtp([1], type: 96, ssrc: 10))
        voice.send(rtp([1], type: 55, ssrc: 11))
        #expect(got == [audio, video])
        #expect(call.b.statistics.dropped.unknownSSRC == 2)
    }

    @Test("A payload type that a receiver does not accept is dropped and counted")
    func unknownPayloadType() throws {
        let call = Call()
        call.secure()
        _ = call.b.addReceiver(receiver("v0", ssrc: SSRC(5)))
        let voice = try Voice(call, to: .b)
        voice.send(rtp([1], type: 97))
        voice.send(rtp([1], type: 98))
        #expect(call.b.statistics.dropped.unknownPayloadType == 2)
    }

    @Test("S8: RTX and padding that overrun are dropped and counted; padding probes are not an error")
    func hostileMedia() throws {
        let call = Call()
        call.secure()
        var configuration = receiver("v0", ssrc: SSRC(5))
        configuration.retransmissionSSRC = SSRC(6)
        _ = call.b.addReceiver(configuration)
        let voice = try Voice(call, to: .b)
        voice.send(rtp([1, 2, 200], head: 0xa0))
        voice.send(rtp([0], head: 0xa0))
        voice.send(rtp([1], type: 97, ssrc: 6))
        #expect(call.b.statistics.dropped.malformed == 3)
        voice.send(rtp([0, 0, 3], type: 97, ssrc: 6, head: 0xa0))
        #expect(call.b.statistics.dropped.padding == 1)
        voice.send(rtp([0, 9, 1], type: 97, number: 2, ssrc: 6))
        #expect(call.b.statistics.dropped.tooOld == 1, "a repair cannot begin a stream")
    }

    @Test("20,000 mutated packets of an authenticated peer never trap")
    func fuzz() throws {
        let call = Call()
        call.secure()
        var configuration = receiver("v0", ssrc: SSRC(5))
        configuration.retransmissionSSRC = SSRC(6)
        _ = call.b.addReceiver(configuration)
        _ = call.b.addReceiver(receiver("v1"))
        let voice = try Voice(call, to: .b)
        var random = Seeded(11)
        for round in 0..<20_000 {
            var bytes = rtp(
                [1, 2, 3, 4], type: round % 3 == 0 ? 97 : 96, number: UInt16(truncatingIfNeeded: round),
                ssrc: UInt32(round % 4 + 4), head: 0x90, extra: midExtension("v1"))
            for _ in 0..<Int.random(in: 0...3, using: &random) {
                bytes[Int.random(in: 0..<bytes.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
            }
            bytes[0] = 0x80 | bytes[0] & 0x3f
            bytes.removeLast(Int.random(in: 0...5, using: &random))
            voice.send(bytes)
            if round % 100 == 0 { call.run(for: .milliseconds(20)) }
        }
        #expect(call.b.isSecured)
    }

    @Test("A removed receiver's packets are unknown; another receiver with another id replaces it")
    func removal() throws {
        let call = Call()
        call.secure()
        let first = call.b.addReceiver(receiver("v0", ssrc: SSRC(5)))
        let voice = try Voice(call, to: .b)
        voice.send(rtp([1]))
        call.b.removeReceiver(first)
        voice.send(rtp([1], number: 11))
        #expect(call.b.statistics.dropped.unknownSSRC == 1)
        let second = call.b.addReceiver(receiver("v1", ssrc: SSRC(5)))
        #expect(first != second)
        #expect(call.b.statistics(of: first) == nil)
        call.b.requestKeyframe(first, now: call.now)
        call.b.removeReceiver(first)
        #expect(call.b.statistics(of: second) != nil)
    }

    @Test("A removed sender sends nothing more but BYE")
    func senderRemoval() {
        let call = Call()
        call.secure()
        let stream = Stream.video(call)
        stream.send()
        call.a.removeSender(stream.sender, now: call.now)
        stream.send()
        call.run(for: .milliseconds(100))
        #expect(call.events[1].contains(.bye(stream.receiver)))
        #expect(stream.received == [1, 0])
    }

    @Test("A packet too long to send is dropped and counted")
    func tooLong() {
        let call = Call()
        call.secure()
        let stream = Stream.video(call, length: 1389)
        stream.send()
        call.run(for: .milliseconds(100))
        #expect(call.a.statistics.dropped.unprotectable == 1)
        #expect(stream.missing == 1)
        let fits = Stream.video(call, length: 1388)
        fits.send()
        call.run(for: .milliseconds(100))
        #expect(fits.missing == 0)
    }

    @Test("Thirty streams report in compounds of at most 1200 bytes, each with a report and the CNAME first")
    func manyStreams() throws {
        let call = Call()
        call.secure()
        var senders: [SenderID] = []
        for index in 0..<30 {
            let ssrc = SSRC(UInt32(100 + index))
            let id = call.a.addSender(SenderConfiguration(ssrc: ssrc, clockRate: 90000), now: call.now)
            call.a.setClock(id, ntp: NTPTime(unixNanoseconds: 1), rtp: RTPTimestamp(0), at: call.now)
            senders.append(id)
            _ = call.b.addReceiver(receiver("v\(index)", ssrc: ssrc))
        }
        call.every(.milliseconds(100), count: 50) { index in
            for id in senders {
                var packet = PacketBuffer()
                let fits = packet.assignRTP(
                    payloadType: 96, sequenceNumber: SequenceNumber(UInt16(index)), timestamp: RTPTimestamp(5),
                    ssrc: SSRC(1), payload: [1])
                guard fits, let header = RTPHeader(parsing: packet) else { continue }
                call.a.send(packet, header: header, rewrite: Rewrite(keeping: header), via: id, now: call.now)
            }
        }
        call.run(for: .seconds(6))
        let reported = Set(
            call.events[1].compactMap { if case .senderReport(let id, _) = $0 { id } else { nil } })
        #expect(reported.count == 30)
        for id in senders { #expect(try #require(call.a.statistics(of: id)).remoteLost == 0) }
        #expect(call.a.statistics.roundTrip != nil)
    }
}
