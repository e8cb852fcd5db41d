import MediaGraph
internal import ArgumentParser
internal import Cameras
internal import Foundation

struct CameraCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "camera", abstract: "Record a camera into a file that can stand in for it.",
        subcommands: [RecordCommand.self])

    struct RecordCommand: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "record",
            abstract: "Write a camera's modes, controls, timing and some frames into a file.",
            discussion:
                "The file is a camera: --camera fixture:FILE. docs/camera-fixtures.md describes it. Add faults to it to "
                + "reproduce a problem. A file that is there is replaced.")

        @Argument(help: "The camera: auto, a name of 'devices', or a path such as /dev/video0.") var camera: String
        @Option(name: .shortAndLong, help: "Write this file.") var output: String
        @Option(
            parsing: .unconditional, help: "Number of frames to keep, 0 to 100; with 0, the camera may have any format."
        )
        var frames = 2
        @Option(
            help: "Frame size, such as 1280x720 (default: 640x480).",
            transform: { text in
                guard let size = FrameSize(text) else {
                    throw ValidationError(
                        "Write WIDTHxHEIGHT, each from 1 to \(FrameSize.longest), such as 640x480, not \(text).")
                }
                return size
            })
        var size: FrameSize?
        @Option(parsing: .unconditional, help: "Frames per second.") var fps = 20
        @Option(
            help: "Format of the frames, as 'devices' prints it, such as MJPG or YUYV (default: a small one).")
        var format: String?

        func validate() throws {
            guard (0...100).contains(frames) else { throw ValidationError("--frames must be 0 to 100, not \(frames).") }
            guard (1...240).contains(fps) else { throw ValidationError("--fps must be 1 to 240, not \(fps).") }
        }

        func run() throws {
            try OutputFile.check(output)
            let isThere = FileManager.default.fileExists(atPath: output)
            let wish = Wish(size: size ?? FrameSize(640, 480), rate: FrameRate(fps), format: format, frames: frames)
            let (fixture, summary) = try Self.record(camera, of: .machine, wish) { damaged in
                Console.error(
                    "\(camera) delivered \(damaged) damaged frames, which are left out. Check its cable and hub.")
            }
            do {
                try write(fixture.json, toFile: output)
            } catch {
                throw CommandFailure(
                    code: "file.unwritable", "Cannot write \(output): \(Self.reason(error)). Choose another path.")
            }
            if let frame = fixture.frames?.first, let size, "\(frame.size)" != "\(size)" {
                Console.error("\(camera) has no mode of \(size), so its frames are of \(frame.size).")
            }
            print("\(output) is a camera with \(summary): --camera fixture:\(output)".printable)
            if isThere { print("It replaced the file that was there.") }
        }

        private static func reason(_ error: any Error) -> String {
            let cause = (error as NSError).userInfo[NSUnderlyingErrorKey] as? NSError ?? error as NSError
            return cause.domain == NSPOSIXErrorDomain
                ? String(cString: strerror(Int32(clamping: cause.code))).lowercased() : cause.localizedDescription
        }

        struct Wish {
            var size: FrameSize
            var rate: FrameRate
            /// The frames' format. Nil for any.
            var format: String?
            var frames: Int
        }

        /// Formats with small frames first.
        private static let formats = ["MJPG", "NV12", "I420", "YV12", "YUY2", "UYVY", "RGB", "BGR", "GRAY8", "H264"]

        /// Records a camera. Returns its frames as words for people, too.
        static func record(
            _ camera: String, of system: CameraSystem, _ wish: Wish, damaged: (Int) -> Void = { _ in }
        ) throws(MediaError) -> (fixture: CameraFixture, summary: String) {
            let formats = wish.format.map { [FourCC(text: $0.uppercased())?.name ?? $0] } ?? formats
            var mode: CaptureMode?
            let opened = try system.open(camera) { place, device throws(MediaError) in
                guard wish.frames > 0 else { return }
                let offers = try device.formats()
                do throws(MediaError) {
                    mode = try CaptureWish(wish.size, wish.rate, formats: formats).choose(from: offers, of: place.name)
                } catch {
                    throw MediaError(
                        code: error.code,
                        message:
                            "\(error.message) With --frames 0, its description alone is recorded.")
                }
            }
            defer { opened.device.close() }
            let fixture = try CameraFixture(
                recording: opened.device, in: mode, frames: wish.frames, of: camera, on: system.clock, damaged: damaged)
            let first = fixture.frames?.first
            let summary =
                first.map { frame in
                    "\(wish.frames) frame\(wish.frames == 1 ? "" : "s") of \(frame.format) \(frame.size)"
                        + (mode?.rate.map { " at \($0.short) frames/s" } ?? "")
                } ?? "no frames"
            return (fixture, summary)
        }
    }
}
