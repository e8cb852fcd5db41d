import ICELite
import RTP
import Testing

/// The test vectors of RFC 5769.
enum Vector {
    static let password = "VOkJxbRl1RmTxUk/WvJxBt"

    /// Section 2.1. Its padding consists of spaces.
    static let request = bytes(
        """
        000100582112a442b7e7a701bc34d686fa87dfae802200105354554e207465737420636c69656e74002400046e0001ff80290008932ff9b1
        51263b36000600096576746a3a68367659202020000800149aeaa70cbfd8cb56781ef2b5b2d3f249c1b571a280280004e57a3bcf
        """)
    /// Section 2.2.
    static let response4 = bytes(
        """
        0101003c2112a442b7e7a701bc34d686fa87dfae8022000b7465737420766563746f7220002000080001a147e112a643000800142b91f599
        fd9e90c38c7489f92af9ba53f06be7d780280004c07d4c96
        """)
    /// Section 2.3.
    static let response6 = bytes(
        """
        010100482112a442b7e7a701bc34d686fa87dfae8022000b7465737420766563746f7220002000140002a1470113a9faa5d3f179bc25f4b5
        bed2b9d900080014a382954e4be67bf11784c97c8292c275bfe3ed4180280004c8fb0b4c
        """)
    /// Section 2.4. It has no FINGERPRINT.
    static let longTerm = bytes(
        """
        000100602112a44278ad3433c6ad72c029da412e00060012e3839ee38388e383aae38383e382afe382b900000015001c662f2f3439396b39
        353464364f4c33346f4c394653547679363473410014000b6578616d706c652e6f72670000080014f67024656dd64a3e02b8e0712e85c9a28ca89666
        """)
}

@Suite struct VectorTests {
    private let key = PlainKey(password: Array(Vector.password.utf8))

    @Test func `the hash of the tests is SHA-1`() {
        #expect(PlainKey.sha1(Array("abc".utf8)) == bytes("a9993e364706816aba3e25717850c26c9cd0d89d"))
        #expect(PlainKey.sha1([]) == bytes("da39a3ee5e6b4b0d3255bfef95601890afd80709"))
    }

    @Test func `the request of RFC 5769 is read and verified`() throws {
        let datagram = Vector.request
        let message = try #require(parse(datagram))
        #expect(message.kind == .request && message.method == STUNMessage.binding)
        #expect(message.transaction == STUNTransaction(high: 0xb7e7_a701, low: 0xbc34_d686_fa87_dfae))
        #expect(message.username.map { String(decoding: datagram[$0], as: UTF8.self) } == "evtj:h6vY")
        #expect(message.priority == 0x6e00_01ff)
        #expect(message.role == .controlled(0x932f_f9b1_5126_3b36))
        #expect(!message.nominates && message.unknownAttributes == 0)
        #expect(message.isSigned(with: key, in: datagram) && message.hasFingerprint(in: datagram))
        let other = PlainKey(password: Array("VOkJxbRl1RmTxUk/WvJxBT".utf8))
        #expect(!message.isSigned(with: other, in: datagram))
    }

    @Test(arguments: [
        (Vector.response4, TransportAddress(ipv4: 0xc000_0201, port: 32853)),
        (Vector.response6, TransportAddress(ipv6: 0x2001_0db8_1234_5678, 0x0011_2233_4455_6677, port: 32853)),
    ])
    func `the responses of RFC 5769 are read, verified and written`(
        datagram: [UInt8], address: TransportAddress
    ) throws {
        let message = try #require(parse(datagram))
        #expect(message.kind == .success && Response(datagram)?.mappedAddress == address)
        #expect(message.isSigned(with: key, in: datagram) && message.hasFingerprint(in: datagram))

        var packet = PacketBuffer()
        packet.beginSTUN(.success, message.transaction)
        let value = packet.addAttribute(0x8022, count: 11)
        for (index, byte) in "test vector".utf8.enumerated() { packet.bytes[value + index] = byte }
        // The vectors pad with a space, this writer with zero.
        packet.bytes[value + 11] = 0x20
        packet.addMappedAddress(address, message.transaction)
        packet.addIntegrity(with: key)
        packet.addFingerprint()
        #expect(Array(packet.bytes[..<packet.count]) == datagram)
    }

    @Test func `the request with long-term credentials of RFC 5769 is verified`() throws {
        let datagram = Vector.longTerm
        let message = try #require(parse(datagram))
        // The MD5 of the name, the realm and the password.
        let key = PlainKey(password: bytes("e8ca7ad59d5eb0518e312911d2dab2a9"))
        #expect(message.isSigned(with: key, in: datagram))
        #expect(message.unknownAttributes == 0 && !message.hasFingerprint(in: datagram))
    }

    @Test(arguments: STUNErrorCode.allCases)
    func `an error response has the code and the transaction of its request`(code: STUNErrorCode) throws {
        let request = Check<PlainKey>(others: code == .unknownAttribute ? [0x7001, 0x0024, 0x7002] : []).datagram
        let parsed = try #require(parse(request))
        var packet = PacketBuffer()
        for key in [key, nil] {
            STUNResponse.error(code).write(to: parsed, in: request.span, signedWith: key, into: &packet)
            let datagram = Array(packet.bytes[..<packet.count])
            let response = try #require(parse(datagram))
            #expect(response.kind == .error && Response(datagram)?.errorCode == code.rawValue)
            #expect(response.transaction == parsed.transaction)
            #expect(response.hasFingerprint(in: datagram))
            #expect(response.isSigned(with: self.key, in: datagram) == (key != nil))
            let types = bytes("000a000470017002")
            let lists = datagram.indices.contains { datagram[$0...].starts(with: types) }
            #expect(lists == (code == .unknownAttribute))
        }
    }
}
