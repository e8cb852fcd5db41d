import RTP
import TestSupport
import Testing

@testable import RoomSimulation

/// Rooms that are on two loops of the server, or more.
struct PipeTests {
    /// A publisher and a viewer on the first loop, and two viewers on the second.
    ///
    /// Sendable by hand: its simulation runs on the thread of the test.
    private final class Call: @unchecked Sendable {
        let simulation: Simulation
        let ada: SimulatedClient
        let near: SimulatedClient
        let far: [SimulatedClient]

        init(seed: UInt64 = 1, loops: Int = 2, window: Int? = nil) {
            let simulation = Simulation(seed: seed, loops: loops, spreadsRooms: true)
            self.simulation = simulation
            if let window {
                simulation.world.server.kill()
                simulation.world.server.hops.window = window
                simulation.world.server.start()
            }
            let clients = ["ada", "hopper", "near", "grace"].map { simulation.client($0) }
            (ada, near, far) = (clients[0], clients[2], [clients[1], clients[3]])
        }

        var server: SimulatedServer { simulation.world.server }
    }

    @Test func `a stream reaches the subscribers of both loops, each packet of it once`() throws {
        let call = Call()
        call.simulation.task { [call] in
            try await call.ada.join("kitchen")
            for client in call.far + [call.near] { try await client.join("kitchen") }
            let video = try await call.ada.publish()
            for client in call.far + [call.near] {
                try await client.wait { $0.streams.map(\.id) == [video] }
                try await client.subscribe(to: video)
            }
        }
        let report = try call.simulation.run(for: .seconds(10))
        #expect(call.server.process?.roomCounts == [1, 1])
        #expect(report.viewers.count == 3)
        #expect(report.viewers.allSatisfy { $0.shown > 230 && $0.skippedPackets == 0 })
        #expect(report.viewers.allSatisfy { $0.firstFrame.map { $0 < .milliseconds(100) } ?? false })
        // Two viewers of the other loop share each packet. A keyframe has three more.
        #expect(call.server.hops.carried.packets <= 250 + 3 * report.keyframes)
        #expect(report.missingNumbers == 0)
        call.simulation.end()
    }

    @Test func `a late subscriber of the other loop begins at that loop's last keyframe`() throws {
        var keyframes: [Int] = []
        for loops in [1, 2] {
            let call = Call(loops: loops)
            call.simulation.task { [call] in
                for client in [call.ada] + call.far { try await client.join("kitchen") }
                let video = try await call.ada.publish()
                try await call.far[0].wait { !$0.streams.isEmpty }
                try await call.far[0].subscribe(to: video)
                try await call.far[0].wait { $0.framesShown(of: video) == 5 }
                try await call.far[1].subscribe(to: video)
            }
            let report = try call.simulation.run(for: .seconds(5))
            #expect(report.viewers.allSatisfy { $0.shown > 110 })
            #expect(report.viewers[1].firstFrame.map { $0 < .milliseconds(10) } == true)
            keyframes.append(report.keyframes)
            call.simulation.end()
        }
        #expect(keyframes[0] == keyframes[1])
    }

    @Test func `keyframe requests of the other loop cost as many keyframes as those of the own one`() throws {
        var keyframes: [Int] = []
        for loops in [1, 2] {
            let call = Call(loops: loops)
            call.simulation.task { [call] in
                for client in [call.ada] + call.far { try await client.join("kitchen") }
                let video = try await call.ada.publish()
                try await call.far[0].wait { !$0.streams.isEmpty }
                for _ in 0..<40 {
                    for client in call.far {
                        try await client.subscribe(to: video)
                        try await call.simulation.sleep(for: .milliseconds(100))
                        try await client.unsubscribe(from: video)
                    }
                }
            }
            let report = try call.simulation.run(for: .seconds(10))
            #expect(report.viewers.count == 80)
            keyframes.append(report.keyframes)
            call.simulation.end()
        }
        #expect(keyframes[1] <= keyframes[0] + 1, "\(keyframes)")
    }

    @Test func `a subscription that begins again on the other loop waits for one keyframe, whichever comes first`()
        throws
    {
        let call = Call()
        call.simulation.task { [call] in
            for client in [call.ada] + call.far { try await client.join("kitchen") }
            // The sessions are known to work.
            try await call.simulation.sleep(for: .seconds(3))
            let video = try await call.ada.publish()
            try await call.far[0].wait { !$0.streams.isEmpty }
            try await call.far[0].subscribe(to: video)
            try await call.simulation.sleep(for: .milliseconds(500))
            try await call.far[0].unsubscribe(from: video)
            try await call.far[0].subscribe(to: video)
            try await call.simulation.sleep(for: .milliseconds(200))
            // The publisher's own keyframe answers the request that waits for the end of the second.
            call.ada.restartSources()
        }
        let report = try call.simulation.run(for: .seconds(10))
        #expect(report.viewers.map { $0.shown > 10 } == [true, true])
        #expect(report.viewers.allSatisfy { $0.skippedPackets == 0 })
        // The first frame, that of the first subscription, the restart's, and one that the second viewer requests at its
        // first packet.
        #expect(report.keyframes == 4)
        #expect(report.missingNumbers == 0)
        call.simulation.end()
    }

    @Test func `a stream that nobody watches on the other loop does not cross`() throws {
        let call = Call()
        call.simulation.task { [call] in
            for client in [call.ada, call.near] + call.far { try await client.join("kitchen") }
            let video = try await call.ada.publish()
            try await call.near.wait { !$0.streams.isEmpty }
            try await call.near.subscribe(to: video)
            try await call.near.wait { $0.framesShown(of: video) == 50 }
            #expect(call.server.hops.carried.packets == 0)
            try await call.far[0].subscribe(to: video)
            try await call.far[0].wait { $0.framesShown(of: video) == 50 }
            #expect(call.server.hops.carried.packets > 40)
            try await call.far[0].unsubscribe(from: video)
            try await call.simulation.sleep(for: .milliseconds(10))
            let before = call.server.hops.carried.packets
            try await call.simulation.sleep(for: .seconds(1))
            #expect(call.server.hops.carried.packets == before)
        }
        try call.simulation.run(for: .seconds(10))
        #expect(call.far[0].framesShown(of: 1) >= 50)
        call.simulation.end()
    }

    @Test func `participants and streams of both loops come and go for all`() throws {
        let call = Call()
        call.simulation.task { [call] in
            try await call.ada.join("kitchen")
            let first = try await call.ada.publish()
            try await call.far[0].join("kitchen")
            try await call.far[0].wait { $0.streams.map(\.id) == [first] }
            let second = try await call.far[0].publish()
            try await call.ada.wait { $0.streams.map(\.id) == [second] }
            try await call.ada.subscribe(to: second)
            try await call.ada.wait { $0.framesShown(of: second) > 10 }
            try await call.far[0].unpublish(second)
            try await call.ada.wait { $0.streams.isEmpty && $0.watched.isEmpty }
            let third = try await call.far[0].publish()
            try await call.ada.wait { $0.streams.map(\.id) == [third] }
            try await call.far[0].leave()
            try await call.ada.wait(until: \.streams.isEmpty)
            #expect(call.server.process?.roomCounts == [1, 0])
            // The part begins again, with its last participant's return.
            try await call.far[0].join("kitchen")
            try await call.far[0].wait { $0.streams.map(\.id) == [first] }
            try await call.ada.leave()
            try await call.far[0].wait(until: \.streams.isEmpty)
            #expect(call.server.process?.roomCounts == [0, 1])
        }
        try call.simulation.run(for: .seconds(10))
        #expect(call.far[0].isConnected)
        #expect(call.server.process?.roomCounts == [0, 1])
        call.simulation.end()
    }

    @Test func `two parts that begin at the same time find each other`() throws {
        for seed in UInt64(1)...10 {
            let call = Call(seed: seed)
            for client in [call.ada, call.far[0]] {
                call.simulation.task { [call] in
                    for _ in 0..<3 {
                        try await client.join("kitchen")
                        try await client.publish()
                        try await client.wait { $0.streams.count == 1 }
                        try await client.leave()
                        try await call.simulation.sleep(for: .milliseconds(Int64(seed)))
                    }
                    try await client.join("kitchen")
                    try await client.publish()
                }
            }
            try call.simulation.run(for: .seconds(20))
            #expect(call.ada.streams.count == 1, "seed \(seed)")
            #expect(call.far[0].streams.count == 1, "seed \(seed)")
            call.simulation.end()
        }
    }

    @Test func `a full pipe drops the packets of whole turns, and its streams go on at a keyframe`() throws {
        let window = 20_000
        let call = Call(window: window)
        call.simulation.task { [call] in
            for client in [call.ada] + call.far { try await client.join("kitchen") }
            let video = try await call.ada.publish(VideoFormat(payload: 1000))
            try await call.far[0].wait { !$0.streams.isEmpty }
            for client in call.far { try await client.subscribe(to: video) }
            for client in call.far { try await client.wait { $0.framesShown(of: video) == 50 } }
            let before = call.server.hops.carried.bytes
            call.server.hops.hold(true)
            try await call.simulation.sleep(for: .seconds(3))
            #expect(call.server.hops.carried.bytes - before > window / 2)
            #expect(call.server.hops.carried.bytes - before <= window)
            call.server.hops.hold(false)
            // A participant that came meanwhile is not lost.
            try await call.near.join("kitchen")
        }
        let report = try call.simulation.run(for: .seconds(15))
        #expect((call.server.process?.notPiped ?? 0) > 20)
        for viewer in report.viewers {
            // 12 seconds without the three.
            #expect(viewer.shown > 260)
            #expect(viewer.longestFreeze < .milliseconds(3200))
            #expect(viewer.skippedPackets == 0)
        }
        #expect(report.missingNumbers == 0)
        call.simulation.end()
    }

    @Test func `messages wait for a loop that accepts nothing, and streams go on at a keyframe`() throws {
        let call = Call()
        call.simulation.task { [call] in
            try await call.ada.join("kitchen")
            let video = try await call.ada.publish()
            call.server.hops.refuses = true
            try await call.far[0].join("kitchen")
            try await call.simulation.sleep(for: .seconds(1))
            #expect(call.far[0].streams.isEmpty)
            call.server.hops.refuses = false
            try await call.far[0].wait { $0.streams.map(\.id) == [video] }
            try await call.far[0].subscribe(to: video)
            try await call.far[0].wait { $0.framesShown(of: video) == 20 }
            call.server.hops.refuses = true
            try await call.near.join("kitchen")
            let other = try await call.near.publish()
            try await call.near.unpublish(other)
            let last = try await call.near.publish()
            try await call.simulation.sleep(for: .seconds(1))
            call.server.hops.refuses = false
            try await call.far[0].wait { $0.streams.map(\.id) == [video, last] }
            try await call.far[0].wait { $0.framesShown(of: video) == 60 }
            call.server.hops.refuses = true
            try await call.near.leave()
            try await call.ada.leave()
            try await call.simulation.sleep(for: .seconds(1))
            #expect(call.far[0].streams.count == 2)
            call.server.hops.refuses = false
            try await call.far[0].wait(until: \.streams.isEmpty)
        }
        let report = try call.simulation.run(for: .seconds(10))
        #expect(call.far[0].isConnected && call.far[0].streams.isEmpty)
        #expect(call.far[0].framesShown(of: 1) >= 60)
        #expect(report.viewers.allSatisfy { $0.skippedPackets == 0 })
        #expect(report.missingNumbers == 0)
        call.simulation.end()
    }

    @Test(arguments: 1...UInt64(Soak.rounds(2, soak: 6)))
    func `a room with faults on three loops keeps its promises`(seed: UInt64) throws {
        var room = FaultyRoom()
        room.clients = 6
        room.loops = 3
        let report = try room.run(seed: seed)
        #expect(report.viewers.count >= 30)
    }
}
