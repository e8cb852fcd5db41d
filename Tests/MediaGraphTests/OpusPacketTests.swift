import MediaGraph
import Testing

@Suite struct OpusPacketTests {
    @Test(
        "The header of a packet tells its length",
        arguments: [
            ([0xfc, 0xff, 0xfe], 20_000_000), ([0x78, 0], 20_000_000), ([0xe0, 0], 2_500_000), ([0x18, 0], 60_000_000),
            ([0xfd, 0, 0], 40_000_000), ([0xff, 3, 0], 60_000_000), ([], nil), ([0xff], nil), ([0xff, 0], nil),
            ([0x1b, 63], nil),
        ] as [([UInt8], UInt64?)])
    func duration(_ packet: [UInt8], _ nanoseconds: UInt64?) {
        #expect(OpusPacket.duration(of: packet.span.bytes) == nanoseconds)
    }
}
