internal import ArgumentParser
internal import Cameras
internal import Foundation

struct CameraCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "camera", abstract: "Record a camera into a file that is a camera.",
        subcommands: [RecordCommand.self])

    struct RecordCommand: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "record",
            abstract: "Write a camera's modes, controls, timing and some frames into a file.",
            discussion:
                "The file is a camera: --camera fixture:FILE. docs/camera-fixtures.md describes it. Add faults to it to "
                + "reproduce a problem.")

        @Argument(help: "The camera: auto, a name of 'devices', or a path such as /dev/video0.") var camera: String
        @Option(name: .shortAndLong, help: "Write this file.") var output: String
        @Option(help: "Number of frames to keep, 0 to 100.") var frames = 2
        @Option(help: "Frame size, such as 1280x720 (default: 640x480).", transform: { try PictureSize($0) })
        var size: PictureSize?
        @Option(help: "Frames per second.") var fps = 20

        func validate() throws {
            guard (0...100).contains(frames) else { throw ValidationError("--frames must be 0 to 100, not \(frames).") }
            guard (1...240).contains(fps) else { throw ValidationError("--fps must be 1 to 240, not \(fps).") }
        }

        func run() throws {
            let size = FrameSize(size?.width ?? 640, size?.height ?? 480)
            let fixture = try Self.record(camera, of: .machine, size, FrameRate(fps), frames: frames)
            do {
                try write(fixture.json, toFile: output)
            } catch {
                throw CaptureError(
                    code: CaptureError.Code.fixture, call: "open", number: 0,
                    "The file \(output) cannot be written. Choose another path.")
            }
            print("\(output) is a camera: --camera fixture:\(output)")
        }

        /// Formats with small frames first.
        private static let formats = ["MJPG", "NV12", "I420", "YV12", "YUY2", "UYVY", "RGB", "BGR", "GRAY8", "H264"]

        static func record(
            _ camera: String, of system: CameraSystem, _ size: FrameSize, _ rate: FrameRate, frames: Int
        ) throws(CaptureError) -> CameraFixture {
            let wish = CaptureWish(size, rate, formats: formats)
            var mode: CaptureMode?
            let opened = try system.open(camera) { place, device throws(CaptureError) in
                mode = try wish.choose(from: try device.formats(), of: place.name)
            }
            defer { opened.device.close() }
            guard let mode else { preconditionFailure("a camera that was opened was prepared") }
            return try CameraFixture(recording: opened.device, in: mode, frames: frames, on: system.clock)
        }
    }
}
