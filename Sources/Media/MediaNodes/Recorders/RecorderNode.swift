import Dispatch
import GStreamerKit
import Glibc
public import MediaGraph
import Synchronization

/// Writes encoded video and audio to a file, or to a folder as HLS.
///
/// Input is queued and never delayed: if the disk is too slow, frames are dropped up to the next keyframe. A full disk
/// ends only this node, which then drops its input.
final class RecorderNode: NodeType, RunningNode {
    static let kind = NodeKind(
        "recorder", .recorder,
        "Records encoded video and audio to a file, of which a killed process loses only the newest part",
        inputs: [
            Port(
                "video", [.encodedVideo], encodings: RecordingContainer.matroska.videoEncodings, isRequired: false),
            Port(
                "audio", [.encodedAudio], encodings: RecordingContainer.matroska.audioEncodings, isRequired: false),
        ],
        settings: [
            SettingContract(
                "path", .text, isRequired: true,
                "The file to write, which replaces an existing one; for HLS the playlist, with its segments beside it"
            ).writtenAsPath(example: "recording.mkv").naming(.writes),
            SettingContract(
                "format", Recorder.Format.settingDomain, default: "auto",
                "Container; auto follows the file's extension: .webm, .mp4 (fragmented), .m3u8, otherwise Matroska"),
            SettingContract(
                "segment", .integer(1...60), default: 4, unit: "s",
                "Length of HLS segments; a killed process loses up to two of them"),
        ])

    /// Limits of the data that waits for the disk, or for the stream that lags behind.
    private static let pictures = QueuePlan.Limits(bytes: 16_000_000, seconds: 12, rule: .dropToKeyframe)
    private static let sound = QueuePlan.Limits(bytes: 1_000_000, seconds: 12, rule: .dropOldest)
    private static let holdInterval: UInt64 = 1_000_000_000
    /// How long `finish` waits for the end to be written.
    private static let finishLimit: UInt64 = 3_000_000_000

    private struct State {
        var gate: RecordingGate
        var counts = MediaStatistics.Recorder()
        var hold: Probe?
        var isVideoShifted = false
        /// When the encoder was last told to keep its size.
        var heldAt: UInt64?
        var length = DecodedLength()
        /// Of H.264.
        var size: [Int?]?
        /// Whether the audio that is leaving its queue now is before the recording's start.
        var isTooEarly = false
        /// Whether the file belongs to this recording.
        var isPrepared = false
        /// Whether an error has ended the recording, and is reported.
        var hasFailed = false
        /// The failure while the node left the graph, which is not reported elsewhere.
        var lastFailure: MediaError?
        /// The error for a recording without its end or a segment.
        var lack: MediaError?
        /// Whether input is dropped, because the node is stopping or has failed.
        var isClosed = false
        /// Streams whose loss has been reported.
        var lost: Set<RecordedStream> = []
        var claim: FileClaim?
        /// That of the first segment of an HLS recording. hlssink2 replaces the playlist with each segment, and with it the
        /// file that is claimed.
        var segmentClaim: FileClaim?

        /// Whether the recording has any data of a stream.
        func has(_ stream: RecordedStream) -> Bool {
            stream == .video ? counts.frames > 0 : gate.firstSound != nil
        }
    }

    private let name: String
    private let container: RecordingContainer
    private let path: String
    private let queues: [RecordedStream: Element]
    private let parsers: [RecordedStream: Element]
    private let sink: Element?
    private let isOptional: Bool
    private let reporter: Reporter
    /// The reason why the audio input has no data, if it is known.
    private let silence: @Sendable () -> String?
    private let state: Mutex<State>
    private let isComplete = DispatchSemaphore(value: 0)

    private init(_ instance: NodeInstance) {
        name = instance.name
        path = instance.text("path")
        container = Self.container(of: instance.node)
        func elements(_ suffix: String) -> [RecordedStream: Element] {
            RecordedStream.allCases.reduce(into: [:]) { elements, stream in
                let name = "\(stream.rawValue)-\(suffix)"
                if instance.has(name) { elements[stream] = instance.element(name) }
            }
        }
        queues = elements("queue")
        parsers = elements("parser")
        sink = instance.has("sink") ? instance.element("sink") : nil
        isOptional = instance.plan.node.isOptional
        reporter = instance.reporter
        silence = { [weak instance] in instance?.silence }
        let segment = instance.integer("segment")
        state = Mutex(
            State(
                gate: RecordingGate(
                    hasVideo: queues[.video] != nil, hasAudio: queues[.audio] != nil,
                    keepsOffsets: container.keepsOffsets,
                    segment: container.isHLS ? UInt64(segment) * 1_000_000_000 : nil)))
    }

    // MARK: Planning

    private static func container(of node: Node) -> RecordingContainer {
        .named(
            node.setting("format", of: kind)?.text ?? "", path: node.setting("path", of: kind)?.text ?? "")
    }

    /// The first segment of an HLS recording.
    static func otherFiles(writtenBy node: Node) -> [String] {
        guard container(of: node).isHLS, let path = node.setting("path", of: kind)?.text else { return [] }
        return [RecordingContainer.segment(0, of: path)]
    }

    /// The streams that the container can hold.
    static func input(_ port: Port, of node: Node) -> Port {
        let container = container(of: node)
        let encodings = port.kinds == [.encodedVideo] ? container.videoEncodings : container.audioEncodings
        return Port(port.name, port.kinds, encodings: encodings, isRequired: port.isRequired)
    }

    static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        let path = request.text("path")
        let container = container(of: request.node)
        guard !request.inputs.isEmpty else {
            throw MediaError(
                code: MediaError.Code.graphInvalid,
                message:
                    "\"\(request.name)\" records nothing. Link an output to its port video or audio.")
        }
        if request.text("format") == "auto", let foreign = RecordingContainer.foreignExtension(of: path) {
            throw MediaError(
                code: MediaError.Code.settingUnusable,
                message:
                    "\"\(request.name)\" cannot write \(path): .\(foreign) is not a supported container. Choose .mkv, "
                    + ".webm, .mp4, .mov or .m3u8, or set format to write another container under this name.")
        }
        if let reason = request.environment.obstacle(toWriting: path) { throw unwritable(path, reason) }
        var plan = NodePlan(request.node)
        try request.environment.require(container.muxer)
        plan.add(container.muxer, as: "muxer", container.properties)
        for (port, format) in request.inputs {
            try add(port, format, container, to: &plan, request)
        }
        if container.isHLS {
            plan.elements[0].properties.merge(
                container.playlist(path, seconds: request.integer("segment"))
            ) { $1 }
        } else {
            plan.add(
                "filesink", as: "sink",
                // Unbuffered: recorded data is in the file, not in the memory of a process that may be killed.
                ["location": .text(path), "buffer-mode": "unbuffered", "sync": false, "async": false])
            plan.link("muxer", "sink")
        }
        plan.notes.append("\(container.title) is written to \(path)")
        return plan
    }

    private static func add(
        _ port: String, _ format: MediaFormat, _ container: RecordingContainer, to plan: inout NodePlan,
        _ request: NodeRequest
    ) throws(MediaError) {
        let isVideo = format.kind == .encodedVideo
        let taken = isVideo ? container.videoEncodings : container.audioEncodings
        guard taken.contains(format.encoding) else {
            throw MediaError(
                code: MediaError.Code.formatClash,
                message: "\"\(request.name)\" writes \(container.title), which does not support \(format.encoding), "
                    + "only \(taken.joined(separator: ", ")). Encode in one of these, or write a .mkv file.")
        }
        plan.addQueue(as: "\(port)-queue", isVideo ? pictures : sound, holding: nil)
        var last = "\(port)-queue"
        if let parser = Encoding.named(format.encoding)?.parser {
            try request.environment.require(parser)
            plan.add(parser, as: "\(port)-parser")
            plan.link(last, "\(port)-parser")
            last = "\(port)-parser"
        }
        plan.link(ElementPad(last), ElementPad("muxer", container.inputPad(isVideo: isVideo)))
        plan.inputs[port] = ElementPad("\(port)-queue")
        plan.formats[port] = format
    }

    // MARK: Running

    static func activate(_ instance: NodeInstance) throws(MediaError) -> (any RunningNode)? {
        let running = RecorderNode(instance)
        running.watch()
        if running.container.isHLS {
            let path = running.path
            let first = RecordingContainer.segment(0, of: path)
            instance.element("muxer").writeSegments { location in
                let segment = RecordingContainer.segment(RecordingContainer.numberOfSegment(at: location), of: path)
                if segment == first { RecordingContainer.removeSegments(of: path) }
                return segment
            } opened: { [weak running] segment in
                if segment == first { running?.claimSegment(segment) }
            }
        }
        return running
    }

    private func watch() {
        // The probes belong to elements that this node retains, so they must not retain the node.
        for (stream, queue) in queues {
            // A recording never delays its inputs, and they do not end with one of its streams.
            queue.sink.refuseSerializedQueries()
            queue.sink.containEnd()
            queue.sink.onBuffer { [weak self] buffer in self?.enter(buffer, stream) ?? .drop }
            queue.sink.onEndOfStream { [weak self] in self?.ended(stream) }
        }
        queues[.video]?.source.watchBuffers { [weak self] _ in self?.pictureLeaves() }
        if container.name == "mp4" {
            parsers[.video]?.source.watchBuffers { [weak self] buffer in
                guard let shown = buffer.timestamp, let decoded = buffer.decodeTime, let self else { return }
                let duration = state.withLock { state in
                    state.length.duration(shownAt: shown, decodedAt: decoded, duration: buffer.duration)
                }
                if let duration { buffer.setDuration(duration) }
            }
        }
        // Muxers refuse other parameter sets in the format, as a camera's slate has. They are in the stream too.
        parsers[.video]?.source.onEvent { [weak self] event in
            guard case .caps(let caps) = event else { return .pass }
            return self?.repeats(caps) == true ? .drop : .pass
        }
        if let audio = queues[.audio] {
            if queues[.video] != nil {
                let hold = audio.source.block()
                state.withLock { $0.hold = hold }
            }
            audio.source.watchBuffers { [weak self] buffer in self?.soundLeaves(buffer) }
            // Not at the queue's output, where missing buffers count as dropped by the queue.
            audio.source.peer?.onBuffer { [weak self] _ in
                self?.state.withLock { $0.isTooEarly } == false ? .pass : .drop
            }
        }
        guard let sink else { return }
        // A start that fails leaves an earlier recording as it was.
        sink.openWithFirstData(path)
        sink.sink.onEndOfStream { [isComplete] in isComplete.signal() }
    }

    /// Whether a format of H.264 or H.265 has the same size as the one before.
    private func repeats(_ caps: Caps) -> Bool {
        guard let format = caps.structures.first.flatMap(MediaFormat.init), ["h264", "h265"].contains(format.encoding)
        else { return false }
        let size = [format.width, format.height]
        return state.withLock { state in
            defer { state.size = size }
            return state.size == size
        }
    }

    /// Decides on a buffer at the input of its stream's queue.
    private func enter(_ buffer: borrowing PassingBuffer, _ stream: RecordedStream) -> ProbeAnswer {
        guard let queue = queues[stream], let time = buffer.runningTime else { return .drop }
        let isVideo = stream == .video
        let room = isVideo ? Self.room(in: queue, for: buffer.byteCount) : .enough
        let isKeyframe = buffer.isKeyframe
        let bytes = buffer.byteCount
        let decision = state.withLock { state -> RecordingGate.Decision in
            guard !state.isClosed else { return RecordingGate.Decision() }
            let decision =
                isVideo
                ? state.gate.picture(at: time, isKeyframe: isKeyframe, room: room) : state.gate.sound(at: time)
            if decision.takes {
                state.counts.frames += isVideo ? 1 : 0
                state.counts.bytes += bytes
            }
            state.counts.droppedFrames = state.gate.droppedPictures
            return decision
        }
        act(on: decision, at: time, otherSide: isVideo ? .audio : .video)
        // Not on the queue's own output: GStreamer 1.22 reads a shifted pad's "immediately" as a time in the past.
        if decision.asksForKeyframe { queue.sink.peer?.requestKeyframe() }
        // No container takes another size. A medium that arrives encoded may have one all the same.
        if isVideo, holdsSize(at: time) { queue.sink.holdSize() }
        return decision.takes ? .pass : .drop
    }

    /// Whether to tell the encoder again to keep its size.
    private func holdsSize(at time: UInt64) -> Bool {
        state.withLock { state in
            if let heldAt = state.heldAt, time >= heldAt, time - heldAt < Self.holdInterval { return false }
            state.heldAt = time
            return !state.isClosed
        }
    }

    // Each output is shifted by its own thread: an output that is sending its segment event would continue unshifted.

    private func pictureLeaves() {
        let origin = state.withLock { state -> UInt64? in
            defer { state.isVideoShifted = true }
            return state.isVideoShifted ? nil : state.gate.origin
        }
        if let origin { queues[.video]?.source.offset = -Int(clamping: origin) }
    }

    private func soundLeaves(_ buffer: borrowing PassingBuffer) {
        // The pad itself does not include its own shift.
        let time = buffer.runningTime
        let begins = state.withLock { state -> UInt64? in
            let leaving = time.map { state.gate.soundLeaves(at: $0) } ?? (takes: false, begins: nil)
            state.isTooEarly = !leaving.takes
            return leaving.begins
        }
        if let begins { queues[.audio]?.source.offset = -Int(clamping: begins) }
    }

    private func act(on decision: RecordingGate.Decision, at time: UInt64, otherSide: RecordedStream) {
        if decision.begins {
            // Before any data reaches the muxer. The earlier segments are removed there, where nothing waits for it.
            if container.isHLS { FileAccess.empty(path) }
            release()
            reporter.firstFrame(name)
        }
        if decision.endsOtherSide {
            release()
            end(otherSide)
            report([otherSide], at: time)
        }
    }

    /// Ends a stream downstream of its queue: an input refuses buffers after its end-of-stream, and a tee would then
    /// stop. A parser reports an end without frames as an error, so a stream without frames ends downstream of the
    /// parser.
    private func end(_ stream: RecordedStream) {
        let last = hasEntered(stream) ? queues[stream] : parsers[stream] ?? queues[stream]
        last?.source.peer?.sendEndOfStream()
    }

    /// Whether any data of a stream has entered its queue.
    private func hasEntered(_ stream: RecordedStream) -> Bool {
        state.withLock { stream == .video ? $0.counts.frames > 0 : $0.gate.hasSound }
    }

    private func ended(_ stream: RecordedStream) {
        state.withLock { $0.gate.ended(stream) }
        release()
    }

    /// Releases the audio that waited for the first frame.
    private func release() {
        let hold = state.withLock { state in
            defer { state.hold = nil }
            return state.hold
        }
        hold?.remove()
    }

    private static func room(in queue: Element, for bytes: Int) -> RecordingGate.Room {
        let bytesUsed = Double(queue.integer("current-level-bytes") + bytes) / Double(pictures.bytes ?? 1)
        let timeUsed = Double(queue.integer("current-level-time")) / 1e9 / (pictures.seconds ?? 1)
        let used = max(bytesUsed, timeUsed)
        return used >= 1 ? .none : used > 0.5 ? .little : .enough
    }

    func prepare() throws(MediaError) {
        switch FileAccess.obstacle(path) {
        case nil:
            let claim = try FileClaim.writing(path, by: name)
            let segmentClaim =
                container.isHLS ? try FileClaim.writing(RecordingContainer.segment(0, of: path), by: name) : nil
            state.withLock { ($0.claim, $0.segmentClaim, $0.isPrepared) = (claim, segmentClaim, true) }
        case .full: throw Self.full(path)
        case .other(let reason): throw Self.unwritable(path, reason)
        }
    }

    private func claimSegment(_ path: String) {
        let claim = try? FileClaim.writing(path, by: name)
        state.withLock { $0.segmentClaim = claim }
    }

    /// Writes the end: the queued data, then the trailer.
    func finish() {
        let (isRunning, hasBegun) = state.withLock { state in
            defer { state.isClosed = true }
            return (!state.isClosed, state.gate.origin != nil)
        }
        guard isRunning else { return }
        release()
        guard hasBegun else { return }
        for stream in RecordedStream.allCases {
            if hasEntered(stream) { queues[stream]?.sink.sendEndOfStream() } else { end(stream) }
        }
        let lack = container.isHLS ? finishPlaylist() : waitForEnd() ? nil : unfinished
        state.withLock { $0.lack = $0.hasFailed ? nil : lack }
    }

    private var unfinished: MediaError {
        RecordedStream.unfinished(path, seconds: Int(Self.finishLimit / 1_000_000_000))
    }

    private func waitForEnd() -> Bool {
        isComplete.wait(timeout: .now() + .nanoseconds(Int(Self.finishLimit))) == .success
    }

    /// Waits for the complete playlist, and gives its last segment the whole length. Returns the error for an HLS
    /// recording without its end or a segment.
    private func finishPlaylist() -> MediaError? {
        let deadline = GStreamer.now.nanoseconds + Self.finishLimit
        // hlssink2 does not report that its playlist is complete, so this reads the playlist.
        while true {
            if let text = FileAccess.text(of: path), text.contains(RecordingContainer.endOfPlaylist) {
                let (origin, end) = state.withLock { ($0.gate.origin, $0.gate.end) }
                if let origin, let end {
                    let whole = RecordingContainer.playlist(text, lasting: Double(end - origin) / 1e9)
                    FileAccess.replace(path, with: whole)
                }
                return RecordingContainer.lackingSegment(in: text, of: path).map {
                    RecordedStream.lacking($0, of: path)
                }
            }
            guard GStreamer.now.nanoseconds < deadline, !state.withLock({ $0.hasFailed }) else { return unfinished }
            usleep(5_000)
        }
    }

    func stopped() {
        state.withLock { ($0.claim, $0.segmentClaim) = (nil, nil) }
    }

    func report(into statistics: inout MediaStatistics, as name: String) {
        statistics.recorders[name] = state.withLock { $0.counts }
    }

    // MARK: Missing streams

    func reportShortfall() {
        let (missing, lack, failure) = state.withLock { state in
            let isJudged = state.isPrepared && !state.hasFailed
            let missing = queues.keys.filter { isJudged && !state.has($0) }
            return (missing, state.lack, state.lastFailure)
        }
        if let failure { report(failure) }
        report(missing, at: nil)
        if let lack { report(lack) }
    }

    /// Reports streams that the recording lacks, or that end at this running time, once each.
    private func report(_ streams: [RecordedStream], at time: UInt64?) {
        let (news, start) = state.withLock { state -> ([RecordedStream], UInt64?) in
            let news = streams.filter { state.lost.insert($0).inserted }
            return (news, streams.allSatisfy(state.has) ? state.gate.origin : nil)
        }
        guard !news.isEmpty else { return }
        let end = start.flatMap { start in time.map { Double($0 - min($0, start + RecordingGate.limit)) / 1e9 } }
        let error = RecordedStream.shortfall(
            news.count == queues.count ? nil : news.first, of: path, node: name, end: end,
            cause: news == [.audio] && end == nil ? silence() : nil)
        report(error)
    }

    private func report(_ error: MediaError) {
        if isOptional { reporter.warn(name, "\(error)") } else { reporter.fallShort(error, name) }
    }

    // MARK: Errors

    func explain(_ failure: PipelineFailure, missing: String?) -> MediaError? {
        // Before any other observer, because input is dropped from now on, so that the nodes before this one continue.
        state.withLock { ($0.isClosed, $0.hasFailed) = (true, true) }
        release()
        // There is nothing left to wait for.
        isComplete.signal()
        switch failure.kind {
        case .noSpace: return Self.full(path)
        case .cannotWrite, .cannotOpen: return Self.unwritable(path, failure.message.trimmedSentence)
        default: return nil
        }
    }

    func failedWhileLeaving(_ failure: PipelineFailure) {
        guard !state.withLock({ $0.hasFailed }) else { return }
        let error = explain(failure, missing: nil) ?? Self.unwritable(path, failure.message.trimmedSentence)
        state.withLock { $0.lastFailure = $0.lastFailure ?? error }
    }

    private static func full(_ path: String) -> MediaError {
        MediaError(
            code: MediaError.Code.fileFull,
            message: "The recording \(path) stopped: the disk is full. The recording so far is playable. Free space, "
                + "or record to another disk.")
    }

    private static func unwritable(_ path: String, _ reason: String) -> MediaError {
        MediaError(
            code: MediaError.Code.fileUnwritable,
            message: "The recording \(path) cannot be written: \(reason). Choose another path, or create its folder.")
    }
}

/// Records video and audio to a file. Raw media is encoded first.
public struct Recorder: MediaNode {
    /// The container of the file.
    public enum Format: String, SettingChoice {
        /// By the file's extension: .webm, .mp4, .m3u8, otherwise Matroska.
        case auto
        /// `mp4` is fragmented.
        case matroska, mp4, webm, hls
    }

    public var handle: NodeHandle

    /// A recorder of video, audio or both.
    ///
    /// - Parameters:
    ///   - path: the file to write, which replaces an existing one; for HLS the playlist, with its segments beside it.
    ///   - segment: the length of HLS segments, in whole seconds.
    public init(path: String, format: Format? = nil, segment: Duration? = nil) {
        handle = NodeHandle(
            RecorderNode.kind, ["path": path, "format": format, "segment": segment.map { Int($0.inSeconds.rounded()) }])
    }

    /// The input for video.
    public var video: NodeInput { input(named: "video") }
    /// The input for audio.
    public var audio: NodeInput { input(named: "audio") }

    /// The frames and bytes that were written so far.
    ///
    /// - Throws: `node.not-running`.
    public var statistics: MediaStatistics.Recorder {
        get throws(MediaError) { try figures(\.recorders) ?? MediaStatistics.Recorder() }
    }
}
