import Logging
import MediaGraph
import MediaNodes
import RoomClient
import RoomProtocol
import RoomServer
import TestSupport
import Testing

extension GuestTests {
    /// A camera in a room, while it is unplugged and plugged in again.
    @Suite struct CameraInRoomTests {
        private static let key = ServiceKey(id: "guest", secret: "a secret of at least 32 characters")
        private static let losses = 50

        private func roomNode(_ kind: String, _ server: RoomServer) -> Node {
            Node(
                kind,
                settings: [
                    "room": "kitchen", "server": .text(server.url), "service-id": .text(Self.key.id),
                    "service-secret": .text(Self.key.secret), "codec": "vp8",
                ].filter { kind == "subscribe" || $0.key != "codec" })
        }

        @Test func `fifty losses at random moments end no stream of a room`() async throws {
            let cameras = try Vivid()
            let path = try cameras[0]
            var configuration = RoomServer.Configuration(
                service: Self.key, log: Logger(label: "server") { _ in SwiftLogNoOpLogHandler() })
            configuration.port = 0
            let server = try await RoomServer.start(configuration)
            let publisher = try await Watched(
                MediaGraph {
                    Chain {
                        Watched.camera(path)
                        Node.videoEncoder("encoder", codec: .vp8)
                        roomNode("publish", server)
                    }
                }, registry: RoomNodes.registry
            ).start()
            let viewer = try await Watched(
                MediaGraph {
                    Chain {
                        roomNode("subscribe", server)
                        Node.videoDecoder()
                        Node.frames("view")
                    }
                }, registry: RoomNodes.registry
            ).start()
            await eventually(within: 60, "frames") { viewer.pictures.count > 10 }
            var random = Seeded(29)
            var before = Footprint.now
            for round in 1...Self.losses {
                // vivid connects a camera again when its last user has closed it.
                try Camera.set("disconnect", 1, of: path)
                await eventually(within: 60, "return \(round)") { publisher.deviceEvents.count == 2 * round }
                let wanted = viewer.pictures.count + Int.random(in: 1...30, using: &random)
                await eventually(within: 60, "frames after loss \(round)") { viewer.pictures.count >= wanted }
                if round == 5 { before = Footprint.now }
            }
            let after = Footprint.now
            print("\(Self.losses) losses in a room: \(before) -> \(after)")
            #expect(after.cameras == 1)
            #expect(after.descriptors <= before.descriptors + 2, "\(before) -> \(after)")
            #expect(after.kilobytes < before.kilobytes + 20_000, "\(before) -> \(after)")
            #expect(publisher.failure == nil && viewer.failure == nil)
            #expect(viewer.lostParts.isEmpty)
            #expect(Set(viewer.pictures.all) == ["320x180"])
            #expect(zip(viewer.times.all, viewer.times.all.dropFirst()).allSatisfy { $0 < $1 })
            await viewer.pipeline.stop()
            await publisher.pipeline.stop()
            await server.stop()
        }
    }
}
