import PeerSession
import RTP
import Testing

/// The header extensions that name the layer of a packet (RFC 8852).
@Suite struct LayerTests {
    @Test func `packets name mid and layer until the peer has reported, and repeats always name the layer they repair`()
    {
        let call = Call()
        call.secure()
        let stream = Stream.video(call) { sending in
            (sending.mid, sending.rid) = ("7", "h")
            sending.extensions = HeaderExtensionIDs(mid: 3, streamID: 4, repairedStreamID: 5)
        }
        var sent: [(type: UInt8, elements: [UInt8: String])] = []
        call.inspect = { end, bytes in
            guard end == .a, bytes.count > 100 else { return }
            sent.append((bytes[1] & 0x7f, Self.elements(of: bytes)))
        }
        stream.send(2)
        call.run(for: .milliseconds(20))
        #expect(sent.map(\.elements) == [[3: "7", 4: "h"], [3: "7", 4: "h"]])
        call.run(for: .seconds(3))
        sent = []
        stream.send(1)
        call.run(for: .milliseconds(20))
        #expect(sent.map(\.elements) == [[:]], "the peer has reported")
        call.paths[0].isCut = true
        stream.send(1)
        call.run(for: .milliseconds(20))
        call.paths[0].isCut = false
        sent = []
        stream.send(1)
        call.run(for: .seconds(1))
        #expect(sent.filter { $0.type == 97 }.map(\.elements) == [[3: "7", 5: "h"]])
        #expect(stream.missing == 0)
    }

    /// Those of one byte (RFC 8285, section 4.2).
    private static func elements(of packet: [UInt8]) -> [UInt8: String] {
        guard packet[0] & 0x10 != 0 else { return [:] }
        let end = 16 + 4 * (Int(packet[14]) << 8 | Int(packet[15]))
        var (place, found) = (16, [UInt8: String]())
        while place < end {
            guard packet[place] != 0 else {
                place += 1
                continue
            }
            let length = Int(packet[place] & 0x0f) + 1
            found[packet[place] >> 4] = String(decoding: packet[(place + 1)..<(place + 1 + length)], as: UTF8.self)
            place += 1 + length
        }
        return found
    }
}
