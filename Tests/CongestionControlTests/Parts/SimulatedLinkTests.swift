import Testing

@Suite struct SimulatedLinkTests {
    @Test
    func `a link that stops keeps its queue`() {
        var settings = SimulatedLink.Settings(rates: [(0, 1000), (1, 0), (2, 1000)], delay: 10)
        settings.queue = 1000
        var link = SimulatedLink(settings, seed: 1)
        _ = link.send(bytes: 1000, at: 0.9)
        let arrivals = (0..<100).map { _ in link.send(bytes: 1000, at: 1.1) }
        #expect(arrivals.allSatisfy { ($0 ?? 0) > 2 })
        #expect(link.dropped == 0)
    }
}
