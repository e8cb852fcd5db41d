internal import CGLib
internal import CGStreamer
internal import Dispatch
import MediaGraph
import Synchronization

/// Reads a media file's container and the headers of its streams. Decodes nothing, which takes a fraction of the time
/// of `FileDiscovery`.
final class FileGlance: Sendable {
    private struct State {
        var pads: [Pad] = []
        var formats: [FormatStructure?] = []
        var duration: UInt64 = 0
        /// Streams whose first buffer has not arrived. A parsebin passes nothing before it has exposed all of them.
        var missing = 0
        /// Buffers that passed meanwhile.
        var passedBy = 0
        var isUnclear = false
        var error: String?
    }

    /// After this many buffers of other streams, a missing stream is given up.
    private static let longestWait = 500

    private let state = Mutex(State())
    private let isSettled = DispatchSemaphore(value: 0)

    private init() {}

    /// Blocks for some milliseconds, at most `seconds`. The path has to be a readable file. Returns nil if something is
    /// missing, not stated, or possibly not decodable.
    static func look(into path: String, seconds: Double) -> DiscoveredFile? {
        let glance = FileGlance()
        let pipeline = Pipeline { message in
            switch message {
            case .error(let failure): glance.giveUp(failure)
            case .missingPlugin, .endOfStream: glance.giveUp()
            case .warning, .latencyChanged, .stateRequested: break
            }
        }
        defer { pipeline.stop() }
        guard pipeline.addParsers(of: path, glance.take), pipeline.pause(),
            glance.isSettled.wait(timeout: .now() + seconds) == .success
        else { return nil }
        return glance.answer(path)
    }

    private func take(_ pad: Pad, _ pipeline: Pipeline) {
        guard let sink = try? Element("fakesink", ["sync": false, "async": false]) else { return giveUp() }
        state.withLock { state in
            state.pads.append(pad)
            state.missing += 1
        }
        let hasBegun = AtomicBool()
        pad.onBuffer { [weak self, weak pad] _ in
            guard let self, let pad else { return .pass }
            if hasBegun.exchange(true) { return passBy() }
            let format = pad.caps?.structures.first
            let duration = pad.duration
            return settle { state in
                state.missing -= 1
                state.formats.append(format)
                state.duration = max(state.duration, duration ?? 0)
            }
        }
        // A stream without content.
        pad.onEndOfStream { [weak self] in self?.giveUp() }
        pipeline.add(sink)
        if !pad.link(sink.sink) || !sink.followPipeline() { giveUp() }
    }

    private func giveUp(_ failure: PipelineFailure? = nil) {
        _ = settle { state in
            // A missing decoder is reported by the discovery.
            if !state.isUnclear, let failure, failure.kind == .other { state.error = failure.message }
            state.isUnclear = true
        }
    }

    /// Another buffer of a known stream, while one has not arrived yet.
    private func passBy() -> ProbeAnswer {
        settle { state in
            state.passedBy += 1
            if state.passedBy > Self.longestWait { state.isUnclear = true }
        }
    }

    /// Drops buffers until everything is known: one thread delivers all streams, and a sink that keeps its first buffer
    /// would block it. The buffer that completes the answer is held, and nothing more is read.
    private func settle(_ change: (inout State) -> Void) -> ProbeAnswer {
        let isOver = state.withLock { state in
            change(&state)
            return state.isUnclear || state.missing == 0
        }
        if isOver { isSettled.signal() }
        return isOver ? .pass : .drop
    }

    private func answer(_ path: String) -> DiscoveredFile? {
        state.withLock { state in
            if let error = state.error { return .unreadable(error) }
            guard !state.isUnclear, state.duration > 0, !state.formats.isEmpty else { return nil }
            var video: (width: Int, height: Int, framesPerSecond: Double)?
            var hasAudio = false
            var encodings: (video: String?, audio: String?)
            for format in state.formats {
                guard let format, ElementFactory.canDecode(format) else { return nil }
                if format.name.hasPrefix("audio/") {
                    // The decoder plays the first of several streams.
                    if !hasAudio { encodings.audio = Self.encoding(format) }
                    hasAudio = true
                } else if video == nil, let found = Self.video(format) {
                    video = found
                    encodings.video = Self.encoding(format)
                } else {
                    return nil
                }
            }
            let seconds = Double(state.duration) / 1e9
            return .found(
                MediaFileInfo(
                    path: path, width: video?.width ?? 0, height: video?.height ?? 0,
                    framesPerSecond: video?.framesPerSecond ?? 0, hasAudio: hasAudio, duration: seconds,
                    videoEncoding: encodings.video, audioEncoding: encodings.audio))
        }
    }

    /// The encoding of a stream that may pass undecoded: H.264, or Opus of up to two channels.
    private static func encoding(_ format: FormatStructure) -> String? {
        switch format.name {
        case "video/x-h264": "h264"
        case "audio/x-opus": (1...2).contains(format.integer("channels") ?? 2) ? "opus" : nil
        default: nil
        }
    }

    /// Nil if the stream does not state all properties, or only a decoder can.
    private static func video(_ format: FormatStructure) -> (width: Int, height: Int, framesPerSecond: Double)? {
        guard format.name.hasPrefix("video/"), let width = format.integer("width"), width > 0,
            let height = format.integer("height"), height > 0, let rate = format.fractions("framerate").first, rate > 0,
            !format.isRange("framerate"), format.text("interlace-mode") ?? "progressive" == "progressive"
        else { return nil }
        return (width, height, rate)
    }
}

extension Pipeline {
    /// Adds a file and the parsers of its streams. `take` is called for each stream, on a GStreamer thread. Returns false if
    /// an element is missing.
    func addParsers(of path: String, _ take: @escaping @Sendable (Pad, Pipeline) -> Void) -> Bool {
        guard let source = try? Element("filesrc", ["location": .text(path)]), let parser = try? Element("parsebin")
        else { return false }
        add(source)
        add(parser)
        parser.onPadAdded { [weak self] pad in
            if let self { take(pad, self) }
        }
        return source.source.link(parser.sink)
    }
}
