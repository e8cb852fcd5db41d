internal import ArgumentParser
internal import Foundation
internal import Glibc
internal import PeerIO
internal import PeerLoop
internal import PeerSession
internal import RTP
internal import RoomProtocol
internal import RoomServer

/// The delays of a probe room's packets while something else happens on the server.
struct BusyPhase: Codable, Sendable {
    var name: String
    var seconds: Double
    var packets: Int
    var missing: Int
    /// From sending to receiving, in milliseconds, through the server.
    var p50: Double
    var p99: Double
    var max: Double
    /// Share of a core that the rooms' thread used.
    var load: Double
}

struct BusyResult: Codable, Sendable {
    var participants: Int
    var burst: Int
    var burstReceivers: Int
    var packetsPerSecond: Int
    /// Whether the probe's thread could take precedence over the other clients' threads, which share its cores.
    var probeHasPriority: Bool
    var phases: [BusyPhase]
}

/// A probe room with one publisher and one receiver, beside a room that fills and a publisher that bursts.
struct BusyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "busy", abstract: "Delay of one room's packets while another room fills and a publisher bursts.")

    @Option(help: "Participants of the other room; each announces audio and sends a packet a second.")
    var participants = 500
    @Option(help: "Packets of the burst.") var burst = 5000
    @Option(help: "Packets of the probe room a second.") var rate = 100
    @Option(help: "Seconds of each phase that has no end of its own.") var seconds = 3
    @Option(help: "Core that the server is pinned to.") var core: Int?

    private static let joinsAtOnce = 16
    /// Subscribers of the publisher that bursts.
    private static let burstReceivers = 12

    func run() async throws {
        endProcess(after: 240)
        let server = try ServerProcess(counter: nil, core: core)
        defer { server.stop() }
        do {
            try await measure(server)
        } catch {
            // The clients that are open end with the process.
            FileHandle.standardError.write(Data("Error: \(error)\n".utf8))
            server.stop()
            Foundation.exit(1)
        }
    }

    private func measure(_ server: ServerProcess) async throws {
        let token = try await server.token()
        let probe = try await DelayProbe(server, token: token, rate: rate)
        var phases = [try await probe.phase("quiet") { try await Task.sleep(for: .seconds(seconds)) }]
        let crowdLoop = EventLoop(name: "crowd")
        defer { crowdLoop.shutdown() }
        let crowd = LoadCrowd(server: .ours(server.access, token: token), loop: crowdLoop)
        phases.append(
            try await probe.phase("\(participants) participants join and announce audio") {
                try await crowd.join(participants, atOnce: Self.joinsAtOnce)
            })
        phases.append(
            try await probe.phase("each sends a packet a second") {
                try await crowd.speak(seconds: seconds)
            })
        let publisher = try await crowd.publisher(receivers: Self.burstReceivers)
        phases.append(
            try await probe.phase("a publisher bursts") {
                await publisher.send(bursts: 1, of: burst, every: .seconds(1))
                try await crowd.speak(seconds: seconds)
            })
        try printJSON(
            BusyResult(
                participants: participants, burst: burst, burstReceivers: Self.burstReceivers,
                packetsPerSecond: rate, probeHasPriority: probe.hasPriority, phases: phases))
        await crowd.leave()
        await probe.end()
    }
}

/// The clients of the busy room.
private final class LoadCrowd: Sendable {
    private let server: LoadServer
    private let loop: EventLoop
    private let clients = ClientList()

    init(server: LoadServer, loop: EventLoop) {
        self.server = server
        self.loop = loop
    }

    private actor ClientList {
        var all: [LoadClient] = []
        func add(_ client: LoadClient) { all.append(client) }
    }

    private func client(_ name: String) async throws -> LoadClient {
        let client = try await LoadClient(
            name, loop: loop, server: server, profiles: [.aeadAES128GCM, .aes128CMSHA1_80])
        try await client.join("busy")
        await clients.add(client)
        return client
    }

    /// Lets participants join and announce audio, so many at once.
    func join(_ count: Int, atOnce: Int) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for index in 0..<count {
                if index >= atOnce { try await group.next() }
                group.addTask { _ = try await self.client("p\(index)").publish(.opus) }
            }
            try await group.waitForAll()
        }
    }

    /// Each participant sends a packet a second.
    func speak(seconds: Int) async throws {
        await withTaskGroup(of: Void.self) { group in
            for client in await clients.all {
                group.addTask { await client.send(bursts: seconds, of: 1, every: .seconds(1)) }
            }
        }
        // The last second.
        try await Task.sleep(for: .seconds(1))
    }

    /// A participant with a video that the first `receivers` participants have subscribed to.
    func publisher(receivers: Int) async throws -> LoadClient {
        let subscribers = await clients.all.prefix(receivers)
        let publisher = try await client("publisher")
        let stream = try await publisher.publish()
        for client in subscribers { try await client.subscribe(stream) }
        await publisher.send(bursts: 10, of: 1, every: .milliseconds(20))
        return publisher
    }

    func leave() async {
        for client in await clients.all { await client.leave() }
    }
}

/// One publisher and one receiver on a loop of their own.
private final class DelayProbe {
    let hasPriority: Bool
    private let server: ServerProcess
    private let loop = EventLoop(name: "probe")
    private let publisher: LoadClient
    private let receiver: LoadClient
    private let log: LoopBound<DelayLog>
    private let sending: Task<Void, Never>

    init(_ server: ServerProcess, token: String, rate: Int) async throws {
        self.server = server
        let (loop, access) = (loop, LoadServer.ours(server.access, token: token))
        let profiles: [SRTPProfile] = [.aeadAES128GCM, .aes128CMSHA1_80]
        hasPriority = await withCheckedContinuation { done in
            // On Linux, the priority of the calling thread.
            loop.execute { done.resume(returning: setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, -20) == 0) }
        }
        log = await withCheckedContinuation { done in
            loop.execute { done.resume(returning: LoopBound(DelayLog(), loop: loop)) }
        }
        publisher = try await LoadClient("probe publisher", loop: loop, server: access, profiles: profiles)
        receiver = try await LoadClient("probe receiver", loop: loop, server: access, profiles: profiles)
        try await publisher.join("probe")
        let stream = try await publisher.publish()
        try await receiver.join("probe")
        try await receiver.subscribe(stream)
        await publisher.log(delays: log)
        await receiver.log(delays: log)
        sending = Task { [publisher] in
            await publisher.send(bursts: .max, of: 1, every: RTP.TimeInterval(nanoseconds: 1_000_000_000 / Int64(rate)))
        }
        try await Task.sleep(for: .seconds(1))
    }

    /// Measures while the closure runs.
    func phase(_ name: String, _ body: () async throws -> Void) async throws -> BusyPhase {
        _ = await restart()
        let start = EventLoop.now
        let used = try server.processorTime()
        try await body()
        let seconds = (EventLoop.now - start).seconds
        let load = Double(try server.processorTime() - used) / 1e9 / seconds
        // Packets in transit count too.
        try await Task.sleep(for: .milliseconds(200))
        let (delays, missing) = await restart()
        let sorted = delays.sorted()
        guard let most = sorted.last else { throw BenchmarkError("No packet of the probe room came: \(name).") }
        func percentile(_ share: Double) -> Double { sorted[Int(Double(sorted.count - 1) * share)] }
        return BusyPhase(
            name: name, seconds: seconds, packets: sorted.count, missing: missing, p50: percentile(0.5),
            p99: percentile(0.99), max: most, load: load)
    }

    private func restart() async -> (milliseconds: [Double], missing: Int) {
        await withCheckedContinuation { [log, loop] done in
            loop.execute { done.resume(returning: log.value.restart()) }
        }
    }

    func end() async {
        await receiver.leave()
        await publisher.leave()
        loop.shutdown()
    }
}
