import RTP
import RoomSimulation
import Testing

/// The latency that viewers measure, with clocks of which none shows the right time.
struct CaptureTimeTests {
    private func report(
        _ seconds: Int64, publisher: Link = Link(delay: .milliseconds(30)),
        viewer: Link = Link(delay: .milliseconds(45)), loops: Int = 1
    ) throws -> SimulationReport.Viewer {
        let simulation = Simulation(seed: 3, loops: loops, spreadsRooms: loops > 1)
        defer { simulation.end() }
        let ada = simulation.client("ada", link: publisher, wallClock: .seconds(7200))
        let grace = simulation.client("grace", link: viewer, wallClock: .seconds(-86_400))
        simulation.task {
            try await ada.join("kitchen")
            let video = try await ada.publish(VideoFormat(encodingTime: .milliseconds(80)))
            try await grace.join("kitchen")
            try await grace.subscribe(to: video)
        }
        return try #require(try simulation.run(for: .seconds(seconds)).viewers.first)
    }

    private func error(_ viewer: SimulationReport.Viewer) throws -> Double {
        (try #require(viewer.latency) - (try #require(viewer.trueLatency))).milliseconds
    }

    @Test(arguments: [1, 2])
    func `a viewer measures the latency from the capture on, although both clocks are wrong`(loops: Int) throws {
        let viewer = try report(20, loops: loops)
        #expect(viewer.hasCaptureTimes)
        let latency = try #require(viewer.trueLatency).milliseconds
        #expect((155..<156).contains(latency))
        #expect(abs(try error(viewer)) < 0.1)
        #expect(viewer.largestLatencyError < .microseconds(100))
        // All but those of the first reports.
        #expect(viewer.measuredFrames > viewer.shown - 100)
    }

    /// A browser's page aligns sound and video by capture times alone.
    @Test(arguments: [1, 2])
    func `a publisher that sends reports alone gets its capture times from the server`(loops: Int) throws {
        let simulation = Simulation(seed: 3, loops: loops, spreadsRooms: loops > 1)
        defer { simulation.end() }
        let ada = simulation.client("ada", link: Link(delay: .milliseconds(30)), wallClock: .seconds(7200))
        let grace = simulation.client("grace", link: Link(delay: .milliseconds(45)), wallClock: .seconds(-86_400))
        simulation.task {
            try await ada.join("kitchen")
            let video = try await ada.publish(layers: [VideoLayer(width: 320, height: 180, payload: 500)])
            try await grace.join("kitchen")
            try await grace.subscribe(to: video)
        }
        let viewer = try #require(try simulation.run(for: .seconds(20)).viewers.first)
        #expect(viewer.hasCaptureTimes)
        #expect(abs(try error(viewer)) < 1)
    }

    @Test func `the error is half of the difference between the two directions`() throws {
        let publisher = Link(up: .init(delay: .milliseconds(50)), down: .init(delay: .milliseconds(10)))
        #expect(abs(try error(report(20, publisher: publisher)) + 20) < 0.1)
    }

    @Test func `jitter and queues spoil it little`() throws {
        let viewer = try report(60, publisher: .wifi, viewer: .cellular)
        #expect(viewer.hasCaptureTimes)
        #expect(abs(try error(viewer)) < 15)
        #expect(viewer.largestLatencyError < .milliseconds(30))
        #expect(viewer.measuredFrames > viewer.shown - 150)
    }
}
