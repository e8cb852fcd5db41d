import ConnectLiveSDK
import RoomServer
import TestFixtures
import Testing
import TestSupport

extension SDKTests {
    /// Pipelines with rooms.
    @Suite(.timeLimit(.minutes(1)))
    struct Pipelines {
        @Test func `the handles of rooms have all settings of their kinds`() throws {
            let access = RoomAccess(server: "ws://a:1", serviceId: "a", serviceSecret: "b", token: "c")
            let graph = try Composition {
                Publish(room: "demo", access: access, label: "a", degradation: .balanced, layers: 3)
                Subscribe(
                    room: "demo", participant: "a", codec: .vp8, receivesOwn: false, latency: .milliseconds(100),
                    access: access)
            }.graph
            for node in graph.nodes {
                let kind = try #require(NodeRegistry.withRooms.kind(named: node.kind))
                #expect(Set(kind.settings.map(\.name)) == Set(node.settings.keys))
            }
            #expect(graph.validate(with: NodeRegistry.withRooms).filter { $0.setting != nil }.isEmpty)
        }

        @Test func `handles publish into a room and subscribe, and a recording joins and leaves`() async throws {
            try await onStage { stage in
                let folder = TemporaryFolder()
                let access = RoomAccess(
                    server: stage.server.url, serviceId: stage.key.id, serviceSecret: stage.key.secret)
                let source = TestPattern(width: 320, height: 240), window = Null().optional
                let video = VideoEncoder(.h264, bitrate: .megabitsPerSecond(1)), audio = OpusEncoder()
                let publish = Publish(room: "demo", access: access, label: "ours")
                let publisher = try await MediaPipeline {
                    source >>> window
                    source >>> video >>> publish
                    source.audio >>> audio >>> publish
                }
                try await publisher.start()

                let (widths, levels) = (Collected<Int>(), Collected<Double>())
                let subscribe = Subscribe(room: "demo", codec: .h264, access: access)
                let viewer = try await MediaPipeline {
                    subscribe.video >>> Frames { widths.append($0.width) }
                    subscribe.audio >>> Sound { levels.append($0.level) }
                }
                try await viewer.start()
                await eventually("frames and sound") { widths.count > 10 && levels.count > 10 }
                #expect(Set(widths.all) == [320])

                let recorder = Recorder(path: folder.file("talk.mkv"))
                #expect(
                    try await publisher.add {
                        video >>> recorder
                        audio >>> recorder
                    }.description == "adds recorder")
                await eventually("a recording") { (try? recorder.statistics.frames) ?? 0 > 5 }
                try await video.setBitrate(.kilobitsPerSecond(500))
                #expect(publisher.plan.node(video)?.node.settings == ["bitrate": 500_000])
                #expect(try await publisher.remove(recorder).description == "removes recorder")
                #expect(publisher.plan.node(publish) != nil)
                let other = Publish(room: "second", access: access)
                #expect(try await publisher.add { video >>> other }.description == "adds publish-2")
                #expect(
                    try await publisher.apply { source >>> video >>> other }.removed.contains("publish"))
                await viewer.stop()
                await publisher.stop()
            }
        }
    }
}
