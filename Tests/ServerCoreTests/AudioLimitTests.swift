import RTP
import RoomProtocol
import Testing

@testable import ServerCore

struct AudioLimitTests {
    private static func at(_ milliseconds: Double) -> MonotonicTime {
        MonotonicTime(nanoseconds: UInt64(1e9 + milliseconds * 1e6))
    }

    /// How many packets of some seconds are admitted.
    private func admitted(bytes: Int, each milliseconds: Double, seconds: Double) -> (count: Int, limit: AudioLimit) {
        var limit = AudioLimit()
        let times = stride(from: 0, to: seconds * 1000, by: milliseconds)
        return (times.count { limit.admits(bytes, now: Self.at($0)) }, limit)
    }

    /// Packets of Opus at 64, 510 and again 510 kbit/s, with 59 bytes of headers.
    @Test(arguments: [(219, 20), (1334, 20), (218, 2.5)] as [(Int, Double)])
    func `all that an encoder makes passes`(bytes: Int, milliseconds: Double) {
        let (count, limit) = admitted(bytes: bytes, each: milliseconds, seconds: 60)
        #expect(Double(count) == 60_000 / milliseconds && limit.count == 0)
    }

    @Test func `of twice as much as an encoder makes, a part is left out`() {
        let (count, _) = admitted(bytes: 2 * 1275, each: 20, seconds: 60)
        #expect((2100...2200).contains(count), "\(count)")
    }

    @Test func `more than that is left out, and the publisher gets one error`() throws {
        let (large, _) = admitted(bytes: 1200, each: 0.5, seconds: 20)
        #expect(large * 1200 * 8 < AudioLimit.bitsPerSecond * 22)
        let (small, _) = admitted(bytes: 20, each: 0.5, seconds: 20)
        #expect(small <= AudioLimit.packetsPerSecond * 22)

        var limit = AudioLimit()
        var problems: [RoomError] = []
        for number in 0..<10_000 where !limit.admits(1200, now: Self.at(Double(number))) {
            if let problem = limit.problem(of: "3") { problems.append(problem) }
        }
        #expect(problems.map(\.code.name) == ["media.audio-too-fast"])
        #expect(problems.first?.message.contains("'3'") == true)
    }
}
