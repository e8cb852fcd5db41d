import Dispatch
import Foundation
import GStreamerKit
import MediaGraph
import Synchronization
import TestSupport

/// Frames of one brightness each, as a camera that encodes gives them.
enum EncodedFilm {
    static let (width, height) = (64, 48)

    /// The brightness of a frame by its number.
    static func brightness(_ number: Int) -> Int { 100 + 4 * (number % 30) }

    /// One access unit of H.264 a frame, in Annex B. The keyframes have the parameter sets.
    static func h264(
        _ count: Int, keyframeEvery interval: Int, profile: String = "constrained-baseline"
    ) throws -> [[UInt8]] {
        let encoder = try Element(
            "x264enc",
            [
                "tune": "zerolatency", "speed-preset": "superfast", "key-int-max": .integer(interval), "bframes": 0,
                "threads": 1, "aud": false, "option-string": "scenecut=0",
            ])
        return try frames(
            count, encoder, "video/x-h264,profile=\(profile),stream-format=byte-stream,alignment=au")
    }

    static func jpeg(_ count: Int) throws -> [[UInt8]] { try frames(count, try Element("jpegenc"), "image/jpeg") }

    private static func frames(_ count: Int, _ encoder: Element, _ caps: String) throws -> [[UInt8]] {
        let isOver = DispatchSemaphore(value: 0)
        let frames = Collected<[UInt8]>()
        let pipeline = Pipeline { message in
            switch message {
            case .endOfStream, .error: isOver.signal()
            default: break
            }
        }
        let source = try PushSource()
        let (filter, sink) = (try Element.filter(caps), try Element("fakesink", ["sync": false, "async": false]))
        for element in [source.element, encoder, filter, sink] { pipeline.add(element) }
        for (from, to) in [(source.element, encoder), (encoder, filter), (filter, sink)] { try from.link(to) }
        sink.sink.watchBuffers { buffer in
            var bytes: [UInt8] = []
            buffer.append(to: &bytes)
            frames.append(bytes)
        }
        source.setFormat(Caps("video/x-raw,format=I420,width=\(width),height=\(height),framerate=30/1"))
        _ = pipeline.play()
        for number in 0..<count {
            let chroma = [UInt8](repeating: 128, count: width * height / 4)
            let picture = VideoBuffer(
                width: width, height: height,
                luma: [UInt8](repeating: UInt8(brightness(number)), count: width * height), chromaBlue: chroma,
                chromaRed: chroma)
            _ = source.push(picture, timestamp: UInt64(number) * 1_000_000_000 / 30)
        }
        source.endOfStream()
        isOver.wait()
        pipeline.stop()
        return frames.all
    }
}

/// The video of a Matroska or MP4 file, decoded by a decoder that reports every error.
final class CheckedDecoding: Sendable {
    struct Picture: Sendable {
        /// In seconds.
        let time: Double
        let brightness: Double
    }

    private struct State {
        var pictures: [Picture] = []
        var frames = 0
        var problems: [String] = []
    }

    private let state = Mutex(State())

    /// The decoded frames, the number of encoded ones, and everything that the elements complained about.
    var pictures: [Picture] { state.withLock { $0.pictures } }
    var frames: Int { state.withLock { $0.frames } }
    var problems: [String] { state.withLock { $0.problems } }

    init(_ path: String, decoder: String = "avdec_h264", parser: String = "h264parse") throws {
        let isOver = DispatchSemaphore(value: 0)
        let pipeline = Pipeline { message in
            switch message {
            case .endOfStream: isOver.signal()
            case .error(let failure):
                self.state.withLock { $0.problems.append(failure.message + " " + failure.detail) }
                isOver.signal()
            case .warning(_, let message): self.state.withLock { $0.problems.append(message) }
            default: break
            }
        }
        let source = try Element("filesrc", ["location": .text(path)])
        let demuxer = try Element(path.hasSuffix("mkv") ? "matroskademux" : "qtdemux")
        let parser = try Element(parser)
        let decoder = try Element(decoder, ["max-errors": 0])
        let convert = try Element("videoconvert")
        let format = try Element.filter("video/x-raw,format=I420")
        let sink = try Element("fakesink", ["sync": false, "async": false])
        for element in [source, demuxer, parser, decoder, convert, format, sink] { pipeline.add(element) }
        for (from, to) in [(source, demuxer), (parser, decoder), (decoder, convert), (convert, format), (format, sink)]
        {
            try from.link(to)
        }
        demuxer.onPadAdded { pad in _ = pad.link(parser.sink) }
        parser.source.watchBuffers { _ in self.state.withLock { $0.frames += 1 } }
        sink.sink.watchBuffers { buffer in
            let time = Double(buffer.runningTime ?? 0) / 1e9
            let brightness = buffer.read { bytes in
                Double(bytes.unsafeLoad(fromByteOffset: bytes.byteCount / 3, as: UInt8.self))
            }
            self.state.withLock { $0.pictures.append(Picture(time: time, brightness: brightness ?? 0)) }
        }
        _ = pipeline.play()
        if isOver.wait(timeout: .now() + 60) == .timedOut { state.withLock { $0.problems.append("it did not end") } }
        pipeline.stop()
    }
}
