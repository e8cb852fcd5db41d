import CongestionControl
import RTP
import Testing

@testable import ClientCore

@Suite struct RateShareTests {
    private let audio = RateShares.Stream(isVideo: false, used: 60_000)

    private func video(_ wished: Int?, used: Double = 0) -> RateShares.Stream {
        RateShares.Stream(isVideo: true, used: used, wished: wished)
    }

    @Test func `audio comes first, and video gets the rest`() {
        let shares = RateShares.shares(of: 400_000, among: [audio, video(1_000_000)])
        #expect(shares[0] == nil)
        #expect(shares[1] == 340_000)
    }

    @Test func `audio alone has all of the target, and keeps video a fifth of it`() {
        let microphone = RateShares.Stream(isVideo: false, used: 90_000, wished: 64_000)
        #expect(RateShares.shares(of: 40_000, among: [microphone]) == [40_000])
        #expect(RateShares.shares(of: 40_000, among: [microphone, microphone]) == [20_000, 20_000])
        #expect(RateShares.shares(of: 50_000, among: [microphone, video(1_000_000)]) == [40_000, 10_000])
        // Opus that nothing here encodes cannot be smaller.
        #expect(RateShares.shares(of: 40_000, among: [audio]) == [nil])
    }

    @Test func `a microphone that was limited wants its whole rate back`() {
        let microphone = RateShares.Stream(isVideo: false, used: 35_000, wished: 64_000)
        #expect(RateShares.demand(of: [microphone]) == PathRate.ofAudio(64_000))
    }

    @Test func `videos share by what they wish`() throws {
        let shares = RateShares.shares(of: 900_000, among: [video(2_000_000), video(1_000_000), audio])
        let (large, small) = (try #require(shares[0]), try #require(shares[1]))
        #expect((large + small).rounded() == 840_000)
        #expect((1.9...2.0).contains(large / small))
    }

    @Test func `with a lot of room, no video is limited to less than its wish`() throws {
        let streams = [video(2_000_000), video(1_000_000), audio]
        let demand = RateShares.demand(of: streams)
        for share in zip(RateShares.shares(of: demand, among: streams), [2_000_000.0, 1_000_000.0]) {
            #expect(PathRate.media(onPath: try #require(share.0)) >= share.1 - 1)
        }
    }

    @Test func `repairs take their part, and video keeps a fifth`() {
        #expect(RateShares.shares(of: 500_000, among: [video(1_000_000)], repairs: 50_000) == [450_000])
        #expect(RateShares.shares(of: 50_000, among: [audio, video(1_000_000)]) == [nil, 10_000])
    }

    @Test func `a video that has fallen silent leaves its share to the others`() throws {
        let off = RateShares.Stream(isVideo: true, used: 0, wished: nil, hasSent: true)
        let shares = RateShares.shares(of: 1_000_000, among: [off, video(800_000)])
        #expect(try #require(shares[1]) > 800_000)
    }
}
