import Foundation
import MediaGraph
import MediaNodes
import Testing
import TestSupport

extension GuestTests {
    /// Cameras that are unplugged, in use by other programs, or fail while they run.
    @Suite struct FaultTests {
        /// The loss of the camera ends the node.
        private static let needed: [String: SettingValue] = ["away": "end"]

        @Test func `an unplugged camera ends the pipeline with a message within the watchdog's time`() async throws {
            let cameras = try Vivid()
            let path = try cameras[0]
            let watched = try await Watched(Watched.viewing(path, Self.needed)).start()
            await eventually("pictures") { watched.pictures.count > 10 }
            try Camera.set("disconnect", 1, of: path)
            let start = ContinuousClock.now
            await eventually("the loss is noticed") { watched.failure != nil }
            let seconds = (ContinuousClock.now - start) / .seconds(1)
            #expect(seconds < 4, "after \(seconds) s")
            #expect(watched.failure?.code == MediaError.Code.cameraLost)
            #expect(watched.failure?.message.contains("was unplugged. Plug it in again.") == true)
            await watched.pipeline.stop()
        }

        @Test func `an optional camera may be unplugged, and the other one loses nothing`() async throws {
            let cameras = try Vivid(2)
            let (first, second) = (try cameras[0], try cameras[1])
            func optional(_ node: Node) -> Node {
                var node = node
                node.isOptional = true
                return node
            }
            let graph = MediaGraph {
                Chain {
                    optional(Watched.camera(first, Self.needed))
                    optional(Node.frames("view"))
                }
                Chain {
                    Watched.camera(second, name: "second")
                    Node.frames("other")
                }
            }
            let watched = try await Watched(graph).start()
            await eventually("frames of both") { watched.pictures.count > 10 && watched.other.count > 10 }
            try Camera.set("disconnect", 1, of: first)
            await eventually("the part is taken out") { !watched.lostParts.isEmpty }
            #expect(watched.lostParts.first?.error.code == MediaError.Code.cameraLost)
            #expect(watched.lostParts.first?.nodes.sorted() == ["camera", "view"])
            let seen = watched.other.count
            await eventually("the other goes on") { watched.other.count > seen + 15 }
            #expect(watched.failure == nil)
            await watched.pipeline.stop()
        }

        @Test func `a camera that is plugged in again works as before`() async throws {
            let cameras = try Vivid()
            let path = try cameras[0]
            for round in 1...2 {
                let watched = try await Watched(Watched.viewing(path, Self.needed)).start()
                await eventually("pictures") { watched.pictures.count > 5 }
                if round == 1 {
                    try Camera.set("disconnect", 1, of: path)
                    await eventually("the loss is noticed") { watched.failure != nil }
                }
                await watched.pipeline.stop()
                if round == 1 {
                    cameras.unplug()
                    let absent = await #expect(throws: MediaError.self) {
                        try await Watched(Watched.viewing(path, Self.needed))
                    }
                    #expect(absent?.code == MediaError.Code.cameraAbsent)
                    #expect(absent?.message.contains("Plug it in") == true)
                    try cameras.plugIn()
                }
            }
        }

        @Test(arguments: ["inject_vidioc_reqbufs_error", "inject_vidioc_streamon_error"])
        func `a camera that fails to start is reported by name, and works the next time`(fault: String) async throws {
            let cameras = try Vivid()
            let path = try cameras[0]
            let watched = try await Watched(Watched.viewing(path, Self.needed))
            try Camera.set(fault, 1, of: path)
            let start = ContinuousClock.now
            let error = await #expect(throws: MediaError.self) { _ = try await watched.start() }
            #expect((ContinuousClock.now - start) / .seconds(1) < 9)
            #expect(error?.code == "camera.failed", "\(String(describing: error))")
            #expect(error?.message.contains(path) == true, "\(String(describing: error))")
            await watched.pipeline.stop()
            let again = try await Watched(Watched.viewing(path, Self.needed)).start()
            await eventually("pictures") { again.pictures.count > 3 }
            await again.pipeline.stop()
        }

        @Test func `a camera that fails while it runs is reported by name, and works the next time`() async throws {
            let cameras = try Vivid()
            let path = try cameras[0]
            let watched = try await Watched(Watched.viewing(path, Self.needed)).start()
            await eventually("pictures") { watched.pictures.count > 10 }
            try Camera.set("inject_fatal_streaming_error", 1, of: path)
            await eventually("the failure is noticed") { watched.failure != nil }
            #expect(watched.failure?.code == MediaError.Code.cameraLost, "\(String(describing: watched.failure))")
            await watched.pipeline.stop()
            let again = try await Watched(Watched.viewing(path, Self.needed)).start()
            await eventually("pictures") { again.pictures.count > 3 }
            await again.pipeline.stop()
        }

        @Test func `a buffer that the camera refuses is survived`() async throws {
            let cameras = try Vivid()
            let path = try cameras[0]
            let watched = try await Watched(Watched.viewing(path)).start()
            await eventually("pictures") { watched.pictures.count > 10 }
            try Camera.set("inject_vidioc_qbuf_error", 1, of: path)
            let seen = watched.pictures.count
            await eventually("it goes on") { watched.pictures.count > seen + 15 }
            #expect(watched.failure == nil)
            await watched.pipeline.stop()
        }

        @Test func `a frame with the camera's error flag is survived`() async throws {
            let cameras = try Vivid()
            let path = try cameras[0]
            let watched = try await Watched(Watched.viewing(path)).start()
            await eventually("pictures") { watched.pictures.count > 10 }
            for _ in 1...3 { try Camera.set("inject_v4l2_buf_flag_error", 1, of: path) }
            let seen = watched.pictures.count
            await eventually("it goes on") { watched.pictures.count > seen + 15 }
            #expect(watched.pipeline.statistics.cameras["camera"]?.damaged ?? 0 > 0)
            #expect(watched.failure == nil)
            await watched.pipeline.stop()
        }

        @Test func `frames lost by the camera are counted`() async throws {
            let cameras = try Vivid()
            let path = try cameras[0]
            let watched = try await Watched(Watched.viewing(path)).start()
            try Camera.set("percentage_of_dropped_buffers", 40, of: path)
            await eventually("losses") { watched.pipeline.statistics.cameras["camera"]?.lost ?? 0 >= 10 }
            let before = (lost: watched.pipeline.statistics.cameras["camera"]?.lost ?? 0, seen: watched.pictures.count)
            await eventually("as many again") { watched.pictures.count > before.seen + 60 }
            let lost = Double((watched.pipeline.statistics.cameras["camera"]?.lost ?? 0) - before.lost)
            let share = lost / (lost + Double(watched.pictures.count - before.seen))
            #expect(share > 0.2 && share < 0.6, "\(share)")
            #expect(watched.failure == nil)
            await watched.pipeline.stop()
        }

        @Test func `a camera that another program uses since it was planned is reported as busy`() async throws {
            let cameras = try Vivid()
            let path = try cameras[0]
            let watched = try await Watched(Watched.viewing(path, Self.needed))
            let reader = try Reader(of: path)
            defer { reader.end() }
            await eventually("the other program reads") { Camera.isRefused(path) }
            let error = await #expect(throws: MediaError.self) { _ = try await watched.start() }
            #expect(error?.code == MediaError.Code.cameraBusy, "\(String(describing: error))")
            #expect(error?.message.contains("Close that program") == true, "\(String(describing: error))")
            await watched.pipeline.stop()
        }

        @Test func `a camera passes from one node to its replacement, which requests another size`() async throws {
            let cameras = try Vivid()
            let path = try cameras[0]
            func graph(_ width: Int, _ height: Int) -> MediaGraph {
                MediaGraph {
                    Chain {
                        Watched.camera(path, ["width": .integer(width), "height": .integer(height)])
                        Node.frames("view")
                    }
                }
            }
            let watched = try await Watched(graph(320, 180)).start()
            await eventually("pictures") { watched.pictures.count > 5 }
            try await watched.pipeline.apply(graph(640, 360), within: 20)
            await eventually("frames of the new size") { watched.pictures.all.last == "640x360" }
            #expect(Set(watched.pictures.all) == ["320x180", "640x360"])
            await watched.pipeline.stop()
            #expect(watched.failure == nil)
        }
    }
}
