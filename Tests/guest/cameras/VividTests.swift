import Foundation
import Glibc
import MediaGraph
import Testing
import TestSupport

@testable import MediaNodes

extension GuestTests {
    /// Cameras of the driver vivid: listing, choosing, reading, changing.
    @Suite struct VividTests {
        @Test func `cameras are listed with their formats, and devices that do not capture are omitted`() throws {
            let driver = try Driver("vivid", "n_devs=2")
            defer { driver.unload() }
            let cameras = Devices.cameras()
            #expect(cameras.map(\.name) == ["vivid-000-vid-cap", "vivid-001-vid-cap"])
            for camera in cameras {
                let small = camera.formats.filter { $0.width == 320 && $0.height == 180 }
                #expect(Set(small.map(\.pixelFormat)).isSuperset(of: ["YUY2", "I420", "NV12", "GRAY8"]))
                #expect(small.allSatisfy { $0.framesPerSecond.contains(15) })
            }
        }

        @Test func `auto chooses the first camera, or the next if another program uses the first`() async throws {
            let cameras = try Vivid(2)
            let (first, second) = (try cameras[0], try cameras[1])
            #expect(try Devices.camera("auto").path == first)
            let reader = try Reader(of: first)
            defer { reader.end() }
            await eventually("the other program reads") { Camera.isRefused(first) }
            #expect(try Devices.camera("auto").path == second)
            let refused = #expect(throws: MediaError.self) { try Devices.camera(first) }
            #expect(refused?.code == MediaError.Code.cameraBusy)
            #expect(refused?.message.contains(first) == true)
        }

        @Test func `a camera is found by the system's links`() throws {
            let cameras = try Vivid(2)
            let folder = "/dev/v4l/by-path"
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
            // The name that udev's 60-persistent-v4l.rules gives this driver; udev does not run in the guest.
            let link = "platform-vivid.1-video-index0"
            try FileManager.default.createSymbolicLink(
                atPath: "\(folder)/\(link)", withDestinationPath: "../..\(try cameras[1].dropFirst(4))")
            defer { unlink("\(folder)/\(link)") }
            #expect(try Devices.camera(link).path == cameras[1])
            #expect(try Devices.camera("\(folder)/\(link)").formats == Devices.camera(cameras[1]).formats)
        }

        @Test func `frames arrive in the planned mode, at its rate`() async throws {
            let cameras = try Vivid()
            let watched = try await Watched(Watched.viewing(cameras[0])).start()
            await eventually("pictures") { watched.pictures.count >= 15 }
            let (count, start) = (watched.pictures.count, ContinuousClock.now)
            await eventually("more frames") { watched.pictures.count >= count + 60 }
            let seconds = (ContinuousClock.now - start) / .seconds(1)
            let rate = Double(watched.pictures.count - count) / seconds
            #expect(abs(rate - 15) < 2, "\(rate) frames/s")
            #expect(Set(watched.pictures.all) == ["320x180"])
            await watched.pipeline.stop()
            #expect(watched.failure == nil)
        }

        @Test func `another aspect ratio is cropped, and a higher rate is reduced`() async throws {
            let cameras = try Vivid()
            let settings: [String: SettingValue] = ["width": 320, "height": 240, "fps": 11]
            let watched = try await Watched(Watched.viewing(cameras[0], settings)).start()
            await eventually("pictures") { watched.pictures.count >= 30 }
            #expect(Set(watched.pictures.all) == ["320x240"])
            await watched.pipeline.stop()
        }

        @Test func `the camera's controls are set before its first frame, and live`() async throws {
            let cameras = try Vivid()
            let path = try cameras[0]
            let graph = Watched.viewing(path, ["brightness": 90, "controls": "test_pattern=5, horizontal_flip=1"])
            let watched = try await Watched(graph).start()
            await eventually("pictures") { watched.pictures.count > 3 }
            #expect(try Camera.control("brightness", of: path) == 90)
            #expect(try Camera.control("test_pattern", of: path) == 5)
            #expect(try Camera.control("horizontal_flip", of: path) == 1)
            try await watched.pipeline.set("camera", "brightness", to: 200)
            try await watched.pipeline.set("camera", "hue", to: -7)
            try await watched.pipeline.set("camera", "controls", to: "test_pattern=6,vertical_flip=1")
            #expect(try Camera.control("brightness", of: path) == 200)
            #expect(try Camera.control("hue", of: path) == -7)
            #expect(try Camera.control("test_pattern", of: path) == 6)
            #expect(try Camera.control("vertical_flip", of: path) == 1)
            await watched.pipeline.stop()
        }

        @Test func `a missing control and a rejected value are refused`() async throws {
            let cameras = try Vivid()
            let path = try cameras[0]
            let watched = try await Watched(Watched.viewing(path)).start()
            for (setting, value, words) in [
                ("brightness", 999, "from 0 to 255"), ("hue", 129, "from -128 to 128"),
                ("controls", "test_pattern=99", "from 0 to 21"), ("controls", "menu=2", "1, 3 or 4"),
                ("controls", "no_such_thing=1", "no_such_thing"),
                ("controls", "read_only_integer_32_bits=3", "read_only_integer_32_bits"),
                // Its form is invalid for every camera.
                ("controls", "(((", "((("),
            ] as [(String, SettingValue, String)] {
                let refused = await #expect(throws: MediaError.self) {
                    try await watched.pipeline.set("camera", setting, to: value)
                }
                let code = value == "(((" ? "graph.invalid" : "camera.control"
                #expect(refused?.code == code, "\(setting)=\(value): \(String(describing: refused))")
                #expect(refused?.message.contains(words) == true, "\(String(describing: refused))")
            }
            #expect(try Camera.control("brightness", of: path) == 128)
            let seen = watched.pictures.count
            await eventually("it goes on") { watched.pictures.count > seen + 5 }
            await watched.pipeline.stop()
            #expect(watched.failure == nil)
            let unplanned = await #expect(throws: MediaError.self) {
                try await Watched(Watched.viewing(path, ["contrast": 256]))
            }
            #expect(unplanned?.code == "camera.control")
        }

        @Test func `a hundred openings leak no thread, memory or descriptor of the camera`() async throws {
            let cameras = try Vivid()
            let path = try cameras[0]
            let graph = MediaGraph {
                Chain {
                    Watched.camera(path)
                    Node.frames("view")
                }
            }
            let plan = try Planner(NodeRegistry.builtIn, SystemEnvironment()).plan(graph, bound: bound)
            func open() async throws {
                let came = Collected<Int>()
                var bindings = NodeBindings()
                bindings.frames["view"] = { came.append($0.width) }
                let pipeline = try await MediaPipeline(plan, bindings: bindings)
                try await pipeline.start()
                await eventually("a frame") { came.count > 0 }
                await pipeline.stop()
            }
            for _ in 0..<10 { try await open() }
            let before = Footprint.now
            for _ in 0..<100 { try await open() }
            // Ending threads count until the kernel has removed them.
            await eventually("threads of what was stopped end") { Footprint.now.threads <= before.threads + 4 }
            let after = Footprint.now
            #expect(after.cameras == 0 && after.buffers == 0, "\(before) -> \(after)")
            #expect(after.descriptors <= before.descriptors + 2, "\(before) -> \(after)")
            #expect(after.kilobytes < before.kilobytes + 10_000, "\(before) -> \(after)")
            print("100 openings of a camera: \(before) -> \(after)")
        }

        @Test func `a camera whose frames are held can be read by others, and the frames stay unchanged`()
            async throws
        {
            let cameras = try Vivid()
            let path = try cameras[0]
            let before = Footprint.now.buffers
            let held = try await frames(of: path)
            let bytes = held.all.map(Self.luma)
            #expect(Footprint.now.buffers > before, "held frames hold no buffers of the camera")
            #expect(!Camera.isRefused(path))
            _ = try await frames(of: path)
            #expect(held.all.map(Self.luma) == bytes)
            held.removeAll()
            // GLib and Dispatch open descriptors of their own meanwhile; the test of a hundred openings counts those.
            await eventually("the buffers are released with the frames") { Footprint.now.buffers == before }
            #expect(Footprint.now.cameras == 0, "\(Footprint.now)")
        }

        /// Returns two frames of a camera. Its pipeline is released, and with it the descriptors of the pipeline's bus.
        private func frames(of path: String) async throws -> Collected<VideoFrame> {
            let held = Collected<VideoFrame>()
            var bindings = NodeBindings()
            bindings.frames["view"] = { if held.count < 2 { held.append($0) } }
            let graph = MediaGraph {
                Chain {
                    Watched.camera(path, ["mirror": false])
                    Node.frames("view")
                }
            }
            let pipeline = try await MediaPipeline(graph, bindings: bindings)
            try await pipeline.start()
            await eventually("frames") { held.count == 2 }
            await pipeline.stop()
            return held
        }

        private static func luma(of picture: VideoFrame) -> [UInt8] {
            picture.withPlane(.luma) { plane, _ in plane.withUnsafeBytes { Array($0) } }
        }

        private var bound: BoundNames {
            var bindings = NodeBindings()
            bindings.frames["view"] = { _ in }
            return bindings.names
        }
    }
}

/// System resources of a process.
struct Footprint: CustomStringConvertible {
    /// The files behind the descriptors, without Dispatch's timers. Dispatch opens one per clock, at the first sleep by
    /// it, and keeps it.
    let targets: [String]
    var descriptors: Int { targets.count }
    /// Those of them that are cameras.
    var cameras: Int { targets.count { $0.hasPrefix("/dev/video") } }
    /// Mapped buffers of cameras.
    let buffers: Int
    let threads: Int
    let kilobytes: Int

    static var now: Footprint { of("self") }

    static func of(_ process: String) -> Footprint {
        let files = FileManager.default
        func entries(_ folder: String) -> [String] { (try? files.contentsOfDirectory(atPath: folder)) ?? [] }
        let status = (try? String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8)) ?? ""
        let line = status.split(separator: "\n").first { $0.hasPrefix("VmRSS:") } ?? ""
        // The listing's own descriptor is closed by now and has no target.
        let targets = entries("/proc/\(process)/fd").compactMap {
            try? files.destinationOfSymbolicLink(atPath: "/proc/\(process)/fd/\($0)")
        }
        // A read of a file of the kernel may give a part of it.
        let bytes = (try? FileHandle(forReadingAtPath: "/proc/\(process)/maps")?.readToEnd()) ?? Data()
        let maps = String(decoding: bytes, as: UTF8.self)
        return Footprint(
            targets: targets.filter { $0 != "anon_inode:[timerfd]" },
            buffers: maps.split(separator: "\n").count { $0.contains("/dev/video") },
            threads: entries("/proc/\(process)/task").count,
            kilobytes: Int(line.filter(\.isNumber)) ?? 0)
    }

    var description: String {
        "\(descriptors) descriptors (\(cameras) of cameras), \(threads) threads, \(kilobytes) kB"
    }
}
