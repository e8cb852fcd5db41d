import RTP
import RoomProtocol
import Synchronization
import TestSupport
import Testing

@testable import RoomSimulation

/// The attributes of streams, which their publisher changes at any time.
struct AttributeTests {
    private static func attributes(_ client: SimulatedClient) -> [StreamAttributes] { client.streams.map(\.attributes) }

    @Test(arguments: [1, 3])
    func `others see the attributes of a stream, also those that join later and on other loops`(
        loops: Int
    ) throws {
        let simulation = Simulation(seed: 1, loops: loops, spreadsRooms: loops > 1)
        let ada = simulation.client("ada")
        let others = ["grace", "hopper"].map { simulation.client($0) }
        let late = ["late", "later"].map { simulation.client($0) }
        let wanted = StreamAttributes(extraValue: "screen", isActive: false, isAlwaysOn: true, sort: "5 fit")
        simulation.task {
            for client in [ada] + others { try await client.join("kitchen") }
            let video = try await ada.publish()
            for client in others { try await client.wait { Self.attributes($0) == [StreamAttributes()] } }
            ada.change(video, StreamChange(wanted, state: nil))
            for client in others { try await client.wait { Self.attributes($0) == [wanted] } }
            for client in late {
                try await client.join("kitchen")
                try await client.wait { Self.attributes($0) == [wanted] }
            }
            ada.change(video, StreamChange(isActive: true))
            ada.setWaiting("camera unplugged", video)
            for client in others + late {
                try await client.wait { $0.streams.allSatisfy { $0.attributes.isActive && $0.waiting != nil } }
            }
        }
        try simulation.run(for: .seconds(20))
        var last = wanted
        last.isActive = true
        #expect((others + late).map(Self.attributes) == Array(repeating: [last], count: 4))
        simulation.end()
    }

    @Test func `attributes outlast the server`() throws {
        let simulation = Simulation(seed: 2)
        let (ada, grace) = (simulation.client("ada"), simulation.client("grace"))
        let wanted = StreamAttributes(extraValue: "screen", isActive: false, sort: "5 fit")
        simulation.task {
            for client in [ada, grace] { try await client.join("kitchen") }
            let video = try await ada.publish()
            ada.change(video, StreamChange(extraValue: "screen"))
            try await grace.wait { $0.streams.first?.attributes.extraValue == "screen" }
            simulation.killServer()
            ada.change(video, StreamChange(isActive: false))
            try await simulation.sleep(for: .seconds(3))
            simulation.startServer()
            try await ada.wait { $0.returns.rejoined == 1 }
            // By the id that it had before.
            ada.change(video, StreamChange(sort: "5 fit"))
            try await grace.wait { Self.attributes($0) == [wanted] }
        }
        try simulation.run(for: .seconds(60))
        #expect(Self.attributes(grace) == [wanted])
        simulation.end()
    }

    /// The attributes that a publisher wants.
    private final class Wish: Sendable {
        private let value = Mutex((attributes: StreamAttributes(), waiting: String?.none))

        var attributes: StreamAttributes { value.withLock { $0.attributes } }
        var waiting: String? { value.withLock { $0.waiting } }

        func change(_ change: StreamChange) { value.withLock { $0.attributes.apply(change) } }

        func wait(_ reason: String?) { value.withLock { $0.waiting = reason } }
    }

    @Test(arguments: 0..<Soak.rounds(4, soak: 40))
    func `all clients see the same after changes and cuts at random times`(part: Int) throws {
        for seed in 1...UInt64(Soak.rounds(10, soak: 50)) { try converge(seed: UInt64(part) * 1000 + seed) }
    }

    private func converge(seed: UInt64) throws {
        var random = Seeded(seed)
        let loops = Int.random(in: 1...3, using: &random)
        let simulation = Simulation(seed: seed, loops: loops, spreadsRooms: loops > 1)
        let clients = (0..<4).map { simulation.client("\($0)", link: $0.isMultiple(of: 2) ? .wifi : .cellular) }
        let wishes = clients.map { _ in Wish() }
        let video = VideoFormat(framesPerSecond: 1)
        simulation.task {
            var random = Seeded(seed + 1_000_000)
            for client in clients { try await client.join("kitchen") }
            for client in clients[..<2] { try await client.publish(video) }
            for _ in 0..<Int.random(in: 4...24, using: &random) {
                let index = Int.random(in: 0..<2, using: &random)
                let client = clients.randomElement(using: &random) ?? clients[0]
                switch Int.random(in: 0..<8, using: &random) {
                case 0: client.dropSignalling(serverLearns: .random(using: &random))
                case 1: Self.wait(.random(using: &random) ? "no camera" : nil, clients[index], wishes[index])
                case 2: try await simulation.sleep(for: .milliseconds(.random(in: 0...1500, using: &random)))
                default: Self.change(Self.anyChange(using: &random), clients[index], wishes[index])
                }
                try await simulation.sleep(for: .milliseconds(.random(in: 0...60, using: &random)))
            }
        }
        try simulation.run(for: .seconds(60))
        for client in clients {
            for (publisher, wish) in zip(clients, wishes).prefix(2) where publisher !== client {
                let seen = client.streams.filter { $0.participant == publisher.participant }
                #expect(seen.map(\.attributes) == [wish.attributes], "seed \(seed)")
                #expect(seen.map(\.waiting) == [wish.waiting], "seed \(seed)")
            }
        }
        simulation.end()
    }

    private static func wait(_ reason: String?, _ client: SimulatedClient, _ wish: Wish) {
        wish.wait(reason)
        for stream in client.published { client.setWaiting(reason, stream) }
    }

    private static func change(_ change: StreamChange, _ client: SimulatedClient, _ wish: Wish) {
        wish.change(change)
        for stream in client.published { client.change(stream, change) }
    }

    private static func anyChange(using random: inout Seeded) -> StreamChange {
        switch Int.random(in: 0..<4, using: &random) {
        case 0: StreamChange(isActive: .random(using: &random))
        case 1: StreamChange(isAlwaysOn: .random(using: &random))
        case 2: StreamChange(extraValue: "\(Int.random(in: 0...9, using: &random))")
        default: StreamChange(extraValue: "both", sort: "\(Int.random(in: 0...9, using: &random)) fit")
        }
    }
}
