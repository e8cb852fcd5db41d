import Testing

@testable import MediaGraph

@Suite struct LevelScaleTests {
    @Test(
        arguments: [
            (-120, 0), (-60, 0), (-59.4, 1), (-45, 25), (-30, 50), (-24, 60), (-18, 70), (-9, 85), (0, 100), (3, 100),
            (-.infinity, 0), (.nan, 0),
        ] as [(Double, Int)])
    func `comfortable speech is between 50 and 70`(level: Double, value: Int) {
        #expect(LevelScale.value(ofDecibels: level) == value)
    }
}
