import ICELite
import Testing

@Suite struct TransportAddressTests {
    @Test func `an IPv4 address mapped into IPv6 equals the IPv4 address`() {
        let plain = TransportAddress(ipv4: 0xc000_0201, port: 5000)
        let mapped = TransportAddress(ipv6: 0, 0x0000_ffff_c000_0201, port: 5000)
        #expect(plain == mapped && plain.hashValue == mapped.hashValue)
        #expect(mapped.ipv4 == 0xc000_0201)
        #expect(TransportAddress(ipv6: 0, 0xc000_0201, port: 5000).ipv4 == nil)
        #expect(TransportAddress(ipv6: 1, 0x0000_ffff_c000_0201, port: 5000).ipv4 == nil)
    }

    @Test func `ports and transports are part of an address`() {
        let address = TransportAddress(ipv4: 1, port: 1)
        #expect(address != TransportAddress(ipv4: 1, port: 2))
        #expect(address != TransportAddress(ipv4: 1, port: 1, transport: .tcp))
        #expect(address != TransportAddress(ipv4: 2, port: 1))
    }

    @Test(
        arguments: [
            (0x2001_0db8_0000_0000, 1, "2001:db8::1"), (0, 0, "::"), (0, 1, "::1"), (1 << 48, 0, "1::"),
            (0x2001_0db8_0000_0001, 0x0001_0001_0001_0001, "2001:db8:0:1:1:1:1:1"),
            (0x2001_0000_0000_0001, 0x0000_0000_0000_0001, "2001:0:0:1::1"),
            (0x2001_0db8_0000_0000, 0x0001_0000_0000_0001, "2001:db8::1:0:0:1"),
        ] as [(UInt64, UInt64, String)])
    func `IPv6 is printed as RFC 5952 says`(high: UInt64, low: UInt64, text: String) {
        #expect(TransportAddress(ipv6: high, low, port: 9).host == text)
        #expect(TransportAddress(ipv6: high, low, port: 9).description == "[\(text)]:9")
    }

    @Test func `IPv4 is printed in four parts`() {
        #expect(TransportAddress(ipv4: 0xc000_02ff, port: 80).description == "192.0.2.255:80")
    }
}
