import RTP
import RoomSimulation
import Testing

/// The state of streams whose source goes and returns, as the room sees it.
struct StreamStateTests {
    /// The reason for which each stream waits; nil for a live one.
    private static func reasons(_ client: SimulatedClient) -> [String?] { client.streams.map(\.waiting) }

    @Test(arguments: [1, 2]) func `others see that a stream waits, also those that join later and on the other loop`(
        loops: Int
    ) throws {
        let simulation = Simulation(seed: 1, loops: loops, spreadsRooms: loops > 1)
        let ada = simulation.client("ada")
        let others = ["grace", "hopper"].map { simulation.client($0) }
        let late = ["late", "later"].map { simulation.client($0) }
        simulation.task {
            for client in [ada] + others { try await client.join("kitchen") }
            let video = try await ada.publish()
            for client in others { try await client.wait { Self.reasons($0) == [nil] } }
            ada.setWaiting("camera unplugged", video)
            for client in others { try await client.wait { Self.reasons($0) == ["camera unplugged"] } }
            for client in late {
                try await client.join("kitchen")
                try await client.wait { Self.reasons($0) == ["camera unplugged"] }
            }
            ada.setWaiting(nil, video)
            for client in others + late { try await client.wait { Self.reasons($0) == [nil] } }
        }
        try simulation.run(for: .seconds(20))
        #expect((others + late).map(Self.reasons) == Array(repeating: [nil], count: 4))
        simulation.end()
    }

    @Test(arguments: [1, 2]) func `a state ends with its stream`(loops: Int) throws {
        let simulation = Simulation(seed: 2, loops: loops, spreadsRooms: loops > 1)
        let ada = simulation.client("ada")
        let others = ["grace", "hopper"].map { simulation.client($0) }
        simulation.task {
            for client in [ada] + others { try await client.join("kitchen") }
            let first = try await ada.publish()
            ada.setWaiting("camera unplugged", first)
            for client in others { try await client.wait { Self.reasons($0) == ["camera unplugged"] } }
            try await ada.unpublish(first)
            for client in others { try await client.wait(until: \.streams.isEmpty) }
            ada.setWaiting("too late", first)
            try await ada.publish()
            for client in others { try await client.wait { Self.reasons($0) == [nil] } }
        }
        try simulation.run(for: .seconds(20))
        #expect(others.map(Self.reasons) == [[nil], [nil]])
        simulation.end()
    }

    @Test func `a text that would act on the text around it is refused, and the stream goes on`() throws {
        let simulation = Simulation(seed: 3)
        let ada = simulation.client("ada")
        let grace = simulation.client("grace")
        simulation.task {
            for client in [ada, grace] { try await client.join("kitchen") }
            let video = try await ada.publish()
            try await grace.wait { !$0.streams.isEmpty }
            for text in ["\u{1b}[2J", "a\nb", String(repeating: "x", count: 129)] {
                ada.setWaiting(text, video)
                try await simulation.sleep(for: .seconds(1))
                #expect(Self.reasons(grace) == [nil])
            }
            ada.setWaiting(String(repeating: "x", count: 128), video)
            try await grace.wait { Self.reasons($0)[0]?.count == 128 }
        }
        try simulation.run(for: .seconds(10))
        #expect(ada.isConnected)
        simulation.end()
    }

    @Test func `a source that comes and goes too often is limited, and its last state arrives`() throws {
        let simulation = Simulation(seed: 4)
        let ada = simulation.client("ada")
        let grace = simulation.client("grace")
        simulation.task {
            for client in [ada, grace] { try await client.join("kitchen") }
            let video = try await ada.publish()
            try await grace.wait { !$0.streams.isEmpty }
            simulation.task("grace counts") {
                var seen: [String?] = [nil]
                while seen.last != "the last" {
                    let before = seen.last ?? nil
                    try await grace.wait { Self.reasons($0) != [before] }
                    seen.append(Self.reasons(grace)[0])
                }
                #expect(seen.count > 5 && seen.count <= 23, "\(seen.count) changes")
            }
            // Twenty of these changes are accepted at once, and the next one after half a second.
            for change in 0..<80 {
                ada.setWaiting(change.isMultiple(of: 2) ? "camera unplugged" : nil, video)
                try await simulation.sleep(for: .milliseconds(10))
            }
            ada.setWaiting("the last", video)
        }
        try simulation.run(for: .seconds(20))
        #expect(Self.reasons(grace) == ["the last"])
        simulation.end()
    }

    @Test func `a state survives cuts of both links`() throws {
        let simulation = Simulation(seed: 5)
        let ada = simulation.client("ada", link: .wifi)
        let grace = simulation.client("grace", link: .cellular)
        simulation.task {
            for client in [ada, grace] { try await client.join("kitchen") }
            let video = try await ada.publish()
            try await grace.wait { !$0.streams.isEmpty }
            for client in [ada, grace] { client.cut() }
            ada.setWaiting("camera unplugged", video)
            try await simulation.sleep(for: .seconds(3))
            for client in [ada, grace] { client.reconnect() }
            try await grace.wait { Self.reasons($0) == ["camera unplugged"] }
        }
        try simulation.run(for: .seconds(20))
        #expect(Self.reasons(grace) == ["camera unplugged"])
        simulation.end()
    }
}
