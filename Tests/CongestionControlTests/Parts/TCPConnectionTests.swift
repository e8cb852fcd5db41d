import CongestionControl
import Testing

/// The other traffic of the simulated links.
@Suite struct TCPConnectionTests {
    private func call(queue: Double, _ connections: Int) -> CallSimulation {
        var settings = SimulatedLink.Settings(2000, delay: 50)
        settings.queue = queue
        let call = CallSimulation(forward: settings, flows: [])
        for index in 0..<connections { call.add(TCPConnection(stop: .infinity), at: Double(index)) }
        return call.run(until: 120)
    }

    @Test func `a long connection fills the link and its queue`() {
        let call = call(queue: 300, 1)
        #expect(call.deliveredByTCP(20, 120) > 1900)
        #expect(call.queue(0.95, 20, 120) > 250)
        #expect(call.forward.dropped > 0)
    }

    @Test func `two long connections share a link`() {
        let call = call(queue: 300, 2)
        let shares = call.connections.map { $0.delivered.filter { $0.at > 60 }.count }
        #expect(call.deliveredByTCP(20, 120) > 1900)
        #expect(shares.allSatisfy { $0 > 2000 }, "\(shares)")
    }

    @Test func `short transfers wait between files, and each file arrives`() {
        let call = CallSimulation(forward: SimulatedLink.Settings(2000, delay: 50), flows: [])
        let transfers = TCPConnection.Transfers(sizes: 30_000...50_000, pause: 10, pausesFirst: false)
        call.add(TCPConnection(transfers: transfers, stop: 600), at: 0)
        call.run(until: 620)
        let connection = call.connections[0]
        #expect((30...100).contains(connection.finished.count))
        let bytes = connection.delivered.reduce(0) { $0 + $1.bytes }
        #expect((30_000...52_000).contains(bytes / Double(connection.finished.count)))
        #expect(connection.finished.allSatisfy { $0.seconds > 0.2 && $0.seconds < 1 })
    }

    @Test func `a connection goes on after an outage`() {
        let settings = SimulatedLink.Settings(rates: [(0, 2000), (10, 0), (20, 2000)], delay: 50)
        let call = CallSimulation(forward: settings, flows: [])
        call.add(TCPConnection(stop: .infinity), at: 0)
        call.run(until: 40)
        #expect(call.deliveredByTCP(25, 40) > 1500)
    }

    @Test func `a flow that pauses sends nothing, and one on the way back does not load the way forward`() {
        var paused = CallSimulation.Flow()
        paused.pause = 5..<10
        var other = CallSimulation.Flow()
        other.isBackward = true
        let link = SimulatedLink.Settings(2000, delay: 50)
        let call = CallSimulation(forward: link, back: link, flows: [paused, other]).run(until: 15)
        let packets = call.records[0].sendTimes.filter { $0.at > 6 && $0.at < 10 && $0.kind != .padding }
        #expect(packets.isEmpty)
        #expect(call.use(6, 10, backward: true) > 0.8)
        #expect(call.use(11, 15) > 0.5)
    }
}
