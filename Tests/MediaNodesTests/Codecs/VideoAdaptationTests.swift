import Glibc
import MediaGraph
import TestSupport
import Testing

@testable import MediaNodes

/// A source whose frames an adaptation follows, on virtual time.
private struct AdaptedVideo {
    var adaptation: VideoAdaptation
    private(set) var milliseconds = 0
    /// The steps that were taken, with their times in seconds.
    private(set) var changes: [(at: Double, step: VideoAdaptation.Step)] = []
    /// Seconds to encode a frame of the source's size.
    var seconds = 0.0
    let wish: Int
    let framesPerSecond: Int

    init(
        _ policy: Degradation = .motion, _ width: Int = 1280, _ height: Int = 720, at framesPerSecond: Int = 25,
        wish: Int = 2_000_000
    ) {
        adaptation = VideoAdaptation(policy)
        adaptation.setSource(width: width, height: height, framesPerSecond: Double(framesPerSecond))
        (self.wish, self.framesPerSecond) = (wish, framesPerSecond)
    }

    var now: MediaTime { MediaTime(nanoseconds: 1_000_000_000_000 + UInt64(milliseconds) * 1_000_000) }

    var size: String {
        adaptation.size.map { "\($0.width)x\($0.height)" } ?? "full"
    }

    /// Lets frames pass for so many seconds, each with a limit. `exceeding` is true for the number of a frame that is
    /// skipped.
    mutating func pass(
        seconds: Double, limit: (Double) -> Int?, dropping: Bool = false, exceeding: (Int) -> Bool = { _ in false }
    ) {
        let frames = Int(seconds * Double(framesPerSecond))
        for index in 0..<frames {
            milliseconds += 1000 / framesPerSecond
            let before = adaptation.current
            adaptation.captured(
                at: now, wish: wish, limit: limit(Double(index) / Double(framesPerSecond)),
                isExceeding: exceeding(index))
            if dropping, index.isMultiple(of: 3) { adaptation.dropped() }
            adaptation.encoded(in: self.seconds * adaptation.current.work)
            if adaptation.current != before { changes.append((Double(milliseconds) / 1000, adaptation.current)) }
        }
    }

    mutating func pass(seconds: Double, limit: Int?) { pass(seconds: seconds, limit: { _ in limit }) }
}

@Suite struct VideoAdaptationTests {
    @Test func `the bitrate falls first, down to a third`() {
        var video = AdaptedVideo()
        video.pass(seconds: 30, limit: 670_000)
        #expect(video.changes.isEmpty)
        video.pass(seconds: 3, limit: 650_000)
        #expect(video.size == "960x540")
    }

    @Test func `after nothing could be sent, an estimate that begins low costs no size`() {
        var video = AdaptedVideo()
        video.pass(seconds: 10, limit: 3_000_000)
        video.pass(seconds: 20, limit: 0)
        video.pass(seconds: 5) { 100_000 + Int($0 * 60_000) }
        video.pass(seconds: 30, limit: 3_000_000)
        #expect(video.changes.isEmpty, "\(video.changes)")
    }

    @Test func `a network that carries less after nothing could be sent lowers the size, which returns soon`() {
        var video = AdaptedVideo()
        video.pass(seconds: 10, limit: 3_000_000)
        video.pass(seconds: 20, limit: 0)
        video.pass(seconds: 12, limit: 100_000)
        #expect(video.size == "320x180")
        video.pass(seconds: 6, limit: 3_000_000)
        #expect(video.size == "full")
    }

    @Test(arguments: [
        (660_000, "960x540"), (400_000, "640x360"), (200_000, "480x270"), (100_000, "320x180"), (60_000, "240x134"),
        (10_000, "160x90"),
    ])
    func `motion keeps the rate, and its size is as large as the network carries`(limit: Int, size: String) {
        var video = AdaptedVideo(.motion)
        video.pass(seconds: 3, limit: limit)
        #expect(video.size == size)
        #expect(limit == 10_000 || video.adaptation.current.frames == 1)
        #expect(video.changes.count == 1)
    }

    @Test func `detail keeps the size, and its rate falls`() {
        var video = AdaptedVideo(.detail)
        video.pass(seconds: 3, limit: 340_000)
        #expect(video.size == "full" && video.adaptation.current.frames == 1.0 / 2)
        video.pass(seconds: 3, limit: 10_000)
        #expect(video.size == "full" && video.adaptation.current.frames == 1.0 / 6)
    }

    @Test func `balanced lowers rate and size in turn, and keeps ten frames a second while the size can fall`() {
        let steps = VideoAdaptation.steps(.balanced, 1280, 720, 24)
        #expect(steps[1] == .init(frames: 3.0 / 4))
        #expect(steps[2] == .init(size: 24, frames: 3.0 / 4))
        #expect(steps[3] == .init(size: 24, frames: 1.0 / 2))
        #expect(steps[4] == .init(size: 16, frames: 1.0 / 2))
        #expect(steps[5] == .init(size: 12, frames: 1.0 / 2))
        for step in steps where step.frames * 24 < 10 { #expect(step.size == 4) }
    }

    @Test(arguments: Degradation.allCases)
    func `each step needs less than the one before`(policy: Degradation) {
        for (width, height, rate) in [
            (1920, 1080, 30.0), (1280, 720, 24), (640, 480, 20), (480, 640, 15), (160, 90, 5),
        ] {
            let steps = VideoAdaptation.steps(policy, width, height, rate)
            #expect(steps[0] == .init())
            #expect(zip(steps, steps.dropFirst()).allSatisfy { $0.need > $1.need && $0.work > $1.work })
        }
    }

    @Test func `sizes are even and keep their shape`() {
        for (width, height) in [(1280, 720), (1920, 1080), (640, 480), (854, 480), (481, 641), (1366, 768)] {
            var video = AdaptedVideo(.motion, width, height)
            for limit in [500_000, 250_000, 120_000, 60_000, 10_000] {
                video.pass(seconds: 3, limit: limit)
                guard let size = video.adaptation.size else { continue }
                #expect(size.width.isMultiple(of: 2) && size.height.isMultiple(of: 2))
                let shape = Double(size.width) * Double(height) / (Double(size.height) * Double(width))
                #expect(abs(shape - 1) < 0.03, "\(size)")
                #expect(size.width * size.height >= 160 * 90)
            }
        }
    }

    @Test func `a network that carries too little for less than two seconds changes nothing`() {
        var video = AdaptedVideo()
        for _ in 0..<20 {
            video.pass(seconds: 1.9, limit: 100_000)
            video.pass(seconds: 0.5, limit: 2_000_000)
        }
        #expect(video.changes.isEmpty)
    }

    @Test func `the size falls after two seconds, and rises after five with a margin`() throws {
        var video = AdaptedVideo()
        video.pass(seconds: 10, limit: 400_000)
        #expect(try #require(video.changes.first).at <= 2.1)
        // 960x540 needs 433 kbit/s, and 563 with the margin.
        video.pass(seconds: 60, limit: 540_000)
        #expect(video.changes.count == 1)
        let before = Double(video.milliseconds) / 1000
        video.pass(seconds: 10, limit: 600_000)
        #expect(video.size == "960x540")
        #expect((5...5.2).contains(try #require(video.changes.last).at - before))
        video.pass(seconds: 10, limit: nil)
        #expect(!video.adaptation.isLimited)
    }

    @Test func `the size rises by half of the way at a time, the first time after five seconds and then after two`() {
        var video = AdaptedVideo()
        video.pass(seconds: 3, limit: 100_000)
        #expect(video.size == "320x180")
        for (seconds, size) in [(5.1, "640x360"), (2.1, "960x540"), (2.1, "full")] {
            video.pass(seconds: seconds, limit: 2_000_000)
            #expect(video.size == size)
        }
    }

    @Test func `the size rises no further than the network has carried all the time`() {
        var video = AdaptedVideo()
        video.pass(seconds: 3, limit: 100_000)
        video.pass(seconds: 30) { $0.truncatingRemainder(dividingBy: 1) < 0.5 ? 2_000_000 : 380_000 }
        #expect(video.size == "640x360")
    }

    @Test(arguments: Degradation.allCases)
    func `a network that has become another one is used within fifteen seconds, whatever fell before`(
        policy: Degradation
    ) {
        var video = AdaptedVideo(policy, 640, 360, wish: 900_000)
        // Each rise fails.
        for _ in 0..<4 {
            video.pass(seconds: 45, limit: 150_000)
            video.pass(seconds: 3, limit: 40_000)
        }
        #expect(video.adaptation.isLimited)
        video.pass(seconds: 15, limit: 3_000_000)
        #expect(!video.adaptation.isLimited, "\(video.changes.suffix(5))")
    }

    @Test func `a network that carries less for a moment delays a rise`() {
        var video = AdaptedVideo()
        video.pass(seconds: 3, limit: 400_000)
        for _ in 0..<10 {
            video.pass(seconds: 4.8, limit: 2_000_000)
            video.pass(seconds: 0.1, limit: 500_000)
        }
        #expect(video.size == "640x360")
    }

    @Test func `a size that falls again soon rises later each time`() {
        var video = AdaptedVideo()
        video.pass(seconds: 3, limit: 400_000)
        var waits: [Double] = []
        for _ in 0..<5 {
            let before = Double(video.milliseconds) / 1000
            let count = video.changes.count
            while video.changes.count == count { video.pass(seconds: 0.2, limit: 600_000) }
            waits.append((Double(video.milliseconds) / 1000 - before).rounded())
            video.pass(seconds: 3, limit: 400_000)
        }
        #expect(waits == [5, 10, 20, 40, 40])
        // After a while, it is as patient as at first.
        while video.size != "960x540" { video.pass(seconds: 1, limit: 600_000) }
        video.pass(seconds: 60, limit: 600_000)
        video.pass(seconds: 3, limit: 400_000)
        video.pass(seconds: 6, limit: 600_000)
        #expect(video.size == "960x540")
    }

    @Test(arguments: Degradation.allCases)
    func `a network that wavers by a tenth does not make the video waver`(policy: Degradation) {
        var random = Seeded(7)
        for mean in stride(from: 50_000.0, through: 2_500_000, by: 45_000) {
            var video = AdaptedVideo(policy)
            video.pass(seconds: 120, limit: { _ in Int(mean * Double.random(in: 0.9...1.1, using: &random)) })
            // At its start and once more, where a step is in the middle of the noise.
            #expect(video.changes.count <= 2, "\(policy) at \(Int(mean))")
        }
    }

    @Test func `a network that jumps changes the video seldom, and never to more than it carries for long`() {
        for seed in 1...30 {
            var random = Seeded(UInt64(seed))
            var video = AdaptedVideo([.motion, .detail, .balanced][seed % 3])
            for _ in 0..<60 {
                let rate = exp2(Double.random(in: 16...21.5, using: &random))
                let length = Double.random(in: 0.5...15, using: &random)
                video.pass(seconds: length, limit: Int(rate))
                guard length > 2.2, video.adaptation.size != nil else { continue }
                let need = Double(video.wish) / 3 * video.adaptation.current.need
                let isLeast = video.adaptation.current == video.leastStep
                #expect(isLeast || need <= rate * 1.01, "seed \(seed)")
            }
            #expect(Double(video.changes.count) < Double(video.milliseconds) / 3000, "seed \(seed)")
        }
    }

    @Test func `nothing changes while nothing can be sent`() {
        var video = AdaptedVideo()
        video.pass(seconds: 30, limit: 0)
        #expect(video.changes.isEmpty)
        video.pass(seconds: 9, limit: 400_000)
        #expect(video.size == "640x360")
        video.pass(seconds: 30, limit: 0)
        #expect(video.size == "640x360")
    }

    @Test func `a scene that needs more bits than the size has gets a smaller size, until it is calm`() {
        var video = AdaptedVideo()
        video.pass(seconds: 2.2, limit: { _ in 900_000 })
        #expect(video.size == "full")
        while video.size == "full", video.milliseconds < 15_000 {
            video.pass(seconds: 0.2, limit: { _ in 900_000 }, exceeding: { !$0.isMultiple(of: 2) })
        }
        #expect(video.size == "960x540")
        video.pass(seconds: 15, limit: { _ in 900_000 })
        #expect(video.size == "960x540")
        video.pass(seconds: 60, limit: { _ in 900_000 })
        #expect(video.size == "full")
    }

    @Test func `frames that are skipped after the limit fell say nothing about the scene`() {
        var video = AdaptedVideo()
        for _ in 0..<10 {
            video.pass(seconds: 3, limit: { _ in 900_000 })
            video.pass(seconds: 3, limit: { _ in 700_000 }, exceeding: { $0 < 40 })
        }
        #expect(video.changes.isEmpty)
    }

    @Test func `the size falls to what the network carried at best meanwhile`() {
        var video = AdaptedVideo()
        video.pass(seconds: 3, limit: { $0 < 1 ? 30_000 : $0 < 1.5 ? 400_000 : 100_000 })
        #expect(video.size == "640x360")
    }

    @Test func `an encoder that is busy for long gets smaller frames, within some seconds`() throws {
        var video = AdaptedVideo()
        video.seconds = 0.041
        video.pass(seconds: 60, limit: nil)
        // 41 of 40 ms; 23 ms at 960x540, from which 41 ms are expected again.
        #expect(video.size == "960x540")
        #expect(video.adaptation.isLimitedByProcessor)
        let first = try #require(video.changes.first)
        #expect(video.changes.count == 1 && (4...4.2).contains(first.at))
        video.seconds = 0.02
        video.pass(seconds: 15, limit: nil)
        #expect(video.size == "full")
    }

    @Test func `frames that are dropped at the encoder count as an overload`() {
        var video = AdaptedVideo(.detail)
        video.pass(seconds: 5, limit: { _ in nil }, dropping: true)
        #expect(video.adaptation.isLimitedByProcessor && video.adaptation.current.frames == 3.0 / 4)
    }

    @Test func `the worse of network and processor counts`() {
        var video = AdaptedVideo()
        video.seconds = 0.045
        video.pass(seconds: 6, limit: nil)
        #expect(video.size == "960x540")
        video.pass(seconds: 3, limit: 200_000)
        #expect(video.size == "480x270" && !video.adaptation.isLimitedByProcessor)
        video.pass(seconds: 20, limit: 2_000_000)
        #expect(video.size == "960x540" && video.adaptation.isLimitedByProcessor)
    }

    @Test func `a consumer that cannot take another size keeps it`() {
        var video = AdaptedVideo()
        for _ in 0..<10 {
            video.adaptation.holdSize(VideoAdaptation.whole, now: video.now)
            video.pass(seconds: 1, limit: 400_000)
        }
        #expect(video.size == "full")
        video.pass(seconds: 6, limit: 400_000)
        #expect(video.size == "640x360")
    }

    @Test func `another policy or source begins at a step of the same need`() {
        var video = AdaptedVideo()
        video.pass(seconds: 3, limit: 400_000)
        video.adaptation.setPolicy(.detail)
        #expect(video.size == "full" && video.adaptation.current.frames == 1.0 / 3)
        video.adaptation.setPolicy(.motion)
        video.adaptation.setSource(width: 1920, height: 1080, framesPerSecond: 25)
        #expect(video.adaptation.isLimited)
    }
}

extension AdaptedVideo {
    fileprivate var leastStep: VideoAdaptation.Step? {
        VideoAdaptation.steps(adaptation.policy, 1280, 720, Double(framesPerSecond)).last
    }
}
