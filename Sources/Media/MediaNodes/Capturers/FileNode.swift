import Dispatch
import GStreamerKit
package import MediaGraph
import Synchronization

/// A media file of any format that GStreamer decodes, paced in real time at its own size and rate. Its H.264 and Opus pass
/// undecoded if that is less work for the whole graph.
///
/// The node moves the file's streams to the pipeline's timeline, repeatedly if the file loops. The decoders' segments
/// end here. Downstream sees one segment, with running times as timestamps, so that no gap precedes the next round.
final class FileNode: NodeType, RunningNode {
    /// The assumed duration of a last frame if neither it nor the one before states it.
    private static let frameWithoutDuration: UInt64 = 40_000_000

    private static let soundBehindPicture: UInt64 = 250_000_000
    /// Audio of two rounds may overlap so much.
    private static let tolerance: UInt64 = 5_000_000
    /// An encoded packet that lies so far after all others has a wrong timestamp, unless others follow it there.
    private static let longestJump: UInt64 = 10_000_000_000
    /// A file that ends so many seconds before its stated end was cut off.
    private static let longestLack = 1.0
    /// No file is so long: 104 days. Rounds of a looping file add up.
    private static let impossible: UInt64 = 1 << 53

    private struct State {
        /// The running time at the start of this round. Nil before the first buffer.
        var roundStart: UInt64?
        /// The end of this round's video, from the round's start.
        var videoEnd: UInt64 = 0
        /// The end of its audio.
        var audioEnd: UInt64 = 0
        var lastVideo: UInt64?
        var ended = 0
        var pads: [Pad] = []
        var hasNoSound = false
        /// Whether passing video waits for a keyframe: at the start of each round.
        var needsKeyframe = true
        /// The end of the audio of the rounds before, in running time.
        var formerAudio: UInt64 = 0
        /// The time of a packet of audio that was dropped because of its distance.
        var suspect: UInt64?

        mutating func advance(to time: UInt64, duration: UInt64?, isVideo: Bool) {
            guard isVideo else {
                audioEnd = max(audioEnd, time + (duration ?? 0))
                return
            }
            let sinceLast = lastVideo.flatMap { $0 < time ? time - $0 : nil }
            videoEnd = max(videoEnd, time + (duration ?? sinceLast ?? FileNode.frameWithoutDuration))
            lastVideo = time
        }

        /// Whether a packet of audio may pass.
        mutating func accepts(audioAt time: UInt64, from start: UInt64) -> Bool {
            if time > max(audioEnd, videoEnd) + FileNode.longestJump {
                let isAlone = suspect.map { time < $0 || time - $0 > FileNode.longestJump } ?? true
                suspect = time
                if isAlone { return false }
            }
            suspect = nil
            // The next round begins with the end of the video.
            return start + time + FileNode.tolerance >= formerAudio
        }
    }

    private let name: String
    private let path: String
    /// Held until the node has stopped, so that no other node writes the file meanwhile.
    private let claim: Mutex<FileClaim?>
    private let state = Mutex(State())
    private let doesLoop: Bool
    /// The streams that pass undecoded.
    private let passing: Set<String>
    private let pipeline: WeakBox<Pipeline>
    private let control: DispatchQueue
    private let reporter: Reporter
    private let hasWarned = AtomicBool()

    private init(_ instance: NodeInstance) {
        name = instance.name
        path = instance.text("path")
        claim = Mutex(FileClaim.reading(path))
        doesLoop = instance.flag("loop")
        passing = Set(instance.plan.formats.filter { $0.value.codec != nil }.keys)
        pipeline = WeakBox(instance.pipeline)
        control = instance.control
        reporter = instance.reporter
    }

    static let kind = NodeKind(
        "file", .capturer, "A media file, paced in real time, decoded unless its H.264 or Opus pass",
        outputs: [
            Port("video", [.rawVideo, .encodedVideo], encodings: ["I420", "h264"], isRequired: false),
            Port("audio", [.rawAudio, .encodedAudio], encodings: ["S16LE", "opus"], isRequired: false),
        ],
        settings: [
            SettingContract("path", .text, isRequired: true, "The file").writtenAsPath(example: "clip.mp4").naming(
                .reads),
            SettingContract(
                "loop", .flag, default: true,
                "Whether to repeat without a gap; false ends the stream at the end of the file"),
            SettingContract(
                "format", File.Format.settingDomain, default: "auto",
                "raw decodes both streams; auto passes those on that need the least work for all readers undecoded"),
        ])

    static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        try request.requireSomeOutput()
        let path = request.text("path")
        let info = try request.environment.file(path)
        let wantsVideo = request.usedOutputs.contains("video")
        let wantsAudio = request.usedOutputs.contains("audio")
        if wantsVideo, !info.hasVideo { throw MediaFile.noVideo(path) }
        var plan = NodePlan(request.node)
        plan.add("filesrc", as: "source", ["location": .text(path)])
        let video = wantsVideo ? FileStreams.video(request, info, &plan) : nil
        let audio = wantsAudio ? FileStreams.audio(request, info, &plan) : nil
        // Decoding stops at these formats. Unused streams are not decoded.
        let only = [
            video.map { $0.codec?.mediaType ?? "video/x-raw(ANY)" },
            audio.map { $0.codec?.mediaType ?? "audio/x-raw(ANY)" },
        ].compactMap(\.self)
        let isAll = only == ["video/x-raw(ANY)", "audio/x-raw(ANY)"]
        plan.append(
            "decodebin", as: "decoder",
            isAll ? [:] : ["caps": .text(only.joined(separator: ";")), "expose-all-streams": false])
        if let video { try planVideo(&plan, video, request.environment) }
        if let audio { try planAudio(&plan, audio, request.environment) }
        if wantsAudio, !info.hasAudio {
            plan.notes.append("\(path) has no audio, so its audio output ends immediately")
        }
        if info.duration > 0 {
            let seconds = "\((info.duration * 100).rounded() / 100) s"
            plan.notes.append(request.flag("loop") ? "\(seconds), in a loop" : "ends after \(seconds)")
        }
        return plan
    }

    private static func planVideo(
        _ plan: inout NodePlan, _ format: MediaFormat, _ environment: any PlanEnvironment
    ) throws(MediaError) {
        if let codec = format.codec {
            try environment.require("h264parse")
            plan.add("h264parse", as: "video-entry", codec.parserProperties)
            plan.appendFilter(codec.caps, as: "format")
        } else {
            plan.add("videoconvert", as: "video-entry")
            plan.appendFilter(RawFormat.video, as: "format")
        }
        // Frames decoded in advance bridge the restart of the file.
        plan.addQueue(as: "ahead", .init(frames: 8, rule: .wait), holding: format.codec == nil ? format : nil)
        plan.link("format", "ahead")
        plan.append("clocksync", as: "pace")
        plan.setOutput("video", format)
    }

    private static func planAudio(
        _ plan: inout NodePlan, _ format: MediaFormat, _ environment: any PlanEnvironment
    ) throws(MediaError) {
        let last: String
        if format.codec != nil {
            try environment.require("opusparse")
            last = "sound-entry"
            plan.add("opusparse", as: last)
        } else {
            last = "sound-rate"
            plan.add("audioconvert", as: "sound-entry")
            plan.append("audioresample", as: "sound-resample")
            plan.appendFilter(RawFormat.audio, as: "sound-format")
            // Audio and video of a file seldom end together. This fills or cuts audio at the restart.
            plan.append("audiorate", as: last, ["tolerance": 1_000_000])
        }
        plan.addQueue(as: "sound-ahead", .init(seconds: 0.4, rule: .wait), holding: nil)
        plan.link(last, "sound-ahead")
        plan.append("clocksync", as: "sound-pace")
        plan.setOutput("audio", format)
    }

    static func activate(_ instance: NodeInstance) throws(MediaError) -> (any RunningNode)? {
        let node = FileNode(instance)
        let video = instance.has("video-entry") ? instance.element("video-entry") : nil
        let audio = instance.has("sound-entry") ? instance.element("sound-entry") : nil
        let (reporter, name, path) = (instance.reporter, instance.name, node.path)
        let decoder = instance.element("decoder")
        decoder.onPadAdded { [weak node] pad in
            guard let node else { return }
            let media = pad.caps?.structures.first?.name.prefix { $0 != "/" }
            guard let input = media == "video" ? video : media == "audio" ? audio : nil, !input.sink.isLinked else {
                return
            }
            node.follow(pad, isVideo: media == "video")
            _ = pad.link(input.sink)
        }
        decoder.onNoMorePads { [weak node] in
            if let video, !video.sink.isLinked { reporter.fail(MediaFile.noVideo(path), name) }
            // Without audio in the file, the branch that waits for it ends immediately.
            guard let audio, !audio.sink.isLinked else { return }
            node?.state.withLock { $0.hasNoSound = true }
            if video == nil { reporter.isReady(name) }
            audio.sink.sendEndOfStream()
        }
        if let first = video ?? audio { instance.awaitFirstBuffer(at: first.sink) }
        return node
    }

    var silence: String? {
        state.withLock { $0.hasNoSound } ? "\"\(name)\" plays \(path), which has no audio" : nil
    }

    func stopped() { claim.withLock { $0 = nil } }

    func explain(_ failure: PipelineFailure, missing: String?) -> MediaError? {
        switch failure.kind {
        case .notFound: MediaFile.notFound(path)
        case .noSuchCodec:
            missing.map { MediaFile.undecodable(path, $0) } ?? MediaFile.unreadable(path, failure.message)
        default: MediaFile.unreadable(path, failure.message)
        }
    }

    // MARK: Timeline

    /// Call before the pad is linked.
    private func follow(_ pad: Pad, isVideo: Bool) {
        state.withLock { $0.pads.append(pad) }
        pad.replaceSegments()
        pad.onEvent { [weak self] event in
            guard let self else { return .pass }
            switch event {
            case .flushStart, .flushStop:
                return doesLoop ? .drop : .pass
            case .endOfStream:
                return endOfStream()
            default:
                return .pass
            }
        }
        let isPassing = passing.contains(isVideo ? "video" : "audio")
        pad.onBuffer { [weak self] buffer in
            guard let self else { return .drop }
            let isPacket = isPassing && !isVideo
            // A file may state any duration.
            let stated = buffer.duration.flatMap { $0 < Self.impossible ? $0 : nil }
            if stated != buffer.duration { buffer.setDuration(nil) }
            var duration = stated ?? (isPacket ? buffer.read { OpusPacket.duration(of: $0) } ?? nil : nil)
            // A decoder needs the whole of a first packet whose begin is not played.
            let clipped: (time: UInt64, before: UInt64)? =
                isPacket ? buffer.clippedRunningTime(lasting: duration ?? 0) : buffer.runningTime.map { ($0, 0) }
            guard let (time, before) = clipped, time < Self.impossible else { return .drop }
            duration = duration.map { $0 - min($0, before) }
            let start = state.withLock { state -> UInt64? in
                if isPassing, isVideo {
                    if state.needsKeyframe, !buffer.isKeyframe { return nil }
                    state.needsKeyframe = false
                }
                // The first buffer determines the start of the round.
                let start = state.roundStart ?? pipeline.value?.runningTime ?? 0
                state.roundStart = start
                if isPacket, !state.accepts(audioAt: time, from: start) { return nil }
                state.advance(to: time, duration: duration, isVideo: isVideo)
                return start
            }
            guard let start else { return .drop }
            if isPassing { buffer.move(to: start + time) } else { buffer.retime(to: start + time) }
            return .pass
        }
    }

    private func endOfStream() -> ProbeAnswer {
        let (pads, isRoundOver, end) = state.withLock { state in
            state.ended += 1
            return (state.pads, state.ended == state.pads.count, max(state.videoEnd, state.audioEnd))
        }
        if isRoundOver { check(end: Double(end) / 1e9, stated: Double(pads.compactMap(\.duration).max() ?? 0) / 1e9) }
        guard doesLoop else { return .pass }
        if isRoundOver {
            // The restart flushes the decoders, which waits for this thread.
            control.async { [weak self] in self?.startAgain() }
        }
        return .drop
    }

    private func check(end: Double, stated: Double) {
        guard stated - end > max(Self.longestLack, stated / 10), !hasWarned.exchange(true) else { return }
        func rounded(_ seconds: Double) -> String { ((seconds * 100).rounded() / 100).short }
        reporter.warn(
            name,
            "\(path) ends after \(rounded(end)) s of the \(rounded(stated)) s that it states. It may be cut off: copy it again."
        )
    }

    private func startAgain() {
        let pads = state.withLock { state in
            state.ended = 0
            // Encoders leave some milliseconds of audio after the last frame, during which the video continues without
            // a gap. Audio that is longer is played to its end.
            state.formerAudio = (state.roundStart ?? 0) + state.audioEnd
            state.suspect = nil
            let isSoundLonger = state.videoEnd == 0 || state.audioEnd > state.videoEnd + Self.soundBehindPicture
            state.roundStart = (state.roundStart ?? 0) + (isSoundLonger ? state.audioEnd : state.videoEnd)
            state.videoEnd = 0
            state.audioEnd = 0
            state.lastVideo = nil
            state.needsKeyframe = true
            return state.pads
        }
        guard pipeline.value != nil, let first = pads.first else { return }
        if !first.seekToStart() {
            // The file cannot be read again, so the loop ends here.
            for pad in pads { pad.peer?.sendEndOfStream() }
        }
    }
}

/// A media file, decoded, and paced in real time at its own size and rate.
public struct File: MediaNode {
    public var handle: NodeHandle

    /// Whether the streams are decoded.
    public enum Format: String, SettingChoice {
        /// Passes H.264 and Opus on undecoded where that needs the least work for all readers.
        case auto
        /// Decodes both streams.
        case raw
    }

    /// A file by its path.
    ///
    /// - Parameter loops: whether to repeat without a gap; otherwise the stream ends with the file.
    public init(path: String, loops: Bool? = nil, format: Format? = nil) {
        handle = NodeHandle(FileNode.kind, ["path": path, "loop": loops, "format": format])
    }

    /// The first video stream.
    public var video: NodeOutput { output(named: "video") }
    /// The first audio stream.
    public var audio: NodeOutput { output(named: "audio") }
}

extension Node {
    /// A media file, paced in real time at its own size and rate.
    package static func file(_ name: String = "file", path: String, loop: Bool? = nil) -> Node {
        Node(FileNode.kind, name, ["path": path, "loop": loop])
    }
}
