import RTP
import RoomProtocol
import Synchronization
import TestSupport
import Testing

@testable import RoomSimulation

/// Texts that the applications of a room send each other.
struct UserMessageTests {
    @Test(arguments: [1, 3])
    func `messages of one sender come in its order, on other loops too, to those that it names`(
        loops: Int
    ) throws {
        let simulation = Simulation(seed: 1, loops: loops, spreadsRooms: loops > 1)
        let clients = (0..<6).map { simulation.client("\($0)") }
        simulation.task {
            for client in clients { try await client.join("kitchen") }
            let odd = [1, 3, 5].compactMap { clients[$0].participant }
            for number in 0..<8 {
                clients[0].send(SendMessage(targets: number.isMultiple(of: 2) ? [] : odd, text: "\(number)"))
                clients[5].send(SendMessage(text: "\(number)", kind: "last"))
            }
        }
        try simulation.run(for: .seconds(5))
        for (index, client) in clients.enumerated() {
            let (first, last) = (
                client.messages.filter { $0.kind == "normal" }, client.messages.filter { $0.kind == "last" }
            )
            let expected = (0..<8).filter { $0.isMultiple(of: 2) || !index.isMultiple(of: 2) }.map(String.init)
            #expect(first.map(\.text) == (index == 0 ? [] : expected))
            #expect(last.map(\.text) == (index == 5 ? [] : (0..<8).map(String.init)))
        }
        simulation.end()
    }

    @Test func `a message waits for the connection, and fails after another join`() throws {
        let simulation = Simulation(seed: 2)
        let (ada, grace) = (simulation.client("ada"), simulation.client("grace"))
        let results = Mutex<[String]>([])
        simulation.task {
            for client in [ada, grace] { try await client.join("kitchen") }
            ada.cutSignalling()
            grace.dropSignalling(serverLearns: false)
            ada.send(SendMessage(text: "before")) { result in results.withLock { $0.append(Self.code(result)) } }
            try await simulation.sleep(for: .seconds(3))
            ada.heal()
            try await grace.wait { $0.messages.count == 1 }
            simulation.killServer()
            ada.send(SendMessage(text: "lost")) { result in results.withLock { $0.append(Self.code(result)) } }
            try await simulation.sleep(for: .seconds(3))
            simulation.startServer()
            try await ada.wait { $0.returns.rejoined == 1 }
            try await grace.wait { $0.returns.rejoined == 1 }
            ada.send(SendMessage(text: "after")) { result in results.withLock { $0.append(Self.code(result)) } }
        }
        try simulation.run(for: .seconds(60))
        #expect(results.withLock { $0 } == ["sent", "1312", "sent"])
        #expect(grace.messages.map(\.text) == ["before", "after"])
        simulation.end()
    }

    @Test
    func `messages that wait out a lost connection keep the server's pace, and those without a place fail at once`()
        throws
    {
        let simulation = Simulation(seed: 3)
        let (ada, grace) = (simulation.client("ada"), simulation.client("grace"))
        let results = Mutex<[String: String]>([:])
        simulation.task {
            for client in [ada, grace] { try await client.join("kitchen") }
            ada.cutSignalling()
            for number in 0..<300 {
                ada.send(SendMessage(text: "\(number)")) { result in
                    results.withLock { $0["\(number)"] = Self.code(result) }
                }
            }
            try await simulation.sleep(for: .seconds(3))
            ada.heal()
            try await grace.wait { $0.messages.count == 72 }
        }
        try simulation.run(for: .seconds(60))
        let failed = results.withLock { $0.values.filter { $0 != "sent" } }
        #expect(failed == Array(repeating: "server.too-many-requests", count: 228))
        #expect(grace.messages.map(\.text) == (0..<72).map(String.init))
        #expect(ada.returns.rejoined == 0 && results.withLock { $0.count } == 300)
        simulation.end()
    }

    @Test func `an application that repeats each refused message at once stays in the room`() throws {
        let simulation = Simulation(seed: 4)
        let (ada, grace) = (simulation.client("ada"), simulation.client("grace"))
        simulation.task {
            for client in [ada, grace] { try await client.join("kitchen") }
            let text = String(repeating: "\"", count: 16 * 1024)
            for _ in 0..<300 {
                for _ in 0..<10 { ada.send(SendMessage(text: text)) }
                try await simulation.sleep(for: .milliseconds(1))
            }
        }
        try simulation.run(for: .seconds(10))
        // One of 32 KiB at once, and then one each 2 s.
        #expect(grace.messages.count >= 3 && ada.participant != nil)
        #expect(ada.returns == (0, 0) && grace.returns == (0, 0))
        simulation.end()
    }

    private static func code(_ result: Result<Void, RoomError>) -> String {
        if case .failure(let error) = result { error.code.name } else { "sent" }
    }

    /// The result of each message, by its text.
    private final class Sent: Sendable {
        private let results = Mutex<[String: String]>([:])

        func note(_ text: String, _ result: String) { results.withLock { $0[text] = result } }

        func result(of text: String) -> String? { results.withLock { $0[text] } }
    }

    @Test(arguments: 0..<Soak.rounds(4, soak: 20))
    func `each message arrives once and in order, whatever connections are lost`(part: Int) throws {
        for seed in 1...UInt64(Soak.rounds(6, soak: 20)) { try talk(seed: UInt64(part) * 1000 + seed) }
    }

    private func talk(seed: UInt64) throws {
        var random = Seeded(seed)
        let loops = Int.random(in: 1...3, using: &random)
        let simulation = Simulation(seed: seed, loops: loops, spreadsRooms: loops > 1)
        let clients = (0..<10).map { simulation.client("\($0)", link: $0.isMultiple(of: 2) ? .wifi : .cellular) }
        let sent = Sent()
        simulation.task {
            var random = Seeded(seed + 1_000_000)
            for client in clients { try await client.join("kitchen") }
            for number in 0..<150 {
                let index = Int.random(in: 0..<10, using: &random)
                if Int.random(in: 0..<10, using: &random) == 0 {
                    clients[index].dropSignalling(serverLearns: .random(using: &random))
                } else {
                    Self.send("\(index) \(number)", by: clients[index], sent)
                }
                try await simulation.sleep(for: .milliseconds(.random(in: 0...60, using: &random)))
            }
        }
        try simulation.run(for: .seconds(40))
        for client in clients {
            for (index, other) in clients.enumerated() where other !== client {
                let expected = (0..<150).map { "\(index) \($0)" }.filter { sent.result(of: $0) == "sent" }
                let heard = client.messages.filter { $0.from == other.participant }.map(\.text)
                #expect(heard == expected, "seed \(seed): \(client.name) of \(index)")
            }
            #expect(client.returns.rejoined == 0, "seed \(seed)")
        }
        let open = (0..<10).flatMap { index in (0..<150).map { "\(index) \($0)" } }
        #expect(open.allSatisfy { sent.result(of: $0) != "open" }, "seed \(seed)")
        simulation.end()
    }

    private static func send(_ text: String, by client: SimulatedClient, _ sent: Sent) {
        sent.note(text, "open")
        client.send(SendMessage(text: text)) { sent.note(text, code($0)) }
    }
}
