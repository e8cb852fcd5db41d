import Testing

@testable import RoomClient

@Suite struct PacketSpliceTests {
    private func packet(_ number: UInt16, _ time: UInt32, source: UInt8 = 7, type: UInt8 = 96) -> [UInt8] {
        [0x80, 0x80 | type, UInt8(number >> 8), UInt8(number & 255)]
            + (0..<4).map { UInt8(truncatingIfNeeded: time >> (24 - 8 * $0)) } + [1, 2, 3, source, 0xAA]
    }

    private func write(
        _ splice: inout PacketSplice, _ packet: [UInt8], next: UInt32? = nil
    ) throws -> (number: UInt16, time: UInt32) {
        let bytes = try #require(splice.rewrite(packet.span, payloadType: 111) { next })
        #expect(bytes[1] == 0x80 | 111 && bytes[8..<12].allSatisfy { $0 == 0 } && bytes.suffix(1) == [0xAA])
        return (
            UInt16(bytes[2]) << 8 | UInt16(bytes[3]), (4..<8).reduce(0) { $0 << 8 | UInt32(bytes[$1]) }
        )
    }

    @Test func `the first stream keeps its numbers and timestamps`() throws {
        var splice = PacketSplice()
        #expect(try write(&splice, packet(5, 1000)) == (5, 1000))
        #expect(try write(&splice, packet(7, 2920), next: 1) == (7, 2920))
        #expect(splice.original(2920) == 2920)
    }

    @Test(arguments: [0, 48_000, 172_800_000, 1 << 31, UInt32.max - 48_000])
    func `the next stream goes on with the next number, at the time at which it arrives`(jump: UInt32) throws {
        var splice = PacketSplice()
        _ = try write(&splice, packet(.max - 1, 1000))
        _ = try write(&splice, packet(.max, 1960))
        splice.begin()
        #expect(splice.original(1960) == nil)
        let start: UInt32 = 1000 &+ jump
        #expect(try write(&splice, packet(300, start), next: 50_000) == (0, 50_000))
        #expect(try write(&splice, packet(302, start &+ 1920), next: 1) == (2, 51_920))
        #expect(try write(&splice, packet(301, start &+ 960), next: 1) == (1, 50_960))
        #expect(splice.original(50_960) == start &+ 960)
        // Audio of the stream before is still on its way to the loudspeaker.
        #expect(splice.original(1960) == nil)
    }

    @Test func `a stream is told from the one before for longer than timestamps last`() throws {
        var splice = PacketSplice()
        _ = try write(&splice, packet(1, 1000))
        splice.begin()
        for step in 0..<40 as Range<UInt16> {
            let time = UInt32(truncatingIfNeeded: Int(step) << 29)
            let written = try write(&splice, packet(step, time), next: 50_000).time
            #expect(splice.original(written) == time, "\(step)")
            if step < 4 { #expect(splice.original(1000) == nil, "\(step)") }
        }
    }

    @Test func `a packet that is too short is dropped`() {
        var splice = PacketSplice()
        #expect(splice.rewrite([0x80, 111, 0].span, payloadType: 111) { nil } == nil)
    }
}
