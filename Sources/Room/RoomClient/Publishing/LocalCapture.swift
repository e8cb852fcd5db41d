package import MediaGraph
package import MediaNodes
internal import RTP
package import RoomProtocol
internal import Synchronization

/// The capturing and encoding side of a participant, with or without rooms: one wish, and one pipeline that fulfils it.
///
/// Changes of the wish are applied one after the other: as the start of the pipeline, as an edit of its graph, or as its
/// stop. Changes that arrive meanwhile become one. A change that fails leaves the running media as it was.
package final class LocalCapture: Sendable {
    private typealias Edit = @Sendable (inout MediaWish) -> Void

    private struct Change {
        /// Nil for a stop.
        var edit: Edit?
        var isStart = false
        /// Whether media that has ended or failed starts again for it.
        var mayLaunch = true
        let done: @Sendable (Result<Void, RoomError>) -> Void
    }

    private struct State {
        /// The newest wish that was fulfilled.
        var wish: MediaWish
        /// `wish` with the edits in progress and those that wait.
        var newest: MediaWish
        /// How often the pending edits have changed.
        var revision = 0
        /// The changes in progress, and those that wait.
        var working: [Change] = []
        var changes: [Change] = []
        var isWorking = false
        var isCapturing = false
        /// The pipeline that is starting, so that a stop need not wait for a silent source.
        var starting: MediaPipeline?
        var pipeline: MediaPipeline?
        /// The wish of the running pipeline, and the contents of its sources.
        var running: (wish: MediaWish, contents: MediaWish.Contents)?
        /// Whether a stop ends the work in progress.
        var isCancelled = false
        /// The statistics of the last pipeline that has stopped.
        var lastStatistics = MediaStatistics()
    }

    /// The captured frames, before encoding. Frames are captured for it while it has sinks.
    package let preview = FrameFanout()
    let streams = OutgoingStreams()
    private let state: Mutex<State>
    private let observers = CaptureObservers()
    private let registry: NodeRegistry

    /// How long the new nodes of an edit may take for their first frames. Cameras need seconds.
    private static let editSeconds = 8.0

    /// The wish that the running edit changes, and the capture it belongs to.
    @TaskLocal private static var edited: (capture: ObjectIdentifier, wish: MediaWish)?

    private static let stopped = RoomError(.outOfOrder, "This local media was stopped meanwhile. Start it again.")

    package init(_ wish: MediaWish) {
        state = Mutex(State(wish: wish, newest: wish))
        registry = NodeRegistry.builtIn.adding([PublishNode.feeding(streams)])
        preview.onDemand { [weak self] in self?.previewChanged() }
    }

    // MARK: - Wishing

    /// The newest wish. It may still fail. Within an edit, the wish that the edit changes.
    package var wish: MediaWish {
        if let edited = Self.edited, edited.capture == ObjectIdentifier(self) { return edited.wish }
        return state.withLock { $0.newest }
    }

    private func apply(_ edit: Edit, to wish: inout MediaWish) {
        let before = wish
        Self.$edited.withValue((ObjectIdentifier(self), before)) { edit(&wish) }
    }

    /// Evaluates the pending edits, without the lock, because they may ask this object.
    private func renewNewest() {
        while true {
            var (wish, revision, edits) = state.withLock {
                ($0.wish, $0.revision, ($0.working + $0.changes).compactMap(\.edit))
            }
            for edit in edits { apply(edit, to: &wish) }
            let isCurrent = state.withLock { state in
                if state.revision == revision { state.newest = wish }
                return state.revision == revision
            }
            if isCurrent { return }
        }
    }

    /// Starts capturing and encoding. Returns after the first frame, or immediately if it runs already.
    package func start() async throws(RoomError) {
        let result = await withCheckedContinuation { continuation in
            enqueue(Change(edit: { _ in }, isStart: true) { continuation.resume(returning: $0) })
        }
        try result.get()
    }

    /// Changes the wish. Returns when the running media shows the change; immediately while nothing is captured.
    ///
    /// - Parameter edit: may be called several times, on any thread.
    /// - Throws: the reason why the change is not possible. The media then continues as before.
    package func change(_ edit: @escaping @Sendable (inout MediaWish) -> Void) async throws(RoomError) {
        let result = await withCheckedContinuation { continuation in
            enqueue(Change(edit: edit) { continuation.resume(returning: $0) })
        }
        try result.get()
    }

    /// Changes the wish without waiting. Observers get the error of a change that fails.
    package func wishLater(_ edit: @escaping @Sendable (inout MediaWish) -> Void) {
        enqueue(
            Change(edit: edit) { [observers] result in
                if case .failure(let error) = result { observers.problem(error) }
            })
    }

    /// Stops capturing, also during a start. When it returns, the devices are free.
    package func stop() async {
        _ = await withCheckedContinuation { continuation in
            let stop = Change(edit: nil) { continuation.resume(returning: $0) }
            let (pipelines, refused, mustWork) = state.withLock { state in
                let refused = state.changes.filter(\.isStart)
                state.changes = [stop] + state.changes.filter { !$0.isStart }
                state.isCancelled = true
                state.revision += 1
                defer { state.isWorking = true }
                return ([state.starting, state.pipeline].compactMap(\.self), refused, !state.isWorking)
            }
            for change in refused { change.done(.failure(Self.stopped)) }
            for pipeline in pipelines { Task.detached { await pipeline.stop() } }
            if mustWork { Task.detached { await self.work() } }
        }
    }

    private func enqueue(_ change: Change) {
        let mustWork = state.withLock { state in
            state.changes.append(change)
            state.revision += 1
            defer { state.isWorking = true }
            return !state.isWorking
        }
        renewNewest()
        if mustWork { Task.detached(priority: .userInitiated) { await self.work() } }
    }

    private func previewChanged() {
        enqueue(
            Change(edit: { _ in }, mayLaunch: false) { [observers] result in
                if case .failure(let error) = result { observers.problem(error) }
            })
    }

    // MARK: - Reconciling

    private func work() async {
        while let batch = nextBatch() {
            await fulfil(batch)
        }
    }

    /// A stop alone, or all changes up to the next stop. Nil if there is no more work.
    private func nextBatch() -> [Change]? {
        state.withLock { state in
            state.working = []
            guard let first = state.changes.first else {
                state.isWorking = false
                return nil
            }
            let count = first.edit == nil ? 1 : state.changes.prefix { $0.edit != nil }.count
            state.working = Array(state.changes.prefix(count))
            state.changes.removeFirst(count)
            // A stop that arrives from now on ends this work.
            state.isCancelled = false
            return state.working
        }
    }

    private func fulfil(_ batch: [Change]) async {
        var (wish, isCapturing) = state.withLock { ($0.wish, $0.isCapturing) }
        for change in batch {
            if let edit = change.edit { apply(edit, to: &wish) }
            if change.isStart { isCapturing = true }
            if change.edit == nil { isCapturing = false }
        }
        do throws(RoomError) {
            try await bring(wish, isCapturing: isCapturing, mayLaunch: batch.contains(where: \.mayLaunch))
            adopt(wish, isCapturing, batch.count)
            for change in batch { change.done(.success(())) }
        } catch {
            if state.withLock({ $0.isCancelled }) { return adoptStopped(wish, batch) }
            // One of them may be impossible, and the others not.
            if batch.count > 1 {
                for change in batch { await fulfil([change]) }
                return
            }
            state.withLock { state in
                state.working.removeFirst()
                state.revision += 1
            }
            renewNewest()
            tellUnfed()
            for change in batch { change.done(.failure(error)) }
        }
    }

    /// Keeps the wish of changes that a stop has interrupted: they apply as those of media that is not captured.
    private func adoptStopped(_ wish: MediaWish, _ batch: [Change]) {
        adopt(wish, nil, batch.count)
        for change in batch { change.done(change.isStart ? .failure(Self.stopped) : .success(())) }
    }

    private func adopt(_ wish: MediaWish, _ isCapturing: Bool?, _ count: Int) {
        state.withLock { state in
            (state.wish, state.isCapturing) = (wish, isCapturing ?? state.isCapturing)
            state.working.removeFirst(count)
            state.revision += 1
        }
    }

    /// Makes the media be as wished.
    private func bring(_ wish: MediaWish, isCapturing: Bool, mayLaunch: Bool) async throws(RoomError) {
        let (pipeline, running, isCancelled) = state.withLock { ($0.pipeline, $0.running, $0.isCancelled) }
        guard isCapturing else { return await end(pipeline, "stopped") }
        if isCancelled { throw Self.stopped }
        let isRunning = pipeline?.state == .running
        guard isRunning || mayLaunch else { return }
        var wish = wish
        // Sinks come and go on any thread; each of them enqueues a change.
        wish.isPreviewed = !preview.isEmpty
        if isRunning, running?.wish == wish { return }
        let known = isRunning && running?.wish.origin == wish.origin ? running?.contents : nil
        let contents = if let known { known } else { try await inspect(wish) }
        if !isRunning {
            await end(pipeline, nil)
            streams.dropUnused()
        }
        let codec = streams.stream(of: .video).map { $0.codec == .h264 ? VideoCodec.h264 : .vp8 }
        guard let graph = wish.graph(contents, continuing: codec) else {
            await end(pipeline, nil)
            return settle(wish, contents)
        }
        if let pipeline, isRunning {
            do throws(MediaError) {
                try await pipeline.apply(
                    graph, bindings: bindings(of: graph), within: Self.editSeconds, needsDevices: !wish.waitsForDevices)
            } catch {
                throw RoomError(error)
            }
            forgetAbsences(missingIn: pipeline)
        } else {
            try await launch(graph, wish, contents)
        }
        settle(wish, contents)
    }

    /// A source that an edit has replaced or removed reports no return of its device.
    private func forgetAbsences(missingIn pipeline: MediaPipeline) {
        let absences = pipeline.absences
        for (media, node) in [(StreamMedia.video, MediaWish.sourceNode), (.audio, MediaWish.microphoneNode)]
        where absences[node] == nil && observers.isAway(media) {
            observers.device(media, .deviceReturned(node: node))
        }
    }

    /// Checks that the sources exist, without opening them for capture.
    private func inspect(_ wish: MediaWish) async throws(RoomError) -> MediaWish.Contents {
        let found: MediaWish.Contents
        do throws(MediaError) {
            found = try await offPool { () throws(MediaError) in try wish.inspect() }
        } catch {
            throw RoomError(error)
        }
        guard found.hasVideo || found.hasAudio else {
            throw RoomError(
                .settingInvalid,
                "There is nothing to publish: no requested source has video or audio. Choose another source.")
        }
        return found
    }

    private func launch(
        _ graph: MediaGraph, _ wish: MediaWish, _ contents: MediaWish.Contents
    ) async throws(RoomError) {
        observers.begin()
        defer { state.withLock { $0.starting = nil } }
        let pipeline: MediaPipeline
        do throws(MediaError) {
            pipeline = try await MediaPipeline(graph, bindings: bindings(of: graph), registry: registry)
        } catch {
            throw RoomError(error)
        }
        // A stop before this line is seen here; a later one finds the pipeline.
        let isWanted = state.withLock { state in
            state.starting = pipeline
            return !state.isCancelled
        }
        guard isWanted else {
            await pipeline.stop()
            throw Self.stopped
        }
        do throws(MediaError) {
            try await pipeline.start()
        } catch {
            throw RoomError(error)
        }
        // A device that is away at the start is an error, unless it may come late. A later loss is none.
        let absences = wish.waitsForDevices ? [:] : pipeline.absences
        let camera = wish.mustHaveCamera(contents) ? absences[MediaWish.sourceNode] : nil
        if let cause = camera ?? absences[MediaWish.microphoneNode] {
            await pipeline.stop()
            throw RoomError(cause)
        }
        state.withLock { $0.pipeline = pipeline }
    }

    /// Every wished medium has a stream, also one that is not captured at present.
    private func settle(_ wish: MediaWish, _ contents: MediaWish.Contents) {
        state.withLock { $0.running = (wish, contents) }
        let codecs = [
            contents.hasVideo ? (StreamMedia.video, wish.codec == .h264 ? Codec.h264 : .vp8) : nil,
            contents.hasAudio ? (.audio, .opus) : nil,
        ]
        for case (let media, let codec)? in codecs where streams.stream(of: media) == nil {
            streams.keep([OutgoingStream(codec)])
        }
        for stream in streams.all where !stream.isFed {
            stream.set(.waiting("\(stream.codec.media.rawValue) off"))
        }
    }

    /// After a failure: a stream without an input is not live.
    private func tellUnfed() {
        let isRunning = state.withLock { $0.pipeline }?.state == .running
        for stream in streams.all where !isRunning || !stream.isFed {
            stream.set(.waiting(isRunning ? "\(stream.codec.media.rawValue) off" : "stopped"))
        }
    }

    private func end(_ pipeline: MediaPipeline?, _ reason: String?) async {
        if let pipeline {
            await pipeline.stop()
            let statistics = pipeline.statistics
            state.withLock { ($0.pipeline, $0.running, $0.lastStatistics) = (nil, nil, statistics) }
        }
        guard let reason else { return }
        for stream in streams.all { stream.set(.waiting(reason)) }
    }

    private func bindings(of graph: MediaGraph) -> NodeBindings {
        var bindings = NodeBindings()
        if graph.node(MediaWish.preview) != nil {
            bindings.frames[MediaWish.preview] = { [preview] frame in preview.deliver(frame) }
        }
        bindings.events = { [weak self] event in self?.handle(event) }
        return bindings
    }

    // MARK: - Running

    package var isStarting: Bool { state.withLock { $0.starting != nil } }
    /// Whether no change is in progress or waits.
    var isSettled: Bool { state.withLock { !$0.isWorking } }
    package var isRunning: Bool { state.withLock { $0.pipeline != nil } }

    /// Those of the running pipeline, or of the last one.
    package var statistics: MediaStatistics {
        let (pipeline, last) = state.withLock { ($0.pipeline, $0.lastStatistics) }
        return pipeline?.statistics ?? last
    }

    /// Counters of the video encoder. Zero without one.
    package var encoderStatistics: MediaStatistics.VideoEncoder {
        statistics.encoders.values.first ?? MediaStatistics.VideoEncoder()
    }

    /// The running plan. Nil while nothing is captured.
    package var plan: GraphPlan? { state.withLock { $0.pipeline }?.plan }

    /// A track for each stream, for one more room.
    var tracks: [any OutgoingTrack] { streams.all.map { $0.track() } }

    // MARK: - Events

    /// Whether the video or audio shows its camera or microphone.
    package func streamState(of media: StreamMedia) -> StreamState { streams.stream(of: media)?.streamState ?? .live }

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
            for stream in streams.all { stream.set(.waiting("failed")) }
            observers.failed(RoomError(error))
        case .partFailed(let error, _): observers.problem(RoomError(error))
        case .ended:
            for stream in streams.all { stream.set(.waiting("ended")) }
            observers.ended()
        case .deviceWaiting, .deviceLost, .deviceReturned, .deviceFailedOver:
            guard let source = event.source else { return }
            let media: StreamMedia = source.node == MediaWish.sourceNode ? .video : .audio
            streams.stream(of: media)?.set(source.absence.map { StreamState(absence: $0) } ?? .live)
            observers.device(media, event)
        case .warning(_, let message): observers.warning(message)
        case .keyframeNeeded, .firstFrame: break
        }
    }
}

extension RoomError {
    /// A media failure with its own code. The number is the original SDK's, if it has one.
    package init(_ error: MediaError) {
        let isCamera = error.code.hasPrefix("camera.")
        self.init(
            Code(name: error.code, number: isCamera ? Code.cameraUnavailable.number : Code.media.number), error.message)
    }
}
