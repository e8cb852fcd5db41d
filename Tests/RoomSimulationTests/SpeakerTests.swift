import RTP
import RoomProtocol
import TestSupport
import Testing

@testable import RoomSimulation

/// Audio slots in rooms of clients whose packets tell how loud they are.
struct SpeakerTests {
    /// A room in which everyone publishes one audio stream, and speaks by a script.
    private final class Room {
        let simulation: Simulation
        let clients: [SimulatedClient]
        /// The stream of each client.
        private(set) var streams: [Int] = []

        /// - Parameters:
        ///   - script: when each client speaks, in seconds
        ///   - unmeasured: those whose packets have no level
        init(
            _ count: Int, seed: UInt64 = 1, loops: Int = 1, unmeasured: Set<Int> = [],
            speaking script: [Int: [ClosedRange<Double>]]
        ) throws {
            simulation = Simulation(seed: seed, loops: loops, spreadsRooms: loops > 1)
            clients = (0..<count).map { [simulation] in simulation.client("client \($0)", link: .wired) }
            let published = Collected<Int>()
            let begun = MonotonicTime(nanoseconds: 1_000_000_000_000)
            simulation.task { [clients] in
                for (number, client) in clients.enumerated() {
                    try await client.join("kitchen")
                    let times = script[number] ?? []
                    let stream =
                        unmeasured.contains(number)
                        ? try await client.publishAudio()
                        : try await client.publishAudio { now in
                            let seconds = (now - begun).seconds
                            // Words of 400 ms, and a pause.
                            let isWord = Int(seconds * 1000) % 500 < 400
                            return isWord && times.contains { $0.contains(seconds) } ? 25 : 70
                        }
                    published.append(stream)
                }
            }
            try simulation.run(for: .seconds(8))
            streams = published.all
            #expect(streams.count == count)
        }

        func run(_ seconds: Double) throws { try simulation.run(for: .milliseconds(Int64(seconds * 1000))) }

        /// The clients that each client hears.
        var heard: [[Int]] {
            clients.map { client in client.heard.compactMap { streams.firstIndex(of: $0) }.sorted() }
        }

        /// Those that all others hear.
        func everyoneHears(_ speakers: Int...) -> Bool {
            clients.indices.filter { clients[$0].isConnected }.allSatisfy { listener in
                speakers.allSatisfy { $0 == listener || heard[listener].contains($0) }
            }
        }

        var report: SimulationReport { get throws { try simulation.run(for: .milliseconds(20)) } }
    }

    /// 400 ms of speech, up to 100 ms until the next look at it, and the ways there and back. Another loop may add 200 ms.
    @Test(arguments: [1, 3])
    func `a speaker is heard within 600 ms by everyone, and those who only listen hear the same four`(loops: Int) throws
    {
        let room = try Room(8, loops: loops, speaking: [6: [10...14], 7: [12...16], 5: [16...20]])
        defer { room.simulation.end() }
        #expect(room.heard[7] == [0, 1, 2, 3] && room.heard[0] == [1, 2, 3, 4])
        let delay = loops == 1 ? 0.6 : 0.8
        try room.run(2)
        #expect(room.heard[7] == [0, 1, 2, 3])
        try room.run(delay)
        #expect(room.everyoneHears(6))
        try room.run(2)
        #expect(room.everyoneHears(6, 7))
        try room.run(4)
        #expect(room.everyoneHears(5, 6, 7))
        let before = room.heard
        try room.run(10)
        #expect(room.heard == before, "silence changes nothing")
        #expect(before.allSatisfy { $0.count == 4 })
        // Those who have no place hear the same.
        let silent = (0..<5).filter { one in !before.contains { $0.contains(one) } }
        #expect(Set(silent.map { before[$0] }).count <= 1)
    }

    @Test(arguments: [1, 3])
    func `a stream that is muted leaves its slots, and the next one takes them`(loops: Int) throws {
        let room = try Room(6, loops: loops, speaking: [0: [10...11, 20...22]])
        defer { room.simulation.end() }
        try room.run(4)
        room.clients[0].change(room.streams[0], StreamChange(isActive: false))
        try room.run(1)
        #expect(
            room.heard == [[1, 2, 3, 4], [2, 3, 4, 5], [1, 3, 4, 5], [1, 2, 4, 5], [1, 2, 3, 5], [1, 2, 3, 4]])
        room.clients[0].change(room.streams[0], StreamChange(isActive: true))
        try room.run(4)
        #expect(!room.heard.contains { $0.contains(0) }, "it has no place before it is heard again")
        try room.run(5)
        #expect(room.everyoneHears(0))
    }

    @Test(arguments: [1, 3])
    func `a stream that is always on is heard whoever speaks`(loops: Int) throws {
        let room = try Room(
            8, loops: loops, speaking: [0: [9...30], 1: [9...30], 2: [9...30], 3: [9...30], 4: [9...30], 5: [9...30]])
        defer { room.simulation.end() }
        try room.run(3)
        #expect(!room.everyoneHears(7))
        room.clients[7].change(room.streams[7], StreamChange(isAlwaysOn: true))
        try room.run(1.5)
        #expect(room.everyoneHears(7))
        try room.run(10)
        #expect(room.everyoneHears(7))
    }

    @Test(arguments: [1, 3])
    func `a fourth stream that would be always on is refused, and its publisher gets the reason`(loops: Int) throws {
        let room = try Room(8, loops: loops, speaking: [0: [9...40], 1: [9...40], 2: [9...40], 3: [9...40]])
        defer { room.simulation.end() }
        func setAlwaysOn(_ number: Int) throws {
            room.clients[number].change(room.streams[number], StreamChange(isAlwaysOn: true))
            try room.run(2.5)
        }
        for number in 4...6 { try setAlwaysOn(number) }
        #expect(room.everyoneHears(4, 5, 6))
        let refused = #expect(throws: SimulationFailure.self) { try setAlwaysOn(7) }
        let reason = "client 7 got the error 'The room 'kitchen' can have 3 audio streams"
        #expect(refused?.problem.hasPrefix(reason) == true)
        #expect(!room.everyoneHears(7) && room.everyoneHears(4, 5, 6))
    }

    @Test func `a stream that is published as always on is heard like one that becomes so`() throws {
        let room = try Room(6, speaking: [0: [9...40], 1: [9...40], 2: [9...40], 3: [9...40]])
        defer { room.simulation.end() }
        let late = Collected<Int>()
        room.simulation.task { [client = room.clients[5]] in
            late.append(try await client.publishAudio(StreamAttributes(isAlwaysOn: true)))
        }
        try room.run(5)
        #expect(late.all.count == 1)
        for client in room.clients.dropLast() { #expect(Set(client.heard).isSuperset(of: late.all)) }
    }

    @Test func `streams without levels are heard in the order in which they were published`() throws {
        let room = try Room(6, unmeasured: Set(0..<6), speaking: [:])
        defer { room.simulation.end() }
        try room.run(10)
        #expect(
            room.heard == [[1, 2, 3, 4], [0, 2, 3, 4], [0, 1, 3, 4], [0, 1, 2, 4], [0, 1, 2, 3], [0, 1, 2, 3]])
    }

    /// Its answer has the extension, and its packets have no level: a file whose Opus nobody encodes.
    @Test(arguments: [1, 3])
    func `a stream whose packets turn out to have no levels is heard when nobody speaks`(loops: Int) throws {
        let room = try Room(
            6, loops: loops, unmeasured: [5], speaking: [0: [8...9], 1: [8...9], 2: [8...9], 3: [8...9]])
        defer { room.simulation.end() }
        try room.run(4)
        #expect(!room.everyoneHears(5))
        try room.run(10)
        #expect(room.everyoneHears(5))
    }

    @Test func `a listener with three streams of its own hears four others`() throws {
        let room = try Room(6, speaking: [:])
        defer { room.simulation.end() }
        let own = Collected<Int>()
        room.simulation.task { [client = room.clients[1]] in
            for _ in 0..<2 { own.append(try await client.publishAudio()) }
        }
        try room.run(5)
        for stream in own.all { room.clients[1].change(stream, StreamChange(isAlwaysOn: true)) }
        try room.run(5)
        #expect(room.heard[1].count == 4 && room.heard[1] == room.heard[1].filter { $0 != 1 })
        for client in room.clients where client !== room.clients[1] {
            #expect(Set(client.heard).isSuperset(of: own.all))
        }
    }

    /// The part with the oldest stream decides. When it ends, another one goes on with the same order.
    @Test func `who is heard stays when the part of the room that decides has ended`() throws {
        let room = try Room(9, loops: 3, speaking: [7: [9...10.5], 8: [11...12.5], 5: [20...22]])
        defer { room.simulation.end() }
        try room.run(6)
        #expect(room.everyoneHears(7, 8))
        // Those of the first loop.
        for number in [0, 3, 6] {
            room.simulation.task { [client = room.clients[number]] in try await client.leave() }
        }
        try room.run(4)
        #expect(room.everyoneHears(7, 8))
        for client in [1, 2, 4, 5, 7, 8] { #expect(room.heard[client].count == 4) }
        try room.run(4)
        #expect(room.everyoneHears(5))
        for client in [1, 2, 4, 5, 7, 8] { #expect(room.heard[client].count == 4) }
    }

    @Test(arguments: 1...UInt64(Soak.rounds(1, soak: 10)))
    func `all slots are full in a room of several loops after faults`(seed: UInt64) throws {
        var room = FaultyRoom()
        room.clients = 9
        room.watched = 1
        room.audio = 9
        room.loops = 3
        room.duration = .seconds(39)
        let report = try room.run(seed: seed)
        #expect(report.listeners.count >= 9 * 4)
    }

    /// Each assignment is a message, and one listener's.
    @Test(arguments: [1, 3])
    func `each listener gets one change in a second at most, whatever is claimed`(loops: Int) throws {
        let count = 8
        var random = Seeded(UInt64(loops))
        var script: [Int: [ClosedRange<Double>]] = [:]
        for number in 0..<count {
            var time = 8.0
            while time < 40 {
                let length = Double.random(in: 0.1...1.5, using: &random)
                script[number, default: []].append(time...(time + length))
                time += length + Double.random(in: 0.1...1.5, using: &random)
            }
        }
        let room = try Room(count, loops: loops, speaking: script)
        defer { room.simulation.end() }
        func assignments(_ report: SimulationReport) -> [Int] {
            room.clients.map { client in report.listeners.count { $0.client == client.name } }
        }
        let before = assignments(try room.report)
        let seconds = 10
        try room.run(Double(seconds))
        let after = assignments(try room.report)
        for number in 0..<count {
            #expect(after[number] - before[number] <= seconds + 1)
        }
        #expect(after.reduce(0, +) - before.reduce(0, +) > count, "somebody interrupts")
        #expect(room.heard.allSatisfy { $0.count == 4 })
    }
}
