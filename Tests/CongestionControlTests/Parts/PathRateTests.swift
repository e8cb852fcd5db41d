import CongestionControl
import Testing

struct PathRateTests {
    @Test func `a path carries the headers too`() {
        // 25 frames/s of 4 kB: 4 packets each, with 67 bytes of headers.
        #expect(abs(PathRate.ofMedia(800_000) - 855_000) < 10_000)
        #expect(abs(PathRate.media(onPath: PathRate.ofMedia(800_000)) - 800_000) < 1)
        #expect(PathRate.media(onPath: 1000) == 0)
    }
}
