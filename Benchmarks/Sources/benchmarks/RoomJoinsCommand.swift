internal import ArgumentParser
internal import Foundation
internal import PeerIO
internal import PeerSession
internal import RTP

struct RoomJoinsResult: Codable, Sendable {
    var joins: Int
    var seconds: Double
    var packetsPerSecond: Int
    /// From before the connection to the server until the stream's first packet arrived, in milliseconds.
    var packet: Summary?
    /// Likewise until a keyframe began, before which nothing can be decoded.
    var keyframe: Summary?
    /// Keyframes that the joins cost the publisher.
    var keyframes: Int
    /// Packets that did not come after the first of a subscriber, and those with a wrong length or number.
    var missing: Int
    var wrong: Int
}

/// Lets subscribers join a room of a running server one after the other: ours, or Janus with its VideoRoom plugin.
struct RoomJoinsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "room-joins",
        abstract: "Time from joining a room to the first packet and keyframe; see Benchmarks/joins.py.")

    @Option(help: "ADDRESS:PORT of the WebSocket interface of Janus.") var janus: String?
    @Option(help: "The line that 'benchmarks serve' printed.") var ours: String?
    @Option(help: "How many subscribers join while another is there already.") var joins = 200
    @Option(help: "Packets in a burst.") var burst = 4
    @Option(help: "Bursts a second.") var rate = 30

    private static let room = "70000"

    func run() async throws {
        guard joins > 0, burst > 0, rate > 0 else {
            throw ValidationError("Joins, burst and rate are numbers above 0.")
        }
        endProcess(after: 60 + joins)
        do {
            try await measure()
        } catch {
            // The clients that are open end with the process.
            FileHandle.standardError.write(Data("Error: \(error)\n".utf8))
            Foundation.exit(1)
        }
    }

    private func measure() async throws {
        let server = try await LoadServer.named(ours: ours, janus: janus)
        let loop = EventLoop(name: "load")
        let publisher = try await LoadClient("publisher", loop: loop, server: server, profiles: [.aeadAES128GCM])
        try await publisher.join(Self.room)
        let stream = try await publisher.publish()
        let (burst, rate) = (burst, rate)
        let sending = Task {
            let interval = RTP.TimeInterval(nanoseconds: 1_000_000_000 / Int64(rate))
            await publisher.send(bursts: .max, of: burst, every: interval)
        }
        var clients = [try await join(stream, of: server, loop).client]
        let keyframes = await publisher.keyframes
        let start = EventLoop.now
        var times: [(packet: Double, keyframe: Double)] = []
        for _ in 0..<joins {
            let (client, packet, keyframe) = try await join(stream, of: server, loop)
            clients.append(client)
            times.append((packet, keyframe))
        }
        let seconds = (EventLoop.now - start).seconds
        let cost = await publisher.keyframes - keyframes
        await publisher.stopSending()
        await sending.value
        try await Task.sleep(for: .milliseconds(500))
        var (missing, wrong) = (0, 0)
        for client in clients {
            let check = await client.check
            missing += check.missing
            wrong += check.corrupted
        }
        try printJSON(
            RoomJoinsResult(
                joins: joins, seconds: seconds, packetsPerSecond: burst * rate, packet: Summary(times.map(\.packet)),
                keyframe: Summary(times.map(\.keyframe)), keyframes: cost, missing: missing, wrong: wrong))
        // Leaving one by one takes long.
        Foundation.exit(0)
    }

    /// Returns the milliseconds until the stream's first packet, and until a keyframe.
    private func join(
        _ stream: Int, of server: LoadServer, _ loop: EventLoop
    ) async throws -> (client: LoadClient, packet: Double, keyframe: Double) {
        let start = EventLoop.now
        let client = try await LoadClient("subscriber", loop: loop, server: server, profiles: [.aeadAES128GCM])
        try await client.join(Self.room)
        try await client.subscribe(stream)
        await client.start()
        let started = await client.started
        guard let packet = started.packet, let keyframe = started.keyframe else {
            throw BenchmarkError("The stream did not begin.")
        }
        return (client, (packet - start).milliseconds, (keyframe - start).milliseconds)
    }
}
