import PeerLoop
import PeerSession
import RTP
import Testing

@testable import RoomSimulation

/// The invariants without a number, broken at the stand-ins that check them.
struct InvariantTests {
    private func keys() -> SRTPKeys {
        SRTPKeys(profile: .aeadAES128GCM, local: Array(repeating: 1, count: 28), remote: Array(repeating: 2, count: 28))
    }

    private func packet(number: UInt16) -> PacketBuffer {
        var packet = PacketBuffer()
        _ = packet.assign([0x80, 96, UInt8(number >> 8), UInt8(number & 0xff), 0, 0, 0, 0, 0, 0, 0, 7, 1, 2, 3])
        return packet
    }

    @Test func `the stand-in for SRTP reports a second packet under one index`() throws {
        var keys = keys()
        let engine = try CheckedSRTP(keys: &keys)
        var problems: [String] = []
        engine.onReuse = { problems.append($0) }
        for number in [UInt16(5), 6, 7] {
            var packet = packet(number: number)
            let isSent = engine.protectRTP(&packet)
            #expect(isSent)
        }
        #expect(problems.isEmpty)
        var again = packet(number: 6)
        _ = engine.protectRTP(&again)
        #expect(problems == ["SRTP encrypts packet 6 of SSRC 7 twice."])
    }

    /// One frame of one packet, as a client's receiver passes it on.
    private func frame(_ frame: UInt32, of source: UInt32, number: UInt16) -> [UInt8] {
        var bytes: [UInt8] = [0x80, 0xe0, UInt8(number >> 8), UInt8(number & 0xff)] + Array(repeating: 0, count: 8)
        FramePart(source: source, generation: 0, frame: frame, isKeyframe: true, index: 0, count: 1)
            .write(pictureID: 1, payload: 64, into: &bytes)
        return bytes
    }

    private func failure(_ body: (World, SimulatedClient) -> Void) -> SimulationFailure? {
        let world = World(seed: 1, encryption: .checked)
        defer { world.end() }
        let client = world.client("ada", link: .wired)
        body(world, client)
        return #expect(throws: SimulationFailure.self) { try world.run(for: .seconds(1)) }
    }

    @Test func `a viewer that would show an older frame again fails the run`() {
        let failure = failure { world, client in
            let source = VideoSource(VideoFormat(), of: client, in: world)
            world.published(1, by: source)
            let viewer = VideoViewer(
                1, of: client, since: world.loop.now, earlier: [], in: world, requestKeyframe: {}, shown: {})
            for (number, shown) in [(UInt16(1), UInt32(8)), (2, 9), (3, 8)] {
                viewer.receive(frame(shown, of: source.id, number: number).span)
            }
        }
        #expect(failure?.problem == "ada would show frame 8 of stream 1 after 9.")
    }

    @Test func `a packet of a stream that was watched earlier fails the run`() {
        let failure = failure { world, client in
            let sources = (1...2).map { stream in
                let source = VideoSource(VideoFormat(), of: client, in: world)
                world.published(stream, by: source)
                return source
            }
            let viewer = VideoViewer(
                2, of: client, since: world.loop.now, earlier: [1], in: world, requestKeyframe: {}, shown: {})
            viewer.receive(frame(3, of: sources[0].id, number: 1).span)
        }
        #expect(failure?.problem == "ada got a packet of an earlier stream in stream 2.")
    }

    @Test func `a number that the server left out is a gap, unless a link lost its packet`() {
        var ledger = EgressLedger()
        for number in [UInt16(65535), 0, 2] {
            ledger.note(.media(Contents.Media(ssrc: 9, number: number, source: 4)))
        }
        #expect(ledger.missing == 1)
        #expect(ledger.unexplained { _ in 0 } == 1)
        #expect(ledger.unexplained { $0 == 4 ? 1 : 0 } == 0)
    }
}
