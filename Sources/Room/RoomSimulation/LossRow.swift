internal import RTP

/// One row of the table of losses: a room of a publisher and a viewer whose links lose packets.
package struct LossRow: Sendable {
    /// The links that lose packets, and have the round trip. Another link is wired.
    package enum Place: String, Sendable {
        case viewer, publisher
        /// Each with half of the round trip, and with all of the loss.
        case both
    }

    package var place: Place
    package var loss: Double
    /// The mean length of bursts in datagrams. 1 for independent losses.
    package var burst: Double
    /// In milliseconds, between the ends.
    package var roundTrip: Int64
    package var video = VideoFormat(packetsPerFrame: 2, packetsPerKeyframe: 8, payload: 1000, followsRate: true)

    package init(_ place: Place = .viewer, loss: Double, burst: Double = 1, roundTrip: Int64) {
        (self.place, self.loss, self.burst, self.roundTrip) = (place, loss, burst, roundTrip)
    }

    func link(losing: Bool) -> Link {
        // A burst of mean length L goes on with 1 - 1/L, and begins so seldom that the loss is the same.
        let goesOn = burst > 1 ? 1 - 1 / burst : 0
        let begins = burst > 1 ? loss * (1 - goesOn) / (1 - loss) : loss
        let share: Int64 = place == .both ? 4 : 2
        return Link(
            delay: TimeInterval(nanoseconds: roundTrip * 1_000_000 / share), loss: losing ? begins : 0,
            burst: losing ? goesOn : 0)
    }

    /// Runs the room. Losses begin once it is set up, and are counted after three more seconds.
    ///
    /// - Parameters:
    ///   - seconds: of virtual time that are counted.
    ///   - seed: decides which packets are lost.
    package func run(seconds: Int64, seed: UInt64) throws -> PacketLog.Outcome {
        let simulation = Simulation(seed: seed)
        defer { simulation.end() }
        let ada = simulation.client("ada", link: place == .viewer ? .wired : link(losing: false))
        let grace = simulation.client("grace", link: place == .publisher ? .wired : link(losing: false))
        let video = video
        simulation.task("table") {
            try await ada.join("kitchen")
            let stream = try await ada.publish(video)
            try await grace.join("kitchen")
            try await grace.subscribe(to: stream)
        }
        _ = try simulation.run(for: .seconds(5))
        if place != .viewer { ada.setLink(link(losing: true)) }
        if place != .publisher { grace.setLink(link(losing: true)) }
        let log = simulation.logPackets()
        _ = try simulation.run(for: .seconds(3))
        let start = simulation.now
        let before = ada.up.bytes + grace.down.bytes
        _ = try simulation.run(for: .seconds(seconds))
        let end = simulation.now
        let bytes = ada.up.bytes + grace.down.bytes - before
        _ = try simulation.run(for: .seconds(2))
        var outcome = log.outcome(from: start, to: end)
        (outcome.mediaBytes, outcome.sentBytes) = (2 * outcome.packets * video.payload, bytes)
        return outcome
    }

    /// Runs a room with audio alone, for a listener in place of the viewer.
    ///
    /// - Parameter payload: bytes of a packet of 20 ms
    package func runAudio(seconds: Int64, seed: UInt64, payload: Int) throws -> AudioLog.Outcome {
        let simulation = Simulation(seed: seed)
        defer { simulation.end() }
        let ada = simulation.client("ada", link: place == .viewer ? .wired : link(losing: false))
        let grace = simulation.client("grace", link: place == .publisher ? .wired : link(losing: false))
        simulation.task("table") {
            try await grace.join("kitchen")
            try await ada.join("kitchen")
            _ = try await ada.publishAudio(payload: payload)
        }
        _ = try simulation.run(for: .seconds(5))
        if place != .viewer { ada.setLink(link(losing: true)) }
        if place != .publisher { grace.setLink(link(losing: true)) }
        let log = simulation.logAudio()
        // For the first reports.
        _ = try simulation.run(for: .seconds(15))
        let start = simulation.now
        _ = try simulation.run(for: .seconds(seconds))
        let end = simulation.now
        _ = try simulation.run(for: .seconds(2))
        return log.outcome(from: start, to: end)
    }
}
