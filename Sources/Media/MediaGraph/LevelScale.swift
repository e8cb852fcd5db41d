/// Levels of audio as people read them: 0 is silence, 50 to 70 comfortable speech, 100 full scale.
package enum LevelScale {
    /// Levels in decibels below full scale (root mean square), with their values.
    private static let marks: [(decibels: Double, value: Double)] = [(-60, 0), (-30, 50), (-18, 70), (0, 100)]

    /// - Parameter level: in decibels below full scale, root mean square
    package static func value(ofDecibels level: Double) -> Int {
        guard level > marks[0].decibels else { return 0 }
        for (low, high) in zip(marks, marks.dropFirst()) where level < high.decibels {
            let share = (level - low.decibels) / (high.decibels - low.decibels)
            return Int((low.value + share * (high.value - low.value)).rounded())
        }
        return 100
    }
}
