internal import ArgumentParser
internal import Foundation
internal import PeerIO
internal import PeerLoop
internal import PeerSession
internal import RTP

/// The cost of forwarding to some number of receivers.
struct ForwardingStep: Codable, Sendable {
    var receivers: Int
    var packetsIn: Int
    /// As the receivers counted them.
    var packetsForwarded: Int
    /// Processor time of the rooms' thread while they were forwarded, everything else that it does included.
    var cpuNanoseconds: Double
    /// Likewise in a second while all of them are connected and nothing is forwarded.
    var idleNanosecondsPerSecond: Double
    var idleAllocationsPerSecond: Double?
    var nanosecondsPerForwardedPacket: Double
    /// Memory that the server has written, in KiB.
    var memory: Int
    /// Share of one core that the thread used.
    var load: Double
    /// Of the rooms' thread; nil where they were not counted.
    var allocations: Int?
    var allocationsPerForwardedPacket: Double?
    /// Of them, all but those that libsrtp2's cryptography makes.
    var ownAllocations: Int?
    var ownAllocationsPerForwardedPacket: Double?
    var missing: Int
    var late: Int
    var corrupted: Int
    /// Lost between server and receivers at first, and repaired.
    var lost: Int
    var recovered: Int
}

struct ForwardingResult: Codable, Sendable {
    var packetLength = LoadPacket.length
    var packetsPerSecond: Double
    var burst: Int
    var seconds: Double
    var upProfile: String
    var downProfile: String
    var steps: [ForwardingStep]
    /// Processor time for each packet forwarded to one more receiver, from the first step to each further one.
    var marginalNanoseconds: [Double]
    /// The same without what the thread does for as many connected clients when nothing is forwarded.
    var marginalNetNanoseconds: [Double]
    /// Likewise allocations, and those that are not libsrtp2's.
    var marginalAllocations: [Double]?
    var marginalOwnAllocations: [Double]?
    /// Processor time of `Splice` alone for each packet and receiver.
    var spliceNanoseconds: Double
    /// How many of some known allocations the counter counted.
    var counterSelfTest: String?
}

/// One publisher, several receivers, and a room server in a process of its own whose rooms' thread is timed.
struct ForwardingCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "forwarding", abstract: "Processor time and allocations of the room server per forwarded packet.")

    @Option(help: "Packets in a burst.") var burst = 17
    @Option(help: "Bursts a second.") var rate = 30
    @Option(help: "Seconds of each step.") var seconds = 5
    @Option(help: "malloc_counter.so, to count allocations with.") var counter: String?
    @Option(help: "Core that the server is pinned to.") var core: Int?
    @Flag(help: "Offer SRTP AES128_CM_SHA1_80 alone.") var aesCM = false

    /// The receivers of each step.
    private static let receivers = [1, 4, 12]

    func run() async throws {
        guard burst > 0, rate > 0, seconds > 0 else {
            throw ValidationError("Burst, rate and seconds are numbers above 0.")
        }
        endProcess(after: 60 + (seconds + 8) * (Self.receivers.count + 1))
        let server = try ServerProcess(counter: counter, core: core)
        defer { server.stop() }
        let selfTest = try checkCounter(server)
        var result = try await measure(server, selfTest)
        result.spliceNanoseconds = try SpliceCost.measure()
        try printJSON(result)
        let wrong = result.steps.reduce(0) { $0 + $1.missing + $1.corrupted }
        guard wrong == 0 else { throw BenchmarkError("\(wrong) packets are missing or wrong.") }
    }

    /// A counter is not trusted before it has been seen to move, by as much as it should.
    private func checkCounter(_ server: ServerProcess) throws -> String? {
        guard let counted = try server.allocations()?.allocations else { return nil }
        let known = UInt64(ServeCommand.knownAllocations)
        guard counted >= known, counted < known + known / 4 else {
            throw BenchmarkError("The malloc counter counted \(counted) where some \(known) allocations were made.")
        }
        return "\(counted) counted of \(known) known"
    }

    private func measure(_ server: ServerProcess, _ selfTest: String?) async throws -> ForwardingResult {
        let loop = EventLoop(name: "load")
        defer { loop.shutdown() }
        let profiles: [SRTPProfile] = aesCM ? [.aes128CMSHA1_80] : [.aeadAES128GCM, .aes128CMSHA1_80]
        let token = try await server.token()
        let access = LoadServer.ours(server.access, token: token)
        let publisher = try await LoadClient("publisher", loop: loop, server: access, profiles: profiles)
        try await publisher.join("benchmark")
        let stream = try await publisher.publish()
        var clients: [LoadClient] = []
        var steps: [ForwardingStep] = []
        for count in Self.receivers {
            while clients.count < count {
                let client = try await LoadClient(
                    "receiver\(clients.count)", loop: loop, server: access, profiles: profiles)
                try await client.join("benchmark")
                try await client.subscribe(stream)
                clients.append(client)
            }
            try await warmUp(publisher, clients)
            steps.append(try await step(publisher, clients, server))
        }
        let up = await publisher.negotiated.last
        let down = await clients.first?.negotiated.first
        for client in clients + [publisher] { await client.leave() }
        return result(steps, up: up, down: down, selfTest)
    }

    private func result(
        _ steps: [ForwardingStep], up: SRTPProfile?, down: SRTPProfile?, _ selfTest: String?
    ) -> ForwardingResult {
        let first = steps[0]
        let others = steps.dropFirst()
        func marginal(_ nanoseconds: (ForwardingStep) -> Double) -> [Double] {
            others.map { step in
                (nanoseconds(step) - nanoseconds(first)) / Double(step.packetsForwarded - first.packetsForwarded)
            }
        }
        func marginalCount(_ count: KeyPath<ForwardingStep, Int?>) -> [Double]? {
            guard let before = first[keyPath: count] else { return nil }
            return others.compactMap { step in
                step[keyPath: count].map {
                    Double($0 - before) / Double(step.packetsForwarded - first.packetsForwarded)
                }
            }
        }
        return ForwardingResult(
            packetsPerSecond: Double(burst * rate), burst: burst, seconds: Double(seconds),
            upProfile: up?.rawValue ?? "", downProfile: down?.rawValue ?? "", steps: steps,
            marginalNanoseconds: marginal { $0.cpuNanoseconds },
            marginalNetNanoseconds: marginal { $0.cpuNanoseconds - $0.idleNanosecondsPerSecond * Double(seconds) },
            marginalAllocations: marginalCount(\.allocations),
            marginalOwnAllocations: marginalCount(\.ownAllocations), spliceNanoseconds: 0, counterSelfTest: selfTest)
    }

    private var interval: RTP.TimeInterval { RTP.TimeInterval(nanoseconds: 1_000_000_000 / Int64(rate)) }

    /// Sends until every receiver gets packets and all caches and slabs have grown to their size.
    private func warmUp(_ publisher: LoadClient, _ clients: [LoadClient]) async throws {
        // Retransmission caches hold 512 packets.
        await publisher.send(bursts: max(rate, 1200 / burst), of: burst, every: interval)
        try await everyoneHas(publisher, clients)
    }

    /// Waits until all that was sent has arrived, repaired losses included.
    private func everyoneHas(_ publisher: LoadClient, _ clients: [LoadClient]) async throws {
        let last = await publisher.sent - 1
        for client in clients {
            try await wait(upTo: 5, for: "the last packet at every receiver") {
                let check = await client.check
                return check.last == last && check.missing == 0
            }
        }
    }

    private func step(
        _ publisher: LoadClient, _ clients: [LoadClient], _ server: ServerProcess
    ) async throws -> ForwardingStep {
        let idle = try await idleWork(server)
        let before = await totals(clients)
        let sent = await publisher.sent
        let allocations = try server.allocations()
        let time = try server.processorTime()
        await publisher.send(bursts: rate * seconds, of: burst, every: interval)
        // Packets that are missing after the timeout are reported.
        try? await everyoneHas(publisher, clients)
        let nanoseconds = Double(try server.processorTime() - time)
        let counted = try server.allocations()
        let allocated = difference(allocations, counted, \.allocations)
        let own = difference(allocations, counted, \.cryptography).flatMap { libsrtp in allocated.map { $0 - libsrtp } }
        let after = await totals(clients)
        let forwarded = after.received - before.received
        guard forwarded > 0 else { throw BenchmarkError("The server forwarded nothing.") }
        return ForwardingStep(
            receivers: clients.count, packetsIn: Int(await publisher.sent - sent), packetsForwarded: forwarded,
            cpuNanoseconds: nanoseconds, idleNanosecondsPerSecond: idle.nanoseconds,
            idleAllocationsPerSecond: idle.allocations, nanosecondsPerForwardedPacket: nanoseconds / Double(forwarded),
            memory: try server.memory(), load: nanoseconds / 1e9 / Double(seconds), allocations: allocated,
            allocationsPerForwardedPacket: allocated.map { Double($0) / Double(forwarded) }, ownAllocations: own,
            ownAllocationsPerForwardedPacket: own.map { Double($0) / Double(forwarded) },
            missing: after.missing - before.missing, late: after.late - before.late,
            corrupted: after.corrupted - before.corrupted, lost: after.lost - before.lost,
            recovered: after.recovered - before.recovered)
    }

    private func difference(
        _ before: AllocationCounts?, _ after: AllocationCounts?, _ count: KeyPath<AllocationCounts, UInt64>
    ) -> Int? {
        guard let before, let after else { return nil }
        return Int(after[keyPath: count] - before[keyPath: count])
    }

    private struct Totals {
        var received = 0
        var missing = 0
        var late = 0
        var corrupted = 0
        var lost = 0
        var recovered = 0
    }

    private func totals(_ clients: [LoadClient]) async -> Totals {
        var totals = Totals()
        for client in clients {
            let check = await client.check
            let (lost, recovered) = await client.lostAndRecovered
            totals.received += check.received
            totals.missing += check.missing
            totals.late += check.late
            totals.corrupted += check.corrupted
            totals.lost += lost
            totals.recovered += recovered
        }
        return totals
    }

    private struct Idle {
        var nanoseconds: Double
        var allocations: Double?
    }

    /// The work of the rooms' thread in a second while all clients are connected and none sends.
    private func idleWork(_ server: ServerProcess) async throws -> Idle {
        let start = EventLoop.now
        let time = try server.processorTime()
        let allocations = try server.allocations()
        try await Task.sleep(for: .seconds(2))
        let seconds = (EventLoop.now - start).seconds
        let used = Double(try server.processorTime() - time)
        let allocated = difference(allocations, try server.allocations(), \.allocations)
        return Idle(nanoseconds: used / seconds, allocations: allocated.map { Double($0) / seconds })
    }
}
