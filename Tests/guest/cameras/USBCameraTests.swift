import Cameras
import Foundation
import Glibc
import MediaGraph
import MediaNodes
import TestSupport
import Testing

/// A webcam that the program `usb-camera` plugs in: the kernel's own driver, uvcvideo, reads it.
private final class USBCamera {
    private let process: Process

    init(_ serial: String, at port: Int) throws {
        process = try Program.start("Tests/guest/usb-camera", ["\(port)", serial], output: FileHandle.standardError)
    }

    func unplug() {
        guard process.isRunning else { return }
        kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }

    deinit { unplug() }
}

extension GuestTests {
    /// USB webcams on a host controller that takes devices from programs (USB/IP).
    @Suite struct USBCameraTests {
        /// Long, because the first camera of a guest waits for GStreamer's registry.
        private static let patience = 120.0
        private let controller: Driver
        private let driver: Driver

        init() throws {
            controller = try Driver("vhci-hcd")
            driver = try Driver("uvcvideo")
        }

        private var names: [String] { CameraSystem.machine.places().map(\.name) }

        private func plug(_ serial: String, at port: Int) async throws -> USBCamera {
            let before = names.count
            let camera = try USBCamera(serial, at: port)
            await eventually(within: Self.patience, "the camera \(serial)") { self.names.count > before }
            return camera
        }

        private func unplug(_ cameras: USBCamera...) async {
            let left = names.count - cameras.count
            for camera in cameras { camera.unplug() }
            await eventually(within: 60, "they are unplugged") { self.names.count == left }
        }

        @Test func `cameras are named by their serial numbers, twins and those without one by their ports`()
            async throws
        {
            let one = try await plug("7C3F", at: 0)
            let two = try await plug("9D21", at: 1)
            #expect(names == ["serial:7C3F", "serial:9D21"])
            // Each has a second device, for metadata.
            #expect(Set((0..<4).map { access("/dev/video\($0)", F_OK) }) == [0])
            let twin = try await plug("9D21", at: 2)
            let without = try await plug("", at: 3)
            let ports = (1...4).map { "usb-vhci_hcd.0-\($0)" }
            #expect(
                Set(names) == ["serial:7C3F", "serial:9D21@\(ports[1])", "serial:9D21@\(ports[2])", ports[3]])
            let listed = try Program.run(".build/debug/connectlive", ["devices"])
            #expect(listed.contains("MJPG  320x180  15, 5 frames/s"), "\(listed)")
            #expect(listed.contains("brightness  0 to 255  default 128"), "\(listed)")
            await unplug(one, two, twin, without)
        }

        @Test func `two cameras that swap their numbers over a reboot keep their names and their controls`()
            async throws
        {
            let first = try await plug("7C3F", at: 0)
            let second = try await plug("9D21", at: 1)
            let before = try CameraPlace.find("serial:7C3F", among: CameraSystem.machine.places()).path
            let watched = try await Watched(Watched.viewing("serial:7C3F", ["brightness": 77])).start()
            await eventually(within: 60, "frames") { watched.pictures.count > 5 }
            #expect(try Camera.control("brightness", of: before) == 77)
            await unplug(first, second)
            await eventually(within: 60, "the loss") { watched.deviceEvents == ["lost"] }
            let other = try await plug("9D21", at: 0)
            let same = try await plug("7C3F", at: 1)
            await eventually(within: 60, "the return") { watched.deviceEvents == ["lost", "returned"] }
            let paths = try ["serial:7C3F", "serial:9D21"].map {
                try CameraPlace.find($0, among: CameraSystem.machine.places()).path
            }
            #expect(paths[1] == before && paths[0] != before)
            #expect(try paths.map { try Camera.control("brightness", of: $0) } == [77, 128])
            await watched.pipeline.stop()
            #expect(watched.failure == nil)
            await unplug(other, same)
        }

        @Test func `two bound cameras that get each other's number over a reboot are found by a new process`()
            async throws
        {
            let tool = ".build/debug/connectlive"
            let serials = ["front": "7C3F", "back": "9D21"]
            let brightness = ["front": 77, "back": 33]
            func path(_ name: String) throws -> String {
                try CameraPlace.find("serial:\(serials[name] ?? "")", among: CameraSystem.machine.places()).path
            }
            let first = [try await plug("7C3F", at: 0), try await plug("9D21", at: 1)]
            for (name, serial) in serials {
                try Program.run(
                    tool,
                    [
                        "devices", "bind", name, "serial:\(serial)", "--controls",
                        "brightness=\(brightness[name] ?? 0)",
                    ])
            }
            let before = ["front": try path("front"), "back": try path("back")]
            // Over a reboot, no driver is there, and the kernel finds the devices of the bus in another order.
            driver.unload()
            for camera in first { camera.unplug() }
            await eventually(within: 60, "the bus is empty") { Self.serials.isEmpty }
            var second: [USBCamera] = []
            for (serial, port) in [("9D21", 1), ("7C3F", 0)] {
                second.append(try USBCamera(serial, at: port))
                await eventually(within: Self.patience, "\(serial) is on the bus") { Self.serials.contains(serial) }
            }
            try driver.load([])
            await eventually(within: 60, "both cameras") { self.names.count == 2 }
            #expect(try path("front") == before["back"] && path("back") == before["front"])
            // A new process, which knows the names alone.
            let file = NSTemporaryDirectory() + "both.yaml"
            try """
            chains:
              - - {node: camera, name: one, device: front, width: 320, height: 180, fps: 15}
                - {node: "null", name: first}
              - - {node: camera, name: two, device: back, width: 320, height: 180, fps: 15}
                - {node: "null", name: second}
            """.write(toFile: file, atomically: true, encoding: .utf8)
            let (status, said) = try Program.outcome(tool, ["run", file, "--seconds", "8"], seconds: 120)
            #expect(status == 0, "\(said)")
            // A camera that has just been plugged in has 128.
            for name in serials.keys {
                #expect(try Camera.control("brightness", of: path(name)) == brightness[name], "\(name): \(said)")
            }
            for name in serials.keys { try Program.run(tool, ["devices", "unbind", name]) }
            await unplug(second[0], second[1])
        }

        /// The serial numbers of the devices on the buses, with or without a driver.
        private static var serials: [String] {
            let folder = "/sys/bus/usb/devices"
            let found = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
            return found.filter { !$0.hasPrefix("usb") }.compactMap {
                (try? String(contentsOfFile: "\(folder)/\($0)/serial", encoding: .utf8))?
                    .trimmingCharacters(in: .whitespacesAndNewlines)
            }
        }

        @Test func `a camera that is pulled out ten times goes on at another port each time, without a leak`()
            async throws
        {
            var camera = try await plug("7C3F", at: 0)
            let watched = try await Watched(Watched.viewing("serial:7C3F")).start()
            await eventually(within: 60, "frames") { watched.pictures.count > 5 }
            var before = Footprint.now
            for round in 1...10 {
                await unplug(camera)
                await eventually(within: 60, "loss \(round)") { watched.deviceEvents.count == 2 * round - 1 }
                camera = try await plug("7C3F", at: round % 8)
                await eventually(within: 60, "return \(round)") { watched.deviceEvents.count == 2 * round }
                let seen = watched.pictures.count
                await eventually(within: 60, "frames after \(round)") { watched.pictures.count > seen + 5 }
                if round == 3 { before = Footprint.now }
            }
            let after = Footprint.now
            print("10 unplugged USB cameras: \(before) -> \(after)")
            #expect(after.cameras == 1 && after.descriptors <= before.descriptors + 2, "\(before) -> \(after)")
            #expect(after.kilobytes < before.kilobytes + 10_000, "\(before) -> \(after)")
            #expect(watched.deviceEvents == (0..<10).flatMap { _ in ["lost", "returned"] })
            #expect(zip(watched.times.all, watched.times.all.dropFirst()).allSatisfy { $0 < $1 })
            await watched.pipeline.stop()
            #expect(watched.failure == nil)
            await unplug(camera)
        }

        @Test func `a recording of a USB camera plays`() async throws {
            let camera = try await plug("7C3F", at: 0)
            let file = NSTemporaryDirectory() + "recorded.json"
            try Program.run(
                ".build/debug/connectlive",
                ["camera", "record", "serial:7C3F", "--size", "320x180", "--fps", "15", "--output", file])
            await unplug(camera)
            let watched = try await Watched(Watched.viewing("fixture:\(file)")).start()
            await eventually(within: 60, "frames") { watched.pictures.count > 5 }
            await watched.pipeline.stop()
            #expect(watched.failure == nil)
        }
    }
}
