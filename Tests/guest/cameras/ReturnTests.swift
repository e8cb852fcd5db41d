import MediaGraph
import MediaNodes
import Testing
import TestSupport

extension GuestTests {
    /// Cameras that come late, go and come back, while their node goes on.
    @Suite struct ReturnTests {
        private func state(_ watched: Watched) -> SourceStatus.State? {
            watched.pipeline.statistics.sources["camera"]?.state
        }

        @Test func `a camera that is unplugged and plugged in again continues the same stream`() async throws {
            let cameras = try Vivid()
            let path = try cameras[0]
            let watched = try await Watched(Watched.viewing(path)).start()
            await eventually("frames") { watched.pictures.count > 10 }
            for round in 1...3 {
                // vivid connects a camera again when its last user has closed it.
                try Camera.set("disconnect", 1, of: path)
                await eventually(within: 60, "return \(round)") { watched.deviceEvents.count == 2 * round }
                let seen = watched.pictures.count
                await eventually("frames") { watched.pictures.count > seen + 5 }
            }
            #expect(watched.deviceEvents == ["lost", "returned", "lost", "returned", "lost", "returned"])
            #expect(Set(watched.pictures.all) == ["320x180"])
            #expect(watched.failure == nil)
            #expect(zip(watched.times.all, watched.times.all.dropFirst()).allSatisfy { $0 < $1 })
            await watched.pipeline.stop()
        }

        @Test func `fifty losses and as many refused starts leave no descriptor and no buffer`() async throws {
            let cameras = try Vivid()
            let path = try cameras[0]
            let watched = try await Watched(Watched.viewing(path)).start()
            await eventually("frames") { watched.pictures.count > 10 }
            var before = Footprint.now
            for round in 1...50 {
                try Camera.set("inject_vidioc_streamon_error", 1, of: path)
                try Camera.set("inject_fatal_streaming_error", 1, of: path)
                await eventually(within: 60, "loss \(round)") {
                    watched.pipeline.statistics.sources["camera"]?.losses == round
                }
                await eventually(within: 60, "return \(round)") { self.state(watched) == .streaming }
                if round == 5 { before = Footprint.now }
            }
            let after = Footprint.now
            #expect(after.cameras == 1 && after.buffers <= before.buffers, "\(before) -> \(after)")
            #expect(after.descriptors <= before.descriptors + 2, "\(before) -> \(after)")
            #expect(after.kilobytes < before.kilobytes + 10_000, "\(before) -> \(after)")
            print("50 losses and refused starts: \(before) -> \(after)")
            await watched.pipeline.stop()
            #expect(Footprint.now.cameras == 0)
            #expect(watched.failure == nil)
        }

        @Test func `a graph runs before its camera is there`() async throws {
            let cameras = try Vivid()
            let path = try cameras[0]
            cameras.unplug()
            let watched = try await Watched(Watched.viewing(path, ["brightness": 77])).start()
            await eventually("a slate") { watched.pictures.count > 3 }
            #expect(watched.deviceEvents == ["waiting"])
            try cameras.plugIn()
            await eventually(within: 60, "the camera") { watched.deviceEvents == ["waiting", "returned"] }
            #expect(try Camera.control("brightness", of: path) == 77)
            await watched.pipeline.stop()
            #expect(watched.failure == nil)
        }

        @Test(arguments: ["inject_vidioc_streamon_error", "inject_fatal_streaming_error"])
        func `a camera that fails is opened again`(fault: String) async throws {
            let cameras = try Vivid()
            let path = try cameras[0]
            let watched = try await Watched(Watched.viewing(path))
            if fault.contains("streamon") { try Camera.set(fault, 1, of: path) }
            try await watched.pipeline.start()
            if fault.contains("fatal") {
                await eventually("frames") { watched.pictures.count > 10 }
                try Camera.set(fault, 1, of: path)
            }
            await eventually(within: 60, "it is back") { watched.deviceEvents.last == "returned" }
            let seen = watched.pictures.count
            await eventually("frames") { watched.pictures.count > seen + 20 && self.state(watched) == .streaming }
            await watched.pipeline.stop()
            #expect(watched.failure == nil)
        }

        @Test func `a camera that another program uses is waited for`() async throws {
            let cameras = try Vivid()
            let path = try cameras[0]
            let reader = try Reader(of: path)
            await eventually("the other program reads") { Camera.isRefused(path) }
            let watched = try await Watched(Watched.viewing(path)).start()
            await eventually("it waits") { watched.deviceEvents == ["waiting"] }
            reader.end()
            await eventually(within: 60, "it has the camera") { watched.deviceEvents == ["waiting", "returned"] }
            await watched.pipeline.stop()
        }

        @Test func `another camera takes over until the first one is back`() async throws {
            let cameras = try Vivid(2)
            let (first, second) = (try cameras[0], try cameras[1])
            let watched = try await Watched(Watched.viewing(first, ["failover": .text(second)])).start()
            await eventually("frames") { watched.pictures.count > 10 }
            try Camera.set("disconnect", 1, of: first)
            await eventually(within: 60, "the other one") { watched.deviceEvents == ["lost", "failed over"] }
            let seen = watched.pictures.count
            await eventually("its frames") { watched.pictures.count > seen + 20 }
            await watched.pipeline.stop()
            #expect(watched.failure == nil)
        }
    }
}
