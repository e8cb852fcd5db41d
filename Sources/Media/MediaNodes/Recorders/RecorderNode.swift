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
                "video", [.encodedVideo], encodings: ["h264", "vp8", "vp9", "av1", "h265", "mjpeg"], isRequired: false),
            Port(
                "audio", [.encodedAudio],
                encodings: ["opus", "aac", "pcmu", "pcma", "flac", "mp3", "vorbis"], isRequired: false),
        ],
        settings: [
            SettingContract(
                "path", .text, isRequired: true,
                "The file to write, which replaces an existing one; for HLS the playlist, with its segments beside it"
            ).writtenAsPath(example: "recording.mkv").naming(.writes),
            SettingContract(
                "format", .choice(["auto", "matroska", "mp4", "webm", "hls"]), default: "auto",
                "Container; auto follows the file's extension: .webm, .mp4 (fragmented), .m3u8, otherwise Matroska"),
            SettingContract(
                "segment", .integer(1...60), default: 4, unit: "s",
                "Length of HLS segments; a killed process loses up to two of them"),
        ])

    /// Limits of the data that waits for the disk, or for the stream that lags behind.
    private static let pictures = QueuePlan.Limits(bytes: 16_000_000, seconds: 12, rule: .dropToKeyframe)
    private static let sound = QueuePlan.Limits(bytes: 1_000_000, seconds: 12, rule: .dropOldest)
    /// How long `finish` waits for the end to be written.
    private static let finishLimit: UInt64 = 3_000_000_000

    private struct State {
        var gate: RecordingGate
        var counts = MediaStatistics.Recorder()
        var hold: Probe?
        var isVideoShifted = false
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
    }

    let name: String
    private let container: RecordingContainer
    private let path: String
    private let video: Element?
    private let audio: Element?
    private let parsers: [RecordedStream: Element]
    private let sink: Element?
    private let isOptional: Bool
    private let reporter: Reporter
    private let state: Mutex<State>
    private let isComplete = DispatchSemaphore(value: 0)

    private init(_ instance: NodeInstance) {
        name = instance.name
        path = instance.text("path")
        container = RecordingContainer(format: instance.text("format"), path: path)
        video = instance.has("video-queue") ? instance.element("video-queue") : nil
        audio = instance.has("audio-queue") ? instance.element("audio-queue") : nil
        parsers = RecordedStream.allCases.reduce(into: [:]) { parsers, stream in
            let name = "\(stream.rawValue)-parser"
            if instance.has(name) { parsers[stream] = instance.element(name) }
        }
        sink = instance.has("sink") ? instance.element("sink") : nil
        isOptional = instance.plan.node.isOptional
        reporter = instance.reporter
        let segment = instance.integer("segment")
        state = Mutex(
            State(
                gate: RecordingGate(
                    hasVideo: video != nil, hasAudio: audio != nil, keepsOffsets: container.keepsOffsets,
                    segment: container == .hls ? UInt64(segment) * 1_000_000_000 : nil)))
    }

    // MARK: Planning

    private static func container(of node: Node) -> RecordingContainer {
        RecordingContainer(
            format: node.setting("format", of: kind)?.text ?? "", path: node.setting("path", of: kind)?.text ?? "")
    }

    /// The first segment of an HLS recording.
    static func otherFiles(writtenBy node: Node) -> [String] {
        guard container(of: node) == .hls, let path = node.setting("path", of: kind)?.text else { return [] }
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
        let container = RecordingContainer(format: request.text("format"), path: path)
        guard !request.inputs.isEmpty else {
            throw MediaError(
                code: MediaError.Code.graphInvalid,
                message:
                    "\"\(request.name)\" records nothing. Link an output to its port video or audio.")
        }
        if let reason = request.environment.obstacle(toWriting: path) { throw unwritable(path, reason) }
        var plan = NodePlan(request.node)
        let muxer = container.muxer
        try request.environment.require(muxer.factory)
        plan.add(muxer.factory, as: "muxer", muxer.properties)
        for (port, format) in request.inputs {
            try add(port, format, container, to: &plan, request)
        }
        if container == .hls {
            for (name, value) in container.playlist(path, seconds: request.integer("segment")) {
                plan.elements[0].properties[name] = value
            }
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
        if running.container == .hls {
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
        for queue in [video, audio] {
            // A recording never delays its inputs, and they do not end with one of its streams.
            queue?.sink.refuseSerializedQueries()
            queue?.sink.containEnd()
        }
        // The probes belong to elements that this node retains, so they must not retain the node.
        if let video {
            video.sink.onBuffer { [weak self] buffer in self?.picture(buffer) ?? .drop }
            video.sink.onEndOfStream { [weak self] in self?.ended { $0.videoEnded() } }
            video.source.onBuffer { [weak self] _ in
                self?.pictureLeaves()
                return .pass
            }
        }
        if let audio {
            audio.sink.onBuffer { [weak self] buffer in self?.sound(buffer) ?? .drop }
            audio.sink.onEndOfStream { [weak self] in self?.ended { $0.soundEnded() } }
            if video != nil {
                let hold = audio.source.block()
                state.withLock { $0.hold = hold }
            }
            audio.source.onBuffer { [weak self] buffer in
                self?.soundLeaves(buffer)
                return .pass
            }
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

    private func picture(_ buffer: borrowing PassingBuffer) -> ProbeAnswer {
        guard let video, let time = buffer.runningTime else { return .drop }
        let room = Self.room(in: video, for: buffer.byteCount)
        let isKeyframe = buffer.isKeyframe
        let bytes = buffer.byteCount
        let decision = state.withLock { state -> RecordingGate.Decision in
            guard !state.isClosed else { return RecordingGate.Decision() }
            let decision = state.gate.picture(at: time, isKeyframe: isKeyframe, room: room)
            if decision.takes {
                state.counts.frames += 1
                state.counts.bytes += bytes
            }
            state.counts.droppedFrames = state.gate.droppedPictures
            return decision
        }
        act(on: decision, at: time, otherSide: .audio)
        // Not on the queue's own output: GStreamer 1.22 reads a shifted pad's "immediately" as a time in the past.
        if decision.asksForKeyframe { video.sink.peer?.requestKeyframe() }
        return decision.takes ? .pass : .drop
    }

    private func sound(_ buffer: borrowing PassingBuffer) -> ProbeAnswer {
        guard let time = buffer.runningTime else { return .drop }
        let bytes = buffer.byteCount
        let decision = state.withLock { state -> RecordingGate.Decision in
            guard !state.isClosed else { return RecordingGate.Decision() }
            let decision = state.gate.sound(at: time)
            if decision.takes { state.counts.bytes += bytes }
            return decision
        }
        act(on: decision, at: time, otherSide: .video)
        return decision.takes ? .pass : .drop
    }

    // Each output is shifted by its own thread: an output that is sending its segment event would continue unshifted.

    private func pictureLeaves() {
        let origin = state.withLock { state -> UInt64? in
            defer { state.isVideoShifted = true }
            return state.isVideoShifted ? nil : state.gate.origin
        }
        if let origin { video?.source.shift(by: -Int(clamping: origin)) }
    }

    private func soundLeaves(_ buffer: borrowing PassingBuffer) {
        // The pad itself does not include its own shift.
        let time = buffer.runningTime
        let begins = state.withLock { state -> UInt64? in
            let leaving = time.map { state.gate.soundLeaves(at: $0) } ?? (takes: false, begins: nil)
            state.isTooEarly = !leaving.takes
            return leaving.begins
        }
        if let begins { audio?.source.shift(by: -Int(clamping: begins)) }
    }

    private func act(on decision: RecordingGate.Decision, at time: UInt64, otherSide: RecordedStream) {
        if decision.begins {
            // Before any data reaches the muxer. The earlier segments are removed there, where nothing waits for it.
            if container == .hls { FileAccess.empty(path) }
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
        let queue = stream == .video ? video : audio
        let last = hasEntered(stream) ? queue : parsers[stream] ?? queue
        last?.source.peer?.sendEndOfStream()
    }

    /// Whether any data of a stream has entered its queue.
    private func hasEntered(_ stream: RecordedStream) -> Bool {
        state.withLock { stream == .video ? $0.counts.frames > 0 : $0.gate.hasSound }
    }

    private func ended(_ note: (inout RecordingGate) -> Void) {
        state.withLock { note(&$0.gate) }
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
                container == .hls ? try FileClaim.writing(RecordingContainer.segment(0, of: path), by: name) : nil
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
            let queue = stream == .video ? video : audio
            if hasEntered(stream) { queue?.sink.sendEndOfStream() } else { end(stream) }
        }
        let isWhole = container == .hls ? waitForPlaylist() : waitForEnd()
        let lack =
            isWhole
            ? lackingSegment()
            : RecordedStream.unfinished(path, seconds: Int(Self.finishLimit / 1_000_000_000))
        if isWhole, container == .hls { mendPlaylist() }
        state.withLock { $0.lack = $0.hasFailed ? nil : lack }
    }

    private func waitForEnd() -> Bool {
        isComplete.wait(timeout: .now() + .nanoseconds(Int(Self.finishLimit))) == .success
    }

    /// hlssink2 does not report that its playlist is complete, so this reads the playlist.
    private func waitForPlaylist() -> Bool {
        let deadline = GStreamer.now.nanoseconds + Self.finishLimit
        while !FileAccess.ends(path, with: RecordingContainer.endOfPlaylist) {
            guard GStreamer.now.nanoseconds < deadline, !state.withLock({ $0.hasFailed }) else { return false }
            usleep(5_000)
        }
        return true
    }

    private func lackingSegment() -> MediaError? {
        guard container == .hls, let text = FileAccess.text(of: path) else { return nil }
        return RecordingContainer.lackingSegment(in: text, of: path).map { RecordedStream.lacking($0, of: path) }
    }

    /// hlssink2 ends the last segment where its last frame begins. A segment with one frame would have no length.
    private func mendPlaylist() {
        let (origin, end) = state.withLock { ($0.gate.origin, $0.gate.end) }
        guard let origin, let end, let text = FileAccess.text(of: path) else { return }
        FileAccess.replace(path, with: RecordingContainer.playlist(text, lasting: Double(end - origin) / 1e9))
    }

    func stopped() {
        state.withLock { ($0.claim, $0.segmentClaim) = (nil, nil) }
    }

    func report(into statistics: inout MediaStatistics) {
        statistics.recorders[name] = state.withLock { $0.counts }
    }

    // MARK: Missing streams

    func reportShortfall() {
        let (missing, lack, failure) = state.withLock { state in
            let isJudged = state.isPrepared && !state.hasFailed
            let missing = RecordedStream.allCases.filter { stream in
                switch stream {
                case .video: isJudged && video != nil && state.counts.frames == 0
                case .audio: isJudged && audio != nil && state.gate.firstSound == nil
                }
            }
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
            let hasBegun = streams == [.video] ? state.counts.frames > 0 : state.gate.firstSound != nil
            return (news, hasBegun ? state.gate.origin : nil)
        }
        guard !news.isEmpty else { return }
        let isAll = news.count == (video == nil ? 0 : 1) + (audio == nil ? 0 : 1)
        let end = start.flatMap { start in time.map { Double($0 - min($0, start + RecordingGate.limit)) / 1e9 } }
        let error = RecordedStream.shortfall(isAll ? nil : news.first, of: path, node: name, end: end)
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
            message: "The recording \(path) cannot be written: \(reason). Choose another place.")
    }
}

extension Node {
    /// Records its inputs `video` and `audio`. The file's extension selects the container.
    public static func recorder(_ name: String = "recorder", path: String) -> Node {
        Node(RecorderNode.kind, name, ["path": path])
    }
}
