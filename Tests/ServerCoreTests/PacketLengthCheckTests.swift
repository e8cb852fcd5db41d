import RTP
import RoomProtocol
import Testing

@testable import ServerCore

struct PacketLengthCheckTests {
    private func header(payload length: Int) throws -> RTPHeader {
        var packet = PacketBuffer()
        let fits = packet.assignRTP(
            payloadType: 96, sequenceNumber: SequenceNumber(1), timestamp: RTPTimestamp(1), ssrc: SSRC(1),
            payload: [UInt8](repeating: 1, count: length))
        let header = RTPHeader(parsing: packet)
        return try #require(fits ? header : nil)
    }

    @Test func `a publisher is notified once of packets that are too long, and all of them are counted`() throws {
        var check = PacketLengthCheck()
        #expect(check.problem(with: try header(payload: 1388), of: "0") == nil)
        let problem = try #require(check.problem(with: try header(payload: 1389), of: "0"))
        #expect(problem.code.name == "media.packet-too-long")
        #expect(problem.message.contains("1401 bytes") && problem.message.contains("at most 1400"))
        #expect(check.problem(with: try header(payload: 1389), of: "0") == nil)
        #expect(check.count == 2)
    }
}
