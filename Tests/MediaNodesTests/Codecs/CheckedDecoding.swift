import Dispatch
import GStreamerKit
import MediaGraph
import Synchronization

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
