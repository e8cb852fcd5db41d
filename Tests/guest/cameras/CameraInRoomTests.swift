import Foundation
import Glibc
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

        private func roomNode(_ kind: String, _ server: String) -> Node {
            Node(
                kind,
                settings: [
                    "room": "kitchen", "server": .text(server), "service-id": .text(Self.key.id),
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
                        roomNode("publish", server.url)
                    }
                }, registry: RoomNodes.registry
            ).start()
            let viewer = try await Watched(
                MediaGraph {
                    Chain {
                        roomNode("subscribe", server.url)
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
            // The size follows the network and the speed of the guest.
            let sizes = Set(viewer.pictures.all.map { $0.split(separator: "x").compactMap { Double($0) } })
            #expect(sizes.contains([320, 180]))
            #expect(sizes.allSatisfy { $0.count == 2 && abs($0[0] / $0[1] - 16 / 9) < 0.05 }, "\(sizes)")
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

        /// How a camera is lost.
        private enum Loss: String, CaseIterable {
            /// The device goes, and is back when its reader has closed it.
            case disconnect
            /// Its driver is taken from it, and given back.
            case unbind
            /// Its driver is also unloaded and loaded.
            case reload
        }

        private static let port = 7880

        /// A publisher of the camera, as users run it, whose video is on the wire.
        private func publisher(_ path: String, _ wire: Wire) async throws -> Background {
            let file = NSTemporaryDirectory() + "moving.yaml"
            try """
            chains:
              - - {node: camera, device: \(path), width: 320, height: 180, fps: 15, controls: horizontal_movement=6}
                - {node: vp8-encoder, bitrate: 500k}
                - {node: publish, room: kitchen, server: "http://127.0.0.1:\(Self.port)", service-id: guest,
                   service-secret: "\(Self.key.secret)"}
            """.write(toFile: file, atomically: true, encoding: .utf8)
            // The first programs of a guest are read slowly, and a join has a timeout.
            var last: [Substring] = []
            for _ in 1...5 {
                let publisher = try Background.tool("run", file, "--quiet", name: "publisher")
                _ = await eventually(within: 180) { !wire.sources.isEmpty || !publisher.isRunning }
                if !wire.sources.isEmpty { return publisher }
                last = publisher.lines
            }
            throw Program.Failure(description: "nothing is published: \(last)")
        }

        private func viewer(_ movement: Movement) async throws -> (MediaPipeline, Collected<MediaEvent>) {
            let events = Collected<MediaEvent>()
            var bindings = NodeBindings()
            bindings.events = { events.append($0) }
            bindings.frames["view"] = { movement.take($0) }
            let graph = MediaGraph {
                Chain {
                    roomNode("subscribe", "http://127.0.0.1:\(Self.port)")
                    Node.videoDecoder()
                    Node.frames("view")
                }
            }
            let pipeline = try await MediaPipeline(graph, bindings: bindings, registry: RoomNodes.registry)
            try await pipeline.start()
            return (pipeline, events)
        }

        /// Seconds of CLOCK_MONOTONIC. The return is known if the test makes it.
        private typealias Moment = (lost: Double, back: Double?)

        /// Loses the camera and brings it back.
        private func lose(_ loss: Loss, _ cameras: Vivid) async throws -> Moment {
            let path = try cameras[0]
            let lost = monotonicSeconds()
            guard loss != .disconnect else {
                try Camera.set("disconnect", 1, of: path)
                return (lost, nil)
            }
            try Vivid.bind(false)
            if loss == .reload {
                try await eventually(within: 60, "its reader closes it") { try !Vivid.isRead }
                try cameras.reload()
            } else {
                try Vivid.bind(true)
            }
            return (lost, monotonicSeconds())
        }

        @Test func `fifty losses of all kinds at random moments keep one stream of a room, quiet and without a leak`()
            async throws
        {
            let cameras = try Vivid()
            let trace = try BufferTrace()
            let server = try Background.tool(
                "serve", "--listen", "127.0.0.1:\(Self.port)", "--service-id", Self.key.id, "--service-secret",
                Self.key.secret, "--verbose", name: "server")
            await eventually(within: 60, "the server serves") { server.lines.contains { $0.contains("7880") } }
            let wire = try await Wire(of: Self.port)
            let publisher = try await publisher(try cameras[0], wire)
            let movement = Movement()
            let (viewer, events) = try await viewer(movement)
            try await requireEventually(within: 120, "frames that move") { movement.times.count > 30 }
            let (messages, linesBefore) = (wire.messages, server.lines.count + publisher.lines.count)
            #expect(messages.contains("offer") && messages.contains("published"), "\(messages)")

            var random = Seeded(29)
            var before = [Footprint]()
            var moments: [Moment] = []
            var kinds: [String: Int] = [:]
            let begin = monotonicSeconds()
            for round in 1...Self.losses {
                let loss =
                    round <= 3 ? Loss.allCases[round - 1] : .allCases.randomElement(using: &random) ?? .disconnect
                kinds[loss.rawValue, default: 0] += 1
                moments.append(try await lose(loss, cameras))
                try await requireEventually(within: 120, "return \(round), after \(loss): \(publisher.lines.suffix(5))")
                {
                    publisher.lines.count { $0.contains("has its device again") } == round
                }
                let wanted = movement.times.count + Int.random(in: 1...30, using: &random)
                try await requireEventually(within: 120, "frames after loss \(round), \(loss)") {
                    movement.times.count >= wanted
                }
                if round == 5 { before = [.now, publisher.footprint, server.footprint] }
            }
            let seconds = monotonicSeconds() - begin
            let after = [.now, publisher.footprint, server.footprint]
            let lines = server.lines.count + publisher.lines.count - linesBefore
            try trace.end()
            wire.end()
            print("\(Self.losses) losses in \(seconds) s: \(kinds), \(lines) lines of log")
            report(moments, try trace.firstBuffers(), movement.times.all)

            #expect(publisher.lines.count { $0.contains("lost its device") } == Self.losses)
            #expect(Double(lines) < seconds, "\(publisher.lines.suffix(20)) \(server.lines.suffix(20))")
            // Answers to pings, and the states of the stream: it waits, and it is live again.
            let later = Dictionary(grouping: wire.messages.dropFirst(messages.count)) { $0 }.mapValues(\.count)
            print("messages of the server: \(later)")
            #expect(Set(later.keys).isSubset(of: ["pong", "streamChanged", "streamSet"]), "\(later)")
            #expect(later["streamChanged"] ?? 0 <= 2 * Self.losses && later["streamSet"] ?? 0 <= 2 * Self.losses)
            #expect(wire.sources.count >= 2 && wire.sources.values.allSatisfy { $0.count == 1 }, "\(wire.sources)")
            for (name, (before, after)) in zip(["viewer", "publisher", "server"], zip(before, after)) {
                print("\(name): \(before) -> \(after)")
                #expect(after.descriptors <= before.descriptors + 2, "\(name): \(before) -> \(after)")
                #expect(after.threads <= before.threads + 4, "\(name): \(before) -> \(after)")
                #expect(after.kilobytes < before.kilobytes + 20_000, "\(name): \(before) -> \(after)")
            }
            #expect(after[1].cameras == 1 && after[1].buffers == before[1].buffers)
            #expect(publisher.isRunning && server.isRunning)
            let others = events.all.filter { if case .firstFrame = $0 { false } else { true } }
            #expect(others.isEmpty, "\(others)")
            await viewer.stop()
            publisher.end(SIGINT)
            server.end(SIGINT)
        }

        /// Prints how long frames took to move at the viewer.
        private func report(_ moments: [Moment], _ buffers: [Double], _ moved: [Double]) {
            var sinceBuffer: [Double] = []
            var sinceReturn: [Double] = []
            for moment in moments {
                guard let buffer = buffers.first(where: { $0 > moment.lost }),
                    let frame = moved.first(where: { $0 > buffer })
                else { continue }
                sinceBuffer.append(frame - buffer)
                if let back = moment.back { sinceReturn.append(frame - back) }
            }
            print("until frames move at the viewer   min     median  max, in seconds")
            for (name, times) in [("since the first buffer", sinceBuffer), ("since it was back", sinceReturn)] {
                let sorted = times.sorted()
                let columns = [sorted.first ?? 0, sorted.isEmpty ? 0 : sorted[sorted.count / 2], sorted.last ?? 0]
                print(
                    "\(name), of \(times.count)".padding(toLength: 32, withPad: " ", startingAt: 0),
                    columns.map { String(format: "%6.2f", $0) }.joined(separator: "  "))
            }
        }
    }
}
