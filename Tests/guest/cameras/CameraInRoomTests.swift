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

        /// A publisher of the camera, and a viewer of the room.
        private func call(_ path: String) async throws -> (server: RoomServer, publisher: Watched, viewer: Watched) {
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
            return (server, publisher, viewer)
        }

        /// Checks the viewer's stream, and ends all.
        private func end(_ call: (server: RoomServer, publisher: Watched, viewer: Watched)) async {
            let (server, publisher, viewer) = call
            #expect(publisher.failure == nil && viewer.failure == nil)
            #expect(viewer.lostParts.isEmpty)
            #expect(Set(viewer.pictures.all) == ["320x180"])
            #expect(zip(viewer.times.all, viewer.times.all.dropFirst()).allSatisfy { $0 < $1 })
            await viewer.pipeline.stop()
            await publisher.pipeline.stop()
            await server.stop()
        }

        @Test func `a lossy network with a long delay carries a camera, also over its loss`() async throws {
            let cameras = try Vivid()
            let path = try cameras[0]
            let call = try await call(path)
            let network = try Driver("sch_netem")
            // 50 ms in each direction.
            try Program.run(
                "tc", ["qdisc", "add", "dev", "lo", "root", "netem", "delay", "50ms", "loss", "5%", "limit", "10000"])
            for round in 1...3 {
                let seen = call.viewer.pictures.count
                await eventually(within: 120, "frames of round \(round)") { call.viewer.pictures.count > seen + 60 }
                try Camera.set("disconnect", 1, of: path)
                await eventually(within: 60, "return \(round)") { call.publisher.deviceEvents.count == 2 * round }
            }
            let seen = call.viewer.pictures.count
            await eventually(within: 120, "frames at the end") { call.viewer.pictures.count > seen + 30 }
            try Program.run("tc", ["qdisc", "del", "dev", "lo", "root"])
            network.unload()
            await end(call)
        }

        @Test func `fifty losses at random moments end no stream of a room`() async throws {
            let cameras = try Vivid()
            let path = try cameras[0]
            let call = try await call(path)
            let (publisher, viewer) = (call.publisher, call.viewer)
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
            await end(call)
        }
    }
}
