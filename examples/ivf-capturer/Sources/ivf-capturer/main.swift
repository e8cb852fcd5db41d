// Publishes the VP8 of an IVF file into a room, without encoding it again: ivf-capturer FILE [ROOM] [SECONDS]
// Start `connectlive serve` on the same machine first.
import ConnectLiveSDK
import Foundation

/// A source with its own pace, clock and encoder, like many devices. It repeats the file.
struct IVFCapturer: Capturer {
    static let summary = "The VP8 of an IVF file, repeated"
    let file: IVFFile

    func format() -> EncodedPictureFormat {
        EncodedPictureFormat(
            .vp8, width: file.width, height: file.height, framesPerSecond: file.framesPerSecond)
    }

    func capture(into output: CaptureOutput<EncodedPictureFormat>) async throws {
        // The file's clock starts at 0. The graph's runs since boot, so each time is shifted.
        var start = output.now
        var index = 0
        while true {
            // A decoder that joined or lost a frame needs a keyframe. This source returns to its latest one.
            if output.takeKeyframeRequest(), let keyframe = file.keyframe(before: index), keyframe < index {
                start = start + (file.frames[index].time - file.frames[keyframe].time)
                index = keyframe
            }
            let frame = file.frames[index]
            let captured = start + frame.time
            // When the graph stops, it cancels the task during this sleep. The error ends `capture`.
            try await Task.sleep(for: max(.zero, captured - output.now))
            if let size = frame.keyframeSize, size != (output.format.width, output.format.height) {
                var format = output.format
                (format.width, format.height) = size
                try output.change(to: format)
            }
            try output.send(frame.bytes, at: captured, isKeyframe: frame.keyframeSize != nil)
            index += 1
            if index == file.frames.count {
                start = captured + .seconds(1 / file.framesPerSecond)
                index = 0
            }
        }
    }
}

/// The frames of an IVF file: a header of 32 bytes, then for each frame its size, its time and its bytes.
struct IVFFile {
    struct Frame {
        /// From the file's first frame.
        let time: Duration
        let bytes: [UInt8]
        /// The size that a VP8 keyframe states (RFC 6386, section 9.1); nil for other frames.
        let keyframeSize: (width: Int, height: Int)?
    }

    let width: Int
    let height: Int
    let framesPerSecond: Double
    private(set) var frames: [Frame] = []

    init(path: String) throws {
        guard let data = FileManager.default.contents(atPath: path) else {
            throw MediaError(code: "ivf.unreadable", message: "There is no readable file \(path).")
        }
        let bytes = [UInt8](data)
        func number(_ count: Int, at offset: Int) -> Int {
            (0..<count).reversed().reduce(0) { $0 << 8 | Int(bytes[offset + $1]) }
        }
        guard bytes.count >= 32, bytes[0..<4].elementsEqual("DKIF".utf8), bytes[8..<12].elementsEqual("VP80".utf8),
            number(4, at: 16) > 0, number(4, at: 20) > 0
        else {
            throw MediaError(code: "ivf.invalid", message: "\(path) is not an IVF file with VP8.")
        }
        width = number(2, at: 12)
        height = number(2, at: 14)
        // Times count units of denominator/numerator seconds, for most writers the length of one frame.
        let unit = Double(number(4, at: 20)) / Double(number(4, at: 16))
        var offset = 32
        var first: Int?
        while offset + 12 <= bytes.count {
            let end = offset + 12 + number(4, at: offset)
            guard end <= bytes.count, end > offset + 12 else { break }
            let frame = Array(bytes[offset + 12..<end])
            let time = number(7, at: offset + 4)
            let isKeyframe = frame[0] & 1 == 0 && frame.count >= 10
            frames.append(
                Frame(
                    time: .seconds(Double(time - (first ?? time)) * unit), bytes: frame,
                    keyframeSize: isKeyframe
                        ? (
                            Int(frame[6]) | Int(frame[7] & 0x3f) << 8, Int(frame[8]) | Int(frame[9] & 0x3f) << 8
                        ) : nil))
            first = first ?? time
            offset = end
        }
        guard let last = frames.last, frames.count > 1, last.time > .zero else {
            throw MediaError(code: "ivf.empty", message: "\(path) has fewer than two frames.")
        }
        framesPerSecond = Double(frames.count - 1) / (last.time / .seconds(1))
    }

    /// The index of the latest keyframe that a decoder had before this frame.
    func keyframe(before index: Int) -> Int? {
        frames[..<index].lastIndex { $0.keyframeSize != nil }
    }
}

let arguments = CommandLine.arguments
guard arguments.count > 1 else {
    print("usage: ivf-capturer FILE [ROOM] [SECONDS]")
    exit(2)
}
let room = arguments.count > 2 ? arguments[2] : "demo"
do {
    let capturer = IVFCapturer(file: try IVFFile(path: arguments[1]))
    let pipeline = try await MediaPipeline { capturer >>> Publish(room: room) }
    try await pipeline.start()
    print("Publishing. Open the page that the server printed.")
    try await Task.sleep(for: .seconds(arguments.count > 3 ? Double(arguments[3]) ?? 60 : 60))
    await pipeline.stop()
} catch {
    // An uncaught error would crash the program.
    print(error)
    exit(1)
}
