internal import CGLib
internal import CGStreamer
internal import Dispatch
import MediaGraph
import Synchronization

/// What a media file says of itself: its container, and the heads of its streams. Nothing is decoded, so that it takes
/// a fraction of the time of `FileDiscovery`.
final class FileGlance: Sendable {
    private struct State {
        var pads: [Pad] = []
        var formats: [FormatStructure?] = []
        var duration: UInt64 = 0
        /// Streams whose first piece has not come. A parsebin lets nothing through before it has shown all of them.
        var missing = 0
        /// Pieces that went by meanwhile.
        var passedBy = 0
        var isUnclear = false
        var error: String?
    }

    enum Answer: Sendable, Equatable {
        case contents(MediaFileInfo)
        /// What GStreamer says is wrong with it.
        case broken(String)
        /// Something in it is missing, not said, or not known to be decodable here.
        case unclear
    }

    /// Pieces of other streams after which one that has not come will not be waited for.
    private static let patience = 500

    private let state = Mutex(State())
    private let isSettled = DispatchSemaphore(value: 0)

    private init() {}

    /// Blocks for some milliseconds, `seconds` at most. The path has to lead to a file that can be read.
    static func look(into path: String, seconds: Double) -> Answer {
        let glance = FileGlance()
        let pipeline = Pipeline { message in
            switch message {
            case .error(let failure): glance.giveUp(failure)
            case .missingPlugin, .endOfStream: glance.giveUp()
            case .latencyChanged: break
            }
        }
        defer { pipeline.stop() }
        guard let source = try? Element("filesrc", ["location": .text(path)]), let parser = try? Element("parsebin")
        else { return .unclear }
        pipeline.add(source)
        pipeline.add(parser)
        guard source.tryLink(parser) == nil else { return .unclear }
        parser.onPadAdded { [weak pipeline] pad in
            guard let pipeline else { return }
            glance.take(pad, in: pipeline)
        }
        guard pipeline.pause() != .failed, glance.isSettled.wait(timeout: .now() + seconds) == .success else {
            return .unclear
        }
        return glance.answer(path)
    }

    private func take(_ pad: Pad, in pipeline: Pipeline) {
        guard let sink = try? Element("fakesink", ["sync": false, "async": false]) else { return giveUp() }
        state.withLock { state in
            state.pads.append(pad)
            state.missing += 1
        }
        let hasBegun = Flag()
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
        // A stream without anything in it.
        pad.onEndOfStream { [weak self] in self?.giveUp() }
        pipeline.add(sink)
        if !pad.link(sink.sink) || !sink.followPipeline() { giveUp() }
    }

    private func giveUp(_ failure: PipelineFailure? = nil) {
        _ = settle { state in
            // What is missing is for those to say who look for it.
            if !state.isUnclear, let failure, failure.kind == .other { state.error = failure.message }
            state.isUnclear = true
        }
    }

    /// More of a stream that has been seen, while another has not come yet.
    private func passBy() -> ProbeAnswer {
        settle { state in
            state.passedBy += 1
            if state.passedBy > Self.patience { state.isUnclear = true }
        }
    }

    /// Drops what comes while not everything is known: one thread brings all streams, and a sink that keeps its first
    /// piece would hold it up. The piece that settles everything is kept there, and nothing further is read.
    private func settle(_ change: (inout State) -> Void) -> ProbeAnswer {
        let isOver = state.withLock { state in
            change(&state)
            return state.isUnclear || state.missing == 0
        }
        if isOver { isSettled.signal() }
        return isOver ? .pass : .drop
    }

    private func answer(_ path: String) -> Answer {
        state.withLock { state in
            if let error = state.error { return .broken(error) }
            guard !state.isUnclear, state.duration > 0, !state.formats.isEmpty else { return .unclear }
            var video: (width: Int, height: Int, framesPerSecond: Double)?
            var hasAudio = false
            for format in state.formats {
                guard let format, ElementFactory.canDecode(format) else { return .unclear }
                if format.name.hasPrefix("audio/") {
                    hasAudio = true
                } else if video == nil, let found = Self.video(format) {
                    video = found
                } else {
                    return .unclear
                }
            }
            let seconds = Double(state.duration) / 1e9
            return .contents(
                MediaFileInfo(
                    path: path, width: video?.width ?? 0, height: video?.height ?? 0,
                    framesPerSecond: video?.framesPerSecond ?? 0, hasAudio: hasAudio, duration: seconds))
        }
    }

    /// Nil where the stream does not say all of it, or only the decoder can tell.
    private static func video(_ format: FormatStructure) -> (width: Int, height: Int, framesPerSecond: Double)? {
        guard format.name.hasPrefix("video/"), let width = format.integer("width"), width > 0,
            let height = format.integer("height"), height > 0, let rate = format.fractions("framerate").first, rate > 0,
            !format.isRange("framerate"), format.text("interlace-mode") ?? "progressive" == "progressive"
        else { return nil }
        return (width, height, rate)
    }
}
