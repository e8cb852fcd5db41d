import RTP
import RoomSimulation
import Testing

/// A bound that no test ever sees exceeded may measure nothing.
struct BoundsTests {
    enum Bound: String, CaseIterable {
        case firstFrame, freeze, keyframe, lastFrame, memory

        func setToZero(in bounds: inout RoomBounds) {
            switch self {
            case .firstFrame: bounds.firstFrame = .zero
            case .freeze: bounds.freeze = .zero
            case .keyframe: bounds.keyframe = .zero
            case .lastFrame: bounds.lastFrame = .zero
            case .memory: bounds.memory = 0
            }
        }
    }

    @Test(arguments: Bound.allCases) func `a room fails at a bound of zero, and names it`(bound: Bound) {
        var room = FaultyRoom()
        room.clients = 3
        room.duration = .seconds(38)
        bound.setToZero(in: &room.bounds)
        // A wait for a keyframe that is longer than round trips takes some faults.
        var problems: [String] = []
        for seed in UInt64(1)...10 where problems.isEmpty {
            do throws(SimulationFailure) {
                _ = try room.run(seed: seed)
            } catch {
                problems.append(error.problem)
            }
        }
        #expect(problems.first?.contains("the bound '\(bound.rawValue)'") == true, "\(problems)")
    }

    @Test func `a report has the longest waits that bounds judge, and the memory of packets`() throws {
        var room = FaultyRoom()
        room.clients = 4
        room.links = [.cellular]
        let extremes = try room.run(seed: 3).extremes
        #expect(extremes.firstFrame > .milliseconds(100))
        #expect(extremes.freeze > .milliseconds(100))
        #expect(extremes.memoryBytes > 4 * 64 * 1024)
        #expect(extremes.memory > 0)
    }

    @Test func `a link's queue and all bytes are reported`() throws {
        let simulation = Simulation(seed: 5)
        let slow = Link(
            up: .init(delay: .milliseconds(5), rate: 1_000_000), down: .init(delay: .milliseconds(5), rate: 1_000_000))
        let ada = simulation.client("ada", link: slow)
        let grace = simulation.client("grace")
        simulation.task {
            try await ada.join("kitchen")
            let video = try await ada.publish(VideoFormat(packetsPerKeyframe: 20, payload: 1000))
            try await grace.join("kitchen")
            try await grace.subscribe(to: video)
        }
        let report = try simulation.run(for: .seconds(3))
        // The publisher spreads the 20 kB of its keyframe over time.
        #expect(report.deepestQueue > 2000 && report.deepestQueue < 15_000)
        #expect(report.bytes > 75 * 1000)
    }
}
