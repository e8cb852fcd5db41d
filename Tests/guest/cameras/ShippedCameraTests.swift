import Foundation
import Testing
import TestSupport

extension GuestTests {
    /// The shipped pipelines for webcams, run by the program with cameras.
    @Suite struct ShippedCameraTests {
        private static var tool: String {
            URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
                .appendingPathComponent("connectlive").path
        }

        /// The parts of the report of `run --report` that are checked.
        private struct Report: Decodable {
            struct Format: Decodable {
                var encoding: String
                var width: Int?
                var height: Int?
            }
            struct Input: Decodable {
                var planned: Format
                var measured: Format
                var kilobitsPerSecond: Double?
            }
            struct Output: Decodable {
                var name: String
                var inputs: [Input]
            }
            struct Count: Decodable {
                var what: String
                var measured: Int
            }
            var outputs: [Output]
            var counts: [Count]
        }

        /// A shipped pipeline with smaller frames, because an emulated processor is slow.
        private func small(_ file: String) throws -> String {
            var text = try Checkout.text("pipelines/\(file)")
            for (large, small) in [
                ("width: 1280, height: 720, fps: 30", "width: 320, height: 180, fps: 15"),
                ("width: 640\n", "width: 320\n"), ("height: 480\n", "height: 180\n"), ("fps: 30\n", "fps: 15\n"),
                (":-1280}", ":-320}"), (":-720}", ":-180}"), (":-30}", ":-15}"),
            ] { text = text.replacingOccurrences(of: large, with: small) }
            let path = NSTemporaryDirectory() + file
            try text.write(toFile: path, atomically: true, encoding: .utf8)
            return path
        }

        private func outcome(_ command: [String]) throws -> String {
            let (status, said) = try Program.outcome(Self.tool, command, seconds: 120)
            #expect(status == 0, "\(command): \(said)")
            return said
        }

        private func report(_ file: String, _ values: [String: String]) async throws -> Report {
            let log = NSTemporaryDirectory() + "serve.log"
            try "".write(toFile: log, atomically: false, encoding: .utf8)
            let server = try Program.start(
                Self.tool, ["serve", "--listen", "127.0.0.1:7880"], output: FileHandle(forWritingAtPath: log))
            defer {
                server.terminate()
                server.waitUntilExit()
            }
            await eventually(within: 60, "the server serves") {
                (try? String(contentsOfFile: log, encoding: .utf8).contains("In a browser")) == true
            }
            let path = try small(file)
            let settings = values.sorted { $0.key < $1.key }.flatMap { ["--set", "\($0.key)=\($0.value)"] }
            _ = try outcome(["validate", path] + settings)
            _ = try outcome(["plan", path] + settings)
            let report = NSTemporaryDirectory() + "report.json"
            let said = try outcome(["run", path] + settings + ["--seconds", "6", "--report", report])
            let read = try JSONDecoder().decode(Report.self, from: Data(contentsOf: URL(fileURLWithPath: report)))
            let publish = try #require(read.outputs.first { $0.name == "publish" }, "\(said)")
            let video = try #require(publish.inputs.first, "\(said)")
            #expect(video.measured.encoding == video.planned.encoding, "\(said)")
            #expect(video.measured.width == 320 && video.measured.height == 180, "\(said)")
            #expect(video.kilobitsPerSecond ?? 0 > 5, "\(said)")
            return read
        }

        private func encodes(_ report: Report) -> Int? { report.counts.first { $0.what == "encodes" }?.measured }

        @Test func `webcam-to-room publishes a camera, which it finds by itself`() async throws {
            let cameras = try Vivid()
            #expect(encodes(try await report("webcam-to-room.yaml", [:])) == 1)
            withExtendedLifetime(cameras) {}
        }

        @Test func `webcam-preview-recording-to-room records its stream, also without a display`() async throws {
            let cameras = try Vivid()
            let path = NSTemporaryDirectory() + "standup.mkv"
            let report = try await report("webcam-preview-recording-to-room.yaml", ["path": path])
            #expect(encodes(report) == 1)
            #expect(try Program.run("gst-discoverer-1.0", ["-v", path]).contains("video/x-h264"))
            withExtendedLifetime(cameras) {}
        }

        @Test func `two-cameras-to-room mixes two cameras`() async throws {
            let cameras = try Vivid(2)
            let report = try await report(
                "two-cameras-to-room.yaml", ["camera": try cameras[0], "second-camera": try cameras[1]])
            #expect(encodes(report) == 1)
        }

        @Test func `webcam-h264-to-room publishes the camera's encoding without another encoder`() async throws {
            let camera = try await FedCamera("H264")
            #expect(encodes(try await report("webcam-h264-to-room.yaml", ["camera": FedCamera.path])) == 0)
            withExtendedLifetime(camera) {}
        }
    }
}
