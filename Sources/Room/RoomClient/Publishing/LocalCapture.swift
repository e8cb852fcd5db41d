package import MediaGraph
package import MediaNodes
internal import RTP
package import RoomProtocol
internal import Synchronization

/// The capturing and encoding side of a participant, with or without rooms: one request, and one pipeline that fulfils it.
///
/// Changes of the request are applied one after the other: as the start of the pipeline, as an edit of its graph, or as its
/// stop. Changes that arrive meanwhile become one. A change that fails leaves the running media as it was. `CaptureChanges`
/// decides the order.
package final class LocalCapture: Sendable {
    private typealias Change = CaptureChanges.Change

    /// The request that the pipeline runs, and the contents of its sources.
    private struct Running {
        /// Nil if an optional part of the graph has failed, so that the next change adds it again.
        var request: MediaRequest?
        var contents: MediaRequest.Contents
        /// Nil while nothing is captured. The same request has another graph when the codec of a stream is free again.
        var graph: MediaGraph?
    }

    private struct State {
        var changes: CaptureChanges
        /// The pipeline that is starting, so that a stop need not wait for a silent source.
        var starting: (any CapturePipeline)?
        /// Ends the wait for an answer of the machine, whose driver may hang.
        var endWait: (@Sendable () -> Void)?
        var pipeline: (any CapturePipeline)?
        var isFinished = false
        var running: Running?
        var lacksVoiceProcessor = false
        /// Whether this was reported since the media was started.
        var isUnprocessed = false
        /// How often an optional part of a graph has failed.
        var partsLost = 0
        /// The statistics of the last pipeline that has stopped.
        var lastStatistics = MediaStatistics()
    }

    /// The captured frames, before encoding. Frames are captured for it while it has sinks.
    package let preview = FrameFanout()
    /// Where the program passes frames, for a request with `bypass`.
    package let frames = FrameEntrance()
    /// The function that blends frames, for a request with `isBlended`.
    package let blend = FrameBlend()
    private let sensor = OrientationFollower()
    let streams = OutgoingStreams()
    private let state: Mutex<State>
    private let observers = CaptureObservers()
    private let registry: NodeRegistry
    private let machine: CaptureMachine

    /// The request that the running edit changes, and the capture it belongs to.
    @TaskLocal private static var edited: (capture: ObjectIdentifier, request: MediaRequest)?

    package convenience init(_ request: MediaRequest) { self.init(request, on: .this) }

    init(_ request: MediaRequest, on machine: CaptureMachine) {
        state = Mutex(State(changes: CaptureChanges(request)))
        self.machine = machine
        registry = NodeRegistry.builtIn.adding([PublishNode.feeding(streams), frames.node, blend.node])
        preview.onDemand { [weak self] in self?.refresh() }
        VoiceProcessing.choice.observe(as: self) { [weak self] in self?.refresh() }
        SoundUse.choice.observe(as: self) { [weak self] in self?.refresh() }
    }

    deinit {
        VoiceProcessing.choice.stopObserving(as: self)
        SoundUse.choice.stopObserving(as: self)
        SoundActivity.shared.set(false, self)
    }

    // MARK: - Changes

    /// The newest request, with the changes that are in progress or wait. These may still fail. Within an edit, the request
    /// that the edit changes.
    package var requested: MediaRequest {
        if let edited = Self.edited, edited.capture == ObjectIdentifier(self) { return edited.request }
        let (base, edits) = state.withLock { ($0.changes.request, $0.changes.pending) }
        return evaluate(edits, on: base)
    }

    /// Without the lock, because edits may ask this object.
    private func evaluate(_ edits: [CaptureChanges.Edit], on base: MediaRequest) -> MediaRequest {
        var request = base
        for edit in edits {
            Self.$edited.withValue((ObjectIdentifier(self), request)) { edit(&request) }
        }
        return request
    }

    /// Starts capturing and encoding. Returns after the first frame, or immediately if it runs already.
    package func start() async throws(RoomError) {
        let result = await withCheckedContinuation { continuation in
            add(Change(purpose: .start) { continuation.resume(returning: $0) })
        }
        try result.get()
    }

    /// Starts, and returns a track for each stream, for one more room, when its streams have frames. From then on, the streams keep their codecs.
    func publish() async throws(RoomError) -> [any OutgoingTrack] {
        let result = await withCheckedContinuation { continuation in
            // No other change begins before the tracks are made.
            add(
                Change(purpose: .publish) { [streams] result in
                    continuation.resume(returning: result.map { _ in streams.all.map { $0.track() } })
                })
        }
        let tracks = try result.get()
        // An offer states the properties of a stream.
        for stream in streams.all { try await stream.firstFrame() }
        return tracks
    }

    /// Changes the request. Returns when the running media shows the change; immediately while nothing is captured.
    ///
    /// - Parameter edit: may be called several times, on any thread.
    /// - Throws: the reason why the change is not possible. The media then continues as before.
    package func change(_ edit: @escaping @Sendable (inout MediaRequest) -> Void) async throws(RoomError) {
        let result = await withCheckedContinuation { continuation in
            add(Change(purpose: .edit, edit: edit) { continuation.resume(returning: $0) })
        }
        try result.get()
    }

    /// Changes the request without waiting. Observers get the error of a change that fails.
    ///
    /// - Parameter failed: called then, before the observers.
    package func changeLater(
        _ edit: @escaping @Sendable (inout MediaRequest) -> Void, failed: @escaping @Sendable () -> Void = {}
    ) {
        let reportFailure = reportFailure
        let done: @Sendable (Result<Void, RoomError>) -> Void = { result in
            if case .failure = result { failed() }
            reportFailure(result)
        }
        add(Change(purpose: .edit, edit: edit, done: done))
    }

    /// Passes the error of a change that was not tried to the observers.
    package func refuse(_ error: RoomError) { observers.problem(error) }

    /// Something else has changed that the graph depends on.
    private func refresh() { add(Change(purpose: .refresh, done: reportFailure)) }

    private var reportFailure: @Sendable (Result<Void, RoomError>) -> Void {
        { [observers] result in if case .failure(let error) = result { observers.problem(error) } }
    }

    /// Stops capturing, also during a start. When it returns, the devices are free, unless a driver is not responding.
    package func stop() async {
        state.withLock { $0.isUnprocessed = false }
        _ = await withCheckedContinuation { continuation in
            let (pipelines, endWait, refused, mustWork) = state.withLock { state in
                let (refused, mustWork) = state.changes.stop(
                    Change(purpose: .stop) { continuation.resume(returning: $0) })
                let pipelines = [state.starting, state.pipeline].compactMap(\.self)
                return (pipelines, state.endWait, refused, mustWork)
            }
            endWait?()
            for change in refused { change.done(.failure(CaptureChanges.stopped)) }
            for pipeline in pipelines { Task.detached { await pipeline.stop() } }
            if mustWork { Task.detached { await self.work() } }
        }
    }

    /// Stops capturing for good: whatever would start it again fails.
    package func finish() async {
        state.withLock { $0.isFinished = true }
        await stop()
    }

    private func add(_ change: Change) {
        if state.withLock({ $0.isFinished }) { return change.done(.failure(CaptureChanges.stopped)) }
        if state.withLock({ $0.changes.add(change) }) {
            Task.detached(priority: .userInitiated) { await self.work() }
        }
    }

    // MARK: - Reconciling

    private func work() async {
        while let attempt = state.withLock({ $0.changes.next() }) {
            var request = evaluate(attempt.edits, on: attempt.base)
            // Sinks come and go on any thread; each of them adds a change.
            request.isPreviewed = !preview.isEmpty
            request.capturing = SoundUse.choice.value.capturing
            request.voice = await voice()
            let outcome = await fulfil(request, attempt)
            if case .refused = outcome { tellUnfed() }
            if case .fulfilled = outcome, attempt.publishes { await addMissingStreams(request) }
            let done = state.withLock { $0.changes.finish(outcome, request) }
            for (change, result) in done { change.done(result) }
        }
    }

    /// How the audio of a microphone is processed, as chosen and as far as the machine can.
    private func voice() async -> VoiceProcessing? {
        let isPossible = await machine.processesVoice()
        state.withLock { $0.lacksVoiceProcessor = isPossible == false }
        return isPossible == true ? VoiceProcessing.choice.value : nil
    }

    private static let unprocessed =
        "The audio of the microphone is not processed: the GStreamer element webrtcdsp is not installed. Install "
        + "gstreamer1.0-plugins-bad."

    private func fulfil(_ request: MediaRequest, _ attempt: CaptureChanges.Attempt) async -> CaptureChanges.Outcome {
        do throws(RoomError) {
            try checkCodec(of: request)
            if let problem = request.unusable.min(by: { $0.key < $1.key }) {
                throw RoomError(.settingInvalid, problem.value)
            }
        } catch {
            return .refused(error)
        }
        do throws(RoomError) {
            try await bring(request, attempt)
            return .fulfilled
        } catch {
            return state.withLock { $0.changes.isCancelled } ? .interrupted : .refused(error)
        }
    }

    /// The codec that the video keeps, because it is published in a room.
    private var keptCodec: VideoCodec? {
        streams.stream(of: .video).flatMap { $0.isPublished ? VideoCodec(rawValue: $0.codec.nodeName) : nil }
    }

    /// Whether a room has the video.
    package var isVideoPublished: Bool { keptCodec != nil }

    /// Why audio that was requested is left out of the running media: there is no microphone.
    package var missingMicrophone: RoomError? {
        state.withLock { $0.running }?.contents.notice.map {
            RoomError(MediaError(code: MediaError.Code.microphoneAbsent, message: $0))
        }
    }

    /// Whether the video gets the bits of high definition, as requested or by its size.
    package var isHighDefinition: Bool {
        let contents = state.withLock { $0.running }?.contents
        let request = requested
        return request.isHighDefinition ?? request.shape(contents).isHighDefinition
    }

    private func checkCodec(of request: MediaRequest) throws(RoomError) {
        guard let kept = keptCodec, let codec = request.codec, codec != kept else { return }
        throw RoomError(
            .settingInvalid,
            "The video cannot change to \(Codec(codec).rawValue) while a room has it as \(Codec(kept).rawValue). "
                + "Unpublish it, change the codec, and publish it again.")
    }

    /// Makes the media be as requested.
    private func bring(_ request: MediaRequest, _ attempt: CaptureChanges.Attempt) async throws(RoomError) {
        let (pipeline, running, partsLost, isCancelled) = state.withLock {
            ($0.pipeline, $0.running, $0.partsLost, $0.changes.isCancelled)
        }
        guard attempt.isCapturing else { return await end(pipeline, "stopped") }
        if isCancelled { throw CaptureChanges.stopped }
        let isRunning = pipeline?.isRunning == true
        // Media of which nothing was to be captured has neither ended nor failed.
        let wasOff = running.map { $0.graph == nil } ?? false
        guard isRunning || wasOff || attempt.mayLaunch else { return }
        // Nobody asks for the devices again, and nobody would try again: one that is away at present may return.
        let mayWait = request.waitsForDevices || attempt.isRefresh
        let isKnown = (isRunning || attempt.isRefresh) && running?.request?.origin == request.origin
        let known = isKnown ? running?.contents : nil
        let contents = if let known { known } else { try await inspect(request) }
        if !isRunning { await end(pipeline, nil) }
        let kept = keptCodec
        let preferred = await preferredCodec(of: request, contents)
        guard let graph = request.graph(contents, continuing: kept, preferring: preferred) else {
            await end(pipeline, nil)
            return settle(request, contents, nil, partsLost)
        }
        if isRunning, running?.request == request, running?.graph == graph { return }
        if let pipeline, isRunning {
            do throws(MediaError) {
                try await pipeline.edit(graph, bindings(of: graph), needsDevices: !mayWait)
            } catch {
                throw RoomError(error)
            }
            forgetAbsences(missingIn: pipeline)
        } else {
            try await launch(graph, request, contents, mayWait: mayWait)
        }
        settle(request, contents, graph, partsLost)
    }

    /// A source that an edit has replaced or removed reports no return of its device.
    private func forgetAbsences(missingIn pipeline: any CapturePipeline) {
        let absences = pipeline.absences
        for (media, node) in [(StreamMedia.video, MediaRequest.sourceNode), (.audio, MediaRequest.microphoneNode)]
        where absences[node] == nil && observers.isAway(media) {
            observers.device(media, .deviceReturned(node: node))
        }
    }

    /// Adds streams for media that is off at present, so that a room has them when it is on.
    private func addMissingStreams(_ request: MediaRequest) async {
        guard let contents = state.withLock({ $0.running })?.contents else { return }
        // A stream that is published no longer does not keep its codec.
        streams.dropUnused()
        if contents.hasVideo, streams.stream(of: .video) == nil {
            let (codec, layers) = await plannedVideo(of: request, contents)
            let stream = OutgoingStream(Codec(codec))
            stream.plan(layers)
            add(stream)
        }
        if contents.hasAudio, streams.stream(of: .audio) == nil { add(OutgoingStream(.opus)) }
    }

    private func add(_ stream: OutgoingStream) {
        stream.set(.waiting(Self.off(stream.codec.media)))
        streams.keep([stream])
    }

    /// The codec and the layers that the video would have if it were on, as far as a plan tells that captures nothing. VP8 if
    /// that cannot be planned.
    private func plannedVideo(
        of request: MediaRequest, _ contents: MediaRequest.Contents
    ) async -> (VideoCodec, [VideoLayer]) {
        if let codec = request.codec, request.layers == 1 { return (codec, []) }
        var request = request
        request.isVideoActive = true
        let video = PortReference(node: MediaRequest.output, port: "video")
        let preferred = await preferredCodec(of: request, contents)
        guard let graph = request.graph(contents, preferring: preferred),
            let plan = try? await machine.plan(graph, registry)
        else { return (request.codec ?? .vp8, []) }
        let format = plan.links.first { $0.link.to == video }?.format
        let inputs = plan.node(MediaRequest.output)?.inputs.keys.compactMap { VideoLayer(rawValue: $0) } ?? []
        return (
            format.flatMap { VideoCodec(rawValue: $0.encoding) } ?? request.codec ?? .vp8,
            inputs.isEmpty ? [] : inputs.sorted() + [.full]
        )
    }

    /// The codec of the encoder that a bitrate requests. Otherwise the planner chooses it.
    private func preferredCodec(of request: MediaRequest, _ contents: MediaRequest.Contents) async -> VideoCodec {
        guard request.bitrate != nil || request.chosenRate(contents) != nil, request.codec == nil else { return .vp8 }
        let hasOddSize =
            request.source == .file ? contents.hasOddSize : (request.width | request.height) & 1 != 0
        return hasOddSize ? .vp8 : await machine.preferredCodec()
    }

    private static func off(_ media: StreamMedia) -> String { "\(media.rawValue) off" }

    /// Checks that the sources exist, without opening them for capture.
    private func inspect(_ request: MediaRequest) async throws(RoomError) -> MediaRequest.Contents {
        let found = try await ask { [machine] () async throws(MediaError) in try await machine.inspect(request) }
        guard found.hasVideo || found.hasAudio else {
            throw RoomError(
                .nothingToCapture,
                request.source == .camera && !request.hasVideo
                    ? "There is nothing to publish: no microphone was found. Plug one in, or start the sound server."
                    : "There is nothing to publish: no requested source has video or audio. Choose another source.")
        }
        return found
    }

    /// Waits for an answer of the machine, until this media is stopped.
    private func ask<Value: Sendable>(
        _ question: @escaping @Sendable () async throws(MediaError) -> Value
    ) async throws(RoomError) -> Value {
        let asking = Task { () -> Result<Value, MediaError> in
            do throws(MediaError) {
                return .success(try await question())
            } catch {
                return .failure(error)
            }
        }
        let isCancelled = state.withLock { state in
            state.endWait = { asking.cancel() }
            return state.changes.isCancelled
        }
        if isCancelled { asking.cancel() }
        let answer = await asking.value
        state.withLock { $0.endWait = nil }
        switch answer {
        case .success(let value): return value
        case .failure(let error): throw RoomError(error)
        }
    }

    private func launch(
        _ graph: MediaGraph, _ request: MediaRequest, _ contents: MediaRequest.Contents, mayWait: Bool
    ) async throws(RoomError) {
        observers.begin()
        defer { state.withLock { $0.starting = nil } }
        let pipeline = try await ask {
            [machine, registry, bindings = bindings(of: graph)] () async throws(MediaError) in
            try await machine.makePipeline(graph, bindings, registry)
        }
        // A stop before this line is seen here; a later one finds the pipeline.
        let isWanted = state.withLock { state in
            state.starting = pipeline
            return !state.changes.isCancelled
        }
        guard isWanted else {
            await pipeline.stop()
            throw CaptureChanges.stopped
        }
        do throws(MediaError) {
            try await pipeline.begin()
        } catch {
            throw RoomError(error)
        }
        // A device that is away at the start is an error, unless it may come late. A later loss is none.
        let absences = mayWait ? [:] : pipeline.absences
        let camera = request.mustHaveCamera(contents) ? absences[MediaRequest.sourceNode] : nil
        if let cause = camera ?? absences[MediaRequest.microphoneNode] {
            await pipeline.stop()
            throw RoomError(cause)
        }
        state.withLock { $0.pipeline = pipeline }
    }

    /// The pipeline is as requested, unless an optional part has failed since `partsLost`.
    private func settle(
        _ request: MediaRequest, _ contents: MediaRequest.Contents, _ graph: MediaGraph?, _ partsLost: Int
    ) {
        let former = state.withLock { state in
            let whole = state.partsLost == partsLost
            defer { state.running = Running(request: whole ? request : nil, contents: contents, graph: graph) }
            return state.running?.contents
        }
        streams.dropUnused()
        tellUnfed()
        followSensor(request, graph)
        if let notice = contents.notice, notice != former?.notice { observers.warning(notice) }
        let hasMicrophone = graph?.node(MediaRequest.microphoneNode) != nil
        SoundActivity.shared.set(hasMicrophone, self)
        // It may have failed before this.
        if state.withLock({ $0.pipeline })?.isRunning != true { SoundActivity.shared.set(false, self) }
        let mustBeProcessed =
            hasMicrophone && VoiceProcessing.choice.value.isOn && request.capturing.isProcessed
        let isNews = state.withLock { state in
            guard mustBeProcessed, state.lacksVoiceProcessor, !state.isUnprocessed else { return false }
            state.isUnprocessed = true
            return true
        }
        if isNews { observers.warning(Self.unprocessed) }
    }

    /// A stream without an input is not live.
    private func tellUnfed() {
        let isUp = state.withLock { $0.pipeline?.isRunning ?? ($0.running != nil) }
        for stream in streams.all where !isUp || !stream.isFed {
            stream.set(.waiting(isUp ? Self.off(stream.codec.media) : "stopped"))
        }
    }

    /// Follows the sensor while a camera's frames are turned by it.
    private func followSensor(_ request: MediaRequest?, _ graph: MediaGraph?) {
        let isWanted =
            request?.source == .camera && request?.rotationType == .device
            && graph?.node(MediaRequest.sourceNode) != nil
        sensor.follow(isWanted) { [weak self] degrees in self?.changeLater { $0.deviceTurn = degrees } }
    }

    private func end(_ pipeline: (any CapturePipeline)?, _ reason: String?) async {
        if let pipeline {
            await pipeline.stop()
            let statistics = pipeline.statistics
            state.withLock { ($0.pipeline, $0.running, $0.lastStatistics) = (nil, nil, statistics) }
            SoundActivity.shared.set(false, self)
        }
        guard let reason else { return }
        followSensor(nil, nil)
        for stream in streams.all { stream.set(.waiting(reason)) }
    }

    private func bindings(of graph: MediaGraph) -> NodeBindings {
        var bindings = NodeBindings()
        if graph.node(MediaRequest.preview) != nil {
            bindings.frames[MediaRequest.preview] = { [preview] frame in preview.deliver(frame) }
        }
        bindings.events = { [weak self] event in self?.handle(event) }
        return bindings
    }

    // MARK: - Running

    package var isStarting: Bool { state.withLock { $0.starting != nil } }
    /// Whether no change is in progress or waits.
    var isSettled: Bool { state.withLock { !$0.changes.isBusy } }
    package var isRunning: Bool { state.withLock { $0.pipeline != nil } }

    /// The control of the process that feeds the source. Nil while nothing is captured, and if the source is not a feed.
    package var feed: FrameFeedControl? { state.withLock { $0.pipeline }?.sourceFeed }

    /// Those of the running pipeline, or of the last one.
    package var statistics: MediaStatistics {
        let (pipeline, last) = state.withLock { ($0.pipeline, $0.lastStatistics) }
        return pipeline?.statistics ?? last
    }

    /// Counters of the video encoder. Zero without one.
    package var encoderStatistics: MediaStatistics.VideoEncoder {
        statistics.encoders.values.max { $0.width < $1.width } ?? MediaStatistics.VideoEncoder()
    }

    /// The level of the captured audio in decibels below full scale, after processing. Nil while none is captured.
    package var audioLevel: Double? {
        state.withLock { $0.pipeline }?.statistics.audioEncoders.values.map(\.level).max()
    }

    /// The running plan. Nil while nothing is captured.
    package var plan: GraphPlan? { state.withLock { $0.pipeline }?.plan }

    // MARK: - Events

    /// Whether the video or audio shows its camera or microphone.
    package func streamState(of media: StreamMedia) -> StreamState {
        if let stream = streams.stream(of: media) { return stream.streamState }
        let request = state.withLock { $0.running?.request }
        let isOff = media == .video ? request?.isVideoActive == false : request?.isAudioActive == false
        return isOff ? .waiting(Self.off(media)) : .live
    }

    /// Reports failures, such as a full disk, the source's end, and the devices. Includes an earlier failure or end, and the
    /// devices that are away.
    ///
    /// - Parameters:
    ///   - owner: the object that observes, once at a time.
    ///   - warning: called for faults that cost quality. A new observer gets those since the start.
    ///   - device: called for events of the camera (video) and the microphone (audio).
    package func observe(
        as owner: AnyObject, failed: @escaping @Sendable (RoomError) -> Void,
        ended: @escaping @Sendable () -> Void = {},
        warning: @escaping @Sendable (String) -> Void = { _ in },
        device: @escaping @Sendable (StreamMedia, MediaEvent) -> Void = { _, _ in }
    ) {
        observers.add(
            ObjectIdentifier(owner),
            CaptureObserver(failed: failed, ended: ended, warning: warning, device: device))
    }

    package func stopObserving(as owner: AnyObject) { observers.remove(ObjectIdentifier(owner)) }

    private func handle(_ event: MediaEvent) {
        switch event {
        case .failed(let error):
            SoundActivity.shared.set(false, self)
            for stream in streams.all { stream.fail(RoomError(error)) }
            observers.failed(RoomError(error))
        case .partFailed(let error, _):
            state.withLock { state in
                state.partsLost += 1
                state.running?.request = nil
            }
            observers.problem(RoomError(error))
        case .ended:
            SoundActivity.shared.set(false, self)
            for stream in streams.all {
                stream.inputEnded()
                stream.set(.waiting("ended"))
            }
            observers.ended()
        case .deviceWaiting, .deviceLost, .deviceReturned, .deviceFailedOver:
            guard let source = event.source else { return }
            let media: StreamMedia = source.node == MediaRequest.sourceNode ? .video : .audio
            // `FeedWatch` has told the stream, if the device feeds it.
            observers.device(media, event)
        case .warning(_, let message): observers.warning(message)
        case .keyframeNeeded, .firstFrame, .qualityChanged, .soundInterrupted, .soundResumed: break
        }
    }
}

extension RoomError {
    /// A media failure with its own code. The number is the original SDK's, if it has one.
    package init(_ error: MediaError) {
        let isDevice = error.code.hasPrefix("camera.") || error.code.hasPrefix("microphone.")
        self.init(
            Code(name: error.code, number: isDevice ? Code.cameraUnavailable.number : Code.media.number), error.message)
    }
}
