import GStreamerKit
import Glibc
import MediaGraph
import MediaNodes
import Testing
import TestSupport

extension MediaNodesTests {
    @Suite struct OverlayTests {
        /// A red image of 64x64 as a PNG file.
        private func redImage(in folder: TemporaryFolder) throws -> String {
            let picture = VideoBuffer(
                width: 64, height: 64, luma: [UInt8](repeating: 235, count: 64 * 64),
                chromaBlue: [UInt8](repeating: 128, count: 32 * 32),
                chromaRed: [UInt8](repeating: 128, count: 32 * 32))
            let path = folder.path + "/white.png"
            writeFile(try ImageEncoder.encode(picture, as: .png), to: path)
            return path
        }

        @Test("Text and its place change live; without text a frame is unchanged")
        func text() async throws {
            let watched = try await Watched(
                chain(.testPattern("pattern"), Node("overlay", settings: ["position": "bottom-left"]), .frames("view")))
            try await watched.pipeline.start()
            // Both areas of one frame, because in the frames that flash everything is bright.
            func bright() -> (middle: Int, bottom: Int) {
                guard let picture = watched.pictures().last else { return (0, 0) }
                return (
                    picture.brightSamples(x: 0, y: 180, width: 640, height: 120),
                    picture.brightSamples(x: 0, y: 360, width: 640, height: 120)
                )
            }
            await eventually("a frame without text") { watched.pictures().count > 5 && bright() == (0, 0) }
            try await watched.set("overlay", "text", "Camera 1 & <2>")
            await eventually("text at the bottom") {
                let now = bright()
                return now.middle == 0 && now.bottom > 100
            }
            try await watched.set("overlay", "position", "center")
            var small = 0
            await eventually("text in the middle") {
                let now = bright()
                small = now.middle
                return small > 100 && now.bottom == 0
            }
            try await watched.set("overlay", "font-size", 40)
            await eventually("larger letters") { 2 * small..<20 * small ~= bright().middle }
            try await watched.set("overlay", "y", 180)
            await eventually("text further down") {
                let now = bright()
                return now.middle == 0 && now.bottom > 100
            }
            try await watched.set("overlay", "color", "#000000")
            await eventually("black letters") { bright().bottom == 0 }
            try await watched.set("overlay", "color", "#ffffff")
            try await watched.set("overlay", "text", "")
            await eventually("no text") { bright() == (0, 0) }
            await watched.pipeline.stop()
            #expect(watched.failure == nil)
        }

        @Test("Clock and image appear in their places, and the image moves live")
        func clockAndImage() async throws {
            let folder = TemporaryFolder()
            let image = try redImage(in: folder)
            var overlay = Node("overlay", settings: ["clock": "%H:%M:%S", "image": .text(image)])
            overlay.settings["image-x"] = 100
            overlay.settings["image-y"] = 200
            let watched = try await Watched(chain(.testPattern("pattern"), overlay, .frames("view")))
            try await watched.pipeline.start()
            func bright(x: Int, y: Int) -> Int {
                watched.pictures().last?.brightSamples(x: x, y: y, width: 64, height: 64) ?? 0
            }
            await eventually("the image") { bright(x: 100, y: 200) > 4000 }
            let clock = watched.pictures().last?.brightSamples(x: 400, y: 0, width: 240, height: 80) ?? 0
            #expect(clock > 100)
            try await watched.set("overlay", "image-x", 400)
            await eventually("the image further right") { bright(x: 400, y: 200) > 4000 && bright(x: 100, y: 200) == 0 }
            await watched.pipeline.stop()
            #expect(watched.failure == nil)
        }

        @Test("An unreadable image is an error with the node and the file")
        func missingImage() async throws {
            let folder = TemporaryFolder()
            for path in ["/nowhere/logo.png", folder.path + "/logo.png", Checkout.clip] {
                let graph = chain(
                    .testPattern("pattern"), Node("overlay", settings: ["image": .text(path)]), .null("view"))
                let failure = await #expect(throws: MediaError.self) { try await MediaPipeline(graph).start() }
                #expect(failure?.code == MediaError.Code.fileUnreadable)
                #expect(failure?.message.contains(path) == true)
                #expect(failure?.message.contains("\"overlay\"") == true)
            }
        }

        @Test("The plan refuses a named pipe as an image")
        func pipe() async throws {
            let folder = TemporaryFolder()
            let path = folder.path + "/logo.png"
            #expect(mkfifo(path, 0o600) == 0)
            let error = await #expect(throws: MediaError.self) {
                try await MediaPipeline.plan(
                    chain(.testPattern("pattern"), Node("overlay", settings: ["image": .text(path)]), .null("view")))
            }
            #expect(error?.code == MediaError.Code.fileUnreadable)
            #expect(error?.message.contains("\(path): it is not a file") == true, "\(error?.message ?? "")")
        }

        @Test("An overlay without an image refuses changes of it with a message")
        func absentPart() async throws {
            let watched = try await Watched(chain(.testPattern("pattern"), Node("overlay"), .frames("view")))
            let error = await #expect(throws: MediaError.self) { try await watched.set("overlay", "image-x", 5) }
            #expect(error?.code == MediaError.Code.settingUnusable)
            #expect(error?.message.contains("has no image") == true)
        }
    }
}
