internal import ArgumentParser
internal import Foundation
internal import PeerIO
internal import PeerLoop
internal import PeerSession
internal import RTP
internal import RoomProtocol

/// The resources of a server while it forwarded to so many subscribers.
struct RoomLoadStep: Codable, Sendable {
    /// Bursts a second of each publisher.
    var rate: Int
    var rooms: Int
    var participants: Int
    /// Of each stream.
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
    /// Of each room.
    var publishers: Int
    var profile: String
    /// From the first join of a step until the last, in seconds, by step.
    var joining: [Double]
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
    @Option(help: "How many subscribers of each stream, one step after the other.") var subscribers = "1,20,100"
    @Option(help: "How many rooms.") var rooms = 1
    @Option(help: "Publishers in each room, which subscribe to each other.") var publishers = 1
    @Option(help: "Packets in a burst.") var burst = 8
    @Option(help: "Bursts a second of each publisher.") var rate = 30
    @Flag(help: "Publish audio, which our server assigns without a subscription.") var audio = false
    @Option(help: "Shares of a core that the server is to use, one step after the other. --rate is the first guess.")
    var loads: String?
    @Flag(help: "Search the highest rate at which all packets arrive, from --rate upwards.") var search = false
    @Option(help: "Seconds of each step.") var seconds = 5
    @Option(help: "Packets of each publisher before each step, which grow all caches.") var warmUp = 640
    @Option(help: "Seconds of silence before each step, to measure what the server does then.") var idle = 0
    @Option(help: "Seconds between the joins of a step and that measurement.") var settle = 0
    @Option(help: "Addresses to connect from, in turn.") var from: String?
    @Flag(help: "Print a line before and after each measurement, and wait for one, so that a program can count.")
    var paced = false
    @Flag(help: "Offer SRTP AES128_CM_SHA1_80 alone.") var aesCM = false
    @Flag(help: "Refuse transport-wide numbers, so that our server neither estimates nor paces.") var unpaced = false

    /// Threads of our server that carry media.
    private static let mediaThreads = "rooms"
    private static let firstRoom = 70_000
    /// The generator has no time to spare beyond this share of its core, and measures itself.
    private static let busyGenerator = 0.93

    func run() async throws {
        let counts = subscribers.split(separator: ",").compactMap { Int($0) }.filter { $0 > 0 }.sorted()
        guard let most = counts.last, rooms > 0, burst > 0, rate > 0, seconds > 0 else {
            throw ValidationError("Subscribers, rooms, burst, rate and seconds are numbers above 0.")
        }
        guard publishers > 0, publishers <= counts[0] + 1 else {
            throw ValidationError("A stream has at least as many subscribers as there are other publishers.")
        }
        let steps = counts.count * (search ? 12 : 1) + 2 * targets.count
        let longest = (seconds + settle + idle + 15 + warmUp / burst / rate) * (paced ? 10 : 1)
        endProcess(after: 60 + longest * steps + rooms * (most + 1) / 5)
        do {
            try await measure(counts)
        } catch {
            // The clients that are open end with the process.
            FileHandle.standardError.write(Data("Error: \(error)\n".utf8))
            Foundation.exit(1)
        }
    }

    private var length: Int { audio ? LoadPacket.audioLength : LoadPacket.length }

    private var targets: [Double] { (loads ?? "").split(separator: ",").compactMap { Double($0) }.sorted() }

    private func measure(_ counts: [Int]) async throws {
        let loop = EventLoop(name: "load")
        let load = RoomLoad(
            try await .named(ours: ours, janus: janus), loop: loop,
            shape: RoomLoad.Shape(
                rooms: Self.firstRoom..<Self.firstRoom + rooms, publishers: publishers, codec: audio ? .opus : .vp8,
                length: length, addresses: from?.split(separator: ",").map(String.init) ?? [],
                profiles: aesCM ? [.aes128CMSHA1_80] : [.aeadAES128GCM], reportsArrivals: !unpaced))
        var (steps, joining): ([RoomLoadStep], [Double]) = ([], [])
        for (index, count) in counts.enumerated() {
            let start = EventLoop.now
            if index == 0 { try await load.open() }
            try await load.fill(to: count)
            joining.append((EventLoop.now - start).seconds)
            if search {
                steps += try await self.search(load, count)
            } else {
                steps.append(try await step(load, count, rate))
                try await rise(load, count, &steps)
            }
        }
        try printJSON(
            RoomLoadResult(
                packetLength: length, burst: burst, rate: rate, publishers: publishers, profile: await load.profile,
                joining: joining, steps: steps))
        // Leaving one by one takes long.
        Foundation.exit(0)
    }

    /// Raises the rate until packets are missing, and then halves the distance to the highest rate without.
    private func search(_ load: RoomLoad, _ count: Int) async throws -> [RoomLoadStep] {
        var steps: [RoomLoadStep] = []
        var (good, bad, next) = (0, Int.max, rate)
        while next > good, next < bad, bad - good > max(1, good / 50) {
            let step = try await step(load, count, next)
            steps.append(step)
            if step.missing * 1000 <= step.packetsOut { good = next } else { bad = next }
            next = bad == .max ? good + max(1, good / 4) : (good + bad) / 2
        }
        return steps
    }

    /// Raises the rate until the server uses each of the shares of its core, unless packets are missing or the generator
    /// is busy before.
    private func rise(_ load: RoomLoad, _ count: Int, _ steps: inout [RoomLoadStep]) async throws {
        for target in targets {
            for _ in 0..<2 {
                guard let last = steps.last, last.missing * 1000 <= last.packetsOut,
                    last.generatorCore < Self.busyGenerator
                else { return }
                // At most three times as much at once, because a packet costs less when there are more.
                let rate = min(Double(last.rate) * target / last.serverCore, Double(last.rate) * 3)
                let next = max(1, Int(rate.rounded()))
                guard next != last.rate, abs(last.serverCore / target - 1) > 0.08 else { break }
                steps.append(try await step(load, count, next))
            }
        }
    }

    private func step(_ load: RoomLoad, _ count: Int, _ rate: Int) async throws -> RoomLoadStep {
        if warmUp > 0 {
            await load.send(bursts: max(1, warmUp / burst), of: burst, rate: rate)
            try await settle(load)
        }
        if idle > 0 { try await Task.sleep(for: .seconds(settle)) }
        let quiet =
            idle > 0 ? try await measure("silent", count) { try await Task.sleep(for: .seconds(idle)) } : nil
        let before = await load.totals
        _ = await load.latencies([])
        await load.collectLatencies(true)
        let used = try await measure("sending", count) {
            await load.send(bursts: rate * seconds, of: burst, rate: rate)
            // A server that is slowed down has not forwarded all yet.
            if paced { try await settle(load) }
        }
        await load.collectLatencies(false)
        try await settle(load)
        let after = await load.totals
        let latencies = await load.latencies([0.5, 0.99])
        let received = after.received - before.received
        guard received > 0 else { throw BenchmarkError("The server forwarded nothing.") }
        return RoomLoadStep(
            rate: rate, rooms: rooms, participants: await load.participants, subscribers: count,
            seconds: used.seconds, packetsIn: after.sent - before.sent,
            packetsOut: received, missing: after.due - before.due - received,
            wrong: after.wrong - before.wrong, late: after.late - before.late, refused: after.refused - before.refused,
            microsecondsPerPacket: used.process / Double(received) / 1000,
            mediaMicrosecondsPerPacket: used.media / Double(received) / 1000, serverCore: used.core,
            generatorCore: used.generatorCore, latencyMedian: latencies[0], latencyP99: latencies[1],
            privateMemory: used.end.privateMemory, threads: used.end.threads, descriptors: used.end.descriptors,
            idleCore: quiet?.core, idleMediaCore: quiet.map { $0.media / 1e9 / $0.seconds })
    }

    private func settle(_ load: RoomLoad) async throws {
        try await load.settle(milliseconds: paced ? 1500 : 300)
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

    private func measure(
        _ name: String, _ subscribers: Int, _ body: () async throws -> Void
    ) async throws -> Measured {
        try await pace("\(name) begins", subscribers)
        let before = try ProcessUse(of: process, mediaThreads: Self.mediaThreads)
        let (start, own) = (EventLoop.now, ProcessorTime.ofThisProcess)
        try await body()
        let (seconds, generated) = ((EventLoop.now - start).seconds, ProcessorTime.ofThisProcess - own)
        let after = try ProcessUse(of: process, mediaThreads: Self.mediaThreads)
        try await pace("\(name) ended", subscribers)
        return Measured(
            seconds: seconds, process: Double(after.processorTime) - Double(before.processorTime),
            media: Double(after.mediaTime) - Double(before.mediaTime), generatorCore: generated / seconds, end: after)
    }

    private struct Moment: Encodable {
        var moment: String
        var subscribers: Int
    }

    /// Reports a moment and waits for a line.
    private func pace(_ moment: String, _ subscribers: Int) async throws {
        guard paced else { return }
        try printJSON(Moment(moment: moment, subscribers: subscribers))
        await withCheckedContinuation { done in
            Thread.detachNewThread {
                _ = readLine()
                done.resume()
            }
        }
    }
}
