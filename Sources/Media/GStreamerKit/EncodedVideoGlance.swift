internal import Dispatch
internal import Glibc
package import MediaGraph
import Synchronization

/// The H.264 of a media file, as far as its passing through depends on it.
package struct EncodedFileVideo: Sendable, Equatable {
    /// Those of the first keyframe. Nil without one that can be read.
    package var parameters: SequenceParameters?
    /// The longest distance between keyframes in the first seconds of the file, in seconds.
    package var keyframeInterval: Double
    package enum Container: Sendable {
        /// Or MOV.
        case mp4
        case matroska
    }

    /// Nil for another one.
    package var container: Container? = .matroska
    /// Whether those seconds, or the whole file, could be read in time.
    package var isRead = true
    /// Whether decoding can begin with the first frame that is played.
    package var beginsWithKeyframe = true
    /// Whether each frame has a time at which it is played.
    package var hasAllTimes = true

    package init(_ parameters: SequenceParameters?, keyframeInterval: Double) {
        (self.parameters, self.keyframeInterval) = (parameters, keyframeInterval)
    }
}

/// Reads the first seconds of a file's H.264, and decodes nothing.
package final class EncodedVideoGlance: Sendable {
    private struct State {
        var video = EncodedFileVideo(nil, keyframeInterval: 0)
        var first: UInt64?
        var lastKeyframe: UInt64?
        var isVideoFound = false
        var isRead = false
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
            case .error, .missingPlugin: glance.isSettled.signal()
            case .endOfStream: glance.settle()
            case .warning, .latencyChanged, .stateRequested: break
            }
        }
        defer { pipeline.stop() }
        guard pipeline.addParsers(of: path, glance.take), pipeline.play() else { return nil }
        _ = glance.isSettled.wait(timeout: .now() + seconds)
        let container = Self.container(of: path)
        return glance.state.withLock { state in
            guard state.isVideoFound else { return nil }
            var video = state.video
            (video.container, video.isRead) = (container, state.isRead)
            return video
        }
    }

    /// By the first bytes (RFC 8794, 11.2.1; ISO/IEC 14496-12, 4.2). Nil for others than Matroska, MP4 and MOV.
    private static func container(of path: String) -> EncodedFileVideo.Container? {
        guard let file = fopen(path, "rb") else { return nil }
        defer { fclose(file) }
        var bytes = [UInt8](repeating: 0, count: 8)
        guard fread(&bytes, 1, bytes.count, file) == bytes.count else { return nil }
        if bytes.prefix(4) == [0x1a, 0x45, 0xdf, 0xa3] { return .matroska }
        let boxes = ["ftyp", "moov", "mdat", "free", "skip", "wide"]
        return boxes.contains(String(decoding: bytes.suffix(4), as: UTF8.self)) ? .mp4 : nil
    }

    private func settle() {
        state.withLock { $0.isRead = true }
        isSettled.signal()
    }

    private func take(_ pad: Pad, _ pipeline: Pipeline) {
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
            sink.sink.takeBuffers { [weak self] buffer, _ in self?.add(buffer) }
            // The bus reports the end only when every stream has ended.
            sink.sink.onEndOfStream { [weak self] in self?.settle() }
            pad.onBuffer { [weak self] buffer in
                // Before the parser below, which would guess.
                if buffer.runningTime == nil { self?.state.withLock { $0.video.hasAllTimes = false } }
                return .pass
            }
        }
        _ = pad.link(chain[0].sink)
        for element in chain.reversed() { element.followPipeline() }
    }

    private func add(_ buffer: MediaBuffer) {
        let bytes = buffer.bytes
        // A keyframe of a container may be a point of recovery, with which decoding begins badly.
        let isKeyframe = H264Unit.isKeyframe(bytes)
        let isOver = state.withLock { state in
            guard let start = buffer.timestamp else {
                state.video.hasAllTimes = false
                return false
            }
            if state.first == nil { state.video.beginsWithKeyframe = isKeyframe }
            let first = state.first ?? start
            state.first = first
            if isKeyframe {
                if state.video.parameters == nil { state.video.parameters = SequenceParameters(frame: bytes) }
            }
            let last = state.lastKeyframe ?? first
            let distance = start > last ? Double(start - last) / 1e9 : 0
            state.video.keyframeInterval = max(state.video.keyframeInterval, distance)
            if isKeyframe { state.lastKeyframe = start }
            return start > first && start - first > Self.longestRead
        }
        if isOver { settle() }
    }
}
