import Foundation
import Glibc
import MediaGraph
import MediaNodes
import Testing
import TestSupport

/// A camera that delivers the frames it is fed: v4l2loopback, and the program `feed` beside this folder.
final class FedCamera {
    static let path = "/dev/video9"
    private let driver: Driver
    private let feeder: Process

    /// `encoding` is an argument of `feed`: MJPG or H264.
    init(_ encoding: String) async throws {
        driver = try Driver("v4l2loopback", "video_nr=9", "card_label=Fed", "exclusive_caps=1")
        feeder = try Program.start(Checkout.path("Tests/guest/feed"), [Self.path, encoding])
        await eventually(within: 120, "the camera is fed") {
            (try? Program.outcome("v4l2-ctl", ["-d", Self.path, "--list-formats"]).1.contains(encoding)) == true
        }
    }

    deinit {
        kill(feeder.processIdentifier, SIGKILL)
        feeder.waitUntilExit()
    }
}

extension GuestTests {
    /// Cameras that encode.
    @Suite struct OwnEncodingTests {
        @Test func `the JPEG of a camera is decoded if raw frames are needed`() async throws {
            let camera = try await FedCamera("MJPG")
            #expect(Set(try Devices.camera(FedCamera.path).formats.map(\.pixelFormat)) == ["MJPG"])
            let watched = try await Watched(Watched.viewing(FedCamera.path)).start()
            await eventually("pictures") { watched.pictures.count > 15 }
            #expect(watched.pipeline.plan.node("camera")?.device?.element("decoder")?.factory == "jpegdec")
            #expect(Set(watched.pictures.all) == ["320x180"])
            await watched.pipeline.stop()
            #expect(watched.failure == nil)
            withExtendedLifetime(camera) {}
        }

        @Test func `the JPEG of a camera passes through on request`() async throws {
            let camera = try await FedCamera("MJPG")
            let watched = try await Watched(Watched.recording(FedCamera.path, "mjpeg", "own.mkv")).start()
            try await check(watched, "own.mkv", "image/jpeg")
            withExtendedLifetime(camera) {}
        }

        @Test(arguments: ["h264", "auto"])
        func `the H.264 of a camera passes through without another encoder`(format: String) async throws {
            let camera = try await FedCamera("H264")
            #expect(Set(try Devices.camera(FedCamera.path).formats.map(\.pixelFormat)) == ["H264"])
            let watched = try await Watched(Watched.recording(FedCamera.path, format, "own.mkv")).start()
            try await check(watched, "own.mkv", "video/x-h264")
            withExtendedLifetime(camera) {}
        }

        @Test func `the H.264 of a camera is decoded for consumers of raw frames`() async throws {
            let camera = try await FedCamera("H264")
            let graph = MediaGraph {
                Chain {
                    Watched.camera(FedCamera.path, ["format": "h264"])
                    Node.frames("view")
                }
            }
            let watched = try await Watched(graph).start()
            await eventually("pictures") { watched.pictures.count > 15 }
            #expect(Set(watched.pictures.all) == ["320x180"])
            await watched.pipeline.stop()
            #expect(watched.failure == nil)
            withExtendedLifetime(camera) {}
        }

        /// The recording has the camera's encoding, and the graph has no encoder.
        private func check(_ watched: Watched, _ file: String, _ type: String) async throws {
            let path = NSTemporaryDirectory() + file
            let size = { (try? FileManager.default.attributesOfItem(atPath: path)[.size] as? Int) ?? 0 }
            await eventually("the file grows") { size() > 20_000 }
            await watched.pipeline.stop()
            #expect(watched.failure == nil)
            let factories = watched.pipeline.plan.nodes.flatMap { $0.elements.map(\.factory) }
            #expect(!factories.contains { $0.hasSuffix("enc") || $0.hasSuffix("dec") }, "\(factories)")
            let found = try Program.outcome("gst-discoverer-1.0", ["-v", path]).1
            #expect(found.contains(type) && found.contains("320"), "\(found)")
            try FileManager.default.removeItem(atPath: path)
        }
    }
}

extension Watched {
    fileprivate static func recording(_ device: String, _ format: String, _ file: String) -> MediaGraph {
        MediaGraph {
            Chain {
                camera(device, ["format": .text(format)])
                Node("recorder", settings: ["path": .text(NSTemporaryDirectory() + file)])
            }
        }
    }
}
