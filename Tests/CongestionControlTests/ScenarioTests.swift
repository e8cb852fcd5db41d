import Testing

/// Judges a call by its bands, and prints its values. docs/congestion-control.md has them all.
private func judge(_ scenario: Scenario) {
    func text(_ value: Double) -> String {
        let hundredths = Int((value * 100).rounded())
        if value >= 10 || hundredths % 100 == 0 { return String(Int(value.rounded())) }
        return "\(hundredths / 100).\(hundredths % 100 < 10 ? "0" : "")\(hundredths % 100)"
    }
    func text(_ range: ClosedRange<Double>) -> String { "\(text(range.lowerBound))-\(text(range.upperBound))" }

    let call = scenario.make().run(until: scenario.seconds)
    for band in scenario.bands {
        let value = band.value(call)
        let goal = band.goal.map { "goal \(text($0)) \($0.contains(value) ? "met" : "missed")" } ?? "no goal"
        print("| \(scenario) | \(band.name) | \(text(band.range)) | \(text(value)) | \(goal) |")
        withKnownIssue {
            #expect(band.range.contains(value), "\(band.name): \(value), not in \(band.range)")
        } when: {
            band.isMissed
        }
    }
}

/// Calls on virtual time, judged by bands.
@Suite struct ScenarioTests {
    @Test("The bands of GoogCC's own tests hold", arguments: Scenario.googleUnit)
    func googleUnit(_ scenario: Scenario) { judge(scenario) }

    @Test("The bands of libwebrtc's tests between peers hold", arguments: Scenario.peers)
    func peers(_ scenario: Scenario) { judge(scenario) }

    @Test("One flow follows a link that changes", arguments: Scenario.single)
    func single(_ scenario: Scenario) { judge(scenario) }

    @Test("Large frames of a film do not lower the rate for long", arguments: Scenario.films)
    func films(_ scenario: Scenario) { judge(scenario) }

    @Test("The rate returns after an outage", arguments: Scenario.outages)
    func outages(_ scenario: Scenario) { judge(scenario) }
}

/// Long calls, with several flows or on links of phones.
@Suite struct ScenarioSoak {
    @Test("Flows share a link", arguments: Scenario.several)
    func several(_ scenario: Scenario) { judge(scenario) }

    @Test("Links of phones", arguments: Scenario.cellular(seeds: 1..<4, seconds: 60))
    func cellular(_ scenario: Scenario) { judge(scenario) }
}
