import Testing

/// Calls on virtual time, judged by bands. Each prints its values; docs/congestion-control.md has them all.
@Suite struct ScenarioTests {
    private func judge(_ scenario: Scenario) {
        let call = scenario.make().run(until: scenario.seconds)
        for band in scenario.bands {
            let value = band.value(call)
            let isInside = band.range.contains(value)
            let goal = band.goal.map { $0.contains(value) ? "goal met" : "goal \(text($0)) missed" } ?? "no goal"
            print("| \(scenario) | \(band.name) | \(text(band.range)) | \(text(value)) | \(goal) |")
            #expect(isInside, "\(band.name): \(value), not in \(band.range)")
        }
    }

    private func text(_ range: ClosedRange<Double>) -> String { "\(text(range.lowerBound))-\(text(range.upperBound))" }

    private func text(_ value: Double) -> String {
        let hundredths = Int((value * 100).rounded())
        if value >= 10 || hundredths % 100 == 0 { return String(Int(value.rounded())) }
        return "\(hundredths / 100).\(hundredths % 100 < 10 ? "0" : "")\(hundredths % 100)"
    }

    @Test("The bands of GoogCC's own tests hold", arguments: Scenario.googleUnit)
    func googleUnit(_ scenario: Scenario) { judge(scenario) }

    @Test("The bands of libwebrtc's tests between peers hold", arguments: Scenario.peers)
    func peers(_ scenario: Scenario) { judge(scenario) }

    @Test("The tests of RFC 8867", arguments: Scenario.requirements)
    func requirements(_ scenario: Scenario) { judge(scenario) }

    @Test("The rate returns after an outage", arguments: Scenario.outages)
    func outages(_ scenario: Scenario) { judge(scenario) }

    @Test("Links of phones", arguments: Scenario.cellular(seeds: 1..<2, seconds: 60))
    func cellular(_ scenario: Scenario) { judge(scenario) }
}
