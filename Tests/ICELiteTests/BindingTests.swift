import ICELite
import RTP
import Testing

/// The question to a STUN server for the address of this end.
@Suite struct BindingTests {
    private let transaction = STUNTransaction(high: 0xb7e7_a701, low: 0xbc34_d686_fa87_dfae)

    private func parsed(_ datagram: [UInt8]) -> STUNMessage? { STUNMessage(parsing: datagram.span) }

    private func address(in datagram: [UInt8]) throws -> TransportAddress? {
        let message = try #require(parsed(datagram))
        return message.mappedAddress(in: datagram.span)
    }

    @Test func `a request for the own address is a header without attributes`() throws {
        let request = STUNMessage.bindingRequest(transaction)
        #expect(request == bytes("0001 0000 2112a442 b7e7a701 bc34d686fa87dfae"))
        let message = try #require(parsed(request))
        #expect(message.kind == .request && message.transaction == transaction)
        #expect(try address(in: request) == nil)
    }

    @Test func `the response has the address, of either family`() throws {
        for address in [
            TransportAddress(ipv4: 0xc000_0201, port: 32853),
            TransportAddress(ipv6: 0x2001_0db8_1234_5678, 0x0011_2233_4455_6677, port: 32853),
        ] {
            var packet = PacketBuffer()
            packet.beginSTUN(.success, transaction)
            packet.addMappedAddress(address, transaction)
            packet.addFingerprint()
            let datagram = Array(packet.bytes[..<packet.count])
            #expect(try self.address(in: datagram) == address)
        }
    }

    @Test(arguments: [
        // The sample responses of RFC 5769, sections 2.2 and 2.3, without the attributes that sign them.
        ("0020 0008 0001 a147e112a643", "192.0.2.1:32853"),
        ("0020 0014 0002 a147 0113a9faa5d3f179bc25f4b5bed2b9d9", "[2001:db8:1234:5678:11:2233:4455:6677]:32853"),
        // Behind an optional attribute of three bytes.
        ("8022 0003 61626320 0020 0008 0001 a147e112a643", "192.0.2.1:32853"),
        // A family that does not exist, an IPv6 family with four bytes, and nothing.
        ("0020 0008 0003 a147e112a643", nil), ("0020 0008 0002 a147e112a643", nil), ("0020 0000", nil), ("", nil),
    ])
    func `the address is read from its attribute alone`(attributes: String, address: String?) throws {
        let attributes = bytes(attributes)
        let datagram =
            bytes("0101") + [0, UInt8(attributes.count)] + bytes("2112a442 b7e7a701 bc34d686fa87dfae") + attributes
        #expect(try self.address(in: datagram)?.description == address)
    }

    @Test func `an error has no address`() throws {
        let datagram = bytes("0111 000c 2112a442 b7e7a701 bc34d686fa87dfae 0020 0008 0001 a147e112a643")
        #expect(try address(in: datagram) == nil)
    }
}
