import RTP
import RoomSimulation
import Testing

/// Viewers whose clients neither report arrivals nor estimate their links: receiver reports are all that the server gets.
struct ReportedViewerTests {
    @Test(arguments: 1...2 as ClosedRange<UInt64>)
    func `a narrow link gets the layers that it carries, and a wide one the best layer`(seed: UInt64) throws {
        let stage = LayerTests.Stage(seed: seed, [LayerTests.link(500_000), LayerTests.link(5_000_000)])
        for viewer in stage.viewers { viewer.knowsReportsAlone = true }
        stage.begin()
        let before = try stage.run(20)
        let after = try stage.run(40)
        #expect(stage.layers(in: after)[1] == 2)
        let shown = stage.viewers.map { viewer in
            [after, before].map { report in report.viewers.last { $0.client == viewer.name }?.shown ?? 0 }
        }
        // Without a limit, 1.7 Mbit/s fill the narrow link, and hardly any frame is complete.
        #expect(shown[0][0] - shown[0][1] > 25 * 40 / 2, "\(shown)")
        #expect(shown[1][0] - shown[1][1] > 24 * 40, "\(shown)")
    }
}
