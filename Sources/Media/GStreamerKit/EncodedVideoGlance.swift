internal import Dispatch
package import MediaGraph
import Synchronization

/// The H.264 of a media file, as far as its passing through depends on it.
package struct EncodedFileVideo: Sendable, Equatable {
    /// Those of the first keyframe.
    package let parameters: SequenceParameters
    /// The longest distance between keyframes in the first seconds of the file, in seconds.
    package let keyframeInterval: Double

    package init(_ parameters: SequenceParameters, keyframeInterval: Double) {
        (self.parameters, self.keyframeInterval) = (parameters, keyframeInterval)
    }
}

/// Reads the first seconds of a file's H.264, and decodes nothing.
package final class EncodedVideoGlance: Sendable {
    private struct State {
        var parameters: SequenceParameters?
        var lastKeyframe: UInt64?
        var interval: UInt64 = 0
        var isVideoFound = false
    }

    /// How much of the file is read, in nanoseconds.
    private static let longestRead: UInt64 = 12_000_000_000

    private let state = Mutex(State())
    private let isSettled = DispatchSemaphore(value: 0)

    private init() {}

    /// Blocks for some milliseconds, at most `seconds`. Nil without H.264 that can be read in this time.
    package static func look(into path: String, seconds: Double) -> EncodedFileVideo? {
        let glance = EncodedVideoGlance()
        let pipeline = Pipeline { message in
            switch message {
            case .error, .missingPlugin, .endOfStream: glance.isSettled.signal()
            case .warning, .latencyChanged: break
            }
        }
        defer { pipeline.stop() }
        guard let source = try? Element("filesrc", ["location": .text(path)]), let parser = try? Element("parsebin")
        else { return nil }
        pipeline.add(source)
        pipeline.add(parser)
        guard source.source.link(parser.sink) else { return nil }
        parser.onPadAdded { [weak pipeline] pad in
            if let pipeline { glance.take(pad, in: pipeline) }
        }
        guard pipeline.play() else { return nil }
        _ = glance.isSettled.wait(timeout: .now() + seconds)
        return glance.state.withLock { state in
            state.parameters.map { EncodedFileVideo($0, keyframeInterval: Double(state.interval) / 1e9) }
        }
    }

    private func take(_ pad: Pad, in pipeline: Pipeline) {
        let isVideo =
            pad.caps?.structures.first?.name == "video/x-h264"
            && state.withLock { state in
                defer { state.isVideoFound = true }
                return !state.isVideoFound
            }
        var chain: [Element] = []
        if isVideo {
            let caps = "video/x-h264,stream-format=byte-stream,alignment=au"
            guard let parser = try? Element("h264parse", ["config-interval": -1]),
                let filter = try? Element("capsfilter", ["caps": .text(caps)])
            else {
                isSettled.signal()
                return
            }
            chain = [parser, filter]
        }
        guard let sink = try? Element("fakesink", ["sync": false, "async": false]) else { return }
        chain.append(sink)
        for element in chain { pipeline.add(element) }
        for (one, next) in zip(chain, chain.dropFirst()) { _ = one.source.link(next.sink) }
        if isVideo {
            sink.sink.takeBuffers { [weak self] buffer, time in self?.frame(buffer, at: time) }
            // The bus reports the end only when every stream has ended.
            sink.sink.onEndOfStream { [weak self] in self?.isSettled.signal() }
        }
        _ = pad.link(chain[0].sink)
        for element in chain.reversed() { element.followPipeline() }
    }

    private func frame(_ buffer: MediaBuffer, at time: MediaTime) {
        guard let start = buffer.timestamp else { return }
        let isOver = state.withLock { state in
            if !buffer.isDelta {
                if state.parameters == nil { state.parameters = SequenceParameters(frame: buffer.bytes) }
                state.lastKeyframe = start
            }
            let last = state.lastKeyframe ?? 0
            state.interval = max(state.interval, start > last ? start - last : 0)
            return start > Self.longestRead
        }
        if isOver { isSettled.signal() }
    }
}
