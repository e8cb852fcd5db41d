import ClientCore
import RTP
import RoomSimulation
import TestSupport
import Testing

/// The statistics of calls, as objects of W3C webrtc-stats.
struct StatisticsTests {
    /// Two participants for ten minutes: streams come, go, share receivers, and lose packets.
    private static let call = Result {
        let simulation = Simulation(seed: 1)
        defer { simulation.end() }
        let link = Link(delay: .milliseconds(40), jitter: .milliseconds(10), loss: 0.03, burst: 0.3)
        let ada = simulation.client("ada", link: link), grace = simulation.client("grace", link: link)
        for client in [ada, grace] { client.statisticsInterval = .seconds(5) }
        simulation.task {
            try await ada.join("kitchen")
            try await grace.join("kitchen")
            _ = try await ada.publishAudio()
            _ = try await grace.publishAudio()
            for round in 0..<20 {
                let video = try await ada.publish(VideoFormat(framesPerSecond: 5 + round / 2, packetsPerFrame: 1))
                try await grace.wait { $0.streams.contains { $0.id == video } }
                try await grace.subscribe(to: video)
                try await simulation.sleep(for: .seconds(20))
                if round % 2 == 0 { try await grace.unsubscribe(from: video) }
                try await ada.unpublish(video)
                try await simulation.sleep(for: .seconds(5))
            }
        }
        try simulation.run(for: .seconds(600))
        return [ada, grace]
    }

    /// Counters of the standard that this SDK has, except `packetsLost`, which a late packet lowers.
    private static let counters: Set<String> = [
        "packetsSent", "packetsReceived", "bytesSent", "bytesReceived", "selectedCandidatePairChanges", "frames",
        "totalAudioEnergy", "totalSamplesDuration", "headerBytesSent", "nackCount", "retransmittedPacketsSent",
        "retransmittedBytesSent", "framesSent", "framesEncoded", "keyFramesEncoded", "pliCount", "firCount",
        "totalRoundTripTime", "roundTripTimeMeasurements", "headerBytesReceived", "packetsDiscarded",
        "retransmittedPacketsReceived", "retransmittedBytesReceived", "framesReceived", "framesDecoded",
        "framesRendered", "totalSamplesReceived", "reportsSent", "lastPacketReceivedTimestamp", "remoteTimestamp",
    ]

    private func number(_ value: StatisticsValue?) -> Double? {
        switch value {
        case .integer(let number): Double(number)
        case .number(let number): number
        case .text, .flag, nil: nil
        }
    }

    private func reports(of client: SimulatedClient) -> [[[StatisticsEntry]]] {
        let figures = client.statistics.map(\.figures)
        return [figures.compactMap { $0.up?.report }, figures.compactMap { $0.down?.report }]
    }

    @Test func `statistics come at their interval while the room is connected`() throws {
        for client in try Self.call.get() {
            let times = client.statistics.map(\.at)
            #expect((118...120).contains(times.count))
            #expect(zip(times, times.dropFirst()).allSatisfy { $1 - $0 == .seconds(5) })
        }
    }

    @Test func `in ten minutes of call, counters only grow`() throws {
        for client in try Self.call.get() {
            for session in reports(of: client) {
                var before: [String: [String: StatisticsValue]] = [:]
                var counted: Set<String> = []
                for entry in session.flatMap({ $0 }) {
                    for (name, value) in entry.values where Self.counters.contains(name) {
                        let (former, now) = (number(before[entry.id]?[name]) ?? 0, number(value) ?? -1)
                        #expect(now >= former, "\(entry.id) \(name): \(former), then \(now)")
                        if now > former { counted.insert(name) }
                    }
                    before[entry.id] = entry.values
                }
                #expect(counted.count >= 8, "\(counted.sorted())")
            }
        }
    }

    @Test func `each id that a value names is in the report, and none is there twice`() throws {
        for client in try Self.call.get() {
            for report in reports(of: client).flatMap({ $0 }) {
                let ids = Set(report.map(\.id))
                #expect(ids.count == report.count)
                for entry in report {
                    for (name, value) in entry.values where name.hasSuffix("Id") && name != "participantId" {
                        guard name != "streamId", case .text(let id) = value else { continue }
                        #expect(ids.contains(id), "\(entry.id) \(name): \(id)")
                    }
                }
            }
        }
    }

    @Test func `the packets that an outage has lost are no recent losses after it`() throws {
        let simulation = Simulation(seed: 1)
        defer { simulation.end() }
        let ada = simulation.client("ada", link: .wired), grace = simulation.client("grace", link: .wired)
        for client in [ada, grace] { client.statisticsInterval = .milliseconds(500) }
        simulation.task {
            try await ada.join("kitchen")
            try await grace.join("kitchen")
            let video = try await ada.publish(VideoFormat())
            try await grace.wait { $0.streams.contains { $0.id == video } }
            try await grace.subscribe(to: video)
            try await simulation.sleep(for: .seconds(10))
            for client in [ada, grace] { client.cutMedia() }
            try await simulation.sleep(for: .seconds(6))
            for client in [ada, grace] { client.reconnect() }
        }
        try simulation.run(for: .seconds(30))
        for client in [ada, grace] {
            let after = client.statistics.map { $0.figures }.filter {
                !$0.outages.isEmpty && $0.interruptedSeconds == nil
            }
            #expect(after.count >= 10, "\(client.name): \(after.count)")
            let losses = after.flatMap { $0.published.map { $0.recentLoss } + $0.received.map { $0.recentLoss } }
            #expect(!losses.isEmpty && losses.allSatisfy { $0 < 0.1 }, "\(client.name): \(losses)")
        }
    }

    @Test func `both sides of a link agree`() throws {
        let clients = try Self.call.get()
        let sent = try #require(reports(of: clients[0])[0].last)
        let audio = try #require(sent.first { $0.type == "outbound-rtp" && $0.values["kind"] == .text("audio") })
        let remote = try #require(sent.first { .text($0.id) == audio.values["remoteId"] })
        #expect(remote.type == "remote-inbound-rtp" && remote.values["localId"] == .text(audio.id))
        let packets = try #require(number(audio.values["packetsSent"]))
        let lost = try #require(number(remote.values["packetsLost"]))
        // 50 packets a second, of which 3 % are lost.
        #expect((29_000...30_100).contains(packets) && (0.02...0.06).contains(lost / packets), "\(lost) of \(packets)")
        // 40 ms each way, and the jitter.
        let roundTrip = try #require(number(remote.values["roundTripTime"]))
        #expect((0.08...0.12).contains(roundTrip))
        let source = try #require(sent.first { $0.type == "transport" })
        #expect(source.values["dtlsState"] == .text("connected") && source.values["iceState"] == .text("connected"))
    }
}
