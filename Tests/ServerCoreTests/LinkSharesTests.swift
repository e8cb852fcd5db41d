import Testing

@testable import ServerCore

struct LinkSharesTests {
    @Test func `a link that carries everything with headroom limits nothing`() {
        #expect(LinkShares.shares(of: 2_000_000, audio: 100_000, videos: [500_000, 1_000_000]) == [nil, nil])
        #expect(
            LinkShares.demand(audio: 100_000, videos: [500_000, 1_000_000].map { .init(rates: [$0]) }) == 1_975_000)
    }

    @Test func `the link is probed for the next layer of each video, and for the best one of one video`() {
        let layers = [100_000.0, 400_000, 1_600_000]
        func demand(_ videos: [LinkShares.Video]) -> Double { LinkShares.demand(audio: 0, videos: videos) }
        #expect(demand([.init(rates: layers, current: 0)]) == 1_600_000 * LinkShares.headroom)
        #expect(
            demand([.init(rates: layers, current: 0), .init(rates: layers, current: 0)])
                == 2_000_000 * LinkShares.headroom)
        #expect(demand([.init(rates: layers, current: 2)]) == 1_600_000 * LinkShares.headroom)
    }

    @Test func `audio comes first, and large videos share what small ones leave`() {
        let shares = LinkShares.shares(of: 1_100_000, audio: 100_000, videos: [2_000_000, 80_000, 3_000_000])
        #expect(shares == [450_000, nil, 450_000])
    }

    @Test func `videos get a fifth of the link, however much audio there is`() {
        #expect(LinkShares.shares(of: 100_000, audio: 300_000, videos: [500_000, 500_000]) == [10_000, 10_000])
    }

    @Test func `no video gets more than another that could use it`() {
        var random = SystemRandomNumberGenerator()
        for _ in 0..<1000 {
            let wishes = (0..<Int.random(in: 1...9, using: &random)).map { _ in
                Double.random(in: 0...4e6, using: &random)
            }
            let target = Double.random(in: 1e4...1e7, using: &random)
            let shares = LinkShares.shares(of: target, audio: 0, videos: wishes)
            let given = zip(shares, wishes).map { $0 ?? $1 * LinkShares.headroom }
            #expect(
                given.reduce(0, +) <= max(
                    target, LinkShares.demand(audio: 0, videos: wishes.map { .init(rates: [$0]) })) * 1.000001)
            for case let share? in shares { #expect(given.allSatisfy { $0 <= share * 1.000001 }) }
        }
    }
}
