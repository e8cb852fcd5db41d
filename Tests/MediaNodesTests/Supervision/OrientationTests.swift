import TestFixtures
import TestSupport
import Testing

@testable import MediaNodes

extension MediaNodesTests {
    /// The sensor that reports how the machine is held.
    @Suite struct OrientationTests {
        @Test
        func `the turn of the machine is reported at first and after each change, also by a service that restarts`()
            async throws
        {
            let sensor = try Fixture.orientationSensor("left-up")
            let turns = Collected<Int>()
            let watch = OrientationWatch(bus: sensor.answer.bus) { turns.append($0) }
            try await requireEventually("the first") { turns.all == [90] }
            for (side, turn) in [("bottom-up", 180), ("right-up", 270), ("undefined", 270), ("normal", 0)] {
                sensor.tell(side)
                try await requireEventually(side) { turns.all.last == turn }
            }
            #expect(turns.all == [90, 180, 270, 0])
            sensor.tell("restart")
            try await requireEventually("the new service") { turns.all == [90, 180, 270, 0, 90] }
            withExtendedLifetime(watch) {}
        }

        @Test func `a sensor that nobody follows reports nothing, and a machine without one is no error`() async throws
        {
            let sensor = try Fixture.orientationSensor()
            let turns = Collected<Int>()
            var watch: OrientationWatch? = OrientationWatch(bus: sensor.answer.bus) { turns.append($0) }
            try await requireEventually("the first") { turns.all == [0] }
            withExtendedLifetime(watch) {}
            watch = nil
            let other = Collected<Int>()
            let second = OrientationWatch(bus: sensor.answer.bus) { other.append($0) }
            try await requireEventually("the second") { other.all == [0] }
            sensor.tell("left-up")
            try await requireEventually("a change") { other.all == [0, 90] }
            #expect(turns.all == [0])
            let none = OrientationWatch(bus: "unix:path=/nowhere") { turns.append($0) }
            withExtendedLifetime((second, none)) {}
        }

        @Test(arguments: [("normal", 0), ("left-up", 90), ("bottom-up", 180), ("right-up", 270), ("undefined", nil)])
        func `each side that is up is a turn`(side: String, turn: Int?) { #expect(OrientationWatch.turn(side) == turn) }
    }
}
