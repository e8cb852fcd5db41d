import TestSupport
import Testing

/// Runs the scenarios on all processors, and judges their values by the bands.
///
/// - Parameter page: must have all of the values
private func judge(_ scenarios: [Scenario], page: String? = nil) async {
    for (scenario, values) in zip(scenarios, await concurrently(scenarios) { $0.values() }) {
        judge(scenario, values)
        for (band, value) in zip(scenario.bands, values) where page?.contains(row(of: band, value)) == false {
            Issue.record("docs/congestion-control.md has no row \(row(of: band, value)) of \(scenario).")
        }
    }
}

private func row(of band: Scenario.Band, _ value: Double) -> String {
    let goal = band.goal.map { "\(text($0)) \($0.contains(value) ? "met" : "missed")" } ?? ""
    return "| \(band.name) | \(text(band.range)) | \(text(value))\(band.isMissed ? " (missed)" : "") | \(goal) |"
}

private func judge(_ scenario: Scenario, _ values: [Double], areMeans: Bool = false) {
    for (band, value) in zip(scenario.bands, values) {
        print("| \(scenario) \(row(of: band, value))")
        withKnownIssue {
            #expect(band.range.contains(value), "\(scenario): \(band.name): \(value), not in \(band.range)")
        } when: {
            areMeans ? band.isMeanMissed : band.isMissed
        }
    }
}

private func text(_ value: Double) -> String {
    let hundredths = Int((value * 100).rounded())
    if value >= 10 || hundredths % 100 == 0 { return String(Int(value.rounded())) }
    return "\(hundredths / 100).\(hundredths % 100 < 10 ? "0" : "")\(hundredths % 100)"
}

private func text(_ range: ClosedRange<Double>) -> String { "\(text(range.lowerBound))-\(text(range.upperBound))" }

/// The results in the order of the elements.
private func concurrently<Element: Sendable, Result: Sendable>(
    _ elements: [Element], _ body: @escaping @Sendable (Element) -> Result
) async -> [Result] {
    await withTaskGroup(of: (Int, Result).self) { group in
        for (index, element) in elements.enumerated() { group.addTask { (index, body(element)) } }
        var results: [Int: Result] = [:]
        for await (index, result) in group { results[index] = result }
        return elements.indices.compactMap { results[$0] }
    }
}

/// Calls on virtual time, judged by bands.
@Suite struct ScenarioTests {
    private let page: String

    init() throws { page = try Checkout.text("docs/congestion-control.md") }

    @Test("The bands of GoogCC's own tests hold")
    func googleUnit() async { await judge(Scenario.googleUnit + Scenario.googleUnitEvents, page: page) }

    @Test("The bands of libwebrtc's tests between peers hold")
    func peers() async { await judge(Scenario.peers, page: page) }

    @Test("One flow follows a link that changes")
    func single() async { await judge(Scenario.single) }

    @Test("Flows share a link")
    func several() async { await judge(Scenario.several(isLong: false)) }

    @Test("Large frames of a film do not lower the rate for long")
    func films() async { await judge(Scenario.films, page: page) }

    @Test("The rate returns after an outage")
    func outages() async { await judge(Scenario.outages, page: page) }

    @Test("Links of phones")
    func cellular() async { await judge(CellularLink.all.map { Scenario.cellular($0, seed: 1) }) }
}

/// The same with seeds after which no constant was chosen: one seed is luck.
@Suite struct ScenarioSoak {
    private static let seeds = Array(Scenario.unseenSeeds)

    private func means(_ values: [[Double]]) -> [Double] {
        (values.first ?? []).indices.map { index in values.reduce(0) { $0 + $1[index] } / Double(values.count) }
    }

    @Test("On average, the bands hold", arguments: Scenario.single + Scenario.several(isLong: true) + Scenario.films)
    func averages(_ scenario: Scenario) async {
        let values = await concurrently(Self.seeds) { scenario.values(seed: $0) }
        judge(scenario, means(values), areMeans: true)
        let plain = means(await concurrently(Self.seeds) { scenario.values(seed: $0, isPlain: true) })
        for (index, band) in scenario.bands.enumerated() {
            let column = values.map { $0[index] }
            let range = text((column.min() ?? 0)...(column.max() ?? 0))
            print("|  | \(band.name) | \(range) on \(column.count) seeds | plain: \(text(plain[index])) |")
        }
    }

    /// The one of 5G carries 2.2 times as much of our video, and freezes it more often.
    @Test(
        "On links of phones, video freezes less than with plain GoogCC, or as at the outages alone",
        arguments: CellularLink.all)
    func cellular(_ link: CellularLink) async {
        func means(isPlain: Bool = false, maximum: Double = 10_000) async -> [Double] {
            let values = await concurrently(Self.seeds) {
                Scenario.cellular(link, seed: $0, maximum: maximum).values(isPlain: isPlain)
            }
            return self.means(values)
        }
        let (own, plain) = await (means(), means(isPlain: true))
        // Video that never fills the link freezes at its outages alone.
        let little = await means(maximum: 200)
        let bands = Scenario.cellular(link, seed: Self.seeds[0]).bands
        for (index, band) in bands.enumerated() {
            let texts = [own, plain, little].map { text($0[index]) }
            print("| \(link.name) | \(band.name) | \(texts[0]) | plain: \(texts[1]) | 200 kbit/s: \(texts[2]) |")
        }
        #expect(own[0] > plain[0], "\(bands[0].name)")
        withKnownIssue {
            for index in bands.indices.suffix(2) {
                #expect(own[index] <= max(plain[index], little[index]), "\(bands[index].name)")
            }
        } when: {
            link.name.hasPrefix("5G")
        }
    }
}
