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

        @Test(arguments: [1, 2])
        func `timestamps that are wrong, and wrap around, are replaced by the arrival`(bits: Int) async throws {
            let cameras = try Vivid()
            let path = try cameras[0]
            // Timestamps begin 16 s before the end of 64 or 32 bits.
            try Camera.set("wrap_timestamp", bits, of: path)
            let watched = try await Watched(Watched.viewing(path)).start()
            await eventually(within: 90, "20 s of video") {
                watched.times.all.last.map { $0.seconds(since: watched.times.all[0]) > 20 } ?? false
            }
            let (times, seen) = (watched.times.all, MediaTime.now)
            #expect(zip(times, times.dropFirst()).allSatisfy { $0 < $1 && $1.seconds(since: $0) < 2 })
            #expect(times.last.map { seen.seconds(since: $0) < 5 } == true)
            #expect(watched.pipeline.statistics.cameras["camera"]?.wrongTimestamps ?? 0 > 100)
            let warnings = watched.events.all.compactMap { if case .warning(_, let text) = $0 { text } else { nil } }
            #expect(warnings.count { $0.contains("wrong timestamps") } == 1, "\(warnings)")
            #expect(watched.failure == nil && watched.deviceEvents.isEmpty)
            await watched.pipeline.stop()
        }

        @Test func `frame numbers that wrap around are no lost frames`() async throws {
            let cameras = try Vivid()
            let path = try cameras[0]
            // Numbers begin 128 before the end of 32 bits.
            try Camera.set("wrap_sequence_number", 1, of: path)
            let watched = try await Watched(Watched.viewing(path)).start()
            await eventually(within: 90, "200 frames") { watched.pictures.count > 200 }
            let camera = try #require(watched.pipeline.statistics.cameras["camera"])
            #expect(camera.lost < 200 && camera.damaged == 0, "\(camera)")
            #expect(watched.failure == nil && watched.deviceEvents.isEmpty)
            await watched.pipeline.stop()
        }

        @Test func `an HDMI source that changes its size goes on, in the size of the settings`() async throws {
            let cameras = try Vivid(1, .hdmi)
            let path = try cameras[0]
            // A grabber that does not scale: its frames have the size of the source.
            for part in ["scaler", "cropping", "composing"] { try Camera.set("enable_capture_\(part)", 0, of: path) }
            /// 5 is 1280x720 at 24 frames/s, 0 is 640x480 at 60 frames/s.
            func feed(_ timing: Int) throws {
                try Camera.set("dv_timings_signal_mode", 4, of: path)
                try Camera.set("dv_timings", timing, of: path)
            }
            func isOf(_ size: String) throws -> Bool {
                try Program.run("v4l2-ctl", ["-d", path, "--get-fmt-video"]).contains("Width/Height      : \(size)")
            }
            try feed(5)
            let watched = try await Watched(Watched.viewing(path)).start()
            await eventually(within: 60, "frames") { watched.pictures.count > 5 }
            #expect(try isOf("1280/720"))
            for (timing, size) in [(0, "640/480"), (5, "1280/720")] {
                let count = watched.deviceEvents.count
                try feed(timing)
                await eventually(within: 60, "it is opened again") { watched.deviceEvents.count >= count + 2 }
                let seen = watched.pictures.count
                await eventually(within: 60, "frames") { watched.pictures.count > seen + 5 }
                #expect(try isOf(size), "\(size)")
            }
            let causes = watched.events.all.compactMap {
                if case .deviceLost(_, let cause) = $0 { cause.code } else { nil }
            }
            #expect(causes == [MediaError.Code.cameraChanged, MediaError.Code.cameraChanged])
            #expect(Set(watched.pictures.all) == ["320x180"])
            #expect(zip(watched.times.all, watched.times.all.dropFirst()).allSatisfy { $0 < $1 })
            #expect(watched.failure == nil)
            await watched.pipeline.stop()
        }

        @Test(arguments: [(Vivid.Input.hdmi, "dv_timings_signal_mode"), (.sVideo, "standard_signal_mode")])
        func `a source without a signal ends no stream, and goes on when it is back`(
            input: Vivid.Input, control: String
        ) async throws {
            let cameras = try Vivid(1, input)
            let path = try cameras[0]
            let watched = try await Watched(Watched.viewing(path)).start()
            await eventually(within: 60, "frames") { watched.pictures.count > 5 }
            // No signal, a signal without lock, and the one of before.
            for mode in [1, 2, 0] {
                try Camera.set(control, mode, of: path)
                let seen = watched.pictures.count
                await eventually(within: 60, "frames or stand-ins in mode \(mode)") {
                    watched.pictures.count > seen + 15
                }
            }
            await eventually(within: 60, "the camera") {
                watched.pipeline.statistics.sources["camera"]?.state == .streaming
            }
            #expect(Set(watched.deviceEvents).isSubset(of: ["lost", "returned"]))
            #expect(Set(watched.pictures.all) == ["320x180"])
            #expect(zip(watched.times.all, watched.times.all.dropFirst()).allSatisfy { $0 < $1 })
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
