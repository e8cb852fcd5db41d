import MediaGraph
import RTP
import Testing

@testable import ClientCore

/// A video of 1280x720 in three layers, whose share changes as the test says. Time is virtual.
@Suite struct LayerShareTests {
    private static let wishes: [VideoLayer: Int] = [.quarter: 300_000, .half: 1_000_000, .full: 2_200_000]

    private struct Video {
        var shares = LayerShares()
        var layers = VideoLayer.allCases.map { LayerShares.Layer(layer: $0, wish: wishes[$0] ?? 0) }
        var now = MonotonicTime(nanoseconds: 1_000_000_000)
        var verdicts: [LayerShares.Verdict] = []

        /// The layers that are on, as `qhf`.
        var on: String {
            zip(layers, verdicts).reduce(into: "") { text, one in
                if case .on = one.1 { text += one.0.layer.rid }
            }
        }

        /// Twice a second, as a session does.
        mutating func run(_ seconds: Double, share: Int?, most: Int? = nil) {
            for _ in 0..<Int(max(1, seconds * 2)) {
                verdicts = shares.split(share, most: most, among: layers, now: now)
                now = now + .milliseconds(500)
            }
        }

        subscript(layer: VideoLayer) -> LayerShares.Layer {
            get { layers[VideoLayer.allCases.firstIndex(of: layer) ?? 0] }
            set { layers[VideoLayer.allCases.firstIndex(of: layer) ?? 0] = newValue }
        }
    }

    @Test func `without a limit, all layers are on`() {
        var video = Video()
        video.run(1, share: nil)
        #expect(video.verdicts == [.on(nil), .on(nil), .on(nil)])
    }

    @Test(arguments: [
        (100_000, "q"), (790_000, "q"), (810_000, "qh"), (2_390_000, "qh"), (2_410_000, "qhf"), (9_000_000, "qhf"),
    ])
    func `a further layer needs half of its wish, after those below have theirs`(share: Int, on: String) {
        var video = Video()
        video.run(1, share: share)
        #expect(video.on == on)
    }

    @Test func `lower layers get their wish, and the highest one that is on gets the rest`() {
        var video = Video()
        video.run(1, share: 900_000)
        #expect(video.verdicts == [.on(300_000), .on(600_000), .off(.network)])
        video.run(0, share: 2_300_000)
        #expect(video.verdicts[1] == .on(2_000_000), "the path stays in use")
    }

    @Test func `a layer that lacks bits is off after two seconds, and on again after five with a margin`() {
        var video = Video()
        video.run(1, share: 3_000_000)
        video.run(1.5, share: 2_300_000)
        #expect(video.on == "qhf", "a wavering link changes nothing")
        video.run(1, share: 3_000_000)
        video.run(3, share: 2_300_000)
        #expect(video.on == "qh")
        video.run(30, share: 2_500_000)
        #expect(video.on == "qh", "enough, but without a margin")
        video.run(4.5, share: 2_800_000)
        #expect(video.on == "qh")
        video.run(1.5, share: 2_800_000)
        #expect(video.on == "qhf")
    }

    @Test func `after nothing could be sent, an estimate that begins low costs no layer`() {
        var video = Video()
        video.run(10, share: 9_000_000)
        video.run(20, share: 0)
        video.run(4, share: 500_000)
        video.run(1, share: 9_000_000)
        #expect(video.on == "qhf")
    }

    @Test func `layers that fell after nothing could be sent return soon`() {
        var video = Video()
        video.run(10, share: 9_000_000)
        video.run(20, share: 0)
        video.run(12, share: 500_000)
        #expect(video.on == "q")
        video.run(4, share: 9_000_000)
        #expect(video.on == "qhf")
    }

    @Test func `a layer that relapses comes back later each time`() {
        var video = Video()
        video.run(1, share: 3_000_000)
        var waits: [Double] = []
        for _ in 0..<5 {
            video.run(3, share: 2_300_000)
            #expect(video.on == "qh")
            var wait = 0.0
            while video.on == "qh", wait < 100 {
                video.run(0.5, share: 3_000_000)
                wait += 0.5
            }
            waits.append(wait)
        }
        #expect(waits == waits.sorted())
        #expect(waits[0] < 6 && waits[1] > 9 && waits[4] > 39 && waits[4] < 45)
    }

    @Test func `at the start, layers come as soon as the probes show that they fit`() {
        var video = Video()
        video.run(0.5, share: 300_000)
        #expect(video.on == "q")
        video.run(1, share: 3_500_000)
        #expect(video.on == "qhf")
    }

    @Test func `while nothing can be sent, no layer is judged`() {
        var video = Video()
        video.run(1, share: 3_500_000)
        video.run(20, share: 0)
        #expect(video.on == "qhf")
        #expect(video.verdicts == [.on(0), .on(0), .on(0)])
    }

    @Test func `layers that nobody watches are off, and their bits go to the others`() {
        var video = Video()
        video[.quarter].isWatched = false
        video[.half].isWatched = false
        video.run(1, share: 400_000)
        #expect(video.verdicts == [.off(.subscribers), .off(.subscribers), .on(400_000)])
        #expect(video.shares.demand(of: video.layers) == 2_200_000)
        for layer in VideoLayer.allCases { video[layer].isWatched = false }
        video.run(1, share: 400_000)
        #expect(video.on == "")
        #expect(video.shares.demand(of: video.layers) == 0)
    }

    @Test func `what the best link of a viewer carries is for each layer, and is worth probes up to that`() {
        var video = Video()
        video.run(1, share: 9_000_000, most: 1_500_000)
        #expect(video.verdicts == [.on(300_000), .on(1_000_000), .on(1_500_000)])
        #expect(video.shares.demand(of: video.layers, most: 1_500_000) == 2_800_000)
        video.run(1.5, share: 9_000_000, most: 900_000)
        #expect(video.on == "qhf")
        video.run(1, share: 9_000_000, most: 900_000)
        #expect(video.verdicts == [.on(300_000), .on(900_000), .off(.network)])
        #expect(video.shares.demand(of: video.layers, most: 900_000) == 1_200_000)
        video.run(6, share: nil, most: nil)
        #expect(video.verdicts == [.on(nil), .on(nil), .on(nil)], "also where nothing measures the own link")
    }

    @Test func `the demand includes the next layer`() {
        var video = Video()
        video.run(1, share: 400_000)
        #expect(video.shares.demand(of: video.layers) == 1_300_000)
        video.run(1, share: 900_000)
        #expect(video.shares.demand(of: video.layers) == 3_500_000)
    }

    @Test func `a processor that is too slow loses the highest layer first, and gets it back when it has room`() {
        var video = Video()
        video.run(1, share: 4_000_000)
        video[.full].isOverloaded = true
        video.run(3, share: 4_000_000)
        #expect(video.verdicts[2] == .off(.processor))
        #expect(video.on == "qh")
        #expect(
            video.shares.demand(of: video.layers) == 1_300_000, "no probe for a layer that the machine cannot encode")
        video[.full].isOverloaded = false
        video[.half].load = 0.3
        video.run(60, share: 4_000_000)
        #expect(video.on == "qh", "four times the pixels would need 120 %")
        video[.half].load = 0.15
        video.run(9, share: 4_000_000)
        #expect(video.on == "qh")
        video.run(2, share: 4_000_000)
        #expect(video.on == "qhf")
    }

    @Test func `overload while a lower layer was watched does not keep the others off for good`() {
        var video = Video()
        video.run(1, share: 4_000_000)
        video[.full].isOverloaded = true
        video.run(3, share: 4_000_000)
        video[.half].isOverloaded = true
        video.run(3, share: 4_000_000)
        #expect(video.on == "q")
        for layer in VideoLayer.allCases { video[layer].isOverloaded = false }
        video[.quarter].isWatched = false
        video[.half].load = 0.1
        video.run(1, share: 4_000_000)
        #expect(video.on == "h")
        video.run(170, share: 4_000_000)
        #expect(video.on == "hf")
    }

    @Test func `the last layer is never off because of network or processor`() {
        var video = Video()
        video.run(1, share: 10_000)
        for layer in VideoLayer.allCases { video[layer].isOverloaded = true }
        video.run(60, share: 10_000)
        #expect(video.on == "q")
    }
}
