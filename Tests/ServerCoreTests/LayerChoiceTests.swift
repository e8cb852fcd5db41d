import RTP
import Testing

@testable import ServerCore

@Suite struct LayerChoiceTests {
    private static func at(_ seconds: Double) -> MonotonicTime {
        MonotonicTime(nanoseconds: UInt64((100 + seconds) * 1_000_000_000))
    }

    @Test func `a congested link gets a lower layer immediately, and a higher one after three seconds`() {
        var choice = LayerChoice()
        func rank(_ current: Int, _ fitting: Int, _ isCongested: Bool, _ seconds: Double) -> Int {
            choice.rank(
                from: current, fitting: fitting, highest: 2, isCongested: isCongested, now: Self.at(seconds))
        }
        #expect(rank(0, 2, false, 0) == 2)
        #expect(rank(2, 0, true, 20) == 0)
        #expect(rank(0, 2, false, 22.9) == 0)
        #expect(rank(0, 2, false, 23.1) == 2)
        // It fails soon: the pause doubles.
        #expect(rank(2, 1, true, 25) == 1)
        #expect(rank(1, 2, false, 30.9) == 1)
        #expect(rank(1, 2, false, 31.1) == 2)
    }

    @Test func `an estimate that is too low without congestion has to last for two seconds`() {
        var choice = LayerChoice()
        func rank(_ fitting: Int, _ seconds: Double) -> Int {
            choice.rank(from: 2, fitting: fitting, highest: 2, isCongested: false, now: Self.at(seconds))
        }
        #expect(rank(1, 0) == 2)
        #expect(rank(2, 1) == 2)
        #expect(rank(1, 1.5) == 2)
        #expect(rank(1, 3.4) == 2)
        #expect(rank(1, 3.6) == 1)
    }

    @Test func `a smaller view gets a lower layer immediately`() {
        var choice = LayerChoice()
        #expect(choice.rank(from: 2, fitting: 0, highest: 0, isCongested: false, now: Self.at(0)) == 0)
    }

    @Test func `every video gets its lowest layer before any gets a higher one, and priority decides on those`() {
        let video = LinkShares.Video(rates: [100_000, 400_000, 1_600_000])
        var important = video
        important.priority = 5
        func ranks(_ target: Double, _ videos: [LinkShares.Video]) -> [Int] {
            LinkShares.choices(of: target, audio: 100_000, videos: videos).map(\.rank)
        }
        #expect(ranks(400_000, [video, important]) == [0, 0])
        #expect(ranks(850_000, [video, important]) == [0, 1])
        #expect(ranks(1_150_000, [video, important]) == [1, 1])
        #expect(ranks(2_350_000, [video, important]) == [0, 2])
        #expect(ranks(5_000_000, [video, important]) == [2, 2])
        // A link that does not carry the lowest layers shares what it has.
        let narrow = LinkShares.choices(of: 250_000, audio: 100_000, videos: [video, important])
        #expect(narrow == [.init(rank: 0, share: 75_000), .init(rank: 0, share: 75_000)])
    }

    @Test func `a present layer stays with less than a new one needs`() {
        var video = LinkShares.Video(rates: [100_000, 400_000])
        func rank(_ target: Double) -> Int { LinkShares.choices(of: target, audio: 0, videos: [video])[0].rank }
        #expect(rank(450_000) == 0)
        video.current = 1
        #expect(rank(450_000) == 1)
        #expect(rank(370_000) == 0)
    }

    @Test func `an elastic layer begins with 60 percent of its rate, and goes on with half`() {
        var video = LinkShares.Video(rates: [100_000, 400_000, 1_600_000], isElastic: true)
        func choice(_ target: Double) -> LinkShares.Choice {
            LinkShares.choices(of: target, audio: 0, videos: [video])[0]
        }
        #expect(choice(950_000) == .init(rank: 1))
        #expect(choice(970_000) == .init(rank: 2, share: 970_000))
        #expect(choice(1_990_000) == .init(rank: 2, share: 1_990_000))
        #expect(choice(2_010_000) == .init(rank: 2))
        video.current = 2
        #expect(choice(810_000) == .init(rank: 2, share: 810_000))
        #expect(choice(790_000) == .init(rank: 1))
    }

    @Test func `a layer is silent if others deliver, and counts again after a second`() {
        var delivery = LayerDelivery()
        func isSilent(_ last: Double, _ others: Double, _ now: Double, isWanted: Bool = true) -> Bool {
            delivery.update(isWanted: isWanted, last: Self.at(last), others: Self.at(others), now: Self.at(now))
            return delivery.isSilent
        }
        #expect(!isSilent(0, 0, 0))
        // All of them rest.
        #expect(!isSilent(0, 0, 5))
        #expect(!isSilent(5, 5.4, 5.4))
        #expect(isSilent(5, 5.6, 5.6))
        #expect(isSilent(6, 6, 6))
        #expect(isSilent(6.9, 6.9, 6.9))
        #expect(!isSilent(7.1, 7.1, 7.1))
        // One that nobody wants is not silent, and has three seconds to begin.
        #expect(!isSilent(7.1, 20, 20, isWanted: false))
        #expect(!isSilent(7.1, 21, 21))
        #expect(!isSilent(7.1, 23, 23))
        #expect(isSilent(7.1, 24.1, 24.1))
    }
}
