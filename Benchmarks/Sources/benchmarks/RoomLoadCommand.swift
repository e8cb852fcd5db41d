internal import ArgumentParser
internal import Foundation
internal import PeerIO
internal import PeerLoop
internal import PeerSession
internal import RTP

/// The resources of a server while it forwarded to so many subscribers.
struct RoomLoadStep: Codable, Sendable {
    /// Bursts a second of each publisher.
    var rate: Int
    var rooms: Int
    /// In all rooms.
    var subscribers: Int
    var seconds: Double
    var packetsIn: Int
    /// As the subscribers received them, each with a valid authentication tag.
    var packetsOut: Int
    var missing: Int
    /// Packets with a wrong length, number or numbering, and those that came late.
    var wrong: Int
    var late: Int
    /// Packets whose authentication failed.
    var refused: Int
    /// Processor time of all threads of the server for each packet that a subscriber received, and that of the threads
    /// that carry media.
    var microsecondsPerPacket: Double
    var mediaMicrosecondsPerPacket: Double
    /// Share of a core that the server and the load generator used.
    var serverCore: Double
    var generatorCore: Double
    /// From sending to receiving, in milliseconds.
    var latencyMedian: Double
    var latencyP99: Double
    /// Memory of the server that no other process shares, in KiB.
    var privateMemory: Int
    var threads: Int
    var descriptors: Int
    /// Shares of a core while all are connected and nobody sends; nil where it was not measured.
    var idleCore: Double?
    var idleMediaCore: Double?
}

struct RoomLoadResult: Codable, Sendable {
    var packetLength: Int
    var burst: Int
    var rate: Int
    var profile: String
    var steps: [RoomLoadStep]
}

/// Loads a room server that runs already: ours, or Janus with its VideoRoom plugin.
struct RoomLoadCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "room-load",
        abstract: "Processor time, latency and memory of a running room server; see Benchmarks/janus.py.")

    @Option(help: "ADDRESS:PORT of the WebSocket interface of Janus.") var janus: String?
    @Option(help: "The line that 'benchmarks serve' printed.") var ours: String?
    @Option(help: "The server's process.") var process: Int32
    @Option(help: "How many subscribers in each room, one step after the other.") var subscribers = "1,20,100"
    @Option(help: "How many rooms, each with one publisher.") var rooms = 1
    @Option(help: "Packets in a burst.") var burst = 8
    @Option(help: "Bursts a second.") var rate = 30
    @Flag(help: "Search the highest rate at which all packets arrive, from --rate upwards.") var search = false
    @Option(help: "Seconds of each step.") var seconds = 5
    @Option(help: "Seconds of silence before each step, to measure what the server does then.") var idle = 0
    @Flag(help: "Offer SRTP AES128_CM_SHA1_80 alone.") var aesCM = false

    /// Threads of our server that carry media.
    private static let mediaThreads = "rooms"
    /// Numbers, as Janus wants them.
    private static let firstRoom = 70_000
    private static let joinsAtOnce = 8

    func run() async throws {
        let counts = subscribers.split(separator: ",").compactMap { Int($0) }.filter { $0 > 0 }.sorted()
        guard let most = counts.last, rooms > 0, burst > 0, rate > 0, seconds > 0 else {
            throw ValidationError("Subscribers, rooms, burst, rate and seconds are numbers above 0.")
        }
        endProcess(
            after: 60 + (seconds + idle + 15) * counts.count * (search ? 12 : 1) + rooms * (most + 1) / 5)
        do {
            try await measure(counts)
        } catch {
            // The clients that are open end with the process.
            FileHandle.standardError.write(Data("Error: \(error)\n".utf8))
            Foundation.exit(1)
        }
    }

    private func measure(_ counts: [Int]) async throws {
        let loop = EventLoop(name: "load")
        let load = RoomLoad(
            try await .named(ours: ours, janus: janus), loop: loop,
            profiles: aesCM ? [.aes128CMSHA1_80] : [.aeadAES128GCM])
        for index in 0..<rooms { try await load.open("\(Self.firstRoom + index)") }
        var steps: [RoomLoadStep] = []
        for count in counts {
            try await load.fill(to: count, atOnce: Self.joinsAtOnce)
            steps += try await search ? self.search(load) : [step(load, rate)]
        }
        try printJSON(
            RoomLoadResult(
                packetLength: LoadPacket.length, burst: burst, rate: rate, profile: await load.profile, steps: steps))
        // Leaving one by one takes long.
        Foundation.exit(0)
    }

    /// Raises the rate until packets are missing, and then halves the distance to the highest rate without.
    private func search(_ load: RoomLoad) async throws -> [RoomLoadStep] {
        var steps: [RoomLoadStep] = []
        var (good, bad, next) = (0, Int.max, rate)
        while next > good, next < bad, bad - good > max(1, good / 50) {
            let step = try await step(load, next)
            steps.append(step)
            if step.missing * 1000 <= step.packetsOut { good = next } else { bad = next }
            next = bad == .max ? good + max(1, good / 4) : (good + bad) / 2
        }
        return steps
    }

    private func step(_ load: RoomLoad, _ rate: Int) async throws -> RoomLoadStep {
        // Grows all caches to their size.
        await load.send(bursts: max(rate, 640 / burst), of: burst, rate: rate)
        try await load.settle()
        let quiet = idle > 0 ? try await measure { try await Task.sleep(for: .seconds(idle)) } : nil
        let before = await load.totals
        _ = await load.latencies([])
        await load.collectLatencies(true)
        let used = try await measure { await load.send(bursts: rate * seconds, of: burst, rate: rate) }
        await load.collectLatencies(false)
        try await load.settle()
        let after = await load.totals
        let latencies = await load.latencies([0.5, 0.99])
        let received = after.received - before.received
        guard received > 0 else { throw BenchmarkError("The server forwarded nothing.") }
        let subscribers = await load.subscribers
        return RoomLoadStep(
            rate: rate, rooms: rooms, subscribers: subscribers, seconds: used.seconds,
            packetsIn: after.sent - before.sent,
            packetsOut: received, missing: (after.sent - before.sent) * subscribers / rooms - received,
            wrong: after.wrong - before.wrong, late: after.late - before.late, refused: after.refused - before.refused,
            microsecondsPerPacket: used.process / Double(received) / 1000,
            mediaMicrosecondsPerPacket: used.media / Double(received) / 1000, serverCore: used.core,
            generatorCore: used.generatorCore, latencyMedian: latencies[0], latencyP99: latencies[1],
            privateMemory: used.end.privateMemory, threads: used.end.threads, descriptors: used.end.descriptors,
            idleCore: quiet?.core, idleMediaCore: quiet.map { $0.media / 1e9 / $0.seconds })
    }

    private struct Measured {
        var seconds: Double
        /// Nanoseconds of the server.
        var process: Double
        var media: Double
        var generatorCore: Double
        var end: ProcessUse
        var core: Double { process / 1e9 / seconds }
    }

    private func measure(_ body: () async throws -> Void) async throws -> Measured {
        let before = try ProcessUse(of: process, mediaThreads: Self.mediaThreads)
        let (start, own) = (EventLoop.now, ProcessorTime.ofThisProcess)
        try await body()
        let (seconds, generated) = ((EventLoop.now - start).seconds, ProcessorTime.ofThisProcess - own)
        let after = try ProcessUse(of: process, mediaThreads: Self.mediaThreads)
        return Measured(
            seconds: seconds, process: Double(after.processorTime) - Double(before.processorTime),
            media: Double(after.mediaTime) - Double(before.mediaTime), generatorCore: generated / seconds, end: after)
    }
}

/// The clients in the rooms of a server.
private actor RoomLoad {
    private struct Room {
        var name: String
        var publisher: LoadClient
        var stream: Int
        var subscribers: [LoadClient] = []
    }

    struct Totals {
        var sent = 0
        var received = 0
        var wrong = 0
        var late = 0
        var refused = 0
    }

    private let server: LoadServer
    private let loop: EventLoop
    private let profiles: [SRTPProfile]
    private var rooms: [Room] = []
    private var log: LoopBound<LatencyLog>?

    init(_ server: LoadServer, loop: EventLoop, profiles: [SRTPProfile]) {
        self.server = server
        self.loop = loop
        self.profiles = profiles
    }

    /// Opens a room with a publisher.
    func open(_ name: String) async throws {
        let publisher = try await LoadClient("publisher", loop: loop, server: server, profiles: profiles)
        try await publisher.join(name)
        rooms.append(Room(name: name, publisher: publisher, stream: try await publisher.publish()))
    }

    var subscribers: Int { rooms.reduce(0) { $0 + $1.subscribers.count } }

    var profile: String {
        get async { await rooms.first?.subscribers.first?.negotiated.first?.rawValue ?? "" }
    }

    /// Lets subscribers join each room, so many at once.
    func fill(to count: Int, atOnce: Int) async throws {
        for index in rooms.indices {
            let (name, stream) = (rooms[index].name, rooms[index].stream)
            let (server, loop, profiles) = (server, loop, profiles)
            let missing = count - rooms[index].subscribers.count
            rooms[index].subscribers += try await withThrowingTaskGroup(of: LoadClient.self) { group in
                var joined: [LoadClient] = []
                for number in 0..<max(0, missing) {
                    if number >= atOnce, let client = try await group.next() { joined.append(client) }
                    group.addTask {
                        let client = try await LoadClient(
                            "subscriber", loop: loop, server: server, profiles: profiles)
                        try await client.join(name)
                        try await client.subscribe(stream)
                        return client
                    }
                }
                for try await client in group { joined.append(client) }
                return joined
            }
        }
    }

    /// Sends in all rooms, whose publishers are spread evenly over an interval.
    func send(bursts: Int, of length: Int, rate: Int) async {
        let interval = RTP.TimeInterval(nanoseconds: 1_000_000_000 / Int64(rate))
        let count = rooms.count
        await withTaskGroup(of: Void.self) { group in
            for (index, room) in rooms.enumerated() {
                let delay = RTP.TimeInterval(nanoseconds: interval.nanoseconds * Int64(index) / Int64(count))
                group.addTask {
                    await room.publisher.send(bursts: bursts, of: length, every: interval, after: delay)
                }
            }
        }
    }

    /// Waits until all that was sent has arrived, or nothing arrives any more.
    func settle() async throws {
        var last = -1
        while await totals.received != last {
            last = await totals.received
            try await Task.sleep(for: .milliseconds(300))
        }
    }

    var totals: Totals {
        get async {
            var totals = Totals()
            for room in rooms {
                totals.sent += Int(await room.publisher.sent)
                for client in room.subscribers {
                    let check = await client.check
                    totals.received += check.received
                    totals.wrong += check.corrupted
                    totals.late += check.late
                    totals.refused += await client.refused
                }
            }
            return totals
        }
    }

    func collectLatencies(_ isOn: Bool) async {
        let log = isOn ? await latencyLog() : nil
        for room in rooms {
            for client in room.subscribers { await client.log(latencies: log) }
        }
    }

    func latencies(_ shares: [Double]) async -> [Double] {
        let log = await latencyLog()
        return await withCheckedContinuation { done in
            loop.execute { done.resume(returning: log.value.restart(shares)) }
        }
    }

    private func latencyLog() async -> LoopBound<LatencyLog> {
        if let log { return log }
        let made = await withCheckedContinuation { [loop] done in
            loop.execute { done.resume(returning: LoopBound(LatencyLog(), loop: loop)) }
        }
        log = made
        return made
    }
}
