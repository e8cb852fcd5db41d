import RTP
import Testing

@testable import RoomSimulation

struct ReplayPaceTests {
    /// The server requests a keyframe once a second at most, and keeps the packets since the last one that long.
    @Test
    func `a client that subscribes again sees the video at once, though nobody watched it meanwhile`() throws {
        let simulation = Simulation(seed: 1)
        let (ada, grace) = (simulation.client("ada"), simulation.client("grace"))
        simulation.task {
            for client in [ada, grace] { try await client.join("kitchen") }
            let video = try await ada.publish()
            try await grace.wait { $0.streams.count == 1 }
            for pause in stride(from: 50, to: 2000, by: 150) as StrideTo<Int64> {
                try await grace.subscribe(to: video)
                let before = grace.framesShown(of: video)
                try await grace.wait { $0.framesShown(of: video) > before + 10 }
                try await grace.unsubscribe(from: video)
                try await simulation.sleep(for: .milliseconds(pause))
            }
        }
        let report = try simulation.run(for: .seconds(30))
        #expect(report.viewers.count == 13)
        let longest = try #require(report.viewers.dropFirst().compactMap(\.firstFrame).max())
        #expect(longest < .milliseconds(150), "\(report.viewers.map { $0.firstFrame?.milliseconds ?? -1 })")
        simulation.end()
    }

    @Test func `a client that subscribes 20 times a second gets few replays, and a video at the next keyframe`() throws
    {
        let simulation = Simulation(seed: 1)
        let clients = ["ada", "grace", "hopper"].map { simulation.client($0) }
        simulation.task {
            for client in clients { try await client.join("kitchen") }
            var videos: [Int] = []
            for _ in 0..<3 { videos.append(try await clients[0].publish()) }
            for client in clients.dropFirst() { try await client.wait { $0.streams.count == 3 } }
            for video in videos { try await clients[1].subscribe(to: video) }
            for _ in 0..<200 {
                for video in videos { try await clients[2].subscribe(to: video) }
                try await simulation.sleep(for: .milliseconds(50))
                for video in videos { try await clients[2].unsubscribe(from: video) }
            }
            let last = videos[2]
            let before = clients[2].framesShown(of: last)
            try await clients[2].subscribe(to: last)
            try await clients[2].wait { $0.framesShown(of: last) > before + 100 }
        }
        let report = try simulation.run(for: .seconds(30))
        let viewers = report.viewers.filter { $0.client == "hopper" }
        #expect(viewers.count == 601)
        // 20 replays and 2 a second for all videos, and a keyframe of each a second. A round takes less than 65 ms.
        let seconds = 200 * 65 / 1000
        let shown = viewers.count { $0.firstFrame != nil }
        #expect((20...(20 + 5 * seconds)).contains(shown), "\(shown)")
        #expect(viewers.last?.firstFrame.map { $0 < .milliseconds(1200) } == true)
        // The viewer that stays is not affected.
        #expect(report.viewers[0].longestFreeze < .milliseconds(100))
        simulation.end()
    }
}
