package import MediaGraph
package import MediaNodes
internal import RTP
package import RoomProtocol
internal import Synchronization

/// The capturing and encoding side of a participant: one pipeline that produces RTP, with or without a room.
package final class LocalCapture: Sendable {
    /// The media that the source has.
    package struct Contents: Sendable, Equatable {
        package var hasVideo: Bool
        package var hasAudio: Bool
    }

    package let options: CaptureOptions
    /// The captured frames, before encoding.
    package let preview = FrameFanout()

    private enum Phase {
        case idle
        /// Concurrent calls wait for the same task.
        case starting(Task<Result<MediaPipeline, RoomError>, Never>)
        case running(MediaPipeline)
        /// Concurrent calls wait for the same task.
        case stopping(Task<MediaStatistics, Never>)
        case stopped(MediaStatistics)

        var isUnderWay: Bool {
            switch self {
            case .starting, .running: true
            case .idle, .stopping, .stopped: false
            }
        }
    }

    private struct Output {
        var track: ObjectIdentifier
        var receiver: TrackReceiver
    }

    private struct Outputs {
        var video: Output?
        var audio: Output?
        var failed: (@Sendable (RoomError) -> Void)?
        var ended: (@Sendable () -> Void)?
        var device: (@Sendable (StreamMedia, MediaEvent) -> Void)?
        /// Why the camera or the microphone is away.
        var absences: [StreamMedia: MediaError] = [:]
        /// Events that occurred before an observer was set.
        var failure: RoomError?
        var hasEnded = false
    }

    /// The pipeline that is starting, so that a stop need not wait for a silent source.
    private let unfinished = Mutex<MediaPipeline?>(nil)
    private let phase = Mutex(Phase.idle)
    /// The result of the last inspection.
    private let contents = Mutex<Contents?>(nil)
    private let outputs = Mutex(Outputs())

    private static let sourceNode = "source"
    private static let microphoneNode = "microphone"
    private static let encoder = "encoder"
    private static let soundEncoder = "sound-encoder"

    package init(_ options: CaptureOptions) { self.options = options }

    // MARK: - Before connecting

    /// Checks that file, camera and microphone exist, without opening them for capture. A camera that may come late is
    /// not checked.
    package func inspect() async throws(RoomError) -> Contents {
        // A running pipeline keeps its contents, even if devices or files have changed since.
        if phase.withLock({ $0.isUnderWay }), let made = contents.withLock({ $0 }) { return made }
        let options = options
        let found: Contents
        do throws(MediaError) {
            found = try await offPool { () throws(MediaError) in try Self.inspect(options) }
        } catch {
            throw RoomError(error)
        }
        guard found.hasVideo || found.hasAudio else {
            throw RoomError(
                .settingInvalid,
                "There is nothing to publish: no requested source has video or audio. Choose another source.")
        }
        contents.withLock { $0 = found }
        return found
    }

    private static func inspect(_ options: CaptureOptions) throws(MediaError) -> Contents {
        switch options.source {
        case .file(let path, _):
            let info = try MediaFile.inspect(path)
            return Contents(hasVideo: options.hasVideo, hasAudio: options.hasAudio && info.hasAudio)
        case .testPattern:
            return Contents(hasVideo: options.hasVideo, hasAudio: options.hasAudio)
        case .camera(let device):
            if options.hasVideo, !options.waitsForDevices { _ = try Devices.camera(device ?? "auto") }
            return Contents(hasVideo: options.hasVideo, hasAudio: options.hasAudio && hasMicrophone(options))
        }
    }

    private static func hasMicrophone(_ options: CaptureOptions) -> Bool {
        switch options.microphone {
        case .none: false
        case .device: true
        case .automatic: Devices.firstMicrophone() != nil
        }
    }

    // MARK: - Running

    /// Starts capturing and encoding. Returns after the first frame, or immediately if it runs already.
    package func start() async throws(RoomError) {
        let task = phase.withLock { phase -> Task<Result<MediaPipeline, RoomError>, Never>? in
            switch phase {
            case .idle:
                let task = Task(priority: .userInitiated) { await self.launch() }
                phase = .starting(task)
                return task
            case .starting(let task): return task
            case .running: return nil
            case .stopping, .stopped: return Task { .failure(Self.stopped) }
            }
        }
        guard let task else { return }
        _ = try await task.value.get()
    }

    private static let stopped = RoomError(
        .outOfOrder, "This local media was stopped. Create another one to publish again.")

    private func launch() async -> Result<MediaPipeline, RoomError> {
        do throws(RoomError) {
            // Reuses a recent inspection; starting detects later changes.
            let known = contents.withLock { $0 }
            let contents = if let known { known } else { try await inspect() }
            defer { unfinished.withLock { $0 = nil } }
            outputs.withLock { $0.absences = [:] }
            let pipeline: MediaPipeline
            do throws(MediaError) {
                pipeline = try await MediaPipeline(graph(contents), bindings: bindings(contents))
                // A stop before this line finds no pipeline; a later one does.
                unfinished.withLock { $0 = pipeline }
                if isStarting { try await pipeline.start() }
                // A device that is away at the start is an error, unless it may come late. A later loss is none.
                let absences = options.waitsForDevices ? [:] : pipeline.absences
                if isStarting, let cause = absences[Self.sourceNode] ?? absences[Self.microphoneNode] {
                    await pipeline.stop()
                    throw cause
                }
            } catch {
                throw isStarting ? RoomError(error) : Self.stopped
            }
            let isWanted = phase.withLock { phase in
                guard case .starting = phase else { return false }
                phase = .running(pipeline)
                return true
            }
            guard isWanted else {
                await pipeline.stop()
                throw Self.stopped
            }
            return .success(pipeline)
        } catch {
            // After a failed start, the next try inspects again, because a camera may have been plugged in.
            contents.withLock { $0 = nil }
            phase.withLock { if case .starting = $0 { $0 = .idle } }
            return .failure(error)
        }
    }

    /// Stops capturing, also during a start. When it returns, the devices are free. A stopped capture cannot start
    /// again.
    package func stop() async {
        let stopping = phase.withLock { phase -> Task<MediaStatistics, Never> in
            let task: Task<MediaStatistics, Never>
            switch phase {
            case .idle: task = Task { MediaStatistics() }
            case .starting(let start):
                task = Task.detached {
                    await self.unfinished.withLock { $0 }?.stop()
                    _ = await start.value
                    return MediaStatistics()
                }
            case .running(let pipeline):
                task = Task.detached {
                    await pipeline.stop()
                    return pipeline.statistics
                }
            case .stopping(let task): return task
            case .stopped(let statistics): return Task { statistics }
            }
            phase = .stopping(task)
            return task
        }
        let statistics = await stopping.value
        phase.withLock { $0 = .stopped(statistics) }
    }

    package var isStarting: Bool {
        phase.withLock {
            if case .starting = $0 { return true }
            return false
        }
    }

    package var isRunning: Bool {
        phase.withLock {
            if case .running = $0 { return true }
            return false
        }
    }

    package var statistics: MediaStatistics {
        switch phase.withLock({ $0 }) {
        case .running(let pipeline): pipeline.statistics
        case .stopped(let statistics): statistics
        case .idle, .starting, .stopping: MediaStatistics()
        }
    }

    /// Counters of the video encoder. Zero without one.
    package var encoderStatistics: MediaStatistics.VideoEncoder {
        statistics.encoders[Self.encoder] ?? MediaStatistics.VideoEncoder()
    }

    private var pipeline: MediaPipeline? {
        phase.withLock {
            if case .running(let pipeline) = $0 { return pipeline }
            return nil
        }
    }

    // MARK: - Output

    /// The tracks to publish.
    func tracks(_ contents: Contents) -> [any OutgoingTrack] {
        var tracks: [any OutgoingTrack] = []
        if contents.hasVideo { tracks.append(CapturedTrack(codec: options.codec == .vp8 ? .vp8 : .h264, of: self)) }
        if contents.hasAudio { tracks.append(CapturedTrack(codec: .opus, of: self)) }
        return tracks
    }

    /// Without a receiver, leaves the output to another track that has connected meanwhile: a room may end late.
    fileprivate func connect(_ track: CapturedTrack, _ receiver: TrackReceiver?) {
        outputs.withLock { outputs in
            let output = receiver.map { Output(track: ObjectIdentifier(track), receiver: $0) }
            switch track.codec.media {
            case .video where output != nil || outputs.video?.track == ObjectIdentifier(track): outputs.video = output
            case .audio where output != nil || outputs.audio?.track == ObjectIdentifier(track): outputs.audio = output
            case .video, .audio: break
            }
        }
    }

    fileprivate func requestKeyframe() { try? pipeline?.requestKeyframe(Self.encoder) }

    /// Whether the video or audio shows its camera or microphone.
    package func streamState(of media: StreamMedia) -> StreamState {
        outputs.withLock { $0.absences[media] }.map { StreamState(absence: $0) } ?? .live
    }

    /// Reports a failure, such as a full disk, or the source's end. Includes an earlier one.
    ///
    /// - Parameter device: called for later events of the camera (video) and the microphone (audio)
    package func observe(
        failed: @escaping @Sendable (RoomError) -> Void, ended: @escaping @Sendable () -> Void,
        device: @escaping @Sendable (StreamMedia, MediaEvent) -> Void = { _, _ in }
    ) {
        let (failure, hasEnded) = outputs.withLock { outputs in
            outputs.failed = failed
            outputs.ended = ended
            outputs.device = device
            return (outputs.failure, outputs.hasEnded)
        }
        if let failure { failed(failure) }
        if hasEnded { ended() }
    }

    private func bindings(_ contents: Contents) -> NodeBindings {
        var bindings = NodeBindings()
        if contents.hasVideo {
            bindings.rtpOutputs["video"] = { [weak self] batch in
                self?.outputs.withLock { $0.video }?.receiver.take(batch)
            }
            bindings.frames["preview"] = { [preview] frame in preview.deliver(frame) }
        }
        if contents.hasAudio {
            bindings.rtpOutputs["audio"] = { [weak self] batch in
                self?.outputs.withLock { $0.audio }?.receiver.take(batch)
            }
        }
        bindings.events = { [weak self] event in self?.handle(event) }
        return bindings
    }

    private func handle(_ event: MediaEvent) {
        switch event {
        case .failed(let error):
            let failure = RoomError(error)
            let failed = outputs.withLock { outputs in
                outputs.failure = failure
                return outputs.failed
            }
            failed?(failure)
        case .ended:
            let ended = outputs.withLock { outputs in
                outputs.hasEnded = true
                return outputs.ended
            }
            ended?()
        case .deviceWaiting, .deviceLost, .deviceReturned, .deviceFailedOver: deviceChanged(event)
        case .keyframeNeeded, .firstFrame, .partFailed, .warning: break
        }
    }

    private func deviceChanged(_ event: MediaEvent) {
        guard let source = event.source else { return }
        let media: StreamMedia = source.node == Self.sourceNode ? .video : .audio
        let (output, observer) = outputs.withLock { outputs in
            outputs.absences[media] = source.absence
            return (media == .video ? outputs.video : outputs.audio, outputs.device)
        }
        output?.receiver.stateChanged()
        observer?(media, event)
    }

    private func graph(_ contents: Contents) -> MediaGraph {
        let codec: Codec = options.codec == .vp8 ? .vp8 : .h264
        let source = source
        return MediaGraph {
            if contents.hasVideo {
                Chain {
                    source
                    Tee { Node.frames("preview") }
                    Node.videoEncoder(Self.encoder, codec: options.codec, bitrate: options.bitrate)
                    Node.rtpOutput("video", payloadType: codec.payloadType)
                }
            } else if hasSoundOfItsOwn {
                Chain {
                    source
                    Node.null("unseen")
                }
            }
            if contents.hasAudio { soundChain }
        }
    }

    /// Whether the video source has audio too.
    private var hasSoundOfItsOwn: Bool {
        if case .camera = options.source { return false }
        return true
    }

    private var source: Node {
        switch options.source {
        case .camera(let device): camera(device)
        case .file(let path, let isLooping): .file("source", path: path, loop: isLooping)
        case .testPattern(let frames):
            .testPattern(
                "source", width: options.width, height: options.height, framesPerSecond: options.framesPerSecond,
                frames: frames)
        }
    }

    private func camera(_ device: String?) -> Node {
        var camera = Node.camera(
            Self.sourceNode, device: device ?? "auto", width: options.width, height: options.height,
            framesPerSecond: options.framesPerSecond, mirror: options.isMirror)
        if let failover = options.failover { camera.settings["failover"] = .text(failover) }
        return camera
    }

    private var soundChain: Chain {
        let output = Node.rtpOutput("audio", payloadType: Codec.opus.payloadType)
        if hasSoundOfItsOwn {
            return Chain(from: "source", port: "audio") {
                Node.opusEncoder(Self.soundEncoder)
                output
            }
        }
        return Chain {
            switch options.microphone {
            case .device(let device): Node.microphone(Self.microphoneNode, device: device)
            case .automatic, .none: Node.microphone(Self.microphoneNode)
            }
            Node.opusEncoder(Self.soundEncoder)
            output
        }
    }
}

/// One of the streams of a `LocalCapture`.
private final class CapturedTrack: OutgoingTrack {
    let codec: Codec
    private let capture: LocalCapture

    init(codec: Codec, of capture: LocalCapture) {
        self.codec = codec
        self.capture = capture
    }

    var streamState: StreamState { capture.streamState(of: codec.media) }
    var encoderStatistics: MediaStatistics.VideoEncoder? { codec.media == .video ? capture.encoderStatistics : nil }

    func connect(_ receiver: TrackReceiver?) { capture.connect(self, receiver) }

    func requestKeyframe() { if codec.media == .video { capture.requestKeyframe() } }
}

extension RoomError {
    /// A media failure with its own code. The number is the original SDK's, if it has one.
    package init(_ error: MediaError) {
        let isCamera = error.code.hasPrefix("camera.")
        self.init(
            Code(name: error.code, number: isCamera ? Code.cameraUnavailable.number : Code.media.number), error.message)
    }
}
