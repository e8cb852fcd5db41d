import Cameras
import Foundation
import Glibc
import MediaGraph
import MediaNodes
import Testing
import TestSupport

extension GuestTests {
    /// The capture of `Cameras` on real V4L2.
    @Suite struct CaptureTests {
        private static let mode = CaptureMode("YUYV", FrameSize(320, 180), FrameRate(15))

        private func started(_ path: String, buffers: Int = 4) throws -> V4L2Camera {
            let camera = try V4L2Camera(path)
            let layout = try camera.configure(Self.mode)
            #expect(layout.mode == Self.mode)
            #expect(layout.planes == [.init(stride: 640, bytes: 640 * 180)])
            try camera.start(buffers: buffers)
            return camera
        }

        /// The next frames; other items are skipped.
        private func frames(_ count: Int, of camera: V4L2Camera) throws -> [CapturedFrame] {
            var frames: [CapturedFrame] = []
            while frames.count < count {
                let item = try #require(try camera.next(within: .seconds(10)), "no frame in 10 s")
                if case .frame(let frame) = item { frames.append(frame) }
            }
            return frames
        }

        /// Reads until the camera fails. Frames return at once.
        private func failure(of camera: V4L2Camera) -> MediaError? {
            do throws(MediaError) {
                for _ in 0..<200 where try camera.next(within: .seconds(10)) == nil { return nil }
                return nil
            } catch {
                return error
            }
        }

        @Test func `a camera describes itself, its formats and its controls`() throws {
            let cameras = try Vivid()
            let camera = try V4L2Camera(try cameras[0])
            #expect(camera.information.driver == "vivid")
            let formats = try camera.formats()
            let yuyv = try #require(formats.first { $0.format == "YUYV" })
            let small = try #require(yuyv.sizes.first { $0.range == SizeRange(FrameSize(320, 180)) })
            guard case .list(let rates) = small.rates else {
                Issue.record("\(small.rates)")
                return
            }
            #expect(rates.contains(FrameRate(15)))
            #expect(Set(rates).count == rates.count)
            let controls = try camera.controls()
            let brightness = try #require(controls.first { $0.name == "brightness" })
            #expect((brightness.minimum, brightness.maximum, brightness.standard) == (0, 255, 128))
            let menu = try #require(controls.first { $0.name == "menu" })
            #expect(menu.kind == .menu)
            #expect(menu.items.map(\.value) == [1, 3, 4])
            let numbers = try #require(controls.first { $0.name == "integer_menu" })
            #expect(numbers.kind == .integerMenu)
            #expect(numbers.items.allSatisfy { Int($0.name) != nil })
            #expect(controls.first { $0.name == "integer_64_bits" }?.kind == .wideInteger)
            #expect(controls.first { $0.name == "button" }?.kind == .button)
            #expect(controls.first { $0.name == "bitmask" }?.kind == .bitmask)
            #expect(controls.first { $0.name == "read_only_integer_32_bits" }?.isReadOnly == true)
        }

        @Test func `frames carry monotonic times, sequence numbers and all bytes`() throws {
            let cameras = try Vivid()
            let camera = try started(try cameras[0])
            defer { camera.close() }
            var last: (time: Duration, number: UInt32)?
            for _ in 0..<20 {
                let frame = try #require(try frames(1, of: camera).first)
                #expect(frame.lengths == [640 * 180])
                #expect(frame.copy().contains { $0 != 0 })
                #expect(!frame.isCorrupt)
                let time = try #require(frame.timestamp)
                // vivid computes the end of the frame, which may lie ahead.
                #expect(abs((monotonicTime() - time) / .seconds(1)) < 5)
                if let last { #expect(time > last.time && frame.sequence > last.number) }
                last = (time, frame.sequence)
            }
        }

        @Test func `the driver's choice is reported where it differs from the wish`() throws {
            let cameras = try Vivid()
            let camera = try V4L2Camera(try cameras[0])
            let layout = try camera.configure(CaptureMode("NV12", FrameSize(321, 181), FrameRate(1000)))
            #expect(layout.mode.size == FrameSize(320, 180))
            #expect(layout.mode.format == "NV12")
            #expect(layout.mode.rate.map { $0 < FrameRate(1000) } == true)
            #expect(layout.planes.first?.stride == 320)
        }

        @Test func `the same device starts, stops and starts again, and held frames stay readable`() throws {
            let cameras = try Vivid()
            let path = try cameras[0]
            let camera = try started(path)
            let held = try frames(2, of: camera)
            let bytes = held.map { $0.copy() }
            camera.stop()
            _ = try camera.configure(CaptureMode("NV12", FrameSize(640, 360), FrameRate(15)))
            try camera.start(buffers: 3)
            for _ in 0..<5 { _ = try frames(1, of: camera) }
            camera.close()
            #expect(held.map { $0.copy() } == bytes)
            #expect(!Camera.isRefused(path))
        }

        @Test func `another thread wakes a wait, and one that has not begun`() async throws {
            let cameras = try Vivid()
            let camera = try started(try cameras[0])
            camera.waker.wake()
            guard case .woken = try camera.next(within: .seconds(10)) else {
                Issue.record("not woken")
                return
            }
            // All buffers are held, so that only the waker can end the wait.
            let held = try frames(4, of: camera)
            let waker = camera.waker
            Foundation.Thread.detachNewThread {
                usleep(200_000)
                waker.wake()
            }
            guard case .woken = try camera.next(within: .seconds(60)) else {
                Issue.record("not woken")
                return
            }
            #expect(try camera.next(within: .milliseconds(300)) == nil)
            withExtendedLifetime(held) {}
        }

        @Test func `a camera that another program reads is busy`() async throws {
            let cameras = try Vivid()
            let path = try cameras[0]
            let reader = try Reader(of: path)
            defer { reader.end() }
            await eventually("the other program reads") { Camera.isRefused(path) }
            let camera = try V4L2Camera(path)
            let refused = #expect(throws: MediaError.self) {
                _ = try camera.configure(Self.mode)
                try camera.start(buffers: 4)
            }
            #expect(refused?.code == "camera.busy", "\(String(describing: refused))")
        }

        @Test func `an unplugged camera is lost, and its driver can be unloaded once it is closed`() throws {
            let cameras = try Vivid()
            let path = try cameras[0]
            let camera = try started(path)
            _ = try frames(3, of: camera)
            try Camera.set("disconnect", 1, of: path)
            let error = failure(of: camera)
            #expect(error?.code == "camera.lost", "\(String(describing: error))")
            #expect(error?.message.contains("unplugged") == true, "\(String(describing: error))")
            camera.close()
            cameras.unplug()
            #expect(#expect(throws: MediaError.self) { try V4L2Camera(path) }?.code == "camera.absent")
            try cameras.plugIn()
            let again = try started(try cameras[0])
            #expect(try frames(3, of: again).count == 3)
            again.close()
        }

        @Test(arguments: ["inject_vidioc_reqbufs_error", "inject_vidioc_streamon_error"])
        func `a refused start names the call, and the next start works`(fault: String) throws {
            let cameras = try Vivid()
            let path = try cameras[0]
            let camera = try V4L2Camera(path)
            _ = try camera.configure(Self.mode)
            try Camera.set(fault, 1, of: path)
            let error = #expect(throws: MediaError.self) { try camera.start(buffers: 4) }
            #expect(error?.cause?.lowercased().contains(fault.split(separator: "_")[2]) == true, "\(error as Any)")
            try camera.start(buffers: 4)
            #expect(try frames(3, of: camera).count == 3)
        }

        @Test func `a stream that fails is lost, and works after a new start`() throws {
            let cameras = try Vivid()
            let path = try cameras[0]
            let camera = try started(path)
            _ = try frames(3, of: camera)
            try Camera.set("inject_fatal_streaming_error", 1, of: path)
            let error = failure(of: camera)
            #expect(error?.code == "camera.lost", "\(String(describing: error))")
            #expect(error?.message.contains("EIO") == true)
            camera.stop()
            _ = try camera.configure(Self.mode)
            try camera.start(buffers: 4)
            #expect(try frames(3, of: camera).count == 3)
        }

        @Test func `corrupt frames are marked, and refused buffers are queued again`() throws {
            let cameras = try Vivid()
            let path = try cameras[0]
            let camera = try started(path)
            _ = try frames(3, of: camera)
            try Camera.set("inject_v4l2_buf_flag_error", 1, of: path)
            var corrupt = 0
            for _ in 0..<60 where corrupt == 0 {
                if try frames(1, of: camera)[0].isCorrupt { corrupt += 1 }
            }
            #expect(corrupt == 1)
            for _ in 1...4 {
                try Camera.set("inject_vidioc_qbuf_error", 1, of: path)
                _ = try frames(2, of: camera)
            }
            // Without the queue of refused buffers, none of the four would be left.
            for _ in 0..<8 { _ = try frames(1, of: camera) }
        }

        @Test func `controls are set and read, and changes by others are reported`() throws {
            let cameras = try Vivid()
            let path = try cameras[0]
            let camera = try started(path)
            let controls = try camera.controls()
            let brightness = try #require(controls.first { $0.name == "brightness" })
            try camera.set(brightness, to: 77)
            #expect(try camera.value(of: brightness) == 77)
            let wide = try #require(controls.first { $0.name == "integer_64_bits" })
            try camera.set(wide, to: wide.maximum)
            #expect(try camera.value(of: wide) == wide.maximum)
            let fixed = try #require(controls.first { $0.isReadOnly })
            let refused = #expect(throws: MediaError.self) { try camera.set(fixed, to: 1) }
            #expect(refused?.code == "camera.control")
            try Camera.set("brightness", 99, of: path)
            var reported: Int?
            for _ in 0..<60 where reported == nil {
                if case .controlChanged(brightness.identifier, let value) = try camera.next(within: .seconds(10)) {
                    reported = value
                }
            }
            #expect(reported == 99)
        }

        @Test func `cameras are named by their models, without metadata devices, and a node finds them by name`() throws
        {
            let driver = try Driver("vivid", "n_devs=2")
            defer { driver.unload() }
            let places = CameraSystem.machine.places()
            #expect(places.map(\.name) == ["model:vivid-000-vid-cap", "model:vivid-001-vid-cap"])
            for place in places { #expect(try Devices.camera(place.name).path == place.path) }
            #expect(throws: MediaError.self) { try Devices.camera("model:vivid-002-vid-cap") }
        }

        @Test func `a recording of a camera has its formats, controls and frames`() throws {
            let cameras = try Vivid()
            let camera = try V4L2Camera(try cameras[0])
            let recorded = try CameraFixture(recording: camera, in: Self.mode, frames: 2)
            let copy = try FixtureCamera(CameraFixture(json: recorded.json), on: CaptureClock()).open("copy")
            #expect(try copy.formats() == camera.formats())
            #expect(try copy.controls().map(\.name) == camera.controls().map(\.name))
            #expect(try copy.configure(Self.mode) == camera.configure(Self.mode))
            #expect(recorded.frames?.map(\.data.count) == [640 * 180, 640 * 180])
            camera.close()
        }

        @Test func `a hundred openings leave no descriptor and no memory`() throws {
            let cameras = try Vivid()
            let path = try cameras[0]
            func open() throws {
                let camera = try started(path)
                _ = try frames(1, of: camera)
                camera.close()
            }
            for _ in 0..<5 { try open() }
            let before = Footprint.now
            for _ in 0..<100 { try open() }
            let after = Footprint.now
            #expect(after.cameras == 0)
            #expect(after.descriptors <= before.descriptors, "\(before) -> \(after)")
            #expect(after.kilobytes < before.kilobytes + 5_000, "\(before) -> \(after)")
        }
    }
}
